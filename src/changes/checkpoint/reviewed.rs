//! The result of a review, and its message for a person.

use std::path::{Path, PathBuf};

use crate::changes::hunks::PendingHunk;
use crate::changes::revert::{Left, Reason};
use crate::workspace::{Workspace, first_names, native};

/// What a person calls git's state: how the path of it begins, and what stands for that.
const WORDS: [(&str, &str); 5] = [
    ("refs/heads/", "branch "),
    ("refs/tags/", "tag "),
    ("refs/stash", "the stash"),
    ("HEAD", "git's HEAD"),
    ("index", "git's index"),
];

/// The result of a review.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reviewed {
    /// The changes under review now.
    pub turns: Vec<ReviewedTurn>,
    /// A message for the person.
    pub message: Option<String>,
    /// The changes that were not undone or redone.
    pub left: Vec<Left>,
    /// The first turn removed from the history; undo restores it until the next prompt.
    pub cut_from: Option<u64>,
    /// Whether this was an undo that `Redo` reverts.
    pub can_redo: bool,
    /// A note for the model.
    pub(crate) note: Option<String>,
}

/// What is left of a turn's changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedTurn {
    /// Its number, counted from 1.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What is left of a turn's changes to a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedFile {
    /// Absolute path.
    pub path: PathBuf,
    /// Whether the turn created the file.
    pub created: bool,
    /// The hunks.
    pub hunks: Vec<PendingHunk>,
}

/// Why nothing was done, for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReviewError(pub String);

impl Reviewed {
    /// Names the files as the person does.
    pub(crate) fn name_files(&mut self, workspace: &Workspace) {
        let files = self
            .turns
            .iter_mut()
            .flat_map(|turn| &mut turn.files)
            .map(|file| &mut file.path);
        for path in files.chain(self.left.iter_mut().map(|left| &mut left.path)) {
            *path = workspace.name_of(path);
        }
    }
}

pub(super) fn nothing() -> ReviewError {
    ReviewError("there is nothing to undo in this session".to_owned())
}

/// Names the first of what was changed, and counts the rest.
pub(super) fn named<'a>(
    workspace: &Workspace,
    paths: impl ExactSizeIterator<Item = &'a PathBuf>,
) -> String {
    let name = |path: &PathBuf| word_of_git(path).unwrap_or_else(|| workspace.shown(path));
    first_names(paths, name)
}

/// What a person calls this part of git's state, if there is a word for it.
pub(super) fn word_of_git(path: &Path) -> Option<String> {
    let path = native::shown(path);
    let (_, part) = path.rsplit_once("/.git/")?;
    let named = |(begin, word)| Some(format!("{word}{}", part.strip_prefix(begin)?));
    WORDS.into_iter().find_map(named)
}

/// What was left alone, as the end of a message.
pub(super) fn stayed(workspace: &Workspace, left: &[Left]) -> String {
    if left.is_empty() {
        return String::new();
    }
    format!("; not changed: {}", listed(workspace, left))
}

/// Why nothing was `done` ("undone", "redone").
pub(super) fn refused(workspace: &Workspace, done: &str, left: &[Left]) -> ReviewError {
    if left.is_empty() {
        nothing()
    } else {
        ReviewError(format!("nothing was {done}: {}", listed(workspace, left)))
    }
}

fn listed(workspace: &Workspace, left: &[Left]) -> String {
    let one = |left: &Left| {
        let path = workspace.shown(&left.path);
        let lines = match &left.reason {
            Reason::Lines(lines) if lines.len() > 1 => {
                format!(":{}-{}", lines.start + 1, lines.end)
            }
            Reason::Lines(lines) => format!(":{}", lines.start + 1),
            _ => String::new(),
        };
        format!("{path}{lines} ({})", left.reason)
    };
    first_names(left.iter(), one)
}
