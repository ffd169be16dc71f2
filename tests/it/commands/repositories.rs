//! Whatever a command does to a repository's own folder, undo gives the whole repository back: git itself is asked.
//!
//! The lines are generated: each way to name the folder with each way to destroy it, each way to destroy it in each kind
//! of repository at each level of sandbox, and what empties a workspace as a whole. `TANDEM_REPOSITORIES=all` runs all of
//! them, which takes minutes, and `TANDEM_REPOSITORIES=mv` those with that word; otherwise every [`SHARE`]th is run, from the one of that number on.

use super::*;
use crate::driver::side_by_side;
use crate::git::{git, shell, told};

/// One of so many is run each time.
const SHARE: usize = 17;

/// Where the repository's own folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In the workspace.
    Plain,
    /// Elsewhere: the workspace is a linked worktree.
    Worktree,
    /// In the folder of the repository it is a submodule of.
    Submodule,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Worktree, Kind::Submodule];
const LEVELS: [Level; 3] = [Level::Best, Level::Landlock, Level::None];

/// How a line names the folder `FOLDER/NAME`: what comes first, and then the word.
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

/// How a line destroys `IT`; `OUT` is a folder elsewhere that it may write to.
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

/// What empties a workspace.
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
    /// Whether all of the repository's folder is destroyed, rather than its objects.
    is_whole: bool,
    name: (&'static str, &'static str),
    way: &'static str,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let places = |index: usize| (KINDS[index % 3], LEVELS[index / 3 % 3]);
    for (at, way) in WAYS.into_iter().enumerate() {
        for (index, name) in NAMES.into_iter().enumerate() {
            let (kind, level) = places(at + index);
            let is_whole = (at + index) % 2 == 0;
            cases.push(Case {
                kind,
                level,
                is_whole,
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
                is_whole: index % 2 == 1,
                name,
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
                is_whole: true,
                name,
                way,
            });
        }
    }
    cases
}

impl Case {
    /// The command, for a repository whose own folder is `folder/name`.
    fn line(&self, folder: &str, name: &str, out: &str) -> String {
        let (folder, name) = if self.is_whole {
            (folder.to_owned(), name)
        } else {
            (format!("{folder}/{name}"), "objects")
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

    /// Why the repository is not what it was, if so.
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
        let after = told(&place);
        let answer = super::odd::review(&mut client, &session, "undo");
        let now = told(&place);
        if now == before {
            return Ok(());
        }
        Err(format!(
            "{self:?}\n{line}\n{:?}\n{answer}\nbefore:\n{before}\nafter:\n{after}\nnow:\n{now}",
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
    assert!(!some.is_empty(), "no way has this word");
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
