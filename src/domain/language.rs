//! What an editor's language servers can be asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations of a language server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LanguageOp")]
#[expect(missing_docs, reason = "each is the LSP request of its name")]
pub enum Operation {
    Definition,
    Declaration,
    Implementation,
    TypeDefinition,
    References,
    Hover,
    DocumentSymbols,
    WorkspaceSymbols,
    IncomingCalls,
    OutgoingCalls,
    Rename,
    QuickFixes,
    Format,
}

impl Operation {
    /// Whether it answers with edits.
    pub fn edits(self) -> bool {
        matches!(self, Self::Rename | Self::QuickFixes | Self::Format)
    }

    /// In words, before `of` and what it is about.
    pub fn title(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Declaration => "declaration",
            Self::Implementation => "implementations",
            Self::TypeDefinition => "type definition",
            Self::References => "references",
            Self::Hover => "documentation",
            Self::DocumentSymbols | Self::WorkspaceSymbols => "symbols",
            Self::IncomingCalls => "callers",
            Self::OutgoingCalls => "calls",
            Self::Rename => "rename",
            Self::QuickFixes => "quick fixes",
            Self::Format => "format",
        }
    }
}
