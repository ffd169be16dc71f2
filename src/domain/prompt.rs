//! What a person sends to the model.

use std::path::PathBuf;

/// One message of a person.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// What they said and attached, in order.
    pub parts: Vec<Attachment>,
    /// What they are looking at.
    pub focus: Option<Focus>,
}

impl Prompt {
    /// A message of text alone.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Attachment::Text(text.into())], focus: None }
    }

    /// What the person wrote, without what came along.
    #[must_use]
    pub fn words(&self) -> String {
        let words = self.parts.iter().filter_map(|part| match part {
            Attachment::Text(text) => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Whether there is nothing to answer.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Attachment::Text(text) if text.trim().is_empty()))
    }
}

/// A piece of a prompt.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// Words.
    Text(String),
    /// A text that came along, such as the selection as it is in the editor.
    Excerpt {
        /// Where it is from.
        name: String,
        /// 1-based first and last line.
        lines: Option<(u32, u32)>,
        /// The text.
        text: String,
    },
    /// Something else that came along, under a heading of its own.
    Shown {
        /// What it is.
        heading: String,
        /// The text.
        text: String,
    },
    /// A skill the person wants to be used, by its name.
    Skill(String),
    /// A file or folder that was mentioned.
    Mention {
        /// Its path or name.
        name: String,
    },
    /// An image.
    Image {
        /// Such as `image/png`.
        mime_type: String,
        /// Base64.
        data: String,
    },
}

/// What the person is looking at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The file.
    pub path: PathBuf,
    /// 1-based first and last line of the selection (or the cursor's line twice).
    pub lines: (u32, u32),
}
