//! What can be mentioned in a prompt, offered while it is typed: files, folders, definitions, and what the editor knows.
//!
//! Invariants: nothing is done before somebody types; the names are looked up once for a burst of queries and forgotten
//! with the prompt; a query never waits long, it gets what is known by then; a newer query overtakes the one before.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::mention::written;
use crate::domain::Focus;
use crate::tools::{self, Symbol};
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{Workspace, WorkspacePath, blocking, native};

/// So many are offered at once.
const OFFERED: usize = 50;
/// So many are looked at for that.
const TRIED: usize = 10 * OFFERED;
/// So many names are known; a workspace with more is known in part.
const KNOWN: usize = 100_000;
/// So long the names are taken for true.
const FRESH: Duration = Duration::from_secs(10);
/// So long a query waits for what is still being looked up.
const PATIENCE: Duration = Duration::from_millis(100);
/// So long a query for definitions may read files: nothing is known before.
const READING: Duration = Duration::from_millis(500);
/// Names between two looks at whether a newer query has come.
const CHUNK: usize = 4096;

/// Something that can be mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What stands behind the `@`.
    pub insert: String,
    /// What it is called.
    pub label: String,
    /// What it is.
    pub kind: Mentionable,
    /// What else to know.
    pub detail: Option<String>,
}

/// What can be mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mentionable {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The lines of a definition.
    Symbol,
    /// The problems the editor shows.
    Diagnostics,
    /// What is selected in the editor.
    Selection,
}

/// Offers what can be mentioned in a session. Cheap to clone.
#[derive(Clone)]
pub struct Completer(Arc<Shared>);

struct Shared {
    workspace: Workspace,
    end: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: Option<Arc<Names>>,
    newest: CancellationToken,
}

impl Completer {
    /// For the files of a session that ends with `end`.
    pub(in crate::session) fn new(workspace: Workspace, end: CancellationToken) -> Self {
        Self(Arc::new(Shared { workspace, end, state: Mutex::default() }))
    }

    /// What `query` may mean, the best first: what was typed behind an `@`.
    pub async fn complete(&self, query: &str, focus: Option<&Focus>) -> Vec<Completion> {
        let cancel = self.0.end.child_token();
        std::mem::replace(&mut self.lock().newest, cancel.clone()).cancel();
        if let Some(name) = query.strip_prefix('#') {
            return self.symbols(name, cancel).await;
        }
        let query = query.trim_start_matches('"').to_owned();
        let mut offered = self.of_the_editor(&query, focus);
        let names = self.names();
        let _known_in_part = timeout(PATIENCE, names.complete.cancelled()).await;
        let workspace = self.0.workspace.clone();
        let ranked = blocking(move || names.ranked(&workspace, &query, &cancel)).await;
        offered.extend(ranked);
        offered.truncate(OFFERED);
        offered
    }

    /// Looks everything up anew with the next query.
    pub(in crate::session) fn forget(&self) {
        if let Some(names) = self.lock().names.take() {
            names.enough.cancel();
        }
    }

    fn of_the_editor(&self, query: &str, focus: Option<&Focus>) -> Vec<Completion> {
        let is_meant = |name: &str| name.starts_with(&query.to_lowercase());
        let mut offered = Vec::new();
        if is_meant("diagnostics") && self.0.workspace.knows_diagnostics() {
            let detail = Some("the problems the editor shows".to_owned());
            offered.push(named("diagnostics", Mentionable::Diagnostics, detail));
        }
        if let Some(Focus { path, lines: (first, last) }) = focus.filter(|_| is_meant("selection"))
            && let Ok(path) = self.0.workspace.resolve_path(path)
            && !path.is_secret()
        {
            let detail = Some(format!("{}:{first}-{last}", shown(&self.0.workspace, &path)));
            offered.push(named("selection", Mentionable::Selection, detail));
        }
        offered
    }

    /// The names of all files and folders, looked up if need be.
    fn names(&self) -> Arc<Names> {
        let mut state = self.lock();
        let fresh =
            state.names.as_ref().filter(|names| !names.complete.is_cancelled() || names.since.elapsed() < FRESH);
        if let Some(names) = fresh {
            return Arc::clone(names);
        }
        let names = Arc::new(Names::new(self.0.end.child_token()));
        state.names = Some(Arc::clone(&names));
        let (workspace, growing) = (self.0.workspace.clone(), Arc::clone(&names));
        // Ends by itself, and early with the session.
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
        join_all(found.into_iter().map(|symbol| self.symbol(symbol))).await.into_iter().flatten().collect()
    }

    async fn symbol(&self, symbol: Symbol) -> Option<Completion> {
        let path = self.0.workspace.resolve_path(&symbol.path).ok()?;
        let name = shown(&self.0.workspace, &path);
        // Where the text does not come in time, the first line is mentioned alone.
        let text = timeout(PATIENCE, self.0.workspace.peek(&path)).await.ok().and_then(Result::ok);
        let (first, last) = (symbol.line, text.map_or(symbol.line, |file| symbol.end(&file.text)));
        Some(Completion {
            insert: format!("{}#L{first}-L{last}", written(&name)?),
            label: format!("{} {}", symbol.keyword, symbol.name),
            kind: Mentionable::Symbol,
            detail: Some(format!("{name}:{first}")),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(name: &str, kind: Mentionable, detail: Option<String>) -> Completion {
    Completion { insert: name.to_owned(), label: name.to_owned(), kind, detail }
}

/// A path as it is named: relative where relative names start, else absolute.
pub(super) fn shown(workspace: &Workspace, path: &WorkspacePath) -> String {
    let is_first = workspace.roots().first().is_some_and(|root| root.path() == path.root().path());
    if is_first { path.display() } else { native::shown(&path.absolute()) }
}

/// The names of the files and folders of a workspace, which may still be growing.
struct Names {
    since: Instant,
    /// As they are mentioned; those of folders end with a slash.
    found: Mutex<Vec<Box<str>>>,
    /// Nobody wants more.
    enough: CancellationToken,
    /// Nothing more comes.
    complete: CancellationToken,
}

impl Names {
    fn new(enough: CancellationToken) -> Self {
        Self { since: Instant::now(), found: Mutex::default(), enough, complete: CancellationToken::new() }
    }

    fn look_up(&self, workspace: &Workspace) {
        let _whatever_happens = self.complete.clone().drop_guard();
        for (index, root) in workspace.roots().iter().enumerate() {
            let Ok(start) = workspace.resolve_path(root.path()) else { continue };
            let before = if index == 0 { Path::new("") } else { root.path() };
            let visitor = || {
                |entry: &Entry<'_>| {
                    let Some(name) = name(before, entry) else { return };
                    let mut found = self.lock();
                    if found.len() < KNOWN {
                        found.push(name);
                    } else {
                        self.enough.cancel();
                    }
                }
            };
            // A folder that cannot be read offers nothing.
            let _ = workspace.walk(&start, usize::MAX, &self.enough, visitor);
        }
    }

    /// The names that are most like `query`.
    fn ranked(&self, workspace: &Workspace, query: &str, cancel: &CancellationToken) -> Vec<Completion> {
        let found = self.lock();
        let mut likeness = Likeness::new(query);
        let mut liked = Vec::new();
        for names in found.chunks(CHUNK) {
            if cancel.is_cancelled() {
                return Vec::new();
            }
            liked.extend(names.iter().filter_map(|name| Some((likeness.of(name)?, name))));
        }
        liked.sort_unstable_by_key(|(score, name)| (Reverse(*score), depth(name), name.len(), *name));
        let best = liked.into_iter().take(TRIED);
        best.filter_map(|(_, name)| offered(workspace, name)).take(OFFERED).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<str>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How `entry` is mentioned. What a person could not tell from something else by looking at it is not.
fn name(before: &Path, entry: &Entry<'_>) -> Option<Box<str>> {
    let path = before.join(entry.below());
    let name = path.to_str().filter(|name| !name.contains(tools::is_deceptive) && !name.contains(['\n', '\t']))?;
    match entry.kind() {
        Kind::File => Some(name.into()),
        Kind::Folder => Some(format!("{name}/").into()),
        Kind::Symlink | Kind::Special => None,
    }
}

/// What is protected or may hold secrets is not offered. Asked only of names that are about to be: telling is slow.
fn offered(workspace: &Workspace, name: &str) -> Option<Completion> {
    let kind = if name.ends_with('/') { Mentionable::Folder } else { Mentionable::File };
    let inside = if kind == Mentionable::Folder { &format!("{name}any") } else { name };
    let path = workspace.resolve(inside).ok()?;
    if path.is_secret() || path.is_protected() {
        return None;
    }
    Some(Completion { insert: written(name)?, label: name.to_owned(), kind, detail: None })
}

fn depth(name: &str) -> usize {
    name.trim_end_matches('/').matches('/').count()
}

/// How much names are like what was typed.
struct Likeness {
    pattern: Pattern,
    matcher: Matcher,
    characters: Vec<char>,
}

impl Likeness {
    fn new(query: &str) -> Self {
        Self {
            pattern: Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            characters: Vec::new(),
        }
    }

    fn of(&mut self, name: &str) -> Option<u32> {
        self.pattern.score(Utf32Str::new(name, &mut self.characters), &mut self.matcher)
    }
}

/// The most alike first, then the shortest.
fn sort_by_likeness<T>(found: &mut [T], query: &str, name: impl Fn(&T) -> &str) {
    let mut likeness = Likeness::new(query);
    found.sort_by_cached_key(|one| (Reverse(likeness.of(name(one))), name(one).len()));
}
