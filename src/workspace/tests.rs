//! The workspace as tools use it, with real folders and all kinds of editors.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests prepare and check files from outside"
)]

mod crash;
mod editors;
mod files;
mod paths;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::text::Encoding;

/// A workspace in a temporary folder, with a folder beside it that must not be reached.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        std::fs::create_dir(folder.path().join("ws-evil")).unwrap();
        std::fs::write(folder.path().join("ws-evil/secret.txt"), "CANARY").unwrap();
        Self { folder }
    }

    fn ws(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    fn evil(&self) -> PathBuf {
        self.folder.path().join("ws-evil")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.ws().join(name)
    }

    fn uri(&self, name: &str) -> String {
        url::Url::from_file_path(self.path(name))
            .unwrap()
            .to_string()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Files on disk only.
    fn workspace(&self) -> Workspace {
        self.edited(Documents::new(Encoding::Utf16), Arc::new(NoEditor))
    }

    fn edited(&self, documents: Documents, editor: Arc<dyn Editor>) -> Workspace {
        Workspace::new(
            vec![Arc::new(Root::open(&self.ws()).unwrap())],
            documents,
            editor,
        )
    }
}

fn edit(old: &str, new: &str) -> Change {
    Change::Edits(vec![Replacement {
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        count: Some(1),
    }])
}

fn write(content: &str) -> Change {
    Change::Write(content.to_owned())
}

async fn commit(
    workspace: &Workspace,
    name: &str,
    change: &Change,
) -> Result<FileChange, FileError> {
    workspace.commit(&workspace.resolve(name)?, change).await
}

async fn read(workspace: &Workspace, name: &str) -> Result<FileText, FileError> {
    workspace.read(&workspace.resolve(name)?).await
}
