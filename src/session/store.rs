//! The journal of a conversation: everything needed to go on with it after its process, in the state folder.
//!
//! One file a conversation, one record a line, only ever appended to. A record is written before what it tells is
//! acknowledged to anybody: the prompt before the model gets it, an answer before its tools' results go back, everything
//! of a turn before the turn's end is told. Written means handed to the system, which survives `kill -9`; at the end of
//! a turn the file is also synced, beside the work, so that a power failure costs the running turn at most.
//! One process holds a journal at a time. When a journal cannot be written, that is reported once, and everything is
//! written as soon as it can be.

mod list;
mod load;
mod record;
mod replay;
mod review;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;

pub(super) use self::list::folder;
pub use self::list::{Listed, Sessions, StoreError};
use self::load::Kept;
pub(super) use self::record::Held;
pub(super) use self::record::QueuedPrompt;
use self::record::{Call, Head, Pending, Record, VERSION};
pub(super) use self::replay::{Remembered, changes, events};
pub(super) use self::review::{StoredCommand, StoredFile, StoredLeft, StoredReview};
use super::SessionId;
use crate::agent::Entry;
use crate::agent::event::AgentEvent;
use crate::config::Mode;
use crate::domain::{Preview, ToolKind};
use crate::model::Message;
use crate::tools::process;
use crate::workspace::StateFolder;
use crate::workspace::state::log::{Log, LogError};

/// The most characters of a title.
const TITLE: usize = 80;

/// The journal of one conversation.
#[derive(Debug)]
pub(super) struct Journal {
    place: Place,
    /// Where the journals are.
    journals: Option<PathBuf>,
    id: SessionId,
    folders: Vec<PathBuf>,
    /// The mode that was chosen before there was anything to write.
    mode: Option<Mode>,
    /// The model that was noted last.
    held: Option<Held>,
    /// What waits to be written.
    pending: Vec<Pending>,
    /// Whether its first record was noted.
    begun: bool,
    /// Whether the last try to write failed, which was reported.
    failing: bool,
    /// What the model has thought since its last message.
    thought: String,
    /// Calls that have been shown and have not ended.
    shown: HashMap<String, (ToolKind, Preview)>,
    syncing: Option<JoinHandle<()>>,
}

/// Where it is.
#[derive(Debug)]
enum Place {
    /// In this folder, once there is something to write.
    Folder(PathBuf),
    /// Open.
    Open(Log),
    /// There is none.
    Nowhere,
}

impl Journal {
    /// The journal of a conversation that begins; nothing is written before its first prompt.
    pub fn new(folder: Option<PathBuf>, id: SessionId, folders: Vec<PathBuf>) -> Self {
        Self {
            journals: folder.clone(),
            place: folder.map_or(Place::Nowhere, Place::Folder),
            id,
            folders,
            mode: None,
            held: None,
            pending: Vec::new(),
            begun: false,
            failing: false,
            thought: String::new(),
            shown: HashMap::new(),
            syncing: None,
        }
    }

    /// Opens the journal of a conversation that was kept, and goes on with it.
    pub async fn open(&mut self) -> Result<Kept, StoreError> {
        let Place::Folder(folder) = &self.place else { return Err(StoreError::Unknown(self.id.to_string())) };
        let (log, kept) = list::open(folder, &self.id).await?;
        (self.place, self.begun) = (Place::Open(log), true);
        self.held.clone_from(&kept.held);
        self.note(Record::Opened { pid: std::process::id() });
        if let Some(message) = kept.repair.clone() {
            self.note(Record::Message { message });
        }
        Ok(kept)
    }

    /// Notes a prompt: the person's words, what the model is sent, and which model that is.
    pub fn prompt(&mut self, text: &str, entry: &Arc<Entry>, held: Held) {
        if !std::mem::replace(&mut self.begun, true) {
            let head =
                Head { version: VERSION, id: self.id.to_string(), folders: self.folders.clone(), title: title(text) };
            self.note(Record::Session(head));
            self.note(Record::Opened { pid: std::process::id() });
        }
        if let Some(mode) = self.mode.take() {
            self.note(Record::Mode { mode });
        }
        self.note_held(held);
        self.note(Pending::Prompt { text: text.to_owned(), entry: Arc::clone(entry) });
    }

    /// Notes an answer or results.
    pub fn message(&mut self, entry: &Arc<Entry>) {
        if !self.thought.is_empty() {
            let text = std::mem::take(&mut self.thought);
            self.note(Record::Thought { text });
        }
        self.note(Pending::Message(Arc::clone(entry)));
    }

    /// Notes what the conversation was made shorter to.
    pub fn compacted(&mut self, messages: Vec<Message>) {
        self.note(Record::Compacted { messages });
    }

    /// Notes that the conversation goes on from before `turn`, with what the model knew then.
    pub fn restored(&mut self, turn: u64, messages: Vec<Message>) {
        self.note(Record::Restored { turn, messages });
    }

    /// Notes that the last restore was taken back.
    pub fn unrestored(&mut self, messages: Vec<Message>) {
        self.note(Record::Unrestored { messages });
    }

    /// What the model knew before `turn`; an error says why that is not known, in words for the person.
    pub async fn before(&self, turn: u64) -> Result<Vec<Message>, String> {
        let Some(folder) = &self.journals else { return Err("this conversation is not saved anywhere".to_owned()) };
        let text = async {
            let folder = StateFolder::existing(folder.clone()).await?;
            folder.beginning(&list::file_name(&self.id), u64::MAX).await
        };
        let text = text.await.map_err(|error| format!("this conversation cannot be read ({error})"))?;
        load::before(&text, turn).ok_or_else(|| format!("there is no turn {turn} in this conversation"))
    }

    /// Notes the mode from here on.
    pub fn mode(&mut self, mode: Mode) {
        if self.begun {
            self.note(Record::Mode { mode });
        } else {
            self.mode = Some(mode);
        }
    }

    /// Notes the prompts that wait; none do before the first one runs.
    pub fn queue(&mut self, prompts: Vec<QueuedPrompt>) {
        if !matches!(self.place, Place::Folder(_)) {
            self.note(Record::Queue { prompts });
        }
    }

    /// Notes the model from here on; that of a conversation that has not begun is noted with its first prompt.
    pub fn held(&mut self, held: Held) {
        if self.begun {
            self.note_held(held);
        }
    }

    fn note_held(&mut self, held: Held) {
        if self.held.as_ref() != Some(&held) {
            self.note(Record::Model(held.clone()));
            self.held = Some(held);
        }
    }

    /// Notes what has to be shown again.
    pub fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ReasoningDelta { content } => self.thought.push_str(content),
            AgentEvent::ToolPreview { call_id, kind, preview } => {
                let preview = Preview { diffs: Vec::new(), ..preview.clone() };
                self.shown.insert(call_id.clone(), (*kind, preview));
            }
            AgentEvent::ToolExecutionEnd { call_id, name, result, .. } => {
                let shown = self.shown.remove(call_id);
                let (kind, preview) = shown.unwrap_or_else(|| (ToolKind::Other, Preview::default()));
                let call = Call {
                    id: call_id.clone(),
                    title: if preview.title.is_empty() { name.clone() } else { preview.title },
                    kind,
                    locations: if result.locations.is_empty() { preview.locations } else { result.locations.clone() },
                    changes: Vec::new(),
                    command: result.changes.clone(),
                };
                self.note(Pending::Call(call, result.diffs.clone()));
            }
            AgentEvent::Plan { entries } => self.note(Record::Plan { entries: entries.clone() }),
            AgentEvent::Done { usage, .. } => self.note(Record::End { usage: *usage }),
            _ => {}
        }
    }

    /// Notes what a person settled, undid or redid.
    pub fn reviewed(&mut self, review: StoredReview) {
        self.note(Record::Reviewed(review));
    }

    /// Notes what a command changed that no call has reported.
    pub fn unreported(&mut self, title: &str, changed: &process::Changed) {
        if changed.changes.is_empty() {
            return;
        }
        let call = Call {
            id: String::new(),
            title: title.to_owned(),
            kind: ToolKind::Execute,
            locations: Vec::new(),
            changes: Vec::new(),
            command: Some(Arc::clone(&changed.changes)),
        };
        self.note(Pending::Call(call, changed.diffs.clone()));
    }

    fn note(&mut self, what: impl Into<Pending>) {
        if !matches!(self.place, Place::Nowhere) {
            self.pending.push(what.into());
        }
    }

    /// Writes what was noted. Reports the first failure of several in a row, in words for the person; what was not written
    /// is tried again with the next records.
    pub async fn flush(&mut self) -> Result<(), String> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let records = Arc::new(std::mem::take(&mut self.pending));
        let written = match self.log().await {
            Ok(Some(log)) => {
                let records = Arc::clone(&records);
                log.append(move |out| records.iter().try_for_each(|record| record.write(out))).await
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let Err(error) = written else {
            self.failing = false;
            return Ok(());
        };
        self.pending = Arc::try_unwrap(records).unwrap_or_default();
        if std::mem::replace(&mut self.failing, true) {
            return Ok(());
        }
        Err(format!("this conversation cannot be saved ({error}); it works, and tandem keeps trying"))
    }

    async fn log(&mut self) -> std::io::Result<Option<&Log>> {
        if let Place::Folder(path) = &self.place {
            let folder = StateFolder::open(path.clone()).await?;
            self.place = Place::Open(folder.create_log(&list::file_name(&self.id)).await?);
        }
        Ok(if let Place::Open(log) = &self.place { Some(log) } else { None })
    }

    /// Makes what was written survive the machine, beside whatever comes next.
    pub async fn sync(&mut self) {
        self.synced().await;
        if let Place::Open(log) = &self.place {
            let log = log.clone();
            self.syncing = Some(tokio::spawn(async move {
                if let Err(error) = log.sync().await {
                    tracing::warn!("a journal could not be synced: {error}");
                }
            }));
        }
    }

    /// Waits for the sync under way.
    pub async fn synced(&mut self) {
        if let Some(syncing) = self.syncing.take() {
            let _told = syncing.await;
        }
    }
}

/// The beginning of the first line that says something.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut title: String = line.chars().take(TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

impl From<LogError> for StoreError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Held { text } => Self::Held(load::load(&text).ok().and_then(|kept| kept.pid)),
            LogError::Io(error) => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests;
