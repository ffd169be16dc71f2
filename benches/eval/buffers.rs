//! The editor of an evaluation: open texts in memory, changed as an editor changes them, saved by nobody.

use std::path::Path;

use anyhow::Context as _;
use futures_util::future::{BoxFuture, FutureExt as _, ready};

use super::task::{Task, write};
use tandem::text::Encoding;
use tandem::workspace::{Applied, ContentChange, DocumentEdit, Documents, Editor, EditorError};

/// Takes edits into the documents.
pub(super) struct Buffers(pub Documents);

impl Buffers {
    /// What `task` has open in `folder`.
    pub fn of(task: &Task, folder: &Path) -> anyhow::Result<Documents> {
        let documents = Documents::new(Encoding::Utf8);
        for (name, text) in &task.unsaved {
            let uri = url::Url::from_file_path(folder.join(name))
                .ok()
                .context("a folder has a name")?;
            documents.open(uri.as_str(), 1, "", text);
        }
        Ok(documents)
    }
}

/// Writes the open texts of `folder` below `to`, for the check.
pub(super) fn spread(documents: &Documents, folder: &Path, to: &Path) -> anyhow::Result<()> {
    for document in documents.all() {
        let path = document
            .path
            .as_deref()
            .and_then(|path| path.strip_prefix(folder).ok());
        if let Some(path) = path {
            write(&to.join(path), &document.text)?;
        }
    }
    Ok(())
}

impl Editor for Buffers {
    fn apply(&self, edit: DocumentEdit) -> BoxFuture<'_, Result<Applied, EditorError>> {
        // From the last to the first, so that none moves another.
        let change = |(range, text)| ContentChange {
            range: Some(range),
            text,
        };
        let changes: Vec<_> = edit.hunks.into_iter().rev().map(change).collect();
        let version = edit.version.unwrap_or_default() + 1;
        self.0.change(&edit.uri, version, &changes);
        ready(Ok(Applied::Yes)).boxed()
    }
}
