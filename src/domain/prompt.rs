//! Prompts: a person's message with its attachments and focus.

use std::path::PathBuf;

use super::Image;

/// One message of a person.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// Its text and attachments, in order.
    pub parts: Vec<Attachment>,
    /// What the person is looking at.
    pub focus: Option<Focus>,
}

impl Prompt {
    /// A message of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Attachment::Text(text.into())],
            focus: None,
        }
    }

    /// The person's own text, without attachments.
    pub fn words(&self) -> String {
        let words = self.parts.iter().filter_map(|part| match part {
            Attachment::Text(text) => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Whether it is empty.
    pub fn is_blank(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, Attachment::Text(text) if text.trim().is_empty()))
    }
}

/// A piece of a prompt.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// The person's own text.
    Text(String),
    /// Instructions, or a note from tandem itself.
    Note(String),
    /// An attached text, such as the selection with unsaved changes.
    Excerpt {
        /// Its source.
        name: String,
        /// 1-based first and last line.
        lines: Option<(u32, u32)>,
        /// The text.
        text: String,
    },
    /// Another attachment, under its own heading.
    Shown {
        /// The heading.
        heading: String,
        /// The text.
        text: String,
    },
    /// A skill the person wants to be used, by its name.
    Skill(String),
    /// A prompt of an MCP server, by its command.
    Command {
        /// `SERVER:prompt`.
        name: String,
        /// The text after the command.
        words: String,
    },
    /// A mentioned file or folder.
    Mention {
        /// Its path or name.
        name: String,
        /// Only these lines of it.
        lines: Option<(u32, u32)>,
    },
    /// An image.
    Image(Image),
}

/// What the person is looking at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The file.
    pub path: PathBuf,
    /// 1-based first and last line of the selection (or the cursor's line twice).
    pub lines: (u32, u32),
    /// Whether these are selected, and not only where the cursor is.
    pub is_selection: bool,
}
