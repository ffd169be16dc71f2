//! What the model can do: one file a tool ([`TypedTool`]), one line in [`all`].
//!
//! A tool first says what it is going to do ([`Tool::preview`]: title, places, diff: what the person is asked about)
//! and then does it ([`Tool::run`], which looks again: what was shown is what happens). An error is an answer to the
//! model, in words that let its next try succeed. Front ends key on [`ToolKind`], never on a name.

mod apply_patch;
mod arguments;
mod changes;
mod describe;
mod diagnostics;
mod diff;
mod edit_file;
mod files;
mod glob;
mod grep;
mod heredoc;
mod list_files;
mod live;
pub mod mcp;
mod names;
pub mod partial;
mod pattern;
pub mod process;
mod read_file;
mod resolve;
mod run_command;
mod skill;
mod typed;
mod update_plan;
mod write_file;

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::diagnostics::problems;
pub use self::grep::symbols::{Symbol, symbols};
pub use self::list_files::tree;
pub use self::live::Live;
use self::process::{Dialect, Shell};
pub use self::resolve::{Resolved, accept, resolve, tool};
pub use self::skill::load_skill;
pub use self::typed::TypedTool;
pub use crate::domain::{
    CommandLine, FileDiff, Location, Picture, PlanEntry, PlanPriority, PlanStatus, Preview, ToolKind, Undo,
};
pub use crate::text::Redactor;
pub use crate::text::display::is_deceptive;
use crate::workspace::{ChangeSet, FileError, PathError, Skill, Workspace, WorkspacePath};

/// How a model is used to change files: by one of two tools, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// `edit_file`: old and new text.
    Replacements,
    /// `apply_patch`: the V4A format.
    Patches,
}

/// The built-in tools, in the order every request lists them (a request's beginning never changes).
#[must_use]
pub fn all(editing: Editing) -> Arc<[Arc<dyn Tool>]> {
    written_for(editing, Dialect::Posix)
}

/// [`all`], with commands in this language.
fn written_for(editing: Editing, dialect: Dialect) -> Arc<[Arc<dyn Tool>]> {
    let edit: Arc<dyn Tool> = match editing {
        Editing::Replacements => Arc::new(edit_file::EditFile),
        Editing::Patches => Arc::new(apply_patch::ApplyPatch),
    };
    Arc::new([
        Arc::new(read_file::ReadFile),
        Arc::new(list_files::ListFiles),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        edit,
        Arc::new(write_file::WriteFile),
        Arc::new(run_command::RunCommand::new(dialect)),
        Arc::new(update_plan::UpdatePlan),
    ])
}

/// The tools that can be of use in `workspace`: [`all`], and what only some editors can do and only some people need.
#[must_use]
pub fn offered(
    editing: Editing,
    dialect: Dialect,
    workspace: &Workspace,
    skills: &Arc<[Skill]>,
) -> Arc<[Arc<dyn Tool>]> {
    let diagnostics = workspace.knows_diagnostics().then(|| Arc::new(diagnostics::Diagnostics) as Arc<dyn Tool>);
    let skill = (!skills.is_empty()).then(|| Arc::new(skill::LoadSkill::new(Arc::clone(skills))) as Arc<dyn Tool>);
    written_for(editing, dialect).iter().cloned().chain(diagnostics).chain(skill).collect()
}

/// The tool that runs commands: rules about it are patterns of words.
pub const COMMAND: &str = <run_command::RunCommand as TypedTool>::NAME;

/// The name of the tool that changes parts of files.
#[must_use]
pub fn edit_name(tools: &[Arc<dyn Tool>]) -> Option<&str> {
    tools.iter().find(|tool| tool.editing().is_some()).map(|tool| tool.name())
}

/// The tool called `name`.
#[must_use]
pub fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    tools.iter().find(|tool| tool.name() == name)
}

/// What a tool works on; an error is an answer to the model.
pub type Pending<'a, T> = BoxFuture<'a, Result<T, ToolError>>;

/// A tool of the agent.
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;
    /// What it does and when to use it, for the model.
    fn description(&self) -> &str;
    /// JSON Schema of the arguments, derived from their type.
    fn parameters(&self) -> Value;
    /// Its kind.
    fn kind(&self) -> ToolKind;
    /// What permission rules about it are written with: its name, unless it is another way to do what a tool does.
    fn rule_name(&self) -> &str {
        self.name()
    }
    /// How it changes parts of files, where that is what it is for.
    fn editing(&self) -> Option<Editing> {
        None
    }
    /// The plan these arguments set.
    fn plan(&self, _arguments: &Value) -> Option<Vec<PlanEntry>> {
        None
    }
    /// What a call with these arguments is going to do; an error when it cannot work, so that nobody is asked about it.
    fn preview<'a>(&'a self, context: &'a ToolContext, arguments: &'a Value) -> Pending<'a, Preview>;
    /// What can be shown already of a call whose arguments still stream ([`partial::complete`] reads them); `None` while
    /// there is nothing worth showing. As [`Self::preview`] unless a tool can do better.
    fn sketch<'a>(&'a self, context: &'a ToolContext, arguments: &'a Value) -> BoxFuture<'a, Option<Preview>> {
        async { self.preview(context, arguments).await.ok() }.boxed()
    }
    /// Does it.
    fn run<'a>(&'a self, context: &'a ToolContext, arguments: &'a Value) -> Pending<'a, ToolOutput>;
}

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
        }
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

/// What a call gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// What really changed (it may differ from the preview when the person typed meanwhile).
    pub diffs: Vec<FileDiff>,
    /// All that a command changed; the text files of it are in `diffs` too, unless there are too many to show.
    pub changes: Option<Arc<ChangeSet>>,
    /// Where it looked or wrote.
    pub locations: Vec<Location>,
    /// What it shows to a model that sees.
    pub images: Vec<Picture>,
    /// The plan, when the tool sets it.
    pub plan: Option<Vec<PlanEntry>>,
    /// What the person has to know besides.
    pub notices: Vec<String>,
    /// Whether the call failed although it changed something, such as a command that was killed.
    pub failed: bool,
}

/// Why a call failed, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<FileError> for ToolError {
    fn from(error: FileError) -> Self {
        Self(error.to_string())
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests;
