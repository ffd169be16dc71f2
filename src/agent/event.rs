//! What happens in a turn, as it happens: printed as it is by `run --json`, projected to `session/update` by the server.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::domain::{Effort, ErrorCode, FileDiff, Location, Picture, PlanEntry, Preview, ToolKind, Usage};
use crate::workspace::ChangeSet;

/// One thing that happened. Consumers ignore the types they do not know.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A turn begins.
    TurnStart {
        /// Unique within the session.
        turn_id: String,
        /// `provider/model`.
        model: String,
        /// How many tokens it reads at once, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// The model's window became known, or turned out to be another one.
    Window {
        /// How many tokens the model reads at once.
        tokens: u64,
    },
    /// A request to the model begins.
    IterationStart {
        /// Counted from 1.
        iteration: u32,
        /// Messages in the request.
        message_count: usize,
    },
    /// A conversation that was kept goes on.
    Resumed {
        /// The beginning of its first prompt.
        title: String,
        /// Its mode.
        mode: String,
        /// Its model, `provider/model`, when there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// How hard that thinks, where it is not as configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// US dollars so far, where prices were known.
        cost: Option<f64>,
    },
    /// What the conversation is called.
    SessionTitle {
        /// The beginning of its first prompt.
        title: String,
    },
    /// Something the person said, as it is shown again.
    UserMessage {
        /// The words.
        content: String,
        /// The prompt, where it joined the running turn.
        #[serde(skip)]
        prompt: Option<Arc<str>>,
    },
    /// Text of the answer.
    TextDelta {
        /// The text.
        content: String,
    },
    /// Reasoning.
    ReasoningDelta {
        /// The text.
        content: String,
    },
    /// The model begins a call.
    ToolCallStart {
        /// The call's place in the answer.
        index: usize,
        /// May be provisional until the provider names the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's kind, `other` for a tool nobody knows.
        kind: ToolKind,
    },
    /// A fragment of a call's arguments.
    ToolCallDelta {
        /// The call's place in the answer.
        index: usize,
        /// The id of its start.
        id: String,
        /// The fragment.
        json_chunk: String,
    },
    /// A call is complete.
    ToolCallComplete {
        /// The call.
        call: CompleteCall,
    },
    /// What a call is going to do; comes again while an edit's arguments stream.
    ToolPreview {
        /// The call.
        call_id: String,
        /// The tool's kind.
        kind: ToolKind,
        /// What to show.
        preview: Preview,
    },
    /// A call's code begins to run.
    ToolExecutionStart {
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// What it was called with.
        arguments: Value,
    },
    /// Output of a call that still runs.
    ToolOutput {
        /// The call.
        call_id: String,
        /// The piece.
        content: String,
    },
    /// A call has its result; exactly one for each call.
    ToolExecutionEnd {
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The result.
        result: ExecutionResult,
        /// How long it waited for its place.
        wait_ms: f64,
        /// How long its code ran.
        execute_duration_ms: f64,
    },
    /// The person is asked. Who drops `reply` has said no.
    PermissionRequested {
        /// What it is about.
        #[serde(skip)]
        about: About,
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The tool's kind.
        kind: ToolKind,
        /// What will happen.
        preview: Box<Preview>,
        /// The rule that "always" would add; `None` where this is asked every time.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Where the answer goes.
        #[serde(skip)]
        reply: Option<oneshot::Sender<Permission>>,
        /// Told that a person has to answer.
        #[serde(skip)]
        asked: Option<oneshot::Sender<()>>,
    },
    /// The person (or a rule) answered.
    PermissionResolved {
        /// The call.
        call_id: String,
        /// The answer.
        outcome: Permission,
    },
    /// The plan, whole.
    Plan {
        /// Its steps.
        entries: Vec<PlanEntry>,
    },
    /// Tokens of this iteration.
    Usage(Usage),
    /// A request and its calls are done.
    IterationComplete {
        /// Counted from 1.
        iteration: u32,
        /// How many calls it had.
        tool_calls: usize,
    },
    /// A try failed; another follows.
    Retry {
        /// Counted from 1.
        attempt: u32,
        /// How long until it.
        wait_ms: u64,
        /// What went wrong.
        reason: String,
    },
    /// A guard saw the model going in circles.
    LoopDetected {
        /// The tool it keeps calling.
        tool_name: String,
        /// How often.
        consecutive_count: u32,
        /// What was done about it.
        action: String,
    },
    /// Something the person should know.
    Notice {
        /// The words.
        message: String,
    },
    /// The conversation was made shorter.
    Compaction {
        /// What was done.
        summary: String,
        /// About how many tokens it had.
        tokens_before: u64,
        /// About how many it has now.
        tokens_after: u64,
    },
    /// The turn failed.
    Error {
        /// The cause and the way out.
        message: String,
        /// The kind.
        code: ErrorCode,
        /// The HTTP status, where there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Whether the same prompt may work later.
        retryable: bool,
    },
    /// Always the last event of a turn.
    Done {
        /// The text of the last answer.
        final_text: String,
        /// Why the turn ended.
        termination_reason: Termination,
        /// How many requests it took.
        iterations: u32,
        /// All tokens of the turn.
        usage: Usage,
    },
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompleteCall {
    /// The provider's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// An object, or `null` when unparsable.
    pub arguments: Value,
    /// The text as it came, when unparsable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// What a call gave, as shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ExecutionResult {
    /// What the model reads.
    pub content: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// All that a command changed, texts or not.
    #[serde(skip)]
    pub changes: Option<Arc<ChangeSet>>,
    /// Where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What it shows to a model that sees.
    #[serde(skip)]
    pub images: Vec<Picture>,
}

/// What a permission request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A call.
    Call {
        /// What the rules about its tool are written with.
        rule_name: String,
    },
    /// Whether a turn that a guard has stopped continues.
    Pause,
}

/// The answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Yes, this once.
    AllowOnce,
    /// Yes, and whatever else the rule allows.
    AllowAlways(#[serde(skip)] Grant),
    /// No.
    Reject,
    /// No answer: the turn was cancelled.
    Cancelled,
    /// The mode or a rule forbids it, in words for the model; nobody was asked.
    Forbidden(String),
}

/// How far a yes goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// How long it holds.
    pub scope: Scope,
    /// The rule as the person edited it; `None` for the one that was offered.
    pub rule: Option<String>,
}

impl Grant {
    /// The rule as it was offered.
    #[must_use]
    pub fn offered(scope: Scope) -> Self {
        Self { scope, rule: None }
    }
}

/// How long a yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Until the session ends.
    Session,
    /// In every session on this workspace, until it is taken back (`tandem permissions rm`).
    Project,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The model had nothing more to say.
    EndTurn,
    /// The token limit cut it.
    MaxTokens,
    /// The model refused.
    Refusal,
    /// A limit or guard ended it.
    MaxTurnRequests,
    /// The person cancelled.
    Cancelled,
    /// It failed.
    Error,
}
