//! The tools of the model: one file per tool ([`TypedTool`]), one line in [`all`].
//!
//! A tool first describes a call ([`Tool::preview`] returns the title, locations and diff shown for approval) and then
//! runs it ([`Tool::run`] checks again that it does what was shown).
//!
//! An error is an answer to the model, worded so that its next attempt can succeed. Front ends match on [`ToolKind`],
//! never on a tool's name.

mod apply_patch;
mod ask_user;
mod batch;
mod changes;
mod code;
mod context;
mod describe;
mod diagnostics;
mod diff;
mod edit_file;
mod explore;
mod files;
mod glob;
mod grep;
mod list_files;
pub mod mcp;
pub mod output;
mod pattern;
mod person;
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

use self::apply_patch::ApplyPatch;
pub use self::code::QuickFixes;
pub use self::context::{Explorer, ToolContext, Withheld};
pub use self::diagnostics::{list as list_problems, problems};
use self::edit_file::EditFile;
pub use self::grep::symbols::{Symbol, symbols};
pub use self::list_files::tree;
pub use self::output::ToolOutput;
pub use self::person::{Ask, Person, Reply};
pub use self::resolve::{Resolved, resolve, tool};
pub use self::skill::load_skill;
pub use self::typed::TypedTool;
pub use crate::domain::{
    CommandLine, Exit, FileDiff, Image, Location, PlanEntry, PlanStatus, Preview, ToolError,
    ToolKind, Undo,
};
use crate::process::Dialect;
pub use crate::process::Live;
pub use crate::text::Redactor;
pub use crate::text::display::is_deceptive;
use crate::workspace::{FileError, PathError, Skill, Workspace};

/// How a model edits files: with one of two tools, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// `edit_file`: old and new text.
    Replacements,
    /// `apply_patch`: the V4A format.
    Patches,
}

/// The built-in tools, in the order every request lists them (a request's beginning never changes).
pub fn all(editing: Editing) -> Arc<[Arc<dyn Tool>]> {
    written_for(editing, Dialect::Posix)
}

/// [`all`], with `run_command` described for this shell.
fn written_for(editing: Editing, dialect: Dialect) -> Arc<[Arc<dyn Tool>]> {
    let edit: Arc<dyn Tool> = match editing {
        Editing::Replacements => Arc::new(EditFile),
        Editing::Patches => Arc::new(ApplyPatch),
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
        Arc::new(explore::Explore),
    ])
}

/// The tools useful in `workspace`: [`all`], plus those that only some editors or people need.
pub fn offered(
    editing: Editing,
    dialect: Dialect,
    workspace: &Workspace,
    skills: &Arc<[Skill]>,
) -> Arc<[Arc<dyn Tool>]> {
    let editor = workspace.editor();
    let diagnostics = editor
        .knows_diagnostics()
        .then(|| Arc::new(diagnostics::Diagnostics) as Arc<dyn Tool>);
    let code = Some(editor.operations()).filter(|operations| !operations.is_empty());
    let code = code.map(|operations| Arc::new(code::Code::new(operations)) as Arc<dyn Tool>);
    let skill = (!skills.is_empty())
        .then(|| Arc::new(skill::LoadSkill::new(Arc::clone(skills))) as Arc<dyn Tool>);
    written_for(editing, dialect)
        .iter()
        .cloned()
        .chain(diagnostics)
        .chain(code)
        .chain(skill)
        .collect()
}

/// The tool that runs commands: rules about it are patterns of words.
pub const COMMAND: &str = <run_command::RunCommand as TypedTool>::NAME;

/// The name of the tool that changes parts of files.
pub fn edit_name(tools: &[Arc<dyn Tool>]) -> Option<&str> {
    let mut names = tools.iter().map(|tool| tool.name());
    names.find(|name| [EditFile::NAME, ApplyPatch::NAME].contains(name))
}

/// The tool called `name`.
pub fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    tools.iter().find(|tool| tool.name() == name)
}

/// The work of a tool; an error is an answer to the model.
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
    /// The tool that carries out a call with these arguments, if it is another one.
    fn meant(&self, _arguments: &Value) -> Option<Arc<dyn Tool>> {
        None
    }
    /// Like the previous method, for calls where only the workspace's files show which tool it is. Permission is decided
    /// on that tool.
    fn instead(&self, _context: &ToolContext, _arguments: &Value) -> Option<Arc<dyn Tool>> {
        None
    }
    /// The name that permission rules use: its own, unless another tool's rules cover it.
    fn rule_name(&self) -> &str {
        self.name()
    }
    /// The plan that a call with these arguments sets.
    fn plan(&self, _arguments: &Value) -> Option<Vec<PlanEntry>> {
        None
    }
    /// Describes a call before it runs. Returns an error if it cannot succeed, so that no approval is requested for it.
    fn preview<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, Preview>;
    /// A preview of a call whose arguments still stream ([`partial::complete`](crate::calls::partial::complete) parses them), or of one that cannot
    /// work; `None` while there is nothing worth showing. The same as [`Self::preview`] unless a tool can do better.
    fn sketch<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Option<Preview>> {
        async { self.preview(context, arguments).await.ok() }.boxed()
    }
    /// Runs the call.
    fn run<'a>(&'a self, context: &'a ToolContext, arguments: &'a Value)
    -> Pending<'a, ToolOutput>;
}

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
