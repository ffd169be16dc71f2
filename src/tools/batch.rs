//! Changes of several files that are made together: shown as one, and all or none.
//!
//! What happens to every file is worked out before the first is changed; if one fails anyway, those before it are
//! reverted.

use std::sync::Arc;

use super::changes::{explained, file_diff, first_line, protection, report, shown_change, timely};
use super::diagnostics::with_new_ones;
use super::files::{self, cancelled, location, named, unless_cancelled};
use super::{Preview, ToolContext, ToolError, ToolOutput};
use crate::changes::ChangeSet;
use crate::changes::change_set::{Entry, EntryChange};
use crate::changes::edits::new_folders;
use crate::domain::Stored;
use crate::workspace::patch::Chunk;
use crate::workspace::{Change, FileChange, FileError, Source, Workspace, WorkspacePath, native};

/// Past this many bytes, a result has one line for each other file.
const REPORT: usize = 40_000;

/// What happens to one file.
pub(super) struct Item {
    pub path: WorkspacePath,
    pub what: What,
}

pub(super) enum What {
    /// It must not exist.
    Create(Change),
    Change(Change),
    /// It must begin with these lines.
    Remove(Vec<String>),
    Move(Vec<Chunk>, WorkspacePath),
    /// A symbolic link itself.
    RemoveLink,
    MoveLink(WorkspacePath),
}

/// Files that were changed, and how.
type Changed = Vec<(WorkspacePath, FileChange)>;

/// A preview of all changes together.
pub(super) async fn preview(context: &ToolContext, files: &[Item]) -> Result<Preview, ToolError> {
    let mut previews = Vec::new();
    for file in files {
        previews.push(file.preview(context).await?);
    }
    Ok(together(previews))
}

/// Makes the changes, and reports the problems they caused.
pub(super) async fn change(context: &ToolContext, files: &[Item]) -> Result<ToolOutput, ToolError> {
    for file in files {
        file.propose(context).await?;
    }
    let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
    with_new_ones(context, &paths, apply(context, files)).await
}

/// Applies the patch file by file; if one fails, the earlier ones are reverted.
pub(super) async fn apply(context: &ToolContext, files: &[Item]) -> Result<ToolOutput, ToolError> {
    let mut done = Changed::new();
    let (links, texts): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_of_link());
    for file in texts {
        let ended = if context.cancel.is_cancelled() {
            Err(cancelled())
        } else {
            timely(context, file.commit(context, &mut done)).await
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error = explained(context, &file.path, error).await;
                return changed_back(context, done, error).await;
            }
            Err(stopped) => return unfinished(context, &done, stopped),
        }
    }
    // A link fails only if somebody else gets in the way.
    let (mut changes, mut lines, mut failed) = (ChangeSet::default(), String::new(), None);
    for link in links {
        match link.commit_link(context, &mut changes) {
            Ok(line) => lines += &line,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let is_changed = !changes.is_empty();
    let output = match failed {
        Some(error) if is_changed => output(context, &done, &not_applied(&error)),
        Some(error) => unfinished(context, &done, error)?,
        None => output(context, &done, ""),
    };
    Ok(ToolOutput {
        content: lines + &output.content,
        changes: is_changed.then(|| Arc::new(changes)),
        ..output
    })
}

impl Item {
    pub async fn preview(&self, context: &ToolContext) -> Result<Preview, ToolError> {
        if self.is_of_link() {
            return Ok(self.link_preview(context));
        }
        let changes = self.propose(context).await?;
        let verb = if let What::Remove(_) = self.what {
            "Delete"
        } else {
            "Edit"
        };
        let mut preview = together(
            changes
                .iter()
                .map(|(path, change)| shown_change(context, verb, path, change))
                .collect(),
        );
        if let What::Move(_, to) = &self.what {
            let workspace = &context.workspace;
            preview.title = format!(
                "Move {} to {}",
                named(workspace, &self.path),
                named(workspace, to)
            );
        }
        Ok(preview)
    }

    fn is_of_link(&self) -> bool {
        matches!(self.what, What::RemoveLink | What::MoveLink(_))
    }

    fn link_preview(&self, context: &ToolContext) -> Preview {
        let name = |path| named(&context.workspace, path);
        let leads = native::shown(&self.path.link().unwrap_or_default());
        let link = format!("{} (a link to {leads})", name(&self.path));
        let (title, to) = match &self.what {
            What::MoveLink(to) => (format!("Move {link} to {}", name(to)), Some(to)),
            _ => (format!("Delete {link}"), None),
        };
        let one = |path: &WorkspacePath| Preview {
            caution: protection(path),
            ..files::preview(String::new(), path, None)
        };
        let previews = std::iter::once(&self.path).chain(to).map(one).collect();
        Preview {
            title,
            ..together(previews)
        }
    }

    /// Removes or moves the link; returns what to report.
    fn commit_link(
        &self,
        context: &ToolContext,
        changes: &mut ChangeSet,
    ) -> Result<String, ToolError> {
        let (name, from) = (self.path.display(), self.path.real());
        let failed = |error| ToolError(format!("cannot change the link {name}: {error}"));
        let gone = |target| EntryChange::new(from, Entry::Link { target }, Entry::Absent);
        let What::MoveLink(to) = &self.what else {
            let target = self.path.remove_link().map_err(failed)?;
            changes.files.push(gone(target));
            return Ok(format!("Deleted the link {name}.\n"));
        };
        let folders = to.missing_folders();
        let target = self.path.move_link(to).map_err(failed)?;
        let made = Entry::Link {
            target: target.clone(),
        };
        let folders = new_folders(&context.workspace, &to.real(), folders);
        changes.files.extend(folders);
        changes.files.extend([
            gone(target),
            EntryChange::new(to.real(), Entry::Absent, made),
        ]);
        Ok(format!("Moved the link {name} to {}.\n", to.display()))
    }

    /// What the patch will do, with advice if it cannot be applied.
    async fn propose(&self, context: &ToolContext) -> Result<Changed, ToolError> {
        match unless_cancelled(context, self.proposed(context)).await? {
            Ok(changes) => Ok(changes),
            Err(error) => {
                let is_match = matches!(error, FileError::Match { .. });
                let ToolError(mut message) = explained(context, &self.path, error).await;
                if is_match {
                    message += "; no file was changed";
                }
                Err(ToolError(message))
            }
        }
    }

    async fn proposed(&self, context: &ToolContext) -> Result<Changed, FileError> {
        let workspace = &context.workspace;
        let one = |change: FileChange| vec![(self.path.clone(), change)];
        Ok(match &self.what {
            What::RemoveLink => Vec::new(),
            What::MoveLink(to) => {
                let nothing = Change::Write(String::new());
                new(to, workspace.propose(to, &nothing).await?)?;
                Vec::new()
            }
            What::Create(change) => {
                let change = workspace.propose(&self.path, change).await?;
                one(new(&self.path, change)?)
            }
            What::Change(change) => one(workspace.propose(&self.path, change).await?),
            What::Remove(lines) => one(self.removal(context, lines).await?),
            What::Move(chunks, to) => {
                let removal = self.removal(context, &[]).await?;
                let creation = workspace
                    .propose(to, &self.moved(context, chunks).await?)
                    .await?;
                vec![
                    (to.clone(), new(to, creation)?),
                    (self.path.clone(), removal),
                ]
            }
        })
    }

    /// What removing the file would do. It is shown to the person, so the file is removed only in that state.
    async fn removal(
        &self,
        context: &ToolContext,
        lines: &[String],
    ) -> Result<FileChange, FileError> {
        let file = context.workspace.peek(&self.path).await?;
        if let Source::Buffer { unsaved: true, .. } = file.source {
            return Err(FileError::Unsaved(self.path.display()));
        }
        if !file.text.lines().take(lines.len()).eq(lines) {
            return Err(FileError::Io {
                verb: "delete",
                path: self.path.display(),
                reason: "it does not begin with the lines that the diff removes".to_owned(),
            });
        }
        let nothing = Change::Write(String::new());
        let emptied = context.workspace.propose(&self.path, &nothing).await?;
        Ok(FileChange {
            before: Some(file.stored),
            after: None,
            ..emptied
        })
    }

    /// What a file keeps when it moves: its text, encoding and permissions.
    async fn moved(&self, context: &ToolContext, chunks: &[Chunk]) -> Result<Change, FileError> {
        let (workspace, path) = (&context.workspace, &self.path);
        let file = workspace.peek(path).await?;
        let stored = Stored {
            mode: path.mode(),
            ..file.stored
        };
        let text = if chunks.is_empty() {
            file.text
        } else {
            workspace
                .propose(path, &Change::Patch(chunks.to_vec()))
                .await?
                .new_text
        };
        Ok(Change::Moved {
            text: text.to_string(),
            stored,
        })
    }

    /// Applies the patch to this file and adds what was done to `done`, even if part of it fails.
    async fn commit(&self, context: &ToolContext, done: &mut Changed) -> Result<(), FileError> {
        let workspace = &context.workspace;
        match &self.what {
            What::RemoveLink | What::MoveLink(_) => return Ok(()),
            What::Create(change) | What::Change(change) => {
                return commit(workspace, &self.path, change, done).await;
            }
            What::Move(chunks, to) => {
                let moved = self.moved(context, chunks).await?;
                commit(workspace, to, &moved, done).await?;
            }
            What::Remove(_) => {}
        }
        done.push((self.path.clone(), workspace.remove(&self.path).await?));
        Ok(())
    }
}

async fn commit(
    workspace: &Workspace,
    path: &WorkspacePath,
    change: &Change,
    done: &mut Changed,
) -> Result<(), FileError> {
    let change = workspace.commit(path, change).await?;
    let failure = change.failure.clone();
    done.push((path.clone(), change));
    failure.map_or(Ok(()), Err)
}

/// A change that makes a file, not one that replaces another.
fn new(path: &WorkspacePath, change: FileChange) -> Result<FileChange, FileError> {
    match change.old_text {
        None => Ok(change),
        Some(_) => Err(FileError::Io {
            verb: "add",
            path: path.display(),
            reason:
                "it already exists; change it with `*** Update File:` or replace it with write_file"
                    .to_owned(),
        }),
    }
}

/// Reverts what was done before `error`.
async fn changed_back(
    context: &ToolContext,
    mut done: Changed,
    error: ToolError,
) -> Result<ToolOutput, ToolError> {
    while let Some((path, change)) = done.last() {
        if context.workspace.undo(path, change).await.is_err() {
            return unfinished(context, &done, error);
        }
        done.pop();
    }
    Err(ToolError(format!("{error}; no file was changed")))
}

/// What the model and the person must know of changes that ended early: what was done, if anything was.
fn unfinished(
    context: &ToolContext,
    done: &Changed,
    error: ToolError,
) -> Result<ToolOutput, ToolError> {
    if done.is_empty() {
        return Err(error);
    }
    Ok(output(context, done, &not_applied(&error)))
}

fn not_applied(error: &ToolError) -> String {
    format!("The rest was not applied: {error}\n")
}

fn output(context: &ToolContext, done: &Changed, failure: &str) -> ToolOutput {
    let line = |(path, change): &(WorkspacePath, FileChange)| {
        let name = context.shown(path);
        if change.after.is_none() {
            format!("Deleted {name}.\n")
        } else {
            report(&name, change)
        }
    };
    let (mut content, most) = (String::new(), context.room(REPORT));
    for report in done.iter().map(line) {
        // The diffs of many files would fill the context.
        let is_short = content.len() + report.len() <= most;
        let first = report.split_inclusive('\n').next().unwrap_or_default();
        content += if is_short { report.as_str() } else { first };
    }
    ToolOutput {
        content: content + failure,
        locations: done
            .iter()
            .map(|(path, change)| location(path.absolute(), first_line(change)))
            .collect(),
        diffs: done
            .iter()
            .map(|(path, change)| file_diff(path, change))
            .collect(),
        is_error: !failure.is_empty(),
        ..ToolOutput::default()
    }
}

/// Several previews as one.
pub(super) fn together(previews: Vec<Preview>) -> Preview {
    let title = previews
        .iter()
        .map(|preview| preview.title.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let cautions: Vec<_> = previews
        .iter()
        .filter_map(|preview| preview.caution.as_deref())
        .collect();
    let caution = (!cautions.is_empty()).then(|| cautions.join("; "));
    let mut all = Preview {
        title,
        caution,
        ..Preview::default()
    };
    for preview in previews {
        all.locations.extend(preview.locations);
        all.targets.extend(preview.targets);
        all.diffs.extend(preview.diffs);
        all.note = all.note.or(preview.note);
    }
    all
}
