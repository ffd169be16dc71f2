//! The diagnostics an editor shows, from its language servers and linters. tandem starts none itself.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::text::Position;

/// What an editor shows of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The file, absolute.
    pub path: PathBuf,
    /// The version of the text that the diagnostics are of; `None` if the editor cannot tell.
    pub version: Option<i32>,
    /// Its diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// What is known of the documents in a [`Scope`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The files whose diagnostics are known.
    pub known: Vec<PathBuf>,
    /// The files whose text has changed since the editor last received their diagnostics, which are left out.
    pub unknown: Vec<PathBuf>,
    /// The diagnostics of the known files.
    pub found: Vec<Diagnostic>,
}

/// A diagnostic in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, absolute.
    pub path: PathBuf,
    /// Where it begins, in the encoding negotiated for [`super::Documents`].
    pub start: Position,
    /// How bad it is.
    pub severity: Severity,
    /// Its source and code, such as `rustc E0308`; may be empty.
    pub source: String,
    /// What is wrong.
    pub message: String,
}

/// Severities, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does not work.
    Error,
    /// It may not work.
    Warning,
    /// Something to know.
    Information,
    /// Something that could be nicer.
    Hint,
}

impl Severity {
    /// As one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "info",
            Self::Hint => "hint",
        }
    }
}

/// Which diagnostics to request from an editor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// For these documents; if empty, for all it knows.
    pub uris: Vec<String>,
    /// The documents have just changed: the answer comes when the diagnostics of the new text have settled, and soon in
    /// any case.
    pub settled: bool,
}

impl Diagnostic {
    fn identity(&self) -> (&Path, Severity, &str, &str) {
        (&self.path, self.severity, &self.source, &self.message)
    }

    /// The line it begins in, counted from 1.
    pub fn line(&self) -> u32 {
        self.start.line.saturating_add(1)
    }

    /// The worst first, then by location.
    pub fn order(&self, other: &Self) -> Ordering {
        (self.severity, &self.path, self.start).cmp(&(other.severity, &other.path, other.start))
    }
}

/// The diagnostics in `after` that are not in `before`. Line numbers are ignored, because lines may have moved.
pub fn new_ones(before: &[Diagnostic], mut after: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut known: Vec<_> = before.iter().map(Diagnostic::identity).collect();
    after.retain(
        |one| match known.iter().position(|known| *known == one.identity()) {
            Some(index) => {
                known.swap_remove(index);
                false
            }
            None => true,
        },
    );
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: u32, message: &str) -> Diagnostic {
        let (path, source) = ("/w/a.rs".into(), "rustc".to_owned());
        Diagnostic {
            path,
            start: Position { line, character: 0 },
            severity: Severity::Error,
            source,
            message: message.to_owned(),
        }
    }

    #[test]
    fn moved_diagnostics_are_not_new_and_duplicates_are_merged() {
        let check = |before: &[Diagnostic], after: &[Diagnostic], expected: &[Diagnostic]| {
            assert_eq!(new_ones(before, after.to_vec()), expected);
        };
        check(&[], &[problem(1, "a")], &[problem(1, "a")]);
        check(&[problem(1, "a")], &[problem(9, "a")], &[]);
        check(
            &[problem(1, "a")],
            &[problem(1, "a"), problem(2, "a")],
            &[problem(2, "a")],
        );
        check(
            &[problem(1, "a"), problem(2, "b")],
            &[problem(2, "c")],
            &[problem(2, "c")],
        );
        check(&[problem(1, "a")], &[], &[]);
    }
}
