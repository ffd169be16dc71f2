//! Changing files: replacements, whole files, patches.

use super::*;

#[tokio::test]
async fn edit_file_previews_then_edits() {
    let place = Place::new(&[("a.rs", "fn a() {}\nfn b() {}\n")]);
    let arguments =
        json!({"path": "a.rs", "edits": [{"old_text": "fn b()", "new_text": "fn c()"}]});
    let preview = place.preview("edit_file", arguments.clone()).await.unwrap();
    assert_eq!(preview.title, "Edit a.rs");
    assert_eq!(preview.diffs[0].path, place.folder.path().join("a.rs"));
    assert_eq!(
        preview.diffs[0].old_text.as_deref(),
        Some("fn a() {}\nfn b() {}\n")
    );
    assert_eq!(&*preview.diffs[0].new_text, "fn a() {}\nfn c() {}\n");
    assert_eq!(place.on_disk("a.rs"), "fn a() {}\nfn b() {}\n");
    let output = place.run("edit_file", arguments).await.unwrap();
    assert_eq!(output.diffs, preview.diffs);
    assert_eq!(place.on_disk("a.rs"), "fn a() {}\nfn c() {}\n");
    assert!(
        output.content.starts_with("Changed a.rs"),
        "{}",
        output.content
    );
    assert!(
        output.content.contains("-fn b() {}\n+fn c() {}\n"),
        "{}",
        output.content
    );
}

#[tokio::test]
async fn edit_file_explains_what_it_cannot_do() {
    let place = Place::new(&[("tools.rs", "x\n")]);
    let edit = |path: &str, old: &str| {
        let arguments = json!({"path": path, "edits": [{"old_text": old, "new_text": "y"}]});
        async { place.preview("edit_file", arguments).await.unwrap_err().0 }
    };
    assert!(
        edit("tools.rs", "z").await.starts_with("tools.rs: "),
        "{}",
        edit("tools.rs", "z").await
    );
    assert_eq!(
        edit("tool.rs", "x").await,
        "tool.rs does not exist. Did you mean tools.rs?"
    );
    assert!(edit("../a", "x").await.contains("outside"));
    let none = place
        .answer("edit_file", json!({"path": "tools.rs", "edits": []}))
        .await;
    assert!(none.starts_with("error: `edits` is empty"), "{none}");
}

#[tokio::test]
async fn the_result_of_a_replacement_of_everything_is_short() {
    let place = Place::new(&[("a.rs", &"let foo = 1; // of many\n".repeat(40_000))]);
    let all = |old: &str, new: &str| json!({"path": "a.rs", "edits": [{"old_text": old, "new_text": new, "replace_all": true}]});
    for (old, new) in [("foo", "bar"), ("bar = 1", "bar =\r\n1")] {
        // It took minutes when each place was looked for from the beginning.
        let answer = place.answer("edit_file", all(old, new)).await;
        assert!(answer.starts_with("Changed a.rs, lines 1"), "{answer}");
        assert!(answer.contains(" and 39995 more; matched exactly"));
        assert!(answer.len() < 5000, "{} bytes", answer.len());
    }
}

#[tokio::test]
async fn a_text_file_stays_one() {
    let place = Place::new(&[("a.c", "int a;\n")]);
    let edit = json!({"path": "a.c", "edits": [{"old_text": "int", "new_text": "int\u{0}"}]});
    let refused = place.answer("edit_file", edit).await;
    assert!(
        refused.contains("which cannot represent '\\0'"),
        "{refused}"
    );
    assert_eq!(place.on_disk("a.c"), "int a;\n");
}

#[tokio::test]
async fn an_edit_is_visible_before_its_arguments_are_complete() {
    let place = Place::new(&[("a.rs", "one\ntwo\n")]);
    let sketch = |text: &str| {
        let arguments = crate::calls::partial::complete(text).unwrap();
        let context = place.context.clone();
        async move { Place::tool("edit_file").sketch(&context, &arguments).await }
    };
    assert_eq!(sketch(r#"{"pa"#).await, None);
    assert_eq!(sketch(r#"{"path": "a.r"#).await, None);
    let named = sketch(r#"{"path": "a.rs", "edits": [{"old_text": "on"#)
        .await
        .unwrap();
    assert_eq!((named.title.as_str(), named.diffs.len()), ("Edit a.rs", 0));
    let growing = sketch(r#"{"path": "a.rs", "edits": [{"old_text": "one", "new_text": "o"#)
        .await
        .unwrap();
    assert_eq!(&*growing.diffs[0].new_text, "o\ntwo\n");
    let next = sketch(
        r#"{"path": "a.rs", "edits": [{"old_text": "one", "new_text": "1"}, {"old_text": "t"#,
    )
    .await
    .unwrap();
    assert_eq!(&*next.diffs[0].new_text, "1\ntwo\n");
}

#[tokio::test]
async fn write_file_creates_and_replaces() {
    let place = Place::new(&[("old.txt", "before\n")]);
    let partial =
        crate::calls::partial::complete(r#"{"path": "new/a.txt", "content": "on"#).unwrap();
    let sketch = Place::tool("write_file")
        .sketch(&place.context, &partial)
        .await
        .unwrap();
    assert_eq!(
        (sketch.title.as_str(), &*sketch.diffs[0].new_text),
        ("Create new/a.txt", "on")
    );
    place
        .check(
            "write_file",
            json!({"path": "new/a.txt", "content": "one\n"}),
            "Created new/a.txt (1 line).\n",
        )
        .await;
    assert_eq!(place.on_disk("new/a.txt"), "one\n");
    let unread = place
        .answer("write_file", json!({"path": "old.txt", "content": ""}))
        .await;
    assert!(unread.contains("was not read before"), "{unread}");
    place
        .run("read_file", json!({"path": "old.txt"}))
        .await
        .unwrap();
    assert_eq!(
        place
            .preview("write_file", json!({"path": "old.txt", "content": ""}))
            .await
            .unwrap()
            .title,
        "Write old.txt"
    );
    let output = place
        .run(
            "write_file",
            json!({"path": "old.txt", "content": "after\n"}),
        )
        .await
        .unwrap();
    assert_eq!(output.diffs[0].old_text.as_deref(), Some("before\n"));
    assert_eq!(place.on_disk("old.txt"), "after\n");
}

fn patch(sections: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{sections}*** End Patch")})
}

#[tokio::test]
async fn apply_patch_changes_several_files() {
    let place = Place::new(&[
        ("a.rs", "one\ntwo\nthree\n"),
        ("b.rs", "b\n"),
        ("c.rs", "c\n"),
    ]);
    let sections = "*** Update File: a.rs\n one\n-two\n+TWO\n three\n*** Add File: new/d.rs\n+d\n*** Delete File: b.rs\n\
        *** Update File: c.rs\n*** Move to: e.rs\n-c\n+C\n";
    let preview = place.preview("apply_patch", patch(sections)).await.unwrap();
    assert_eq!(
        preview.title,
        "Edit a.rs, Create new/d.rs, Delete b.rs, Move c.rs to e.rs"
    );
    assert_eq!(preview.diffs.len(), 5);
    assert_eq!(preview.caution, None);
    let output = place.run("apply_patch", patch(sections)).await.unwrap();
    assert!(
        output
            .content
            .starts_with("Changed a.rs, lines 1–3; matched exactly.\n@@"),
        "{}",
        output.content
    );
    let rest = "Created new/d.rs (1 line).\nDeleted b.rs.\nCreated e.rs (1 line).\nDeleted c.rs.\n";
    assert!(output.content.ends_with(rest), "{}", output.content);
    assert_eq!(output.diffs.len(), 5);
    assert_eq!(place.on_disk("a.rs"), "one\nTWO\nthree\n");
    assert_eq!(
        (place.on_disk("new/d.rs"), place.on_disk("e.rs")),
        ("d\n".to_owned(), "C\n".to_owned())
    );
    assert!(
        !place.folder.path().join("b.rs").exists() && !place.folder.path().join("c.rs").exists()
    );
}

#[tokio::test]
async fn the_result_of_many_changes_is_bounded() {
    let place = Place::new(&[]);
    let added = "+one of many lines that a patch adds\n".repeat(200);
    let mut sections = String::new();
    for number in 0..40 {
        place.write(&format!("{number}.txt"), b"x\n");
        sections += &format!("*** Update File: {number}.txt\n@@\n x\n{added}");
    }
    let answer = place.answer("apply_patch", patch(&sections)).await;
    assert!(answer.len() < 45_000, "{} bytes", answer.len());
    assert_eq!(answer.matches("Changed ").count(), 40);
}

#[tokio::test]
async fn apply_patch_moves_encoding_and_permissions_too() {
    let place = Place::new(&[]);
    place.write("wide", b"\xff\xfea\0\n\0");
    place.write("script", b"#!/bin/sh\n");
    #[cfg(unix)]
    std::fs::set_permissions(
        place.folder.path().join("script"),
        std::os::unix::fs::PermissionsExt::from_mode(0o750),
    )
    .unwrap();
    let sections = "*** Update File: wide\n*** Move to: w\n-a\n+b\n*** Update File: script\n*** Move to: bin/script\n";
    place.run("apply_patch", patch(sections)).await.unwrap();
    let wide = place.context.workspace.resolve("w").unwrap();
    assert_eq!(wide.bytes().await.unwrap(), b"\xff\xfeb\0\n\0");
    #[cfg(unix)]
    assert_eq!(
        place
            .context
            .workspace
            .resolve("bin/script")
            .unwrap()
            .mode(),
        Some(0o750)
    );
}

#[tokio::test]
async fn apply_patch_changes_nothing_when_one_file_does_not_fit() {
    let place = Place::new(&[("a.rs", "one\n"), ("b.rs", "b\n"), (".git/hooks/x", "x\n")]);
    let good = "*** Update File: a.rs\n-one\n+two\n";
    let check = async |bad: &str, words: &str| {
        let answer = place
            .answer("apply_patch", patch(&format!("{good}{bad}")))
            .await;
        assert!(
            answer.starts_with("error: ") && answer.contains(words),
            "{answer}"
        );
        assert_eq!(place.on_disk("a.rs"), "one\n");
    };
    check("*** Update File: b.rs\n-c\n+d\n", "no file was changed").await;
    check("*** Add File: b.rs\n+d\n", "already exists").await;
    check(
        "*** Delete File: c.rs\n",
        "c.rs does not exist. Did you mean",
    )
    .await;
    check("*** Update File: a.rs\n-one\n+three\n", "overlap").await;
    check("*** Delete File: a.rs\n", "names a.rs twice").await;
    check("*** Add File: ../c.rs\n+d\n", "outside the workspace").await;
    check("*** Update File: b.rs\n b\n", "Example: ").await;
    place.write("latin1", b"caf\xe9\n");
    check(
        "*** Update File: latin1\n*** Move to: l\n-café\n+茶\n",
        "cannot represent '茶'",
    )
    .await;
    place.open("b.rs", "typed\n");
    check("*** Delete File: b.rs\n", "unsaved changes").await;
    let preview = place
        .preview("apply_patch", patch("*** Delete File: .git/hooks/x\n"))
        .await
        .unwrap();
    assert!(
        preview
            .caution
            .is_some_and(|caution| caution.contains("protected"))
    );
}

#[tokio::test]
async fn apply_patch_is_shown_while_it_streams() {
    let place = Place::new(&[("a.rs", "one\n")]);
    let sketch = async |text: &str| {
        let arguments = json!({ "patch": text });
        Place::tool("apply_patch")
            .sketch(&place.context, &arguments)
            .await
            .map(|preview| preview.title)
    };
    let begun = "*** Begin Patch\n*** Update File: a.rs\n-one\n+two\n";
    assert_eq!(sketch("*** Begin Patch\n*** Upd").await, None);
    assert_eq!(sketch(begun).await.as_deref(), Some("Edit a.rs"));
    assert_eq!(
        sketch(&format!("{begun}*** Add File: b.rs\n+b\n+c"))
            .await
            .as_deref(),
        Some("Edit a.rs, Create b.rs")
    );
}
