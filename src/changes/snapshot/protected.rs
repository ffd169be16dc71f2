//! The protected files that a look finds, in the folders it lists and in those that undo does not cover. Restored files
//! must not count as changed: after a restore, the look is repeated from where it began.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::folder::Listing;
use super::{Look, Seen, Snapshots};
use crate::changes::guard::{self, Guard, Survey};
use crate::domain::lock;
use crate::workspace::Root;
use crate::workspace::stamp::dependable;

/// What a look went on from.
#[derive(Debug)]
pub struct Earlier {
    pub(super) seen: Option<Seen>,
    /// How many changes were not in the manifest.
    pub(super) saved: usize,
}

impl Snapshots {
    /// The protected files of the roots as of the last look. Blocks.
    pub fn guard(&self) -> Guard {
        let surveys = self.roots.iter().map(|root| {
            let survey = self.seen.as_ref().map(|seen| seen.survey(root));
            (Arc::clone(root), survey.unwrap_or_default())
        });
        Guard::of(surveys.collect())
    }

    /// The next look goes on from there again.
    pub fn go_back(&mut self, earlier: Earlier) {
        self.seen = earlier.seen;
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.truncate(earlier.saved);
        }
    }

    /// Whether the last look was one at these roots, and listed all folders that undo covers.
    pub fn lists_all(&self, roots: &[Arc<Root>]) -> bool {
        let real = |root: &Arc<Root>| root.real().to_owned();
        let is_whole = |seen: &Seen| !seen.has_more[0] && seen.is_own;
        self.seen.as_ref().is_some_and(is_whole)
            && self.roots.iter().map(real).eq(roots.iter().map(real))
    }
}

impl Seen {
    /// The protected files of a root.
    fn survey(&self, root: &Root) -> Survey {
        let is_complete = self.has_more == [false; 2];
        let mut holding = BTreeMap::new();
        for (path, listing) in self.folders.iter().chain(&self.beside) {
            if let Some(holds) = &listing.holds
                && (holds.matters() || !is_complete)
                && let Ok(path) = path.strip_prefix(root.real())
            {
                holding.insert(path, &**holds);
            }
        }
        Survey::of(root.dir(), &holding, is_complete)
    }
}

impl Look<'_> {
    pub fn search_later(&self, folders: impl IntoIterator<Item = PathBuf>) {
        lock(&self.beside).extend(folders);
    }

    /// Searches the folders that undo does not cover for what is protected, the upper ones first.
    pub fn search(&self, root: &Root) {
        let first = std::mem::take(&mut *lock(&self.beside));
        let (mut listed, device) = (HashMap::new(), dependable(root.dir()));
        let (_, is_complete) = guard::search(first, |relative| {
            let path = root.real().join(relative);
            let known = self.before.beside.get(&path);
            let listing = Listing::search(root.dir(), relative, known, (self.begun, device))?;
            let holds = listing.holds.clone();
            if holds.as_ref().is_some_and(|holds| holds.has_repository()) {
                self.with_found(|found| found.coverage.repositories.push(path.join(".git")));
            }
            listed.insert(path, listing);
            holds
        });
        self.with_found(|found| {
            found.beside.extend(listed);
            found.has_more[1] |= !is_complete;
        });
    }
}
