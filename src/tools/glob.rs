//! `glob`: files by name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::files::{blocking, missing, search_preview, shown, starts};
use super::pattern::Search;
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::domain::lock;
use crate::text::display::escape_line;
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{Workspace, WorkspacePath};

/// How many paths are shown.
const SHOWN: usize = 300;

pub(super) struct Glob;

/// What to find.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Such as `*.rs` (at any depth), `src/**/*.{ts,tsx}`.
    pattern: String,
    /// Directory to search; by default the workspace.
    path: Option<String>,
}

impl TypedTool for Glob {
    type Arguments = Arguments;
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str =
        "Find files by glob pattern. Skips files ignored by .gitignore.";
    const KIND: ToolKind = ToolKind::Search;
    const EXAMPLE: &'static str = r#"{"pattern": "src/**/*.rs"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let starts = starts(context, arguments.path.as_deref())?;
        Ok(search_preview(
            context,
            &format!("Find {}", escape_line(&arguments.pattern)),
            &starts,
        ))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let mut starts = starts(context, arguments.path.as_deref())?;
        let search = Search::new(below(&starts, &arguments.pattern))?;
        if let Some(start) = starts.iter().find(|start| !start.exists()) {
            return Err(missing(context, start).await);
        }
        if !search.folder.is_empty() {
            let inside = |start: &WorkspacePath| {
                context
                    .workspace
                    .resolve_path(&start.absolute().join(&search.folder))
            };
            starts = starts.iter().map(inside).collect::<Result<_, _>>()?;
        }
        let looser = looser(&arguments.pattern)
            .map(|looser| Search::new(&looser).map(|search| (looser, search)))
            .transpose()?;
        let (found, used) = blocking(context, move |workspace, cancel| {
            let found = find(workspace, &starts, &search, cancel);
            match looser {
                Some((looser, search)) if found.total == 0 => {
                    (find(workspace, &starts, &search, cancel), Some(looser))
                }
                _ => (found, None),
            }
        })
        .await?;
        let note = used.filter(|_| found.total > 0).map(|used| {
            format!("[no file matches the pattern as it was written; these match {used}]\n")
        });
        let report = found.report(&context.workspace, &arguments.pattern);
        Ok((note.unwrap_or_default() + &report).into())
    }
}

/// What else a pattern may mean: a plain name is part of one, and backslashes are Windows' separators.
fn looser(pattern: &str) -> Option<String> {
    let is_plain = !pattern.trim().is_empty()
        && pattern
            .chars()
            .all(|c| c.is_alphanumeric() || "._- ".contains(c));
    let separated = || pattern.contains('\\').then(|| pattern.replace('\\', "/"));
    is_plain
        .then(|| format!("**/*{}*", pattern.trim()))
        .or_else(separated)
}

/// A pattern that begins with the absolute path of a searched folder, without that path.
fn below<'a>(starts: &[WorkspacePath], pattern: &'a str) -> &'a str {
    let inside = |start: &WorkspacePath| {
        Path::new(pattern)
            .strip_prefix(start.absolute())
            .ok()?
            .to_str()
    };
    starts.iter().find_map(inside).unwrap_or(pattern)
}

/// The first matching files by path, and how many there are.
#[derive(Default)]
struct Found {
    first: BTreeSet<PathBuf>,
    total: usize,
    unreadable: usize,
}

fn find(
    workspace: &Workspace,
    starts: &[WorkspacePath],
    search: &Search,
    cancel: &CancellationToken,
) -> Found {
    let found = Mutex::new(Found::default());
    for start in starts {
        let from = start.absolute();
        let visitor = || {
            |entry: &Entry<'_>| {
                if entry.kind != Kind::Folder && search.pattern.matches(entry.below) {
                    lock(&found).add(from.join(entry.below));
                }
            }
        };
        // The folder a pattern begins with need not exist: then nothing matches.
        let walked = workspace
            .walk(start, search.depth, cancel, visitor)
            .unwrap_or_default();
        lock(&found).unreadable += walked;
    }
    found.into_inner().expect("no visitor panics")
}

impl Found {
    fn add(&mut self, path: PathBuf) {
        self.total += 1;
        self.first.insert(path);
        if self.first.len() > SHOWN {
            self.first.pop_last();
        }
    }

    fn report(&self, workspace: &Workspace, pattern: &str) -> String {
        let mut lines: Vec<_> = self
            .first
            .iter()
            .map(|path| shown(workspace, path))
            .collect();
        if self.total == 0 {
            let pattern = escape_line(pattern);
            lines.push(format!(
                "[no file matches {pattern}; ignored files are found only in a directory given as `path`]"
            ));
        }
        if self.total > self.first.len() {
            lines.push(format!(
                "[the first {SHOWN} of {} files; use a narrower pattern or a `path`]",
                self.total
            ));
        }
        if self.unreadable > 0 {
            lines.push(format!(
                "[{} directories could not be read]",
                self.unreadable
            ));
        }
        lines.join("\n") + "\n"
    }
}
