//! Lists saved sessions, reading only the beginning of each file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memchr::memmem;

use super::load::{self, Kept, MemoryBounds, TooNew};
use super::record::{Head, Record};
use super::replay;
use crate::agent::event::AgentEvent;
use crate::changes::{Images, images};
use crate::workspace::state::Found;
use crate::workspace::state::log::{Log, Opened};
use crate::workspace::{StateFolder, blocking};

pub(super) const ENDING: &str = ".jsonl";

/// The journals in a state folder.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub(super) state: PathBuf,
    pub(super) journals: PathBuf,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its workspace folders, the first one first.
    pub folders: Vec<PathBuf>,
    /// The beginning of its first prompt.
    pub title: String,
    /// When it was last used.
    pub updated: SystemTime,
    /// The chat file that shows it.
    pub chat: Option<PathBuf>,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not exist.
    #[error("unknown session `{0}`; `tandem sessions list` shows the saved ones")]
    Unknown(String),
    /// More than one matches the prefix.
    #[error("`{0}` matches {1} sessions; use a longer prefix")]
    Ambiguous(String, usize),
    /// Another process has it open.
    #[error("the session is open in another window or editor; close it there first")]
    Held,
    /// It was written by a newer version.
    #[error("the session was written by a newer tandem (journal version {0}); update this one")]
    TooNew(u32),
    /// It cannot be read at all.
    #[error(
        "line 1 of {file} is damaged, so the session cannot be read; `tandem sessions rm {id}` removes it"
    )]
    Damaged {
        /// Its name.
        id: String,
        /// Its journal.
        file: String,
    },
    /// The system refused.
    #[error("the session cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl Sessions {
    /// The journals of the state folder `state`.
    pub fn new(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            journals: folder(state),
        }
    }

    /// The id of the session with this prefix.
    ///
    /// # Errors
    /// None or more than one matches.
    pub async fn find(&self, beginning: &str) -> Result<String, StoreError> {
        let folder = known(
            beginning,
            StateFolder::existing(self.journals.clone()).await,
        )?;
        let files = folder.names().await?;
        let mut ids: Vec<_> = files
            .iter()
            .filter_map(|file| file.strip_suffix(ENDING))
            .collect();
        if !ids.contains(&beginning) {
            ids.retain(|id| !beginning.is_empty() && id.starts_with(beginning));
            if ids.len() > 1 {
                return Err(StoreError::Ambiguous(beginning.to_owned(), ids.len()));
            }
            let id = ids.pop().map(str::to_owned);
            return id.ok_or_else(|| StoreError::Unknown(beginning.to_owned()));
        }
        Ok(beginning.to_owned())
    }

    /// A session as events for display. Changes nothing, even while somebody continues it.
    ///
    /// # Errors
    /// It does not exist or cannot be read.
    pub async fn read(&self, id: &str) -> Result<Vec<AgentEvent>, StoreError> {
        let folder = known(id, StateFolder::existing(self.journals.clone()).await)?;
        let loaded = folder
            .read_log(&file_name(id), |lines| {
                load::load(lines, MemoryBounds::NONE)
            })
            .await;
        let kept = whole(known(id, loaded)?, &self.journals, id)?;
        let (images, folders) = (
            images::folder(&self.state),
            kept.head.map(|head| head.folders).unwrap_or_default(),
        );
        let replayed = blocking(move || {
            let images = Images::open(&images).unwrap_or_default();
            replay::events(kept.shown, &images, &folders)
        });
        Ok(replayed.await)
    }

    /// One page, last used first: those after `after` (`None` for the first page), limited to the workspace folder
    /// `cwd` if given. Also returns whether there are more.
    ///
    /// # Errors
    /// The folder cannot be read; a missing folder counts as empty.
    pub async fn page(
        &self,
        cwd: Option<&Path>,
        after: Option<&str>,
        size: usize,
    ) -> io::Result<(Vec<Listed>, bool)> {
        let mut page = self
            .pick(cwd, after, size.saturating_add(1), |_| true)
            .await?;
        let more = page.len() > size;
        page.truncate(size);
        Ok((page, more))
    }

    /// The last used session of the workspace folder `cwd` that a chat file shows: of `chat`, if given.
    ///
    /// # Errors
    /// As [`Sessions::page`].
    pub async fn last_in_chat(
        &self,
        cwd: Option<&Path>,
        chat: Option<PathBuf>,
    ) -> io::Result<Option<Listed>> {
        let is_meant =
            move |listed: &Listed| listed.chat.is_some() && (chat.is_none() || listed.chat == chat);
        Ok(self.pick(cwd, None, 1, is_meant).await?.pop())
    }

    async fn pick(
        &self,
        cwd: Option<&Path>,
        after: Option<&str>,
        count: usize,
        is_meant: impl Fn(&Listed) -> bool + Send + 'static,
    ) -> io::Result<Vec<Listed>> {
        let folder = match StateFolder::existing(self.journals.clone()).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            folder => folder?,
        };
        let cwd = cwd.map(Path::to_owned);
        // Most lines belong to other folders, which is cheaper to check than to parse them.
        let written = cwd
            .as_ref()
            .and_then(|cwd| serde_json::to_vec(cwd).ok())
            .unwrap_or_default();
        let listed = move |file: &Found, line: &[u8]| {
            memmem::find(line, &written)?;
            let head = head(line)
                .filter(|head| Some(head.id.as_str()) == file.name.strip_suffix(ENDING))?;
            let is_there = cwd
                .as_ref()
                .is_none_or(|cwd| head.folders.first() == Some(cwd));
            let listed = Listed {
                id: head.id,
                folders: head.folders,
                title: head.title,
                updated: file.written,
                chat: head.chat,
            };
            (is_there && is_meant(&listed)).then_some(listed)
        };
        folder.pick(after.map(file_name), count, listed).await
    }

    /// Removes a session, with its plans and its text.
    ///
    /// # Errors
    /// It does not exist, or a process has it open.
    pub async fn remove(&self, id: &str) -> Result<(), StoreError> {
        let _held = hold(&self.journals, id).await?;
        // First, so that a session whose text could not be removed is still listed.
        for folder in [self.transcripts(), plans(&self.state)] {
            let removed = async {
                let folder = StateFolder::existing(folder).await?;
                for name in folder.names().await? {
                    let rest = name.strip_prefix(id);
                    if rest.is_some_and(|rest| rest.starts_with(['.', '-'])) {
                        folder.remove(&name).await?;
                    }
                }
                io::Result::Ok(())
            };
            match removed.await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(StateFolder::existing(self.journals.clone())
            .await?
            .remove(&file_name(id))
            .await?)
    }

    /// Writes a session as Markdown, for editors that show it as a file; returns where it is. It is removed with the
    /// session.
    ///
    /// # Errors
    /// The system refuses.
    pub async fn write_transcript(&self, id: &str, text: String) -> io::Result<PathBuf> {
        let (folder, name) = (self.transcripts(), transcript(id));
        let open = StateFolder::open(folder.clone()).await?;
        open.write(&name, text.into_bytes()).await?;
        Ok(folder.join(name))
    }

    fn transcripts(&self) -> PathBuf {
        self.state.join("transcripts")
    }

    /// Copies a session under another id and for other workspace folders. What waits in its queue stays with the
    /// original.
    ///
    /// # Errors
    /// It does not exist or cannot be read, or the copy cannot be written.
    pub async fn fork(
        &self,
        id: &str,
        copy: &str,
        folders: Vec<PathBuf>,
    ) -> Result<(), StoreError> {
        let folder = known(id, StateFolder::existing(self.journals.clone()).await)?;
        let name = copy.to_owned();
        let copied = move |line: String| match serde_json::from_str(&line).ok()? {
            Record::Queue { .. } => None,
            Record::Session(head) => {
                let (id, folders) = (name.clone(), folders.clone());
                let head = Head {
                    id,
                    folders,
                    chat: None,
                    ..head
                };
                serde_json::to_string(&Record::Session(head)).ok()
            }
            _ => Some(line),
        };
        let lines = folder
            .read_log(&file_name(id), |lines| lines.filter_map(copied).collect())
            .await;
        let lines: Vec<_> = known(id, lines)?;
        // All of it or nothing: half a copy would be listed.
        let copied = (lines.join("\n") + "\n").into_bytes();
        Ok(folder.write(&file_name(copy), copied).await?)
    }
}

pub(super) fn head(line: &[u8]) -> Option<Head> {
    match serde_json::from_slice(line).ok()? {
        Record::Session(head) => Some(head),
        _ => None,
    }
}

/// The file of a session as Markdown.
fn transcript(id: &str) -> String {
    format!("{id}.md")
}

/// The folder of the journals.
pub(in crate::session) fn folder(state: &Path) -> PathBuf {
    state.join("sessions")
}

/// The folder of the plans, each named by its session and turn.
pub(in crate::session) fn plans(state: &Path) -> PathBuf {
    state.join("plans")
}

pub(super) fn file_name(id: &str) -> String {
    format!("{id}{ENDING}")
}

/// The journal of `id`, if enough of it could be read to continue.
fn whole(loaded: Result<Kept, TooNew>, folder: &Path, id: &str) -> Result<Kept, StoreError> {
    let kept = loaded.map_err(|TooNew(version)| StoreError::TooNew(version))?;
    if kept.head.is_none() {
        let file = folder.join(file_name(id)).display().to_string();
        return Err(StoreError::Damaged {
            id: id.to_owned(),
            file,
        });
    }
    Ok(kept)
}

/// Opens a journal of `folder`.
pub(super) async fn open(folder: &Path, id: &str) -> Result<(Log, Kept), StoreError> {
    let (log, loaded, cut) = hold(folder, id).await?;
    let mut kept = whole(loaded, folder, id)?;
    kept.unreadable += usize::from(cut);
    Ok((log, kept))
}

/// Locks a journal of `folder`, whatever it contains; also returns whether its end was cut off.
async fn hold(folder: &Path, id: &str) -> Result<(Log, Result<Kept, TooNew>, bool), StoreError> {
    let is_name = !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_name {
        return Err(StoreError::Unknown(id.to_owned()));
    }
    let open = async {
        let folder = StateFolder::existing(folder.to_owned()).await?;
        folder
            .open_log(&file_name(id), |lines| {
                load::load(lines, MemoryBounds::CONTINUED)
            })
            .await
    };
    let Opened { log, read, cut } = known(id, open.await)?;
    log.map(|log| (log, read, cut)).ok_or(StoreError::Held)
}

/// What was read of a session; if its file is missing, the session is unknown.
fn known<T>(id: &str, read: io::Result<T>) -> Result<T, StoreError> {
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Unknown(id.to_owned()),
        _ => error.into(),
    })
}
