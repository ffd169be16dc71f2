//! Commands that change a workspace, undone and redone byte for byte.

use super::*;

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

/// What git reports about a repository.
fn told_by_git(folder: &Path) -> String {
    let line = "git for-each-ref; git status --branch --porcelain -uall; git status | head -5; git stash list; \
        git worktree list; git rev-parse HEAD; git fsck --no-dangling";
    let output = shell(folder, line)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// How the state after undo or redo differs from the expected one, if it does.
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
    // A pipe is not recreated.
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
