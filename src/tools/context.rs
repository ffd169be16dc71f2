//! What a call works with, and what it may touch once that is decided.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::process::Shell;
use super::{CommandLine, Live, Preview, ToolError};
use crate::text::Redactor;
use crate::workspace::{Workspace, WorkspacePath};

/// What a tool works with. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// The files.
    pub workspace: Workspace,
    /// Cancelled when the person cancels the turn, or the call alone.
    pub cancel: CancellationToken,
    /// The commands of the session.
    pub shell: Shell,
    /// What the call says while it runs.
    pub live: Live,
    /// What no result may hold.
    pub secrets: Redactor,
    /// What was shown; `None` until it is decided that the call may do this and nothing else.
    pub decided: Option<Arc<Preview>>,
    /// How many tokens the model reads at once, where that is known: a result takes a fraction of it.
    pub window: Option<u64>,
    /// What the person answered, where the call is a question to them.
    pub answer: Option<String>,
}

impl ToolContext {
    /// What a call works with before anything is decided about it, and without a session around it.
    #[must_use]
    pub fn new(workspace: Workspace, cancel: CancellationToken) -> Self {
        Self {
            workspace,
            cancel,
            shell: Shell::default(),
            live: Live::default(),
            secrets: Redactor::default(),
            decided: None,
            window: None,
            answer: None,
        }
    }

    /// How much of a result of up to `most` bytes the model has room for: an eighth of its window, at four bytes a token.
    #[must_use]
    pub fn room(&self, most: usize) -> usize {
        let eighth = self.window.and_then(|window| usize::try_from(window / 2).ok());
        eighth.map_or(most, |eighth| most.min(eighth.max(2000)))
    }

    /// The file called `name`: once it is decided that the call may run, only one it was decided about.
    ///
    /// # Errors
    /// When it is outside the workspace, or leads elsewhere than when it was shown.
    pub fn resolve(&self, name: &str) -> Result<WorkspacePath, ToolError> {
        let path = self.workspace.resolve(name)?;
        self.check(&path)?;
        Ok(path)
    }

    /// What [`Self::resolve`] does for a path that is resolved already.
    fn check(&self, path: &WorkspacePath) -> Result<(), ToolError> {
        let real = path.real();
        if self.decided.as_ref().is_none_or(|decided| decided.targets.contains(&real)) {
            return Ok(());
        }
        let (name, target) = (path.display(), path.target().display());
        Err(ToolError(format!(
            "{name} leads to {target} now, which is not what was shown; nothing was done. Try again"
        )))
    }

    /// Whether `line` is the command line that was decided about, where and as held as it was shown.
    ///
    /// # Errors
    /// When it is another one.
    pub fn check_command(&self, line: &CommandLine) -> Result<(), ToolError> {
        if self.decided.as_ref().is_none_or(|decided| decided.command.as_deref() == Some(line)) {
            return Ok(());
        }
        Err(ToolError("the command would run otherwise than it was shown; nothing was done. Try again".to_owned()))
    }
}
