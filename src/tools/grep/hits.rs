//! The results of a search: the first lines by path, bounded whatever is searched, formatted for the model.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use crate::text::display::counted;
use crate::tools::files::shown;
use crate::workspace::Workspace;

/// How much of one line is shown, in bytes.
const LINE: usize = 300;
/// How much of a long line is shown before the match.
const BEFORE: usize = 100;
/// How much is shown in total, in bytes.
pub(super) const TOTAL: usize = 50_000;
/// How many skipped files are named.
const NAMED: usize = 5;

/// A line to show.
struct Line {
    number: u64,
    is_match: bool,
    text: String,
}

/// The matches in one file.
#[derive(Default)]
pub(super) struct FileHits {
    lines: Vec<Line>,
    /// Matching lines, also those not kept.
    total: usize,
}

impl FileHits {
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    fn kept(&self) -> usize {
        self.lines.iter().filter(|line| line.is_match).count()
    }
}

/// Collects the searcher's matches in one file.
pub(super) struct Collector<'a> {
    matcher: &'a RegexMatcher,
    limit: usize,
    kept: usize,
    found: FileHits,
    is_binary: bool,
}

impl<'a> Collector<'a> {
    pub fn new(matcher: &'a RegexMatcher, limit: usize) -> Self {
        Self {
            matcher,
            limit,
            kept: 0,
            found: FileHits::default(),
            is_binary: false,
        }
    }

    /// The matches; empty if the file turned out not to be text.
    pub fn finish(self) -> FileHits {
        if self.is_binary {
            FileHits::default()
        } else {
            self.found
        }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.total += 1;
        if self.kept < self.limit {
            self.kept += 1;
            let start = self
                .matcher
                .find(found.bytes())
                .ok()
                .flatten()
                .map_or(0, |place| place.start());
            let number = found.line_number().unwrap_or_default();
            self.found.lines.push(Line {
                number,
                is_match: true,
                text: excerpt(found.bytes(), start),
            });
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.kept < self.limit {
            let number = context.line_number().unwrap_or_default();
            self.found.lines.push(Line {
                number,
                is_match: false,
                text: excerpt(context.bytes(), 0),
            });
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// A line without its line break; of a long one the part around byte `start`.
fn excerpt(line: &[u8], start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = start.saturating_sub(BEFORE).min(line.len() - LINE);
    let shown = line.get(from..from + LINE).unwrap_or_default();
    let shown = String::from_utf8_lossy(shown);
    // A character cut at either end is dropped.
    let shown = shown.trim_matches(char::REPLACEMENT_CHARACTER);
    let before = if from > 0 { "…" } else { "" };
    let after = if from + LINE < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

/// The matches in all files. Only the first ones by path are kept, so that memory is bounded.
#[derive(Default)]
pub(super) struct Hits {
    limit: usize,
    kept: usize,
    files: BTreeMap<PathBuf, FileHits>,
    total: usize,
    total_files: usize,
    /// Files that may not be searched.
    pub skipped: Vec<PathBuf>,
    /// Files that were searched.
    pub searched: usize,
    /// Files that could not be searched.
    pub unsearched: usize,
    /// Folders that could not be read.
    pub unreadable: usize,
}

impl Hits {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    pub fn add(&mut self, path: PathBuf, found: FileHits) {
        if found.is_empty() {
            return;
        }
        self.total += found.total;
        self.total_files += 1;
        self.kept += found.kept();
        self.files.insert(path, found);
        // The last file is dropped once the others alone reach the limit.
        while let Some(last) = self
            .files
            .last_entry()
            .filter(|last| self.kept - last.get().kept() >= self.limit)
        {
            self.kept -= last.remove().kept();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The matching lines that were kept: file, number from 1, text.
    pub fn into_lines(self) -> impl Iterator<Item = (PathBuf, u64, String)> {
        let lines = |(path, found): (PathBuf, FileHits)| {
            found
                .lines
                .into_iter()
                .map(move |line| (path.clone(), line.number, line.text))
        };
        self.files.into_iter().flat_map(lines)
    }

    /// What the model reads, of about this size in bytes at most.
    pub fn report(mut self, workspace: &Workspace, bytes: usize) -> String {
        let mut report = String::new();
        let mut left = self.limit;
        for (path, found) in &self.files {
            if left == 0 || report.len() > bytes {
                break;
            }
            let blank = if report.is_empty() { "" } else { "\n" };
            report += &format!("{blank}{}\n", shown(workspace, path));
            left -= write_lines(&mut report, &found.lines, (left, bytes));
        }
        let shown_matches = self.limit - left;
        let blank = if report.is_empty() { "" } else { "\n" };
        report.push_str(blank);
        report.push_str(&self.summary(shown_matches));
        self.skipped.sort();
        if !self.skipped.is_empty() {
            let names: Vec<_> = self
                .skipped
                .iter()
                .take(NAMED)
                .map(|path| shown(workspace, path))
                .collect();
            let more = if self.skipped.len() > NAMED {
                ", …"
            } else {
                ""
            };
            report += &format!(
                "[not searched, because they may contain secrets or a rule restricts them: {}{more}]\n",
                names.join(", ")
            );
        }
        report
    }

    fn summary(&self, shown: usize) -> String {
        let files = counted(self.total_files, "file");
        let mut summary = match self.total {
            0 => format!("[no match; {} searched]\n", counted(self.searched, "file")),
            total if shown < total => {
                format!(
                    "[the first {shown} of {total} matching lines in {files}; narrow the pattern, path or glob]\n"
                )
            }
            total => format!("[{} in {files}]\n", counted(total, "matching line")),
        };
        if self.unsearched + self.unreadable > 0 {
            let files = counted(self.unsearched, "file");
            let folders = counted(self.unreadable, "directory");
            summary += &format!("[could not read {files} and {folders}]\n");
        }
        summary
    }
}

/// Writes up to `limit` matches and the lines around them, until there are `bytes` bytes; returns how many matches.
fn write_lines(report: &mut String, lines: &[Line], (limit, bytes): (usize, usize)) -> usize {
    let has_context = lines.iter().any(|line| !line.is_match);
    let mut written = 0;
    let mut previous = None;
    for line in lines {
        if written == limit && line.is_match || report.len() > bytes {
            break;
        }
        if has_context && previous.is_some_and(|previous| line.number > previous + 1) {
            report.push_str("--\n");
        }
        previous = Some(line.number);
        let mark = if line.is_match { ':' } else { '-' };
        *report += &format!("{}{mark}{}\n", line.number, line.text);
        written += usize::from(line.is_match);
    }
    written
}
