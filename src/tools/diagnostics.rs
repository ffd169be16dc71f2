//! `diagnostics`: the diagnostics the editor shows, and new ones after an edit, which are part of its result.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{preview, shown, unless_cancelled};
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::workspace::diagnostics::{Diagnostic, Report, Scope, Severity, new_ones};
use crate::workspace::{Workspace, WorkspacePath};

/// How many diagnostics are reported at once, and after an edit.
const SHOWN: usize = 50;
const SHOWN_AFTER_EDIT: usize = 10;
/// How much of a message is reported, in bytes.
const MESSAGE: usize = 400;
/// How long an edit's result waits for new diagnostics.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Diagnostics;

/// Where to look.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// File or directory; by default the workspace.
    path: Option<String>,
}

impl TypedTool for Diagnostics {
    type Arguments = Arguments;
    const NAME: &'static str = "diagnostics";
    const DESCRIPTION: &'static str = "List the errors and warnings the editor shows. New ones in a file you edited come with the edit's result.";
    const KIND: ToolKind = ToolKind::Read;
    const EXAMPLE: &'static str = r#"{"path": "src/main.rs"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let Some(path) = wanted(context, arguments)? else {
            return Ok(Preview::titled("Read all diagnostics"));
        };
        Ok(preview(
            format!("Read diagnostics of {}", context.shown(&path)),
            &path,
            None,
        ))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let path = wanted(context, arguments)?;
        let everywhere = Scope::default();
        let asked = context.workspace.diagnostics(&everywhere);
        let Some(Report { mut found, .. }) = unless_cancelled(context, asked).await? else {
            return Err(ToolError(
                "the editor does not respond; continue without diagnostics".to_owned(),
            ));
        };
        let mut place = String::new();
        if let Some(path) = path {
            let real = |path: &Path| Some(context.workspace.resolve_path(path).ok()?.real());
            found.retain(|one| real(&one.path).is_some_and(|it| it.starts_with(path.real())));
            place = format!(" in {}", context.shown(&path));
        }
        let content = match found.len() {
            0 => format!("The editor shows no problems{place}.\n"),
            _ => list(&context.workspace, found, SHOWN),
        };
        Ok(content.into())
    }
}

/// All diagnostics the editor shows, as text; `None` if it does not report them.
pub async fn problems(workspace: &Workspace) -> Option<String> {
    let found = workspace.diagnostics(&Scope::default()).await?.found;
    Some(if found.is_empty() {
        "(none)".to_owned()
    } else {
        list(workspace, found, SHOWN)
    })
}

fn wanted(context: &ToolContext, arguments: Arguments) -> Result<Option<WorkspacePath>, ToolError> {
    Ok(arguments
        .path
        .map(|path| context.workspace.resolve(&path))
        .transpose()?)
}

/// The result of `change`, with new errors and warnings. Only files open in the editor are checked: its servers check
/// others in their own time, if at all.
pub(super) async fn with_new_ones(
    context: &ToolContext,
    paths: &[&WorkspacePath],
    change: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    let open = paths.iter().filter_map(|path| workspace.document(path));
    let uris: Vec<String> = open.map(|document| document.uri.clone()).collect();
    let look = async |settled| {
        let scope = Scope {
            uris: uris.clone(),
            settled,
        };
        let asked = tokio::time::timeout(TIMEOUT, workspace.diagnostics(&scope));
        let report = context.cancel.run_until_cancelled(asked).await?.ok()??;
        Some(report.found)
    };
    let before = if uris.is_empty() {
        None
    } else {
        look(false).await
    };
    let mut output = change.await?;
    if let Some(before) = before
        && !output.diffs.is_empty()
        && let Some(after) = look(true).await
    {
        let mut new = new_ones(&before, after);
        new.retain(|one| one.severity <= Severity::Warning);
        if !new.is_empty() {
            output.content.push_str("New problems after this change:\n");
            output
                .content
                .push_str(&list(workspace, new, SHOWN_AFTER_EDIT));
        }
    }
    Ok(output)
}

/// The worst ones, one per line, and how many more there are.
pub fn list(workspace: &Workspace, mut found: Vec<Diagnostic>, limit: usize) -> String {
    found.sort_by(Diagnostic::order);
    let mut text = String::new();
    for one in found.iter().take(limit) {
        let (line, severity) = (one.line(), one.severity);
        let Diagnostic {
            path,
            source,
            message,
            ..
        } = one;
        let source = if source.is_empty() {
            String::new()
        } else {
            format!(" ({source})")
        };
        let message = message
            .split_at(message.floor_char_boundary(MESSAGE))
            .0
            .trim_end()
            .replace('\n', "\n  ");
        text += &format!(
            "{}:{line}: {}: {message}{source}\n",
            shown(workspace, path),
            severity.name()
        );
    }
    if found.len() > limit {
        text += &format!("[{} more]\n", found.len() - limit);
    }
    text
}
