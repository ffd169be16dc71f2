//! The tools as the agent calls them: by name, with JSON, on a real folder and open documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Editing, PlanStatus, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput, all, find};
use crate::text::Encoding;
use crate::workspace::{Documents, NoEditor, Root, Workspace};

/// A workspace in a temporary folder.
struct Place {
    folder: tempfile::TempDir,
    context: ToolContext,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let workspace = Workspace::new(vec![root], Documents::new(Encoding::Utf16), Arc::new(NoEditor));
        let place = Self { folder, context: ToolContext::new(workspace, CancellationToken::new()) };
        for (name, text) in files {
            place.write(name, text.as_bytes());
        }
        place
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let dir = Dir::open_ambient_dir(self.folder.path(), ambient_authority()).unwrap();
        dir.create_dir_all(Path::new(name).parent().unwrap()).unwrap();
        dir.write(name, bytes).unwrap();
    }

    fn on_disk(&self, name: &str) -> String {
        Dir::open_ambient_dir(self.folder.path(), ambient_authority()).unwrap().read_to_string(name).unwrap()
    }

    fn open(&self, name: &str, text: &str) {
        let uri = url::Url::from_file_path(self.folder.path().canonicalize().unwrap().join(name)).unwrap();
        self.context.workspace.documents().open(uri.as_str(), 1, "text", text);
    }

    fn tool(name: &str) -> Arc<dyn Tool> {
        let editing = if name == "apply_patch" { Editing::Patches } else { Editing::Replacements };
        find(&all(editing), name).unwrap().clone()
    }

    async fn run(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        Self::tool(name).run(&self.context, &arguments).await
    }

    /// What the model reads, result or error.
    async fn answer(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments).await {
            Ok(output) => output.content,
            Err(error) => format!("error: {error}"),
        }
    }

    async fn preview(&self, name: &str, arguments: Value) -> Result<Preview, ToolError> {
        Self::tool(name).preview(&self.context, &arguments).await
    }

    async fn check(&self, name: &str, arguments: Value, expected: &str) {
        let answer = self.answer(name, arguments.clone()).await;
        assert_eq!(answer, expected, "{name} {arguments}");
    }
}

#[test]
fn the_list_is_small_and_in_fixed_order() {
    let names = |editing| all(editing).iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>();
    let expected = [
        "read_file",
        "list_files",
        "glob",
        "grep",
        "edit_file",
        "write_file",
        "run_command",
        "update_plan",
        "ask_user",
    ];
    assert_eq!(names(Editing::Replacements), expected);
    assert_eq!(names(Editing::Patches), expected.map(|name| if name == "edit_file" { "apply_patch" } else { name }));
    let tools = all(Editing::Replacements);
    let described: Vec<_> = tools
        .iter()
        .map(|tool| json!({"name": tool.name(), "description": tool.description(), "parameters": tool.parameters()}))
        .collect();
    let size = serde_json::to_string(&described).unwrap().len();
    assert!(size < 5500, "{size} bytes");
    assert!(find(&tools, "nothing").is_none());
}

#[test]
fn examples_are_correct_calls() {
    let both = [all(Editing::Replacements), all(Editing::Patches)].concat();
    let diagnostics: Arc<dyn Tool> = Arc::new(super::diagnostics::Diagnostics);
    for tool in both.iter().chain([&diagnostics]) {
        let schema = tool.parameters();
        assert!(jsonschema::meta::is_valid(&schema), "{schema}");
        let error = futures_util::FutureExt::now_or_never(tool.run(&Place::new(&[]).context, &Value::Null));
        let error = error.unwrap().unwrap_err().0;
        let example: Value = serde_json::from_str(error.split_once("Example: ").unwrap().1).unwrap();
        assert!(jsonschema::is_valid(&schema, &example), "{example}");
    }
}

#[tokio::test]
async fn of_a_file_too_large_for_memory_the_lines_asked_for_are_read() {
    let line = "fifteen letters\n";
    let place = Place::new(&[("big.log", &line.repeat(40_000_000 / line.len()))]);
    let answer = place.answer("read_file", json!({"path": "big.log", "offset": 2_400_000, "limit": 2})).await;
    let expected = "[40000000 bytes, from disk]\n2400000\tfifteen letters\n2400001\tfifteen letters\n\
        [continue with offset 2400002]\n";
    assert_eq!(answer, expected);
    let beyond = place.answer("read_file", json!({"path": "big.log", "offset": 2_500_001})).await;
    assert_eq!(beyond, "[40000000 bytes, from disk]\n[no line 2500001]\n");
    let edit = json!({"path": "big.log", "edits": [{"old_text": "fifteen", "new_text": "15"}]});
    let refused = place.answer("edit_file", edit).await;
    assert!(refused.contains("too large: 40000000 bytes") && refused.contains("a command can change it"), "{refused}");
}

#[tokio::test]
async fn read_file_shows_numbered_lines() {
    let place = Place::new(&[("src/main.rs", "fn main() {\n}\n")]);
    place.check("read_file", json!({"path": "src/main.rs"}), "1\tfn main() {\n2\t}\n").await;
    place.check("read_file", json!({"path": "src/main.rs", "offset": "2"}), "2\t}\n[lines 2–2 of 2]\n").await;
    let absolute = place.folder.path().join("src/main.rs");
    place
        .check(
            "read_file",
            json!({"file_path": absolute, "limit": 1}),
            "1\tfn main() {\n[lines 1–1 of 2; continue with offset 2]\n",
        )
        .await;
    let preview = place.preview("read_file", json!({"path": "src/main.rs", "offset": 2, "limit": 5})).await.unwrap();
    assert_eq!(preview.title, "Read src/main.rs lines 2–6");
    assert_eq!(preview.locations[0].path, absolute);
}

#[tokio::test]
async fn read_file_says_what_somebody_else_changed() {
    let place = Place::new(&[("a", "one\n")]);
    place.check("read_file", json!({"path": "a"}), "1\tone\n").await;
    place.run("edit_file", json!({"path": "a", "edits": [{"old_text": "one", "new_text": "two"}]})).await.unwrap();
    place.check("read_file", json!({"path": "a"}), "1\ttwo\n").await;
    place.write("a", b"two;\n");
    place
        .check("read_file", json!({"path": "a"}), "[changed by somebody else since you last read it]\n1\ttwo;\n")
        .await;
    place.check("read_file", json!({"path": "a"}), "1\ttwo;\n").await;
}

#[tokio::test]
async fn read_file_says_what_is_not_plain() {
    let place = Place::new(&[("crlf", "a\r\n"), ("open", "saved\n"), ("empty", "")]);
    place.write("bom", b"\xef\xbb\xbfa\n");
    place.write("wide", b"\xff\xfea\0\n\0");
    place.write("latin", b"caf\xe9\n");
    place.open("open", "typed\n");
    place.check("read_file", json!({"path": "crlf"}), "[UTF-8, CRLF]\n1\ta\n").await;
    place.check("read_file", json!({"path": "bom"}), "[UTF-8 with BOM, LF]\n1\ta\n").await;
    place.check("read_file", json!({"path": "wide"}), "[UTF-16LE, LF]\n1\ta\n").await;
    place.check("read_file", json!({"path": "latin"}), "[Latin-1, LF]\n1\tcafé\n").await;
    place.check("read_file", json!({"path": "open"}), "[unsaved changes in the editor]\n1\ttyped\n").await;
    place.check("read_file", json!({"path": "empty"}), "[the file is empty]\n").await;
}

#[tokio::test]
async fn read_file_explains_what_it_cannot_read() {
    let place = Place::new(&[("src/tools.rs", "x\n"), ("docs/Main.rs", "x\n"), ("src/binary", "a\0b")]);
    let read = |path: &str| place.answer("read_file", json!({"path": path}));
    assert_eq!(read("src/tool.rs").await, "error: src/tool.rs does not exist. Did you mean src/tools.rs?");
    assert_eq!(read("main.rs").await, "error: main.rs does not exist. Did you mean docs/Main.rs?");
    assert_eq!(read("zzz").await, "error: zzz does not exist");
    assert_eq!(read("src").await, "error: src is a folder, not a regular file; list_files shows what is in it");
    assert!(read("src/binary").await.contains("binary"), "{}", read("src/binary").await);
    assert!(read("../../etc/passwd").await.contains("outside"), "{}", read("../../etc/passwd").await);
    assert!(read("/etc/passwd").await.contains("outside"));
    assert!(read("").await.contains("empty"));
    let beyond = place.answer("read_file", json!({"path": "src/tools.rs", "offset": 7})).await;
    assert_eq!(beyond, "error: src/tools.rs has only 1 lines; 7 is past the end");
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
    place.check("list_files", json!({"path": "src", "depth": 1}), "src/\n  a/…\n  lib.rs\n").await;
    place.check("list_files", json!({"path": "README.md"}), "error: README.md is a file; read_file shows it").await;
    place.check("list_files", json!({"path": "scr"}), "error: scr does not exist").await;
}

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
    place.check("glob", json!({"pattern": "*.rs"}), "src/a/lib.rs\nsrc/main.rs\n").await;
    place.check("glob", json!({"pattern": "src/*.rs"}), "src/main.rs\n").await;
    place.check("glob", json!({"pattern": "**/*.yml"}), ".github/workflows/ci.yml\n").await;
    place.check("glob", json!({"pattern": "*.rs", "path": "src/a"}), "src/a/lib.rs\n").await;
    place.check("glob", json!({"pattern": "*.rs", "path": "out"}), "out/gen.rs\n").await;
    let absolute = format!("{}/src/**/*.rs", place.folder.path().display());
    place.check("glob", json!({"pattern": absolute}), "src/a/lib.rs\nsrc/main.rs\n").await;
    let nothing = "[no file matches *.py; files that .gitignore names are found only below a folder given as `path`]\n";
    place.check("glob", json!({"pattern": "*.py"}), nothing).await;
    place.check("glob", json!({"pattern": "nowhere/*.rs"}), &nothing.replace("*.py", "nowhere/*.rs")).await;
    place.check("glob", json!({"pattern": "*", "path": "nowhere"}), "error: nowhere does not exist").await;
    let outside = place.answer("glob", json!({"pattern": "../*"})).await;
    assert_eq!(outside, "error: the pattern ../* leads outside; name the folder in `path` instead");
    assert_eq!(
        place.preview("glob", json!({"pattern": "*.rs", "path": "src"})).await.unwrap().title,
        "Find *.rs in src"
    );
}

#[tokio::test]
async fn glob_shows_the_first_by_path_and_counts_the_rest() {
    let place = Place::new(&[]);
    for index in 0..350 {
        place.write(&format!("{:02}/{index:03}.txt", index % 10), b"");
    }
    let answer = place.answer("glob", json!({"pattern": "*.txt"})).await;
    assert!(answer.starts_with("00/000.txt\n00/010.txt\n"), "{answer}");
    assert!(
        answer.ends_with("08/198.txt\n[the first 300 of 350 files; use a narrower pattern or a `path`]\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn grep_shows_matching_lines_by_path() {
    let place = Place::new(&[("b.rs", "one\ntwo\nthree\n"), ("a/x.txt", "TWO\r\n"), ("a/y.rs", "two two\n")]);
    place
        .check("grep", json!({"pattern": "two"}), "a/y.rs\n1:two two\n\nb.rs\n2:two\n\n[2 matching lines in 2 files]\n")
        .await;
    place
        .check(
            "grep",
            json!({"pattern": "two$", "ignore_case": true, "path": "a"}),
            "a/x.txt\n1:TWO\n\na/y.rs\n1:two two\n\n[2 matching lines in 2 files]\n",
        )
        .await;
    place.check("grep", json!({"pattern": "two", "glob": "b.*"}), "b.rs\n2:two\n\n[1 matching line in 1 file]\n").await;
    place
        .check(
            "grep",
            json!({"pattern": "two", "path": "b.rs", "context": 1}),
            "b.rs\n1-one\n2:two\n3-three\n\n[1 matching line in 1 file]\n",
        )
        .await;
    place.check("grep", json!({"pattern": "nope"}), "[no match; 3 files searched]\n").await;
    place.check("grep", json!({"pattern": "x", "path": "nowhere"}), "error: nowhere does not exist").await;
    assert_eq!(
        place.preview("grep", json!({"pattern": "two", "glob": "*.rs"})).await.unwrap().title,
        "Search “two” in *.rs"
    );
}

#[tokio::test]
async fn grep_shows_the_first_matches_and_counts_the_rest() {
    let place = Place::new(&[("a", "x\nx\n"), ("b", "x\nx\n"), ("c", "x\n"), ("d", "no\n")]);
    let expected =
        "a\n1:x\n2:x\n\nb\n1:x\n\n[the first 3 of 5 matching lines in 3 files; narrow the pattern, path or glob]\n";
    place.check("grep", json!({"pattern": "x", "max_results": 3}), expected).await;
}

#[tokio::test]
async fn grep_searches_buffers_instead_of_their_files() {
    let place = Place::new(&[("open", "saved\n"), ("closed", "saved\n")]);
    place.open("open", "typed\n");
    place.open("new", "typed\n");
    place.check("grep", json!({"pattern": "ty", "path": "new"}), "new\n1:typed\n\n[1 matching line in 1 file]\n").await;
    place.check("grep", json!({"pattern": "saved"}), "closed\n1:saved\n\n[1 matching line in 1 file]\n").await;
    place
        .check("grep", json!({"pattern": "typed"}), "new\n1:typed\n\nopen\n1:typed\n\n[2 matching lines in 2 files]\n")
        .await;
}

#[tokio::test]
async fn grep_skips_secrets_and_binaries_and_says_so_of_secrets() {
    let place = Place::new(&[
        (".env", "key=1\n"),
        ("home/.ssh/deep/config", "key=1\n"),
        ("a.txt", "key=2\n"),
        ("late", &format!("key=3\n{}\0", "x".repeat(200_000))),
    ]);
    let expected = "a.txt\n1:key=2\n\n[1 matching line in 1 file]\n[not searched, may hold secrets: .env, home/.ssh/deep/config]\n";
    place.check("grep", json!({"pattern": "key"}), expected).await;
    for secret in [".env", "home/.ssh/deep"] {
        let answer = place.answer("grep", json!({"pattern": "key", "path": secret})).await;
        assert!(answer.starts_with("[no match; 0 files searched]\n[not searched"), "{answer}");
    }
}

#[tokio::test]
async fn grep_shows_the_part_of_a_huge_line_that_matches() {
    let line = format!("{}needle{}", "é".repeat(500_000), "z".repeat(500_000));
    let place = Place::new(&[("min.js", &line)]);
    let answer = place.answer("grep", json!({"pattern": "needle"})).await;
    let expected = format!("min.js\n1:…{}needle{}…\n\n[1 matching line in 1 file]\n", "é".repeat(50), "z".repeat(194));
    assert_eq!(answer, expected);
}

#[cfg(unix)]
#[tokio::test]
async fn searching_follows_no_symlink_out_and_passes_over_what_it_may_not_read() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let outside = Place::new(&[("secret.txt", "CANARY\n")]);
    let place = Place::new(&[("ok.txt", "CANARY too\n"), ("locked/x.txt", "CANARY\n")]);
    symlink(outside.folder.path(), place.folder.path().join("link")).unwrap();
    symlink(outside.folder.path().join("secret.txt"), place.folder.path().join("notes.txt")).unwrap();
    let locked = place.folder.path().join("locked");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let answer = place.answer("grep", json!({"pattern": "CANARY"})).await;
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(answer.starts_with("locked") || answer.starts_with("ok.txt\n1:CANARY too\n\n"), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
    let globbed = place.answer("glob", json!({"pattern": "*.txt"})).await;
    assert!(!globbed.contains("secret"), "{globbed}");
    for path in ["link", "link/secret.txt", "notes.txt"] {
        let read = place.answer("read_file", json!({"path": path})).await;
        assert!(read.starts_with("error: ") && !read.contains("CANARY"), "{read}");
        let grepped = place.answer("grep", json!({"pattern": "CANARY", "path": path})).await;
        assert!(grepped.starts_with("error: ") && !grepped.contains("CANARY"), "{grepped}");
    }
}

#[tokio::test]
async fn every_folder_of_the_workspace_is_searched() {
    let (one, two) = (Place::new(&[("a.rs", "needle\n")]), Place::new(&[("b.rs", "needle\n")]));
    let roots = [&one, &two].map(|place| Arc::new(Root::open(place.folder.path()).unwrap()));
    let workspace = Workspace::new(roots.to_vec(), Documents::new(Encoding::Utf16), Arc::new(NoEditor));
    let both = Place { context: ToolContext { workspace, ..one.context.clone() }, folder: one.folder };
    let other = crate::workspace::native::shown(&two.folder.path().join("b.rs"));
    let answer = both.answer("glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(answer.lines().collect::<BTreeSet<_>>(), BTreeSet::from(["a.rs", &other]));
    let answer = both.answer("grep", json!({"pattern": "needle"})).await;
    assert!(answer.contains("a.rs\n1:needle\n") && answer.contains(&format!("{other}\n1:needle\n")), "{answer}");
    both.check(
        "grep",
        json!({"pattern": "needle", "path": other}),
        &format!("{other}\n1:needle\n\n[1 matching line in 1 file]\n"),
    )
    .await;
    let answer = both.answer("list_files", json!({})).await;
    assert_eq!(answer, format!("./\n  a.rs\n{}/\n  b.rs\n", crate::workspace::native::shown(two.folder.path())));
}

#[tokio::test]
async fn edit_file_shows_then_does() {
    let place = Place::new(&[("a.rs", "fn a() {}\nfn b() {}\n")]);
    let arguments = json!({"path": "a.rs", "edits": [{"old_text": "fn b()", "new_text": "fn c()"}]});
    let preview = place.preview("edit_file", arguments.clone()).await.unwrap();
    assert_eq!(preview.title, "Edit a.rs");
    assert_eq!(preview.diffs[0].path, place.folder.path().join("a.rs"));
    assert_eq!(preview.diffs[0].old_text.as_deref(), Some("fn a() {}\nfn b() {}\n"));
    assert_eq!(&*preview.diffs[0].new_text, "fn a() {}\nfn c() {}\n");
    assert_eq!(place.on_disk("a.rs"), "fn a() {}\nfn b() {}\n");
    let output = place.run("edit_file", arguments).await.unwrap();
    assert_eq!(output.diffs, preview.diffs);
    assert_eq!(place.on_disk("a.rs"), "fn a() {}\nfn c() {}\n");
    assert!(output.content.starts_with("Changed a.rs"), "{}", output.content);
    assert!(output.content.contains("-fn b() {}\n+fn c() {}\n"), "{}", output.content);
}

#[tokio::test]
async fn edit_file_explains_what_it_cannot_do() {
    let place = Place::new(&[("tools.rs", "x\n")]);
    let edit = |path: &str, old: &str| {
        let arguments = json!({"path": path, "edits": [{"old_text": old, "new_text": "y"}]});
        async { place.preview("edit_file", arguments).await.unwrap_err().0 }
    };
    assert!(edit("tools.rs", "z").await.starts_with("tools.rs: "), "{}", edit("tools.rs", "z").await);
    assert_eq!(edit("tool.rs", "x").await, "tool.rs does not exist. Did you mean tools.rs?");
    assert!(edit("../a", "x").await.contains("outside"));
    let none = place.answer("edit_file", json!({"path": "tools.rs", "edits": []})).await;
    assert!(none.starts_with("error: `edits` is empty"), "{none}");
}

#[tokio::test]
async fn an_edit_is_visible_before_its_arguments_are_complete() {
    let place = Place::new(&[("a.rs", "one\ntwo\n")]);
    let sketch = |text: &str| {
        let arguments = super::partial::complete(text).unwrap();
        let context = place.context.clone();
        async move { Place::tool("edit_file").sketch(&context, &arguments).await }
    };
    assert_eq!(sketch(r#"{"pa"#).await, None);
    let named = sketch(r#"{"path": "a.rs", "edits": [{"old_text": "on"#).await.unwrap();
    assert_eq!((named.title.as_str(), named.diffs.len()), ("Edit a.rs", 0));
    let growing = sketch(r#"{"path": "a.rs", "edits": [{"old_text": "one", "new_text": "o"#).await.unwrap();
    assert_eq!(&*growing.diffs[0].new_text, "o\ntwo\n");
    let next =
        sketch(r#"{"path": "a.rs", "edits": [{"old_text": "one", "new_text": "1"}, {"old_text": "t"#).await.unwrap();
    assert_eq!(&*next.diffs[0].new_text, "1\ntwo\n");
}

#[tokio::test]
async fn write_file_creates_and_replaces() {
    let place = Place::new(&[("old.txt", "before\n")]);
    let partial = super::partial::complete(r#"{"path": "new/a.txt", "content": "on"#).unwrap();
    let sketch = Place::tool("write_file").sketch(&place.context, &partial).await.unwrap();
    assert_eq!((sketch.title.as_str(), &*sketch.diffs[0].new_text), ("Create new/a.txt", "on"));
    place.check("write_file", json!({"path": "new/a.txt", "content": "one\n"}), "Created new/a.txt (1 lines).\n").await;
    assert_eq!(place.on_disk("new/a.txt"), "one\n");
    let unread = place.answer("write_file", json!({"path": "old.txt", "content": ""})).await;
    assert!(unread.contains("have not read it"), "{unread}");
    #[cfg(unix)]
    {
        let old = place.folder.path().join("old.txt");
        let allow = |mode| std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        allow(0o444);
        let unwritable = place.answer("write_file", json!({"path": "old.txt", "content": ""})).await;
        assert!(unwritable.contains("read-only"), "{unwritable}");
        allow(0o644);
    }
    place.run("read_file", json!({"path": "old.txt"})).await.unwrap();
    assert_eq!(
        place.preview("write_file", json!({"path": "old.txt", "content": ""})).await.unwrap().title,
        "Write old.txt"
    );
    let output = place.run("write_file", json!({"path": "old.txt", "content": "after\n"})).await.unwrap();
    assert_eq!(output.diffs[0].old_text.as_deref(), Some("before\n"));
    assert_eq!(place.on_disk("old.txt"), "after\n");
}

#[tokio::test]
async fn update_plan_hands_the_plan_on() {
    let place = Place::new(&[]);
    let entries = json!([{"content": "a", "status": "completed"}, {"step": "b", "status": "in-progress"}]);
    let output = place.run("update_plan", json!({"entries": entries})).await.unwrap();
    assert_eq!(output.content, "Plan updated: 1 of 2 steps done.");
    let plan = output.plan.unwrap();
    assert_eq!((plan[1].content.as_str(), plan[1].status), ("b", PlanStatus::InProgress));
    let empty = place.answer("update_plan", json!({"entries": [{"content": " ", "status": "pending"}]})).await;
    assert_eq!(empty, "error: `entries[0].content` is empty; say what is to be done");
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let place = Place::new(&[("a", "x\n")]);
    place.context.cancel.cancel();
    for (name, arguments) in [
        ("read_file", json!({"path": "a"})),
        ("list_files", json!({})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
        ("edit_file", json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]})),
        ("write_file", json!({"path": "a", "content": "y"})),
    ] {
        place.check(name, arguments, "error: cancelled").await;
    }
    assert_eq!(place.on_disk("a"), "x\n");
}

#[test]
fn kinds_tell_reading_from_writing() {
    let writing = |tool: &Arc<dyn Tool>| !tool.kind().is_read_only();
    let names: Vec<_> =
        all(Editing::Replacements).iter().filter(|tool| writing(tool)).map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["edit_file", "write_file", "run_command"]);
    assert!(!ToolKind::Execute.is_read_only());
}

fn patch(sections: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{sections}*** End Patch")})
}

#[tokio::test]
async fn apply_patch_changes_several_files() {
    let place = Place::new(&[("a.rs", "one\ntwo\nthree\n"), ("b.rs", "b\n"), ("c.rs", "c\n")]);
    let sections = "*** Update File: a.rs\n one\n-two\n+TWO\n three\n*** Add File: new/d.rs\n+d\n*** Delete File: b.rs\n\
        *** Update File: c.rs\n*** Move to: e.rs\n-c\n+C\n";
    let preview = place.preview("apply_patch", patch(sections)).await.unwrap();
    assert_eq!(preview.title, "Edit a.rs, Create new/d.rs, Delete b.rs, Move c.rs to e.rs");
    assert_eq!(preview.diffs.len(), 5);
    assert_eq!(preview.caution, None);
    let output = place.run("apply_patch", patch(sections)).await.unwrap();
    assert!(output.content.starts_with("Changed a.rs, lines 1–3; matched exactly.\n@@"), "{}", output.content);
    let rest = "Created new/d.rs (1 lines).\nDeleted b.rs.\nCreated e.rs (1 lines).\nDeleted c.rs.\n";
    assert!(output.content.ends_with(rest), "{}", output.content);
    assert_eq!(output.diffs.len(), 5);
    assert_eq!(place.on_disk("a.rs"), "one\nTWO\nthree\n");
    assert_eq!((place.on_disk("new/d.rs"), place.on_disk("e.rs")), ("d\n".to_owned(), "C\n".to_owned()));
    assert!(!place.folder.path().join("b.rs").exists() && !place.folder.path().join("c.rs").exists());
}

#[tokio::test]
async fn apply_patch_changes_nothing_when_one_file_does_not_fit() {
    let place = Place::new(&[("a.rs", "one\n"), ("b.rs", "b\n"), (".git/hooks/x", "x\n")]);
    let good = "*** Update File: a.rs\n-one\n+two\n";
    let check = async |bad: &str, words: &str| {
        let answer = place.answer("apply_patch", patch(&format!("{good}{bad}"))).await;
        assert!(answer.starts_with("error: ") && answer.contains(words), "{answer}");
        assert_eq!(place.on_disk("a.rs"), "one\n");
    };
    check("*** Update File: b.rs\n-c\n+d\n", "no file was changed").await;
    check("*** Add File: b.rs\n+d\n", "exists already").await;
    check("*** Delete File: c.rs\n", "c.rs does not exist. Did you mean").await;
    check("*** Update File: a.rs\n-one\n+three\n", "names a.rs twice").await;
    check("*** Add File: ../c.rs\n+d\n", "outside the workspace").await;
    check("*** Update File: b.rs\n b\n", "Example: ").await;
    place.write("wide", b"\xff\xfea\0\n\0");
    check("*** Update File: wide\n*** Move to: w\n", "UTF-16LE").await;
    place.open("b.rs", "typed\n");
    check("*** Delete File: b.rs\n", "unsaved changes").await;
    let preview = place.preview("apply_patch", patch("*** Delete File: .git/hooks/x\n")).await.unwrap();
    assert!(preview.caution.is_some_and(|caution| caution.contains("protected")));
}

#[tokio::test]
async fn apply_patch_is_shown_while_it_streams() {
    let place = Place::new(&[("a.rs", "one\n")]);
    let sketch = async |text: &str| {
        let arguments = json!({ "patch": text });
        Place::tool("apply_patch").sketch(&place.context, &arguments).await.map(|preview| preview.title)
    };
    let begun = "*** Begin Patch\n*** Update File: a.rs\n-one\n+two\n";
    assert_eq!(sketch("*** Begin Patch\n*** Upd").await, None);
    assert_eq!(sketch(begun).await.as_deref(), Some("Edit a.rs"));
    assert_eq!(sketch(&format!("{begun}*** Add File: b.rs\n+b\n+c")).await.as_deref(), Some("Edit a.rs, Create b.rs"));
}
