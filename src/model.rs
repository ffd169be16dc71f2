//! The interface to models: provider-neutral messages in, a stream of provider-neutral events out.
//!
//! The APIs (chat, responses, messages) are pure encoders and decoders; `request` sends, waits and retries, over
//! `http`; `text::sse` splits bytes into events; `collect` folds events into a finished message.
//!
//! Nothing here depends on tools, workspaces or editors. One [`Provider`] can serve many sessions at once.
//!
//! Invariants: a message is serialized once ([`Provider::encode`]) and never changed afterwards, so each request of a
//! session starts with the bytes of the previous one; dropping a [`ModelStream`] closes its socket; keys are never
//! printed.

mod answer;
mod batch;
mod body;
mod catalog;
mod chat;
pub mod collect;
mod connection;
mod date;
mod decoder;
mod editor;
mod effort;
mod family;
mod fault;
mod fill;
mod finish;
mod fragments;
mod gather;
mod host;
mod http;
mod key;
mod known;
mod learned;
mod lenient;
mod messages;
mod provider;
mod request;
mod responses;
mod silence;
#[cfg(test)]
mod tests;
mod think;
mod thinking;
mod whole;
mod window;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::domain::{Api, Effort, Endpoint, ErrorCode, Failure, Image, Key, TimeLimits, Usage};
pub use batch::Batch;
pub use catalog::{ModelInfo, detect};
pub use collect::{Collected, Collector, Outcome};
pub use decoder::StreamDecoder;
pub use family::Known;
pub use fill::{Gap, PastEdit, Rewrite, Snippet, edit_format, rewritten};
pub use learned::Taught;
pub use provider::Provider;
pub use window::{NO_TOOLS, SMALL_WINDOW};

/// An entry of a conversation, independent of providers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The person's message, with the context attached to it.
    User {
        /// The parts in order.
        parts: Vec<Part>,
    },
    /// An answer of the model.
    Assistant(AssistantMessage),
    /// The answers to *all* calls of the assistant message before, in the order of the calls.
    Results {
        /// One result a call, never fewer.
        results: Vec<ToolResult>,
    },
}

impl Message {
    /// A message of the person with this text alone.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::User {
            parts: vec![Part::Text { text }],
        }
    }

    /// A message from tandem itself to the model.
    pub fn note(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::User {
            parts: vec![Part::Note { text }],
        }
    }

    /// An answer with this text alone.
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage {
            text: text.into(),
            ..AssistantMessage::default()
        })
    }

    /// The calls of an answer.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(answer) => &answer.calls,
            _ => &[],
        }
    }

    /// The text of an answer.
    pub fn answer_text(&self) -> &str {
        match self {
            Self::Assistant(answer) => &answer.text,
            _ => "",
        }
    }
}

/// A part of a user message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Anything else in text: attachments, instructions, notes from tandem itself. It is encoded like the person's text,
    /// but never taken for it.
    Note {
        /// The text.
        text: String,
    },
    /// An image, for models that accept images.
    Image(Image),
}

/// A finished (or cut) answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssistantMessage {
    /// All text of the answer.
    pub text: String,
    /// Items to send back verbatim to the provider that made them, in order.
    pub reasoning: Vec<ReasoningItem>,
    /// The words of a refusal; empty when there is none.
    pub refusal: String,
    /// The calls in the order the model made them.
    pub calls: Vec<ToolCall>,
}

/// A piece of an answer in its API's own form: reasoning, or all items of an answer if their order matters. Items of
/// other models are not sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningItem {
    /// The API the item belongs to.
    pub api: Api,
    /// The model that made it.
    pub model: String,
    /// The provider that served the model; empty in journals of tandem 0.1.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The item exactly as the provider wants it back.
    pub item: Value,
}

/// A call the model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id, unique within the conversation.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

impl ReasoningItem {
    /// An item found by a stream's decoder. Whose it is, is filled in where the request is sent.
    fn new(item: Value) -> Self {
        Self {
            item,
            ..Self::default()
        }
    }
}

/// The arguments of a call: parsed once, after the last fragment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object, ready to be used.
    Object(Map<String, Value>),
    /// Text that is not a JSON object (or was truncated): never run.
    Unparsable(String),
}

/// The answer to one call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The [`ToolCall::id`] it answers.
    pub call_id: String,
    /// The result for the model.
    pub content: String,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Its images, for models that accept images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A tool's description for the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether its arguments contain long texts, which are shown while they stream.
    #[serde(skip)]
    pub streams: bool,
}

/// The part shared by all requests of a session; made once by [`Provider::preamble`].
#[derive(Debug, Clone)]
pub struct Preamble {
    /// The API's opening bytes: tools and system prompt, in a fixed order.
    pub bytes: Bytes,
    /// The names of the tools.
    pub tools: Arc<[String]>,
    /// Its source, to make it again in another API.
    pub instructions: Arc<Instructions>,
    /// What the server requires between results and a person's message.
    pub(super) gap: Bytes,
}

/// One request, assembled from shared bytes.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Tools and system prompt.
    pub preamble: Preamble,
    /// The conversation, each message as [`Provider::encode`] made it.
    pub messages: Vec<Bytes>,
    /// Whether the model may answer with calls.
    pub may_call: bool,
}

/// What comes back, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Text of the answer. Adjacent deltas that arrived in one read are one event.
    Text(String),
    /// Reasoning to show.
    Reasoning(String),
    /// The text so far was reasoning: its end arrived, and its beginning never did.
    TextWasReasoning,
    /// The text from here on is a message of somebody else that the model made up: nothing in it is a call.
    TextIsForeign,
    /// Reasoning to replay.
    ReasoningItem(ReasoningItem),
    /// Words of a refusal.
    Refusal(String),
    /// A call begins. `id` and `name` may be empty until the provider sends them (then the event is repeated).
    CallStart {
        /// Our own slot, counted from 0 in order of appearance; never the provider's index.
        slot: usize,
        /// The provider's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A fragment of a call's arguments.
    CallDelta {
        /// The call's slot.
        slot: usize,
        /// The fragment.
        json: String,
    },
    /// The call's arguments are complete: it may start while the rest streams. May be repeated.
    CallEnd {
        /// The call's slot.
        slot: usize,
    },
    /// Tokens used so far by this request; the last one counts.
    Usage(Usage),
    /// Why the model stopped.
    Finish(Finish),
    /// An attempt failed; another follows after `wait`.
    Retry {
        /// Counted from 1.
        attempt: u32,
        /// How long until the next try.
        wait: Duration,
        /// What went wrong.
        reason: String,
    },
    /// A notice for the person.
    Notice(String),
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It finished.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// The token limit cut the answer off.
    Length,
    /// A content filter cut the answer off; in the provider's word.
    ContentFilter(String),
    /// It refused.
    Refusal,
    /// It pauses: the same request with this answer appended continues it.
    Pause,
    /// It made a call that the provider could not parse.
    Malformed,
    /// The provider failed in the middle of the answer; in its word.
    Broken(String),
    /// Anything else, as the provider calls it.
    Other(String),
}

impl Finish {
    /// Whether the answer that it ends is complete.
    pub fn is_whole(&self) -> bool {
        !matches!(
            self,
            Self::Length | Self::ContentFilter(_) | Self::Refusal | Self::Broken(_)
        )
    }
}

/// The events of one request; ends after the first error. Dropping it closes the socket.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, Failure>>;

/// The tools and the system prompt of a session, as [`Provider::preamble`] takes them.
#[derive(Debug, Clone, Default)]
pub struct Instructions {
    /// The system prompt.
    pub system: String,
    /// The tools, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation's id: the key of its cache, the same in every process.
    pub conversation: Arc<str>,
}
