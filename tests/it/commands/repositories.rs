//! Whatever a command does to a repository's own folder, undo restores the whole repository, as git itself confirms.
//!
//! The lines are generated: each way to name the folder with each way to destroy it, each way to destroy it in each kind
//! of repository at each level of sandbox, each part of it with each way to replace it with another kind of entry, and
//! commands that empty the whole workspace. `TANDEM_REPOSITORIES=all` runs all of them, which takes minutes, and
//! `TANDEM_REPOSITORIES=mv` those that contain that word; otherwise every [`SHARE`]th is run, from the one of that number on.

use super::*;
use crate::driver::side_by_side;
use crate::git::{git, printed, shell, told};

/// One in this many is run each time.
const SHARE: usize = 17;

/// Where the repository's own folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In the workspace.
    Plain,
    /// Elsewhere: the workspace is a linked worktree.
    Worktree,
    /// In the folder of its parent repository: it is a submodule.
    Submodule,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Worktree, Kind::Submodule];
const LEVELS: [Level; 3] = [Level::Best, Level::Landlock, Level::None];

/// How a line names the folder `FOLDER/NAME`: the preceding commands, and the word itself.
const NAMES: [(&str, &str); 11] = [
    ("", "FOLDER/NAME"),
    ("", "FOLDER/\"NAME\""),
    ("", "FOLDER/./NAME/"),
    ("", "FOLDER/START?"),
    ("", "FOLDER/[.a-z]REST"),
    ("", "\"$(printf '%s/%s' FOLDER NAME)\""),
    ("d=FOLDER/NAME; ", "$d"),
    ("cd FOLDER && ", "NAME"),
    ("cd FOLDER/NAME && ", "$PWD"),
    ("", "$(find FOLDER -maxdepth 1 -name NAME)"),
    ("ln -s FOLDER link; ", "link/NAME"),
];

/// How a line destroys `IT`; `OUT` is an outside folder that it may write to.
const WAYS: [&str; 18] = [
    "rm -rf IT",
    "rm -r -f -- IT/*",
    "mv IT OUT",
    "mv IT kept",
    "cp -r IT OUT && rm -rf IT",
    "find IT -delete",
    "find IT -type f -exec rm -f {} +",
    "find IT -type f | xargs rm -f",
    "for f in $(find IT -type f); do rm -f $f; done",
    "chmod -R u+w IT; find IT -type f -exec truncate -s 0 {} +",
    "chmod -R u+w IT; find IT -type f -exec sh -c 'echo lost > $1' _ {} \\;",
    "chmod -R u+w IT; find IT -type f -exec sed -i s/./x/ {} +",
    "chmod -R u+w IT; find IT -type f -exec cp /dev/null {} \\;",
    "chmod -R u+w IT; find IT -type f -exec dd if=/dev/zero of={} bs=1 count=9 conv=notrunc status=none \\;",
    "python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' IT",
    "perl -e 'use File::Path; rmtree($ARGV[0])' IT",
    "tar -cf OUT --remove-files IT",
    "rm -rf IT; echo lost > IT; true",
];

/// The parts of the folder that are replaced by another kind of entry.
const PARTS: [&str; 14] = [
    "HEAD",
    "config",
    "index",
    "packed-refs",
    "refs/heads/main",
    "refs/stash",
    "refs",
    "logs/HEAD",
    "logs/refs/stash",
    "logs",
    "info/exclude",
    "info",
    "objects",
    "objects/pack",
];

/// How a line does that.
const REPLACED: [&str; 7] = [
    "rm -rf IT; ln -s /dev/null IT",
    "mv IT OUT; ln -s OUT IT",
    "mv IT kept; ln -s \"$PWD\"/kept IT",
    "rm -rf IT; mkdir IT; echo lost > IT/x",
    "mv IT kept; mkdir -p IT/x; mv kept IT/x",
    "rm -rf IT; echo lost > IT",
    "rm -rf IT; mkfifo IT",
];

/// Commands that empty a workspace.
const WHOLE: [&str; 9] = [
    "shopt -s dotglob; rm -rf *",
    "rm -rf -- * .[!.]*",
    "find . -mindepth 1 -delete",
    "rm -rf \"$PWD\"/* \"$PWD\"/.g*",
    "ls -A | xargs rm -rf",
    "cd .. && rm -rf \"$OLDPWD\"",
    "printf 'clean:\\n\\trm -rf .git *\\n' > Makefile; make clean || rm -rf .git",
    "git init -q OUT; rm -rf .git; cp -r OUT/.git .; git add -A",
    "rm -rf .git; git init -q .; git add -A; git -c user.name=a -c user.email=a@b commit -qm lost",
];

#[derive(Debug)]
struct Case {
    kind: Kind,
    level: Level,
    /// The part of the repository's folder that is destroyed; empty for all of it.
    part: &'static str,
    name: (&'static str, &'static str),
    way: &'static str,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let places = |index: usize| (KINDS[index % 3], LEVELS[index / 3 % 3]);
    for (at, way) in WAYS.into_iter().enumerate() {
        for (index, name) in NAMES.into_iter().enumerate() {
            let (kind, level) = places(at + index);
            cases.push(Case {
                kind,
                level,
                part: ["", "objects"][(at + index) % 2],
                name,
                way,
            });
        }
        for index in 0..9 {
            let (kind, level) = places(index);
            let name = NAMES[(at + index) % NAMES.len()];
            cases.push(Case {
                kind,
                level,
                part: ["objects", ""][index % 2],
                name,
                way,
            });
        }
    }
    for (at, way) in REPLACED.into_iter().enumerate() {
        for (index, part) in PARTS.into_iter().enumerate() {
            let (kind, level) = places(at + index);
            cases.push(Case {
                kind,
                level,
                part,
                name: NAMES[0],
                way,
            });
        }
    }
    let name = ("", "");
    for way in WHOLE {
        for level in LEVELS {
            cases.push(Case {
                kind: Kind::Plain,
                level,
                part: "",
                name,
                way,
            });
        }
    }
    // Without a sandbox, a repository that was moved within the workspace stays there, too.
    cases.retain(|case| {
        !(case.level == Level::None && case.part.is_empty() && case.way == "mv IT kept")
    });
    cases
}

impl Case {
    /// The command, for a repository whose own folder is `folder/name`.
    fn line(&self, folder: &str, name: &str, out: &str) -> String {
        let (folder, name) = match self.part.rsplit_once('/') {
            _ if self.part.is_empty() => (folder.to_owned(), name),
            None => (format!("{folder}/{name}"), self.part),
            Some((inner, part)) => (format!("{folder}/{name}/{inner}"), part),
        };
        let (first, it) = self.name;
        let (begin, end) = (name.get(1..).unwrap(), name.get(..name.len() - 1).unwrap());
        format!("{first}{}", self.way.replace("IT", it))
            .replace("[.a-z]REST", &format!("[.a-z]{begin}"))
            .replace("START?", &format!("{end}?"))
            .replace("NAME", name)
            .replace("FOLDER", &folder)
            .replace("OUT", out)
    }

    /// How the repository differs from before, if it does.
    fn play(&self) -> Result<(), String> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().canonicalize().unwrap();
        let (main, out) = (folder.join("main"), folder.join("out"));
        let out = if self.level == Level::None {
            out.to_str().unwrap()
        } else {
            "/tmp/out"
        };
        let (folder, name) = match self.kind {
            Kind::Plain => (".", ".git"),
            Kind::Worktree => (main.to_str().unwrap(), ".git"),
            Kind::Submodule => (".git/modules", "sub"),
        };
        let line = self.line(folder, name, out);
        let stage = Stage::new(self.level, &[run(&line)]);
        let root = stage.world.path();
        if self.kind == Kind::Plain {
            fill(&root);
        } else {
            std::fs::create_dir(&main).unwrap();
            fill(&main);
        }
        if self.kind == Kind::Worktree {
            git(
                &main,
                &["worktree", "add", "-qf", root.to_str().unwrap(), "other"],
            );
        } else if self.kind == Kind::Submodule {
            add_submodule(&root, &main);
        }
        let place = if self.kind == Kind::Submodule {
            root.join("sub")
        } else {
            root.clone()
        };
        let before = told(&place);
        let mut client = stage.client();
        let session = super::odd::turn_in(&mut client, &root);
        // git waits for the other end of a pipe.
        let is_pipe = self.way.contains("mkfifo");
        let after = (!is_pipe).then(|| told(&place));
        let answer = super::odd::review(&mut client, &session, "undo");
        let now = told(&place);
        if now == before {
            return Ok(());
        }
        Err(format!(
            "{self:?}\n{line}\n{:?}\n{answer}\nbefore:\n{before}\nafter:\n{after:?}\nnow:\n{now}",
            stage.told()
        ))
    }
}

/// A repository with packed and with loose objects, packed refs, a tag, a second branch and a stash.
fn fill(folder: &Path) {
    shell(
        folder,
        "git init -q -b main; echo one > a; git add a; git commit -qm one; git branch other; git tag -a v1 -m v1; \
         git gc -q; echo two > b; git add b; git commit -qm two; echo three > a; git stash -q",
    );
}

fn add_submodule(root: &Path, from: &Path) {
    let line = "git init -q; git -c protocol.file.allow=always submodule --quiet add FROM sub; git commit -qm one";
    shell(root, &line.replace("FROM", from.to_str().unwrap()));
}

#[test]
fn undo_gives_back_a_repository_that_a_command_destroyed() {
    let all = cases();
    assert!(all.len() >= 300, "{}", all.len());
    let which = std::env::var("TANDEM_REPOSITORIES").unwrap_or_default();
    let share = |first| all.into_iter().skip(first).step_by(SHARE).collect();
    let some: Vec<_> = match (which.as_str(), which.parse()) {
        ("", _) => share(0),
        (_, Ok(first)) => share(first),
        (word, _) => cases()
            .into_iter()
            .filter(|case| word == "all" || case.way.contains(word))
            .collect(),
    };
    assert!(!some.is_empty(), "no command contains this word");
    let count = some.len();
    let failed: Vec<_> = side_by_side(4, some, |case| case.play())
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {count}:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

/// A repository with a pack and a loose object that are not worth copying where no command can overwrite them.
fn fill_large(folder: &Path) {
    let line = "git init -q; git config core.compression 0; truncate -s 65M x; git add x; git commit -qm one; git gc -q; \
        echo x >> x; git add x; git rm -qf x; git commit -qm two; \
        test $(find .git/objects -size +64M | wc -l) = 2";
    shell(folder, line);
}

#[test]
fn undo_gives_back_large_packs_and_objects_that_a_command_overwrote() {
    for level in LEVELS {
        let line = "for it in $(find .git/objects -size +64M); do chmod u+w $it; \
            printf lost | dd of=$it bs=1 seek=1000 conv=notrunc; done";
        let stage = Stage::new(level, &[run(line)]);
        let root = stage.world.path();
        fill_large(&root);
        let before = told(&root);
        let mut client = stage.client();
        let session = super::odd::turn_in(&mut client, &root);
        assert_ne!(told(&root), before, "{level:?}: {:?}", stage.told());
        let answer = super::odd::review(&mut client, &session, "undo");
        assert_eq!(told(&root), before, "{level:?}: {answer}");
    }
}

#[test]
fn commands_require_approval_where_a_pack_is_too_large_for_a_backup() {
    for level in [Level::Best, Level::Landlock] {
        let stage = Stage::new(level, &[run("echo x > x")]);
        let root = stage.world.path();
        fill(&root);
        let pack = std::fs::File::create(root.join(".git/objects/pack/pack-1.pack")).unwrap();
        pack.set_len(5 << 30).unwrap();
        let folder = root.join(".git/objects/ab");
        std::fs::create_dir_all(&folder).unwrap();
        let object = std::fs::File::create(folder.join("c".repeat(38))).unwrap();
        object.set_len(65 << 20).unwrap();
        let mut client = stage.client();
        let session = super::changes::automatic(&mut client, &stage);
        let prompt = client.prompt(&session, "go");
        let first = client.find(|message| {
            message["method"] == "session/request_permission" || message["id"] == prompt
        });
        let is_asked = first.to_string().contains("larger than 4 GiB");
        assert_eq!(is_asked, level == Level::Landlock, "{level:?}: {first}");
        client.seen.push_front(first);
        assert_eq!(finish_prompt(&mut client, prompt), "end_turn");
    }
}

#[test]
fn commands_can_commit_in_a_submodule() {
    for level in [Level::Best, Level::Landlock] {
        let line = "cd sub && echo two > a && git -c user.name=a -c user.email=a@b commit -qam two && git log --oneline";
        let stage = Stage::new(level, &[run(line)]);
        let (root, main) = (stage.world.path(), stage.home.path().join("main"));
        std::fs::create_dir(&main).unwrap();
        fill(&main);
        add_submodule(&root, &main);
        let before = told(&root.join("sub"));
        let mut client = stage.client();
        let session = super::odd::turn_in(&mut client, &root);
        let said = stage.told().remove(0);
        assert!(said.contains("[exit code 0,"), "{level:?}: {said}");
        assert_ne!(told(&root.join("sub")), before, "{level:?}");
        let answer = super::odd::review(&mut client, &session, "undo");
        assert_eq!(told(&root.join("sub")), before, "{level:?}: {answer}");
    }
}

/// What git reports about the worktree, and the names in its folder except those of objects.
fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = printed(root, &["status", "--porcelain=v2", "--branch"])
        .lines()
        .map(str::to_owned)
        .collect();
    let mut ahead = vec![root.join(".git"), root.join(".git/objects/info")];
    while let Some(folder) = ahead.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            names.push(path.display().to_string());
            ahead.extend(Some(path).filter(|path| path.is_dir() && !path.ends_with("objects")));
        }
    }
    names.sort();
    names
}

/// A command, what the list of changes names after the root, and the message of undo.
const OF_GIT: [(&str, &str, &str); 13] = [
    ("echo two > a; git commit -qam two", "a", "branch main, a"),
    (
        "git commit -q --allow-empty -m two",
        ".git/refs/heads/main",
        "branch main",
    ),
    ("git branch x/y", ".git/refs/heads/x/y", "branch x/y"),
    ("git tag v1", ".git/refs/tags/v1", "tag v1"),
    ("echo two > a; git stash -q", ".git/index", "the stash"),
    (
        "git checkout -qb new",
        ".git/HEAD",
        "git's HEAD, branch new",
    ),
    ("git rm -q --cached a", ".git/index", "git's index"),
    (
        "git notes add -m note",
        ".git/refs/notes/commits",
        ".git/refs/notes/commits",
    ),
    (
        "git worktree add -q wt side",
        "wt/.git.held",
        "wt/.git.held, wt/a",
    ),
    ("git rebase side", "a", "git's HEAD, a"),
    (
        "mkdir -p .git/objects/info; echo /nowhere > .git/objects/info/alternates",
        ".git/objects/info/alternates",
        ".git/objects/info/alternates",
    ),
    ("git merge side", "a", "a"),
    (
        "git -c protocol.file.allow=always submodule add -q ./other sub",
        ".gitmodules.held",
        ".gitmodules.held, sub/.git.held, sub/o",
    ),
];

#[test]
fn undo_names_the_parts_of_git_it_restores_and_leaves_nothing_behind() {
    const PREPARE: &str = "git init -qb main; echo one > a; git add a; git commit -qm one; git branch side; \
        echo main > a; git commit -qam main; git checkout -q side; echo side > a; git commit -qam side; \
        git checkout -q main; git init -qb main other; cd other; echo o > o; git add o; git commit -qm o";
    let levels = [Level::Best, Level::Landlock];
    let cases: Vec<_> = OF_GIT
        .iter()
        .flat_map(|case| levels.map(|level| (case, level)))
        .collect();
    side_by_side(4, cases, |((line, listed, said), level)| {
        let (line, who) = (
            *line,
            "export EMAIL=a@b GIT_AUTHOR_NAME=a GIT_COMMITTER_NAME=a",
        );
        let stage = Stage::new(level, &[run(&format!("{who}; {line}"))]);
        let root = stage.world.path();
        shell(&root, PREPARE);
        let before = names(&root);
        let mut client = stage.client();
        let session = super::odd::turn_in(&mut client, &root);
        assert_ne!(names(&root), before, "{line}: {:?}", stage.told());
        let list = super::odd::review(&mut client, &session, "list");
        let first = &list["result"]["turns"][0]["files"][0]["path"];
        assert_eq!(*first, json!(root.join(listed)), "{line}: {list}");
        let undone = super::odd::review(&mut client, &session, "undo");
        let message = format!("undid “go”: {said}");
        assert_eq!(undone["result"]["message"], message, "{line}: {undone}");
        assert_eq!(names(&root), before, "{level:?}: {line}");
        let redone = super::odd::review(&mut client, &session, "redo");
        assert_eq!(redone["result"]["left"], json!([]), "{line}: {redone}");
        let undone = super::odd::review(&mut client, &session, "undo");
        assert_eq!(names(&root), before, "{level:?}: {line}: {undone}");
    });
}

#[test]
fn a_new_log_that_somebody_continued_goes_and_another_new_file_stays() {
    let line = "git branch x; echo '/mine' > .git/info/sparse-checkout";
    let stage = Stage::new(Level::Best, &[run(line)]);
    let root = stage.world.path();
    fill(&root);
    let mut client = stage.client();
    let session = super::odd::turn_in(&mut client, &root);
    let (log, sparse) = (".git/logs/refs/heads/x", ".git/info/sparse-checkout");
    for name in [log, sparse] {
        stage
            .world
            .write(name, &format!("{}more\n", stage.world.read(name)));
    }
    let undone = super::odd::review(&mut client, &session, "undo");
    assert!(!root.join(log).exists(), "{undone}");
    assert_eq!(stage.world.read(sparse), "/mine\nmore\n");
}

#[test]
fn a_repository_in_an_ignored_folder_is_named_before_and_after_it_is_destroyed() {
    for (line, is_lost) in [
        ("rm -rf ./vendor/checkout/.git/objects", true),
        ("ls vendor", false),
    ] {
        let stage = Stage::new(Level::Best, &[run(line)]);
        let root = stage.world.path();
        fill(&root);
        stage.world.write(".gitignore", "vendor\n");
        stage.world.write("vendor/checkout/text", "text\n");
        fill(&root.join("vendor/checkout"));
        let mut client = stage.client();
        let session = client.session(&stage.world);
        let prompt = client.prompt(&session, "go");
        let request = client.next("session/request_permission");
        let content = &request["params"]["toolCall"]["content"][0]["content"]["text"];
        let note = "\nundo does not cover vendor, with the repository vendor/checkout/.git";
        assert!(content.as_str().unwrap().ends_with(note), "{content}");
        allow(&mut client, &request);
        finish_prompt(&mut client, prompt);
        let told = stage.told();
        let note = "[it removed files undo can't restore: vendor/checkout/.git]";
        assert_eq!(told[0].contains(note), is_lost, "{told:?}");
    }
}

/// A repository on `main`, with another branch in which every file differs.
const BRANCHES: &str = "git init -qb main; mkdir d; echo main > a; echo main > d/b; git add .; git commit -qm main; \
    git checkout -qb side; git rm -q d/b; mkdir e; echo side > a; echo side > e/c; git add .; git commit -qm side; \
    git checkout -q main";

#[test]
fn a_checkout_in_a_terminal_is_not_attributed_to_a_job_and_a_jobs_own_is_undone() {
    let job = "echo job > made; until [ -e go ]; do sleep 0.02; done; echo job > late; sleep 60";
    let own = "git checkout -q side; touch made late; sleep 60";
    for level in LEVELS {
        for line in [job, own] {
            let stage = Stage::new(level, &[json!({ "command": line, "background": true })]);
            let root = stage.world.path();
            shell(&root, BRANCHES);
            let mut client = stage.client();
            let session = super::odd::turn_in(&mut client, &root);
            until("the job has begun", || root.join("made").exists());
            let is_persons = line == job;
            if is_persons {
                shell(&root, "git checkout -q side");
                stage.world.write("go", "");
            }
            until("the job has done all", || root.join("late").exists());
            let undone = super::odd::review(&mut client, &session, "undo");
            let branch = if is_persons { "side" } else { "main" };
            let status = printed(&root, &["status", "--porcelain", "--branch"]);
            assert_eq!(
                status,
                format!("## {branch}\n"),
                "{level:?}: {line}: {undone}"
            );
            assert_eq!(root.join("e/c").exists(), is_persons);
            assert_eq!(root.join("d").exists(), !is_persons);
        }
    }
}
