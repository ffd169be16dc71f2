//! Finding files and text.

use super::*;

#[tokio::test]
async fn glob_finds_files_by_name() {
    let place = Place::new(&[
        ("src/main.rs", ""),
        ("src/a/lib.rs", ""),
        ("README.md", ""),
        (".gitignore", "/out\n"),
        ("out/gen.rs", ""),
        (".github/workflows/ci.yml", ""),
    ]);
    place
        .check(
            "glob",
            json!({"pattern": "*.rs"}),
            "src/a/lib.rs\nsrc/main.rs\n",
        )
        .await;
    place
        .check("glob", json!({"pattern": "src/*.rs"}), "src/main.rs\n")
        .await;
    place
        .check(
            "glob",
            json!({"pattern": "**/*.yml"}),
            ".github/workflows/ci.yml\n",
        )
        .await;
    place
        .check(
            "glob",
            json!({"pattern": "*.rs", "path": "src/a"}),
            "src/a/lib.rs\n",
        )
        .await;
    place
        .check(
            "glob",
            json!({"pattern": "*.rs", "path": "out"}),
            "out/gen.rs\n",
        )
        .await;
    let absolute = format!("{}/src/**/*.rs", place.folder.path().display());
    place
        .check(
            "glob",
            json!({"pattern": absolute}),
            "src/a/lib.rs\nsrc/main.rs\n",
        )
        .await;
    place
        .check(
            "glob",
            json!({"pattern": r"src\**\*.rs"}),
            "[no file matches the pattern as it was written; these match src/**/*.rs]\nsrc/a/lib.rs\nsrc/main.rs\n",
        )
        .await;
    let nothing =
        "[no file matches *.py; ignored files are found only in a directory given as `path`]\n";
    place
        .check("glob", json!({"pattern": "*.py"}), nothing)
        .await;
    place
        .check(
            "glob",
            json!({"pattern": "nowhere/*.rs"}),
            &nothing.replace("*.py", "nowhere/*.rs"),
        )
        .await;
    place
        .check(
            "glob",
            json!({"pattern": "*", "path": "nowhere"}),
            "error: nowhere does not exist",
        )
        .await;
    let outside = place.answer("glob", json!({"pattern": "../*"})).await;
    assert_eq!(
        outside,
        "error: the pattern ../* leads outside the workspace; name the directory in `path` instead"
    );
    assert_eq!(
        place
            .preview("glob", json!({"pattern": "*.rs", "path": "src"}))
            .await
            .unwrap()
            .title,
        "Find *.rs in src"
    );
}

#[tokio::test]
async fn glob_limits_results_and_counts_the_rest() {
    let place = Place::new(&[]);
    for index in 0..350 {
        place.write(&format!("{:02}/{index:03}.txt", index % 10), b"");
    }
    let answer = place.answer("glob", json!({"pattern": "*.txt"})).await;
    assert!(answer.starts_with("00/000.txt\n00/010.txt\n"), "{answer}");
    assert!(
        answer.ends_with(
            "08/198.txt\n[the first 300 of 350 files; use a narrower pattern or a `path`]\n"
        ),
        "{answer}"
    );
}

#[tokio::test]
async fn grep_shows_matching_lines_by_path() {
    let place = Place::new(&[
        ("b.rs", "one\ntwo\nthree\n"),
        ("a/x.txt", "TWO\r\n"),
        ("a/y.rs", "two two\n"),
    ]);
    place
        .check(
            "grep",
            json!({"pattern": "two"}),
            "a/y.rs\n1:two two\n\nb.rs\n2:two\n\n[2 matching lines in 2 files]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "two$", "ignore_case": true, "path": "a"}),
            "a/x.txt\n1:TWO\n\na/y.rs\n1:two two\n\n[2 matching lines in 2 files]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "two", "glob": "b.*"}),
            "b.rs\n2:two\n\n[1 matching line in 1 file]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "two", "path": "b.rs", "context": 1}),
            "b.rs\n1-one\n2:two\n3-three\n\n[1 matching line in 1 file]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "nope"}),
            "[no match; 3 files searched]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "x", "path": "nowhere"}),
            "error: nowhere does not exist",
        )
        .await;
    assert_eq!(
        place
            .preview("grep", json!({"pattern": "two", "glob": "*.rs"}))
            .await
            .unwrap()
            .title,
        "Search “two” in *.rs"
    );
}

#[tokio::test]
async fn grep_limits_matches_and_counts_the_rest() {
    let place = Place::new(&[
        ("a", "x\nx\n"),
        ("b", "x\nx\n"),
        ("c", "x\n"),
        ("d", "no\n"),
    ]);
    let expected = "a\n1:x\n2:x\n\nb\n1:x\n\n[the first 3 of 5 matching lines in 3 files; narrow the pattern, path or glob]\n";
    place
        .check("grep", json!({"pattern": "x", "max_results": 3}), expected)
        .await;
}

#[tokio::test]
async fn grep_searches_buffers_instead_of_their_files() {
    let place = Place::new(&[("open", "saved\n"), ("closed", "saved\n")]);
    place.open("open", "typed\n");
    place.open("new", "typed\n");
    place
        .check(
            "grep",
            json!({"pattern": "ty", "path": "new"}),
            "new\n1:typed\n\n[1 matching line in 1 file]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "saved"}),
            "closed\n1:saved\n\n[1 matching line in 1 file]\n",
        )
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "typed"}),
            "new\n1:typed\n\nopen\n1:typed\n\n[2 matching lines in 2 files]\n",
        )
        .await;
}

#[tokio::test]
async fn grep_skips_binaries_and_reports_skipped_secrets() {
    let place = Place::new(&[
        (".env", "key=1\n"),
        ("home/.ssh/deep/config", "key=1\n"),
        ("a.txt", "key=2\n"),
        ("late", &format!("key=3\n{}\0", "x".repeat(200_000))),
    ]);
    let expected = "a.txt\n1:key=2\n\n[1 matching line in 1 file]\n[not searched, because they may contain secrets or a rule restricts them: .env, home/.ssh/deep/config]\n";
    place
        .check("grep", json!({"pattern": "key"}), expected)
        .await;
    for (secret, found) in [
        (".env", ".env"),
        ("home/.ssh/deep", "home/.ssh/deep/config"),
    ] {
        let search = json!({"pattern": "key", "path": secret});
        let preview = place.preview("grep", search.clone()).await.unwrap();
        let caution = format!("{secret} may contain secrets");
        assert_eq!(preview.caution, Some(caution), "it requires approval");
        let expected = format!("{found}\n1:key=1\n\n[1 matching line in 1 file]\n");
        place.check("grep", search, &expected).await;
    }
}

#[tokio::test]
async fn grep_finds_what_reading_shows_in_any_encoding() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xff, 0xfe].into_iter().chain(units).collect()
    };
    let place = Place::new(&[("utf8", "größer\n")]);
    place.write("latin1", b"gr\xf6\xdfer\n");
    place.write("utf16", &utf16("größer\n"));
    place.write("broken", b"gr\xf6\xdfer \x07 and more\n");
    let expected =
        "latin1\n1:größer\n\nutf16\n1:größer\n\nutf8\n1:größer\n\n[3 matching lines in 3 files]\n";
    place
        .check(
            "grep",
            json!({"pattern": "GRÖ", "ignore_case": true}),
            expected,
        )
        .await;
    let bytes = place.answer("grep", json!({"pattern": "and more"})).await;
    assert!(bytes.contains("[1 matching line in 1 file]"), "{bytes}");
}

#[tokio::test]
async fn grep_shows_the_matching_part_of_a_huge_line() {
    let line = format!("{}needle{}", "é".repeat(500_000), "z".repeat(500_000));
    let place = Place::new(&[("min.js", &line)]);
    let answer = place.answer("grep", json!({"pattern": "needle"})).await;
    let expected = format!(
        "min.js\n1:…{}needle{}…\n\n[1 matching line in 1 file]\n",
        "é".repeat(50),
        "z".repeat(194)
    );
    assert_eq!(answer, expected);
}

#[cfg(unix)]
#[tokio::test]
async fn searches_skip_outside_symlinks_and_unreadable_folders() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let outside = Place::new(&[("secret.txt", "CANARY\n")]);
    let place = Place::new(&[("ok.txt", "CANARY too\n"), ("locked/x.txt", "CANARY\n")]);
    symlink(outside.folder.path(), place.folder.path().join("link")).unwrap();
    symlink(
        outside.folder.path().join("secret.txt"),
        place.folder.path().join("notes.txt"),
    )
    .unwrap();
    let locked = place.folder.path().join("locked");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let answer = place.answer("grep", json!({"pattern": "CANARY"})).await;
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(
        answer.starts_with("locked") || answer.starts_with("ok.txt\n1:CANARY too\n\n"),
        "{answer}"
    );
    assert!(!answer.contains("secret"), "{answer}");
    let globbed = place.answer("glob", json!({"pattern": "*.txt"})).await;
    assert!(!globbed.contains("secret"), "{globbed}");
    for path in ["link", "link/secret.txt", "notes.txt"] {
        let read = place.answer("read_file", json!({"path": path})).await;
        assert!(
            read.starts_with("error: ") && !read.contains("CANARY"),
            "{read}"
        );
        let grepped = place
            .answer("grep", json!({"pattern": "CANARY", "path": path}))
            .await;
        assert!(
            grepped.starts_with("error: ") && !grepped.contains("CANARY"),
            "{grepped}"
        );
    }
}

#[tokio::test]
async fn all_workspace_folders_are_searched() {
    let (one, two) = (
        Place::new(&[("a.rs", "needle\n")]),
        Place::new(&[("b.rs", "needle\n")]),
    );
    let roots = [&one, &two].map(|place| Arc::new(Root::open(place.folder.path()).unwrap()));
    let workspace = Workspace::new(
        roots.to_vec(),
        Documents::new(Encoding::Utf16),
        Arc::new(NoEditor),
    );
    let both = Place {
        context: ToolContext {
            workspace,
            ..one.context.clone()
        },
        folder: one.folder,
    };
    let other = crate::workspace::native::shown(&two.folder.path().join("b.rs"));
    let answer = both.answer("glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(
        answer.lines().collect::<BTreeSet<_>>(),
        BTreeSet::from(["a.rs", &other])
    );
    let answer = both.answer("grep", json!({"pattern": "needle"})).await;
    assert!(
        answer.contains("a.rs\n1:needle\n") && answer.contains(&format!("{other}\n1:needle\n")),
        "{answer}"
    );
    both.check(
        "grep",
        json!({"pattern": "needle", "path": other}),
        &format!("{other}\n1:needle\n\n[1 matching line in 1 file]\n"),
    )
    .await;
    let answer = both.answer("list_files", json!({})).await;
    assert_eq!(
        answer,
        format!(
            "./\n  a.rs\n{}/\n  b.rs\n",
            crate::workspace::native::shown(two.folder.path())
        )
    );
}
