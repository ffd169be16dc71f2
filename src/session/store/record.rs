//! What stands in a journal: one record a line, as JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::review::StoredReview;
use crate::agent::Entry;
use crate::config::Mode;
use crate::model::{Effort, Message, Usage};
use crate::session::texts::StoredChange;
use crate::tools::{FileDiff, Location, PlanEntry, ToolKind};
use crate::workspace::ChangeSet;

/// The version this program writes, and the highest it reads.
pub(super) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::session) enum Record {
    /// The first line.
    Session(Head),
    /// A process goes on with it.
    Opened {
        /// Which.
        pid: u32,
    },
    /// The person said something.
    Prompt {
        /// Their words.
        text: String,
        /// What the model was sent: the words and what came with them.
        message: Message,
    },
    /// What the model thought before the next message.
    Thought {
        /// The words that were shown.
        text: String,
    },
    /// The model's answer, the results of its calls, or what the person said meanwhile.
    Message {
        /// As it stands in the conversation.
        message: Message,
    },
    /// The conversation was made shorter: the model knows this instead of everything before.
    Compacted {
        /// All of it.
        messages: Vec<Message>,
    },
    /// The conversation went back to before a turn.
    Restored {
        /// The turn, counted in prompts.
        turn: u64,
        /// All the model knows from here on.
        messages: Vec<Message>,
    },
    /// The last restore was taken back.
    Unrestored {
        /// All the model knows from here on.
        messages: Vec<Message>,
    },
    /// A call ended.
    Call(Call),
    /// A person settled, undid or redid changes.
    Reviewed(StoredReview),
    /// The plan, whole.
    Plan {
        /// Its steps.
        entries: Vec<PlanEntry>,
    },
    /// The mode from here on.
    Mode {
        /// Which.
        mode: Mode,
    },
    /// The model from here on.
    Model(Held),
    /// The prompts that wait for their turn, whole.
    Queue {
        /// The next one first.
        prompts: Vec<QueuedPrompt>,
    },
    /// The turn ended.
    End {
        /// All its tokens.
        usage: Usage,
    },
    /// Written by a version that knew more; nothing that has to be understood.
    #[serde(other)]
    Unknown,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct QueuedPrompt {
    /// Its name.
    pub id: String,
    /// The prompt as the client sent it.
    pub prompt: serde_json::Value,
}

/// What a list of conversations shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Head {
    /// Of the format.
    pub version: u32,
    /// The conversation's name.
    pub id: String,
    /// The workspace folders, the first one first.
    pub folders: Vec<PathBuf>,
    /// The beginning of the first prompt.
    pub title: String,
}

/// With which model a conversation is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Held {
    /// `provider/model`.
    pub model: String,
    /// How hard it thinks; `None`: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// How a call is shown again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Call {
    /// The call's id.
    pub id: String,
    /// What it did, in words.
    pub title: String,
    /// Its tool's kind.
    pub kind: ToolKind,
    /// The places it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<StoredChange>,
    /// All that a command changed; the contents are stored with the texts, by their address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Arc<ChangeSet>>,
}

/// A record that waits to be written. What is long is shared with the conversation, not copied.
#[derive(Debug)]
pub(super) enum Pending {
    /// As it is.
    Record(Record),
    /// Becomes a [`Record::Prompt`].
    Prompt { text: String, entry: Arc<Entry> },
    /// Becomes a [`Record::Message`].
    Message(Arc<Entry>),
    /// Becomes a [`Record::Call`] with these changes.
    Call(Call, Vec<FileDiff>),
}

/// The same as [`Record`], borrowed.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Prompt { text: &'a str, message: &'a Message },
    Message { message: &'a Message },
}

impl From<Record> for Pending {
    fn from(record: Record) -> Self {
        Self::Record(record)
    }
}

impl Pending {
    /// Writes its line.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Record(record) => serde_json::to_writer(&mut *out, record),
            Self::Prompt { text, entry } => {
                serde_json::to_writer(&mut *out, &Line::Prompt { text, message: &entry.message() })
            }
            Self::Message(entry) => serde_json::to_writer(&mut *out, &Line::Message { message: &entry.message() }),
            Self::Call(call, diffs) => {
                let call = Call { changes: diffs.iter().map(StoredChange::of).collect(), ..call.clone() };
                serde_json::to_writer(&mut *out, &Record::Call(call))
            }
        }?;
        out.write_all(b"\n")
    }
}
