//! Editors as they behave: some refuse a stale edit, some skip it and report success, some are slow.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, any, prop_oneof};
use proptest::strategy::Strategy as _;
use proptest::test_runner::TestRunner;

use super::*;
use crate::text::{Position, Range};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Like Helix and VS Code.
    RefusesStale,
    /// Like Neovim.
    SkipsStale,
    /// Answers before reporting the change.
    Slow,
    /// Reports the change, then fails.
    Fails,
    /// Never answers; applies the edit much later.
    Silent,
}

/// A version and what it changed.
type Report = (i32, Vec<ContentChange>);

/// An editor with its own buffer, in which someone types just before an edit arrives.
struct Fake {
    documents: Documents,
    manner: Manner,
    buffer: Mutex<(i32, String)>,
    typing: Mutex<Vec<(usize, String)>>,
    /// What the person types right after the edit.
    typing_after: Mutex<Vec<(usize, String)>>,
    uri: String,
}

impl Fake {
    fn open(fixture: &Fixture, name: &str, text: &str, manner: Manner) -> (Arc<Self>, Workspace) {
        let documents = Documents::new(Encoding::Utf16);
        let uri = fixture.uri(name);
        documents.open(&uri, 1, "text", text);
        let buffer = Mutex::new((1, text.to_owned()));
        let fake = Arc::new(Self {
            documents: documents.clone(),
            manner,
            buffer,
            typing: Mutex::default(),
            typing_after: Mutex::default(),
            uri,
        });
        (fake.clone(), fixture.edited(documents, fake))
    }

    /// The person types `text` at byte `at` as soon as the next edit has been sent.
    fn will_type(&self, at: usize, text: &str) {
        self.typing.lock().unwrap().push((at, text.to_owned()));
    }

    fn text(&self) -> String {
        self.buffer.lock().unwrap().1.clone()
    }

    /// Changes the buffer; returns the `didChange` report.
    fn splice(&self, hunks: &[(Range, String)]) -> Report {
        let mut buffer = self.buffer.lock().unwrap();
        // From the end, so that earlier positions stay valid: all ranges refer to the original text.
        let changes: Vec<_> = hunks
            .iter()
            .rev()
            .map(|(range, text)| ContentChange {
                range: Some(*range),
                text: text.clone(),
            })
            .collect();
        for change in &changes {
            buffer.1 =
                crate::text::apply_change(&buffer.1, change.range, &change.text, Encoding::Utf16);
        }
        buffer.0 += 1;
        (buffer.0, changes)
    }

    /// Types pending text; returns the reports.
    fn type_out(&self, due: &Mutex<Vec<(usize, String)>>) -> Vec<Report> {
        let mut reports = Vec::new();
        for (at, text) in due.lock().unwrap().drain(..) {
            let now = self.text();
            let lines = crate::text::LineIndex::new(&now);
            let place = lines.position(&now, at % (now.len() + 1), Encoding::Utf16);
            reports.push(self.splice(&[(
                Range {
                    start: place,
                    end: place,
                },
                text,
            )]));
        }
        reports
    }

    fn report(&self, reports: Vec<Report>) {
        for (version, changes) in reports {
            self.documents.change(&self.uri, version, &changes);
        }
    }
}

impl Editor for Fake {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        async move {
            self.report(self.type_out(&self.typing));
            if self.manner == Manner::Silent {
                return std::future::pending().await;
            }
            let is_stale = edit.version != Some(self.buffer.lock().unwrap().0);
            match self.manner {
                Manner::RefusesStale if is_stale => {
                    return Ok(Applied::Refused("the document has changed".to_owned()));
                }
                Manner::SkipsStale | Manner::Slow if is_stale => return Ok(Applied::Yes),
                _ => {}
            }
            let mut reports = vec![self.splice(&edit.hunks)];
            reports.extend(self.type_out(&self.typing_after));
            if self.manner != Manner::Slow {
                self.report(reports);
                return match self.manner {
                    Manner::Fails => Err(EditorError("enough".to_owned())),
                    _ => Ok(Applied::Yes),
                };
            }
            let (documents, uri) = (self.documents.clone(), self.uri.clone());
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(150)).await;
                for (version, changes) in reports {
                    documents.change(&uri, version, &changes);
                }
            });
            Ok(Applied::Yes)
        }
        .boxed()
    }
}

#[tokio::test]
async fn an_open_document_is_read_and_edited_in_the_editor_alone() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "saved\n");
    let (editor, workspace) = Fake::open(
        &fixture,
        "a.txt",
        "unsaved 😀 text\r\nmore\r\n",
        Manner::RefusesStale,
    );
    let file = read(&workspace, "a.txt").await.unwrap();
    assert_eq!(
        file.source,
        Source::Buffer {
            version: Some(1),
            unsaved: true
        }
    );
    assert_eq!(&*file.text, "unsaved 😀 text\r\nmore\r\n");
    commit(&workspace, "a.txt", &edit("text\nmore", "words\nand more"))
        .await
        .unwrap();
    assert_eq!(editor.text(), "unsaved 😀 words\r\nand more\r\n");
    commit(
        &workspace,
        "a.txt",
        &write("unsaved 😀 words\nand much more\n"),
    )
    .await
    .unwrap();
    assert_eq!(editor.text(), "unsaved 😀 words\r\nand much more\r\n");
    assert_eq!(fixture.bytes("a.txt"), b"saved\n");
    assert_eq!(
        &*workspace
            .document(&workspace.resolve("a.txt").unwrap())
            .unwrap()
            .text,
        editor.text()
    );
}

/// Records requests and fails them.
struct Recorder(Arc<Mutex<Vec<DocumentEdit>>>);

impl Editor for Recorder {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        self.0.lock().unwrap().push(edit);
        async { Err(EditorError("enough".to_owned())) }.boxed()
    }
}

#[tokio::test]
async fn hunks_are_small_and_never_split_a_line_break() {
    let fixture = Fixture::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let documents = Documents::new(Encoding::Utf16);
    documents.open(&fixture.uri("a"), 7, "", "keep 😀 one\r\ntwo\r\n");
    let workspace = fixture.edited(documents, Arc::new(Recorder(seen.clone())));
    let error = commit(
        &workspace,
        "a",
        &edit("keep 😀 one\ntwo", "keep 😀 ones\ntwos"),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    commit(&workspace, "a", &edit("\ntwo", "\n2"))
        .await
        .unwrap_err();
    let seen = seen.lock().unwrap();
    let at = |line, character| Position { line, character };
    let put = |line, from, to, text: &str| {
        (
            Range {
                start: at(line, from),
                end: at(line, to),
            },
            text.to_owned(),
        )
    };
    assert_eq!(seen[0].version, Some(7));
    assert_eq!(seen[0].hunks, [put(0, 11, 11, "s"), put(1, 3, 3, "s")]);
    assert_eq!(seen[1].hunks, [put(1, 0, 3, "2")]);
}

#[tokio::test]
async fn what_an_editor_reported_before_it_failed_is_an_edit() {
    let fixture = Fixture::new();
    let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", Manner::Fails);
    let done = commit(&workspace, "a.txt", &edit("one", "1"))
        .await
        .unwrap();
    assert_eq!(*done.new_text, *editor.text());
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_editor_does_not_block_and_may_apply_later() {
    let fixture = Fixture::new();
    let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", Manner::Silent);
    let error = commit(&workspace, "a.txt", &edit("one", "1"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has not answered for 30 s") && error.contains("read the file"),
        "{error}"
    );
    let late = Range {
        start: Position {
            line: 0,
            character: 0,
        },
        end: Position {
            line: 0,
            character: 3,
        },
    };
    editor.report(vec![editor.splice(&[(late, "1".to_owned())])]);
    let text = &read(&workspace, "a.txt").await.unwrap().text;
    assert_eq!((&**text, editor.text().as_str()), ("1\ntwo\n", "1\ntwo\n"));
}

#[tokio::test(start_paused = true)]
async fn typing_during_an_edit_loses_nothing() {
    for manner in [Manner::RefusesStale, Manner::SkipsStale, Manner::Slow] {
        let fixture = Fixture::new();
        let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", manner);
        editor.will_type(0, "zero\n");
        commit(&workspace, "a.txt", &edit("two", "two\ntwo and a half"))
            .await
            .unwrap();
        assert_eq!(
            editor.text(),
            "zero\none\ntwo\ntwo and a half\n",
            "{manner:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn typing_over_an_edited_range_wins() {
    for manner in [Manner::RefusesStale, Manner::SkipsStale, Manner::Slow] {
        let fixture = Fixture::new();
        let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", manner);
        read(&workspace, "a.txt").await.unwrap();
        editor.will_type(5, "X");
        let error = commit(&workspace, "a.txt", &edit("two", "2"))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("changed since it was read"),
            "{error}"
        );
        assert_eq!(editor.text(), "one\ntXwo\n", "{manner:?}");
        editor.will_type(0, "Y");
        let error = commit(&workspace, "a.txt", &write("all\n"))
            .await
            .unwrap_err();
        assert!(matches!(error, FileError::Changed(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn shrinking_edits_during_typing_are_applied_or_refused() {
    for manner in [Manner::RefusesStale, Manner::SkipsStale, Manner::Slow] {
        let fixture = Fixture::new();
        let (editor, workspace) = Fake::open(&fixture, "a.txt", "aaaa bbbbbbbbbbbb cccc\n", manner);
        editor.will_type(0, "X");
        editor.will_type(23, "X");
        commit(&workspace, "a.txt", &edit(" bbbbbbbbbbbb", ""))
            .await
            .unwrap();
        assert_eq!(editor.text(), "Xaaaa ccccX\n", "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn constant_typing_does_not_block_an_edit() {
    let fixture = Fixture::new();
    let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", Manner::SkipsStale);
    editor.will_type(0, "x");
    let typist = editor.clone();
    let typing = tokio::spawn(async move {
        loop {
            // Avoids the instant at which a wait ends, when either could come first.
            tokio::time::sleep(std::time::Duration::from_millis(70)).await;
            typist.will_type(0, "x");
            typist.report(typist.type_out(&typist.typing));
        }
    });
    let begun = tokio::time::Instant::now();
    commit(&workspace, "a.txt", &edit("two", "2"))
        .await
        .unwrap();
    typing.abort();
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert!(editor.text().ends_with("one\n2\n"), "{}", editor.text());
}

/// Something a person types around edits: where, and whether just before or just after one.
#[derive(Debug, Clone)]
struct Typing {
    at: usize,
    after: bool,
}

/// An edit of a line, and what is typed around it.
type Step = (usize, Vec<Typing>);

fn sessions() -> impl proptest::strategy::Strategy<Value = (Manner, Vec<Step>)> {
    let manner = prop_oneof![
        Just(Manner::RefusesStale),
        Just(Manner::SkipsStale),
        Just(Manner::Slow)
    ];
    let typing = (0..500_usize, any::<bool>()).prop_map(|(at, after)| Typing { at, after });
    (manner, vec((0..20_usize, vec(typing, 0..3)), 1..6))
}

/// In any order, no typed text is lost, and every edit is applied exactly once or refused.
#[test]
fn the_user_and_the_agent_share_a_buffer() {
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let run = |(manner, steps)| {
        runtime.block_on(share(&fixture, manner, steps));
        Ok(())
    };
    runner.run(&sessions(), run).unwrap();
}

async fn share(fixture: &Fixture, manner: Manner, steps: Vec<Step>) {
    const TYPED: &str = "§😀§";
    let lines: Vec<String> = (0..20)
        .map(|line| format!("line <{line}> 🎉 here\r\n"))
        .collect();
    let text = lines.concat();
    let (editor, workspace) = Fake::open(fixture, "a.txt", &text, manner);
    let (mut typed, mut expected) = (0, String::new());
    for (mark, (line, typing)) in ('A'..).zip(steps) {
        for Typing { at, after } in typing {
            let due = if after {
                &editor.typing_after
            } else {
                &editor.typing
            };
            due.lock().unwrap().push((at, TYPED.to_owned()));
            typed += TYPED.chars().count();
        }
        if commit(
            &workspace,
            "a.txt",
            &edit(&format!("<{line}>"), &format!("<{line}>{mark}")),
        )
        .await
        .is_ok()
        {
            expected.push(mark);
        }
    }
    // Text whose edit never came is still to be typed.
    editor.report(editor.type_out(&editor.typing));
    editor.report(editor.type_out(&editor.typing_after));
    let text = editor.text();
    assert_eq!(
        text.chars()
            .filter(|character| TYPED.contains(*character))
            .count(),
        typed,
        "{manner:?}: {text}"
    );
    let mut marks: Vec<char> = text.chars().filter(char::is_ascii_uppercase).collect();
    marks.sort_unstable();
    assert_eq!(String::from_iter(marks), expected, "{manner:?}: {text}");
    assert_eq!(
        &*workspace.documents().get(&editor.uri).unwrap().text,
        text,
        "{manner:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_never_applies_an_edit_is_reported() {
    struct Liar;
    impl Editor for Liar {
        fn apply(&self, _: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
            async { Ok(Applied::Yes) }.boxed()
        }
    }
    let fixture = Fixture::new();
    let documents = Documents::new(Encoding::Utf16);
    documents.open(&fixture.uri("a"), 0, "", "one");
    let workspace = fixture.edited(documents, Arc::new(Liar));
    let error = commit(&workspace, "a", &edit("one", "two"))
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(error.contains("reported success"), "{error}");
    assert!(error.ends_with("save and close it"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_never_returns_a_text_does_not_block() {
    struct Mute;
    impl Editor for Mute {
        fn apply(&self, _: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
            std::future::pending().boxed()
        }

        fn read<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Option<String>> {
            std::future::pending().boxed()
        }
    }
    let fixture = Fixture::new();
    fixture.write("a.txt", "maybe old");
    let workspace = fixture.edited(Documents::new(Encoding::Utf16), Arc::new(Mute));
    // The file on disk may be outdated, so nothing can be read.
    let error = read(&workspace, "a.txt").await.unwrap_err();
    assert!(
        error.to_string().contains("the editor did not return"),
        "{error}"
    );
    commit(&workspace, "a.txt", &edit("maybe", "really"))
        .await
        .unwrap_err();
    assert_eq!(fixture.bytes("a.txt"), b"maybe old");
}

/// Like Neovim: reloads the file instead of applying the edit, closing and reopening it with the same version.
struct Rereads(Documents, String, AtomicUsize);

impl Editor for Rereads {
    fn apply(&self, _: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        self.2.fetch_add(1, Relaxed);
        self.0.close(&self.1);
        self.0.open(&self.1, 1, "text", "new");
        async { Ok(Applied::Refused("it was read again".to_owned())) }.boxed()
    }
}

#[tokio::test]
async fn an_edit_that_an_editor_read_from_the_disk_is_not_repeated() {
    let fixture = Fixture::new();
    let (documents, uri) = (Documents::new(Encoding::Utf16), fixture.uri("a.txt"));
    documents.open(&uri, 1, "text", "old");
    let editor = Arc::new(Rereads(documents.clone(), uri.clone(), AtomicUsize::new(0)));
    let workspace = fixture.edited(documents.clone(), editor.clone());
    let next = async {
        while editor.2.load(Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        documents.open(&uri, 1, "text", "old"); // the user undoes it
    };
    let change = edit("old", "new");
    let (done, ()) = tokio::join!(commit(&workspace, "a.txt", &change), next);
    done.unwrap();
    assert_eq!(editor.2.load(Relaxed), 1);
}

/// An ACP client: texts by path, no versions.
struct Client(Mutex<std::collections::HashMap<PathBuf, String>>);

impl Editor for Client {
    fn apply(&self, _: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        async { Ok(Applied::Refused("not here".to_owned())) }.boxed()
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        async { self.0.lock().unwrap().get(path).cloned() }.boxed()
    }

    fn write<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        self.0
            .lock()
            .unwrap()
            .insert(path.to_owned(), text.to_owned());
        async { Some(Ok(())) }.boxed()
    }
}

#[tokio::test]
async fn acp_clients_provide_the_buffer() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "saved");
    let client = Arc::new(Client(Mutex::new(
        [(fixture.path("a.txt"), "unsaved".to_owned())].into(),
    )));
    let workspace = fixture.edited(Documents::new(Encoding::Utf16), client.clone());
    assert_eq!(
        read(&workspace, "a.txt").await.unwrap().source,
        Source::Buffer {
            version: None,
            unsaved: true
        }
    );
    commit(&workspace, "a.txt", &edit("unsaved", "edited"))
        .await
        .unwrap();
    commit(&workspace, "new/b.txt", &write("made"))
        .await
        .unwrap();
    let texts = client.0.lock().unwrap();
    assert_eq!(
        (
            texts[&fixture.path("a.txt")].as_str(),
            texts[&fixture.path("new/b.txt")].as_str()
        ),
        ("edited", "made")
    );
    assert_eq!(fixture.bytes("a.txt"), b"saved");
}

/// An ACP client that saves every text as UTF-8.
struct Utf8Client;

impl Editor for Utf8Client {
    fn apply(&self, _: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        async { Ok(Applied::Refused("not here".to_owned())) }.boxed()
    }

    fn write<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        std::fs::write(path, text).unwrap();
        async { Some(Ok(())) }.boxed()
    }
}

#[tokio::test]
async fn encodings_survive_a_utf8_only_acp_client() {
    let fixture = Fixture::new();
    fixture.write("utf16", b"\xff\xfea\0\n\0");
    fixture.write("latin1", b"\xe9\n");
    fixture.write("bom", b"\xef\xbb\xbfa\n");
    let workspace = fixture.edited(Documents::new(Encoding::Utf16), Arc::new(Utf8Client));
    commit(&workspace, "utf16", &edit("a", "b")).await.unwrap();
    commit(&workspace, "latin1", &edit("é", "éé"))
        .await
        .unwrap();
    commit(&workspace, "bom", &edit("a", "b")).await.unwrap();
    assert_eq!(fixture.bytes("utf16"), b"\xff\xfeb\0\n\0");
    assert_eq!(fixture.bytes("latin1"), b"\xe9\xe9\n");
    assert_eq!(fixture.bytes("bom"), b"\xef\xbb\xbfb\n");
    let error = commit(&workspace, "latin1", &edit("éé", "漢"))
        .await
        .unwrap_err();
    assert!(matches!(error, FileError::Unencodable(..)), "{error}");
    assert_eq!(fixture.bytes("latin1"), b"\xe9\xe9\n");
}

/// Saves an edit in its own way, then closes the document, if there is one, and refuses the edit.
struct Formatter(Documents);

impl Editor for Formatter {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        let path = url::Url::parse(&edit.uri).unwrap().to_file_path().unwrap();
        std::fs::write(path, "x = 1\nb\n").unwrap();
        self.0.close(&edit.uri);
        async { Ok(Applied::Refused("it is closed".to_owned())) }.boxed()
    }

    fn write<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        std::fs::write(path, text.replace("  ", " ")).unwrap();
        async { Some(Ok(())) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_editor_makes_of_an_edit_counts_as_that_edit() {
    for (is_open, new) in [(false, "x  =  1"), (true, "x = 1")] {
        let fixture = Fixture::new();
        fixture.write(".envrc", "a\nb\n");
        let documents = Documents::new(Encoding::Utf16);
        let workspace = fixture.edited(documents.clone(), Arc::new(Formatter(documents.clone())));
        if is_open {
            documents.open(&fixture.uri(".envrc"), 1, "text", "a\nb\n");
        }
        let path = workspace.resolve(".envrc").unwrap();
        read(&workspace, ".envrc").await.unwrap();
        let written = documents.watch_writes();
        workspace.propose(&path, &edit("a", new)).await.unwrap();
        let done = commit(&workspace, ".envrc", &edit("a", new)).await.unwrap();
        assert_eq!(&*done.new_text, "x = 1\nb\n");
        // A job's end restores what the person has seen.
        let real = path.real();
        let is_approved = workspace.is_approved(&real, &Texts::new());
        assert_eq!(is_approved, is_open);
        let seen = format!("{new}\nb\n");
        assert_eq!(written.take()[&real].as_deref(), Some(&*seen));
        // What was formatted has to be read first.
        let next = commit(&workspace, ".envrc", &write("all\n")).await;
        assert_eq!(next.is_ok(), is_open, "{next:?}");
    }
}

#[test]
fn full_texts_out_of_order_end_with_the_newest() {
    let fixture = Fixture::new();
    let documents = Documents::new(Encoding::Utf8);
    let uri = fixture.uri("a.txt");
    documents.open(&uri, 0, "", "");
    for (version, text) in [(1, "a"), (3, "abc"), (2, "ab"), (5, "abcde"), (4, "abcd")] {
        documents.change(
            &uri,
            version,
            &[ContentChange {
                range: None,
                text: text.to_owned(),
            }],
        );
    }
    let document = documents.get(&uri).unwrap();
    assert_eq!((&*document.text, document.version), ("abcde", 5));
}

#[test]
fn a_change_before_any_open_starts_from_the_disk() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "");
    let documents = Documents::new(Encoding::Utf16);
    let uri = fixture.uri("a.txt");
    documents.change(
        &uri,
        3,
        &[ContentChange {
            range: Some(Range::default()),
            text: "made".to_owned(),
        }],
    );
    let document = documents.get(&uri).unwrap();
    assert_eq!((&*document.text, document.version), ("made", 3));
    documents.close(&uri);
    assert!(documents.get(&uri).is_none() && documents.all().is_empty());
}

/// An editor that never answers.
struct Mute;

impl Editor for Mute {
    fn apply(&self, _edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        std::future::pending().boxed()
    }

    fn diagnostics<'a>(
        &'a self,
        _scope: &'a diagnostics::Scope,
    ) -> BoxFuture<'a, Option<Vec<diagnostics::Shown>>> {
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn diagnostics_that_never_come_end_no_wait_too_late() {
    let workspace = Fixture::new().edited(Documents::new(Encoding::Utf16), Arc::new(Mute));
    let report = workspace.diagnostics(&diagnostics::Scope::default()).await;
    assert_eq!(report, None);
}
