//! `write_file`: writes a whole file, new or replaced.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::changes::{commit, propose, sketch};
use super::files::unless_cancelled;
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::calls::arguments::partial;
use crate::workspace::{Change, FileError};

pub(super) struct WriteFile;

/// What to write.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// File to write; missing directories are created.
    path: String,
    /// The complete new content.
    content: String,
}

impl TypedTool for WriteFile {
    type Arguments = Arguments;
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str =
        "Create a file or replace its whole text. Not for changing part of a file.";
    const KIND: ToolKind = ToolKind::Edit;
    const EXAMPLE: &'static str = r#"{"path": "notes.md", "content": "Notes\n"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        refuse_unread(context, &arguments).await?;
        propose(
            context,
            "Write",
            &arguments.path,
            Change::Write(arguments.content),
        )
        .await
    }

    async fn sketch(context: &ToolContext, arguments: &Value) -> Option<Preview> {
        let partial = partial::<Arguments>(arguments);
        let content = partial["content"].as_str();
        let change = content.map(|content| Change::Write(content.to_owned()));
        let path = partial["path"].as_str()?;
        sketch(context, "Write", arguments, path, change).await
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        refuse_unread(context, &arguments).await?;
        commit(context, &arguments.path, Change::Write(arguments.content)).await
    }
}

/// A text the model has not seen is not replaced, neither in the editor nor on disk.
async fn refuse_unread(context: &ToolContext, arguments: &Arguments) -> Result<(), ToolError> {
    let path = context.resolve(&arguments.path)?;
    if unless_cancelled(context, context.workspace.knows(&path)).await? {
        return Ok(());
    }
    Err(FileError::Unread(path.display()).into())
}
