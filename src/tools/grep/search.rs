//! Searches the files of a walk in parallel.

use crate::domain::lock;
use std::collections::HashMap;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use tokio_util::sync::CancellationToken;

use super::hits::{Collector, Hits};
use crate::tools::Withheld;
use crate::tools::pattern::PathPattern;
use crate::workspace::walk::{Entry, Kind};
use crate::workspace::{Document, Workspace, WorkspacePath, content, notebook};

/// The longest line that is searched, in bytes. Longer files are searched as bytes.
const MAX_LINE: usize = 16 << 20;
/// How much of a file shows whether it is text, in bytes.
const BEGINNING: u64 = 64 << 10;

/// A search.
pub(super) struct Search {
    pub starts: Vec<WorkspacePath>,
    pub matcher: RegexMatcher,
    pub files: Option<PathPattern>,
    /// Lines around each match.
    pub context: usize,
    /// How many matching lines are kept.
    pub limit: usize,
    pub withheld: Withheld,
}

/// Open documents by path.
type Buffers = HashMap<PathBuf, Arc<Document>>;

impl Search {
    /// Searches everything. When cancelled, returns what was found so far; an error comes with the index of its start.
    pub fn run(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<Hits, (usize, io::Error)> {
        let open = workspace.documents().all();
        let buffers: Buffers = open
            .into_iter()
            .filter_map(|it| Some((it.path.clone()?, it)))
            .collect();
        let hits = Mutex::new(Hits::new(self.limit));
        for (index, start) in self.starts.iter().enumerate() {
            let from = start.absolute();
            let visitor = || {
                let mut thread = Thread {
                    search: self,
                    is_approved: start.is_secret(),
                    workspace,
                    buffers: &buffers,
                    cancel,
                    searcher: self.searcher(),
                    searched: 0,
                    hits: &hits,
                };
                let from = &from;
                move |entry: &Entry<'_>| thread.visit(entry, from)
            };
            let walked = workspace.walk(start, usize::MAX, cancel, visitor);
            let hits = &mut *lock(&hits);
            let is_unsaved = self.unsaved_files(workspace, &buffers, start, hits);
            match walked {
                Ok(unreadable) => hits.unreadable += unreadable,
                Err(_) if is_unsaved => {}
                Err(error) => return Err((index, error)),
            }
        }
        Ok(hits.into_inner().expect("no visitor panics"))
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MAX_LINE))
            .build()
    }

    /// Searches the buffers of files that do not exist on disk, which no walk finds. Returns whether there were any.
    fn unsaved_files(
        &self,
        workspace: &Workspace,
        buffers: &Buffers,
        start: &WorkspacePath,
        hits: &mut Hits,
    ) -> bool {
        let mut searcher = self.searcher();
        let mut is_any = false;
        for (path, document) in buffers {
            let named = workspace
                .resolve_path(path)
                .ok()
                .filter(|it| (!it.is_secret() || start.is_secret()) && !path.exists())
                .filter(|it| {
                    let is_named = *path == start.real();
                    ![path, &it.absolute()]
                        .iter()
                        .any(|it| self.withheld.has(workspace, it, is_named))
                });
            let (Some(named), Ok(below)) = (named, path.strip_prefix(start.real())) else {
                continue;
            };
            if self.wants(if below.as_os_str().is_empty() {
                path
            } else {
                below
            }) {
                let mut collector = Collector::new(&self.matcher, self.limit);
                // Searching text in memory cannot fail.
                let _ =
                    searcher.search_slice(&self.matcher, document.text.as_bytes(), &mut collector);
                is_any = true;
                hits.searched += 1;
                hits.add(named.absolute(), collector.finish());
            }
        }
        is_any
    }

    fn wants(&self, below: &Path) -> bool {
        self.files.as_ref().is_none_or(|files| files.matches(below))
    }
}

/// One thread of a search.
struct Thread<'a> {
    search: &'a Search,
    /// Whether a person approved a search that starts at what may contain secrets.
    is_approved: bool,
    workspace: &'a Workspace,
    buffers: &'a Buffers,
    cancel: &'a CancellationToken,
    searcher: Searcher,
    searched: usize,
    hits: &'a Mutex<Hits>,
}

impl Thread<'_> {
    fn visit(&mut self, entry: &Entry<'_>, from: &Path) {
        let is_named = entry.below.as_os_str().is_empty();
        let below = if is_named { entry.path } else { entry.below };
        if entry.kind != Kind::File || !self.search.wants(below) {
            return;
        }
        let path = || {
            if is_named {
                from.to_owned()
            } else {
                from.join(entry.below)
            }
        };
        let is_withheld = |path: &Path| self.search.withheld.has(self.workspace, path, is_named);
        let is_secret = entry.is_secret() && !self.is_approved;
        if is_secret || is_withheld(entry.path) || is_withheld(&path()) {
            lock(self.hits).skipped.push(path());
            return;
        }
        let mut collector = Collector::new(&self.search.matcher, self.search.limit);
        match self.find(entry, &mut collector) {
            Ok(()) => self.searched += 1,
            Err(_) if self.cancel.is_cancelled() => {}
            Err(_) => lock(self.hits).unsearched += 1,
        }
        let found = collector.finish();
        if !found.is_empty() {
            lock(self.hits).add(path(), found);
        }
    }

    fn find(&mut self, entry: &Entry<'_>, collector: &mut Collector<'_>) -> io::Result<()> {
        let (matcher, path) = (&self.search.matcher, entry.path);
        let mut as_read = |text: &str| {
            let text = notebook::as_read(path, text);
            self.searcher
                .search_slice(matcher, text.as_bytes(), &mut *collector)
        };
        if let Some(document) = self.buffers.get(path) {
            return as_read(&document.text);
        }
        let file = entry.open()?;
        let is_whole = file.metadata()?.len() <= MAX_LINE as u64;
        let mut file = Cancellable {
            file,
            cancel: self.cancel,
        };
        // What is not text is not read to its end; the searcher knows UTF-16.
        let mut bytes = Vec::new();
        file.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
        if is_whole && !bytes.contains(&0) {
            file.read_to_end(&mut bytes)?;
            if let Some((text, _)) = content::decode(bytes) {
                return as_read(&text);
            }
        }
        file.file.rewind()?;
        self.searcher.search_reader(matcher, file, collector)
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        lock(self.hits).searched += self.searched;
    }
}

/// A file whose reading fails once the search is cancelled.
struct Cancellable<'a> {
    file: std::fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
