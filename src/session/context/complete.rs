//! Completion of mentions while a prompt is typed: files, folders, definitions, resources of MCP servers, and what the
//! editor knows.
//!
//! Invariants: no work before somebody types; names are listed once per burst of queries and dropped with the prompt; a
//! query never waits long, but answers with what is known by then; a newer query cancels the older one.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::mention::written;
use crate::domain::{Completion, CompletionKind, Focus, lock};
use crate::tools::mcp::Resource;
use crate::tools::{self, Symbol};
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{Workspace, WorkspacePath, blocking, native};

/// How many completions are offered.
const OFFERED: usize = 50;
/// How many of them are resources, so that they leave room for files.
const RESOURCES: usize = 10;
/// How many candidates are examined for them.
const TRIED: usize = 10 * OFFERED;
/// How many names are listed; a larger workspace is covered in part.
const KNOWN: usize = 100_000;
/// How long the list of names is reused.
const FRESH: Duration = Duration::from_secs(10);
/// How long a query waits for a listing in progress.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long a query for definitions may read files, because nothing is cached.
const READING: Duration = Duration::from_millis(500);
/// How many names are ranked between checks for a newer query.
const CHUNK: usize = 4096;

/// Completes mentions in a session. Cheap to clone.
#[derive(Clone)]
pub struct Completer(Arc<Shared>);

struct Shared {
    workspace: Workspace,
    resources: watch::Receiver<Arc<[Resource]>>,
    end: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: Option<Arc<Names>>,
    newest: CancellationToken,
}

impl Completer {
    /// For the files and resources of a session; stops when `end` is cancelled.
    pub(in crate::session) fn new(
        workspace: Workspace,
        resources: watch::Receiver<Arc<[Resource]>>,
        end: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            workspace,
            resources,
            end,
            state: Mutex::default(),
        }))
    }

    /// Completions for `query`, the text after an `@`, best first.
    pub async fn complete(&self, query: &str, focus: Option<&Focus>) -> Vec<Completion> {
        let cancel = self.0.end.child_token();
        std::mem::replace(&mut self.lock().newest, cancel.clone()).cancel();
        if let Some(name) = query.strip_prefix('#') {
            return self.symbols(name, cancel).await;
        }
        let query = query.trim_start_matches('"').to_owned();
        let mut offered = self.of_the_editor(&query, focus);
        offered.extend(self.of_servers(&query));
        let names = self.names();
        let _known_in_part = timeout(TIMEOUT, names.complete.cancelled()).await;
        let workspace = self.0.workspace.clone();
        let ranked = blocking(move || names.ranked(&workspace, &query, &cancel)).await;
        offered.extend(ranked);
        offered.truncate(OFFERED);
        offered
    }

    /// Drops the list of names.
    pub(in crate::session) fn forget(&self) {
        if let Some(names) = self.lock().names.take() {
            names.enough.cancel();
        }
    }

    fn of_the_editor(&self, query: &str, focus: Option<&Focus>) -> Vec<Completion> {
        let is_meant = |name: &str| name.starts_with(&query.to_lowercase());
        let mut offered = Vec::new();
        if is_meant("diagnostics") && self.0.workspace.editor().knows_diagnostics() {
            let detail = Some("the diagnostics the editor shows".to_owned());
            offered.push(named("diagnostics", CompletionKind::Diagnostics, detail));
        }
        if let Some(Focus {
            path,
            lines: (first, last),
            is_selection: true,
        }) = focus.filter(|_| is_meant("selection"))
            && let Ok(path) = self.0.workspace.resolve_path(path)
            && !path.is_secret()
        {
            let detail = Some(format!(
                "{}:{first}-{last}",
                shown(&self.0.workspace, &path)
            ));
            offered.push(named("selection", CompletionKind::Selection, detail));
        }
        offered
    }

    /// The resources whose name or description contains `query`.
    fn of_servers(&self, query: &str) -> Vec<Completion> {
        let query = query.to_lowercase();
        let listed = self.0.resources.borrow();
        let offered = listed.iter().filter_map(
            |Resource {
                 mention,
                 description,
                 ..
             }| {
                let is_meant = format!("{mention} {description}")
                    .to_lowercase()
                    .contains(&query);
                Some(Completion {
                    insert: written(mention).filter(|_| is_meant)?,
                    label: mention.clone(),
                    kind: CompletionKind::Resource,
                    detail: Some(description.clone()),
                })
            },
        );
        offered.take(RESOURCES).collect()
    }

    /// The names of all files and folders, listed if necessary.
    fn names(&self) -> Arc<Names> {
        let mut state = self.lock();
        let fresh = state
            .names
            .as_ref()
            .filter(|names| !names.complete.is_cancelled() || names.since.elapsed() < FRESH);
        if let Some(names) = fresh {
            return Arc::clone(names);
        }
        let names = Arc::new(Names::new(self.0.end.child_token()));
        state.names = Some(Arc::clone(&names));
        let (workspace, growing) = (self.0.workspace.clone(), Arc::clone(&names));
        // Ends by itself, or early with the session.
        tokio::task::spawn_blocking(move || growing.look_up(&workspace));
        names
    }

    async fn symbols(&self, name: &str, cancel: CancellationToken) -> Vec<Completion> {
        let (workspace, name, enough) = (self.0.workspace.clone(), name.to_owned(), cancel.clone());
        let mut search = std::pin::pin!(blocking(move || {
            let mut found = tools::symbols(&workspace, &name, &enough);
            sort_by_likeness(&mut found, &name, |symbol| &symbol.name);
            found.truncate(OFFERED);
            found
        }));
        let found = match timeout(READING, &mut search).await {
            Ok(found) => found,
            Err(_late) => {
                cancel.cancel();
                search.await
            }
        };
        join_all(found.into_iter().map(|symbol| self.symbol(symbol)))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    async fn symbol(&self, symbol: Symbol) -> Option<Completion> {
        let path = self.0.workspace.resolve_path(&symbol.path).ok()?;
        let name = shown(&self.0.workspace, &path);
        // If the text does not arrive in time, only the first line is mentioned.
        let text = timeout(TIMEOUT, self.0.workspace.peek(&path))
            .await
            .ok()
            .and_then(Result::ok);
        let (first, last) = (
            symbol.line,
            text.map_or(symbol.line, |file| symbol.end(&file.text)),
        );
        Some(Completion {
            insert: format!("{}#L{first}-L{last}", written(&name)?),
            label: format!("{} {}", symbol.keyword, symbol.name),
            kind: CompletionKind::Symbol,
            detail: Some(format!("{name}:{first}")),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

fn named(name: &str, kind: CompletionKind, detail: Option<String>) -> Completion {
    Completion {
        insert: name.to_owned(),
        label: name.to_owned(),
        kind,
        detail,
    }
}

/// A path for display: relative where relative names start, else absolute.
pub(super) fn shown(workspace: &Workspace, path: &WorkspacePath) -> String {
    let is_first = workspace
        .roots()
        .first()
        .is_some_and(|root| root.path() == path.root().path());
    if is_first {
        path.display()
    } else {
        native::shown(&path.absolute())
    }
}

/// The names of a workspace's files and folders, which may still be growing.
struct Names {
    since: Instant,
    /// As they are mentioned; folders end with a slash.
    found: Mutex<Vec<Box<str>>>,
    /// Cancelled when no more are wanted.
    enough: CancellationToken,
    /// Cancelled when the listing is complete.
    complete: CancellationToken,
}

impl Names {
    fn new(enough: CancellationToken) -> Self {
        Self {
            since: Instant::now(),
            found: Mutex::default(),
            enough,
            complete: CancellationToken::new(),
        }
    }

    fn look_up(&self, workspace: &Workspace) {
        let _whatever_happens = self.complete.clone().drop_guard();
        for (index, root) in workspace.roots().iter().enumerate() {
            let Ok(start) = workspace.resolve_path(root.path()) else {
                continue;
            };
            let before = if index == 0 {
                Path::new("")
            } else {
                root.path()
            };
            let visitor = || {
                |entry: &Entry<'_>| {
                    let Some(name) = name(before, entry) else {
                        return;
                    };
                    let mut found = self.lock();
                    if found.len() < KNOWN {
                        found.push(name);
                    } else {
                        self.enough.cancel();
                    }
                }
            };
            // An unreadable folder has no completions.
            let _ = workspace.walk(&start, usize::MAX, &self.enough, visitor);
        }
    }

    /// The names most similar to `query`.
    fn ranked(
        &self,
        workspace: &Workspace,
        query: &str,
        cancel: &CancellationToken,
    ) -> Vec<Completion> {
        let found = self.lock();
        let mut likeness = Likeness::new(query);
        let mut matching = Vec::new();
        for names in found.chunks(CHUNK) {
            if cancel.is_cancelled() {
                return Vec::new();
            }
            matching.extend(
                names
                    .iter()
                    .filter_map(|name| Some((likeness.of(name)?, name))),
            );
        }
        matching.sort_unstable_by_key(|(score, name)| {
            (Reverse(*score), depth(name), name.len(), *name)
        });
        let best = matching.into_iter().take(TRIED);
        best.filter_map(|(_, name)| offered(workspace, name))
            .take(OFFERED)
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<str>>> {
        lock(&self.found)
    }
}

/// How `entry` is mentioned; `None` if it looks like something else to a person.
fn name(before: &Path, entry: &Entry<'_>) -> Option<Box<str>> {
    let path = before.join(entry.below);
    let name = path
        .to_str()
        .filter(|name| !name.contains(tools::is_deceptive) && !name.contains(['\n', '\t']))?;
    match entry.kind {
        Kind::File => Some(name.into()),
        Kind::Folder => Some(format!("{name}/").into()),
        Kind::Symlink | Kind::Special => None,
    }
}

/// Protected files and secrets are not offered. Checked last, because it is slow.
fn offered(workspace: &Workspace, name: &str) -> Option<Completion> {
    let kind = if name.ends_with('/') {
        CompletionKind::Folder
    } else {
        CompletionKind::File
    };
    let inside = if kind == CompletionKind::Folder {
        &format!("{name}any")
    } else {
        name
    };
    let path = workspace.resolve(inside).ok()?;
    if path.is_secret() || path.is_protected() {
        return None;
    }
    Some(Completion {
        insert: written(name)?,
        label: name.to_owned(),
        kind,
        detail: None,
    })
}

fn depth(name: &str) -> usize {
    name.trim_end_matches('/').matches('/').count()
}

/// Ranks names by similarity to the query.
struct Likeness {
    pattern: Pattern,
    matcher: Matcher,
    characters: Vec<char>,
}

impl Likeness {
    fn new(query: &str) -> Self {
        Self {
            pattern: Pattern::new(
                query,
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
            ),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            characters: Vec::new(),
        }
    }

    fn of(&mut self, name: &str) -> Option<u32> {
        self.pattern
            .score(Utf32Str::new(name, &mut self.characters), &mut self.matcher)
    }
}

/// Most similar first, then shortest.
fn sort_by_likeness<T>(found: &mut [T], query: &str, name: impl Fn(&T) -> &str) {
    let mut likeness = Likeness::new(query);
    found.sort_by_cached_key(|one| (Reverse(likeness.of(name(one))), name(one).len()));
}
