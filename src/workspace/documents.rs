//! The documents the editor has open: an exact, versioned mirror of its buffers.
//!
//! The server's task alone writes; anyone reads. A reader gets an immutable snapshot, so that text and version always
//! belong together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

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
        Self(Arc::new(Shared { encoding, open: RwLock::default(), revision: watch::Sender::new(0) }))
    }

    /// The encoding negotiated with the editor.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.0.encoding
    }

    /// `textDocument/didOpen`.
    pub fn open(&self, uri: &str, version: i32, language: &str, text: &str) {
        let document = Document {
            uri: uri.to_owned(),
            path: path_of(uri),
            language: language.to_owned(),
            version,
            text: text.into(),
            lines: Arc::new(LineIndex::new(text)),
        };
        self.update(|open| open.insert(uri.to_owned(), Arc::new(document)));
    }

    /// `textDocument/didChange`: the changes one after the other, all or none seen by readers.
    pub fn change(&self, uri: &str, version: i32, changes: &[ContentChange]) {
        let Some(document) = self.get(uri) else {
            return;
        };
        let mut document = Document::clone(&document);
        document.version = version;
        let mut text = document.text.to_string();
        for change in changes {
            text = crate::text::apply_change(&text, change.range, &change.text, self.0.encoding);
        }
        document.lines = Arc::new(LineIndex::new(&text));
        document.text = text.into();
        self.update(|open| open.insert(uri.to_owned(), Arc::new(document)));
    }

    /// `textDocument/didClose`.
    pub fn close(&self, uri: &str) {
        self.update(|open| open.remove(uri));
    }

    /// The document the editor calls `uri`.
    #[must_use]
    pub fn get(&self, uri: &str) -> Option<Arc<Document>> {
        self.0.open.read().expect("no writer panics").get(uri).cloned()
    }

    /// The document of the file at `real`, a path without symlinks.
    #[must_use]
    pub fn find(&self, real: &Path) -> Option<Arc<Document>> {
        let open = self.0.open.read().expect("no writer panics");
        open.values().find(|document| document.path.as_deref() == Some(real)).cloned()
    }

    /// All open documents, in no order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Document>> {
        self.0.open.read().expect("no writer panics").values().cloned().collect()
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

    fn update<T>(&self, write: impl FnOnce(&mut HashMap<String, Arc<Document>>) -> T) {
        write(&mut self.0.open.write().expect("no writer panics"));
        self.0.revision.send_modify(|revision| *revision += 1);
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
    path.canonicalize().ok().or(Some(path))
}
