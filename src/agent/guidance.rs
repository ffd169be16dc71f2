//! Instructions of folders: an `AGENTS.md` joins the conversation with the first file beside or below it that is read,
//! changed or mentioned.
//!
//! Invariants: each file joins once per conversation, at the end of a new message, so that the beginning of requests
//! never changes; nothing outside the workspace is read.
//!
//! Instructions grant no permission.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::timeout;

use super::text::{cut, fenced};
use crate::domain::lock;
use crate::model::{Message, Part};
use crate::workspace::{Workspace, WorkspacePath, native};

/// The name of an instructions file.
pub const FILE: &str = "AGENTS.md";
/// Other agents' names for it: the first one found is read if there is no [`FILE`].
const OTHERS: [&str; 4] = [
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
];
/// The maximum size of one file, in bytes.
const LONGEST: usize = 32 << 10;
/// How long to wait for an editor to return a file's text.
const TIMEOUT: Duration = Duration::from_secs(5);

const BEGIN: &str = "Instructions from ";
const END: &str = ". They grant no permission";

/// Instructions for the model, as they appear in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    name: String,
    text: String,
}

impl Rules {
    /// The text of the file at `path`, cut if it is too long.
    pub fn new(path: &Path, text: &str) -> Self {
        let text = cut(text, LONGEST, "it exceeds the limit");
        Self {
            name: native::shown(path),
            text,
        }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fenced(&format!("{BEGIN}{}{END}", self.name), &self.text))
    }
}

/// The instructions files the model has seen. Cheap to clone; clones share state.
#[derive(Debug, Clone, Default)]
pub struct Guidance(Arc<Mutex<HashSet<String>>>);

impl Guidance {
    /// The instructions of the folders between the workspace folder and `file` that the model has not seen, outermost
    /// first. Those of the workspace folder itself come with a prompt.
    pub async fn about(&self, workspace: &Workspace, file: &WorkspacePath) -> Vec<Rules> {
        let mut paths = self.claimed(above(workspace, file));
        // If the model reads or writes the file itself, it knows the text.
        paths.retain(|path| path.real() != file.real());
        read(workspace, &paths).await
    }

    /// The workspace folders' instructions that the model has not seen.
    pub async fn everywhere(&self, workspace: &Workspace) -> Vec<Rules> {
        let paths = workspace
            .roots()
            .iter()
            .filter_map(|root| of_folder(workspace, root.path()));
        let paths = self.claimed(paths.collect());
        read(workspace, &paths).await
    }

    /// Those of `paths` that the model has not seen, claimed for one call even if several run in parallel.
    fn claimed(&self, mut paths: Vec<WorkspacePath>) -> Vec<WorkspacePath> {
        let mut known = self.lock();
        paths.retain(|path| known.insert(path.absolute().display().to_string()));
        paths
    }

    /// Marks the file at `path` as seen; returns whether it was new.
    pub fn is_new(&self, path: &Path) -> bool {
        self.lock().insert(path.display().to_string())
    }

    /// Resets the seen files to those in these messages.
    pub fn reset_to<'m>(&self, messages: impl Iterator<Item = &'m Message>) {
        let mut known = HashSet::new();
        for message in messages {
            match message {
                Message::Results { results } => results
                    .iter()
                    .for_each(|result| known.extend(named(&result.content))),
                Message::User { parts } => parts.iter().for_each(|part| match part {
                    Part::Text { text } | Part::Note { text } => known.extend(named(text)),
                    Part::Image(_) => {}
                }),
                Message::Assistant(_) => {}
            }
        }
        *self.lock() = known;
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        lock(&self.0)
    }
}

async fn read(workspace: &Workspace, paths: &[WorkspacePath]) -> Vec<Rules> {
    let mut found = Vec::new();
    for path in paths {
        // A link may lead to a file with secrets, which is read only with approval.
        if !path.is_secret()
            && let Ok(Ok(file)) = timeout(TIMEOUT, workspace.peek(path)).await
        {
            found.push(Rules::new(&path.absolute(), &file.marked()));
        }
    }
    found
}

/// The instructions of a folder.
fn of_folder(workspace: &Workspace, folder: &Path) -> Option<WorkspacePath> {
    let names = std::iter::once(FILE).chain(OTHERS);
    let mut paths = names.filter_map(|name| workspace.resolve_path(&folder.join(name)).ok());
    paths.find(|path| workspace.document(path).is_some() || path.is_file())
}

/// Whether a note is a block of instructions, as [`Rules`] writes it.
pub(super) fn is_block(note: &str) -> bool {
    note.starts_with(BEGIN)
}

/// The instruction files of the folders between the workspace folder and `file`.
fn above(workspace: &Workspace, file: &WorkspacePath) -> Vec<WorkspacePath> {
    let real = file.real();
    let depth = file.target().components().count();
    let folders: Vec<&Path> = real
        .ancestors()
        .skip(1)
        .take(depth.saturating_sub(1))
        .collect();
    folders
        .iter()
        .rev()
        .filter_map(|folder| of_folder(workspace, folder))
        .collect()
}

/// The files whose instructions are in `text`.
fn named(text: &str) -> impl Iterator<Item = String> {
    let lines = text
        .match_indices(BEGIN)
        .filter_map(|(at, _)| text.get(at + BEGIN.len()..)?.lines().next());
    lines.filter_map(|line| Some(line.strip_suffix(':')?.strip_suffix(END)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolResult;

    #[test]
    fn only_instructions_in_messages_count_as_sent() {
        let guidance = Guidance::default();
        guidance.lock().insert("/w/gone/AGENTS.md".to_owned());
        let rules = |path: &str| Rules::new(Path::new(path), "Use tabs.").to_string();
        let content = format!("1\tfn a() {{}}\n{}", rules("/w/a b/AGENTS.md"));
        let result = ToolResult {
            call_id: String::new(),
            content,
            is_error: false,
            ..ToolResult::default()
        };
        let text = format!(
            "see\n\n{}\n\n{}",
            rules("/w/c/AGENTS.md"),
            rules("/w/c/d/AGENTS.md")
        );
        let messages = [
            Message::Results {
                results: vec![result],
            },
            Message::text(text),
        ];
        guidance.reset_to(messages.iter());
        let mut known: Vec<_> = guidance.lock().iter().cloned().collect();
        known.sort();
        assert_eq!(
            known,
            ["/w/a b/AGENTS.md", "/w/c/AGENTS.md", "/w/c/d/AGENTS.md"]
        );
    }
}
