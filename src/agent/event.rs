//! The events of a turn: printed as they are by `run --json`, projected to `session/update` by the server.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use tokio::sync::oneshot;

use crate::domain::{Counts, Effort, Failure, PlanEntry, Preview, ToolKind, Usage};
use crate::model::{Arguments, Message, ToolCall};
use crate::tools::output::ToolOutput;

/// An event. Consumers ignore types they do not know.
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
        /// Its context window in tokens, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// The size of the context window became known or changed.
    Window {
        /// The window in tokens.
        tokens: u64,
    },
    /// A request to the model begins.
    IterationStart {
        /// Counted from 1.
        iteration: u32,
        /// Messages in the request.
        message_count: usize,
    },
    /// A saved session was resumed.
    Resumed {
        /// The beginning of its first prompt.
        title: String,
        /// Its mode.
        mode: String,
        /// Its model, `provider/model`, when there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Its reasoning effort, unless it is the configured one.
        #[serde(skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// US dollars so far, if prices were known.
        cost: Option<f64>,
    },
    /// The title of the session.
    SessionTitle {
        /// The beginning of its first prompt.
        title: String,
    },
    /// A message of the person, as it is shown when replayed.
    UserMessage {
        /// Its text.
        content: String,
        /// The prompt's id, if it joined the running turn.
        #[serde(skip)]
        prompt: Option<Arc<str>>,
        /// The number of the turn it began, as used in reviews, if it is replayed.
        #[serde(skip)]
        turn: Option<u64>,
        /// The client's attachments as ACP content blocks, if it is replayed.
        #[serde(skip)]
        attached: Vec<Value>,
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
        /// The call's index in the answer.
        index: usize,
        /// May be provisional until the provider names the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's kind, `other` for an unknown tool.
        kind: ToolKind,
    },
    /// A fragment of a call's arguments.
    ToolCallDelta {
        /// The call's index in the answer.
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
    /// A preview of a call; repeated while an edit's arguments stream.
    ToolPreview {
        /// The call.
        call_id: String,
        /// The tool's kind.
        kind: ToolKind,
        /// What to show.
        preview: Preview,
    },
    /// A call starts to run.
    ToolExecutionStart {
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// Output of a running call.
    ToolOutput {
        /// The call.
        call_id: String,
        /// New output, usually complete lines.
        content: String,
        /// An incomplete last line; the next event replaces it.
        #[serde(skip_serializing_if = "String::is_empty")]
        line: String,
    },
    /// A call has its result; exactly one for each call.
    ToolExecutionEnd {
        /// The call.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The result.
        result: ToolOutput,
        /// How long it waited to run.
        wait_ms: f64,
        /// How long it ran.
        execute_duration_ms: f64,
    },
    /// A person has to decide. Dropping `reply` means no.
    PermissionRequested(Box<PermissionRequest>),
    /// The person (or a rule) answered.
    PermissionResolved {
        /// The call.
        call_id: String,
        /// The answer.
        outcome: Permission,
    },
    /// The complete plan.
    Plan {
        /// Its steps.
        entries: Vec<PlanEntry>,
    },
    /// Tokens of this iteration.
    Usage(Usage),
    /// Something happened to the explorer of a call: events of its own turn.
    Explored {
        /// The call.
        call_id: String,
        /// What happened.
        event: Box<AgentEvent>,
    },
    /// A request and its calls are done.
    IterationComplete {
        /// Counted from 1.
        iteration: u32,
        /// How many calls it had.
        tool_calls: usize,
    },
    /// An attempt failed; another one follows.
    Retry {
        /// Counted from 1.
        attempt: u32,
        /// How long until then.
        wait_ms: u64,
        /// What went wrong.
        reason: String,
    },
    /// The model repeats itself (loop detection).
    LoopDetected {
        /// The tool it keeps calling.
        tool_name: String,
        /// How often.
        consecutive_count: u32,
        /// The consequence.
        action: String,
    },
    /// A notice for the person.
    Notice {
        /// Its text.
        message: String,
    },
    /// The conversation was compacted.
    Compaction {
        /// What was done.
        summary: String,
        /// Tokens before, approximately.
        tokens_before: u64,
        /// Tokens afterwards, approximately.
        tokens_after: u64,
    },
    /// The turn failed.
    Error(Failure),
    /// A replayed turn did not end by itself.
    Interrupted {
        /// Why it ended; `None` if the process ended before.
        reason: Option<Termination>,
    },
    /// What the checks at the end of a turn found.
    Finish {
        /// The line to show.
        message: String,
        /// The same in numbers.
        #[serde(flatten)]
        counts: Counts,
    },
    /// Always the last event of a turn.
    Done {
        /// The last answer, of which the text is printed.
        #[serde(rename = "final_text", serialize_with = "answer_text")]
        answer: Option<Arc<Message>>,
        /// Why the turn ended.
        termination_reason: Termination,
        /// How many requests it took.
        iterations: u32,
        /// All tokens of the turn.
        usage: Usage,
    },
}

#[expect(clippy::ref_option, reason = "the shape `serialize_with` wants")]
fn answer_text<S: Serializer>(
    answer: &Option<Arc<Message>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = answer.as_deref().map_or("", Message::answer_text);
    serializer.serialize_str(text)
}

impl AgentEvent {
    /// Its message for a person, if it carries nothing else.
    pub fn notice(&self) -> Option<&str> {
        match self {
            Self::Notice { message } | Self::Finish { message, .. } => Some(message),
            Self::Compaction { summary, .. } => Some(summary),
            Self::LoopDetected { action, .. } => Some(action),
            _ => None,
        }
    }
}

/// A finished call.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompleteCall {
    /// The provider's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// An object, or `null` when unparsable.
    pub arguments: Value,
    /// The text as it arrived, when unparsable.
    pub raw: Option<String>,
}

impl From<&ToolCall> for CompleteCall {
    fn from(call: &ToolCall) -> Self {
        let (arguments, raw) = match &call.arguments {
            Arguments::Object(object) => (Value::Object(object.clone()), None),
            Arguments::Unparsable(raw) => (Value::Null, Some(raw.clone())),
        };
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            raw,
        }
    }
}

impl AgentEvent {
    /// What a call is going to do.
    pub(crate) fn preview(call_id: &str, kind: ToolKind, preview: Preview) -> Self {
        Self::ToolPreview {
            call_id: call_id.to_owned(),
            kind,
            preview,
        }
    }

    /// The end of a call whose times are unknown, or of no interest.
    pub(crate) fn ended(call_id: &str, name: &str, result: ToolOutput) -> Self {
        Self::ToolExecutionEnd {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            result,
            wait_ms: 0.0,
            execute_duration_ms: 0.0,
        }
    }

    /// The beginning of a call of tandem's own, which has no place in an answer.
    pub(crate) fn own_call(id: &str, name: &str, kind: ToolKind, preview: Preview) -> [Self; 2] {
        let start = Self::ToolCallStart {
            index: 0,
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
        };
        [start, Self::preview(id, kind, preview)]
    }
}

/// A request for a decision, about a call or something else.
#[derive(Debug, Serialize)]
pub struct PermissionRequest {
    /// What it is about.
    #[serde(skip)]
    pub about: About,
    /// The call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The tool's kind.
    pub kind: ToolKind,
    /// What will happen.
    pub preview: Preview,
    /// Which broader permissions an approval may include.
    #[serde(flatten)]
    pub offer: Offer,
    /// Where the answer goes.
    #[serde(skip)]
    pub reply: Option<oneshot::Sender<Permission>>,
    /// Notified when a person has to answer.
    #[serde(skip)]
    pub asked: Option<oneshot::Sender<()>>,
}

/// What a permission request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A call.
    Call {
        /// The name used in rules about its tool.
        rule_name: String,
        /// Whether the model wrote the call into the text of its answer, beside prose: it may be an example.
        in_prose: bool,
        /// Whether the person may be asked, which an explorer cannot wait for.
        asks: bool,
    },
    /// Whether a turn that paused continues.
    Pause,
    /// Whether what a turn changed in a copy of the workspace is applied.
    Apply,
    /// Whether a plan is carried out.
    Plan,
    /// A form or an address of an MCP server.
    Server,
}

/// The answer that carries out a plan.
pub const START: &str = "Start";
/// The same, with nothing in the context but the plan.
pub const START_FRESH: &str = "Start with a Fresh Context";
/// The same in a new session, which the client opens.
pub const START_ELSEWHERE: &str = "Start in a New Session";

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Yes, this once.
    AllowOnce,
    /// Yes, and the same for everything the rule covers.
    AllowAlways(#[serde(skip)] Grant),
    /// The person's answer to a question of the model.
    Answered(String),
    /// A form, filled in.
    Filled(Box<Map<String, Value>>),
    /// No.
    Reject,
    /// No answer: the turn was cancelled.
    Cancelled,
    /// The mode or a rule forbids it; the text is for the model. Nobody was asked.
    Forbidden(String),
}

impl Permission {
    /// No, because nobody is there who could decide.
    pub fn unasked() -> Self {
        Self::Forbidden(
            "this requires the user's approval, and there is nobody to ask\nLeave it out and say so."
                .to_owned(),
        )
    }

    /// Whether the call may run.
    pub fn allows(&self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways(_))
    }
}

/// What a yes to a permission request may cover besides the call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The rule that "always" would add; `None` if this requires approval every time.
    pub rule: Option<String>,
    /// The rule for the same subcommand with any arguments.
    pub prefix: Option<String>,
    /// Whether the rest of the turn can be allowed with it.
    #[serde(skip)]
    pub turn: bool,
}

/// The scope of a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// How long it applies.
    pub scope: Scope,
    /// The rule as the person chose or edited it; `None` for the exact one.
    pub rule: Option<String>,
}

/// How long a yes applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Until the turn ends: whatever mode `auto` allows no longer requires approval.
    Turn,
    /// Until the session ends.
    Session,
    /// In every session in this workspace, until it is removed (`tandem permissions rm`).
    Project,
}

impl Scope {
    /// As in commands and choices.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Project => "project",
        }
    }
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The model finished.
    EndTurn,
    /// The token limit cut the answer off.
    MaxTokens,
    /// The model refused.
    Refusal,
    /// A limit or a loop ended it.
    MaxTurnRequests,
    /// The person cancelled.
    Cancelled,
    /// It failed.
    Error,
}
