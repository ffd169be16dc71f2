//! Which turn wrote each line of a file, from the journals and the previous versions of its workspace.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;

use super::list::{ENDING, Sessions, head};
use super::record::{Call, Record};
use super::title;
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::origins::{Known, Origin, Written, only, origins};
use crate::changes::{Images, images};
use crate::process::committed;
use crate::text::alignment::{Numbers, Source, align};
use crate::workspace::{StateFolder, blocking, content, native};

/// How many journals of a workspace are read, those that were used last, and up to how many bytes each.
const JOURNALS: usize = 30;
const JOURNAL: u64 = 64 << 20;
/// How many changes of a file are followed in a journal: the last ones.
const CHANGES: usize = 200;
/// Larger files have no origins, in bytes.
const TEXT: u64 = 1 << 20;

/// A change of a file by a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrote {
    /// The session.
    pub session: String,
    /// The turn, counted in prompts.
    pub turn: u64,
    /// The beginning of the turn's prompt.
    pub prompt: String,
    /// `provider/model`.
    pub model: String,
    /// The title of the tool call or command.
    pub by: String,
    change: EntryChange,
}

/// The turn that a line is from.
#[derive(Debug, Clone)]
pub struct LineOrigin {
    /// The tool call or command that wrote it.
    pub wrote: Arc<Wrote>,
    /// The line has been edited since.
    pub is_edited: bool,
}

impl LineOrigin {
    /// Whether the other one is the same change.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.wrote, &other.wrote) && self.is_edited == other.is_edited
    }
}

/// The words of a prompt.
#[derive(Deserialize)]
struct Words {
    text: String,
}

impl Sessions {
    /// The turn that wrote each line of a file with the text `now`; `None` for lines that are committed, were written by
    /// others, or have an unknown origin.
    ///
    /// # Errors
    /// The folder of the journals cannot be read; a missing folder counts as empty.
    pub async fn origins(&self, file: &Path, now: Arc<str>) -> io::Result<Vec<Option<LineOrigin>>> {
        let file = native::canonical(file).unwrap_or_else(|_gone| file.to_owned());
        let wrote = if now.len() as u64 > TEXT {
            Vec::new()
        } else {
            self.wrote(&file).await?
        };
        if wrote.is_empty() {
            return Ok(vec![None; now.lines().count()]);
        }
        let committed = committed(&file).await.and_then(content::decode);
        let folder = images::folder(&self.state);
        let found = blocking(move || {
            let images = Images::open(&folder).unwrap_or_default();
            let mut lines = lines(&images, &wrote, &now);
            if let Some((text, _)) = committed {
                let mut numbers = Numbers::default();
                let (committed, now) = (numbers.lines(&text), numbers.lines(&now));
                for (line, source) in lines.iter_mut().zip(align(&committed, &now)) {
                    if matches!(source, Source::Old(_)) {
                        *line = None;
                    }
                }
            }
            lines
        });
        Ok(found.await)
    }

    /// The changes of a file in each journal of its workspace, the oldest first. A fork has those of its original.
    async fn wrote(&self, file: &Path) -> io::Result<Vec<Vec<Arc<Wrote>>>> {
        let folder = match StateFolder::existing(self.journals.clone()).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder?,
        };
        let path = file.to_owned();
        let is_around = move |folder: &PathBuf| {
            native::canonical(folder).is_ok_and(|folder| path.starts_with(folder))
        };
        let journals = folder.pick(None, JOURNALS, move |found, line| {
            let is_of_it = head(line)?.folders.iter().any(&is_around);
            (is_of_it && found.bytes <= JOURNAL).then(|| found.name.clone())
        });
        let (mut all, mut known) = (Vec::new(), HashSet::new());
        for name in journals.await?.into_iter().rev() {
            let id = name.strip_suffix(ENDING).unwrap_or(&name).to_owned();
            let path = file.to_owned();
            let mut wrote = folder
                .read_log(&name, move |lines| changes_of(&path, &id, lines))
                .await?;
            wrote.retain(|wrote| {
                let images = format!("{:?}", wrote.change);
                known.insert((wrote.turn, wrote.prompt.clone(), images))
            });
            wrote.drain(..wrote.len().saturating_sub(CHANGES));
            all.push(wrote);
        }
        all.retain(|wrote| !wrote.is_empty());
        Ok(all)
    }
}

/// The changes of a file in the lines of a journal.
fn changes_of(
    file: &Path,
    session: &str,
    lines: &mut dyn Iterator<Item = String>,
) -> Vec<Arc<Wrote>> {
    let (mut turn, mut model, mut prompt, mut all) = (0, String::new(), String::new(), Vec::new());
    // Most lines are about something else, which is cheaper to check than to parse them.
    let Ok(path) = serde_json::to_vec(file) else {
        return all;
    };
    for line in lines {
        if line.starts_with(r#"{"type":"prompt""#) {
            (turn, prompt) = (turn + 1, line);
        } else if line.starts_with(r#"{"type":"model""#) {
            if let Ok(Record::Model(held)) = serde_json::from_str(&line) {
                model = held.model;
            }
        } else if line.starts_with(r#"{"type":"call""#)
            && memmem::find(line.as_bytes(), &path).is_some()
            && let Ok(Record::Call(call)) = serde_json::from_str(&line)
        {
            let words = serde_json::from_str(&prompt).map_or(String::new(), |Words { text }| text);
            all.extend(change_of(file, &call).map(|change| {
                Arc::new(Wrote {
                    session: session.to_owned(),
                    turn,
                    prompt: title(&words),
                    model: model.clone(),
                    by: call.title.clone(),
                    change,
                })
            }));
        }
    }
    all
}

/// What a call changed of a file. A file that it moved keeps the lines from its old place.
fn change_of(file: &Path, call: &Call) -> Option<EntryChange> {
    let files = &call.changed.files;
    let change = files.iter().find(|change| change.path == file)?;
    let is_source =
        |other: &EntryChange| other.after == Entry::Absent && other.before == change.after;
    let is_moved = change.before == Entry::Absent && files.iter().any(is_source);
    Some(EntryChange {
        before: if is_moved {
            &change.after
        } else {
            &change.before
        }
        .clone(),
        ..change.clone()
    })
}

/// The origin of each line of `now` in the changes of several sessions. Blocks.
fn lines(images: &Images, wrote: &[Vec<Arc<Wrote>>], now: &str) -> Vec<Option<LineOrigin>> {
    let text = |entry: &Entry| match entry {
        Entry::Absent => Some("".into()),
        entry => images.text(entry, TEXT),
    };
    let written = |wrote: &Arc<Wrote>| {
        Some(Written {
            before: text(&wrote.change.before)?,
            after: text(&wrote.change.after)?,
        })
    };
    let known: Vec<Vec<Known>> = wrote
        .iter()
        .map(|changes| origins(&changes.iter().map(written).collect::<Vec<_>>(), now))
        .collect();
    let line = |at: usize| {
        let of_line = known.iter().map(|lines| lines.get(at).copied());
        let origin = only(of_line.map(|known| known.unwrap_or(Known::Nothing)));
        let (session, Origin { change, is_edited }) = origin?;
        let wrote = Arc::clone(wrote.get(session)?.get(change)?);
        Some(LineOrigin { wrote, is_edited })
    };
    (0..now.lines().count()).map(line).collect()
}
