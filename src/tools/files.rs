//! Shared by the tools that work on files: naming files, blocking work, hints for a wrong name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use super::{Location, Preview, ToolContext, ToolError};
use crate::domain::lock;
use crate::text;
use crate::text::display::escape_line;
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{self, Workspace, WorkspacePath, native};

/// The search for a similar name stops after this many files.
const SEARCHED_FOR_HINT: usize = 50_000;
const HINTS: usize = 5;

/// The path called `name`; all workspace folders if there is no name.
pub(super) fn starts(
    context: &ToolContext,
    name: Option<&str>,
) -> Result<Vec<WorkspacePath>, ToolError> {
    match name.map(str::trim) {
        None | Some("") => Ok(roots(&context.workspace)),
        Some(name) => Ok(vec![context.resolve(name)?]),
    }
}

pub(super) fn roots(workspace: &Workspace) -> Vec<WorkspacePath> {
    let roots = workspace.roots().iter();
    roots
        .filter_map(|root| workspace.resolve_path(root.path()).ok())
        .collect()
}

/// An absolute path for display: relative where relative names start, on one line.
pub(super) fn shown(workspace: &Workspace, path: &Path) -> String {
    // By component, because a root's path may end with a slash.
    let path = path.components().as_path();
    let relative = workspace
        .roots()
        .first()
        .and_then(|root| path.strip_prefix(root.path()).ok())
        .unwrap_or(path);
    let name = if relative.as_os_str().is_empty() {
        ".".into()
    } else {
        native::shown(relative)
    };
    escape_line(&name).into_owned()
}

impl ToolContext {
    /// What the model calls a file.
    pub(super) fn shown(&self, path: &WorkspacePath) -> String {
        shown(&self.workspace, &path.absolute())
    }
}

/// [`shown`] with a symlink's target, for titles.
pub(super) fn named(workspace: &Workspace, path: &WorkspacePath) -> String {
    let name = shown(workspace, &path.absolute());
    let root = path.root();
    if path.absolute().strip_prefix(root.path()) == Ok(path.target()) {
        return name;
    }
    format!("{name} → {}", escape_line(&native::shown(path.target())))
}

/// Why reading what is at `path` requires approval, if it does.
pub(super) fn secrecy(path: &WorkspacePath) -> Option<String> {
    let caution = || format!("{} may contain secrets", native::shown(path.target()));
    path.is_secret().then(caution)
}

/// A preview of something done in one place.
pub(super) fn preview(title: String, path: &WorkspacePath, line: Option<usize>) -> Preview {
    let locations = vec![location(path.absolute(), line)];
    Preview {
        title,
        locations,
        targets: vec![path.real()],
        caution: secrecy(path),
        ..Preview::default()
    }
}

/// The names of some folders.
pub(super) fn names(context: &ToolContext, folders: &[WorkspacePath]) -> String {
    let names = folders.iter().map(|folder| context.shown(folder));
    names.collect::<Vec<_>>().join(", ")
}

/// A preview of a search in some folders.
pub(super) fn search_preview(
    context: &ToolContext,
    what: &str,
    starts: &[WorkspacePath],
) -> Preview {
    let place = match names(context, starts).as_str() {
        "." => String::new(),
        names => format!(" in {names}"),
    };
    let locations = starts
        .iter()
        .map(|start| location(start.absolute(), None))
        .collect();
    let targets = starts.iter().map(WorkspacePath::real).collect();
    Preview {
        title: format!("{what}{place}"),
        locations,
        targets,
        ..Preview::default()
    }
}

pub(super) fn location(path: PathBuf, line: Option<usize>) -> Location {
    Location {
        path,
        line: line.and_then(|line| u32::try_from(line).ok()),
    }
}

/// Runs `work`, which may block. Returns at once if the call is cancelled; `work` checks the token itself.
pub(super) async fn blocking<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&Workspace, &CancellationToken) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let (workspace, cancel) = (context.workspace.clone(), context.cancel.clone());
    unless_cancelled(
        context,
        workspace::blocking(move || work(&workspace, &cancel)),
    )
    .await
}

/// The result of `work`, unless the call is cancelled first.
pub(super) async fn unless_cancelled<T>(
    context: &ToolContext,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    context
        .cancel
        .run_until_cancelled(work)
        .await
        .ok_or_else(cancelled)
}

pub(super) fn cancelled() -> ToolError {
    ToolError("cancelled".to_owned())
}

/// The error for a path that does not exist.
pub(super) async fn missing(context: &ToolContext, path: &WorkspacePath) -> ToolError {
    let name = context.shown(path);
    let hint = did_you_mean(context, path).await;
    ToolError(format!("{name} does not exist{hint}"))
}

/// ` Did you mean …?` for a file that does not exist; empty if nothing is similar.
pub(super) async fn did_you_mean(context: &ToolContext, path: &WorkspacePath) -> String {
    let path = path.clone();
    let near = blocking(context, move |workspace, cancel| {
        near(workspace, &path, cancel)
    })
    .await
    .unwrap_or_default();
    if near.is_empty() {
        String::new()
    } else {
        format!(". Did you mean {}?", near.join(", "))
    }
}

/// Files with the name of `path` or a similar one: the same name anywhere, similar names in the same folder.
fn near(workspace: &Workspace, path: &WorkspacePath, cancel: &CancellationToken) -> Vec<String> {
    let wanted = path.absolute();
    let Some(name) = wanted.file_name() else {
        return Vec::new();
    };
    let name = name.to_string_lossy().to_lowercase();
    let found = Mutex::new(BTreeSet::new());
    let seen = AtomicUsize::new(0);
    let enough = cancel.child_token();
    for start in roots(workspace) {
        let (from, folder) = (start.absolute(), wanted.parent());
        let visitor = || {
            |entry: &Entry<'_>| {
                if seen.fetch_add(1, Ordering::Relaxed) > SEARCHED_FOR_HINT {
                    enough.cancel();
                }
                let here = from.join(entry.below);
                let its_name = here
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .to_lowercase();
                let likeness = likeness(&name, &its_name, here.parent() == folder);
                if likeness > 0 && entry.kind != Kind::Folder {
                    lock(&found).insert((255 - likeness, shown(workspace, &here)));
                }
            }
        };
        // An unreadable folder has no hints.
        let _ = workspace.walk(&start, usize::MAX, &enough, visitor);
    }
    let found = found.into_inner().expect("no visitor panics");
    found
        .into_iter()
        .map(|(_, name)| name)
        .take(HINTS)
        .collect()
}

/// The similarity of a name to the wanted one, from 0 (not at all) up.
fn likeness(wanted: &str, name: &str, same_folder: bool) -> u8 {
    if wanted == name {
        return 255;
    }
    // One is the other up to a punctuation mark: `app` and `app.py`, `app.py` and `app.py | 3 ++-`.
    let (short, long) = if wanted.len() < name.len() {
        (wanted, name)
    } else {
        (name, wanted)
    };
    let rest = long.strip_prefix(short).unwrap_or_default();
    if same_folder && rest.starts_with(|it: char| !it.is_alphanumeric()) {
        return 220;
    }
    let is_near = |cutoff: f32| text::likeness(wanted, name) > cutoff;
    let same_length = wanted.len().abs_diff(name.len()) <= 4;
    match same_folder {
        true if same_length && is_near(0.7) => 200,
        false
            if same_length
                && wanted.starts_with(name.chars().next().unwrap_or_default())
                && is_near(0.9) =>
        {
            100
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::likeness;

    #[test]
    fn suggestions_prefer_the_same_name_then_neighbors() {
        assert_eq!(likeness("main.rs", "main.rs", false), 255);
        assert_eq!(likeness("tool.rs", "tools.rs", true), 200);
        assert_eq!(likeness("settings.json", "setings.json", false), 100);
        assert_eq!(likeness("main.rs", "walk.rs", true), 0);
        assert_eq!(likeness("main.rs", "main_window.rs", false), 0);
    }
}
