//! What the editor's language servers know of code: asked by operation and place, answered in places, words or edits.
//! The edits are not applied: whoever asked decides that.

pub use crate::domain::Operation;
use crate::text::{Position, Range};

/// A question to the language servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub operation: Operation,
    /// The document it is about, by its URI.
    pub uri: Option<String>,
    /// The place in it, in the encoding negotiated for [`super::Documents`].
    pub position: Option<Position>,
    /// The name to look for.
    pub query: Option<String>,
    /// Only a fix marked as preferred, for the problem at exactly this place.
    pub preferred: bool,
    /// The name to give.
    pub new_name: Option<String>,
}

impl Question {
    /// A question with nothing but its operation.
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            uri: None,
            position: None,
            query: None,
            preferred: false,
            new_name: None,
        }
    }
}

/// What the language servers answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Where it is.
    Places(Vec<Place>),
    /// A description of it.
    Words(String),
    /// What is to be changed, by document.
    Edits(Vec<DocumentEdits>),
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The document; not always a file.
    pub uri: String,
    /// Where in it, in the encoding negotiated for [`super::Documents`].
    pub range: Range,
    /// The name of what is there, or of what holds it.
    pub name: Option<String>,
    /// How many others it is inside of.
    pub depth: usize,
}

/// Edits of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentEdits {
    /// The document.
    pub uri: String,
    /// Replacements, in any order, none overlapping another.
    pub edits: Vec<(Range, String)>,
}
