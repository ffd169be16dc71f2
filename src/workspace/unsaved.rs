//! Text that is in the editor only: programs that read files do not see it.

use std::sync::Arc;

use super::{FileChange, FileError, FileText, Source, Workspace, WorkspacePath, content};

/// How the names of chat files end: tandem itself writes into them, and no program reads them.
pub const CHAT_FILE: &str = ".tandem.md";

/// The text of an open document that is not on the disk.
#[derive(Debug, Clone)]
pub struct Unsaved {
    /// The file.
    pub path: WorkspacePath,
    /// The text, in the file's own encoding.
    pub bytes: Vec<u8>,
    uri: String,
    text: Arc<str>,
}

impl Workspace {
    /// The files with unsaved changes in the editor, by name; without chat files.
    pub async fn unsaved(&self) -> Vec<WorkspacePath> {
        self.unsaved_texts().await.into_iter().map(|unsaved| unsaved.path).collect()
    }

    /// Makes `bytes`, which a program wrote in the place of an unsaved text, an edit of the document. What was typed
    /// meanwhile stays.
    ///
    /// # Errors
    /// When they are no text, or change what was typed over meanwhile.
    pub async fn take_over(&self, unsaved: &Unsaved, bytes: Vec<u8>) -> Result<FileChange, FileError> {
        let size = bytes.len() as u64;
        let (text, _) = content::decode(bytes).ok_or_else(|| FileError::Binary(unsaved.path.display(), size))?;
        let (strategy, lines, notes) = (None, Vec::new(), Vec::new());
        // What takes the old text back from the new one, the other way round.
        let change =
            FileChange { old_text: Some(text.into()), new_text: Arc::clone(&unsaved.text), strategy, lines, notes };
        self.undo(&unsaved.path, &change).await
    }

    /// Whether [`Self::save`] can do anything.
    #[must_use]
    pub fn saves(&self) -> bool {
        self.0.editor.saves()
    }

    /// Has the editor save what is unsaved; gives what is unsaved still, because it cannot or would not.
    pub async fn save(&self) -> Vec<Unsaved> {
        let unsaved = self.unsaved_texts().await;
        if unsaved.is_empty() {
            return Vec::new();
        }
        let uris = unsaved.iter().map(|unsaved| unsaved.uri.clone()).collect();
        // The answer is not trusted: the files are looked at.
        if self.0.editor.save(uris).await { self.unsaved_texts().await } else { unsaved }
    }

    /// The texts with unsaved changes in the editor, by name; without chat files.
    pub async fn unsaved_texts(&self) -> Vec<Unsaved> {
        let mut unsaved = Vec::new();
        for document in self.documents().all() {
            if document.uri.ends_with(CHAT_FILE) {
                continue;
            }
            let path = document.path.as_deref().and_then(|path| self.resolve_path(path).ok());
            let Some(path) = path else { continue };
            if let Ok(FileText { source: Source::Buffer { unsaved: true, .. }, text, format, .. }) =
                self.peek(&path).await
            {
                let bytes =
                    format.encode(&text).map_or_else(|_| text.as_bytes().to_vec(), std::borrow::Cow::into_owned);
                unsaved.push(Unsaved { path, bytes, uri: document.uri.clone(), text });
            }
        }
        unsaved.sort_by_cached_key(|unsaved| unsaved.path.display());
        unsaved
    }
}
