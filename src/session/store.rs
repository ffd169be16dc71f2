//! The journal of a session: everything needed to continue it in another process, stored in the state directory.
//!
//! One append-only file per session, one record per line. A record is written before its content is acknowledged
//! to anyone: the prompt before the model gets it, an answer before its tools' results are sent, everything in a turn
//! before the turn's end is reported. Written means passed to the system, which survives `kill -9`. At the end of a
//! turn the file is also synced, in parallel to other work, so that a power failure costs at most the running turn.
//!
//! One process locks a journal at a time. If a journal cannot be written, that is reported once, and everything is
//! written as soon as possible.

mod list;
mod load;
mod origins;
mod record;
mod replay;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;

pub use self::list::{Listed, Sessions, StoreError};
pub(super) use self::list::{folder, plans};
pub(super) use self::load::Kept;
pub use self::origins::LineOrigin;
pub(super) use self::record::{Call, Held, QueuedPrompt, Record};
use self::record::{Head, VERSION};
pub(super) use self::replay::{TRY, UNANSWERED, changes, events, last_trial};
use super::SessionId;
use crate::agent::Entry;
use crate::agent::event::AgentEvent;
use crate::changes::ChangeSet;
use crate::config::Mode;
use crate::domain::{Preview, ToolKind};
use crate::model::{Message, Provider, Taught};
use crate::tools::ToolOutput;
use crate::workspace::StateFolder;
use crate::workspace::state::log::Log;

/// The maximum length of a title, in characters.
const TITLE: usize = 80;

/// The journal of one session.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The folder of the journals; `None` if nothing is saved.
    folder: Option<PathBuf>,
    /// Its file, once it is open.
    log: Option<Log>,
    id: SessionId,
    folders: Vec<PathBuf>,
    /// The chat file that shows the session.
    chat: Option<PathBuf>,
    /// The modes chosen before there was anything to write, each once, the last one last.
    modes: Vec<Mode>,
    /// The last recorded model.
    held: Option<Held>,
    /// What was recorded of refusals, by [`Provider::place`].
    taught: BTreeMap<String, Taught>,
    /// Records to write.
    pending: Vec<Record>,
    /// Whether its first record was made.
    begun: bool,
    /// Whether the last write failed, which was reported.
    failing: bool,
    /// Reasoning since the last message.
    thought: String,
    /// Calls that were shown and have not ended.
    shown: HashMap<String, (ToolKind, Preview)>,
    syncing: Option<JoinHandle<()>>,
}

impl Journal {
    /// The journal of a new session; nothing is written before its first prompt.
    pub fn new(
        folder: Option<PathBuf>,
        id: SessionId,
        folders: Vec<PathBuf>,
        chat: Option<PathBuf>,
    ) -> Self {
        Self {
            folder,
            id,
            folders,
            chat,
            ..Self::default()
        }
    }

    /// Opens the journal of a saved session to continue it.
    pub async fn open(&mut self) -> Result<Kept, StoreError> {
        let Some(folder) = &self.folder else {
            return Err(StoreError::Unknown(self.id.to_string()));
        };
        let (log, kept) = list::open(folder, &self.id).await?;
        (self.log, self.begun) = (Some(log), true);
        self.held.clone_from(&kept.held);
        self.taught.clone_from(&kept.taught);
        if let Some(message) = kept.repair.clone() {
            self.note(Record::Message { message });
        }
        Ok(kept)
    }

    /// Records a prompt: the person's text, its attachments, the message sent to the model, the model, and the environment
    /// line of the system prompt.
    pub fn prompt(
        &mut self,
        text: &str,
        attached: Vec<Value>,
        entry: &Entry,
        held: Held,
        environment: &str,
    ) {
        if !std::mem::replace(&mut self.begun, true) {
            let head = Head {
                version: VERSION,
                id: self.id.to_string(),
                folders: self.folders.clone(),
                title: title(text),
                environment: environment.to_owned(),
                chat: self.chat.clone(),
            };
            self.note(Record::Session(head));
        }
        for mode in std::mem::take(&mut self.modes) {
            self.note(Record::Mode { mode });
        }
        self.held(held);
        self.note(Record::Prompt {
            text: text.to_owned(),
            message: entry.share(),
            attached,
        });
    }

    /// Records an answer or results.
    pub fn message(&mut self, entry: &Entry) {
        if !self.thought.is_empty() {
            let text = std::mem::take(&mut self.thought);
            self.note(Record::Thought { text });
        }
        let message = entry.share();
        self.note(Record::Message { message });
    }

    /// The model's history before `turn`; the error tells the user why it is unknown.
    pub async fn before(&self, turn: u64) -> Result<Vec<Arc<Message>>, String> {
        let Some(folder) = &self.folder else {
            return Err("this session is not saved anywhere".to_owned());
        };
        let before = async {
            let folder = StateFolder::existing(folder.clone()).await?;
            folder
                .read_log(&list::file_name(&self.id), move |lines| {
                    load::before(lines, turn)
                })
                .await
        };
        let before = before
            .await
            .map_err(|error| format!("this session cannot be read ({error})"))?;
        before.ok_or_else(|| format!("this session has no turn {turn}"))
    }

    /// Records a mode change.
    pub fn mode(&mut self, mode: Mode) {
        if self.begun {
            self.note(Record::Mode { mode });
        } else {
            self.modes.retain(|other| *other != mode);
            self.modes.push(mode);
        }
    }

    /// Records a model change; for a session without prompts it is recorded with the first one.
    pub fn held(&mut self, held: Held) {
        if self.begun && self.held.as_ref() != Some(&held) {
            self.note(Record::Model(held.clone()));
            self.held = Some(held);
        }
    }

    /// Records what the server of a model refused so far.
    pub fn taught(&mut self, provider: &Provider) {
        let (place, taught) = (provider.place(), provider.taught());
        if taught != Taught::default() && self.taught.get(&place) != Some(&taught) {
            self.note(Record::Taught {
                model: place.clone(),
                taught: taught.clone(),
            });
            self.taught.insert(place, taught);
        }
    }

    /// A provider that knows what its server refused in this session.
    pub fn teach(&self, provider: Provider) -> Provider {
        match self.taught.get(&provider.place()) {
            Some(taught) => provider.teach(taught.clone()),
            None => provider,
        }
    }

    /// Records what has to be replayed.
    pub fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ReasoningDelta { content } => self.thought.push_str(content),
            AgentEvent::ToolPreview {
                call_id,
                kind,
                preview,
            } => {
                let preview = Preview {
                    diffs: Vec::new(),
                    ..preview.clone()
                };
                self.shown.insert(call_id.clone(), (*kind, preview));
            }
            AgentEvent::Plan { entries } => self.note(Record::Plan {
                entries: entries.clone(),
            }),
            AgentEvent::Finish { message, counts } => self.note(Record::Finish {
                message: message.clone(),
                counts: *counts,
            }),
            AgentEvent::Done {
                termination_reason: reason,
                ..
            } => self.note(Record::End {
                reason: Some(*reason),
                usage: None,
                filled: 0,
            }),
            _ => {}
        }
    }

    /// Records the end of a call and what it `changed` in the workspace; returns the record.
    pub fn call_ended(
        &mut self,
        call_id: &str,
        name: &str,
        result: &ToolOutput,
        changed: ChangeSet,
    ) -> Call {
        let (kind, preview) = self.shown.remove(call_id).unwrap_or_default();
        let title = if preview.title.is_empty() {
            name.to_owned()
        } else {
            preview.title
        };
        let locations = if result.locations.is_empty() {
            preview.locations
        } else {
            result.locations.clone()
        };
        let call = Call {
            id: call_id.to_owned(),
            title,
            kind,
            locations,
            changed,
            exit: result.exit,
            rejected: result.rejected,
        };
        self.note(Record::Call(call.clone()));
        call
    }

    /// Records something. Before the first prompt there is nothing to resume, and the first line is the session's head.
    pub fn note(&mut self, record: Record) {
        if self.begun && self.folder.is_some() {
            self.pending.push(record);
        }
    }

    /// Whether everything recorded so far is written.
    pub fn is_saved(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes the records. Reports the first of several consecutive failures, for the person; unwritten records are
    /// retried with the next ones.
    pub async fn flush(&mut self) -> Result<(), String> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let records = Arc::new(std::mem::take(&mut self.pending));
        let written = match self.log().await {
            Ok(Some(log)) => {
                let records = Arc::clone(&records);
                log.append(move |out| records.iter().try_for_each(|record| record.write(out)))
                    .await
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
        Err(format!(
            "this session cannot be saved ({error}); it continues, and tandem keeps trying"
        ))
    }

    async fn log(&mut self) -> std::io::Result<Option<&Log>> {
        if self.log.is_none()
            && let Some(folder) = &self.folder
        {
            let folder = StateFolder::open(folder.clone()).await?;
            self.log = Some(folder.create_log(&list::file_name(&self.id)).await?);
        }
        Ok(self.log.as_ref())
    }

    /// Syncs what was written, in the background.
    pub async fn sync(&mut self) {
        self.synced().await;
        if let Some(log) = &self.log {
            let log = log.clone();
            self.syncing = Some(tokio::spawn(async move {
                if let Err(error) = log.sync().await {
                    tracing::warn!("a journal could not be synced: {error}");
                }
            }));
        }
    }

    /// Waits for the running sync.
    pub async fn synced(&mut self) {
        if let Some(syncing) = self.syncing.take() {
            let _told = syncing.await;
        }
    }
}

/// A session's title: how its first prompt begins.
pub(super) fn title(text: &str) -> String {
    beginning(text, TITLE)
}

/// How much of its prompt names a turn, in characters.
const NAME: usize = 40;

/// The prompt of a turn, as messages name it.
pub(super) fn name(prompt: &str) -> String {
    beginning(prompt.strip_prefix(TRY).unwrap_or(prompt), NAME)
}

/// The first characters of the first non-empty line.
pub(super) fn beginning(text: &str, most: usize) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut begins: String = line.chars().take(most).collect();
    if begins.len() < line.len() {
        begins.push('…');
    }
    begins
}

#[cfg(test)]
mod tests;
