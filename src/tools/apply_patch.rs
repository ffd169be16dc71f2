//! `apply_patch`: changes several files by a patch in the V4A format, for models that were trained on it.
//!
//! The changes to all files are computed before the first file is changed (a [batch](mod@super::batch)).

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::batch::{self, Item, What};
use super::edit_file::EditFile;
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::calls::arguments::partial;
use crate::workspace::patch::{Action, FilePatch, changes_permissions, parse};
use crate::workspace::{Change, WorkspacePath};

pub(super) struct ApplyPatch;

/// What to change.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// From `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

impl TypedTool for ApplyPatch {
    type Arguments = Arguments;
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Change files by a patch in the V4A format: between `*** Begin Patch` and \
        `*** End Patch` sections `*** Add File: PATH` (lines with +), `*** Delete File: PATH`, `*** Update File: PATH` \
        (maybe `*** Move to: PATH`, then chunks: `@@ anchor`, context lines with a space, removed ones with -, added \
        ones with +). All files change or none. Copy context from what read_file showed, without the line numbers.";
    const KIND: ToolKind = ToolKind::Edit;
    const RULE_NAME: &'static str = EditFile::NAME;
    const EXAMPLE: &'static str = r#"{"patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    let x = 1;\n+    let x = 2;\n*** End Patch"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        batch::preview(context, &items(context, &arguments.patch)?).await
    }

    async fn sketch(context: &ToolContext, arguments: &Value) -> Option<Preview> {
        let partial = partial::<Arguments>(arguments);
        let (whole_lines, _) = partial["patch"].as_str()?.rsplit_once('\n')?;
        let mut previews = Vec::new();
        for file in &items(context, &format!("{whole_lines}\n*** End Patch")).ok()? {
            // An incomplete chunk may match nothing yet.
            previews.extend(file.preview(context).await.ok());
        }
        (!previews.is_empty()).then(|| batch::together(previews))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let mut output = batch::change(context, &items(context, &arguments.patch)?).await?;
        if changes_permissions(&arguments.patch) {
            output.content += "\nThe file modes of the patch are not applied: run chmod for them.";
        }
        Ok(output)
    }
}

/// The files of a patch, each once.
fn items(context: &ToolContext, patch: &str) -> Result<Vec<Item>, ToolError> {
    let files = parse(patch)
        .map_err(|error| ToolError(format!("{error}\nExample: {}", ApplyPatch::EXAMPLE)))?;
    let mut seen = HashSet::new();
    let mut once = |path: &WorkspacePath| {
        if seen.insert(path.real()) {
            return Ok(());
        }
        Err(ToolError(format!(
            "the patch names {} twice; put all changes of a file into one section",
            path.display()
        )))
    };
    let mut items = Vec::new();
    for FilePatch { path, action } in files {
        let goes = matches!(
            &action,
            Action::Delete(_)
                | Action::Replace(_)
                | Action::Update {
                    moved_to: Some(_),
                    ..
                }
        );
        let path = if goes {
            context.resolve_itself(&path)?
        } else {
            context.resolve(&path)?
        };
        once(&path)?;
        let is_link = goes && path.link().is_ok();
        let what = match action {
            Action::Add(content) => What::Create(Change::Write(content)),
            Action::Delete(_) if is_link => What::RemoveLink,
            Action::Delete(lines) => What::Remove(lines),
            Action::Replace(_) if is_link => return Err(changed_link(&path)),
            Action::Replace(content) => What::Change(Change::Write(content)),
            Action::Update {
                chunks,
                moved_to: None,
            } => What::Change(Change::Patch(chunks)),
            Action::Update {
                chunks,
                moved_to: Some(to),
            } => {
                let to = context.resolve(&to)?;
                once(&to)?;
                match is_link {
                    true if chunks.is_empty() => What::MoveLink(to),
                    true => return Err(changed_link(&path)),
                    false => What::Move(chunks, to),
                }
            }
        };
        items.push(Item { path, what });
    }
    Ok(items)
}

fn changed_link(path: &WorkspacePath) -> ToolError {
    ToolError(format!(
        "{} is a symbolic link: delete or move it without other changes, and change its target under the target's own name",
        path.display()
    ))
}
