#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

#[tokio::test]
async fn encodings_survive_an_edit() {
    let fixture = Fixture::new();
    let utf16 = |order: fn(u16) -> [u8; 2], text: &str| {
        text.encode_utf16().flat_map(order).collect::<Vec<u8>>()
    };
    for (before, after, said) in [
        (b"hi there\n".to_vec(), b"hi you\n".to_vec(), "UTF-8, LF"),
        (
            b"\xef\xbb\xbfhi there\r\n".to_vec(),
            b"\xef\xbb\xbfhi you\r\n".to_vec(),
            "UTF-8 with BOM, CRLF",
        ),
        (
            utf16(u16::to_le_bytes, "\u{feff}hi there\r\n"),
            utf16(u16::to_le_bytes, "\u{feff}hi you\r\n"),
            "UTF-16LE, CRLF",
        ),
        (
            utf16(u16::to_be_bytes, "\u{feff}hi there 😀"),
            utf16(u16::to_be_bytes, "\u{feff}hi you 😀"),
            "UTF-16BE, LF",
        ),
        (
            b"\xe4 hi there \x80\xff\x81\n".to_vec(),
            b"\xe4 hi you \x80\xff\x81\n".to_vec(),
            "Latin-1, LF",
        ),
        (
            b"a\r\nhi there\nc\r".to_vec(),
            b"a\r\nhi you\nc\r".to_vec(),
            "UTF-8, mixed line endings",
        ),
        (b"hi there".to_vec(), b"hi you".to_vec(), "UTF-8, LF"),
    ] {
        fixture.write("a.txt", &before);
        let workspace = fixture.workspace();
        let file = read(&workspace, "a.txt").await.unwrap();
        assert_eq!(file.stored.shown(&file.text), said);
        commit(&workspace, "a.txt", &edit("there", "you"))
            .await
            .unwrap();
        assert_eq!(fixture.bytes("a.txt"), after, "{said}");
    }
    fixture.write("a.txt", b"\xe4 hi");
    let error = commit(&fixture.workspace(), "a.txt", &edit("hi", "漢"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("Latin-1") && error.to_string().contains('漢'),
        "{error}"
    );
    assert_eq!(fixture.bytes("a.txt"), b"\xe4 hi");
}

#[cfg(unix)]
#[tokio::test]
async fn binary_files_are_refused() {
    let fixture = Fixture::new();
    fixture.write("binary", b"\x7fELF\0\0");
    fixture.write("odd", b"\xff\xfea");
    std::fs::create_dir(fixture.path("folder")).unwrap();
    std::fs::File::create(fixture.path("sparse"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.path("fifo"),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    let socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    let workspace = fixture.workspace();
    for (name, words) in [
        ("binary", "binary file of 6 bytes"),
        ("odd", "binary file of 3 bytes"),
        ("folder", "is a directory"),
        (".", "is a directory"),
        ("fifo", "is a named pipe"),
        ("socket", "is a socket"),
        ("sparse", "too large: 5368709120 bytes"),
        ("absent", "absent does not exist"),
        ("binary/x", "not a directory"),
    ] {
        let error = read(&workspace, name).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
        if name != "absent" {
            assert!(
                commit(&workspace, name, &write("x")).await.is_err(),
                "{name}"
            );
        }
    }
    drop(socket);
}

#[tokio::test]
async fn new_files_get_their_folders_and_bytes() {
    let fixture = Fixture::new();
    let content = "a\u{200b}\r\n\u{feff}b\0c \n";
    let done = commit(&fixture.workspace(), "not/yet/there.txt", &write(content))
        .await
        .unwrap();
    assert_eq!(done.old_text, None);
    assert_eq!(fixture.bytes("not/yet/there.txt"), content.as_bytes());
    let error = commit(&fixture.workspace(), "gone.txt", &edit("a", "b"))
        .await
        .unwrap_err();
    assert_eq!(error, FileError::NotFound("gone.txt".to_owned()));
}

#[cfg(unix)]
#[tokio::test]
async fn edits_keep_mode_and_attributes_and_break_hard_links() {
    let fixture = Fixture::new();
    fixture.write("run.sh", "old");
    std::fs::hard_link(fixture.path("run.sh"), fixture.evil().join("linked")).unwrap();
    std::fs::set_permissions(
        fixture.path("run.sh"),
        std::fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    let tagged = rustix::fs::setxattr(
        fixture.path("run.sh"),
        "user.tag",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok();
    commit(&fixture.workspace(), "run.sh", &write("new"))
        .await
        .unwrap();
    assert_eq!(
        std::fs::metadata(fixture.path("run.sh")).unwrap().mode() & 0o7777,
        0o750
    );
    assert_eq!(
        std::fs::read_to_string(fixture.evil().join("linked")).unwrap(),
        "old"
    );
    if tagged {
        let mut value = [0; 8];
        let len = rustix::fs::getxattr(fixture.path("run.sh"), "user.tag", &mut value).unwrap();
        assert_eq!(&value[..len], b"kept");
    }
    assert_eq!(
        std::fs::read_dir(fixture.ws()).unwrap().count(),
        1,
        "no temporary file is left"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn read_only_files_are_not_changed() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "old");
    std::fs::set_permissions(
        fixture.path("a.txt"),
        std::fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    let error = commit(&fixture.workspace(), "a.txt", &write("new"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(fixture.bytes("a.txt"), b"old");
}

#[tokio::test]
async fn edits_are_matched_again_if_the_text_changed() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\n");
    let workspace = fixture.workspace();
    read(&workspace, "a.txt").await.unwrap();
    fixture.write("a.txt", "zero\none\ntwo\n");
    let done = commit(&workspace, "a.txt", &edit("two", "2"))
        .await
        .unwrap();
    assert_eq!(fixture.bytes("a.txt"), b"zero\none\n2\n");
    assert!(
        done.notes[0].contains("changed since it was read"),
        "{:?}",
        done.notes
    );
    assert_eq!(done.lines, [3..=3]);
    let error = commit(&workspace, "a.txt", &edit("three", "3"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("changed since it was read"),
        "{error}"
    );
}

#[tokio::test]
async fn full_writes_never_discard_unseen_changes() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "original\n");
    let workspace = fixture.workspace();
    let path = workspace.resolve("a.txt").unwrap();
    assert!(!workspace.knows(&path).await, "nobody read it");
    commit(&workspace, "a.txt", &write("first\n"))
        .await
        .unwrap();
    assert!(workspace.knows(&path).await, "the session wrote it");
    fixture.write("a.txt", "user typed this\n");
    let error = commit(&workspace, "a.txt", &write("model version\n"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
    assert_eq!(fixture.bytes("a.txt"), b"user typed this\n");

    // Nor may the file change while the person is asked.
    fixture.write("b.txt", "shown\n");
    let path = workspace.resolve("b.txt").unwrap();
    workspace.propose(&path, &write("new\n")).await.unwrap();
    fixture.write("b.txt", "typed meanwhile\n");
    assert_eq!(
        workspace.commit(&path, &write("new\n")).await.unwrap_err(),
        FileError::Changed("b.txt".to_owned())
    );
    workspace.read(&path).await.unwrap();
    workspace.commit(&path, &write("new\n")).await.unwrap();
    assert_eq!(fixture.bytes("b.txt"), b"new\n");
}

#[tokio::test]
async fn a_proposal_changes_nothing() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\n");
    let workspace = fixture.workspace();
    let proposed = workspace
        .propose(&workspace.resolve("a.txt").unwrap(), &edit("one", "two"))
        .await
        .unwrap();
    assert_eq!(
        (proposed.old_text.as_deref(), &*proposed.new_text),
        (Some("one\n"), "two\n")
    );
    assert_eq!(fixture.bytes("a.txt"), b"one\n");
}

#[cfg(unix)]
#[tokio::test]
async fn a_dangling_symlink_inside_makes_its_target() {
    let fixture = Fixture::new();
    symlink("made.txt", fixture.path("link")).unwrap();
    commit(&fixture.workspace(), "link", &write("x"))
        .await
        .unwrap();
    assert_eq!(fixture.bytes("made.txt"), b"x");
    assert!(fixture.path("link").is_symlink());
}

#[tokio::test]
async fn files_are_removed_unless_text_would_be_lost() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one");
    let workspace = fixture.workspace();
    read(&workspace, "a.txt").await.unwrap();
    fixture.write("a.txt", "two");
    let path = workspace.resolve("a.txt").unwrap();
    assert_eq!(
        workspace.remove(&path).await.unwrap_err(),
        FileError::Changed("a.txt".to_owned())
    );
    workspace
        .documents()
        .open(&fixture.uri("a.txt"), 1, "", "unsaved");
    workspace.read(&path).await.unwrap();
    assert_eq!(
        workspace.remove(&path).await.unwrap_err(),
        FileError::Unsaved("a.txt".to_owned())
    );
    workspace.documents().close(&fixture.uri("a.txt"));
    workspace.read(&path).await.unwrap();
    assert_eq!(
        workspace.remove(&path).await.unwrap().old_text.as_deref(),
        Some("two")
    );
    assert!(!fixture.path("a.txt").exists());
}

#[tokio::test]
async fn what_an_editor_misreads_is_neither_edited_there_nor_shown_to_commands() {
    let fixture = Fixture::new();
    fixture.write("a.txt", b"caf\xe9\nbar\n");
    let workspace = fixture.workspace();
    let documents = workspace.documents();
    documents.open(&fixture.uri("a.txt"), 1, "", "caf\u{fffd}\nbar\n");
    let error = commit(&workspace, "a.txt", &edit("bar", "bars")).await;
    assert_eq!(error.unwrap_err(), FileError::Misread("a.txt".to_owned()));
    assert!(workspace.unsaved_texts().await.is_empty());
    documents.close(&fixture.uri("a.txt"));
    commit(&workspace, "a.txt", &edit("bar", "bars"))
        .await
        .unwrap();
    assert_eq!(fixture.bytes("a.txt"), b"caf\xe9\nbars\n");
}

#[tokio::test]
async fn temporary_files_of_a_killed_process_are_removed() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("sub")).unwrap();
    // No process has this ID; the second name is our own.
    let (dead, own) = (
        format!(".tandem-{}-0.tmp", i32::MAX),
        format!(".tandem-{}-999999.tmp", std::process::id()),
    );
    for name in [&dead, &own, &format!("sub/{dead}")] {
        fixture.write(name, "");
        // If processes can't be queried, the file's age decides.
        let file = std::fs::File::options()
            .write(true)
            .open(fixture.path(name))
            .unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_mins(2))
            .unwrap();
    }
    commit(&fixture.workspace(), "sub/a.txt", &write("x"))
        .await
        .unwrap();
    assert!(
        !fixture.path(&dead).exists()
            && fixture.path(&own).exists()
            && !fixture.path("sub").join(&dead).exists()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn temporary_files_of_other_containers_are_left_alone() {
    let fixture = Fixture::new();
    // In another container, process IDs differ: one may be unused here, another may be ours.
    let theirs = format!(".tandem-{}-1.tmp", i32::MAX);
    fixture.write(&theirs, "theirs");
    let held = std::fs::File::open(fixture.path(&theirs)).unwrap();
    held.lock().unwrap();
    let taken: Vec<_> = (0..500)
        .map(|number| format!(".tandem-{}-{number}.tmp", std::process::id()))
        .collect();
    for name in &taken {
        fixture.write(name, "theirs");
    }
    commit(&fixture.workspace(), "a.txt", &write("x"))
        .await
        .unwrap();
    assert_eq!(fixture.bytes("a.txt"), b"x");
    assert!(
        taken
            .iter()
            .chain([&theirs])
            .all(|name| fixture.bytes(name) == b"theirs")
    );
    drop(held);
    commit(&fixture.workspace(), "b.txt", &write("x"))
        .await
        .unwrap();
    assert!(!fixture.path(&theirs).exists());
}

#[tokio::test]
async fn undo_reverts_the_change_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    let workspace = fixture.workspace();
    let path = workspace.resolve("a.txt").unwrap();
    let first = workspace.commit(&path, &edit("one", "1")).await.unwrap();
    let second = workspace.commit(&path, &edit("five", "5")).await.unwrap();
    fixture.write("a.txt", "1\ntwo\ntyped\nthree\nfour\n5\n");
    let undone = workspace.undo(&path, &second).await.unwrap();
    workspace.undo(&path, &first).await.unwrap();
    assert_eq!(
        fixture.bytes("a.txt"),
        b"one\ntwo\ntyped\nthree\nfour\nfive\n"
    );
    workspace.undo(&path, &undone).await.unwrap();
    assert_eq!(fixture.bytes("a.txt"), b"one\ntwo\ntyped\nthree\nfour\n5\n");
    fixture.write("a.txt", "one\ntwo\nthree\nfour\nfive and a half\n");
    let error = workspace.undo(&path, &second).await.unwrap_err();
    assert!(error.to_string().contains("changed since"), "{error}");
    assert_eq!(
        fixture.bytes("a.txt"),
        b"one\ntwo\nthree\nfour\nfive and a half\n"
    );
}

#[tokio::test]
async fn undo_removes_created_files_and_restores_removed_ones() {
    let fixture = Fixture::new();
    let workspace = fixture.workspace();
    let path = workspace.resolve("new/a.txt").unwrap();
    let made = workspace.commit(&path, &write("made\n")).await.unwrap();
    let removed = workspace.undo(&path, &made).await.unwrap();
    assert!(!fixture.path("new/a.txt").exists());
    workspace.undo(&path, &removed).await.unwrap();
    assert_eq!(fixture.bytes("new/a.txt"), b"made\n");
    fixture.write("new/a.txt", "mine now\n");
    assert_eq!(
        workspace.undo(&path, &made).await.unwrap_err(),
        FileError::Changed("new/a.txt".to_owned())
    );
}

#[tokio::test]
async fn what_is_left_of_a_file_that_nobody_read_is_not_unsaved_even_after_a_revert() {
    let fixture = Fixture::new();
    let documents = Documents::new(Encoding::Utf16);
    let (file, restored) = (fixture.uri("a.txt"), fixture.uri("b.txt"));
    for name in ["a.txt", "b.txt"] {
        std::fs::write(fixture.path(name), "saved\n").unwrap();
    }
    documents.open(&file, 1, "", "saved\n");
    documents.look_at_file(&file).await;
    documents.open(&restored, 1, "", "typed before\n");
    documents.look_at_file(&restored).await;
    for name in ["a.txt", "b.txt"] {
        std::fs::remove_file(fixture.path(name)).unwrap();
    }
    let mut version = 1;
    let mut unsaved_after = |uri: &str, text: &str| {
        version += 1;
        let change = ContentChange {
            range: None,
            text: text.to_owned(),
        };
        documents.change(uri, version, &[change]);
        documents.all().len()
    };
    assert_eq!(unsaved_after(&file, "typed\n"), 2);
    assert_eq!(unsaved_after(&file, "saved\n"), 1);
    assert_eq!(unsaved_after(&restored, "saved\n"), 0);
}

#[cfg(unix)]
#[test]
fn a_private_file_is_private_while_it_is_written() {
    /// Looks at the permission bits of all files in a folder when it is read.
    struct Looking<'a>(&'a Path, Vec<u32>);
    impl std::io::Read for Looking<'_> {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            for entry in std::fs::read_dir(self.0)? {
                self.1.push(entry?.metadata()?.mode() & 0o777);
            }
            Ok(0)
        }
    }
    for (mode, meanwhile) in [(0o600, 0o600), (0o440, 0o400), (0o755, 0o600)] {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut from = Looking(folder.path(), Vec::new());
        let name = Path::new("key");
        disk::copy_with_mode(root.dir(), name, &mut from, mode).unwrap();
        assert_eq!(from.1, [meanwhile]);
        let made = folder.path().join(name).metadata().unwrap();
        assert_eq!(made.mode() & 0o777, mode);
    }
}
