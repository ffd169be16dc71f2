//! Text that exists only in the editor, invisible to programs that read files.

use std::sync::Arc;

use super::{
    FileChange, FileError, FileText, Source, Workspace, WorkspacePath, blocking, content, disk,
};
use crate::text::standing;

/// The ending of chat files' names: tandem writes into them, and no program reads them.
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

impl Unsaved {
    /// The file as read by a program that does not see the unsaved text. Blocks.
    ///
    /// # Errors
    /// It is not text, or cannot be read.
    pub fn saved(self) -> Result<Self, FileError> {
        let bytes = disk::read_now(&self.path)?;
        let (text, _) = content::decode(bytes.clone())
            .ok_or_else(|| FileError::Binary(self.path.display(), bytes.len() as u64))?;
        Ok(Self {
            text: text.into(),
            bytes,
            ..self
        })
    }
}

impl Workspace {
    /// Turns `bytes`, written by a program that had read `unsaved`, into an edit of the document. Other changes made to
    /// the document meanwhile stay.
    ///
    /// # Errors
    /// They are not text, or conflict with what else the document has.
    pub async fn take_over(
        &self,
        unsaved: &Unsaved,
        bytes: Vec<u8>,
    ) -> Result<FileChange, FileError> {
        let size = bytes.len() as u64;
        let (text, _) = content::decode(bytes)
            .ok_or_else(|| FileError::Binary(unsaved.path.display(), size))?;
        let (now, new, read) = (
            self.peek(&unsaved.path).await?.text,
            text.clone(),
            Arc::clone(&unsaved.text),
        );
        if !blocking(move || standing(&new, &read, &now))
            .await
            .touched
            .is_empty()
        {
            return Err(FileError::Changed(unsaved.path.display()));
        }
        let (read, new) = (Arc::clone(&unsaved.text), Some(text.into()));
        self.merge(&unsaved.path, read, new, None).await
    }

    /// Asks the editor to save these; returns those that are still unsaved afterwards.
    pub async fn save(&self, unsaved: Vec<Unsaved>) -> Vec<Unsaved> {
        if unsaved.is_empty() {
            return unsaved;
        }
        let uris: Vec<String> = unsaved.iter().map(|unsaved| unsaved.uri.clone()).collect();
        // The answer is not trusted: the files are checked.
        if !self.0.editor.save(uris.clone()).await {
            return unsaved;
        }
        let mut still = self.unsaved_texts().await;
        still.retain(|unsaved| uris.contains(&unsaved.uri));
        still
    }

    /// The texts with unsaved changes in the editor, by name, except chat files and documents of files that are not text.
    pub async fn unsaved_texts(&self) -> Vec<Unsaved> {
        let mut unsaved = Vec::new();
        for document in self.documents().all() {
            if document.uri.ends_with(CHAT_FILE) {
                continue;
            }
            let path = document
                .path
                .as_deref()
                .and_then(|path| self.resolve_path(path).ok());
            let Some(path) = path else { continue };
            if let Ok(FileText {
                source: Source::Buffer { unsaved: true, .. },
                text,
                stored,
                ..
            }) = self.peek(&path).await
            {
                // A command replaced the file with something other than text, and the editor has not read it again; or
                // its text is not the file's.
                let is_binary = matches!(disk::text(&path).await, Err(FileError::Binary(..)));
                if is_binary || stored.is_misread_as(&text) {
                    continue;
                }
                let bytes = stored
                    .encode(&text)
                    .map_or_else(|_| text.as_bytes().to_vec(), std::borrow::Cow::into_owned);
                unsaved.push(Unsaved {
                    path,
                    bytes,
                    uri: document.uri.clone(),
                    text,
                });
            }
        }
        unsaved.sort_by_cached_key(|unsaved| unsaved.path.display());
        unsaved
    }
}
