//! What is under review, to and from the journal: what a person settled, undid or redid stays so after a restart.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt as _};

use super::change::{ByCommand, Change};
use super::review::Review;
use super::store::Store;
use super::undo::Undone;
use super::{Checkpoints, Entry};
use crate::changes::stored::{StoredCommand, StoredFile, StoredLeft, StoredReview};
use crate::changes::texts::Texts;
use crate::workspace::Workspace;

impl Checkpoints {
    /// What is under review.
    pub fn under_review(&self) -> Vec<Entry> {
        self.entries.clone()
    }

    /// How that differs from what was under review `before`, with all texts stored.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub async fn reviewed_since(&mut self, before: Vec<Entry>) -> io::Result<Vec<StoredReview>> {
        let turns: BTreeSet<u64> = before
            .iter()
            .chain(&self.entries)
            .map(|entry| entry.turn)
            .collect();
        let mut reviews = Vec::new();
        for turn in turns {
            let (old, new) = (of_turn(&before, turn), of_turn(&self.entries, turn));
            if old == new {
                continue;
            }
            let (old_files, new_files) = (by_path(old.as_ref()), by_path(new.as_ref()));
            let paths: BTreeSet<&PathBuf> =
                old_files.keys().chain(new_files.keys()).copied().collect();
            let mut files = Vec::new();
            for path in paths
                .into_iter()
                .filter(|path| old_files.get(*path) != new_files.get(*path))
            {
                let change = match new_files.get(path) {
                    Some(change) => Some(change.store(&mut self.store).await?),
                    None => None,
                };
                files.push(StoredFile {
                    path: path.clone(),
                    change,
                });
            }
            reviews.push(StoredReview {
                turn,
                files,
                git: new.map(|entry| entry.git).unwrap_or_default(),
            });
        }
        Ok(reviews)
    }

    /// How that will differ once this redo, or undo of a rejection, is done.
    ///
    /// # Errors
    /// When its texts cannot be stored.
    pub async fn reviewed_ahead(&mut self, review: &Review) -> io::Result<Vec<StoredReview>> {
        let again = match review {
            Review::Redo(turn) => self
                .to_redo(*turn)
                .and_then(|index| self.undone.get(index..=index)),
            Review::Undo(None) => self.to_unreject(),
            _ => None,
        };
        let of = |undone: &Undone| (undone.turn, undone.changes.clone(), undone.git.clone());
        let again: Vec<_> = again.unwrap_or_default().iter().map(of).collect();
        let before = self.entries.clone();
        for (turn, changes, git) in again.into_iter().rev() {
            self.add(turn, changes, git);
        }
        let reviews = self.reviewed_since(before.clone()).await;
        self.entries = before;
        reviews
    }

    /// Takes a review of an earlier process over.
    pub(super) async fn take_review(
        &mut self,
        workspace: &Workspace,
        review: StoredReview,
        texts: &Texts,
    ) {
        let (mut paths, mut changes) = (HashSet::new(), BTreeMap::new());
        for StoredFile { path, change } in &review.files {
            let path = workspace.identity(path);
            if let Some(stored) = change {
                // A text that is not stored any more cannot be undone to.
                changes.extend(
                    Change::load(&path, stored, texts)
                        .await
                        .map(|change| (path.clone(), change)),
                );
            }
            paths.insert(path);
        }
        let index = self
            .entries
            .partition_point(|entry| entry.turn < review.turn);
        if self
            .entries
            .get(index)
            .is_none_or(|entry| entry.turn != review.turn)
        {
            let (turn, since) = (review.turn, Instant::now());
            self.entries.insert(
                index,
                Entry {
                    turn,
                    since,
                    changes: Vec::new(),
                    git: Vec::new(),
                },
            );
        }
        if let Some(entry) = self.entries.get_mut(index) {
            // Files stay in the order in which they were changed.
            entry
                .changes
                .retain_mut(|change| match changes.remove(&change.path) {
                    Some(reviewed) => {
                        *change = reviewed;
                        true
                    }
                    None => !paths.contains(&change.path),
                });
            entry.changes.extend(changes.into_values());
            entry.git = review.git;
        }
        self.entries.retain(|entry| !entry.is_empty());
    }
}

fn of_turn(entries: &[Entry], turn: u64) -> Option<Entry> {
    entries.iter().find(|entry| entry.turn == turn).cloned()
}

fn by_path(entry: Option<&Entry>) -> BTreeMap<&PathBuf, &Change> {
    entry
        .into_iter()
        .flat_map(|entry| &entry.changes)
        .map(|change| (&change.path, change))
        .collect()
}

impl Change {
    /// The change with its texts in `store`.
    fn store<'a>(&'a self, store: &'a mut Store) -> BoxFuture<'a, io::Result<StoredLeft>> {
        async move {
            let (before, after) = (
                store.put(&self.before).await?,
                store.put(&self.after).await?,
            );
            let command = match &self.command {
                None => None,
                Some(ByCommand {
                    change,
                    text,
                    is_text,
                    edited,
                }) => {
                    let text = match text {
                        Some(text) => Some(store.put(text).await?),
                        None => None,
                    };
                    let edited = match edited {
                        Some(edited) => Some(Box::new(edited.store(store).await?)),
                        None => None,
                    };
                    Some(StoredCommand {
                        change: change.clone(),
                        text,
                        is_text: *is_text,
                        edited,
                    })
                }
            };
            Ok(StoredLeft {
                created: self.created,
                before,
                after,
                stored: self.stored,
                command,
            })
        }
        .boxed()
    }

    /// The change that was stored; `None`: a text is not there any more.
    fn load<'a>(
        path: &'a Path,
        stored: &'a StoredLeft,
        texts: &'a Texts,
    ) -> BoxFuture<'a, Option<Self>> {
        async move {
            let (before, after) = (
                texts.get(&stored.before).await?,
                texts.get(&stored.after).await?,
            );
            let command = match &stored.command {
                None => None,
                Some(StoredCommand {
                    change,
                    text,
                    is_text,
                    edited,
                }) => {
                    let text = match text {
                        Some(address) => Some(texts.get(address).await?),
                        None => None,
                    };
                    let edited = match edited {
                        Some(edited) => Some(Box::new(Self::load(path, edited, texts).await?)),
                        None => None,
                    };
                    Some(ByCommand {
                        change: change.clone(),
                        text,
                        is_text: *is_text,
                        edited,
                    })
                }
            };
            Some(Self {
                path: path.to_owned(),
                created: stored.created,
                before,
                after,
                stored: stored.stored,
                command,
            })
        }
        .boxed()
    }
}
