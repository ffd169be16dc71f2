//! `edit_file`: replaces text in a file, in the editor's buffer if it is open there.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::changes::{commit, propose, sketch};
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::calls::arguments::{bare, partial};
use crate::calls::{SWALLOWED, holds_another};
use crate::workspace::{Change, Replacement};

pub(super) struct EditFile;

/// What to change.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// Applied atomically. Every `old_text` refers to the current file, not to the result of earlier edits.
    edits: Vec<Edit>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// Exact text to replace, with enough surrounding lines to be unique.
    old_text: String,
    new_text: String,
    // Or the number of places.
    #[serde(default)]
    #[schemars(with = "bool")]
    replace_all: Value,
}

impl TypedTool for EditFile {
    type Arguments = Arguments;
    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Replace text in a file. Copy old_text from what read_file showed, without the \
        line numbers. Make several changes of one file in one call.";
    const KIND: ToolKind = ToolKind::Edit;
    const EXAMPLE: &'static str = r#"{"path": "src/main.rs", "edits": [{"old_text": "let x = 1;", "new_text": "let x = 2;"}]}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        propose(context, "Edit", &arguments.path, change(arguments.edits)?).await
    }

    async fn sketch(context: &ToolContext, arguments: &Value) -> Option<Preview> {
        let partial = partial::<Arguments>(arguments);
        // An edit without any of its new text cannot be previewed.
        let edits = partial["edits"].as_array().into_iter().flatten();
        let edits = edits.map_while(|edit| Edit::deserialize(edit).ok());
        let (path, change) = (partial["path"].as_str()?, change(edits.collect()));
        sketch(context, "Edit", arguments, path, change.ok()).await
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let change = change(arguments.edits)?;
        let others = others(&change);
        let mut output = commit(context, &arguments.path, change).await?;
        let texts = || output.diffs.iter().map(|diff| &diff.new_text);
        let is_left = |other: &String| texts().any(|text| text.contains(other));
        if !others.iter().all(is_left) {
            output.content.push_str(&format!("\n{SWALLOWED}"));
        }
        Ok(output)
    }
}

/// How the ends begin that are cut off unless they are the file's, where another call is in them.
fn others(change: &Change) -> Vec<String> {
    let Change::Sent { sent, bare } = change else {
        return Vec::new();
    };
    let cut = std::iter::zip(sent, bare)
        .filter_map(|(sent, bare)| sent.new_text.strip_prefix(&bare.new_text));
    cut.filter(|cut| holds_another(&(*cut).into()))
        .filter_map(|cut| cut.trim().lines().next().map(str::to_owned))
        .collect()
}

fn change(edits: Vec<Edit>) -> Result<Change, ToolError> {
    if edits.is_empty() {
        return Err(ToolError(format!(
            "`edits` is empty; name at least one replacement\nExample: {}",
            EditFile::EXAMPLE
        )));
    }
    let replacement = |edit: Edit| Replacement {
        old_text: edit.old_text,
        new_text: edit.new_text,
        count: match &edit.replace_all {
            Value::Bool(true) => None,
            count => Some(
                count
                    .as_u64()
                    .map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX)),
            ),
        },
    };
    let mut sent: Vec<Replacement> = edits.into_iter().map(replacement).collect();
    // The same one twice in a row is meant once.
    sent.dedup();
    let bare = |edit: &Replacement| {
        let [old_text, new_text] = bare(&edit.old_text, &edit.new_text).map(str::to_owned);
        Replacement {
            old_text,
            new_text,
            count: edit.count,
        }
    };
    let bare = sent.iter().map(bare).collect();
    Ok(if bare == sent {
        Change::Edits(sent)
    } else {
        Change::Sent { sent, bare }
    })
}
