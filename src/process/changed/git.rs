//! Whether commands have run git: git records that in a file of the session's scratch folder, wherever it is started.

use std::path::PathBuf;

use crate::process::sandbox::Scratch;

/// What git has said so far.
#[derive(Debug)]
pub(super) struct GitRuns {
    file: PathBuf,
    size: Option<u64>,
}

impl GitRuns {
    pub fn of(scratch: &Scratch) -> Self {
        let mut runs = Self {
            file: scratch.git_runs(),
            size: None,
        };
        let _before = runs.has_more();
        runs
    }

    /// Whether commands have run git since this was last asked.
    pub fn has_more(&mut self) -> bool {
        let found = self.file.symlink_metadata().ok();
        let size = found.map(|found| found.len());
        std::mem::replace(&mut self.size, size) != size
    }
}
