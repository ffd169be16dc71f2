//! A change of a file, hunk by hunk: which hunks are left after more typing, and the file without one of them. Pure.
//!
//! A hunk with somebody else's lines inside is listed as the hunks that remain around them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::text::{Piece, standing, undone, unified};
use crate::workspace::notebook::laid_out_as;

/// Lines of context around a hunk.
const CONTEXT: usize = 3;

/// A hunk that can still be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingHunk {
    /// Its id within the change while that is under review.
    pub id: usize,
    /// Its lines in the text without the hunk, counted from 0.
    pub old_lines: Range<usize>,
    /// Its lines in the current text.
    pub new_lines: Range<usize>,
    /// The text of its old lines.
    pub old_text: String,
    /// A unified diff.
    pub diff: String,
    /// The text without the hunk.
    pub rejected: Arc<str>,
    /// The text before the change as if it had already contained the hunk: with it, the hunk is no longer under review.
    pub settled: Arc<str>,
}

impl PendingHunk {
    /// Whether the hunk of a later turn wrote the same lines again, or removed them again.
    pub fn is_repeated_by(&self, later: &Self) -> bool {
        let (lines, again) = (&self.new_lines, &later.new_lines);
        if lines.is_empty() {
            return lines == again && self.old_text == later.old_text;
        }
        again.start <= lines.start && lines.end <= again.end
    }
}

/// What is left in the current text `now` of the file at `path` of the change from `before` to `after`.
pub fn pending(path: &Path, before: &str, after: &str, now: &str) -> Vec<PendingHunk> {
    let [before, after] = &[before, after].map(|text| laid_out_as(path, text, now));
    let pieces = standing(before, after, now).pieces;
    pieces
        .iter()
        .map(|piece| shown(before, after, now, piece))
        .collect()
}

/// The text `now` of the file at `path` with the rest of the change from `before` to `after` undone, and the lines of the
/// result, counted from 0, that others wrote into the change.
pub fn without(path: &Path, before: &str, after: &str, now: &str) -> (Arc<str>, Vec<Range<usize>>) {
    let [before, after] = &[before, after].map(|text| laid_out_as(path, text, now));
    let (text, touched) = standing(before, after, now).undone(before, now);
    (text.into(), touched)
}

/// `before` with one piece of the change applied.
fn with(before: &str, after: &str, piece: &Piece) -> String {
    let part = |text: &str, range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    part(before, 0..piece.old.start)
        + &part(after, piece.new.clone())
        + &part(before, piece.old.end..before.len())
}

fn shown(before: &str, after: &str, now: &str, piece: &Piece) -> PendingHunk {
    let rejected = undone(before, now, std::slice::from_ref(piece));
    let count = |text: &str| text.split_inclusive('\n').count();
    let old_text = before.get(piece.old.clone()).unwrap_or_default().to_owned();
    let start = count(now.get(..piece.now.start).unwrap_or_default());
    PendingHunk {
        // Keeping or rejecting others does not alter the text right after the change.
        id: piece.line + 1,
        old_lines: start..start + count(&old_text),
        new_lines: start..start + count(now.get(piece.now.clone()).unwrap_or_default()),
        old_text,
        diff: unified(&rejected, now, CONTEXT),
        rejected: rejected.into(),
        settled: with(before, after, piece).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const BEFORE: &str = "a\nb\nc\nd\ne\nf\n";
    const AFTER: &str = "A\nb\nc\nd\ne\nf\ng\n";

    #[track_caller]
    fn check(before: &str, after: &str, now: &str, expected: &[(usize, &str)]) {
        let hunks = pending(Path::new("a.txt"), before, after, now);
        let seen: Vec<_> = hunks
            .iter()
            .map(|hunk| (hunk.id, &*hunk.rejected))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn hunks_survive_typing_around_them() {
        check(
            BEFORE,
            AFTER,
            AFTER,
            &[(1, "a\nb\nc\nd\ne\nf\ng\n"), (7, "A\nb\nc\nd\ne\nf\n")],
        );
        let typed = "new\nA\nb\nc\nD\ne\nf\ng\n";
        check(
            BEFORE,
            AFTER,
            typed,
            &[
                (1, "new\na\nb\nc\nD\ne\nf\ng\n"),
                (7, "new\nA\nb\nc\nD\ne\nf\n"),
            ],
        );
        let typed = "A\nb\nnew\nc\nd\ne\nf\ng\n";
        check(
            BEFORE,
            AFTER,
            typed,
            &[
                (1, "a\nb\nnew\nc\nd\ne\nf\ng\n"),
                (7, "A\nb\nnew\nc\nd\ne\nf\n"),
            ],
        );
        let hunks = pending(Path::new("a.txt"), BEFORE, AFTER, typed);
        assert_eq!(
            (hunks[1].old_lines.clone(), hunks[1].new_lines.clone()),
            (7..7, 7..8)
        );
        assert!(hunks[1].diff.ends_with(" f\n+g\n"), "{}", hunks[1].diff);
    }

    #[test]
    fn rewritten_and_undone_hunks_are_not_listed() {
        check(BEFORE, AFTER, "mine\nb\nc\nd\ne\nf\n", &[]);
        check(BEFORE, AFTER, BEFORE, &[]);
        check("", "new\n", "", &[]);
        check("old\n", "", "mine\n", &[]);
    }

    #[test]
    fn hunks_are_split_at_foreign_lines() {
        let typed = "1\nmine\n2\n3\n";
        check(
            "",
            "1\n2\n3\n",
            typed,
            &[(1, "mine\n2\n3\n"), (2, "1\nmine\n")],
        );
        let hunks = pending(Path::new("a.txt"), "", "1\n2\n3\n", typed);
        assert_eq!(
            (hunks[1].old_lines.clone(), hunks[1].new_lines.clone()),
            (2..2, 2..4)
        );
        check(
            &hunks[0].settled,
            "1\n2\n3\n",
            &hunks[0].rejected,
            &[(2, "mine\n")],
        );
        check("a\nb\n", "A\nB\n", "A\nmine\n", &[(1, "a\nmine\n")]);
    }

    #[test]
    fn settled_hunks_leave_the_review() {
        let hunks = pending(Path::new("a.txt"), BEFORE, AFTER, AFTER);
        assert_eq!(&*hunks[0].settled, "A\nb\nc\nd\ne\nf\n");
        check(&hunks[0].settled, AFTER, AFTER, &[(7, &hunks[0].settled)]);
        check(&hunks[0].settled, AFTER, &hunks[0].rejected, &[(7, BEFORE)]);
    }

    #[test]
    fn the_hunks_of_a_notebook_survive_another_layout() {
        let cell = |source: &str| json!({"cell_type": "code", "source": [source], "metadata": {"id": "a"}, "outputs": []});
        let markdown = json!({"cell_type": "markdown", "source": ["# Sums"], "metadata": {}});
        let notebook = |sources: [&str; 2]| {
            let cells = json!([markdown, cell(sources[0]), cell(sources[1])]);
            json!({"nbformat": 4, "nbformat_minor": 0, "metadata": {}, "cells": cells})
        };
        let (before, after) = (notebook(["1", "2"]), notebook(["one", "2"]));
        let (typed, undone) = (notebook(["one", "two"]), notebook(["1", "two"]));
        let wide = |value: &Value| format!("{value:#}");
        let narrow = Value::to_string;
        let sorted = |value: &Value| {
            let mut value = value.clone();
            value.sort_all_objects();
            format!("{value:#}\n")
        };
        let path = Path::new("a.ipynb");
        let rejected = |before: &str, after: &str, now: &str| -> Vec<_> {
            let hunks = pending(path, before, after, now).into_iter();
            hunks.map(|hunk| hunk.rejected.to_string()).collect()
        };
        for layout in [wide as fn(&Value) -> String, narrow] {
            let [before, after] = [&before, &after].map(layout);
            let now = sorted(&typed);
            assert_eq!(rejected(&before, &after, &now), [sorted(&undone)]);
            let (text, touched) = without(path, &before, &after, &now);
            assert_eq!((&*text, touched), (&*sorted(&undone), vec![]));
        }
        // Kept in one layout, it is not under review in the other.
        let [before, after] = [&before, &after].map(wide);
        let settled = &pending(path, &before, &after, &sorted(&typed))[0].settled;
        assert_eq!(rejected(settled, &after, &after), Vec::<String>::new());
    }
}
