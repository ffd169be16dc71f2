//! `apply_patch`: changes several files by a patch in the V4A format, for models that were trained on it.
//!
//! What the patch does to every file is worked out before the first is changed; when one then fails all the same, those
//! before it are changed back.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::read_partial;
use super::changes::{explained, file_diff, first_line, report, shown_change, timely};
use super::diagnostics::with_new_ones;
use super::edit_file::EditFile;
use super::files::{cancelled, location, named, shown, unless_cancelled};
use super::{Editing, Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::workspace::patch::{Action, Chunk, FilePatch, parse};
use crate::workspace::{Change, Charset, FileChange, FileError, Format, Source, WorkspacePath};

pub(super) struct ApplyPatch;

/// What to change.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// From `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

/// The arguments as far as they have come.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Partial {
    patch: Option<String>,
}

/// What happens to one file.
struct Planned {
    path: WorkspacePath,
    what: What,
}

enum What {
    Create(String),
    Remove,
    Update(Vec<Chunk>),
    Move(Vec<Chunk>, WorkspacePath),
}

/// Files that were changed, and how.
type Changed = Vec<(WorkspacePath, FileChange)>;

impl TypedTool for ApplyPatch {
    type Arguments = Arguments;
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Change files by a patch in the V4A format: between `*** Begin Patch` and \
        `*** End Patch` sections `*** Add File: PATH` (lines with +), `*** Delete File: PATH`, `*** Update File: PATH` \
        (maybe `*** Move to: PATH`, then chunks: `@@ anchor`, context lines with a blank, removed ones with -, added \
        ones with +). All files change or none. Copy context from what read_file showed, without the line numbers.";
    const KIND: ToolKind = ToolKind::Edit;
    const RULE_NAME: &'static str = EditFile::NAME;
    const EDITING: Option<Editing> = Some(Editing::Patches);
    const EXAMPLE: &'static str = r#"{"patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    let x = 1;\n+    let x = 2;\n*** End Patch"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let mut previews = Vec::new();
        for file in &planned(context, &arguments.patch)? {
            previews.push(file.preview(context).await?);
        }
        Ok(together(previews))
    }

    async fn sketch(context: &ToolContext, arguments: &Value) -> Option<Preview> {
        let partial: Partial = read_partial::<Arguments, _>(arguments);
        let patch = partial.patch?;
        let (whole_lines, _) = patch.rsplit_once('\n')?;
        let mut previews = Vec::new();
        for file in &planned(context, &format!("{whole_lines}\n*** End Patch")).ok()? {
            // A chunk that is still being written may match nothing yet.
            previews.extend(file.preview(context).await.ok());
        }
        (!previews.is_empty()).then(|| together(previews))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let files = planned(context, &arguments.patch)?;
        for file in &files {
            file.propose(context).await?;
        }
        let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
        with_new_ones(context, &paths, apply(context, &files)).await
    }
}

/// Does it, file by file; when one fails, the ones before are changed back.
async fn apply(context: &ToolContext, files: &[Planned]) -> Result<ToolOutput, ToolError> {
    let mut done = Changed::new();
    for file in files {
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
    Ok(output(context, &done, ""))
}

/// The files of a patch, each once.
fn planned(context: &ToolContext, patch: &str) -> Result<Vec<Planned>, ToolError> {
    let files = parse(patch).map_err(|error| ToolError(format!("{error}\nExample: {}", ApplyPatch::EXAMPLE)))?;
    let mut seen = HashSet::new();
    let mut once = |path: &WorkspacePath| {
        if seen.insert(path.real()) {
            return Ok(());
        }
        Err(ToolError(format!("the patch names {} twice; put all about a file into one section", path.display())))
    };
    let mut planned = Vec::new();
    for FilePatch { path, action } in files {
        let path = context.resolve(&path)?;
        once(&path)?;
        let what = match action {
            Action::Add(content) => What::Create(content),
            Action::Delete => What::Remove,
            Action::Update { chunks, moved_to: None } => What::Update(chunks),
            Action::Update { chunks, moved_to: Some(to) } => {
                let to = context.resolve(&to)?;
                once(&to)?;
                What::Move(chunks, to)
            }
        };
        planned.push(Planned { path, what });
    }
    Ok(planned)
}

impl Planned {
    async fn preview(&self, context: &ToolContext) -> Result<Preview, ToolError> {
        let changes = self.propose(context).await?;
        let verb = if let What::Remove = self.what { "Delete" } else { "Edit" };
        let mut preview =
            together(changes.iter().map(|(path, change)| shown_change(context, verb, path, change)).collect());
        if let What::Move(_, to) = &self.what {
            let workspace = &context.workspace;
            preview.title = format!("Move {} to {}", named(workspace, &self.path), named(workspace, to));
        }
        Ok(preview)
    }

    /// What will happen, with help where it cannot.
    async fn propose(&self, context: &ToolContext) -> Result<Changed, ToolError> {
        match unless_cancelled(context, self.proposed(context)).await? {
            Ok(changes) => Ok(changes),
            Err(FileError::Match { path, error, changed }) => {
                Err(ToolError(format!("{}; no file was changed", FileError::Match { path, error, changed })))
            }
            Err(error) => Err(explained(context, &self.path, error).await),
        }
    }

    async fn proposed(&self, context: &ToolContext) -> Result<Changed, FileError> {
        let workspace = &context.workspace;
        let one = |change: FileChange| vec![(self.path.clone(), change)];
        Ok(match &self.what {
            What::Create(content) => {
                let change = workspace.propose(&self.path, &Change::Write(content.clone())).await?;
                one(new(&self.path, change)?)
            }
            What::Remove => one(self.removal(context).await?),
            What::Update(chunks) => one(workspace.propose(&self.path, &Change::Patch(chunks.clone())).await?),
            What::Move(chunks, to) => {
                let removal = self.removal(context).await?;
                let text = self.moved(context, chunks).await?;
                let creation = workspace.propose(to, &Change::Write(text)).await?;
                vec![(to.clone(), new(to, creation)?), (self.path.clone(), removal)]
            }
        })
    }

    /// What removing the file would do. The person is shown it, so that it goes only as it is now.
    async fn removal(&self, context: &ToolContext) -> Result<FileChange, FileError> {
        let file = context.workspace.peek(&self.path).await?;
        if let Source::Buffer { unsaved: true, .. } = file.source {
            return Err(FileError::Unsaved(self.path.display()));
        }
        context.workspace.propose(&self.path, &Change::Write(String::new())).await
    }

    /// The text a file takes along when it moves.
    async fn moved(&self, context: &ToolContext, chunks: &[Chunk]) -> Result<String, FileError> {
        let file = context.workspace.peek(&self.path).await?;
        if !matches!(file.format, Format { charset: Charset::Utf8, bom: false, .. }) {
            let reason = format!("it is stored as {}, which would be lost", file.format);
            return Err(FileError::Io { verb: "move", path: self.path.display(), reason });
        }
        if chunks.is_empty() {
            return Ok(file.text.to_string());
        }
        let change = context.workspace.propose(&self.path, &Change::Patch(chunks.to_vec())).await?;
        Ok(change.new_text.to_string())
    }

    /// Does it, and adds to `done` what was done, also when something of it fails.
    async fn commit(&self, context: &ToolContext, done: &mut Changed) -> Result<(), FileError> {
        let workspace = &context.workspace;
        let change = match &self.what {
            What::Create(content) => workspace.commit(&self.path, &Change::Write(content.clone())).await?,
            What::Remove => workspace.remove(&self.path).await?,
            What::Update(chunks) => workspace.commit(&self.path, &Change::Patch(chunks.clone())).await?,
            What::Move(chunks, to) => {
                let text = self.moved(context, chunks).await?;
                done.push((to.clone(), workspace.commit(to, &Change::Write(text)).await?));
                workspace.remove(&self.path).await?
            }
        };
        done.push((self.path.clone(), change));
        Ok(())
    }
}

/// A change that makes a file, not one that replaces another.
fn new(path: &WorkspacePath, change: FileChange) -> Result<FileChange, FileError> {
    match change.old_text {
        None => Ok(change),
        Some(_) => Err(FileError::Io {
            verb: "add",
            path: path.display(),
            reason: "it exists already; change it with `*** Update File:` or replace it with write_file".to_owned(),
        }),
    }
}

/// Takes back what was done before `error`.
async fn changed_back(context: &ToolContext, mut done: Changed, error: ToolError) -> Result<ToolOutput, ToolError> {
    while let Some((path, change)) = done.last() {
        if context.workspace.undo(path, change).await.is_err() {
            return unfinished(context, &done, error);
        }
        done.pop();
    }
    Err(ToolError(format!("{error}; no file was changed")))
}

/// What the model and the person must know of a patch that ended early: what was done, if anything was.
fn unfinished(context: &ToolContext, done: &Changed, error: ToolError) -> Result<ToolOutput, ToolError> {
    if done.is_empty() {
        return Err(error);
    }
    Ok(output(context, done, &format!("The rest of the patch was not applied: {error}\n")))
}

fn output(context: &ToolContext, done: &Changed, more: &str) -> ToolOutput {
    let told = |(path, change): &(WorkspacePath, FileChange)| {
        let name = shown(&context.workspace, &path.absolute());
        let is_removed = change.new_text.is_empty() && change.strategy.is_none() && change.old_text.is_some();
        if is_removed { format!("Deleted {name}.\n") } else { report(&name, change) }
    };
    ToolOutput {
        content: done.iter().map(told).collect::<String>() + more,
        locations: done.iter().map(|(path, change)| location(path.absolute(), first_line(change))).collect(),
        diffs: done.iter().map(|(path, change)| file_diff(path, change)).collect(),
        ..ToolOutput::default()
    }
}

/// Several previews as one.
fn together(previews: Vec<Preview>) -> Preview {
    let title = previews.iter().map(|preview| preview.title.as_str()).collect::<Vec<_>>().join(", ");
    let cautions: Vec<_> = previews.iter().filter_map(|preview| preview.caution.as_deref()).collect();
    let caution = (!cautions.is_empty()).then(|| cautions.join("; "));
    let mut all = Preview { title, caution, ..Preview::default() };
    for preview in previews {
        all.locations.extend(preview.locations);
        all.targets.extend(preview.targets);
        all.diffs.extend(preview.diffs);
        all.note = all.note.or(preview.note);
    }
    all
}
