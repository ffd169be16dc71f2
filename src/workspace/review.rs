//! A change of a file, hunk by hunk: which are still there after further typing, and what the file is without one.
//! Pure.
//!
//! A hunk is still there when its lines are: taking it back then touches nothing anybody wrote since.

use std::ops::Range;
use std::sync::Arc;

use crate::text::{LineHunk, line_hunks, taken_back, unified};

/// The only hunk of a file that was created.
const WHOLE: usize = 1;
/// So many lines around a hunk are shown.
const CONTEXT: usize = 3;

/// A hunk that can still be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingHunk {
    /// Names it within its change, as long as that is under review.
    pub id: usize,
    /// Its lines in the text without it, counted from 0.
    pub old_lines: Range<usize>,
    /// Its lines in the text as it is now.
    pub new_lines: Range<usize>,
    /// The text of its old lines.
    pub old_text: String,
    /// As a unified diff.
    pub diff: String,
    /// The text without it; `None`: no file at all.
    pub rejected: Option<Arc<str>>,
}

/// What is still there of the change from `before` to `after` in the text as it is `now` (`None`: no such file).
#[must_use]
pub fn pending(before: Option<&str>, after: &str, now: Option<&str>) -> Vec<PendingHunk> {
    match (before, now) {
        (None, Some(now)) if now == after => vec![shown(WHOLE, "", now, None)],
        (None, _) => Vec::new(),
        // Only a file that was removed can be brought back.
        (Some(_), None) if !after.is_empty() => Vec::new(),
        (Some(before), now) => {
            let now = now.unwrap_or_default();
            let still = |hunk: LineHunk| {
                let rejected = taken_back(before, after, now, std::slice::from_ref(&hunk))?;
                Some(shown(id(&hunk), &rejected, now, Some(rejected.as_str().into())))
            };
            line_hunks(before, after).into_iter().filter_map(still).collect()
        }
    }
}

/// What was there before, as if the hunk called `wanted` had been: it is not under review any more. `None` when there
/// is no such hunk.
#[must_use]
pub fn kept(before: Option<&str>, after: &str, wanted: usize) -> Option<String> {
    let Some(before) = before else { return (wanted == WHOLE).then(|| after.to_owned()) };
    let hunk = line_hunks(before, after).into_iter().find(|hunk| id(hunk) == wanted)?;
    let part = |text: &str, range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    Some(part(before, 0..hunk.old.start) + &part(after, hunk.new) + &part(before, hunk.old.end..before.len()))
}

/// The line where it begins afterwards, which keeping and taking back others does not change.
fn id(hunk: &LineHunk) -> usize {
    hunk.new_lines.start + 1
}

fn shown(id: usize, without: &str, now: &str, rejected: Option<Arc<str>>) -> PendingHunk {
    let hunks = line_hunks(without, now);
    let span = |part: fn(&LineHunk) -> &Range<usize>| {
        let (first, last) = (hunks.first().map(part), hunks.last().map(part));
        first.map_or(0, |range| range.start)..last.map_or(0, |range| range.end)
    };
    let (old_lines, new_lines) = (span(|hunk| &hunk.old_lines), span(|hunk| &hunk.new_lines));
    let old_text = without.get(span(|hunk| &hunk.old)).unwrap_or_default().to_owned();
    PendingHunk { id, old_lines, new_lines, old_text, diff: unified(without, now, CONTEXT), rejected }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "a\nb\nc\nd\ne\nf\n";
    const AFTER: &str = "A\nb\nc\nd\ne\nf\ng\n";

    #[track_caller]
    fn check(before: Option<&str>, after: &str, now: Option<&str>, expected: &[(usize, Option<&str>)]) {
        let hunks = pending(before, after, now);
        let seen: Vec<_> = hunks.iter().map(|hunk| (hunk.id, hunk.rejected.as_deref())).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn hunks_are_found_again_after_typing_around_them() {
        let (first, last) = ("a\nb\nc\nd\ne\nf\ng\n", "A\nb\nc\nd\ne\nf\n");
        check(Some(BEFORE), AFTER, Some(AFTER), &[(1, Some(first)), (7, Some(last))]);
        let typed = "new\nA\nb\nc\nD\ne\nf\ng\n";
        let (first, last) = ("new\na\nb\nc\nD\ne\nf\ng\n", "new\nA\nb\nc\nD\ne\nf\n");
        check(Some(BEFORE), AFTER, Some(typed), &[(1, Some(first)), (7, Some(last))]);
        let typed = "A\nb\nnew\nc\nd\ne\nf\ng\n";
        let (first, last) = ("a\nb\nnew\nc\nd\ne\nf\ng\n", "A\nb\nnew\nc\nd\ne\nf\n");
        check(Some(BEFORE), AFTER, Some(typed), &[(1, Some(first)), (7, Some(last))]);
        let hunks = pending(Some(BEFORE), AFTER, Some(typed));
        assert_eq!((hunks[1].old_lines.clone(), hunks[1].new_lines.clone()), (7..7, 7..8));
        assert!(hunks[1].diff.ends_with(" f\n+g\n"), "{}", hunks[1].diff);
    }

    #[test]
    fn what_was_rewritten_or_taken_back_is_gone() {
        check(Some(BEFORE), AFTER, Some("mine\nb\nc\nd\ne\nf\n"), &[]);
        check(Some(BEFORE), AFTER, Some(BEFORE), &[]);
        check(Some(BEFORE), AFTER, None, &[]);
    }

    #[test]
    fn files_come_and_go_whole() {
        check(None, "new\n", Some("new\n"), &[(1, None)]);
        check(None, "new\n", Some("new\nmine\n"), &[]);
        check(None, "new\n", None, &[]);
        check(Some("old\n"), "", None, &[(1, Some("old\n"))]);
        check(Some("old\n"), "", Some("mine\n"), &[]);
    }

    #[test]
    fn a_kept_hunk_is_no_change_any_more() {
        let before = kept(Some(BEFORE), AFTER, 1).unwrap();
        assert_eq!(before, "A\nb\nc\nd\ne\nf\n");
        check(Some(&before), AFTER, Some(AFTER), &[(7, Some(&before))]);
        assert_eq!(kept(Some(&before), AFTER, 7).as_deref(), Some(AFTER));
        assert_eq!(kept(Some(BEFORE), AFTER, 3), None);
        assert_eq!(kept(None, AFTER, 1).as_deref(), Some(AFTER));
    }
}
