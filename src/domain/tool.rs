//! What a tool is and does, as everybody sees it: its kind, what a call is going to do, what changed, the plan.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What sort of thing a tool does (the kinds of the Agent Client Protocol).
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
    /// Orders thoughts.
    Think,
    /// Anything else.
    Other,
}

impl ToolKind {
    /// Whether calls of this kind change nothing, so that they may run side by side and in every mode.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think)
    }
}

/// What a call is going to do, as the person sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Preview {
    /// One line, such as `Edit src/main.rs`.
    pub title: String,
    /// The files it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The same with symlinks followed: what permission is decided on, and all the call may touch.
    #[serde(skip)]
    pub targets: Vec<PathBuf>,
    /// What it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// Whose tool it is, where it is not ours: an answer that is remembered holds for this one alone.
    #[serde(skip)]
    pub origin: Option<String>,
    /// The command line it runs, as it is; what permission is decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandLine>>,
    /// It reads or stops a command that was decided about when it started.
    #[serde(skip)]
    pub follows_up: bool,
    /// What else to know before saying yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why the person is asked in every mode, even for reading: a protected path or a file of secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
}

/// The language of a shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `sh`, `bash` and what reads the same.
    #[default]
    Posix,
    /// PowerShell 5 or newer.
    PowerShell,
    /// The command processor of Windows.
    Cmd,
}

/// A command that is going to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLine {
    /// For the shell, whole.
    pub command: String,
    /// What it is written in.
    pub dialect: Dialect,
    /// The folder it runs in, absolute.
    pub cwd: PathBuf,
    /// Whether a sandbox holds it.
    pub sandboxed: bool,
    /// Whether it reaches the network.
    pub network: bool,
    /// How much of what it does to the workspace an undo takes back.
    pub undo: Undo,
}

/// How much of what a command does to the workspace an undo takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// All of it.
    Everything,
    /// All but what is in git-ignored folders.
    ExceptIgnored,
    /// There is no way to: the command requires approval in every mode.
    Nothing,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// 1-based line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A change of one file, whole texts (what ACP's `diff` content carries).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Absolute path.
    pub path: PathBuf,
    /// `None` for a file that does not exist yet.
    pub old_text: Option<Arc<str>>,
    /// The text afterwards.
    pub new_text: Arc<str>,
}

/// An image as a model takes it.
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
    /// How much it matters.
    #[serde(default)]
    pub priority: PlanPriority,
}

/// How far a step of the plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        })
    }
}

/// How much a step of the plan matters.
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
