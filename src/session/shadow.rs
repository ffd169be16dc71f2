//! A shadow turn (`/try`): a turn on a copy of the workspace, whose changes the person applies at its end, or discards.
//!
//! Invariant: until the person applies them, nothing is written outside the copy, and nothing is recorded that could be
//! undone. What is applied is one call of the turn, recorded like any other.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{STEPS, done};
use crate::agent::event::{AgentEvent, Permission, Termination};
use crate::agent::{self, APPLY, Step, Steps, Turn};
use crate::changes::change_set::{ChangeSet, Entry};
use crate::changes::revert::Reason;
use crate::domain::{ErrorCode, Failure, Location, Preview, ToolKind};
use crate::process::{Applied, Changed, Shadow};
use crate::tools::{ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

/// What the model reads with the prompt.
pub(super) const ABOUT: &str = "(this turn runs on a private copy of the workspace, under the same paths: edits and commands \
    see each other, and the user decides at the end whether the changes are applied. In the copy .git is read-only, so do \
    not commit or switch branches; MCP tools and the editor's diagnostics are not available)";
/// The answer to `/try` with nothing to try.
pub(super) const USAGE: &str = "`/try PROMPT` runs a prompt on a private copy of the workspace. Nothing changes in your editor or on disk until you apply the result. PROMPT may be a command for the model, such as \
    `/review`.";
/// The answer in a mode that changes nothing.
pub(super) const NOT_IN_PLAN: &str = "`/try` needs a mode that can change files, and the session is in mode `plan`. Switch the \
    mode, then try again.";
/// What the person reads besides the changes before they are applied.
const UNCHANGED: &str = "nothing in the workspace has changed yet";
/// How many files an editor is told to look at.
const LOCATIONS: usize = 100;

/// Runs a turn on a copy of the workspace. The last step is [`AgentEvent::Done`] in every case.
pub(super) async fn run_turn(mut turn: Turn, steps: Steps) {
    let original = turn.context.clone();
    let shadow = match original
        .shell
        .shadow(&original.workspace, &original.cancel)
        .await
    {
        Ok(shadow) => shadow,
        Err(error) => return report(error, &original, &steps).await,
    };
    let message =
        "this turn runs on a private copy of the workspace; nothing changes until you apply it"
            .to_owned();
    steps.notice(message).await;
    let call_id = format!("{APPLY}-{}", turn.id);
    (turn.context.workspace, turn.context.shell) = (shadow.workspace.clone(), shadow.shell.clone());
    let (sender, inner) = mpsc::channel(STEPS);
    let ((), mut last) = tokio::join!(agent::run_turn(turn, Steps(sender)), pass_on(inner, &steps));
    let (shadow, changed) = shadow.changed().await;
    let note = settle(&call_id, &shadow, &changed, &original, &steps).await;
    steps.send(Step::Note(note)).await;
    shadow.end().await;
    if let Some(AgentEvent::Done {
        termination_reason, ..
    }) = &mut last
        && original.cancel.is_cancelled()
    {
        *termination_reason = Termination::Cancelled;
    }
    steps.event(last.unwrap_or_else(failed)).await;
}

/// What the model is told about a trial with the first prompt after a restart, which may have interrupted it.
pub(super) fn outcome(applied: bool) -> String {
    let what = if applied {
        "the user applied its changes"
    } else {
        "its changes were not applied: the files are as before it"
    };
    format!("(the last turn ran on a private copy of the workspace, and {what})")
}

/// Passes on what happens in the copy, until the last event, which it returns.
async fn pass_on(mut inner: mpsc::Receiver<Step>, steps: &Steps) -> Option<AgentEvent> {
    let mut done = None;
    while let Some(step) = inner.recv().await {
        let step = match step {
            Step::Event(event @ AgentEvent::Done { .. }) => {
                done = Some(event);
                continue;
            }
            Step::Event(event @ AgentEvent::ToolExecutionEnd { .. }) => Step::Tried(event),
            Step::Announced { .. } => continue,
            step => step,
        };
        steps.send(step).await;
    }
    done
}

/// Has the person decide about the changes, and applies them if approved. Returns what the model is told.
async fn settle(
    call_id: &str,
    shadow: &Shadow,
    changed: &Changed,
    original: &ToolContext,
    steps: &Steps,
) -> String {
    if original.cancel.is_cancelled() {
        return "(the user cancelled that turn: its changes were discarded, and the files are as before it)".to_owned();
    }
    if changed.changes.is_empty() {
        let message = "the turn changed nothing, so there is nothing to apply".to_owned();
        steps.notice(message).await;
        return "(that turn changed nothing)".to_owned();
    }
    for message in changed.told.iter().cloned() {
        steps.notice(message).await;
    }
    let mut asked = preview(&original.workspace, "Apply", changed);
    let note = std::iter::once(UNCHANGED)
        .chain(asked.note.as_deref())
        .collect::<Vec<_>>()
        .join("; ");
    asked.note = Some(note);
    let outcome = agent::whether_to_apply(call_id, asked, &original.cancel, steps).await;
    let applies = outcome.allows();
    let verb = match outcome {
        _ if applies => "Applied",
        Permission::Cancelled => "Did not apply",
        _ => "Discarded",
    };
    let decided = preview(&original.workspace, verb, changed);
    steps
        .event(AgentEvent::preview(call_id, ToolKind::Edit, decided))
        .await;
    if !applies {
        let result = ToolError("nothing in the workspace was changed".to_owned());
        steps
            .event(AgentEvent::ended(call_id, APPLY, result.into()))
            .await;
        let what = match outcome {
            Permission::Cancelled => "the changes of that turn were not applied",
            _ => "the user discarded the changes of that turn",
        };
        return format!("({what}: the files are as before it)");
    }
    steps
        .event(AgentEvent::ToolExecutionStart {
            call_id: call_id.to_owned(),
            name: APPLY.to_owned(),
            arguments: serde_json::Value::Null,
        })
        .await;
    let applied = shadow
        .apply(&original.shell, &original.workspace, changed)
        .await;
    let (result, note) = result(&original.workspace, applied);
    steps.event(AgentEvent::ended(call_id, APPLY, result)).await;
    note
}

/// The changes as the person sees them, before or after the decision.
fn preview(workspace: &Workspace, verb: &str, changed: &Changed) -> Preview {
    let paths = names(workspace, &changed.changes);
    Preview {
        title: format!("{verb} the changes to {}", workspace.named(paths.iter())),
        locations: paths
            .into_iter()
            .take(LOCATIONS)
            .map(|path| Location { path, line: None })
            .collect(),
        diffs: changed.diffs.clone(),
        note: Some(changed.notes.join("; ")).filter(|note| !note.is_empty()),
        ..Preview::default()
    }
}

/// The names of the files that changed, or else of the folders, or of git's state.
fn names(workspace: &Workspace, changes: &ChangeSet) -> Vec<PathBuf> {
    let is_folder = |entry: &Entry| matches!(entry, Entry::Folder { .. });
    let (folders, files): (Vec<_>, Vec<_>) = changes
        .files
        .iter()
        .partition(|change| is_folder(&change.before) || is_folder(&change.after));
    let git = changes.git.iter().take(1).collect();
    let named_ones = [files, folders, git]
        .into_iter()
        .find(|some| !some.is_empty());
    named_ones
        .into_iter()
        .flatten()
        .map(|change| workspace.name_of(&change.path))
        .collect()
}

/// The result of the call that applies the changes, and what the model is told of it.
fn result(workspace: &Workspace, applied: Applied) -> (ToolOutput, String) {
    let Applied {
        changes,
        diffs,
        left,
    } = applied;
    let mut paths = names(workspace, &changes);
    paths.extend(diffs.iter().map(|diff| workspace.name_of(&diff.path)));
    paths.sort_unstable();
    paths.dedup();
    let is_error = paths.is_empty();
    let mut content = if is_error {
        "nothing was applied".to_owned()
    } else {
        format!("applied: {}", workspace.named(paths.iter()))
    };
    for (path, reason) in left {
        let name = workspace.shown(&path);
        let reason = match reason {
            Reason::Lines(lines) => {
                format!(
                    "lines {}-{} have been changed since",
                    lines.start + 1,
                    lines.end
                )
            }
            reason => reason.to_string(),
        };
        content = format!("{content}\nnot applied: {name}: {reason}");
    }
    let note = format!("(the user applied the changes of that turn; {content})");
    let changes = Some(Arc::new(changes)).filter(|changes| !changes.is_empty());
    (
        ToolOutput {
            content,
            is_error,
            diffs,
            changes,
            ..ToolOutput::default()
        },
        note,
    )
}

/// Reports that the copy could not be made.
async fn report(ToolError(message): ToolError, original: &ToolContext, steps: &Steps) {
    if original.cancel.is_cancelled() {
        let cancelled = done(None, Termination::Cancelled);
        return steps.event(cancelled).await;
    }
    let failure = Failure::new(ErrorCode::InvalidRequest, message);
    steps.event(AgentEvent::Error(failure)).await;
    steps.event(failed()).await;
}

fn failed() -> AgentEvent {
    done(None, Termination::Error)
}
