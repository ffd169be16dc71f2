#[cfg(unix)]
use std::os::unix::fs::symlink;

use super::*;

#[track_caller]
fn resolves(workspace: &Workspace, name: &str, display: &str, target: &str) {
    let path = workspace.resolve(name).unwrap();
    assert_eq!(
        (path.display().as_str(), path.target()),
        (display, Path::new(target)),
        "{name}"
    );
}

#[track_caller]
fn refused(workspace: &Workspace, name: &str) {
    let error = workspace.resolve(name).unwrap_err();
    assert!(
        matches!(error, PathError::Outside { .. }),
        "{name}: {error}"
    );
    assert!(
        error.to_string().contains("outside the workspace"),
        "{error}"
    );
}

#[test]
fn names_inside_are_found() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("src")).unwrap();
    let workspace = fixture.workspace();
    resolves(&workspace, "a.txt", "a.txt", "a.txt");
    resolves(&workspace, "./src//../src/b.txt", "src/b.txt", "src/b.txt");
    resolves(&workspace, ".", ".", "");
    resolves(
        &workspace,
        "not/yet/there.txt",
        "not/yet/there.txt",
        "not/yet/there.txt",
    );
    resolves(
        &workspace,
        &fixture.path("src/ü x.txt").display().to_string(),
        "src/ü x.txt",
        "src/ü x.txt",
    );
    resolves(
        &workspace,
        &fixture.uri("src/ü x.txt"),
        "src/ü x.txt",
        "src/ü x.txt",
    );
    assert_eq!(
        workspace.resolve("src").unwrap().absolute(),
        fixture.path("src")
    );
}

#[test]
fn names_are_spelled_as_in_their_folder_where_case_does_not_matter() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("src")).unwrap();
    std::fs::write(fixture.path("src/main.rs"), "").unwrap();
    let workspace = fixture.workspace();
    let is_one_name = fixture.path("SRC").exists();
    let check = |name: &str, where_it_does_not: &str| {
        let expected = if is_one_name { where_it_does_not } else { name };
        assert_eq!(
            workspace.resolve(name).unwrap().target(),
            Path::new(expected),
            "{name}"
        );
    };
    check("src/main.rs", "src/main.rs");
    check("SRC/Main.rs", "src/main.rs");
    check("Src/New.rs", "src/New.rs");
    let root = workspace.roots().first().unwrap();
    assert_eq!(
        crate::workspace::path::has_aliases(root.dir(), Path::new("src/main.rs")),
        is_one_name
    );
    if !is_one_name {
        std::fs::write(fixture.path("src/MAIN.RS"), "").unwrap();
        check("src/MAIN.RS", "src/main.rs");
        check("src/Main.rs", "src/main.rs");
    }
}

#[test]
fn names_outside_are_refused() {
    let fixture = Fixture::new();
    let workspace = fixture.workspace();
    for name in [
        "..",
        "../ws-evil/secret.txt",
        "a/../../x",
        "/etc/passwd",
        "/",
        "file:///etc/passwd",
        "file://host/share",
        "/proc/self/cwd/x",
    ] {
        refused(&workspace, name);
    }
    refused(
        &workspace,
        &fixture.evil().join("secret.txt").display().to_string(),
    );
    refused(
        &workspace,
        &format!("/proc/self/root{}", fixture.path("a").display()),
    );
    refused(
        &workspace,
        &format!("{}/../ws-evil/secret.txt", fixture.ws().display()),
    );
    assert_eq!(workspace.resolve("").unwrap_err(), PathError::Empty);
    assert_eq!(
        workspace.resolve("a\0b").unwrap_err(),
        PathError::Nul("a\0b".to_owned())
    );
    assert!(matches!(
        workspace.resolve("file:///a%00b"),
        Err(PathError::Nul(_) | PathError::Outside { .. })
    ));
}

/// A model that repeats itself writes such names.
#[test]
fn a_name_without_end_is_refused_at_once() {
    let fixture = Fixture::new();
    let workspace = fixture.workspace();
    for part in ["$pwd/", "../", "a/", "${workspaceFolder}/../"] {
        for length in [4000, 400_000] {
            let name = part.repeat(length / part.len());
            let error = workspace.resolve(&name).err().map(|it| it.to_string());
            let is_too_long = error.is_some_and(|error| error.contains("too long"));
            assert_eq!(is_too_long, length > 4096, "{part}");
            assert!(workspace.resolve_link(&name).is_none());
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_with_a_folder_above_is_known_by_where_it_leads() {
    let fixture = Fixture::new();
    fixture.write("x.txt", "other");
    std::fs::create_dir_all(fixture.path("sub/dir")).unwrap();
    fixture.write("sub/x.txt", "meant");
    symlink("sub/dir", fixture.path("link")).unwrap();
    let workspace = fixture.workspace();
    resolves(&workspace, "link/../x.txt", "sub/x.txt", "sub/x.txt");
    let path = workspace.resolve("link/../x.txt").unwrap();
    // An ACP client reads and writes this one.
    assert_eq!(path.absolute(), fixture.path("sub/x.txt"));
    assert_eq!(&*workspace.read(&path).await.unwrap().text, "meant");
}

#[cfg(unix)]
#[tokio::test]
async fn symlinks_inside_work_and_outside_are_refused() {
    let fixture = Fixture::new();
    fixture.write("real.txt", "real");
    std::fs::create_dir(fixture.path("dir")).unwrap();
    symlink("../real.txt", fixture.path("dir/relative")).unwrap();
    symlink(fixture.path("real.txt"), fixture.path("dir/absolute")).unwrap();
    symlink("dir", fixture.path("folder")).unwrap();
    symlink(fixture.evil().join("secret.txt"), fixture.path("notes.txt")).unwrap();
    symlink("../ws-evil", fixture.path("out")).unwrap();
    symlink("loop", fixture.path("loop")).unwrap();
    symlink(".git/config", fixture.path("innocent")).unwrap();
    let workspace = fixture.workspace();
    resolves(&workspace, "dir/relative", "dir/relative", "real.txt");
    resolves(&workspace, "folder/absolute", "folder/absolute", "real.txt");
    assert_eq!(
        &*read(&workspace, "folder/absolute").await.unwrap().text,
        "real"
    );
    refused(&workspace, "notes.txt");
    refused(&workspace, "out/secret.txt");
    refused(&workspace, "out/new.txt");
    assert!(matches!(
        workspace.resolve("loop"),
        Err(PathError::Unresolvable { .. })
    ));
    let innocent = workspace.resolve("innocent").unwrap();
    assert!(innocent.is_protected() && innocent.target() == Path::new(".git/config"));
    commit(&workspace, "folder/relative", &edit("real", "new"))
        .await
        .unwrap();
    assert_eq!(fixture.bytes("real.txt"), b"new");
    assert!(fixture.path("dir/relative").is_symlink());
}

#[cfg(unix)]
#[tokio::test]
async fn the_workspace_may_be_a_symlink_and_stays_what_it_was() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "mine");
    let link = fixture.folder.path().join("link");
    symlink(fixture.ws(), &link).unwrap();
    let root = Arc::new(Root::open(&link).unwrap());
    let workspace = Workspace::new(
        vec![root],
        Documents::new(Encoding::Utf16),
        Arc::new(NoEditor),
    );
    for name in ["a.txt".into(), link.join("a.txt"), fixture.path("a.txt")] {
        assert_eq!(
            workspace.resolve_path(&name).unwrap().absolute(),
            link.join("a.txt")
        );
    }
    std::fs::rename(fixture.ws(), fixture.folder.path().join("moved")).unwrap();
    symlink(fixture.evil(), fixture.ws()).unwrap();
    assert_eq!(&*read(&workspace, "a.txt").await.unwrap().text, "mine");
    assert!(read(&workspace, "secret.txt").await.is_err());
}

#[cfg(unix)]
#[test]
fn a_symlink_may_lead_to_another_root() {
    let fixture = Fixture::new();
    symlink(fixture.evil().join("secret.txt"), fixture.path("other")).unwrap();
    let roots = [fixture.ws(), fixture.evil()].map(|path| Arc::new(Root::open(&path).unwrap()));
    let workspace = Workspace::new(
        roots.into(),
        Documents::new(Encoding::Utf16),
        Arc::new(NoEditor),
    );
    assert_eq!(
        workspace.resolve("other").unwrap().real(),
        fixture.evil().canonicalize().unwrap().join("secret.txt")
    );
    assert_eq!(
        workspace
            .resolve_path(&fixture.evil().join("secret.txt"))
            .unwrap()
            .root()
            .path(),
        fixture.evil()
    );
}

#[cfg(unix)]
#[test]
fn names_need_not_be_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    let name = Path::new(std::ffi::OsStr::from_bytes(b"a\xff.txt"));
    std::fs::write(fixture.ws().join(name), "x").unwrap();
    assert_eq!(
        fixture.workspace().resolve_path(name).unwrap().target(),
        name
    );
}

#[cfg(unix)]
#[tokio::test]
async fn paths_swapped_after_resolving_are_not_followed() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.path(".git/hooks")).unwrap();
    std::fs::create_dir(fixture.path("race")).unwrap();
    let workspace = fixture.workspace();
    let path = workspace.resolve("race/pre-commit").unwrap();
    std::fs::remove_dir(fixture.path("race")).unwrap();
    symlink(".git/hooks", fixture.path("race")).unwrap();
    assert!(workspace.commit(&path, &write("#!/bin/sh")).await.is_err());
    assert!(!fixture.path(".git/hooks/pre-commit").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_protected_file_changes_only_as_shown() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path(".vscode")).unwrap();
    fixture.write("harmless", "");
    symlink("harmless", fixture.path("link")).unwrap();
    let workspace = fixture.workspace();
    workspace
        .propose(&workspace.resolve("link").unwrap(), &write("{}"))
        .await
        .unwrap();
    std::fs::remove_file(fixture.path("link")).unwrap();
    symlink(".vscode/tasks.json", fixture.path("link")).unwrap();
    let error = commit(&workspace, "link", &write("{}")).await.unwrap_err();
    assert!(
        error.to_string().contains("resolves to .vscode/tasks.json"),
        "{error}"
    );
    assert!(!fixture.path(".vscode/tasks.json").exists());
    workspace
        .propose(&workspace.resolve("link").unwrap(), &write("{}"))
        .await
        .unwrap();
    commit(&workspace, "link", &write("{}")).await.unwrap();
    assert_eq!(fixture.bytes(".vscode/tasks.json"), b"{}");
}

#[cfg(unix)]
#[test]
fn reads_never_escape_through_a_swapping_symlink() {
    // Raise this to a million by hand, in a release build.
    let attempts = std::env::var("TANDEM_TEST_READS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(50_000);
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("real")).unwrap();
    fixture.write("real/secret.txt", "mine");
    let root = Root::open(&fixture.ws()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (real, name, out) = (fixture.path("real"), fixture.path("name"), fixture.evil());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = std::fs::rename(&real, &name);
                let _ = std::fs::rename(&name, &real);
                let _ = symlink(&out, &name);
                let _ = std::fs::remove_file(&name);
            }
        });
        let roots = [Arc::new(root)];
        let mut read = 0;
        for _ in 0..attempts {
            let Ok(path) = path::resolve(&roots, "name/secret.txt") else {
                continue;
            };
            if let Ok(bytes) = disk::read_now(&path) {
                assert_eq!(bytes, b"mine");
                read += 1;
            }
        }
        assert!(read > 0, "the name never was a folder");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
