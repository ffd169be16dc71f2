//! Where the previous versions of a session's files are: a folder, or memory where there is none.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::changes::Images;
use crate::workspace::blocking;

/// From this many bytes in memory on, older turns can no longer be undone.
const MEMORY: usize = 64 << 20;

/// The images of a session.
#[derive(Debug)]
pub(super) struct Store {
    /// Until something is stored.
    folder: Option<PathBuf>,
    images: Option<Arc<Images>>,
    /// Why the folder cannot be used.
    problem: Option<io::Error>,
    is_reported: bool,
}

impl Store {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            images: None,
            problem: None,
            is_reported: false,
        }
    }

    /// The images; the first call opens the folder, and removes outdated ones.
    pub async fn images(&mut self) -> Arc<Images> {
        if let Some(images) = &self.images {
            return Arc::clone(images);
        }
        let images = match self.folder.take() {
            None => Images::default(),
            Some(folder) => {
                let opened = blocking(move || Images::pruned(&folder)).await;
                opened.unwrap_or_else(|error| {
                    self.problem = Some(error);
                    Images::default()
                })
            }
        };
        Arc::clone(self.images.insert(Arc::new(images)))
    }

    /// Forgets all images in memory where they have become too many; returns whether it did.
    pub fn is_full(&mut self) -> bool {
        let is_full = |images: &Arc<Images>| images.bytes_in_memory() > MEMORY;
        let is_full = self.images.as_ref().is_some_and(is_full);
        if is_full && let Some(images) = &self.images {
            images.forget();
        }
        is_full
    }

    /// The notice shown the first time previous versions are kept only in memory.
    pub fn notice(&mut self, problem: Option<io::Error>) -> Option<String> {
        let error = self.problem.take().or(problem)?;
        let is_known = std::mem::replace(&mut self.is_reported, true);
        (!is_known).then(|| {
            format!(
                "previous versions cannot be stored ({error}); undo works only until tandem exits"
            )
        })
    }
}
