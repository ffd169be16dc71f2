//! Edits that language servers return, made by tandem: shown as a diff, decided on, and applied like any other edit.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::question::{Arguments, EXAMPLE, NAME, answer};
use crate::text::display::escape_line;
use crate::text::{Hunk, LineIndex, patched};
use crate::tools::batch::{self, Item, What};
use crate::tools::edit_file::EditFile;
use crate::tools::{FileDiff, Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::workspace::language::{Answer, DocumentEdits, Operation};
use crate::workspace::{Change, Document, native};

/// `code` for the operations that answer with edits.
pub(super) struct CodeEdits;

impl TypedTool for CodeEdits {
    type Arguments = Arguments;
    const NAME: &'static str = NAME;
    const RULE_NAME: &'static str = EditFile::NAME;
    const DESCRIPTION: &'static str = "Change code by the editor's language servers.";
    const KIND: ToolKind = ToolKind::Edit;
    const EXAMPLE: &'static str = EXAMPLE;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let files = edited(context, &arguments).await?;
        let preview = batch::preview(context, &files).await?;
        let number = match files.len() {
            1 => String::new(),
            number => format!(" in {number} files"),
        };
        let title = match arguments.op {
            Operation::Rename => {
                let new_name = arguments.new_name().unwrap_or_default();
                format!(
                    "Rename {} to `{}`{number}",
                    arguments.named(),
                    escape_line(new_name)
                )
            }
            Operation::Format => format!("Format {}", arguments.named()),
            _ => format!("Apply the quick fixes of {}{number}", arguments.named()),
        };
        Ok(Preview { title, ..preview })
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        // What was shown is applied, whatever the language server would answer by now.
        let files = match context.decided.as_deref() {
            Some(shown) => shown
                .diffs
                .iter()
                .map(|diff| as_shown(context, diff))
                .collect::<Result<_, _>>()?,
            None => edited(context, &arguments).await?,
        };
        batch::change(context, &files).await
    }
}

fn as_shown(context: &ToolContext, diff: &FileDiff) -> Result<Item, ToolError> {
    let path = context.resolve(&diff.path.to_string_lossy())?;
    let before = diff.old_text.clone().unwrap_or_default();
    Ok(Item {
        path,
        what: What::Change(Change::Exact {
            before,
            after: Arc::clone(&diff.new_text),
        }),
    })
}

/// The files that the language servers would change, and how.
async fn edited(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Item>, ToolError> {
    let open = open_texts(context);
    let Answer::Edits(documents) = answer(context, arguments).await? else {
        return Err(ToolError(
            "the editor answered without edits; make them yourself".to_owned(),
        ));
    };
    let mut files = Vec::new();
    for document in documents
        .iter()
        .filter(|document| !document.edits.is_empty())
    {
        files.extend(changed(context, &open, document).await?);
    }
    if files.is_empty() {
        let nothing = format!(
            "the language servers have nothing to change for {}",
            arguments.named()
        );
        return Err(ToolError(nothing));
    }
    Ok(files)
}

/// The texts of the open documents, by file. A language server's answer has positions in these.
pub(super) fn open_texts(context: &ToolContext) -> HashMap<PathBuf, Arc<str>> {
    let open = context.workspace.documents().all();
    let text = |it: Arc<Document>| Some((it.path.clone()?, Arc::clone(&it.text)));
    open.into_iter().filter_map(text).collect()
}

/// One file, which had its text among those that were `open`; `None` where its text stays the same.
pub(super) async fn changed(
    context: &ToolContext,
    open: &HashMap<PathBuf, Arc<str>>,
    document: &DocumentEdits,
) -> Result<Option<Item>, ToolError> {
    let outside = || {
        let name = escape_line(&document.uri);
        ToolError(format!(
            "the language server wants to change {name} too, which is outside the workspace; nothing was changed"
        ))
    };
    let path = native::file_of(&document.uri).ok_or_else(outside)?;
    let path = context
        .workspace
        .resolve_path(&path)
        .map_err(|_| outside())?;
    let now = context.workspace.peek(&path).await?.text;
    let before = open.get(&path.real()).map_or(now, Arc::clone);
    let (index, encoding) = (
        LineIndex::new(&before),
        context.workspace.documents().encoding(),
    );
    let hunk = |(range, new_text): &(_, String)| Hunk {
        range: index.span(&before, *range, encoding),
        new_text: new_text.clone(),
    };
    let mut hunks: Vec<Hunk> = document.edits.iter().map(hunk).collect();
    // Several insertions at one place keep their order.
    hunks.sort_by_key(|hunk| (hunk.range.start, hunk.range.end));
    if hunks
        .windows(2)
        .any(|pair| matches!(pair, [one, next] if next.range.start < one.range.end))
    {
        return Err(ToolError(format!(
            "the language server's edits of {} overlap; nothing was changed",
            path.display()
        )));
    }
    let after: Arc<str> = patched(&before, &hunks).into();
    Ok((after != before).then_some(Item {
        path,
        what: What::Change(Change::Exact { before, after }),
    }))
}
