//! What a call's result tells the model in addition: the instructions of a folder, and which file a path was taken for.

use serde_json::Value;

use super::guidance::Guidance;
use crate::text::display::escape_line;
use crate::tools::ToolOutput;
use crate::workspace::Workspace;

/// Tells the model which file an inexact path was taken for.
pub(super) fn another_path(
    arguments: &Value,
    result: &ToolOutput,
    workspace: &Workspace,
) -> Option<String> {
    let (name, root) = (arguments.get("path")?.as_str()?, workspace.roots().first()?);
    let found = &result.locations.first()?.path;
    // A URI, or a way through other folders, is a path of its own.
    if name.contains("://")
        || name.contains("..")
        || [root.path(), root.real()]
            .iter()
            .any(|at| at.join(name) == *found)
    {
        return None;
    }
    let found = found.strip_prefix(root.path()).unwrap_or(found);
    Some(format!(
        "[`{}` was read as {}]",
        escape_line(name),
        escape_line(&found.to_string_lossy())
    ))
}

/// Appends the instructions of the folders of a file that was read or changed, if they are new to the model. They
/// become part of the new result, so nothing that was sent before changes.
pub(super) async fn advise(result: &mut ToolOutput, workspace: &Workspace, guidance: &Guidance) {
    for location in &result.locations {
        let Ok(file) = workspace.resolve_path(&location.path) else {
            continue;
        };
        for rules in guidance.about(workspace, &file).await {
            let end = if result.content.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            result.content += &format!("{end}\n{rules}\n");
        }
    }
}
