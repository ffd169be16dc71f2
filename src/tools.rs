//! The tools of the model: one file per tool ([`TypedTool`]), one line in [`all`].
//!
//! A tool first describes a call ([`Tool::preview`]: title, locations, diff, which are shown for approval) and then
//! runs it ([`Tool::run`], which checks again that it does what was shown).
//!
//! An error is an answer to the model, worded so that its next attempt succeeds. Front ends key on [`ToolKind`], never
//! on a name.

mod apply_patch;
mod arguments;
mod ask_user;
mod changes;
mod code;
mod context;
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
mod planned;
pub mod process;
mod read_file;
mod resolve;
mod run_command;
mod skill;
mod typed;
mod update_plan;
mod write_file;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::context::ToolContext;
pub use self::diagnostics::problems;
pub use self::grep::symbols::{Symbol, symbols};
pub use self::list_files::tree;
pub use self::live::Live;
use self::process::Dialect;
pub use self::resolve::{Resolved, accept, resolve, tool};
pub use self::skill::load_skill;
pub use self::typed::TypedTool;
pub use crate::text::Redactor;
pub use crate::text::display::is_deceptive;
use crate::workspace::{ChangeSet, FileError, PathError, Skill, Workspace};

/// How a model edits files: with one of two tools, never both.
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
        Arc::new(ask_user::AskUser),
    ])
}

/// The tools useful in `workspace`: [`all`], plus those that only some editors or people need.
#[must_use]
pub fn offered(
    editing: Editing,
    dialect: Dialect,
    workspace: &Workspace,
    skills: &Arc<[Skill]>,
) -> Arc<[Arc<dyn Tool>]> {
    let diagnostics = workspace.knows_diagnostics().then(|| Arc::new(diagnostics::Diagnostics) as Arc<dyn Tool>);
    let code = Some(workspace.operations()).filter(|operations| !operations.is_empty());
    let code = code.map(|operations| Arc::new(code::Code::new(operations)) as Arc<dyn Tool>);
    let skill = (!skills.is_empty()).then(|| Arc::new(skill::LoadSkill::new(Arc::clone(skills))) as Arc<dyn Tool>);
    written_for(editing, dialect).iter().cloned().chain(diagnostics).chain(code).chain(skill).collect()
}

/// The tool called `name`.
#[must_use]
pub fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    tools.iter().find(|tool| tool.name() == name)
}

/// The kind of a tool (as in the Agent Client Protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks at files.
    Read,
    /// Changes files.
    Edit,
    /// Finds files or text.
    Search,
    /// Runs something.
    Execute,
    /// Organizes thoughts.
    Think,
    /// Anything else.
    Other,
}

impl ToolKind {
    /// Whether calls of this kind change nothing, so that they may run in parallel and in every mode.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think)
    }
}

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
    /// The tool that carries out a call with these arguments, where that is not this one.
    fn meant(&self, arguments: &Value) -> Option<Arc<dyn Tool>> {
        let _ = arguments;
        None
    }
    /// What a call with these arguments is going to do; an error if it cannot work, so that nobody is asked to approve
    /// it.
    fn preview<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Preview, ToolError>>;
    /// A preview of a call whose arguments still stream ([`partial::complete`] parses them); `None` while there is
    /// nothing worth showing. The same as [`Self::preview`] unless a tool can do better.
    fn sketch<'a>(&'a self, context: &'a ToolContext, arguments: &'a Value) -> BoxFuture<'a, Option<Preview>> {
        async { self.preview(context, arguments).await.ok() }.boxed()
    }
    /// Runs the call.
    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a call is going to do, as shown to the person.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Preview {
    /// One line, such as `Edit src/main.rs`.
    pub title: String,
    /// The files it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The same with symlinks resolved: permission is decided on these, and the call may touch nothing else.
    #[serde(skip)]
    pub targets: Vec<PathBuf>,
    /// The changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// The provider of a tool that is not built in: stored permissions apply only to this one.
    #[serde(skip)]
    pub origin: Option<String>,
    /// The exact command line; permission is decided on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandLine>>,
    /// Additional information for the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why this requires approval in every mode, even for reading: a protected path or a file with secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// The title is a question to the person, with these answers to choose from: nothing is to be allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<String>>,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLine {
    /// The complete command, for the shell.
    pub command: String,
    /// What it is written in.
    pub dialect: Dialect,
    /// The folder it runs in, absolute.
    pub cwd: PathBuf,
    /// Whether it runs in a sandbox.
    pub sandboxed: bool,
    /// Whether it has network access.
    pub network: bool,
    /// How much of its changes to the workspace undo covers.
    pub undo: Undo,
}

/// How much of a command's changes to the workspace undo covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// All of it.
    Everything,
    /// All but git-ignored folders.
    ExceptIgnored,
    /// Nothing: the command requires approval in every mode.
    Nothing,
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// 1-based line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A change of one file, with complete texts (as in ACP's `diff` content).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Absolute path.
    pub path: PathBuf,
    /// `None` for a file that does not exist yet.
    pub old_text: Option<Arc<str>>,
    /// The text afterwards.
    pub new_text: Arc<str>,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// The actual changes (they may differ from the preview if the person typed meanwhile).
    pub diffs: Vec<FileDiff>,
    /// Everything a command changed; its text files are in `diffs` too, unless there are too many to show.
    pub changes: Option<Arc<ChangeSet>>,
    /// The locations it read or wrote.
    pub locations: Vec<Location>,
    /// Its images, for models that accept images.
    pub images: Vec<Picture>,
    /// The plan, when the tool sets it.
    pub plan: Option<Vec<PlanEntry>>,
    /// Notices for the person.
    pub notices: Vec<String>,
    /// Whether the call failed although it changed something, such as a command that was killed.
    pub failed: bool,
}

/// An image for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Such as `image/png`.
    pub mime_type: &'static str,
    /// The bytes in base64.
    pub data: String,
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: PlanStatus,
    /// Its importance.
    #[serde(default)]
    pub priority: PlanPriority,
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
}

/// The importance of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// First.
    High,
    /// Usual.
    #[default]
    Medium,
    /// Last.
    Low,
}

/// Why a call failed, worded for the model.
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
