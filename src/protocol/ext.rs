//! tandem's additions to its two protocols. Every method starts with `_tandem/`, and nothing changes what a standard
//! defines. `tests/it/wire_types.rs` generates the types of the editor plugins from these.

mod editor;
mod inline;
mod jobs;
mod models;
mod origins;
mod prompt;
mod review;
mod status;

pub use editor::*;
pub use inline::*;
pub use jobs::*;
pub use models::*;
pub use origins::*;
pub use prompt::*;
pub use review::*;
pub use status::*;

mod lsp {
    //! LSP types, which the plugins get from their editor.

    use schemars::{Schema, SchemaGenerator, json_schema};

    pub fn document(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "lsp": "TextDocumentIdentifier" })
    }

    pub fn range(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "lsp": "Range" })
    }

    pub fn position(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "lsp": "Position" })
    }

    pub fn diagnostics(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "lsp": "Diagnostic" } })
    }
}
