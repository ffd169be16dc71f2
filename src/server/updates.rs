//! Projects a session's events to updates of the Agent Client Protocol, version 1.
//!
//! Events are richer than the protocol: those without an update become notices, never invented variants (clients reject
//! unknown ones). Text from a model or a file that reaches a title is escaped.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, json};

use super::styles;
use crate::agent::event::AgentEvent;
use crate::domain::{
    Counts, Exit, FileDiff, Location, PlanEntry, PlanPriority, PlanStatus, Preview, ToolKind,
};
use crate::protocol::{acp, ext};
use crate::text::{display, without_middle};
use crate::tools::output::{REJECTED, ToolOutput};

/// The longest result shown in full; the model reads all of it, a person can open the file.
const SHOWN: usize = 4000;

/// What to send for an event.
#[derive(Debug)]
pub(crate) enum Projected {
    /// A piece of the answer, which may be merged with its neighbors in the outbox.
    Text {
        /// Which stream it belongs to.
        chunk: Chunk,
        /// The text.
        text: String,
    },
    /// An update.
    Update(Box<acp::SessionUpdate>),
    /// Text for people that is not part of the message history.
    Notice(String),
}

/// The two streams of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// `agent_message_chunk`.
    Message,
    /// `agent_thought_chunk`.
    Thought,
}

/// The update for an event; `None` if clients do not need it. `proposed` is the change the ending call proposed:
/// content is replaced as a whole, and a refused change stays visible.
pub(crate) fn project(event: AgentEvent, proposed: &[FileDiff]) -> Option<Projected> {
    let update = match event {
        AgentEvent::TextDelta { content } => return Some(text(Chunk::Message, content)),
        AgentEvent::SessionTitle { title } => {
            let title = display::escape_line(&title).into_owned();
            acp::SessionUpdate::SessionInfoUpdate(acp::SessionInfoUpdate::new().title(title))
        }
        AgentEvent::UserMessage {
            content,
            turn,
            attached,
            ..
        } => {
            let content = display::escape(&content).into_owned();
            let attached =
                (!attached.is_empty()).then(|| (ext::ATTACHED.to_owned(), attached.into()));
            let turn = turn.map(|turn| (ext::TURN.to_owned(), turn.into()));
            let meta = Some(turn.into_iter().chain(attached).collect::<Map<_, _>>())
                .filter(|meta| !meta.is_empty());
            acp::SessionUpdate::UserMessageChunk(acp::ContentChunk::new(content.into()).meta(meta))
        }
        AgentEvent::ReasoningDelta { content } => {
            return Some(text(Chunk::Thought, content));
        }
        AgentEvent::ToolCallStart { id, name, kind, .. } => {
            let name = display::escape_line(&name).into_owned();
            let call = acp::ToolCall::new(id, name.clone()).name(name);
            let call = call.kind(tool_kind(kind));
            acp::SessionUpdate::ToolCall(call.status(acp::ToolCallStatus::Pending))
        }
        AgentEvent::ToolCallComplete { call } => {
            change(call.id, fields().raw_input(call.arguments))
        }
        AgentEvent::ToolPreview {
            call_id,
            kind,
            preview,
        } => change(call_id, previewed(kind, preview)),
        AgentEvent::ToolExecutionStart { call_id, .. } => {
            change(call_id, fields().status(acp::ToolCallStatus::InProgress))
        }
        AgentEvent::ToolExecutionEnd {
            call_id, result, ..
        } => {
            let meta = ended_meta(&result);
            let update = acp::ToolCallUpdate::new(call_id, executed(result, proposed)).meta(meta);
            acp::SessionUpdate::ToolCallUpdate(update)
        }
        AgentEvent::Plan { entries } => {
            acp::SessionUpdate::Plan(acp::Plan::new(entries.iter().map(plan_entry).collect()))
        }
        AgentEvent::Interrupted { reason } => {
            let reason = reason.map_or(json!("interrupted"), |reason| json!(reason));
            let meta = Map::from_iter([(ext::STOPPED.to_owned(), reason)]);
            acp::SessionUpdate::SessionInfoUpdate(acp::SessionInfoUpdate::new().meta(meta))
        }
        AgentEvent::Finish { message, counts } => finished(&message, counts),
        AgentEvent::Retry {
            wait_ms, reason, ..
        } => {
            let seconds = wait_ms.div_ceil(1000);
            return Some(notice(&format!("{reason}; retrying after {seconds} s")));
        }
        event => return event.notice().map(notice),
    };
    Some(Projected::Update(Box::new(update)))
}

/// The update for more output of a running call, and the line after it that may still change. An update replaces the
/// previous one, so each carries the `tail` of the whole output.
pub(crate) fn output(
    call_id: String,
    tail: &mut String,
    piece: &str,
    line: &str,
) -> acp::SessionUpdate {
    tail.push_str(piece);
    let cut = tail.ceil_char_boundary(tail.len().saturating_sub(SHOWN));
    if cut > 0 {
        tail.replace_range(..cut, "…");
    }
    let shown = content(&format!("{tail}{line}"));
    change(call_id, fields().content(vec![shown]))
}

/// Text is sent as it is unless it would deceive a reader: then it is escaped.
fn text(chunk: Chunk, content: String) -> Projected {
    let escaped = match display::escape_piece(&content) {
        Cow::Borrowed(_) => None,
        Cow::Owned(escaped) => Some(escaped),
    };
    Projected::Text {
        chunk,
        text: escaped.unwrap_or(content),
    }
}

fn finished(message: &str, counts: Counts) -> acp::SessionUpdate {
    let meta = Map::from_iter([(ext::FINISH.to_owned(), json!(counts))]);
    // Clients that do not know it show it below the answer.
    let line = format!("\n\n{}\n", display::escape(message));
    acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(line.into()).meta(meta))
}

fn notice(text: &str) -> Projected {
    Projected::Notice(display::escape(text).into_owned())
}

/// The content of a permission request: the call as it will run.
pub(crate) fn question(call_id: &str, kind: ToolKind, mut preview: Preview) -> acp::ToolCallUpdate {
    let description = preview.description().join("\n");
    let mut content: Vec<acp::ToolCallContent> = Vec::new();
    if !description.is_empty() {
        content.push(acp::ContentBlock::from(description).into());
    }
    content.extend(diffs(&std::mem::take(&mut preview.diffs)));
    let fields = previewed(kind, preview)
        .status(acp::ToolCallStatus::Pending)
        .content(content);
    acp::ToolCallUpdate::new(call_id.to_owned(), fields)
}

/// The request to continue a turn, as a call: clients show no request without one.
pub(crate) fn pause(call_id: &str, preview: &Preview) -> acp::SessionUpdate {
    let title = display::escape_line(&preview.title).into_owned();
    let call = acp::ToolCall::new(call_id.to_owned(), title).kind(acp::ToolKind::Think);
    acp::SessionUpdate::ToolCall(call.status(acp::ToolCallStatus::Pending))
}

/// Closes the call of a request to continue.
pub(crate) fn paused(call_id: String) -> acp::SessionUpdate {
    change(call_id, fields().status(acp::ToolCallStatus::Completed))
}

fn fields() -> acp::ToolCallUpdateFields {
    acp::ToolCallUpdateFields::new()
}

fn change(call_id: String, fields: acp::ToolCallUpdateFields) -> acp::SessionUpdate {
    acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(call_id, fields))
}

/// How a command ended, and how a terminal would show its output.
fn ended_meta(result: &ToolOutput) -> Option<acp::Meta> {
    let exit = result.exit.map(|Exit { code, ran_ms }| {
        (
            ext::EXIT.to_owned(),
            json!(ext::Exit {
                code,
                duration_ms: ran_ms
            }),
        )
    });
    let styles = if result.styles.is_empty() {
        Vec::new()
    } else {
        let (display, parts) = without_most(&result.content);
        styles::shown(
            &result.content,
            &parts,
            &display::escape(&display),
            &result.styles,
        )
    };
    let styles = (!styles.is_empty()).then(|| (ext::STYLES.to_owned(), json!(styles)));
    let job = result.job.map(|job| (ext::JOB.to_owned(), json!(job)));
    let rejected = result
        .rejected
        .then(|| (ext::REJECTED.to_owned(), json!(true)));
    Some(
        exit.into_iter()
            .chain(styles)
            .chain(job)
            .chain(rejected)
            .collect::<Map<_, _>>(),
    )
    .filter(|meta| !meta.is_empty())
}

fn previewed(kind: ToolKind, preview: Preview) -> acp::ToolCallUpdateFields {
    let mut title = display::escape_line(&preview.title).into_owned();
    if let Some(caution) = &preview.caution {
        title = format!("{title} ({})", display::escape_line(caution));
    }
    let fields = fields()
        .title(title)
        .kind(tool_kind(kind))
        .locations(locations(preview.locations));
    // A preview takes the place of the one before, also when the edit turned out to match nothing.
    if preview.diffs.is_empty() && kind != ToolKind::Edit {
        fields
    } else {
        fields.content(diffs(&preview.diffs))
    }
}

fn executed(result: ToolOutput, proposed: &[FileDiff]) -> acp::ToolCallUpdateFields {
    let exited_badly = result.exit.is_some_and(|exit| exit.code != Some(0));
    let status = if result.is_error || exited_badly {
        acp::ToolCallStatus::Failed
    } else {
        acp::ToolCallStatus::Completed
    };
    let mut fields = fields().status(status);
    if !result.locations.is_empty() {
        fields = fields.locations(locations(result.locations));
    }
    let content = if result.is_error {
        let tried = if result.diffs.is_empty() {
            proposed
        } else {
            &result.diffs
        };
        diffs(tried)
            .into_iter()
            .chain([shown(if result.rejected {
                REJECTED
            } else {
                &result.content
            })])
            .collect()
    } else if result.diffs.is_empty() {
        vec![shown(&result.content)]
    } else if result.changes.is_some() {
        // A command's output comes first, then its changes.
        std::iter::once(shown(&result.content))
            .chain(diffs(&result.diffs))
            .collect()
    } else {
        diffs(&result.diffs)
    };
    fields.content(content)
}

fn shown(text: &str) -> acp::ToolCallContent {
    content(&without_most(text).0)
}

/// The parts of a result that are shown: as one text, and each with its place in that.
fn without_most(text: &str) -> (Cow<'_, str>, Vec<(Range<usize>, usize)>) {
    let Some((head, more, tail)) = without_middle(text, SHOWN / 2, SHOWN / 2) else {
        return (Cow::Borrowed(text), vec![(0..text.len(), 0)]);
    };
    let display = format!("{head}\n… ({more} bytes more)\n{tail}");
    let at = display.len() - tail.len();
    (
        Cow::Owned(display),
        vec![
            (0..head.len(), 0),
            (text.len() - tail.len()..text.len(), at),
        ],
    )
}

fn content(text: &str) -> acp::ToolCallContent {
    acp::ToolCallContent::from(acp::ContentBlock::from(display::escape(text).into_owned()))
}

fn diffs(diffs: &[FileDiff]) -> Vec<acp::ToolCallContent> {
    let content = |diff: &FileDiff| {
        let (old, new, skipped) = diff.shown();
        let meta = (skipped > 0)
            .then(|| Map::from_iter([(ext::SKIPPED_LINES.to_owned(), json!(skipped))]));
        acp::Diff::new(as_text(&diff.path), new)
            .old_text(old)
            .meta(meta)
            .into()
    };
    diffs.iter().map(content).collect()
}

fn locations(locations: Vec<Location>) -> Vec<acp::ToolCallLocation> {
    locations
        .into_iter()
        .map(|Location { path, line }| acp::ToolCallLocation::new(as_text(&path)).line(line))
        .collect()
}

/// A path for a message, which cannot have the bytes of every name.
fn as_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn tool_kind(kind: ToolKind) -> acp::ToolKind {
    match kind {
        ToolKind::Read => acp::ToolKind::Read,
        ToolKind::Edit => acp::ToolKind::Edit,
        ToolKind::Search => acp::ToolKind::Search,
        ToolKind::Execute => acp::ToolKind::Execute,
        ToolKind::Think => acp::ToolKind::Think,
        ToolKind::Other => acp::ToolKind::Other,
    }
}

fn plan_entry(entry: &PlanEntry) -> acp::PlanEntry {
    let priority = match entry.priority {
        PlanPriority::High => acp::PlanEntryPriority::High,
        PlanPriority::Medium => acp::PlanEntryPriority::Medium,
        PlanPriority::Low => acp::PlanEntryPriority::Low,
    };
    let status = match entry.status {
        PlanStatus::Pending => acp::PlanEntryStatus::Pending,
        PlanStatus::InProgress => acp::PlanEntryStatus::InProgress,
        PlanStatus::Completed => acp::PlanEntryStatus::Completed,
    };
    acp::PlanEntry::new(display::escape(&entry.content), priority, status)
}
