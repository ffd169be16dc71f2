//! Reading files and listing folders.

use super::*;

#[tokio::test]
async fn requested_lines_of_a_huge_file_are_read() {
    let line = "fifteen letters\n";
    let place = Place::new(&[("big.log", &line.repeat(40_000_000 / line.len()))]);
    let answer = place
        .answer(
            "read_file",
            json!({"path": "big.log", "offset": 2_400_000, "limit": 2}),
        )
        .await;
    let expected = "[40000000 bytes, from disk]\n2400000\tfifteen letters\n2400001\tfifteen letters\n\
        [continue with offset 2400002]\n";
    assert_eq!(answer, expected);
    let beyond = place
        .answer("read_file", json!({"path": "big.log", "offset": 2_500_001}))
        .await;
    assert_eq!(beyond, "[40000000 bytes, from disk]\n[no line 2500001]\n");
    let edit = json!({"path": "big.log", "edits": [{"old_text": "fifteen", "new_text": "15"}]});
    let refused = place.answer("edit_file", edit).await;
    assert!(
        refused.contains("too large: 40000000 bytes")
            && refused.contains("a command can change it"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_page_of_a_huge_file_ends_with_a_whole_line() {
    let line = format!("{}\n", "x".repeat(899));
    let place = Place::new(&[("big.log", &line.repeat(40_000))]);
    let mut offset = 1;
    for _ in 0..2 {
        let arguments = json!({"path": "big.log", "offset": offset});
        let page = place.answer("read_file", arguments).await;
        let lines = page.lines().skip(1).take_while(|line| line.ends_with('x'));
        let numbers = lines.map(|line| {
            assert_eq!(line.matches('x').count(), 899);
            line.split('\t').next().unwrap().parse().unwrap()
        });
        let numbers: Vec<usize> = numbers.collect();
        assert_eq!(numbers, (offset..offset + 66).collect::<Vec<_>>());
        offset += 66;
        assert!(page.ends_with(&format!("[continue with offset {offset}]\n")));
    }
}

#[tokio::test]
async fn read_file_shows_numbered_lines() {
    let place = Place::new(&[("src/main.rs", "fn main() {\n}\n")]);
    place
        .check(
            "read_file",
            json!({"path": "src/main.rs"}),
            "1\tfn main() {\n2\t}\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "src/main.rs", "offset": "2"}),
            "2\t}\n[lines 2–2 of 2]\n",
        )
        .await;
    let absolute = place.folder.path().join("src/main.rs");
    place
        .check(
            "read_file",
            json!({"file_path": absolute, "limit": 1}),
            "1\tfn main() {\n[lines 1–1 of 2; continue with offset 2]\n",
        )
        .await;
    let preview = place
        .preview(
            "read_file",
            json!({"path": "src/main.rs", "offset": 2, "limit": 5}),
        )
        .await
        .unwrap();
    assert_eq!(preview.title, "Read src/main.rs lines 2–6");
    assert_eq!(preview.locations[0].path, absolute);
}

#[tokio::test]
async fn read_file_reports_foreign_changes() {
    let place = Place::new(&[("a", "one\n")]);
    place
        .check("read_file", json!({"path": "a"}), "1\tone\n")
        .await;
    place
        .run(
            "edit_file",
            json!({"path": "a", "edits": [{"old_text": "one", "new_text": "two"}]}),
        )
        .await
        .unwrap();
    place
        .check("read_file", json!({"path": "a"}), "1\ttwo\n")
        .await;
    place.write("a", b"two;\n");
    place
        .check(
            "read_file",
            json!({"path": "a"}),
            "[changed by someone else since you last read it]\n1\ttwo;\n",
        )
        .await;
    place
        .check("read_file", json!({"path": "a"}), "1\ttwo;\n")
        .await;
}

#[tokio::test]
async fn read_file_reports_unusual_encodings() {
    let place = Place::new(&[("crlf", "a\r\n"), ("open", "saved\n"), ("empty", "")]);
    place.write("bom", b"\xef\xbb\xbfa\n");
    place.write("wide", b"\xff\xfea\0\n\0");
    place.write("latin", b"caf\xe9\n");
    place.open("open", "typed\n");
    place
        .check(
            "read_file",
            json!({"path": "crlf"}),
            "[UTF-8, CRLF]\n1\ta\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "bom"}),
            "[UTF-8 with BOM, LF]\n1\ta\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "wide"}),
            "[UTF-16LE, LF]\n1\ta\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "latin"}),
            "[Latin-1, LF]\n1\tcafé\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "open"}),
            "[unsaved changes in the editor]\n1\ttyped\n",
        )
        .await;
    place
        .check(
            "read_file",
            json!({"path": "empty"}),
            "[the file is empty]\n",
        )
        .await;
}

#[tokio::test]
async fn read_file_explains_what_it_cannot_read() {
    let place = Place::new(&[
        ("src/tools.rs", "x\n"),
        ("docs/Main.rs", "x\n"),
        ("src/binary", "a\0b"),
    ]);
    let read = |path: &str| place.answer("read_file", json!({"path": path}));
    assert_eq!(
        read("src/tool.rs").await,
        "error: src/tool.rs does not exist. Did you mean src/tools.rs?"
    );
    assert_eq!(
        read("main.rs").await,
        "error: main.rs does not exist. Did you mean docs/Main.rs?"
    );
    assert_eq!(read("zzz").await, "error: zzz does not exist");
    assert_eq!(
        read("src").await,
        "error: src is a directory, not a regular file"
    );
    let instead = |path: &str| {
        Place::tool("read_file").instead(&place.context, &json!({ "file_path": path }))
    };
    assert_eq!(
        instead("src").map(|tool| tool.name().to_owned()).as_deref(),
        Some("list_files")
    );
    for path in ["src/tools.rs", "zzz", "..", "/etc", ""] {
        assert!(instead(path).is_none(), "{path}");
    }
    assert!(
        read("src/binary").await.contains("binary"),
        "{}",
        read("src/binary").await
    );
    assert!(
        read("../../etc/passwd").await.contains("outside"),
        "{}",
        read("../../etc/passwd").await
    );
    assert!(read("/etc/passwd").await.contains("outside"));
    assert!(read("").await.contains("empty"));
    let beyond = place
        .answer("read_file", json!({"path": "src/tools.rs", "offset": 7}))
        .await;
    assert_eq!(
        beyond,
        "error: src/tools.rs has only 1 line; 7 is past the end"
    );
}

#[tokio::test]
async fn several_files_are_read_in_one_call() {
    let place = Place::new(&[("a", "1\n"), ("b", "2\n")]);
    let both = "==> a <==\n1\t1\n==> b <==\n1\t2\n";
    for files in [
        json!({"paths": ["a", "b"]}),
        json!({"files": [{"path": "a"}, {"path": "b"}]}),
    ] {
        place.check("read_file", files, both).await;
    }
    place
        .check("read_file", json!({"path": "a", "more_paths": ["b"]}), both)
        .await;
    let preview = place
        .preview("read_file", json!({"path": ["a", "b"]}))
        .await
        .unwrap();
    assert_eq!(
        (preview.title.as_str(), preview.targets.len()),
        ("Read a, b", 2)
    );
    let half = place.answer("read_file", json!({"path": ["a", "c"]})).await;
    assert_eq!(half, "==> a <==\n1\t1\n==> c <==\n[c does not exist]\n");
    assert!(
        place
            .answer("read_file", json!({"path": ["c", "d"]}))
            .await
            .starts_with("error: ")
    );
    assert!(
        place
            .answer("read_file", json!({"path": ["a", "../x"]}))
            .await
            .contains("outside")
    );
    assert!(
        place
            .preview("read_file", json!({"path": ["a", "../x"]}))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn list_files_draws_a_tree() {
    let place = Place::new(&[
        ("src/a/b/c.rs", ""),
        ("src/lib.rs", ""),
        ("README.md", ""),
        (".gitignore", "out\n"),
        ("out/x", ""),
    ]);
    place
        .check(
            "list_files",
            json!({}),
            "./\n  .gitignore\n  README.md\n  src/\n    a/\n      b/\n        c.rs\n    lib.rs\n",
        )
        .await;
    place
        .check(
            "list_files",
            json!({"path": "src", "depth": 1}),
            "src/\n  a/…\n  lib.rs\n",
        )
        .await;
    place
        .check(
            "list_files",
            json!({"path": "README.md"}),
            "error: README.md is a file; read_file shows it",
        )
        .await;
    place
        .check(
            "list_files",
            json!({"path": "scr"}),
            "error: scr does not exist",
        )
        .await;
}
