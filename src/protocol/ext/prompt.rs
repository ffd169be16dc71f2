//! The life of a prompt: its id, what happens to it, and what it can mention.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

pub use crate::domain::Completion;
use crate::protocol::acp;

/// In the `_meta` of `session/prompt` and `_tandem/session/steer`: the client's id for the prompt, unique in its
/// session. The server assigns one if it is missing.
pub const PROMPT_ID: &str = "tandem/promptId";
/// The field of a replayed message's `_meta` that has the number of the turn it began, as in `_tandem/review`.
pub const TURN: &str = "tandem/turn";
/// In the `_meta` of a `session_info_update`, when a saved session is replayed and a turn was cut short: the stop reason,
/// `error`, or `interrupted` if tandem ended before the turn did.
pub const STOPPED: &str = "tandem/stopped";
/// The field of a replayed message's `_meta` that has what was sent along, as content blocks.
pub const ATTACHED: &str = "tandem/attached";

/// `_tandem/didStartTyping`, a notification: the person began to type a prompt. A local server then evaluates what its
/// request will begin with.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidStartTyping {
    /// The session.
    pub session_id: String,
}

/// `_tandem/session/steer`, a request: adds a message to the running turn. The message joins the conversation after the
/// current answer's tool calls, and the request is answered then; an error if no turn took it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Steer {
    /// The session.
    pub session_id: String,
    /// As in `session/prompt`.
    pub prompt: Vec<acp::ContentBlock>,
    /// As in `session/prompt`; may carry the prompt's id (`tandem/promptId`).
    #[serde(default, rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
}

/// `_tandem/turn`, a notification: the state of a prompt. For each accepted prompt, exactly one of `joined`, `returned`
/// and `ended` is sent, as the last.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The session.
    pub session_id: String,
    /// The prompt.
    pub prompt_id: String,
    /// Its state.
    pub state: PromptState,
    /// The number of its turn, as in `_tandem/review` (`running`; missing if the prompt is a command).
    pub turn: Option<u64>,
    /// Its position in the queue, counted from 1 (`queued`).
    pub position: Option<usize>,
    /// ACP's stop reason or the failure's code (`ended`), or why the model never saw it (`returned`).
    pub reason: Option<String>,
    /// The failure, for people (`ended`).
    pub message: Option<String>,
    /// The prompt itself (`returned`).
    pub prompt: Option<Vec<acp::ContentBlock>>,
}

/// The states of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptState {
    /// It waits for earlier turns. Sent again when its position changes.
    #[default]
    Queued,
    /// Its turn runs.
    Running,
    /// It joined a running turn.
    Joined,
    /// The model never saw it; the client may put it back into the input.
    Returned,
    /// Its turn ended.
    Ended,
}

/// `_tandem/turn/withdraw`, a request: withdraws a prompt that is queued or has not joined yet. Answered with `{}`, or
/// with an error if the model already has it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Withdraw {
    /// The session.
    pub session_id: String,
    /// The prompt.
    pub prompt_id: String,
}

/// `_tandem/complete`, a request: what a prompt can mention. Answered immediately with what is known so far; a newer request
/// replaces an older one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Complete {
    /// The session.
    pub session_id: String,
    /// The text between the `@` and the cursor; after a `#`, the name of a definition.
    pub query: String,
}

/// The answer to [`Complete`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Completions {
    /// Best match first, 50 at most.
    pub items: Vec<Completion>,
}
