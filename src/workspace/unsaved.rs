//! Text that is in the editor only: programs that read files do not see it.

use super::{FileText, Source, Workspace, WorkspacePath};

/// How the names of chat files end: tandem itself writes into them, and no program reads them.
pub const CHAT_FILE: &str = ".tandem.md";

impl Workspace {
    /// The files with unsaved changes in the editor, by name; without chat files.
    pub async fn unsaved(&self) -> Vec<WorkspacePath> {
        self.unsaved_documents().await.into_iter().map(|(path, _)| path).collect()
    }

    /// Whether [`Self::save`] can do anything.
    #[must_use]
    pub fn saves(&self) -> bool {
        self.0.editor.saves()
    }

    /// Has the editor save what is unsaved; gives what is unsaved still, because it cannot or would not.
    pub async fn save(&self) -> Vec<WorkspacePath> {
        let unsaved = self.unsaved_documents().await;
        if unsaved.is_empty() {
            return Vec::new();
        }
        let (paths, uris): (Vec<_>, Vec<_>) = unsaved.into_iter().unzip();
        // The answer is not trusted: the files are looked at.
        if self.0.editor.save(uris).await { self.unsaved().await } else { paths }
    }

    async fn unsaved_documents(&self) -> Vec<(WorkspacePath, String)> {
        let mut unsaved = Vec::new();
        for document in self.documents().all() {
            if document.uri.ends_with(CHAT_FILE) {
                continue;
            }
            let path = document.path.as_deref().and_then(|path| self.resolve_path(path).ok());
            let Some(path) = path else { continue };
            if let Ok(FileText { source: Source::Buffer { unsaved: true, .. }, .. }) = self.peek(&path).await {
                unsaved.push((path, document.uri.clone()));
            }
        }
        unsaved.sort_by_cached_key(|(path, _)| path.display());
        unsaved
    }
}
