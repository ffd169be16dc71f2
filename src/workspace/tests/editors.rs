//! Editors as they are: some refuse a stale edit, some skip it and say they applied it, some are slow.

use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::text::{Position, Range};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As Helix and VS Code.
    RefusesStale,
    /// As Neovim.
    SkipsStale,
    /// Answers before it reports the change.
    Slow,
}

/// An editor with a buffer of its own, in which someone types just before an edit arrives.
struct Fake {
    documents: Documents,
    manner: Manner,
    buffer: Mutex<(i32, String)>,
    typing: Mutex<Vec<(usize, String)>>,
    uri: String,
}

impl Fake {
    fn open(fixture: &Fixture, name: &str, text: &str, manner: Manner) -> (Arc<Self>, Workspace) {
        let documents = Documents::new(Encoding::Utf16);
        let uri = fixture.uri(name);
        documents.open(&uri, 1, "text", text);
        let buffer = Mutex::new((1, text.to_owned()));
        let fake = Arc::new(Self { documents: documents.clone(), manner, buffer, typing: Mutex::default(), uri });
        (fake.clone(), fixture.edited(documents, fake))
    }

    /// The person types `text` at byte `at`, as soon as the next edit is on its way.
    fn will_type(&self, at: usize, text: &str) {
        self.typing.lock().unwrap().push((at, text.to_owned()));
    }

    fn text(&self) -> String {
        self.buffer.lock().unwrap().1.clone()
    }

    /// Changes the buffer; gives what `didChange` says of it.
    fn splice(&self, hunks: &[(Range, String)]) -> (i32, Vec<ContentChange>) {
        let mut buffer = self.buffer.lock().unwrap();
        // From the end, so that earlier positions still hold: all ranges are of the text before.
        let changes: Vec<_> =
            hunks.iter().rev().map(|(range, text)| ContentChange { range: Some(*range), text: text.clone() }).collect();
        for change in &changes {
            buffer.1 = crate::text::apply_change(&buffer.1, change.range, &change.text, Encoding::Utf16);
        }
        buffer.0 += 1;
        (buffer.0, changes)
    }

    fn types(&self) {
        for (at, text) in self.typing.lock().unwrap().drain(..) {
            let now = self.text();
            let at = now.floor_char_boundary(at.min(now.len()));
            let place = crate::text::LineIndex::new(&now).position(&now, at, Encoding::Utf16);
            let (version, changes) = self.splice(&[(Range { start: place, end: place }, text)]);
            self.documents.change(&self.uri, version, &changes);
        }
    }
}

impl Editor for Fake {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        async move {
            self.types();
            let is_stale = edit.version != Some(self.buffer.lock().unwrap().0);
            match self.manner {
                Manner::RefusesStale if is_stale => return Ok(Applied::Refused("the document has changed".to_owned())),
                Manner::SkipsStale | Manner::Slow if is_stale => return Ok(Applied::Yes),
                _ => {}
            }
            let (version, changes) = self.splice(&edit.hunks);
            let (documents, uri) = (self.documents.clone(), self.uri.clone());
            if self.manner == Manner::Slow {
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
                    documents.change(&uri, version, &changes);
                });
            } else {
                documents.change(&uri, version, &changes);
            }
            Ok(Applied::Yes)
        }
        .boxed()
    }
}

#[tokio::test]
async fn an_open_document_is_read_and_edited_in_the_editor_alone() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "saved\n");
    let (editor, workspace) = Fake::open(&fixture, "a.txt", "unsaved 😀 text\r\nmore\r\n", Manner::RefusesStale);
    let file = read(&workspace, "a.txt").await.unwrap();
    assert_eq!(file.source, Source::Buffer { version: Some(1), unsaved: true });
    assert_eq!(&*file.text, "unsaved 😀 text\r\nmore\r\n");
    commit(&workspace, "a.txt", &edit("text\nmore", "words\nand more")).await.unwrap();
    assert_eq!(editor.text(), "unsaved 😀 words\r\nand more\r\n");
    commit(&workspace, "a.txt", &write("unsaved 😀 words\nand much more\n")).await.unwrap();
    assert_eq!(editor.text(), "unsaved 😀 words\r\nand much more\r\n");
    assert_eq!(fixture.bytes("a.txt"), b"saved\n");
    assert_eq!(&*workspace.document(&workspace.resolve("a.txt").unwrap()).unwrap().text, editor.text());
}

/// Keeps what it is asked for, and fails.
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
    let error = commit(&workspace, "a", &edit("keep 😀 one\ntwo", "keep 😀 ones\ntwos")).await.unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    commit(&workspace, "a", &edit("\ntwo", "\n2")).await.unwrap_err();
    let seen = seen.lock().unwrap();
    let at = |line, character| Position { line, character };
    let put = |line, from, to, text: &str| (Range { start: at(line, from), end: at(line, to) }, text.to_owned());
    assert_eq!(seen[0].version, Some(7));
    assert_eq!(seen[0].hunks, [put(0, 11, 11, "s"), put(1, 3, 3, "s")]);
    assert_eq!(seen[1].hunks, [put(1, 0, 3, "2")]);
}

#[tokio::test(start_paused = true)]
async fn typing_while_an_edit_is_on_its_way_loses_nothing() {
    for manner in [Manner::RefusesStale, Manner::SkipsStale, Manner::Slow] {
        let fixture = Fixture::new();
        let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", manner);
        editor.will_type(0, "zero\n");
        commit(&workspace, "a.txt", &edit("two", "two\ntwo and a half")).await.unwrap();
        assert_eq!(editor.text(), "zero\none\ntwo\ntwo and a half\n", "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn typing_over_the_place_of_an_edit_wins() {
    for manner in [Manner::RefusesStale, Manner::SkipsStale, Manner::Slow] {
        let fixture = Fixture::new();
        let (editor, workspace) = Fake::open(&fixture, "a.txt", "one\ntwo\n", manner);
        read(&workspace, "a.txt").await.unwrap();
        editor.will_type(5, "X");
        let error = commit(&workspace, "a.txt", &edit("two", "2")).await.unwrap_err();
        assert!(error.to_string().contains("changed since you read it"), "{error}");
        assert_eq!(editor.text(), "one\ntXwo\n", "{manner:?}");
        editor.will_type(0, "Y");
        let error = commit(&workspace, "a.txt", &write("all\n")).await.unwrap_err();
        assert!(matches!(error, FileError::Changed(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_never_does_it_is_told_of() {
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
    let error = commit(&workspace, "a", &edit("one", "two")).await.unwrap_err();
    assert!(error.to_string().contains("said it did"), "{error}");
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

    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Option<Result<(), EditorError>>> {
        self.0.lock().unwrap().insert(path.to_owned(), text.to_owned());
        async { Some(Ok(())) }.boxed()
    }
}

#[tokio::test]
async fn an_acp_client_is_the_buffer() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "saved");
    let client = Arc::new(Client(Mutex::new([(fixture.path("a.txt"), "unsaved".to_owned())].into())));
    let workspace = fixture.edited(Documents::new(Encoding::Utf16), client.clone());
    assert_eq!(read(&workspace, "a.txt").await.unwrap().source, Source::Buffer { version: None, unsaved: true });
    commit(&workspace, "a.txt", &edit("unsaved", "edited")).await.unwrap();
    commit(&workspace, "new/b.txt", &write("made")).await.unwrap();
    let texts = client.0.lock().unwrap();
    assert_eq!(
        (texts[&fixture.path("a.txt")].as_str(), texts[&fixture.path("new/b.txt")].as_str()),
        ("edited", "made")
    );
    assert_eq!(fixture.bytes("a.txt"), b"saved");
}

#[test]
fn whole_texts_that_arrive_out_of_order_end_in_the_last_one() {
    let fixture = Fixture::new();
    let documents = Documents::new(Encoding::Utf8);
    let uri = fixture.uri("a.txt");
    documents.open(&uri, 0, "", "");
    for (version, text) in [(1, "a"), (3, "abc"), (2, "ab"), (5, "abcde"), (4, "abcd")] {
        documents.change(&uri, version, &[ContentChange { range: None, text: text.to_owned() }]);
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
    documents.change(&uri, 3, &[ContentChange { range: Some(Range::default()), text: "made".to_owned() }]);
    let document = documents.get(&uri).unwrap();
    assert_eq!((&*document.text, document.version), ("made", 3));
    documents.close(&uri);
    assert!(documents.get(&uri).is_none() && documents.all().is_empty());
}
