//! The records of a journal: one per line, as JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::agent::Spent;
use crate::agent::event::Termination;
use crate::changes::ChangeSet;
use crate::changes::checkpoint::Settled;
use crate::config::Mode;
use crate::domain::{Counts, Usage};
use crate::model::{Effort, Message, Taught};
use crate::tools::{Exit, Location, PlanEntry, ToolKind};

/// The version this program writes, and the highest it reads.
pub(super) const VERSION: u32 = 1;

/// One line.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::session) enum Record {
    /// The first line.
    Session(Head),
    /// The person's prompt.
    Prompt {
        /// Their words.
        text: String,
        /// What the model was sent: the text and its context.
        message: Arc<Message>,
        /// What the client sent along, as it did; images without their bytes, which are in `message`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attached: Vec<Value>,
    },
    /// Reasoning before the next message.
    Thought {
        /// The displayed text.
        text: String,
    },
    /// The model's answer, the results of its calls, or a steering message.
    Message {
        /// As in the conversation.
        message: Arc<Message>,
    },
    /// The session was compacted: this replaces everything before.
    Compacted {
        /// The complete history.
        messages: Vec<Arc<Message>>,
    },
    /// The session was restored to before a turn.
    Restored {
        /// The turn, counted in prompts.
        turn: u64,
        /// The complete history from here on.
        messages: Vec<Arc<Message>>,
    },
    /// The last restore was reverted.
    Unrestored {
        /// The complete history from here on.
        messages: Vec<Arc<Message>>,
    },
    /// What a call is about to edit, or may still edit although it failed.
    Unconfirmed(Call),
    /// A call ended.
    Call(Call),
    /// A person settled, undid or redid changes.
    Review(Settled),
    /// What the next prompt tells the model.
    Note {
        /// In parentheses, as it reads it.
        text: String,
    },
    /// The complete plan.
    Plan {
        /// Its steps.
        entries: Vec<PlanEntry>,
    },
    /// What the checks at the end of a turn found.
    Finish {
        /// The line to show.
        message: String,
        /// The same in numbers.
        counts: Counts,
    },
    /// The mode from here on.
    Mode {
        /// The mode.
        mode: Mode,
    },
    /// The model from here on.
    Model(Held),
    /// A model's server refused something.
    Taught {
        /// `provider/model at URL`.
        model: String,
        /// All that it refused so far.
        taught: Taught,
    },
    /// The complete queue.
    Queue {
        /// The next one first.
        prompts: Vec<QueuedPrompt>,
    },
    /// What the session has used so far.
    Used {
        /// What counts towards its limits.
        spent: Spent,
        /// Tokens of the last request and its answer.
        tokens: u64,
        /// US dollars, if prices are known.
        cost: Option<f64>,
    },
    /// The turn ended.
    End {
        /// Why; `None` in journals written before this was recorded.
        reason: Option<Termination>,
        /// The usage of the turn, in journals written before [`Record::Used`].
        #[serde(default, skip_serializing)]
        usage: Option<Usage>,
        /// The tokens of its last request and answer, likewise.
        #[serde(default, skip_serializing)]
        filled: u64,
    },
    /// An unknown record of a newer version, which may be ignored.
    #[serde(other)]
    Unknown,
}

/// A queued prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct QueuedPrompt {
    /// Its id.
    pub id: String,
    /// The prompt as the client sent it.
    pub prompt: Value,
}

/// What a list of sessions shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Head {
    /// The format's version.
    pub version: u32,
    /// The session's id.
    pub id: String,
    /// The workspace folders, the first one first.
    pub folders: Vec<PathBuf>,
    /// The beginning of the first prompt.
    pub title: String,
    /// The environment line of the system prompt; empty in journals of tandem 0.1.
    #[serde(default)]
    pub environment: String,
    /// The chat file that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<PathBuf>,
}

/// The model of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Held {
    /// `provider/model`.
    pub model: String,
    /// The reasoning effort; `None` for the configured one.
    pub effort: Option<Effort>,
}

/// What is needed to show a call again.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Call {
    /// The call's id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its tool's kind.
    pub kind: ToolKind,
    /// The locations it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What it changed; contents are stored next to the journals, as images.
    #[serde(default, skip_serializing_if = "ChangeSet::is_empty")]
    pub changed: ChangeSet,
    /// How its command ended.
    pub exit: Option<Exit>,
    /// Whether a person did not allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
}

impl Record {
    /// Writes its line.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}
