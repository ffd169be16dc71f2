//! The documents the editor has open: an exact, versioned mirror of its buffers.
//!
//! Only the server's task writes. Readers get an immutable snapshot, so that text and version always match; it is made
//! on demand, so that a keystroke in a large file costs next to nothing.

#![expect(
    clippy::disallowed_methods,
    reason = "a buffer mirrors whatever file the editor has, also outside the workspace"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use super::written::{Listeners, Written};
use super::{content, disk, native};
use crate::domain::{is_absent, lock};
use crate::text::{Encoding, LineIndex, Position, Range};

/// The open documents. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Documents(Arc<Shared>);

struct Shared {
    encoding: Encoding,
    state: Mutex<State>,
    /// Counts changes, so that a reader can wait for the next.
    revision: watch::Sender<u64>,
    /// Receivers of write notifications.
    listeners: Listeners,
    /// One edit at a time for each file, across sessions.
    edited: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Default)]
struct State {
    open: HashMap<String, Buffer>,
    /// The document that was opened or changed last.
    newest: String,
    /// Texts that a pending edit should produce, and whether they were seen.
    expected: Expected,
}

type Expected = HashMap<String, (Arc<str>, bool)>;

/// Notes that `uri` has `text` now. An editor that reloads a file may close and reopen it.
fn see(expected: &mut Expected, uri: &str, text: &str) {
    if let Some((expected, seen)) = expected.get_mut(uri) {
        *seen |= **expected == *text;
    }
}

/// An open document at one version.
#[derive(Debug, Clone)]
pub struct Document {
    /// The URI the editor uses.
    pub uri: String,
    /// Its location with symlinks resolved; `None` for a document that is not a file (`untitled:`).
    pub path: Option<PathBuf>,
    /// The editor's language id; empty if the document was never opened.
    pub language: String,
    /// The editor's version number.
    pub version: i32,
    /// The text.
    pub text: Arc<str>,
    /// Its lines.
    pub lines: Arc<LineIndex>,
}

/// The text around a place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The location of the document, as in [`Document::path`].
    pub path: Option<PathBuf>,
    /// The editor's language id.
    pub language: String,
    /// The place, in bytes.
    pub offset: usize,
    /// The text before it.
    pub before: String,
    /// The text after it.
    pub after: String,
}

/// A change as reported by `textDocument/didChange`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentChange {
    /// The range to replace; `None` for the whole text.
    pub range: Option<Range>,
    /// The new text.
    pub text: String,
}

/// The mutable state of a document.
struct Buffer {
    uri: String,
    path: Option<PathBuf>,
    language: String,
    version: i32,
    text: String,
    lines: LineIndex,
    /// The last known text of its file.
    stored: Option<Arc<str>>,
    /// A snapshot of the current version, if one was requested.
    snapshot: Option<Arc<Document>>,
}

impl Documents {
    /// No documents; positions are counted in `encoding`.
    pub fn new(encoding: Encoding) -> Self {
        Self(Arc::new(Shared {
            encoding,
            state: Mutex::default(),
            revision: watch::Sender::new(0),
            listeners: Listeners::default(),
            edited: Mutex::default(),
        }))
    }

    /// The encoding negotiated with the editor.
    pub fn encoding(&self) -> Encoding {
        self.0.encoding
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, uri: &str, version: i32, language: &str, text: &str) {
        let buffer = Buffer::new(uri, version, language, text.to_owned());
        let mut state = self.state();
        state.open.insert(uri.to_owned(), buffer);
        uri.clone_into(&mut state.newest);
        see(&mut state.expected, uri, text);
        drop(state);
        self.announce();
    }

    /// `textDocument/didChange`: applies the changes in order; readers see all or none.
    ///
    /// A document that was never opened (Helix 25.01 reports files that an edit created) starts with its text on disk.
    /// An outdated full text (also Helix 25.01, see its handshake) is ignored.
    pub fn change(&self, uri: &str, version: i32, changes: &[ContentChange]) {
        let mut state = self.state();
        let State {
            open,
            newest,
            expected,
        } = &mut *state;
        let buffer = open.entry(uri.to_owned()).or_insert_with(|| {
            let text = path_of(uri).and_then(|path| std::fs::read_to_string(path).ok());
            Buffer::new(uri, version, "", text.unwrap_or_default())
        });
        let text = match changes {
            [ContentChange { range: None, text }] if version < buffer.version => text,
            _ => {
                buffer.change(version, changes, self.0.encoding);
                &buffer.text
            }
        };
        see(expected, uri, text);
        uri.clone_into(newest);
        drop(state);
        self.announce();
    }

    /// `textDocument/didSave`.
    pub fn save(&self, uri: &str) {
        let Some(document) = self.get(uri) else {
            return;
        };
        self.note_stored(&document);
        if let Some(path) = &document.path {
            self.note_written(path, Some(&document.text));
        }
    }

    /// The document's file has the same text.
    pub(crate) fn note_stored(&self, document: &Arc<Document>) {
        if let Some(buffer) = self.state().open.get_mut(&document.uri)
            && buffer.is_at(document)
        {
            buffer.stored = Some(Arc::clone(&document.text));
        }
    }

    /// Whether the document's file is known to have had this text: nothing of it is the person's alone.
    pub(crate) fn is_stored(&self, document: &Arc<Document>) -> bool {
        let state = self.state();
        let buffer = state.open.get(&document.uri);
        buffer.is_some_and(|buffer| {
            buffer.is_at(document) && buffer.stored.as_ref() == Some(&document.text)
        })
    }

    /// Reads the file of a document that was opened: text that the user reverts to it is not unsaved either.
    pub async fn look_at_file(&self, uri: &str) {
        if let Some(document) = self.get(uri)
            && let Some(path) = document.path.clone()
            && let Some(text) = disk::blocking(move || decoded(&path)).await
            && let Some(buffer) = self.state().open.get_mut(uri)
        {
            let text = if text == *document.text {
                Arc::clone(&document.text)
            } else {
                text.into()
            };
            buffer.stored.get_or_insert(text);
        }
    }

    /// Notes from here on what is saved in the editor and what tools write.
    pub fn watch_writes(&self) -> Written {
        self.0.listeners.listen()
    }

    /// The file at `real` now has this text; `None`: it was removed.
    pub(crate) fn note_written(&self, real: &Path, text: Option<&Arc<str>>) {
        self.0.listeners.note(real, text);
    }

    /// `textDocument/didClose`.
    pub fn close(&self, uri: &str) {
        self.state().open.remove(uri);
        self.announce();
    }

    /// The document that was opened or changed last; empty if there was none.
    pub fn newest(&self) -> String {
        self.state().newest.clone()
    }

    /// The document with this URI.
    pub fn get(&self, uri: &str) -> Option<Arc<Document>> {
        self.state().open.get_mut(uri).map(Buffer::snapshot)
    }

    /// The text around a position, at most `before` and `after` bytes of it. It copies nothing else, so the cost does not
    /// depend on the size of the document.
    ///
    /// The beginning moves in steps of a quarter of `before`, and to the beginning of a line: while somebody types, texts
    /// begin alike, which is what servers cache by.
    pub fn excerpt(&self, uri: &str, at: Position, before: usize, after: usize) -> Option<Excerpt> {
        let state = self.state();
        let Buffer {
            path,
            language,
            text,
            lines,
            ..
        } = state.open.get(uri)?;
        let offset = lines.offset(text, at, self.0.encoding);
        let step = (before / 4).max(1);
        let begin = text.ceil_char_boundary(
            offset
                .saturating_sub(before)
                .next_multiple_of(step)
                .min(offset),
        );
        let line = lines.line(begin);
        let next_line = if lines.bytes(text, line).start == begin {
            begin
        } else {
            lines.bytes(text, line).end
        };
        let begin = if next_line < offset { next_line } else { begin };
        let end = text.floor_char_boundary(offset.saturating_add(after));
        let part = |bytes: std::ops::Range<usize>| text.get(bytes).unwrap_or_default().to_owned();
        Some(Excerpt {
            path: path.clone(),
            language: language.clone(),
            offset,
            before: part(begin..offset),
            after: part(offset..end),
        })
    }

    /// The open documents besides `uri`, in the order of their URIs.
    pub fn others(&self, uri: &str) -> Vec<Arc<Document>> {
        let mut state = self.state();
        let others = state.open.values_mut().filter(|buffer| buffer.uri != uri);
        let mut others: Vec<_> = others.map(Buffer::snapshot).collect();
        others.sort_by(|one, other| one.uri.cmp(&other.uri));
        others
    }

    /// The document of the file at `real`, a path without symlinks; not what is left of a file that was removed.
    pub fn find(&self, real: &Path) -> Option<Arc<Document>> {
        let found = self.standing(|buffer| buffer.path.as_deref() == Some(real));
        found.into_iter().next()
    }

    /// The document of the file at `real`, a path without symlinks, or of what was there.
    pub(crate) fn of_file(&self, real: &Path) -> Option<Arc<Document>> {
        self.first(|buffer| buffer.path.as_deref() == Some(real))
    }

    /// The document that the editor knows by this path.
    pub(super) fn find_named(&self, name: &Path) -> Option<Arc<Document>> {
        self.first(|buffer| native::file_of(&buffer.uri).as_deref() == Some(name))
    }

    fn first(&self, is_wanted: impl Fn(&Buffer) -> bool) -> Option<Arc<Document>> {
        let mut state = self.state();
        let found = state.open.values_mut().find(|buffer| is_wanted(buffer));
        found.map(Buffer::snapshot)
    }

    /// All open documents, unordered, except those left of files that were removed.
    pub fn all(&self) -> Vec<Arc<Document>> {
        self.standing(|_| true)
    }

    /// Those of the documents, except what is left of removed files. The disk is looked at without the lock.
    fn standing(&self, is_wanted: impl Fn(&Buffer) -> bool) -> Vec<Arc<Document>> {
        let mut found: Vec<_> = self
            .state()
            .open
            .values_mut()
            .filter(|buffer| is_wanted(buffer))
            .map(|buffer| (buffer.snapshot(), buffer.stored.clone()))
            .collect();
        found.retain(|(document, stored)| {
            stored.as_ref() != Some(&document.text) || !document.is_of_removed_file()
        });
        found.into_iter().map(|(document, _)| document).collect()
    }

    /// Waits until `uri` has another version than `version`; `None` if it is closed.
    pub async fn changed(&self, uri: &str, version: i32) -> Option<Arc<Document>> {
        let mut revision = self.0.revision.subscribe();
        while self.state().open.get(uri)?.version == version {
            revision.changed().await.ok()?;
        }
        self.get(uri)
    }

    /// Waits until the document is open.
    pub async fn opened(&self, uri: &str) {
        let mut revision = self.0.revision.subscribe();
        // The sender is part of `self`, so the wait ends with the document or the caller.
        while !self.state().open.contains_key(uri) && revision.changed().await.is_ok() {}
    }

    /// Watches for `uri` becoming `text`, even if only for one version.
    pub(super) fn expect(&self, uri: &str, text: Arc<str>) -> Expectation<'_> {
        self.state().expected.insert(uri.to_owned(), (text, false));
        Expectation {
            documents: self,
            uri: uri.to_owned(),
        }
    }

    /// Acquires the edit lock of the file at `real`.
    pub(super) async fn turn(&self, real: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut edited = lock(&self.0.edited);
            edited.retain(|_, lock| Arc::strong_count(lock) > 1);
            edited.entry(real.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    fn announce(&self) {
        self.0.revision.send_modify(|revision| *revision += 1);
    }
}

impl Document {
    /// The path that the editor uses, in which symlinks are as it names them; `None` if it is not a file.
    pub(super) fn name(&self) -> Option<PathBuf> {
        native::file_of(&self.uri)
    }

    /// Whether its file is not there. Editors keep such documents open.
    fn is_of_removed_file(&self) -> bool {
        let found = self.path.as_ref().map(|path| path.symlink_metadata());
        matches!(found, Some(Err(error)) if is_absent(&error))
    }
}

impl Buffer {
    fn new(uri: &str, version: i32, language: &str, text: String) -> Self {
        let lines = LineIndex::new(&text);
        let (uri, path, language) = (uri.to_owned(), path_of(uri), language.to_owned());
        Self {
            uri,
            path,
            language,
            version,
            text,
            lines,
            stored: None,
            snapshot: None,
        }
    }

    fn is_at(&self, document: &Arc<Document>) -> bool {
        let snapshot = self.snapshot.as_ref();
        snapshot.is_some_and(|snapshot| Arc::ptr_eq(snapshot, document))
    }

    fn change(&mut self, version: i32, changes: &[ContentChange], encoding: Encoding) {
        (self.version, self.snapshot) = (version, None);
        for change in changes {
            let Some(range) = change.range else {
                self.text.clone_from(&change.text);
                self.lines = LineIndex::new(&self.text);
                continue;
            };
            let bytes = self.lines.span(&self.text, range, encoding);
            self.text.replace_range(bytes.clone(), &change.text);
            self.lines.replaced(&self.text, &bytes, change.text.len());
        }
    }

    fn snapshot(&mut self) -> Arc<Document> {
        let Self {
            uri,
            path,
            language,
            version,
            text,
            lines,
            snapshot,
            ..
        } = self;
        let make = || {
            Arc::new(Document {
                uri: uri.clone(),
                path: path.clone(),
                language: language.clone(),
                version: *version,
                text: text.as_str().into(),
                lines: Arc::new(lines.clone()),
            })
        };
        snapshot.get_or_insert_with(make).clone()
    }
}

/// A text that a document is expected to have; the expectation ends when this is dropped.
pub(super) struct Expectation<'a> {
    documents: &'a Documents,
    uri: String,
}

impl Expectation<'_> {
    /// Whether the document had the text, even if it has changed again since.
    pub fn is_met(&self) -> bool {
        self.documents
            .state()
            .expected
            .get(&self.uri)
            .is_some_and(|(_, seen)| *seen)
    }
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        self.documents.state().expected.remove(&self.uri);
    }
}

/// The location of `uri`, with symlinks resolved as far as it exists.
fn path_of(uri: &str) -> Option<PathBuf> {
    let path = native::file_of(uri)?;
    if let Ok(real) = native::canonical(&path) {
        return Some(real);
    }
    // The file may not exist yet, but its folder may.
    native::canonical_folder(&path)
}

/// The text of the regular file at `path`. Blocks.
fn decoded(path: &Path) -> Option<String> {
    let file = path.metadata().ok()?;
    let bytes = (file.is_file() && file.len() <= disk::LIMIT).then(|| std::fs::read(path));
    Some(content::decode(bytes?.ok()?)?.0)
}
