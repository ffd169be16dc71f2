#![expect(
    clippy::disallowed_methods,
    reason = "a test plays the command that changes files"
)]

use std::fs;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    guard: Guard,
}

impl Place {
    fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in files {
            write(folder.path(), name, "before");
        }
        let guard = Guard::new(&[Arc::new(Root::open(folder.path()).unwrap())]);
        Self { folder, guard }
    }

    fn restore(&self, pinned: bool) -> Vec<String> {
        self.restore_unless(pinned, &|_| false)
    }

    fn restore_unless(&self, pinned: bool, is_approved: &dyn Fn(&Path) -> bool) -> Vec<String> {
        let mut survey = || self.guard.again();
        self.guard
            .restore(pinned, &Texts::new(), is_approved, &mut survey)
    }

    fn write(&self, name: &str, text: &str) {
        write(self.folder.path(), name, text);
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(name)).ok()
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const GIT: [&str; 5] = [
    ".git/HEAD",
    ".git/config",
    ".git/objects/a",
    ".git/refs/a",
    ".git/hooks/pre-commit",
];

#[test]
fn protected_files_made_by_a_command_are_moved_aside() {
    let place = Place::new(&["src/main.rs"]);
    place.write("AGENTS.md", "follow");
    place.write("sub/.vscode/tasks.json", "{}");
    place.write("src/lib.rs", "fine");
    let notes = place.restore(false);
    assert_eq!(
        notes[0],
        "AGENTS.md is protected and was created by the command; the command's version is now AGENTS.md.held"
    );
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(place.read("AGENTS.md"), None);
    assert_eq!(place.read("AGENTS.md.held").as_deref(), Some("follow"));
    assert_eq!(
        place.read("sub/.vscode.held/tasks.json").as_deref(),
        Some("{}")
    );
    assert_eq!(place.read("src/lib.rs").as_deref(), Some("fine"));
    assert_eq!(place.restore(false), Vec::<String>::new());
}

#[test]
fn protected_files_are_restored_after_any_change() {
    let place = Place::new(&GIT);
    place.write(".git/config", "[core]\nfsmonitor = evil");
    fs::remove_file(place.folder.path().join(".git/hooks/pre-commit")).unwrap();
    fs::create_dir(place.folder.path().join(".git/hooks/pre-commit")).unwrap();
    place.write(".git/objects/b", "a commit");
    assert_eq!(place.restore(false).len(), 2);
    assert_eq!(place.read(".git/config").as_deref(), Some("before"));
    assert_eq!(
        place.read(".git/hooks/pre-commit").as_deref(),
        Some("before")
    );
    assert_eq!(place.read(".git/objects/b").as_deref(), Some("a commit"));
}

#[test]
fn a_repository_that_replaces_another_keeps_its_hooks_and_settings() {
    let place = Place::new(&GIT);
    let root = place.folder.path();
    fs::rename(root.join(".git"), root.join("x")).unwrap();
    for name in GIT {
        place.write(name, "evil");
    }
    place.write(".git/hooks/post-commit", "evil");
    place.restore(false).into_iter().for_each(drop);
    assert_eq!(place.read(".git/config").as_deref(), Some("before"));
    assert_eq!(
        place.read(".git/hooks/pre-commit").as_deref(),
        Some("before")
    );
    assert_eq!(place.read(".git/hooks/post-commit"), None);
}

#[test]
fn a_new_repository_stays_and_a_bare_one_that_runs_something_does_not() {
    let place = Place::new(&["a"]);
    for name in ["new/.git", "bare"] {
        for part in ["HEAD", "objects/a", "refs/a"] {
            place.write(&format!("{name}/{part}"), "x");
        }
    }
    place.write("new/.git/config", "[core]\n\tbare = false\n");
    place.write("new/.git/hooks/pre-commit.sample", "sample");
    place.write("bare/config", "[core]\n\tfsmonitor = touch pwn\n");
    let notes = place.restore(false);
    assert_eq!(
        notes,
        [
            "bare/config is protected and was created by the command; the command's version is now bare/config.held"
        ]
    );
    assert!(place.read("new/.git/config").is_some());
}

#[test]
fn changes_the_sandbox_prevents_are_attributed_to_the_user() {
    let place = Place::new(&["AGENTS.md", "sub/AGENTS.md", ".vscode/settings.json"]);
    place.write("AGENTS.md", "typed");
    place.write("sub/AGENTS.md", "typed");
    place.write(".vscode/tasks.json", "typed");
    assert_eq!(place.restore(true), Vec::<String>::new());
    for name in ["AGENTS.md", "sub/AGENTS.md", ".vscode/tasks.json"] {
        assert_eq!(place.read(name).as_deref(), Some("typed"), "{name}");
    }
}

#[test]
#[cfg_attr(windows, ignore = "no sandbox of Windows prevents the change")]
fn replaced_folders_are_restored() {
    let place = Place::new(&["sub/AGENTS.md", "sub/a"]);
    let root = place.folder.path();
    fs::rename(root.join("sub"), root.join("x")).unwrap();
    place.write("sub/AGENTS.md", "evil");
    assert_eq!(
        place.restore(true).len(),
        2,
        "the copy in x, and the one in sub"
    );
    assert_eq!(place.read("sub/AGENTS.md").as_deref(), Some("before"));
    assert_eq!(place.read("sub/AGENTS.md.held").as_deref(), Some("evil"));
}

#[test]
fn files_set_aside_are_never_overwritten() {
    let place = Place::new(&["AGENTS.md.held"]);
    for text in ["one", "two"] {
        place.write("AGENTS.md", text);
        assert_eq!(place.restore(false).len(), 1);
    }
    assert_eq!(place.read("AGENTS.md.held").as_deref(), Some("before"));
    assert_eq!(place.read("AGENTS.md.held-2").as_deref(), Some("one"));
    assert_eq!(place.read("AGENTS.md.held-3").as_deref(), Some("two"));
}

#[cfg(unix)]
#[test]
fn approved_changes_stay() {
    let place = Place::new(&["src/a"]);
    place.write("AGENTS.md", "mine");
    place.write("src/AGENTS.md", "evil");
    let mine = place
        .folder
        .path()
        .canonicalize()
        .unwrap()
        .join("AGENTS.md");
    assert_eq!(place.restore_unless(false, &|path| path == mine).len(), 1);
    assert_eq!(place.read("AGENTS.md").as_deref(), Some("mine"));
    assert_eq!(place.read("src/AGENTS.md"), None);
}

#[cfg(unix)]
#[test]
fn a_known_repository_is_guarded_in_a_workspace_too_large_to_search() {
    let many: Vec<String> = (0..1600).map(|number| format!("many/{number}/x")).collect();
    let files: Vec<&str> = GIT
        .into_iter()
        .chain(many.iter().map(String::as_str))
        .collect();
    let place = Place::new(&files);
    for part in ["commondir", "config.worktree"] {
        place.write(&format!(".git/{part}"), "x");
    }
    let notes = place.restore(false);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes.iter().all(|note| note.contains(".held")), "{notes:?}");
}

#[test]
fn only_executed_git_files_are_protected() {
    let place = Place::new(&[
        ".git/HEAD",
        ".git/config",
        ".git/objects/a",
        ".vscode/tasks.json",
        "src/AGENTS.md",
    ]);
    let real = place.folder.path().canonicalize().unwrap();
    let pins = place.guard.pins();
    assert_eq!(pins.fixed, [real.join(".git")]);
    assert_eq!(
        pins.read_only,
        [
            real.join(".git/config"),
            real.join(".vscode"),
            real.join("src/AGENTS.md")
        ]
    );
}

#[test]
#[cfg_attr(windows, ignore = "what lists a folder does not know its inode")]
fn a_moved_repository_is_moved_back_unless_its_folder_moved() {
    let inner = GIT.map(|name| format!("lib/{name}"));
    let place = Place::new(
        &GIT.into_iter()
            .chain(inner.iter().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    let root = place.folder.path();
    fs::rename(root.join(".git"), root.join("kept")).unwrap();
    fs::rename(root.join("lib"), root.join("vendor")).unwrap();
    place.write(".git/HEAD", "new");
    let notes = place.restore(false);
    assert_eq!(
        notes[0],
        ".git is protected and was moved by the command; the command's version is now .git.held"
    );
    assert_eq!(place.read(".git/objects/a").as_deref(), Some("before"));
    assert_eq!(place.read(".git.held/HEAD").as_deref(), Some("new"));
    assert_eq!(
        place.read("vendor/.git/objects/a").as_deref(),
        Some("before")
    );
}

/// The repository that a folder is a worktree of, as `setup` makes both in `main` and `tree`.
#[cfg(unix)]
fn linked(setup: &str) -> Option<PathBuf> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let made = std::process::Command::new("sh")
        .args(["-ec", setup])
        .current_dir(&place)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(made.unwrap().success(), "{setup}");
    let root = Root::open(&place.join("tree")).unwrap();
    let found = with_repositories(&[Arc::new(root)]);
    let other = found.get(1)?.real().strip_prefix(&place).unwrap();
    Some(other.to_owned())
}

#[cfg(unix)]
#[test]
fn a_worktree_opens_its_repository_and_no_folder_that_only_its_files_name() {
    let main = "git init -q main; cd main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
    let add = "worktree add -q ../tree";
    let relative = "cd ..; echo gitdir: ../main/.git/worktrees/tree > tree/.git; \
        echo ../../../../tree/.git > main/.git/worktrees/tree/gitdir";
    for setup in [
        format!("{main}; git {add}"),
        format!("{main}; git {add}; {relative}"),
    ] {
        let expected = Path::new("main/.git");
        assert_eq!(linked(&setup).as_deref(), Some(expected), "{setup}");
    }
    let names = "echo gitdir: x/wt > tree/.git; echo ../../.git > tree/x/wt/gitdir";
    for setup in [
        format!("mkdir -p secrets tree/x/wt; {names}; echo ../../../secrets > tree/x/wt/commondir"),
        // A folder above, which has the worktree where a repository would.
        "mkdir -p worktrees/tree; ln -s worktrees/tree tree; cd tree; echo gitdir: . > .git; echo .git > gitdir; \
         echo ../.. > commondir"
            .to_owned(),
        // A repository that does not have it.
        format!(
            "{main}; cd ..; mkdir -p tree/x/wt; {names}; echo ../../../main/.git > tree/x/wt/commondir"
        ),
    ] {
        assert_eq!(linked(&setup), None, "{setup}");
    }
}

#[cfg(unix)]
#[test]
fn what_replaces_a_file_of_git_is_not_waited_for_and_not_read_whole() {
    for setup in [
        "mkdir tree; mkfifo tree/.git",
        "mkdir tree; printf 'gitdir: ' > tree/.git; truncate -s 8G tree/.git",
        "mkdir -p tree/x; echo gitdir: x > tree/.git; mkfifo tree/x/gitdir",
        "mkdir -p tree/x; echo gitdir: x > tree/.git; echo ../.git > tree/x/gitdir; mkfifo tree/x/commondir",
    ] {
        assert_eq!(linked(setup), None, "{setup}");
    }
}

#[test]
fn hooks_are_protected_wherever_git_may_be_told_to_find_them() {
    let place = Place::new(&["scripts/hooks/pre-commit", "scripts/hooks/lint"]);
    for name in ["hooks/pre-commit", "hooks/post-merge", "hooks/lint"] {
        place.write(&format!("scripts/{name}"), "evil");
    }
    place.write(".githooks/lint", "evil");
    assert_eq!(place.restore(false).len(), 3);
    let is = |name: &str| place.read(name);
    assert_eq!(is("scripts/hooks/pre-commit").as_deref(), Some("before"));
    assert_eq!(is("scripts/hooks/lint").as_deref(), Some("evil"));
    assert_eq!(
        is("scripts/hooks/post-merge").or(is(".githooks/lint")),
        None
    );
}
