//! The context of a tool call: what it works with, and which files it may touch once it is approved.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{CommandLine, Live, Pending, Person, Preview, ToolError, ToolOutput};
use crate::process::Shell;
use crate::text::Redactor;
use crate::workspace::{Workspace, WorkspacePath};

/// Answers questions about the code.
pub trait Explorer: Send + Sync {
    /// Answers one, which is shown as this line.
    fn explore<'a>(
        &'a self,
        context: &'a ToolContext,
        line: String,
        question: String,
    ) -> Pending<'a, ToolOutput>;
}

/// Files that can be read only if the call names them: no search shows their lines.
#[derive(Clone, Default)]
pub struct Withheld(Option<Arc<Test>>);

type Test = dyn Fn(&Workspace, &Path, bool) -> bool + Send + Sync;

impl Withheld {
    /// The files for which `test` holds, by their absolute paths, and whether the search is one of this file alone.
    pub fn new(test: impl Fn(&Workspace, &Path, bool) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(test)))
    }

    /// Whether the file with this absolute path is among them, even if the call names it.
    pub(super) fn has(&self, workspace: &Workspace, path: &Path, is_named: bool) -> bool {
        let test = self.0.as_ref();
        test.is_some_and(|test| test(workspace, path, is_named))
    }
}

/// The context of a tool call. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// The files.
    pub workspace: Workspace,
    /// Cancelled when the person cancels the turn, or only this call.
    pub cancel: CancellationToken,
    /// The session's commands.
    pub shell: Shell,
    /// The call's output while it runs.
    pub live: Live,
    /// Secrets that no result may contain.
    pub secrets: Redactor,
    /// What the person's rules keep out of searches.
    pub withheld: Withheld,
    /// The approved preview; `None` until the call was approved to do exactly this.
    pub decided: Option<Arc<Preview>>,
    /// The model's context window in tokens, if known: a result may take a fraction of it.
    pub window: Option<u64>,
    /// The person's answer, if the call is a question.
    pub answer: Option<String>,
    /// The person, for questions that come up while the call runs.
    pub person: Person,
    /// The call's id.
    pub call_id: String,
    /// Runs sub-agents for `explore`.
    pub explorer: Option<Arc<dyn Explorer>>,
}

impl ToolContext {
    /// A context before approval and without a session.
    pub fn new(workspace: Workspace, cancel: CancellationToken) -> Self {
        Self {
            workspace,
            cancel,
            shell: Shell::default(),
            live: Live::default(),
            secrets: Redactor::default(),
            withheld: Withheld::default(),
            decided: None,
            window: None,
            answer: None,
            person: Person::default(),
            call_id: String::new(),
            explorer: None,
        }
    }

    /// How much of a result of up to `most` bytes the model has room for: an eighth of its window, at four bytes a token.
    pub fn room(&self, most: usize) -> usize {
        let eighth = self
            .window
            .and_then(|window| usize::try_from(window / 2).ok());
        eighth.map_or(most, |eighth| most.min(eighth.max(2000)))
    }

    /// Whether the lines of a file may be shown although nobody was asked, as in the results of a search.
    pub(super) fn shows(&self, path: &WorkspacePath) -> bool {
        let names = [path.real(), path.absolute()];
        !path.is_secret()
            && !names
                .iter()
                .any(|name| self.withheld.has(&self.workspace, name, false))
    }

    /// The file called `name`; once the call is approved, only a file it was approved for.
    ///
    /// # Errors
    /// It is outside the workspace, or resolves elsewhere than when it was shown.
    pub fn resolve(&self, name: &str) -> Result<WorkspacePath, ToolError> {
        let path = self.workspace.resolve(name)?;
        self.check(&path)?;
        Ok(path)
    }

    /// [`Self::resolve`] for a call that removes or moves what is there: a symbolic link itself, not its target.
    ///
    /// # Errors
    /// As for [`Self::resolve`].
    pub fn resolve_itself(&self, name: &str) -> Result<WorkspacePath, ToolError> {
        let Some(link) = self.workspace.resolve_link(name) else {
            return self.resolve(name);
        };
        self.check(&link)?;
        Ok(link)
    }

    /// [`Self::resolve`] for a resolved path.
    fn check(&self, path: &WorkspacePath) -> Result<(), ToolError> {
        let real = path.real();
        if self
            .decided
            .as_ref()
            .is_none_or(|decided| decided.targets.contains(&real))
        {
            return Ok(());
        }
        let (name, target) = (path.display(), path.target().display());
        Err(ToolError(format!(
            "{name} now resolves to {target}, which is not what was shown; nothing was done. Try again"
        )))
    }

    /// Checks that `line` is the approved command line, with the same directory and sandbox.
    ///
    /// # Errors
    /// It differs.
    pub fn check_command(&self, line: &CommandLine) -> Result<(), ToolError> {
        if self
            .decided
            .as_ref()
            .is_none_or(|decided| decided.command.as_deref() == Some(line))
        {
            return Ok(());
        }
        Err(ToolError(
            "the command would run differently than shown; nothing was done. Try again".to_owned(),
        ))
    }
}
