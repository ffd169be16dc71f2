//! The protected files on the disk while a command runs: so that what it changed is restored even if it ended together with
//! tandem, which some sandboxes let it cause.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Guard, Survey};
use crate::changes::Images;
use crate::changes::change_set::Entry;
use crate::domain::AnyPath;
use crate::workspace::Root;
use crate::workspace::written::Texts;

#[derive(Serialize, Deserialize)]
struct SavedRoots {
    is_pinned: bool,
    roots: Vec<SavedRoot>,
}

#[derive(Serialize, Deserialize)]
struct SavedRoot {
    real: AnyPath,
    kept: Vec<(AnyPath, Entry)>,
    repositories: Vec<AnyPath>,
    searched: Option<Vec<AnyPath>>,
}

/// The protected files as they were when a command began that was interrupted.
pub struct SavedGuard {
    guard: Guard,
    is_pinned: bool,
}

impl Guard {
    /// Writes the `file` for [`SavedGuard::load`], and the contents of the protected files to `images`. Blocks.
    ///
    /// # Errors
    /// Either cannot be written.
    pub fn save(&self, file: &Path, images: &Images, is_pinned: bool) -> io::Result<()> {
        let mut roots = Vec::new();
        for (root, survey) in &self.0 {
            for entry in survey.kept.values().filter(|entry| entry.has_image()) {
                if let Entry::File { image, .. } = entry {
                    images.store_bytes(&survey.images.read(image)?)?;
                }
            }
            let path = |path: &PathBuf| AnyPath(path.clone());
            let kept = survey.kept.iter();
            let searched = survey.searched.as_ref();
            roots.push(SavedRoot {
                real: AnyPath(root.real().to_owned()),
                kept: kept
                    .map(|(name, entry)| (path(name), entry.clone()))
                    .collect(),
                repositories: survey.repositories.keys().map(path).collect(),
                searched: searched.map(|searched| searched.iter().map(path).collect()),
            });
        }
        let mut out = BufWriter::new(File::create(file)?);
        serde_json::to_writer(&mut out, &SavedRoots { is_pinned, roots })?;
        out.flush()
    }
}

impl SavedGuard {
    /// What [`Guard::save`] wrote for these roots. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is about other roots.
    pub fn load(file: &Path, roots: &[Arc<Root>], images: &Images) -> io::Result<Self> {
        let saved: SavedRoots = serde_json::from_reader(BufReader::new(File::open(file)?))?;
        let is_same = |(saved, root): (&SavedRoot, &Arc<Root>)| saved.real.0 == root.real();
        if saved.roots.len() != roots.len() || !saved.roots.iter().zip(roots).all(is_same) {
            return Err(io::Error::other("the workspace's directories have changed"));
        }
        let path = |AnyPath(path)| path;
        let survey = |saved: SavedRoot| Survey {
            kept: saved
                .kept
                .into_iter()
                .map(|(name, entry)| (path(name), entry))
                .collect(),
            images: images.fork(),
            repositories: saved
                .repositories
                .into_iter()
                .map(|name| (path(name), None))
                .collect(),
            searched: saved
                .searched
                .map(|searched| searched.into_iter().map(path).collect()),
            ..Survey::default()
        };
        let surveys = saved.roots.into_iter().map(survey);
        Ok(Self {
            guard: Guard(roots.iter().cloned().zip(surveys).collect()),
            is_pinned: saved.is_pinned,
        })
    }

    /// [`Guard::restore`] for what the command changed, except what `is_others` (by its absolute path). Blocks.
    #[must_use]
    pub fn restore(
        &self,
        written: &Texts,
        is_others: &dyn Fn(&Path) -> bool,
        survey: &mut dyn FnMut() -> Guard,
    ) -> Vec<String> {
        let existed = |path: &Path| {
            let mut roots = self.guard.0.iter();
            roots.any(|(root, survey)| {
                let name = path.strip_prefix(root.real());
                name.is_ok_and(|name| survey.kept.contains_key(name))
            })
        };
        // What the sandbox pinned was changed by others.
        let is_others = |path: &Path| is_others(path) || (self.is_pinned && existed(path));
        self.guard.restore(true, written, &is_others, survey)
    }
}
