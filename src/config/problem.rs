//! Where a value was written, and what is wrong with it.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::text::display;

/// Where a value was written. Locations in a file are ordered as in the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Place {
    /// Built-in.
    Default,
    /// A configuration file.
    File {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
    },
    /// The environment.
    Environment {
        /// The variable.
        variable: String,
    },
    /// The editor's settings.
    Editor,
    /// The command line.
    Flag,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("built in"),
            Self::File { file, line, column } => {
                write!(formatter, "{}:{line}:{column}", file.display())
            }
            Self::Environment { variable } => write!(formatter, "environment variable {variable}"),
            Self::Editor => formatter.write_str("editor settings"),
            Self::Flag => formatter.write_str("command line"),
        }
    }
}

/// A mistake in the configuration. The value is ignored, everything else applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its location.
    #[serde(flatten)]
    pub place: Place,
    /// The key, such as `providers.openrouter.api`; empty for the file as a whole.
    pub key: String,
    /// The problem and its fix.
    pub message: String,
    /// Whether rules that restrict may be missing because of it. Until it is corrected, every call requires approval.
    #[serde(skip)]
    pub hides_restrictions: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            key,
            message,
            ..
        } = self;
        let text = if key.is_empty() {
            format!("{place}: {message}")
        } else {
            format!("{place}: `{key}`: {message}")
        };
        // It may quote a repository, which must not forge another line.
        formatter.write_str(&display::escape_line(&text))
    }
}
