//! Applies a change to a file: reads the current text, matches, writes, and verifies the result.
//!
//! Nothing typed meanwhile is lost.
//!
//! An open document is changed by an edit for one version, a closed file only if it still has the content the change
//! was made for; if either has changed, everything starts over.

mod client;
mod document;
mod placeholder;

use std::borrow::Cow;
use std::sync::Arc;

use super::disk::{self, Content};
use super::documents::Document;
use super::edit::Outcome;
use super::notebook;
use super::seen::Known;
use super::{Change, FileChange, FileError, Source, Workspace, WorkspacePath};
use crate::domain::Stored;
use crate::text::line_breaks;

/// What the model is told of a file that was written with another text.
const LEFT: &str = "the file differs from the text sent to the editor, perhaps because a formatter ran; read it before the next edit";

/// What the model is told of an edit of a file that others have changed.
const MATCHED_ANEW: &str =
    "the file had changed since it was read; the edit was matched against the current text";

/// How often a change is attempted while the text keeps changing.
const ATTEMPTS: usize = 4;

/// The outcome of one attempt.
enum Attempt {
    /// Done, with a note for the model.
    Done(Option<&'static str>),
    /// The editor left this in the file, and for this reason it could not be completed.
    Left(Content, Option<FileError>),
    /// The text had changed, as described; nothing was written.
    Again(String),
}

impl Workspace {
    /// What `change` would do to the current file. Changes nothing.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub async fn propose(
        &self,
        path: &WorkspacePath,
        change: &Change,
    ) -> Result<FileChange, FileError> {
        let now = Now::look(self, path).await?;
        let effect = Effect::of(self, path, change, &now).await?;
        self.0.seen.shown(path, &now.text);
        Ok(effect.change)
    }
}

/// Changes a file, by one change at a time.
pub(super) async fn commit(
    workspace: &Workspace,
    path: &WorkspacePath,
    change: &Change,
) -> Result<FileChange, FileError> {
    // The name may resolve differently than when a person was asked. A merge is requested by a person.
    let is_asked = matches!(change, Change::Merge { .. }) || workspace.0.seen.was_shown(path);
    if path.is_protected() && !is_asked {
        return Err(FileError::NotShown(
            path.display(),
            path.target().display().to_string(),
        ));
    }
    let _turn = workspace.0.documents.turn(&path.real()).await;
    let mut reason = String::new();
    let mut last: Option<Effect> = None;
    for _ in 0..ATTEMPTS {
        let now = Now::look(workspace, path).await?;
        let is_made = |last: &Effect| *last.outcome.new_text == *now.text;
        // A refused edit may have been applied after all, for example if the document was closed right after it.
        let (mut effect, attempt) = if let Some(made) = last.take().filter(is_made) {
            (made, Attempt::Done(None))
        } else {
            let effect = Effect::of(workspace, path, change, &now).await?;
            if now.exists()
                && *effect.outcome.new_text == *now.text
                && effect.change.before == effect.change.after
            {
                return Ok(effect.change);
            }
            let attempt = now.attempt(workspace, path, &effect.outcome, change).await;
            (effect, attempt?)
        };
        let done = &mut effect.change;
        let is_on_disk = match attempt {
            Attempt::Done(note) => {
                done.notes.extend(note.map(str::to_owned));
                // The session knows the new text if it knew the old one or has written all of it.
                if effect.known == Known::Same
                    || matches!(change, Change::Write(_))
                    || done.old_text.is_none()
                {
                    workspace.0.seen.read(path, &done.new_text);
                }
                if let Place::Document(_) = now.place {
                    // The editor will save it as it is stored.
                    let stored = disk::text(path).await.map(|(_, stored)| stored);
                    let stored = Some(stored.unwrap_or_default());
                    (done.before, done.after) = (stored, stored);
                    false
                } else {
                    now.is_on_disk(path, &done.new_text).await
                }
            }
            Attempt::Left(left, failure) => {
                let new_folders = done.after.map_or(0, |after| after.new_folders);
                done.after = Some(Stored {
                    new_folders,
                    ..left.stored
                });
                (done.new_text, done.lines) = (left.text, Vec::new());
                if failure.is_none() {
                    done.notes.push(LEFT.to_owned());
                }
                done.failure = failure;
                true
            }
            Attempt::Again(why) => {
                (reason, last) = (why, Some(effect));
                continue;
            }
        };
        if done.failure.is_none() {
            let mut written = &done.new_text;
            if path.is_protected() {
                // The person has seen this text, and not what somebody makes of it.
                written = &effect.outcome.new_text;
                workspace.0.seen.approved(path, written);
            }
            if is_on_disk {
                let listeners = workspace.documents();
                listeners.note_written(&path.real(), Some(written));
            }
        }
        return Ok(effect.change);
    }
    Err(FileError::Editor(path.display(), reason))
}

/// What a change does to the current text.
struct Effect {
    known: Known,
    outcome: Outcome,
    change: FileChange,
}

impl Effect {
    async fn of(
        workspace: &Workspace,
        path: &WorkspacePath,
        change: &Change,
        now: &Now,
    ) -> Result<Self, FileError> {
        let known = workspace.0.seen.known(path, &now.text);
        let change = &change.settled(&now.text);
        let created = now.created_by(change);
        let change = created.as_ref().unwrap_or(change);
        let mut notes = Vec::new();
        match change {
            Change::Edits(_) | Change::Sent { .. } | Change::Patch(_) | Change::Exact { .. }
                if !now.exists() =>
            {
                return Err(FileError::NotFound(path.display()));
            }
            Change::Edits(_) | Change::Sent { .. } | Change::Patch(_) => {
                notes.extend((known == Known::Changed).then(|| MATCHED_ANEW.to_owned()));
            }
            Change::Write(_) | Change::Moved { .. } => {
                let is_unseen = matches!(known, Known::Changed | Known::ChangedSinceShown);
                if now.exists() && is_unseen {
                    return Err(FileError::Changed(path.display()));
                }
            }
            Change::Exact { .. } | Change::Merge { .. } => {}
        }
        let (text, asked, target) = (now.text.clone(), change.clone(), path.target().to_owned());
        let outcome = disk::blocking(move || notebook::apply(&target, &text, &asked))
            .await
            .map_err(|error| FileError::Match {
                path: path.display(),
                error,
                changed: known == Known::Changed,
            })?;
        let by_a_model = !matches!(change, Change::Merge { .. } | Change::Exact { .. });
        let as_read = |text| notebook::as_read(path.target(), text);
        let (old, new) = (as_read(&now.text), as_read(&outcome.new_text));
        if let Some(line) = placeholder::added(&old, &new).filter(|_| by_a_model) {
            return Err(FileError::Placeholder(
                path.display(),
                line.trim().to_owned(),
            ));
        }
        let (before, after) = now.stored(path, change.stored());
        // No tool could read or repair the file.
        if by_a_model && now.exists() && new.contains('\0') && !old.contains('\0') {
            let stored = after.unwrap_or_default().shown(&new);
            return Err(FileError::Unencodable(path.display(), stored, '\0'));
        }
        let change = FileChange {
            old_text: now.exists().then(|| now.text.clone()),
            new_text: outcome.new_text.clone(),
            before,
            after,
            strategy: outcome.strategy,
            // The model does not read this JSON, so line numbers in it would say nothing.
            lines: match new {
                Cow::Borrowed(_) => lines(&outcome),
                Cow::Owned(_) => Vec::new(),
            },
            notes,
            failure: None,
        };
        Ok(Self {
            known,
            outcome,
            change,
        })
    }
}

/// The 1-based lines of the new text for each place of `outcome`.
fn lines(outcome: &Outcome) -> Vec<std::ops::RangeInclusive<usize>> {
    let breaks = |from: usize, to: usize| line_breaks(&outcome.new_text, from..to);
    let (mut line, mut counted, mut grown, mut shrunk) = (1, 0, 0, 0);
    let lines = outcome.places.iter().map(|place| {
        let start = place.range.start + grown - shrunk;
        let end = start + place.new_text.len();
        grown += place.new_text.len();
        shrunk += place.range.len();
        let first = line + breaks(counted, start);
        let last = first + breaks(start, end.saturating_sub(1).max(start));
        (line, counted) = (first, start);
        first..=last
    });
    lines.collect()
}

/// A file's current state, with what is needed to change it.
struct Now {
    text: Arc<str>,
    place: Place,
}

enum Place {
    /// Open in an editor that counts versions.
    Document(Arc<Document>),
    /// Read through an editor that does not count versions; stored on disk in this way.
    Editor(Stored),
    /// On disk, in this way.
    Disk(Stored),
    Nowhere,
}

impl Now {
    /// Whether a new text is on the disk once it is written: an editor may save it later.
    async fn is_on_disk(&self, path: &WorkspacePath, text: &str) -> bool {
        match self.place {
            Place::Editor(_) => disk::text(path).await.is_ok_and(|(found, _)| found == text),
            _ => true,
        }
    }

    async fn look(workspace: &Workspace, path: &WorkspacePath) -> Result<Self, FileError> {
        if let Some(document) = workspace.document(path) {
            if document.text.contains(char::REPLACEMENT_CHARACTER)
                && let Ok((_, stored)) = disk::text(path).await
                && stored.is_misread_as(&document.text)
            {
                return Err(FileError::Misread(path.display()));
            }
            return Ok(Self {
                text: document.text.clone(),
                place: Place::Document(document),
            });
        }
        match workspace.peek(path).await {
            Ok(file) if file.source == Source::Disk => Ok(Self {
                text: file.text,
                place: Place::Disk(file.stored),
            }),
            Ok(file) => Ok(Self {
                text: file.text,
                place: Place::Editor(file.stored),
            }),
            Err(FileError::NotFound(_)) => Ok(Self {
                text: "".into(),
                place: Place::Nowhere,
            }),
            Err(error) => Err(error),
        }
    }

    /// An empty edit of a file that does not exist creates it.
    fn created_by(&self, change: &Change) -> Option<Change> {
        match change {
            Change::Edits(edits) if !self.exists() => match edits.as_slice() {
                [edit] if edit.old_text.is_empty() => Some(Change::Write(edit.new_text.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    fn exists(&self) -> bool {
        !matches!(self.place, Place::Nowhere)
    }

    /// How the file is stored now, and once it has been written as `next` says.
    fn stored(
        &self,
        path: &WorkspacePath,
        next: Option<Stored>,
    ) -> (Option<Stored>, Option<Stored>) {
        let before = match self.place {
            Place::Disk(stored) | Place::Editor(stored) => {
                let mode = next.and_then(|next| next.mode).and_then(|_| path.mode());
                Some(Stored { mode, ..stored })
            }
            // As it always is; the editor converts it.
            Place::Document(_) => return (Some(Stored::default()), Some(Stored::default())),
            Place::Nowhere => None,
        };
        let after = next.or(before).unwrap_or_default();
        let new_folders = match self.place {
            Place::Nowhere => path.missing_folders(),
            _ => 0,
        };
        (
            before,
            Some(Stored {
                new_folders,
                ..after
            }),
        )
    }

    async fn attempt(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
        outcome: &Outcome,
        change: &Change,
    ) -> Result<Attempt, FileError> {
        if let Place::Document(document) = &self.place {
            return document::apply(workspace, path, document, outcome).await;
        }
        let stored = change.stored();
        let now = match self.place {
            Place::Disk(stored) | Place::Editor(stored) => stored,
            _ => Stored::default(),
        };
        let old = matches!(self.place, Place::Disk(_)).then(|| Content {
            text: self.text.clone(),
            stored: now,
        });
        let new = Content {
            text: outcome.new_text.clone(),
            stored: Stored {
                mode: stored.and_then(|stored| stored.mode),
                ..now
            },
        };
        let as_before = stored.map(|stored| Content {
            stored,
            ..new.clone()
        });
        // What was typed since may have no place in the old encoding.
        let new = as_before
            .filter(|before| !self.exists() || disk::is_encodable(path, before).is_ok())
            .unwrap_or(new);
        disk::is_encodable(path, &new)?;
        let is_merge = matches!(change, Change::Merge { .. });
        if let Some(attempt) =
            client::write(workspace, path, self, (old.as_ref(), &new), is_merge).await?
        {
            return Ok(attempt);
        }
        if disk::replace(path, old, new).await? {
            return Ok(Attempt::Done(None));
        }
        Ok(Attempt::Again(
            "another program keeps changing it; retry once it has stopped".to_owned(),
        ))
    }
}
