//! The person's files and open buffers: no other module names, reads or changes them.
//!
//! Text comes from the open document if there is one, otherwise from disk through a directory capability.
//!
//! An edit goes through the editor if the file is open, otherwise atomically to disk. The session remembers the hash of
//! what it has read: an edit to text that has changed since is matched against the new text or refused.

mod commit;
pub mod content;
mod copy;
pub mod covered;
pub mod diagnostics;
pub(crate) mod disk;
pub mod documents;
pub mod edit;
pub mod editor;
pub mod error;
mod identity;
pub mod language;
pub(crate) mod mode;
pub(crate) mod native;
mod news;
pub(crate) mod notebook;
pub mod patch;
pub mod path;
pub mod protect;
mod refresh;
mod seen;
pub mod skills;
pub(crate) mod stamp;
pub mod state;
#[cfg(test)]
mod tests;
mod undo;
mod unsaved;
pub mod walk;
pub mod written;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{FileDiff, Stored, distrust_programs_in};
pub use content::LineEnding;
pub use copy::LeftOut;
pub use covered::{Covered, Fate};
use diagnostics::{Report, Scope};
pub(crate) use disk::blocking;
pub use disk::lines;
pub use documents::{ContentChange, Document, Documents, Excerpt};
pub use edit::{Change, Replacement, Strategy};
pub use editor::{Applied, DocumentEdit, Editor, EditorError, McpRequest, NoEditor};
pub use error::FileError;
pub use identity::first_names;
pub use news::News;
pub use path::{PathError, Root, WorkspacePath};
pub use refresh::OnDisk;
use seen::{Known, Seen};
pub use skills::Skill;
pub use state::{StateFolder, lock_file};
pub use unsaved::{CHAT_FILE, Unsaved};
use written::Texts;

/// The files of one session. Cheap to clone; clones share what the session has read.
#[derive(Clone)]
pub struct Workspace(Arc<Shared>);

struct Shared {
    roots: Vec<Arc<Root>>,
    documents: Documents,
    editor: Arc<dyn Editor>,
    seen: Seen,
}

/// A text file as it was read.
#[derive(Debug, Clone)]
pub struct FileText {
    /// The text, without a byte order mark.
    pub text: Arc<str>,
    /// Where it came from.
    pub source: Source,
    /// How it is stored.
    pub stored: Stored,
    /// Whether it has been changed by someone else (such as a formatter on save) since the session last read it.
    pub changed: bool,
}

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The file.
    Disk,
    /// The editor.
    Buffer {
        /// The document's version; `None` if the editor does not count versions (ACP).
        version: Option<i32>,
        /// Whether it differs from the file.
        unsaved: bool,
    },
}

/// The effect of a change, proposed or made.
#[derive(Debug, Clone, Default)]
pub struct FileChange {
    /// The text before; `None` for a file that did not exist.
    pub old_text: Option<Arc<str>>,
    /// The text afterwards.
    pub new_text: Arc<str>,
    /// How the old text was stored.
    pub before: Option<Stored>,
    /// How the new text is stored; `None` if the file was removed.
    pub after: Option<Stored>,
    /// How the text to replace was found; `None` if the whole text was written.
    pub strategy: Option<Strategy>,
    /// 1-based lines of the new text that changed.
    pub lines: Vec<RangeInclusive<usize>>,
    /// Notes for the model, such as that the file had changed since it was read.
    pub notes: Vec<String>,
    /// Why only a part of the text could be written.
    pub failure: Option<FileError>,
}

impl FileChange {
    /// From one text to another.
    pub fn new(old_text: Option<Arc<str>>, new_text: Arc<str>) -> Self {
        Self {
            old_text,
            new_text,
            ..Self::default()
        }
    }

    /// The change of the file at `path`.
    pub fn diff_of(self, path: PathBuf) -> FileDiff {
        FileDiff {
            path,
            old_text: self.old_text,
            new_text: self.new_text,
            before: self.before,
            after: self.after,
        }
    }

    /// Sets how the old text was stored, if the file no longer shows it.
    fn untold(&self) -> Option<Stored> {
        let before = self.before?;
        let is_told = self.after == Some(before) && before.is_told_by(&self.new_text);
        (!is_told).then_some(before)
    }
}

impl Workspace {
    /// A session's view of `roots` (relative names start at the first), of the open `documents` and the `editor`.
    pub fn new(roots: Vec<Arc<Root>>, documents: Documents, editor: Arc<dyn Editor>) -> Self {
        for root in &roots {
            distrust_programs_in(root.real());
        }
        Self(Arc::new(Shared {
            roots,
            documents,
            editor,
            seen: Seen::default(),
        }))
    }

    /// The same files for another reader: what it reads does not count as read by this session.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Arc::new(Shared {
            roots: self.0.roots.clone(),
            documents: self.0.documents.clone(),
            editor: Arc::clone(&self.0.editor),
            seen: self.0.seen.fork(),
        }))
    }

    /// The workspace folders.
    pub fn roots(&self) -> &[Arc<Root>] {
        &self.0.roots
    }

    /// The editor.
    pub fn editor(&self) -> &Arc<dyn Editor> {
        &self.0.editor
    }

    /// The open documents.
    pub fn documents(&self) -> &Documents {
        &self.0.documents
    }

    /// The file called `name`: relative to the first root, absolute inside any root, or a `file://` URI.
    ///
    /// # Errors
    /// The name is empty, contains a NUL, or leads outside every root.
    pub fn resolve(&self, name: &str) -> Result<WorkspacePath, PathError> {
        path::resolve(&self.0.roots, name)
    }

    /// The symbolic link called `name`, which is not followed; `None` if something else is there.
    pub fn resolve_link(&self, name: &str) -> Option<WorkspacePath> {
        path::resolve_link(&self.0.roots, name)
    }

    /// [`Self::resolve`] for a path in the system's encoding (names on disk are bytes).
    ///
    /// # Errors
    /// As for [`Self::resolve`].
    pub fn resolve_path(&self, path: &Path) -> Result<WorkspacePath, PathError> {
        path::resolve_path(&self.0.roots, path)
    }

    /// The open document of a file.
    pub fn document(&self, path: &WorkspacePath) -> Option<Arc<Document>> {
        self.0.documents.find(&path.real())
    }

    /// The text of a file as the model reads it, from the editor if it has the file open, otherwise from disk. The
    /// session remembers that it was read.
    ///
    /// # Errors
    /// The file does not exist, is not text, is too large, or cannot be read.
    pub async fn read(&self, path: &WorkspacePath) -> Result<FileText, FileError> {
        let file = self.peek(path).await?;
        let changed = self.0.seen.known(path, &file.text) == Known::Changed;
        self.0.seen.read(path, &file.text);
        let (target, text) = (path.target().to_owned(), Arc::clone(&file.text));
        let text = if notebook::is_notebook(&target) {
            blocking(move || notebook::as_read(&target, &text).into()).await
        } else {
            text
        };
        Ok(FileText {
            text,
            changed,
            ..file
        })
    }

    /// Changes the file: matches again against the current text, through the editor if it has the file open, otherwise
    /// atomically on disk.
    ///
    /// # Errors
    /// The text to replace is not found exactly once, the change would revert what somebody else wrote since the file
    /// was read, or the editor or the system refuses. The file is unchanged then.
    pub async fn commit(
        &self,
        path: &WorkspacePath,
        change: &Change,
    ) -> Result<FileChange, FileError> {
        let done = commit::commit(self, path, change).await?;
        if done.old_text.is_none() {
            let created = OnDisk {
                path: path.clone(),
                old: None,
                new: done.new_text.clone(),
            };
            self.refresh(vec![created]).await;
        }
        Ok(done)
    }

    /// Whether the session knows the file's current text, if the file exists: unknown text is not overwritten.
    pub async fn knows(&self, path: &WorkspacePath) -> bool {
        match self.peek(path).await {
            Ok(file) => {
                file.text.is_empty()
                    || matches!(
                        self.0.seen.known(path, &file.text),
                        Known::Same | Known::Changed
                    )
            }
            Err(_) => true,
        }
    }

    /// The text of a file as [`Self::read`] returns it, without recording that it was read: for people, not for models.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn peek(&self, path: &WorkspacePath) -> Result<FileText, FileError> {
        let stored = disk::existing_text(path).await;
        if let Some(document) = self.document(path) {
            let (text, version) = (document.text.clone(), Some(document.version));
            let file = FileText::buffered(text, version, stored.ok().flatten());
            if let Source::Buffer { unsaved: false, .. } = file.source {
                self.documents().note_stored(&document);
            }
            return Ok(file);
        }
        // Only regular files are requested: a pipe, for example, would block the editor.
        let stored = stored?;
        let absolute = path.absolute();
        let Some(read) = editor::in_time(self.0.editor.read(&absolute)).await else {
            let reason = "the editor did not return its text; try again".to_owned();
            return Err(FileError::Io {
                verb: "read",
                path: path.display(),
                reason,
            });
        };
        match (read, stored) {
            (Some(text), stored) => Ok(FileText::buffered(text.into(), None, stored)),
            (None, Some((text, stored))) => Ok(FileText {
                text: text.into(),
                source: Source::Disk,
                stored,
                changed: false,
            }),
            (None, None) => Err(FileError::NotFound(path.display())),
        }
    }

    /// Whether the file at `real`, a path without symlinks, has the content that an approved change gave it, or what was
    /// `written` by a person or a tool. Blocks.
    pub fn is_approved(&self, real: &Path, written: &Texts) -> bool {
        let Ok(bytes) = self.resolve_path(real).map(|path| disk::read_now(&path)) else {
            return false;
        };
        let text = bytes.ok().and_then(content::decode);
        text.is_some_and(|(text, _)| {
            let by_others = written.get(real).and_then(Option::as_deref);
            by_others == Some(&*text) || self.0.seen.is_approved(real, &text)
        })
    }

    /// The diagnostics the editor shows for files of the workspace; `None` if it does not report them in time. In a settled scope a
    /// report counts only if it is of the text as it is now.
    pub async fn diagnostics(&self, scope: &Scope) -> Option<Report> {
        let mut report = Report::default();
        let answer = editor::in_time(self.0.editor.diagnostics(scope)).await;
        for shown in answer.flatten()? {
            let Ok(path) = self.resolve_path(&shown.path) else {
                continue;
            };
            let document = || self.document(&path).map(|document| document.version);
            if scope.settled && (shown.version.is_none() || shown.version != document()) {
                report.unknown.push(shown.path);
            } else {
                report.known.push(shown.path);
                report.found.extend(shown.diagnostics);
            }
        }
        Some(report)
    }
}

impl FileText {
    /// The text with invisible characters written out, for text that is read as instructions.
    pub fn marked(&self) -> Cow<'_, str> {
        crate::text::display::marked(&self.text)
    }

    fn buffered(text: Arc<str>, version: Option<i32>, stored: Option<(String, Stored)>) -> Self {
        let unsaved = stored.as_ref().is_none_or(|(saved, _)| **saved != *text);
        Self {
            text,
            source: Source::Buffer { version, unsaved },
            stored: stored.map(|(_, stored)| stored).unwrap_or_default(),
            changed: false,
        }
    }
}
