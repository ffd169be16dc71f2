#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test plays the commands that change files"
)]

mod commands;
mod ignored;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::LazyLock;

use super::*;
use crate::changes::backup::Backups;
use crate::changes::guard::git_state;
use crate::changes::revert::{Reason, Reverted, revert};
use crate::workspace::written::Texts;

/// A repository with most kinds of files in it, and snapshots of it.
struct Scene {
    folder: tempfile::TempDir,
    snapshots: Snapshots,
}

/// The repository, created once and copied for each scene.
static TEMPLATE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    for (name, text) in [
        ("README.md", "# One\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/lib.rs", "pub mod a;\r\n"),
        ("src/a/mod.rs", "// a\n"),
        ("docs/guide.md", "guide\n"),
        ("bin/run", "#!/bin/sh\necho run\n"),
        ("data.bin", "\0\u{1}\u{2}"),
        ("empty", ""),
        ("notes.txt", "tracked and then changed\n"),
        (".gitignore", "target/\n*.log\n"),
        ("target/built", "object"),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::set_permissions(root.join("bin/run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("notes.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("src/main.rs", root.join("link")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    run_in(
        folder.path(),
        "git init -qb main && git add . && git commit -qm one && git checkout -qb other && echo other >> README.md && \
         git commit -qam two && git tag v1 && git checkout -q main && echo more >> notes.txt && echo new > untracked \
         && git add untracked && echo ignored > a.log",
    );
    folder
});

/// Runs a command line in the folder's `work` directory.
fn run_in(folder: &Path, line: &str) {
    let mut command = shell(folder, line);
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b"),
        ("GIT_COMMITTER_NAME", "a"),
    ] {
        command.env(name, value);
    }
    let _any_exit = command.env("GIT_COMMITTER_EMAIL", "a@b").output().unwrap();
}

/// A shell in the folder's `work` directory, with git reading only the repository's configuration.
fn shell(folder: &Path, line: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(folder.join("work"))
        .env("HOME", folder.join("home"));
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn backups(folder: &tempfile::TempDir) -> Backups {
    Backups {
        folder: folder.path().join("objects"),
        links: false,
    }
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["store", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let copied = Command::new("cp")
            .arg("-a")
            .arg(TEMPLATE.path().join("work"))
            .arg(folder.path())
            .status();
        assert!(copied.unwrap().success());
        let opened = Arc::new(Root::open(&folder.path().join("work")).unwrap());
        let snapshots = Snapshots::new(
            vec![opened],
            &folder.path().join("images"),
            Some(backups(&folder)),
            &[],
        )
        .unwrap();
        Self { folder, snapshots }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn run(&self, line: &str) {
        run_in(self.folder.path(), line);
    }

    /// Everything an undo has to restore: kind, mode and bytes by path.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        let mut ahead = vec![self.root()];
        while let Some(folder) = ahead.pop() {
            // Only root can read some of these files, so other users compare their permissions alone.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, found) = (entry.path(), entry.metadata().unwrap());
                let bytes = if found.is_symlink() {
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else if found.is_file() {
                    fs::read(&path).unwrap_or_default()
                } else {
                    Vec::new()
                };
                if path.ends_with("target") {
                    continue;
                }
                if found.is_dir() && !path.ends_with(".git") {
                    ahead.push(path.clone());
                }
                tree.insert(path, (found.permissions().mode(), bytes));
            }
        }
        let root = Root::open(&self.root()).unwrap();
        let repositories = repositories_in(root.dir(), vec![".git".into(), "nested/.git".into()]);
        for path in git_state(root.dir(), &repositories) {
            if let Ok(bytes) = fs::read(self.root().join(&path)) {
                tree.insert(path, (0, bytes));
            }
        }
        tree
    }

    /// Takes snapshots until no file is recent enough to be read again, the usual state when a command starts.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.snapshots.look();
            let seen = self.snapshots.seen.as_ref().unwrap();
            let mut listings = seen.folders.values().chain(seen.beside.values());
            if listings.all(Listing::is_settled) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Restores the protected files that a command line changed.
    fn restore(&mut self, line: &str) -> Vec<String> {
        self.settle();
        let guard = self.snapshots.guard();
        self.run(line);
        let mut survey = || {
            self.snapshots.look();
            self.snapshots.guard()
        };
        guard.restore(false, &Texts::new(), &|_| false, &mut survey)
    }

    fn changes(&mut self, line: &str) -> ChangeSet {
        self.settle();
        self.run(line);
        let changes = self.snapshots.look();
        self.snapshots
            .images()
            .publish(&changes, &self.folder.path().join("store"))
            .unwrap();
        changes
    }

    fn revert(&self, changes: &ChangeSet) -> Reverted {
        let roots = [Arc::new(Root::open(&self.root()).unwrap())];
        let images = Images::open(&self.folder.path().join("store")).unwrap();
        revert(&roots, changes, &images, &|_| false)
    }
}

fn differences<T: PartialEq>(
    one: &BTreeMap<PathBuf, T>,
    other: &BTreeMap<PathBuf, T>,
) -> Vec<PathBuf> {
    let all = one.keys().chain(other.keys());
    all.filter(|path| one.get(*path) != other.get(*path))
        .cloned()
        .collect()
}

#[test]
fn changes_of_an_interrupted_command_are_found_by_the_manifest() {
    let mut scene = Scene::new();
    let manifest = scene.folder.path().join("manifest");
    scene.snapshots.look();
    scene.snapshots.save(&manifest).unwrap();
    let began = SystemTime::now();
    let before = scene.tree();
    scene.run(
        "rm -rf src; mkdir hollow; echo x > new; git add -A; printf x > \"$(printf 'name\\377')\"; chmod +x README.md",
    );
    let root = Arc::new(Root::open(&scene.root()).unwrap());
    // After a kill, no other process has them open.
    let left = scene.folder.path().join("left");
    fs::copy(scene.folder.path().join("images"), &left).unwrap();
    let mut later = Snapshots::new(vec![root], &left, Some(backups(&scene.folder)), &[]).unwrap();
    later.load(&manifest, began).unwrap();
    let changes = later.look();
    later
        .images()
        .publish(&changes, &scene.folder.path().join("store"))
        .unwrap();
    assert_eq!(scene.revert(&changes).left, Vec::new());
    assert!(
        scene.tree() == before,
        "{:?}",
        differences(&before, &scene.tree())
    );
}

#[test]
fn the_state_of_nested_repositories_and_submodules_is_undone() {
    for line in [
        "cd nested && echo x > file && git commit -qam two",
        "cd nested && git reset -q --hard HEAD~1",
        "cd nested && git checkout -q -b other && git branch -D main",
        "cd libs/sub && echo x > file && git commit -qam two",
        "cd libs/sub && git checkout -q -b other && git rm -q file",
        "git submodule -q deinit -f libs/sub",
        "git -c protocol.file.allow=always submodule -q add ./nested other/sub && git commit -qm other",
        "echo x > nested/file; git -C nested add -A; git add -A; git commit -qm all",
    ] {
        let mut scene = Scene::new();
        scene.run(
            "git init -qb main nested && cd nested && echo 0 > file && git add . && git commit -qm zero && \
             echo 1 > file && git commit -qam one && cd .. && \
             git -c protocol.file.allow=always submodule -q add ./nested libs/sub && git commit -qm sub",
        );
        assert!(
            scene.root().join(".git/modules/libs/sub/HEAD").exists(),
            "git makes submodules"
        );
        let before = scene.tree();
        let changes = scene.changes(line);
        assert!(!changes.is_empty(), "{line}");
        assert_eq!(scene.revert(&changes).left, Vec::new(), "{line}");
        assert!(
            scene.tree() == before,
            "{line}: {:?}",
            differences(&before, &scene.tree())
        );
    }
}

#[test]
fn concurrent_writes_are_not_attributed_to_the_command() {
    let mut scene = Scene::new();
    scene.snapshots.look();
    scene.run(
        "echo both >> README.md; echo over > docs/guide.md; echo cmd > new.txt; rm src/lib.rs",
    );
    let root = scene.root().canonicalize().unwrap();
    let written = [
        ("README.md", Some("# Mine\n")),
        ("docs/guide.md", Some("my guide\n")),
        ("src/main.rs", Some("fn main() {}\n")),
        ("src/lib.rs", None),
    ];
    let written = written.map(|(name, text)| (root.join(name), text.map(Arc::from)));
    // The command continued from the text saved first.
    fs::write(root.join("README.md"), "# Mine\nboth\n").unwrap();
    let changes = scene.snapshots.look();
    let (mut changes, notes) = scene.snapshots.attribute(changes, &written.into(), false);
    changes.files.sort();
    scene
        .snapshots
        .images()
        .publish(&changes, &scene.folder.path().join("store"))
        .unwrap();
    let paths: Vec<_> = changes
        .files
        .iter()
        .map(|change| change.path.strip_prefix(&root).unwrap())
        .collect();
    assert_eq!(
        paths,
        ["README.md", "docs/guide.md.held", "new.txt"].map(Path::new),
        "{changes:?}"
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(
        fs::read_to_string(root.join("docs/guide.md")).unwrap(),
        "my guide\n"
    );
    assert_eq!(
        fs::read_to_string(root.join("docs/guide.md.held")).unwrap(),
        "over\n"
    );
    scene.revert(&changes);
    assert_eq!(
        fs::read_to_string(root.join("README.md")).unwrap(),
        "# Mine\n"
    );
}

#[test]
fn what_cannot_be_written_leaves_everything_as_it_is_and_can_be_tried_again() {
    for line in [
        "echo x > README.md",
        "rm README.md",
        "rm README.md && mkdir README.md",
        "rm README.md && ln -s docs README.md",
        "rm README.md && mkfifo README.md",
    ] {
        let mut scene = Scene::new();
        let (before, changes) = (scene.tree(), scene.changes(line));
        let after = scene.tree();
        let Entry::File { image, .. } = &changes.files[0].before else {
            panic!("{changes:?}")
        };
        let (stored, gone) = (
            scene.folder.path().join("store").join(image),
            scene.folder.path().join("gone"),
        );
        fs::rename(&stored, &gone).unwrap();
        let reverted = scene.revert(&changes);
        assert!(
            matches!(reverted.left.as_slice(), [left] if matches!(left.reason, Reason::Io(_))),
            "{line}"
        );
        // A pipe is not recreated.
        if !line.contains("mkfifo") {
            assert!(
                scene.tree() == after,
                "{line}: {:?}",
                differences(&after, &scene.tree())
            );
            fs::rename(&gone, &stored).unwrap();
            assert_eq!(scene.revert(&changes).left, Vec::new(), "{line}");
            assert!(
                scene.tree() == before,
                "{line}: {:?}",
                differences(&before, &scene.tree())
            );
        }
    }
}

#[test]
fn later_changes_stay_and_are_named() {
    let mut scene = Scene::new();
    let changes = scene.changes(
        "echo x > README.md; echo x > src/main.rs; mkdir new; echo x > new/made; git add -A",
    );
    fs::write(scene.root().join("README.md"), "mine\n").unwrap();
    fs::write(scene.root().join("new/mine"), "mine\n").unwrap();
    scene.run("git commit -qm mine");
    let reverted = scene.revert(&changes);
    let left: Vec<_> = reverted
        .left
        .iter()
        .map(|left| (left.path.clone(), left.reason.clone()))
        .collect();
    let root = scene.root().canonicalize().unwrap();
    assert!(
        left.contains(&(root.join("README.md"), Reason::Changed)),
        "{left:?}"
    );
    assert!(
        left.contains(&(root.join("new"), Reason::NotEmpty)),
        "{left:?}"
    );
    assert!(
        left.contains(&(root.join(".git/index"), Reason::GitMoved)),
        "{left:?}"
    );
    assert_eq!(
        fs::read_to_string(root.join("README.md")).unwrap(),
        "mine\n"
    );
    assert_eq!(
        fs::read_to_string(root.join("src/main.rs")).unwrap(),
        "fn main() {}\n"
    );
    assert!(!root.join("new/made").exists());
}

#[test]
fn a_file_too_large_to_copy_stays_after_someone_changed_it() {
    for is_changed in [false, true] {
        let mut scene = Scene::new();
        let changes = scene.changes(&format!("truncate -s {} big", FILE + 1));
        if is_changed {
            scene.run("echo mine >> big");
        }
        let reverted = scene.revert(&changes);
        assert_eq!(reverted.left.len(), usize::from(is_changed), "{reverted:?}");
        assert_eq!(scene.root().join("big").exists(), is_changed);
    }
}

fn sparse(scene: &Scene, name: &str) {
    fs::File::create(scene.root().join(name))
        .unwrap()
        .set_len(FILE + 1)
        .unwrap();
}

/// A guard finds the same changes as a snapshot does, and those in ignored folders, too.
#[test]
fn protected_files_are_found_by_looks() {
    let mut scene = Scene::new();
    scene.run(
        "printf 'out/\nstate/\n' >> .gitignore; mkdir -p out/deep out/node_modules/x docs/.vscode old state/.claude \
         && echo one | tee out/deep/.envrc docs/.vscode/settings.json old/.mcp.json state/.claude/settings.json AGENTS.md",
    );
    let kept = |scene: &Scene, name: &str| fs::read_to_string(scene.root().join(name)).ok();
    let lines = [
        ("echo evil > src/a/CLAUDE.md", "src/a/CLAUDE.md"),
        ("echo evil > out/deep/AGENTS.md", "out/deep/AGENTS.md"),
        (
            "mkdir -p out/new/er && echo evil > out/new/er/.envrc",
            "out/new/er/.envrc",
        ),
        (
            "mkdir -p new/er && echo evil > new/er/.envrc",
            "new/er/.envrc",
        ),
        (
            "echo evil > docs/.vscode/tasks.json",
            "docs/.vscode/tasks.json",
        ),
        ("echo evil > state/.claude/hooks", "state/.claude/hooks"),
        ("echo evil > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    ];
    for (line, made) in lines {
        let notes = scene.restore(line);
        assert_eq!(
            (notes.len(), kept(&scene, made)),
            (1, None),
            "{line}: {notes:?}"
        );
        assert_eq!(scene.restore("true"), Vec::<String>::new(), "{line}");
    }
    let lines = [
        ("echo evil > AGENTS.md", "AGENTS.md"),
        ("rm -r old", "old/.mcp.json"),
        ("rm -r out", "out/deep/.envrc"),
        ("echo evil > out/deep/.envrc", "out/deep/.envrc"),
        ("rm -r state/.claude", "state/.claude/settings.json"),
    ];
    for (line, name) in lines {
        let notes = scene.restore(line);
        assert_eq!(
            kept(&scene, name).as_deref(),
            Some("one\n"),
            "{line}: {notes:?}"
        );
        assert!(!notes.is_empty(), "{line}");
    }
    // Agents don't read these.
    let line = "touch out/node_modules/x/AGENTS.md; mkdir -p node_modules/x; touch node_modules/x/AGENTS.md";
    assert_eq!(scene.restore(line), Vec::<String>::new());
}

/// A snapshot based on an earlier one finds the same files, each once.
#[test]
fn a_look_can_go_back() {
    let mut scene = Scene::new();
    scene.settle();
    scene.run("echo x > README.md; echo y > new.txt; rm src/main.rs");
    let (first, earlier) = scene.snapshots.look_from();
    scene.run("git checkout README.md; rm new.txt");
    scene.snapshots.go_back(earlier);
    let second = scene.snapshots.look();
    let names = |changes: &ChangeSet| {
        changes
            .files
            .iter()
            .map(|change| change.path.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&first).len(), 3);
    assert_eq!(names(&second), [scene.root().join("src/main.rs")]);
    assert!(scene.snapshots.look().is_empty());
}

#[test]
fn what_git_packs_is_not_lost_and_what_it_prunes_is_restored() {
    let mut scene = Scene::new();
    scene.run("git gc -q && git commit -qm loose --allow-empty && git tag -f kept && git reset -q --soft HEAD~");
    let lost = |changes: &ChangeSet| {
        let objects = scene_objects(changes);
        objects
            .filter(|path| !path.to_string_lossy().contains("/pack/"))
            .count()
    };
    assert_eq!(lost(&scene.changes("git gc -q")), 0);
    scene.run("git commit -qm again --allow-empty && git tag lonely && git reset -q --soft HEAD~");
    let pruned = scene
        .changes("git tag -d lonely; git reflog expire --expire=now --all; git gc -q --prune=now");
    assert_eq!(lost(&pruned), 1, "{pruned:?}");
    scene.revert(&pruned);
    let fsck = shell(
        scene.folder.path(),
        "git fsck --full --strict; git log --oneline lonely",
    )
    .output()
    .unwrap();
    let said = String::from_utf8_lossy(&[fsck.stdout, fsck.stderr].concat()).into_owned();
    assert!(
        said.contains("again") && !said.contains("missing"),
        "{said}"
    );
}

#[test]
fn packs_that_left_a_repository_take_no_room_of_its_backup() {
    for is_later in [false, true] {
        let mut scene = Scene::new();
        let packs = scene.root().join(".git/objects/pack");
        let pack = |name: &str, size: u64| {
            let path = packs.join(name);
            fs::File::create(&path).unwrap().set_len(size).unwrap();
            path
        };
        let first = pack("pack-1.pack", 1);
        scene.snapshots.look();
        let backup = fs::read_dir(backups(&scene.folder).folder).unwrap().next();
        let stored = backup.unwrap().unwrap().path().join("pack-1.pack");
        fs::set_permissions(&stored, fs::Permissions::from_mode(0o600)).unwrap();
        let stored = fs::File::options().write(true).open(stored).unwrap();
        stored.set_len(4 << 30).unwrap();
        fs::remove_file(first).unwrap();
        pack("pack-2.pack", (64 << 20) + 1);
        if is_later {
            let root = Arc::new(Root::open(&scene.root()).unwrap());
            let images = scene.folder.path().join("later");
            let again = Snapshots::new(vec![root], &images, Some(backups(&scene.folder)), &[]);
            scene.snapshots = again.unwrap();
        }
        scene.snapshots.look();
        let coverage = scene.snapshots.coverage().unwrap();
        assert_eq!(coverage.problem, None, "{is_later}");
    }
}

#[test]
fn only_the_last_version_of_a_file_of_git_stays_in_the_backup_for_good() {
    let mut scene = Scene::new();
    let backups = scene.folder.path().join("objects");
    let stored = |folder: &str| {
        let backup = fs::read_dir(&backups).unwrap().next().unwrap().unwrap();
        let names = fs::read_dir(backup.path().join(folder)).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let is_file = |name: &OsString| name.to_string_lossy().starts_with("file-");
        names.map(name).filter(is_file).count()
    };
    scene.snapshots.look();
    let first = stored("");
    for number in 0..5 {
        scene.changes(&format!("git config user.name {number}"));
    }
    assert_eq!((stored(""), stored("lost")), (first, 5));
    let config = scene.root().join(".git/config");
    let before = fs::read(&config).unwrap();
    let changes = scene.changes("git config user.name last");
    assert_eq!(scene.revert(&changes).left, Vec::new());
    assert_eq!(fs::read(&config).unwrap(), before);
    scene.snapshots.look();
    assert_eq!((stored(""), stored("lost")), (first, 6));
}

/// The objects that a command removed or overwrote.
fn scene_objects(changes: &ChangeSet) -> impl Iterator<Item = &PathBuf> {
    let paths = changes.git.iter().map(|change| &change.path);
    paths.filter(|path| {
        path.iter().any(|part| part == "objects") && !path.iter().any(|part| part == "info")
    })
}
