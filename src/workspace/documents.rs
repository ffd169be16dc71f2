//! The documents the editor has open: an exact, versioned mirror of its buffers.
//!
//! The server's task alone writes; anyone reads. A reader gets an immutable snapshot, so that text and version always
//! belong together.

#![expect(
    clippy::disallowed_methods,
    reason = "a buffer mirrors whatever file the editor has, also outside the workspace"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::watch;

use crate::text::{Encoding, LineIndex, Range};

/// The open documents. Cheap to clone; clones share.
#[derive(Clone)]
pub struct Documents(Arc<Shared>);

struct Shared {
    encoding: Encoding,
    open: RwLock<HashMap<String, Arc<Document>>>,
    /// Counts changes, so that a reader can wait for the next.
    revision: watch::Sender<u64>,
    /// Texts that an edit under way should lead to, and whether they were seen.
    expected: Mutex<HashMap<String, (Arc<str>, bool)>>,
    /// One edit at a time for each file, whatever session it comes from.
    edited: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// An open document at one version.
#[derive(Debug, Clone)]
pub struct Document {
    /// As the editor names it.
    pub uri: String,
    /// Where it is, symlinks resolved; `None` for a document that is no file (`untitled:`).
    pub path: Option<PathBuf>,
    /// The editor's language id; empty when it was never opened.
    pub language: String,
    /// The version the editor counts.
    pub version: i32,
    /// The text.
    pub text: Arc<str>,
    /// Its lines.
    pub lines: Arc<LineIndex>,
}

impl Document {
    fn new(uri: &str, version: i32, language: &str, text: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            path: path_of(uri),
            language: language.to_owned(),
            version,
            text: text.into(),
            lines: Arc::new(LineIndex::new(text)),
        }
    }
}

/// A change as `textDocument/didChange` brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentChange {
    /// What is replaced; everything when `None`.
    pub range: Option<Range>,
    /// The new text.
    pub text: String,
}

impl Documents {
    /// No documents; ranges are counted in `encoding`.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        Self(Arc::new(Shared {
            encoding,
            open: RwLock::default(),
            revision: watch::Sender::new(0),
            expected: Mutex::default(),
            edited: Mutex::default(),
        }))
    }

    /// The encoding negotiated with the editor.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.0.encoding
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, uri: &str, version: i32, language: &str, text: &str) {
        self.put(Document::new(uri, version, language, text));
    }

    /// `textDocument/didChange`: the changes one after the other, all or none seen by readers.
    ///
    /// A document that was never opened (Helix 25.01 does that to files an edit made) starts as it is on disk.
    pub fn change(&self, uri: &str, version: i32, changes: &[ContentChange]) {
        let mut next = self.get(uri).map_or_else(
            || {
                let text = path_of(uri).and_then(|path| std::fs::read_to_string(path).ok());
                Document::new(uri, version, "", &text.unwrap_or_default())
            },
            |document| Document::clone(&document),
        );
        next.version = version;
        let mut text = String::from(&*next.text);
        let lines = Arc::make_mut(&mut next.lines);
        for change in changes {
            let Some(range) = change.range else {
                text.clone_from(&change.text);
                *lines = LineIndex::new(&text);
                continue;
            };
            let bytes = lines.span(&text, range, self.0.encoding);
            text.replace_range(bytes.clone(), &change.text);
            lines.replaced(&text, &bytes, change.text.len());
        }
        next.text = text.into();
        if let Some((expected, seen)) = self.expected().get_mut(uri) {
            *seen |= **expected == *next.text;
        }
        self.put(next);
    }

    /// `textDocument/didClose`.
    pub fn close(&self, uri: &str) {
        self.update(|open| open.remove(uri));
    }

    /// The document the editor calls `uri`.
    #[must_use]
    pub fn get(&self, uri: &str) -> Option<Arc<Document>> {
        self.0.open.read().unwrap_or_else(PoisonError::into_inner).get(uri).cloned()
    }

    /// The document of the file at `real`, a path without symlinks.
    #[must_use]
    pub fn find(&self, real: &Path) -> Option<Arc<Document>> {
        let open = self.0.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().find(|document| document.path.as_deref() == Some(real)).cloned()
    }

    /// All open documents, in no order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Document>> {
        self.0.open.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Waits until `uri` has another version than `version`; `None` when it is closed.
    pub async fn changed(&self, uri: &str, version: i32) -> Option<Arc<Document>> {
        let mut revision = self.0.revision.subscribe();
        loop {
            revision.mark_unchanged();
            let document = self.get(uri)?;
            if document.version != version {
                return Some(document);
            }
            revision.changed().await.ok()?;
        }
    }

    /// Looks out for `uri` becoming `text`, if only for one version.
    pub(super) fn expect(&self, uri: &str, text: Arc<str>) -> Expectation<'_> {
        self.expected().insert(uri.to_owned(), (text, false));
        Expectation { documents: self, uri: uri.to_owned() }
    }

    /// The turn to change the file at `real`: waits until nobody else does.
    pub(super) async fn turn(&self, real: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut edited = self.0.edited.lock().unwrap_or_else(PoisonError::into_inner);
            edited.retain(|_, lock| Arc::strong_count(lock) > 1);
            edited.entry(real.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }

    fn expected(&self) -> MutexGuard<'_, HashMap<String, (Arc<str>, bool)>> {
        self.0.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, document: Document) {
        self.update(|open| open.insert(document.uri.clone(), Arc::new(document)));
    }

    fn update<T>(&self, write: impl FnOnce(&mut HashMap<String, Arc<Document>>) -> T) {
        write(&mut self.0.open.write().unwrap_or_else(PoisonError::into_inner));
        self.0.revision.send_modify(|revision| *revision += 1);
    }
}

/// A text that a document should come to have; forgotten when dropped.
pub(super) struct Expectation<'a> {
    documents: &'a Documents,
    uri: String,
}

impl Expectation<'_> {
    /// Whether it had it, even if it has changed again since.
    pub(super) fn is_met(&self) -> bool {
        self.documents.expected().get(&self.uri).is_some_and(|(_, seen)| *seen)
    }
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        self.documents.expected().remove(&self.uri);
    }
}

/// Where `uri` is, symlinks resolved as far as it exists.
impl Documents {
    /// Resolves once the document is open.
    pub async fn opened(&self, uri: &str) {
        let mut revision = self.0.revision.subscribe();
        // The sender lives in `self`, so the wait ends with the document or with whoever waits.
        while self.get(uri).is_none() && revision.changed().await.is_ok() {}
    }
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let path = url::Url::parse(uri).ok()?.to_file_path().ok()?;
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A file that is not there yet: its folder may be.
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    Some(folder.zip(path.file_name()).map_or_else(|| path.clone(), |(folder, name)| folder.join(name)))
}
