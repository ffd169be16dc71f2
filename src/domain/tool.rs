//! Tools as all modules see them: their kind, the preview and the changes of a call, the plan.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::text::shell::Dialect;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Stored;

/// The kind of a tool (as in the Agent Client Protocol).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Finds files or text.
    Search,
    /// Runs a command.
    Execute,
    /// Plans.
    Think,
    /// Anything else.
    #[default]
    Other,
}

impl ToolKind {
    /// Whether calls of this kind change nothing, so that they may run in parallel and in every mode.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think)
    }
}

/// A description of a call before it runs, as shown to the person.
#[skip_serializing_none]
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
    pub command: Option<Box<CommandLine>>,
    /// Whether it reads or stops a running command, which was approved when it started.
    #[serde(skip)]
    pub follows_up: bool,
    /// Additional information for the decision.
    pub note: Option<String>,
    /// Why this requires approval in every mode, even for reading: a protected path or a file with secrets.
    pub caution: Option<String>,
    /// The title is a question to the person, with these answers to choose from: nothing is to be allowed.
    pub answers: Option<Vec<String>>,
    /// The JSON Schema of a form to fill in. A front end without forms asks for its first field, as in `answers`.
    pub form: Option<Box<serde_json::Value>>,
    /// The address the person is asked to open in a browser.
    pub link: Option<String>,
}

impl Preview {
    /// Nothing but a title.
    pub fn titled(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLine {
    /// The complete command, for the shell.
    pub command: String,
    /// The shell language it is written in.
    pub dialect: Dialect,
    /// The folder it runs in, absolute.
    pub cwd: PathBuf,
    /// Whether it runs in a sandbox.
    pub sandboxed: bool,
    /// Whether it has network access.
    pub network: bool,
    /// Whether it reaches, at `localhost`, what other commands of its session serve.
    pub localhost: bool,
    /// How much of its changes to the workspace undo covers.
    pub undo: Undo,
}

/// How much of a command's changes to the workspace undo covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// All of it.
    Everything,
    /// All but git-ignored folders; or all of it, a repository too.
    ExceptIgnored,
    /// Nothing: the command requires approval in every mode.
    Nothing,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code as shells report it; `None` if unknown.
    pub code: Option<i32>,
    /// How long it ran, in milliseconds.
    pub ran_ms: u64,
}

/// A location in a file.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// 1-based line.
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
    /// How the old text was stored, if known.
    pub before: Option<Stored>,
    /// How the new text is stored; `None` if the file was removed.
    pub after: Option<Stored>,
}

impl FileDiff {
    /// A change of a file whose encoding and permissions stay.
    pub fn new(path: PathBuf, old_text: Option<Arc<str>>, new_text: Arc<str>) -> Self {
        Self {
            path,
            old_text,
            new_text,
            before: None,
            after: None,
        }
    }

    /// Whether the file stays as it is. An empty file that is removed has the same text, but does not stay.
    pub fn is_nothing(&self) -> bool {
        self.old_text.as_ref() == Some(&self.new_text) && self.before == self.after
    }
}

/// An image for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

impl Image {
    /// The formats that all models with image input accept.
    pub const FORMATS: [&'static str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    /// The maximum size in bytes that providers accept: 5 MB in base64.
    pub const LARGEST: usize = 3_750_000;

    /// The format of an image, by its first bytes.
    pub fn format(bytes: &[u8]) -> Option<&'static str> {
        let [png, jpeg, gif, webp] = Self::FORMATS;
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(png),
            [0xff, 0xd8, 0xff, ..] => Some(jpeg),
            [b'G', b'I', b'F', b'8', ..] => Some(gif),
            _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some(webp),
            _ => None,
        }
    }

    /// An image of this format.
    pub fn new(mime_type: &str, bytes: &[u8]) -> Self {
        Self {
            mime_type: mime_type.to_owned(),
            data: BASE64_STANDARD.encode(bytes),
        }
    }
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanEntry {
    /// What to do.
    pub content: String,
    /// Status of the step.
    pub status: PlanStatus,
    /// Its importance.
    #[serde(default)]
    pub priority: PlanPriority,
}

/// The status of a step.
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

/// The importance of a step.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// High.
    High,
    /// Medium.
    #[default]
    Medium,
    /// Low.
    Low,
}

/// Why a call failed, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);
