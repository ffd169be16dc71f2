//! `list_files`: what is in a folder, as a tree.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::files::{blocking, location, missing, names, preview, starts};
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::domain::lock;
use crate::text::display::escape_line;
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{Workspace, WorkspacePath};

/// How many names are shown.
const SHOWN: usize = 300;
/// How many are read: a folder with more entries is listed less deeply.
const SEEN: usize = 100_000;

pub(super) struct ListFiles;

/// What to list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Directory; by default the workspace.
    path: Option<String>,
    /// By default as deep as fits.
    depth: Option<usize>,
}

impl TypedTool for ListFiles {
    type Arguments = Arguments;
    const NAME: &'static str = "list_files";
    const DESCRIPTION: &'static str =
        "List a directory as a tree. Skips files ignored by .gitignore.";
    const KIND: ToolKind = ToolKind::Read;
    const EXAMPLE: &'static str = r#"{"path": "src", "depth": 2}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let starts = starts(context, arguments.path.as_deref())?;
        let title = format!("List {}", names(context, &starts));
        Ok(starts
            .first()
            .map(|start| preview(title, start, None))
            .unwrap_or_default())
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let depth = arguments.depth.unwrap_or(usize::MAX).max(1);
        let mut output = ToolOutput::default();
        for start in starts(context, arguments.path.as_deref())? {
            let name = context.shown(&start);
            let folder = start.clone();
            let list = move |workspace: &Workspace, cancel: &CancellationToken| {
                list(workspace, &folder, depth, cancel)
            };
            match blocking(context, list).await? {
                Ok(tree) => output.content += &format!("{name}/\n{tree}\n"),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(missing(context, &start).await);
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return Err(ToolError(format!("{name} is a file; read_file shows it")));
                }
                Err(error) => return Err(ToolError(format!("cannot list {name}: {error}"))),
            }
            output.locations.push(location(start.absolute(), None));
        }
        Ok(output)
    }
}

/// The contents of a folder, as `list_files` shows them with the default depth. Blocks.
///
/// # Errors
/// It is not a folder or cannot be read.
pub fn tree(workspace: &Workspace, folder: &WorkspacePath) -> io::Result<String> {
    list(workspace, folder, usize::MAX, &CancellationToken::new())
}

fn list(
    workspace: &Workspace,
    start: &WorkspacePath,
    depth: usize,
    cancel: &CancellationToken,
) -> io::Result<String> {
    let mut seen = look(workspace, start, depth, cancel)?;
    for less in [4, 3, 2, 1].into_iter().filter(|less| *less < depth) {
        if !seen.is_too_much {
            break;
        }
        seen = look(workspace, start, less, cancel)?;
    }
    if matches!(seen.entries.as_slice(), [(below, _)] if below.as_os_str().is_empty()) {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    seen.entries.sort();
    let mut tree = drawn(&seen.entries, depth);
    if seen.is_too_much {
        tree.push(format!("[there are more than {SEEN}]"));
    }
    if seen.unreadable > 0 {
        tree.push(format!(
            "[{} directories could not be read]",
            seen.unreadable
        ));
    }
    Ok(tree.join("\n"))
}

/// Everything found below a folder.
struct Seen {
    entries: Vec<(PathBuf, Kind)>,
    is_too_much: bool,
    unreadable: usize,
}

fn look(
    workspace: &Workspace,
    start: &WorkspacePath,
    depth: usize,
    cancel: &CancellationToken,
) -> io::Result<Seen> {
    let entries = Mutex::new(Vec::new());
    let enough = cancel.child_token();
    let visitor = || {
        |entry: &Entry<'_>| {
            let mut entries = lock(&entries);
            if entries.len() < SEEN {
                entries.push((entry.below.to_owned(), entry.kind));
            } else {
                enough.cancel();
            }
        }
    };
    let unreadable = workspace.walk(start, depth, &enough, visitor)?;
    let entries = entries.into_inner().expect("no visitor panics");
    Ok(Seen {
        entries,
        is_too_much: enough.is_cancelled() && !cancel.is_cancelled(),
        unreadable,
    })
}

/// Sorted entries as the lines of an indented tree: as deep as requested, or less deep if that would be too long.
fn drawn(entries: &[(PathBuf, Kind)], depth: usize) -> Vec<String> {
    let levels: Vec<_> = entries
        .iter()
        .map(|(path, _)| path.components().count())
        .collect();
    let deepest = levels.iter().copied().max().unwrap_or_default();
    let up_to = |depth: usize| levels.iter().filter(|level| **level <= depth).count();
    let shown = (1..=depth.min(deepest))
        .rev()
        .find(|depth| up_to(*depth) <= SHOWN)
        .unwrap_or(1);
    let is_cut = shown < deepest || shown == depth;
    let line = |((path, kind), level): (&(PathBuf, Kind), &usize)| {
        let mark = match kind {
            Kind::Folder if is_cut && *level == shown => "/…",
            Kind::Folder => "/",
            Kind::Symlink => " (symlink)",
            Kind::Special => " (not a regular file)",
            Kind::File => "",
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{}{}{mark}", "  ".repeat(*level), escape_line(&name))
    };
    let mut lines: Vec<_> = entries
        .iter()
        .zip(&levels)
        .filter(|(_, level)| **level <= shown)
        .take(SHOWN)
        .map(line)
        .collect();
    let left_out = entries.len() - lines.len();
    if entries.is_empty() {
        lines.push("[empty, or everything in it is ignored by .gitignore]".to_owned());
    } else if up_to(1) > SHOWN {
        lines.push(format!("[{left_out} more; find files by name with glob]"));
    } else if left_out > 0 {
        lines.push(format!(
            "[{left_out} more below level {shown}; list a directory to see what is in it]"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Kind, drawn};

    fn entries(names: &[&str]) -> Vec<(PathBuf, Kind)> {
        let kind = |name: &str| {
            if name.ends_with('/') {
                Kind::Folder
            } else {
                Kind::File
            }
        };
        let mut entries: Vec<_> = names
            .iter()
            .map(|name| (PathBuf::from(name), kind(name)))
            .collect();
        entries.sort();
        entries
    }

    #[test]
    fn a_tree_is_drawn() {
        let entries = entries(&["b.rs", "a/", "a/x.rs", "a/deep/", "a-b.rs", "odd\nname"]);
        assert_eq!(
            drawn(&entries, 2),
            [
                "  a/",
                "    deep/…",
                "    x.rs",
                "  a-b.rs",
                "  b.rs",
                "  odd\\nname"
            ]
        );
        assert_eq!(
            drawn(&[], 2),
            ["[empty, or everything in it is ignored by .gitignore]"]
        );
    }

    #[test]
    fn long_trees_are_less_deep() {
        let many: Vec<_> = (0..600).map(|index| format!("a/{index:03}")).collect();
        let names: Vec<_> = many.iter().map(String::as_str).chain(["a/", "b"]).collect();
        assert_eq!(
            drawn(&entries(&names), 3),
            [
                "  a/…",
                "  b",
                "[600 more below level 1; list a directory to see what is in it]"
            ]
        );
    }

    #[test]
    fn very_long_folders_are_truncated() {
        let many: Vec<_> = (0..600).map(|index| format!("{index:03}")).collect();
        let names: Vec<_> = many.iter().map(String::as_str).collect();
        let tree = drawn(&entries(&names), 3);
        assert!(
            tree.ends_with(&[
                "  299".to_owned(),
                "[300 more; find files by name with glob]".to_owned()
            ]),
            "{tree:?}"
        );
    }
}
