use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::{Entry, Kind};
use crate::text::Encoding;
use crate::workspace::{Documents, NoEditor, Root, Workspace};

/// A folder with these files in it; a name that ends with `/` is a folder.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            cap_std::fs::Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority())
                .unwrap()
                .write(name, text)
                .unwrap();
        }
    }
    folder
}

fn workspace(root: &Path) -> Workspace {
    let root = Arc::new(Root::open(root).unwrap());
    Workspace::new(
        vec![root],
        Documents::new(Encoding::Utf8),
        Arc::new(NoEditor),
    )
}

fn walked(root: &Path, start: &str, depth: usize) -> Vec<String> {
    let workspace = workspace(root);
    let start = workspace.resolve(start).unwrap();
    let seen = Mutex::new(Vec::new());
    let visitor = || {
        |entry: &Entry<'_>| {
            let slash = if entry.kind == Kind::Folder { "/" } else { "" };
            seen.lock().unwrap().push(format!(
                "{}{slash}",
                crate::workspace::native::shown(entry.below)
            ));
        }
    };
    workspace
        .walk(&start, depth, &CancellationToken::new(), visitor)
        .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    seen
}

#[test]
fn ignores_what_git_ignores_in_and_outside_a_repository() {
    let files = [
        (".gitignore", "*.log\n/out\n!keep.log\n"),
        ("a.rs", ""),
        ("b.log", ""),
        ("keep.log", ""),
        ("out/x", ""),
        ("src/.gitignore", "gen/\n"),
        ("src/gen/x.rs", ""),
        ("src/out/y.rs", ""),
        ("src/.hidden", ""),
        ("src/.ignore", "*.tmp"),
        ("src/z.tmp", ""),
    ];
    let expected = [
        ".gitignore",
        "a.rs",
        "keep.log",
        "src/",
        "src/.gitignore",
        "src/.hidden",
        "src/.ignore",
        "src/out/",
        "src/out/y.rs",
    ];
    let outside = tree(&files);
    assert_eq!(walked(outside.path(), ".", usize::MAX), expected);
    let repository = tree(&files);
    fs::create_dir(repository.path().join(".git")).unwrap();
    assert_eq!(walked(repository.path(), ".", usize::MAX), expected);
}

#[test]
fn the_exclude_file_applies_and_version_control_folders_are_skipped() {
    let folder = tree(&[
        (".git/info/exclude", "secret*\n"),
        ("secret.txt", ""),
        ("a", ""),
        (".svn/x", ""),
    ]);
    assert_eq!(walked(folder.path(), ".", usize::MAX), ["a"]);
}

#[test]
fn only_ignore_rules_of_the_enclosing_repository_apply() {
    let folder = tree(&[
        (".gitignore", "*\n"),
        ("repository/.gitignore", "*.o\n"),
        ("repository/.git/", ""),
        ("repository/part/a.o", ""),
        ("repository/part/a.c", ""),
    ]);
    assert_eq!(
        walked(&folder.path().join("repository/part"), ".", usize::MAX),
        ["a.c"]
    );
    assert_eq!(
        walked(&folder.path().join("repository"), "part", usize::MAX),
        ["a.c"]
    );
}

#[test]
fn explicitly_named_ignored_folders_are_walked() {
    let folder = tree(&[
        (".gitignore", "/target\n*.o\n"),
        ("target/a.rs", ""),
        ("target/b.o", ""),
    ]);
    assert_eq!(walked(folder.path(), "target", usize::MAX), ["a.rs"]);
}

#[test]
fn depth_counts_folders() {
    let folder = tree(&[("a/b/c", ""), ("d", "")]);
    assert_eq!(walked(folder.path(), ".", 1), ["a/", "d"]);
    assert_eq!(walked(folder.path(), ".", 2), ["a/", "a/b/", "d"]);
}

#[test]
fn a_file_is_walked_as_itself() {
    let folder = tree(&[("a/b", "")]);
    assert_eq!(walked(folder.path(), "a/b", usize::MAX), [""]);
}

#[cfg(unix)]
#[test]
fn symlinks_are_shown_and_not_followed() {
    let outside = tree(&[("secret", "")]);
    let folder = tree(&[("a", "")]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    assert_eq!(
        walked(folder.path(), ".", usize::MAX),
        ["a", "link", "loop"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_gitignore_that_is_a_pipe_does_not_block() {
    let folder = tree(&[("a", "")]);
    let pipe = folder.path().join(".gitignore");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(walked(folder.path(), ".", usize::MAX), [".gitignore", "a"]);
}

#[test]
fn cancelled_walks_end_soon_without_results() {
    let names: Vec<_> = (0..1000)
        .map(|index| format!("{}/{index}", index % 3))
        .collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    let folder = tree(&files);
    let workspace = workspace(folder.path());
    let start = workspace.resolve(".").unwrap();
    let cancel = CancellationToken::new();
    let seen = AtomicUsize::new(0);
    let visitor = || {
        |_: &Entry<'_>| {
            seen.fetch_add(1, Ordering::Relaxed);
            cancel.cancel();
        }
    };
    workspace
        .walk(&start, usize::MAX, &cancel, visitor)
        .unwrap();
    let after_cancel = seen.swap(0, Ordering::Relaxed);
    assert!((1..=64).contains(&after_cancel), "{after_cancel}");
    workspace
        .walk(&start, usize::MAX, &cancel, visitor)
        .unwrap();
    assert_eq!(seen.into_inner(), 0);
}

#[test]
fn a_visitor_that_panics_ends_the_walk() {
    let folder = tree(&[("a/b/c", ""), ("d/e", "")]);
    let workspace = workspace(folder.path());
    let start = workspace.resolve(".").unwrap();
    let visitor = || |entry: &Entry<'_>| assert!(entry.kind == Kind::Folder, "a file");
    let walk = || workspace.walk(&start, usize::MAX, &CancellationToken::new(), visitor);
    assert!(std::panic::catch_unwind(AssertUnwindSafe(walk)).is_err());
}
