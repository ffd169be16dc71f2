//! Open documents whose files were changed on the disk, by a command or by undoing one.
//!
//! Most editors read such a file again by themselves. In one that does not, the document would keep showing text that
//! no longer exists anywhere, and hide the new text from everybody. So it gets the new text as an edit.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::{Change, Document, Workspace, WorkspacePath, commit};

/// A file that was changed on the disk.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// Which.
    pub path: WorkspacePath,
    /// Its text before; `None` if it did not exist.
    pub old: Option<Arc<str>>,
    /// Its text now.
    pub new: Arc<str>,
}

impl Workspace {
    /// Updates the open documents of these files from disk. Documents with unsaved text stay as they are.
    pub async fn refresh(&self, files: Vec<OnDisk>) {
        let shows_old = |file: &OnDisk| {
            let document = self.document(&file.path)?;
            let is_old = match &file.old {
                Some(old) => document.text == *old,
                // The document is left over from an earlier file of this name.
                None => document.text != file.new && self.documents().is_stored(&document),
            };
            is_old.then_some(document)
        };
        let stale: Vec<(OnDisk, Arc<Document>)> = files
            .into_iter()
            .filter_map(|file| shows_old(&file).map(|document| (file, document)))
            .collect();
        let deadline = Instant::now() + self.0.editor.rereads_within();
        for (file, document) in stale {
            let _too_slow = timeout_at(
                deadline,
                self.documents().changed(&document.uri, document.version),
            )
            .await;
            if shows_old(&file).is_none() {
                continue;
            }
            let change = Change::Merge {
                from: document.text.clone(),
                to: file.new.clone(),
                stored: None,
            };
            if let Err(error) = commit::commit(self, &file.path, &change).await {
                tracing::warn!(
                    "the editor shows an old text of {}: {error}",
                    file.path.display()
                );
            } else if let Some(document) = self.document(&file.path)
                && document.text == file.new
            {
                self.documents().note_stored(&document);
            }
        }
    }
}
