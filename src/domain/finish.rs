//! What happens when the model wants to end a turn that changed something.

/// The checks at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Whether the editor's diagnostics are compared with those before the turn.
    pub diagnostics: bool,
    /// Whether preferred quick fixes that only import or format are applied.
    pub quick_fixes: bool,
    /// A command that has to succeed.
    pub command: Option<String>,
}

impl Default for Finish {
    fn default() -> Self {
        Self {
            diagnostics: true,
            quick_fixes: true,
            command: None,
        }
    }
}
