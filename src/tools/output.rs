//! The result of a call.

use std::sync::Arc;

use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::changes::ChangeSet;
use crate::domain::{Exit, FileDiff, Image, Location, PlanEntry, Styled, ToolError};

/// The result of a call, for the model and for the person.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// Whether it failed. A call that failed may have changed something, such as a command that was killed.
    pub is_error: bool,
    /// Whether a person did not allow the call. The content is for the model then, and people see this alone.
    #[serde(skip)]
    pub rejected: bool,
    /// How a terminal would show parts of the content.
    #[serde(skip)]
    pub styles: Vec<Styled>,
    /// The actual changes (they may differ from the preview if the person typed meanwhile).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// Everything a command changed; its text files are in `diffs` too, unless there are too many to show.
    #[serde(skip)]
    pub changes: Option<Arc<ChangeSet>>,
    /// How its command ended.
    pub exit: Option<Exit>,
    /// The number of the background job its command has become.
    pub job: Option<u32>,
    /// The locations it read or wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Its images, for models that accept images.
    #[serde(skip)]
    pub images: Vec<Image>,
    /// The plan, when the tool sets it.
    #[serde(skip)]
    pub plan: Option<Vec<PlanEntry>>,
    /// Notices for the person.
    #[serde(skip)]
    pub notices: Vec<String>,
}

/// How a call that a person did not allow ended, in the words that people see.
pub const REJECTED: &str = "rejected";

impl ToolOutput {
    /// How the call ended: a sign, and the text next to its title. A command that failed counts as failed, even if the call
    /// itself succeeded.
    pub fn outcome(&self) -> (&'static str, Option<String>) {
        let code = self.exit.and_then(|exit| exit.code).unwrap_or_default();
        if self.rejected {
            ("✗", Some(REJECTED.to_owned()))
        } else if self.is_error {
            let why = self.content.lines().next().unwrap_or_default();
            ("✗", Some(why.to_owned()))
        } else if code != 0 {
            ("✗", Some(format!("exit {code}")))
        } else if self.exit.is_none() && self.job.is_some() {
            ("●", Some("in the background".to_owned()))
        } else {
            ("✓", None)
        }
    }
}

/// Text alone.
impl From<String> for ToolOutput {
    fn from(content: String) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }
}

impl From<ToolError> for ToolOutput {
    fn from(ToolError(why): ToolError) -> Self {
        Self {
            is_error: true,
            ..why.into()
        }
    }
}
