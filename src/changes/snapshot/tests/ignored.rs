//! Ignored files: which of them a look finds, and which undo restores.

use super::*;

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
fn folders_of_others_in_a_repository_are_undone_if_they_are_small() {
    let mut scene = Scene::new();
    scene.run(
        "mkdir -p .git/lfs/objects/4d .git/annex && echo unpushed > .git/lfs/objects/4d/4d7a && \
         truncate -s 70M .git/annex/large",
    );
    scene.snapshots.look();
    let coverage = scene.snapshots.coverage().unwrap().clone();
    let large = scene.root().canonicalize().unwrap().join(".git/annex");
    assert!(
        coverage.left_out.contains(&large) && coverage.left_out.len() == 2,
        "{coverage:?}"
    );
    let changes = scene.changes("rm -rf .git/lfs .git/annex");
    assert_eq!(scene.snapshots.lost(&coverage), [large]);
    let object = scene.root().join(".git/lfs/objects/4d/4d7a");
    assert!(!object.exists());
    let reverted = scene.revert(&changes);
    assert!(reverted.left.is_empty(), "{:?}", reverted.left);
    assert_eq!(fs::read_to_string(object).unwrap(), "unpushed\n");
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
    // The command changes which files another ignore file excludes; the folder names stay the same.
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
