#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test plays the commands that change files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::LazyLock;

use super::*;
use crate::changes::revert::{Reason, Reverted, revert};
use crate::workspace::written::Texts;

/// A repository with most kinds of files in it, and snapshots of it.
struct Scene {
    folder: tempfile::TempDir,
    snapshots: Snapshots,
}

/// The repository, made once: every scene has a copy.
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

/// Runs a command line in the `work` of a folder.
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

/// A shell in the `work` of a folder, whose git has no configuration but the repository's.
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
            Some(folder.path().join("objects")),
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
            // As someone else than root, what may not be read is compared by its permissions alone.
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
        let repositories = repositories_in(&root, &["nested/.git".into()]);
        for path in git_state(root.dir(), &repositories) {
            if let Ok(bytes) = fs::read(self.root().join(&path)) {
                tree.insert(path, (0, bytes));
            }
        }
        tree
    }

    /// Looks until nothing is so new that it has to be read again: that is how most commands find a workspace.
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

    /// Restores what a command line changes of the protected files.
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

/// Commands that change a workspace, all of which undo must revert.
const COMMANDS: [&str; 204] = [
    "echo x > README.md",
    "echo x >> src/main.rs",
    "echo new > new.txt",
    "mkdir -p deep/er && echo new > deep/er/file",
    "mkdir hollow",
    "rm README.md",
    "rm -rf src",
    "rm -rf *",
    "rm -rf ./* .gitignore",
    "find . -name '*.md' -delete",
    "find . -path ./.git -prune -o -type f -print0 | xargs -0 rm",
    "mv README.md READ.md",
    "mv src lib",
    "mv src/main.rs src/a/",
    "mv src docs/",
    "cp -r src copy",
    "sed -i s/fn/pub\\ fn/ src/main.rs",
    "sed -i 's/a/b/g' $(git ls-files)",
    "for f in $(find src -type f); do echo '// header' | cat - $f > t && mv t $f; done",
    "perl -pi -e 's/\\r\\n/\\n/' src/lib.rs",
    "truncate -s 0 README.md src/main.rs",
    "dd if=/dev/zero of=data.bin bs=1k count=3",
    "chmod +x README.md",
    "chmod -R a-w docs",
    "chmod 644 bin/run",
    "chmod 700 src",
    "rm link",
    "ln -sf README.md link",
    "rm broken && echo file > broken",
    "rm README.md && ln -s docs README.md",
    "ln -s /etc/passwd outside",
    "ln README.md hard && echo both >> hard",
    "rm -rf docs && echo file > docs",
    "rm README.md && mkdir README.md && echo in > README.md/file",
    "rm -rf src && ln -s docs src",
    "git checkout -q -- .",
    "git checkout -qf other",
    "git checkout -q -b third",
    "git reset -q --hard",
    "git reset -q --hard other",
    "git reset -q --soft other",
    "git clean -fdq",
    "git clean -fdxq",
    "git stash -q",
    "git stash -qu",
    "git add -A",
    "git rm -qrf src",
    "git mv README.md READ.md",
    "git commit -qam three",
    "git commit -qam three && git tag v2",
    "git branch -D other",
    "git branch -m main trunk",
    "git merge -q other",
    "git rebase -q other",
    "git pack-refs --all",
    "git tag -d v1",
    "mkfifo pipe",
    "i=0; while [ $i -lt 500 ]; do echo $i > many$i; i=$((i+1)); done",
    "printf 'x' > \"$(printf 'name\\377')\"",
    "printf '\\377\\376x' > README.md",
    "echo x > empty; : > data.bin; echo log >> a.log; rm a.log",
    "echo half > README.md; kill -9 $$",
    "mkdir many && cd many && seq 10000 | split -l 1 -a 4 -",
    "find . -path ./.git -prune -o -type f -exec perl -pi -e 's/^/+/' {} +",
    "for f in $(git ls-files); do git mv $f $f.old; done",
    "mv README.md readme.md",
    "mv README.md ' a  name with\tspaces'",
    "rm README.md; mkfifo README.md",
    "rm -rf src && echo src > src && chmod 755 src",
    "truncate -s 10M sparse",
    "ln README.md hard && rm README.md",
    "ln -s . loop; ln -s /nowhere/at/all dangling",
    "rm link; mkdir link; cp -r src/. link",
    "chmod 500 README.md docs",
    "chmod 4755 bin/run; chmod 1777 docs",
    "umask 077; cp -r src private; echo x > README.md",
    "cp README.md t && mv t README.md && touch -d 2001-01-01 README.md",
    "tar cf src.tar src && rm -rf src && mkdir in && tar xf src.tar -C in",
    "sed -i 's/$/\r/' README.md src/main.rs; iconv -f utf-8 -t utf-16 docs/guide.md > t; mv t docs/guide.md",
    "git stash -q && git stash pop -q",
    "git cherry-pick other",
    "git commit -q --amend -m again",
    "git revert --no-edit HEAD",
    "git checkout -q --orphan lonely && git rm -rqf .",
    "git update-ref -d refs/heads/other",
    "git gc -q",
    "git worktree add -q ../tree other",
    "git stash -q; git bisect start -q; git bisect bad; git bisect good other; git commit -q --allow-empty -m x",
    "rm -rf .git/refs .git/HEAD .git/index",
    "rm -rf \"$PWD\"/*",
    "find . -mindepth 1 -not -path './.git*' -delete",
    "bash -c 'rm -rf ./*'",
    "mkdir ../away; mv * ../away",
    "ls | xargs rm -rf",
    "for f in *; do [ -f \"$f\" ] && : > \"$f\"; done",
    "for f in *.md docs/*; do shred -u $f; done",
    "for f in *.md; do dd if=/dev/zero of=$f count=1; done",
    "truncate -s 0 *.md src/*.rs",
    "python3 -c 'import shutil; [shutil.rmtree(d) for d in (\"src\", \"docs\")]'",
    "perl -e 'unlink glob \"* src/*\"'",
    "mkdir ../none; rsync -a --delete --exclude .git ../none/ .",
    "tar cf ../all.tar --remove-files src docs",
    "cp /dev/null README.md; tee docs/guide.md < /dev/null",
    "git switch -qf other",
    "git switch -q --discard-changes other",
    "git restore .",
    "git checkout -q other -- .",
    "git stash -qa",
    "git stash -q; git stash drop -q",
    "chmod 000 README.md",
    "echo new > docs/new; chmod 500 docs",
    "rm docs/guide.md; echo new > docs/new; chmod 500 docs",
    "chmod u-w src; chmod u+w src; rm src/lib.rs; chmod u-w src",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'",
    "mknod null c 1 3 || mkfifo null",
    "mv docs src/ && mv src docs",
    "mv src t && mv docs src && mv t docs",
    "mv README.md t && mv notes.txt README.md && mv t notes.txt",
    "mv src real && ln -s real src && echo via > src/new",
    "rm link && ln -s src link && echo via > link/new && rm link/lib.rs",
    "mv src src.old && mkdir -p src/main.rs && echo in > src/main.rs/x",
    "mkdir a b && mv a b && mv b src && mv src docs",
    "touch -r README.md t; printf '# Two\\n' > README.md; touch -r t README.md; rm t",
    "touch -r src/main.rs t; printf X | dd of=src/main.rs bs=1 seek=3 conv=notrunc; touch -r t src/main.rs; rm t",
    "python3 -c 'import mmap; f = open(\"README.md\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b\"%\"; m.flush()'",
    "cp -al src copy && echo changed > copy/main.rs",
    "ln src/main.rs docs/hard && rm src/main.rs && echo z >> docs/hard",
    "exec 3<>README.md; rm README.md; echo gone >&3; cat <&3 > README.md",
    "for d in src docs; do mv $d $d.bak && cp -r $d.bak $d && rm -rf $d.bak; done",
    "find . -path ./.git -prune -o -type d -exec chmod 700 {} +",
    "mv .gitignore x && mkdir .gitignore && mv x .gitignore/",
    "echo x > \"$(printf 'new\\nline')\"; echo y > ./-rf; echo z > '*'; rm README.md",
    "d=$(printf 'd/%.0s' $(seq 60)); mkdir -p $d && echo deep > $d/f && mv README.md $d",
    "n=$(printf 'n%.0s' $(seq 255)); mv README.md $n && mkdir README.md && cp $n README.md",
    "printf x > \"$(printf 'caf\\303\\251')\"; printf y > \"$(printf 'cafe\\314\\201')\"",
    "touch new && chmod 7777 new && chmod g+s docs && chmod 4711 bin/run",
    "echo docs/ >> .gitignore && echo changed > docs/guide.md && git add .gitignore",
    "echo '*' > .gitignore; rm -rf docs src/a untracked",
    "rm .gitignore && git clean -fdq",
    "git rm -q --cached notes.txt && echo notes.txt >> .gitignore && rm notes.txt",
    "git stash -q; git clean -fdxq; git stash pop -q; git reset -q --hard",
    "git mv src lib && git commit -qm m && git checkout -q other && git branch -D main",
    "git commit -qam a; git rebase -q other; git reset -q --hard HEAD~1",
    "git checkout -q --detach && git commit -q --allow-empty -m d && git branch -f main HEAD",
    "git update-index --assume-unchanged README.md && echo x > README.md",
    "git update-index --split-index && rm -rf src && git add -A",
    "git update-index --index-version 4 && git rm -rqf docs",
    "git read-tree --empty && rm -rf src && git clean -fdq",
    "git notes add -m note && git pack-refs --all && git branch -D other && git tag v3",
    "git symbolic-ref HEAD refs/heads/nowhere && git rm -rqf --cached .",
    "git -c core.autocrlf=true checkout -qf other && git -c core.eol=crlf checkout -- .",
    "git merge -q --no-commit --no-ff other; echo conflict > README.md; git add -A",
    "git rebase -q other --exec false",
    "mv .git ../away && git init -q && git add -A && rm -rf .git && mv ../away .git && rm -rf src",
    "sed -i '1i // header' $(find . -name '*.rs') && git commit -qam header && git reset -q --hard HEAD~1",
    "mv src gone; mkdir src; cp gone/main.rs src; kill -9 $$",
    "ls -A | grep -v '^.git$' | xargs -I{} mv {} ../home",
    "find . -path ./.git -prune -o -type f -print | while read f; do mv \"$f\" t && tac t > \"$f\" && rm t; done",
    "sed -i 's/main/start/; s/mod a/mod b/' src/*.rs && mv src/a src/b",
    "printf '1c\\n# Other\\n.\\nw\\n' | ed -s README.md",
    "ex -sc '%s/One/Two/|x' README.md",
    "awk '{ print NR \": \" $0 }' notes.txt > t && cat t > notes.txt && rm t",
    "printf '%s\\n' '--- a/README.md' '+++ b/README.md' '@@ -1 +1 @@' '-# One' '+# Two' | patch -p1 -b",
    "git diff > t.patch && git apply -R t.patch && git apply --index t.patch",
    "find src -name '*.rs' -exec sh -c 'mv \"$1\" \"${1%.rs}.txt\"' sh {} \\;",
    "mkdir moved && tar cf - src docs | tar xf - -C moved && rm -rf src docs",
    "mv src ./-src && mv ./-src 'src dir' && ln -s 'src dir' src",
    "chmod -R 000 src",
    "chmod 0 docs/guide.md && rm -f docs/guide.md && echo again > docs/guide.md",
    "find . -path ./.git -prune -o -type f -exec chmod a-w {} + && sed -i s/One/Two/ README.md",
    "mkdir locked && echo x > locked/f && chmod 000 locked",
    "install -m 755 README.md bin/tool && install -d -m 2775 shared",
    "ln -s README.md a; ln -s a b; ln -s b c; rm link; echo via >> c",
    "rm link && ln src/main.rs link && echo both >> link",
    "ln -s src/a via && mv via/mod.rs via/moved.rs && ln -sfn docs via",
    "truncate -s 3M s; printf end | dd of=s bs=1 seek=2000000 conv=notrunc; fallocate -p -o 4096 -l 65536 s",
    "python3 -c 'import sqlite3; c = sqlite3.connect(\"db\"); c.execute(\"create table t (a)\"); c.commit()'",
    "python3 -c 'import os; os.rename(\"src\", \"x\"); os.mkdir(\"src\"); os.rename(\"x\", \"src/src\")'",
    "python3 -c 'import os; f = os.open(\"README.md\", os.O_RDWR); os.pwrite(f, b\"zz\", 0); os.ftruncate(f, 3)'",
    "mv notes.txt \"$(printf 'n\\351')\"; mkdir \"$(printf 'd\\377')\"; mv docs/guide.md \"$(printf 'd\\377')/\"",
    "timeout -s KILL 0.2 sh -c 'i=0; while :; do i=$((i+1)); echo $i > loop$((i % 50)); rm -f docs/guide.md; done'",
    "(for f in $(git ls-files); do echo x >> $f; done; kill -9 $$); rm -rf docs",
    "git stash push -q -m one -- notes.txt && echo x > notes.txt && git stash -q && git stash apply -q stash@{1}",
    "git stash -q && git stash branch revived",
    "echo x > notes.txt; git stash -q; echo y > notes.txt; git commit -qam y; git stash pop",
    "git add -A && git commit -qm three && GIT_SEQUENCE_EDITOR='sed -i 1s/pick/drop/' git rebase -qi HEAD~1",
    "echo c > README.md; git commit -qam c; git rebase -q other",
    "echo c > README.md; git commit -qam c; git rebase -q other; git rebase --abort",
    "echo c > README.md; git commit -qam c; git merge -q other",
    "echo c > README.md; git commit -qam c; git cherry-pick other",
    "echo c > README.md; git commit -qam c; git revert --no-edit HEAD~1",
    "git stash -q; git format-patch -q -1 other && git am -q *.patch",
    "echo c > README.md; git commit -qam c; git format-patch -q -1 other && git am -q -3 *.patch",
    "git stash -q; git bisect start -q main other; git bisect run false",
    "git worktree add -q -b feature wt && echo x > wt/README.md && git -C wt commit -qam w",
    "git worktree add -q --detach wt && git worktree lock wt && git worktree move -f -f wt wt2",
    "git worktree add -q ../wt other && git worktree remove ../wt",
    "git init -q sub && echo x > sub/f && git -C sub add . && git -C sub commit -qm sub",
    "git clone -q . copy && git -C copy checkout -q -b x",
    "git rm -rq --cached . && git add -A && git commit -qm all && git reset -q HEAD~1",
    "git checkout -qb a && git commit -qam a && git checkout -q main && git merge -q --squash a && git branch -D a",
    "git replace HEAD other && git tag -a -m t v9 && git push -q . HEAD:refs/heads/pushed/deep",
    "git commit -qam x && git reflog expire --expire=now --all && git gc -q",
    "mkdir .git/reftable && echo 0x01-0x02.ref > .git/reftable/tables.list && echo x > .git/reftable/0x01-0x02.ref",
];

#[test]
fn every_command_is_undone_byte_for_byte() {
    let failed: Vec<String> = std::thread::scope(|scope| {
        let chunks = COMMANDS.chunks(COMMANDS.len().div_ceil(4));
        let threads: Vec<_> = chunks
            .map(|lines| {
                scope.spawn(|| {
                    lines
                        .iter()
                        .filter_map(|line| is_undone(line).err())
                        .collect()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| -> Vec<String> { thread.join().unwrap() })
            .collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What git says of a repository.
fn told_by_git(folder: &Path) -> String {
    let line = "git for-each-ref; git status --branch --porcelain -uall; git status | head -5; git stash list; \
        git worktree list; git rev-parse HEAD; git fsck --no-dangling";
    let output = shell(folder, line)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Why undo and redo of a command leave something else than there was, if so.
fn is_undone(line: &str) -> Result<(), String> {
    let mut scene = Scene::new();
    let (before, told) = (scene.tree(), told_by_git(scene.folder.path()));
    let changes = scene.changes(line);
    let after = scene.tree();
    if before != after && changes.is_empty() {
        return Err(format!("{line}: no changes found"));
    }
    let reverted = scene.revert(&changes);
    let then = scene.tree();
    if !reverted.left.is_empty() || then != before {
        return Err(format!(
            "{line}: {:?} {:?}",
            reverted.left,
            differences(&before, &then)
        ));
    }
    let now = told_by_git(scene.folder.path());
    if now != told {
        return Err(format!("{line}: git says:\n{now}\ninstead of:\n{told}"));
    }
    // A pipe is not made again.
    if changes
        .files
        .iter()
        .all(|change| change.after != Entry::Special)
    {
        let again = scene.revert(&reverted.done);
        let then = scene.tree();
        if !again.left.is_empty() || then != after {
            return Err(format!(
                "{line}: redo: {:?} {:?}",
                again.left,
                differences(&after, &then)
            ));
        }
    }
    Ok(())
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
    let mut later = Snapshots::new(
        vec![root],
        &scene.folder.path().join("images"),
        Some(scene.folder.path().join("objects")),
        &[],
    )
    .unwrap();
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
    // What was saved first is what the command went on from.
    fs::write(root.join("README.md"), "# Mine\nboth\n").unwrap();
    let changes = scene.snapshots.look();
    let (changes, notes) = scene.snapshots.attribute(changes, &written.into(), false);
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
        // A pipe is not made again.
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
fn ignored_folders_are_excluded_and_their_removal_is_reported() {
    let mut scene = Scene::new();
    scene.snapshots.look();
    let coverage = scene.snapshots.coverage().unwrap().clone();
    let target = scene.root().canonicalize().unwrap().join("target");
    assert_eq!(
        (coverage.problem.as_ref(), coverage.left_out.as_slice()),
        (None, [target.clone()].as_slice())
    );
    let changes = scene.changes("echo x > target/built");
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(scene.snapshots.lost(&coverage), Vec::<PathBuf>::new());
    scene.run("rm -rf target");
    assert_eq!(scene.snapshots.lost(&coverage), [target]);
}

#[test]
fn tracked_files_in_ignored_folders_are_undone() {
    let add = "git add -f target/kept target/sub/kept; git update-index --skip-worktree notes.txt; git commit -qm kept";
    for setup in [
        format!("git update-index --index-version 2; {add}"),
        format!("git update-index --index-version 3; {add}"),
        format!("git update-index --index-version 4; {add}"),
        format!("{add}; git update-index --split-index; git add README.md"),
        format!("rm -rf .git; git init -q --object-format=sha256; git add .; {add}"),
        format!(
            "mkdir ../main; mv .git ../main; git -C ../main worktree add -q --no-checkout ../tree other; \
             mv ../tree/.git .; git worktree repair; git reset -q; {add}"
        ),
    ] {
        for line in [
            "echo x > target/sub/kept; echo x > target/built",
            "rm -rf target",
            "git rm -rq target",
            "chmod 600 target/kept; git rm -q --cached target/kept; echo x >> target/kept",
            "git clean -fdxq; rm target/kept; git commit -qam gone",
            "mv target/sub target/other",
            "echo > .gitignore; echo x > target/kept",
        ] {
            let mut scene = Scene::new();
            fs::create_dir(scene.root().join("target/sub")).unwrap();
            for name in ["target/kept", "target/sub/kept", "target/sub/later"] {
                fs::write(scene.root().join(name), "kept\n").unwrap();
            }
            fs::set_permissions(
                scene.root().join("target/kept"),
                fs::Permissions::from_mode(0o750),
            )
            .unwrap();
            scene.run(&setup);
            let (kept, sub) = (
                scene.root().join("target/kept"),
                scene.root().join("target/sub/kept"),
            );
            let changes = scene.changes(line);
            assert!(!changes.is_empty(), "{setup}: {line}");
            let reverted = scene.revert(&changes);
            assert_eq!(reverted.left, Vec::new(), "{setup}: {line}");
            let texts = [&kept, &sub].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(texts, ["kept\n"; 2], "{setup}: {line}");
            assert_eq!(
                kept.metadata().unwrap().permissions().mode() & 0o777,
                0o750,
                "{setup}: {line}"
            );
        }
    }
}

#[test]
fn tracked_files_in_ignored_folders_of_nested_repositories_are_undone() {
    let nested = "git init -qb main lib && cd lib && mkdir -p out/sub && echo kept > out/kept && echo kept > out/sub/kept && \
        echo x > out/built && echo out/ > .gitignore && git add . && git add -f out/kept out/sub/kept && git commit -qm one";
    let submodule = "git clone -q lib ../away && rm -rf lib && \
        git -c protocol.file.allow=always submodule -q add ../away lib && git commit -qm sub && echo x > lib/out/built";
    let worktree = "(cd lib && git worktree add -q ../tree -b tree)";
    for (setup, folder) in [
        (nested.to_owned(), "lib"),
        (format!("({nested}) && {submodule}"), "lib"),
        (format!("({nested}) && {worktree}"), "tree"),
    ] {
        for line in [
            "echo two > out/sub/kept; echo two > out/built; rm out/kept",
            "rm -rf out",
            "mv out away",
        ] {
            let mut scene = Scene::new();
            scene.run(&setup);
            let kept =
                ["out/kept", "out/sub/kept"].map(|name| scene.root().join(folder).join(name));
            assert!(kept.iter().all(|path| path.exists()), "{setup}");
            let changes = scene.changes(&format!("cd {folder} && {line}"));
            assert_eq!(scene.revert(&changes).left, Vec::new(), "{setup}: {line}");
            assert!(
                kept.iter()
                    .all(|path| fs::read_to_string(path).is_ok_and(|text| text == "kept\n")),
                "{setup}: {line}"
            );
        }
        let mut scene = Scene::new();
        scene.run(&setup);
        let changes = scene.changes(&format!("rm -rf {folder}"));
        let kept = scene.root().join(folder).join("out/kept");
        assert!(!kept.exists());
        scene.revert(&changes);
        assert_eq!(fs::read_to_string(kept).unwrap(), "kept\n", "{setup}");
    }
}

#[test]
fn files_tracked_from_now_on_are_not_removed_by_undo() {
    let mut scene = Scene::new();
    let changes = scene.changes("git add -f target/built; echo x > README.md");
    assert_eq!(scene.revert(&changes).left, Vec::new());
    let changes = scene.changes("git add -f target/built; echo x > README.md");
    scene.run("git add -f target/built");
    let later = scene.changes("echo y > README.md");
    assert!(
        later
            .files
            .iter()
            .all(|change| change.path.ends_with("README.md")),
        "{changes:?} {later:?}"
    );
    assert_eq!(
        fs::read_to_string(scene.root().join("target/built")).unwrap(),
        "object"
    );
}

#[test]
fn names_in_settled_folders_are_found_when_they_matter() {
    let mut scene = Scene::new();
    scene.run("mkdir -p new/er target/deep && echo x > target/deep/x && echo y > src/y.log");
    let names = |changes: ChangeSet, scene: &Scene| {
        let name = |change: &EntryChange| {
            change
                .path
                .strip_prefix(scene.root())
                .unwrap()
                .display()
                .to_string()
        };
        changes.files.iter().map(name).collect::<Vec<_>>()
    };
    scene.settle();
    scene.run("echo one > new/er/file");
    let changes = scene.snapshots.look();
    assert_eq!(names(changes, &scene), ["new/er/file"]);
    // A command changes what another ignore file shows from now on: the names of those folders have not changed.
    let changes = scene.changes("printf '*.log\n' > .gitignore");
    assert_eq!(names(changes, &scene), [".gitignore"]);
    scene.settle();
    scene.run("echo two > target/deep/x");
    let changes = scene.snapshots.look();
    assert_eq!(names(changes, &scene), ["target/deep/x"]);
}

#[test]
fn files_that_are_ignored_and_then_removed_are_undone() {
    let mut scene = Scene::new();
    scene.run(
        "mkdir extra && echo 1 > extra/removed && echo 2 > extra/changed && echo 3 > extra/same && chmod 700 extra",
    );
    let before = scene.tree();
    let changes =
        scene.changes("echo extra/ >> .gitignore && rm extra/removed && echo two > extra/changed");
    let name = |change: &EntryChange| {
        change
            .path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    assert_eq!(
        changes.files.iter().map(name).collect::<Vec<_>>(),
        [".gitignore", "changed", "removed"]
    );
    let reverted = scene.revert(&changes);
    assert_eq!((reverted.left, scene.tree() == before), (Vec::new(), true));
}

#[test]
fn changing_gitignore_does_not_look_like_creating_or_deleting_files() {
    for line in [
        "rm .gitignore",
        "echo src > .gitignore",
        "git mv .gitignore ignored",
    ] {
        let mut scene = Scene::new();
        let changes = scene.changes(line);
        let before = scene.tree();
        let is_src = |change: &EntryChange| {
            change
                .path
                .components()
                .any(|part| part.as_os_str() == "src")
        };
        assert!(!changes.files.iter().any(is_src), "{line}: {changes:?}");
        scene.revert(&changes);
        assert_eq!(
            fs::read_to_string(scene.root().join("target/built")).unwrap(),
            "object",
            "{line}"
        );
        assert!(
            scene.root().join("src/a/mod.rs").exists() && before != scene.tree(),
            "{line}"
        );
    }
}

#[test]
fn too_large_files_are_a_problem_unless_ignored() {
    let mut scene = Scene::new();
    sparse(&scene, "big.log");
    scene.snapshots.look();
    assert_eq!(scene.snapshots.coverage().unwrap().problem, None);
    sparse(&scene, "big");
    scene.snapshots.look();
    let problem = scene.snapshots.coverage().unwrap().problem.clone().unwrap();
    assert!(problem.ends_with("big is larger than 64 MiB"), "{problem}");
}

#[test]
fn a_file_too_large_to_copy_stays_once_somebody_has_changed_it() {
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

/// What a guard finds of a command's changes is what its look finds, and in ignored folders too.
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
    // Nobody takes instructions from these.
    let line = "touch out/node_modules/x/AGENTS.md; mkdir -p node_modules/x; touch node_modules/x/AGENTS.md";
    assert_eq!(scene.restore(line), Vec::<String>::new());
}

/// A look that goes on from an earlier one again finds the same, and nothing twice.
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

/// The objects that a command removed or overwrote.
fn scene_objects(changes: &ChangeSet) -> impl Iterator<Item = &PathBuf> {
    let paths = changes.git.iter().map(|change| &change.path);
    paths.filter(|path| {
        path.iter().any(|part| part == "objects") && !path.iter().any(|part| part == "info")
    })
}
