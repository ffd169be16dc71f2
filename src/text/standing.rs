//! Which parts of a change are still in the text after more typing, so that they can be undone around the lines
//! somebody else wrote.
//!
//! A line counts as somebody else's when it differs between the text right after the change and the current text. Undo
//! never touches such a line.

use std::collections::HashMap;
use std::ops::Range;

use super::diff::{Hunk, LineHunk, line_breaks, line_hunks, patched};

/// Neighboring lines of a change that are unchanged since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes they replaced in the text before the change.
    pub old: Range<usize>,
    /// Their bytes in the text right after the change.
    pub new: Range<usize>,
    /// Their bytes in the current text.
    pub now: Range<usize>,
    /// Their first line in the text right after the change, counted from 0.
    pub line: usize,
}

/// What is left of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The parts that are still there, in order.
    pub pieces: Vec<Piece>,
    /// The bytes of the current text that others wrote over or into the change, or that must stay because of it; in order.
    pub touched: Vec<Range<usize>>,
}

/// The hunks of the change from `before` to `after`. The comparison begins at `after`, as the one that finds what others
/// changed since: of several equal lines, both then pair the same ones, and what somebody has undone is found as such.
fn change(before: &str, after: &str) -> impl Iterator<Item = LineHunk> {
    line_hunks(after, before).into_iter().map(|back| LineHunk {
        old: back.new,
        new: back.old,
        old_lines: back.new_lines,
        new_lines: back.old_lines,
    })
}

/// The parts of the change from `before` to `after` that are still in `now`.
pub fn standing(before: &str, after: &str, now: &str) -> Standing {
    let since = line_hunks(after, now);
    let left = if since.is_empty() {
        Vec::new()
    } else {
        line_hunks(before, now)
    };
    let mut standing = Standing::default();
    for hunk in change(before, after) {
        let touches_hunk = |change: &&LineHunk| touches(&change.old, &hunk.new);
        let touching: Vec<_> = since.iter().filter(touches_hunk).collect();
        // A hunk that somebody has undone by hand counts as gone, not as touched.
        if left.iter().any(|change| touches(&change.old, &hunk.old)) {
            standing
                .touched
                .extend(touching.iter().map(|change| change.new.clone()));
        }
        let parts = if touching.is_empty() {
            vec![hunk]
        } else {
            around_last_line(before, after, hunk)
        };
        for part in parts {
            let mut touching = touching.clone();
            touching.retain(|change| touches(&change.old, &part.new));
            let pieces = pieces(before, after, &part, &touching).into_iter();
            standing.pieces.extend(pieces.map(|piece| Piece {
                now: moved(&piece.new, &since),
                line: part.new_lines.start + line_breaks(after, part.new.start..piece.new.start),
                ..piece
            }));
        }
    }
    standing.touched.dedup();
    if !since.is_empty() {
        standing.keep_moved_lines(before, after, now);
    }
    standing
}

/// Whether the change from `before` to `after` is still whole in `now`.
pub fn is_untouched(before: &str, after: &str, now: &str) -> bool {
    let since = line_hunks(after, now);
    !change(before, after).any(|hunk| since.iter().any(|change| touches(&change.old, &hunk.new)))
}

impl Standing {
    /// Leaves out pieces that would remove a line which was there before and which nobody has removed since. Such a piece
    /// is half of a move: its other half, which would bring the line back, is not standing any more. Only of a line that was
    /// there once and has words is it certain which one it is.
    fn keep_moved_lines(&mut self, before: &str, after: &str, now: &str) {
        let undone = undone(before, now, &self.pieces);
        // How many of each line the result has more than it must.
        let mut spare = counts(&undone);
        let (after, now_has) = (counts(after), counts(now));
        let is_certain =
            |&(line, had): &(&str, isize)| had == 1 && line.contains(char::is_alphanumeric);
        for (line, had) in counts(before).into_iter().filter(is_certain) {
            let has = now_has.get(line).copied().unwrap_or(0);
            let gone = after.get(line).copied().unwrap_or(0) - has;
            *spare.entry(line).or_insert(0) -= has.min(had - gone.max(0)).max(0);
        }
        let removed = |piece: &Piece| now.get(piece.now.clone()).unwrap_or_default().lines();
        let restored = |piece: &Piece| before.get(piece.old.clone()).unwrap_or_default().lines();
        let Self { pieces, touched } = self;
        let mut is_settled = false;
        while !is_settled {
            is_settled = true;
            pieces.retain(|piece| {
                let is_lost = |line| spare.get(line).is_some_and(|&spare| spare < 0);
                if !removed(piece).any(is_lost) {
                    return true;
                }
                for line in removed(piece) {
                    *spare.entry(line).or_insert(0) += 1;
                }
                for line in restored(piece) {
                    *spare.entry(line).or_insert(0) -= 1;
                }
                touched.push(piece.now.clone());
                is_settled = false;
                false
            });
        }
        touched.sort_unstable_by_key(|bytes| bytes.start);
    }

    /// `now` with every piece undone, and the lines of the result that others wrote into the change, counted from 0.
    pub fn undone(&self, before: &str, now: &str) -> (String, Vec<Range<usize>>) {
        let text = undone(before, now, &self.pieces);
        let line = |at: usize| {
            let earlier = self.pieces.iter().take_while(|piece| piece.now.end <= at);
            let (grown, shrunk) = earlier.fold((0, 0), |(grown, shrunk), piece| {
                let old = line_count(before.get(piece.old.clone()).unwrap_or_default());
                (
                    grown + old,
                    shrunk + line_count(now.get(piece.now.clone()).unwrap_or_default()),
                )
            });
            line_breaks(now, 0..at) + grown - shrunk
        };
        let touched = self.touched.iter().map(|bytes| {
            let start = line(bytes.start);
            start..start + line_count(now.get(bytes.clone()).unwrap_or_default())
        });
        let touched = touched.collect();
        (text, touched)
    }
}

/// `now` with these pieces of a change of `before` undone. Line breaks between neighboring lines are preserved.
pub fn undone(before: &str, now: &str, pieces: &[Piece]) -> String {
    let line_break = if now.contains("\r\n") { "\r\n" } else { "\n" };
    let hunk = |piece: &Piece| {
        let mut new_text = before.get(piece.old.clone()).unwrap_or_default().to_owned();
        if !new_text.is_empty() {
            let (left, right) = (
                now.get(..piece.now.start).unwrap_or_default(),
                now.get(piece.now.end..).unwrap_or_default(),
            );
            if !right.is_empty() && !new_text.ends_with('\n') {
                new_text.push_str(line_break);
            }
            if !left.is_empty() && !left.ends_with('\n') {
                new_text.insert_str(0, line_break);
            }
        }
        Hunk {
            range: piece.now.clone(),
            new_text,
        }
    };
    patched(now, &pieces.iter().map(hunk).collect::<Vec<_>>())
}

/// A hunk without the last line of `before` if that only got its line break: the parts above and below it.
fn around_last_line(before: &str, after: &str, hunk: LineHunk) -> Vec<LineHunk> {
    let old = before.get(hunk.old.clone()).unwrap_or_default();
    let last = old.rsplit('\n').next().unwrap_or_default();
    let new = after.get(hunk.new.clone()).unwrap_or_default();
    let (mut at, mut found) = (hunk.new.start, None);
    for (number, line) in new.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if line
            .strip_suffix('\n')
            .is_some_and(|line| line.strip_suffix('\r').unwrap_or(line) == last)
        {
            found = Some((at..end, hunk.new_lines.start + number));
        }
        at = end;
    }
    let Some((same, number)) = found.filter(|_| !last.is_empty()) else {
        return vec![hunk];
    };
    let above = LineHunk {
        old: hunk.old.start..hunk.old.end - last.len(),
        new: hunk.new.start..same.start,
        old_lines: hunk.old_lines.start..hunk.old_lines.end - 1,
        new_lines: hunk.new_lines.start..number,
    };
    let below = LineHunk {
        old: hunk.old.end..hunk.old.end,
        new: same.end..hunk.new.end,
        old_lines: hunk.old_lines.end..hunk.old_lines.end,
        new_lines: number + 1..hunk.new_lines.end,
    };
    let mut parts = vec![above, below];
    parts.retain(|part| !(part.old.is_empty() && part.new.is_empty()));
    parts
}

/// Whether a change of the bytes `changed` touches the bytes `of`: they overlap, one is an empty range inside the
/// other, or both are the same empty range.
fn touches(changed: &Range<usize>, of: &Range<usize>) -> bool {
    (changed.start < of.end && of.start < changed.end) || (changed == of && changed.is_empty())
}

/// The parts of `hunk` between the changes that touch it, each with the old lines it replaced.
fn pieces(before: &str, after: &str, hunk: &LineHunk, touching: &[&LineHunk]) -> Vec<Piece> {
    if touching.is_empty() {
        return vec![Piece {
            old: hunk.old.clone(),
            new: hunk.new.clone(),
            now: 0..0,
            line: 0,
        }];
    }
    let pairs = Pairs::of(before, after, hunk);
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut from, mut old_from) = (hunk.new.start, hunk.old.start);
    let ends = touching
        .iter()
        .map(|change| change.old.clone())
        .chain(std::iter::once(hunk.new.end..hunk.new.end));
    for gap in ends {
        let (start, end) = (from, gap.start);
        from = from.max(gap.end);
        if start >= end {
            continue;
        }
        // Text typed between two lines replaced neither of them, so no old line is lost.
        let follows =
            start == hunk.new.start || pieces.last().is_some_and(|last| last.new.end == start);
        let old_start = if follows {
            old_from
        } else {
            pairs.old_start_from(start).max(old_from)
        };
        let old_end = if end == hunk.new.end {
            hunk.old.end
        } else {
            pairs.old_end_before(end).max(old_start)
        };
        old_from = old_end;
        pieces.push(Piece {
            old: old_start..old_end,
            new: start..end,
            now: 0..0,
            line: 0,
        });
    }
    pieces
}

/// Pairs the old lines of a hunk with its new ones: the first with the first, the last with the last.
struct Pairs<'a> {
    /// Where each old line begins, followed by the end of the last one.
    old: Vec<usize>,
    after: &'a str,
    new: Range<usize>,
}

impl<'a> Pairs<'a> {
    fn of(before: &str, after: &'a str, hunk: &LineHunk) -> Self {
        let mut old = vec![hunk.old.start];
        for line in before
            .get(hunk.old.clone())
            .unwrap_or_default()
            .split_inclusive('\n')
        {
            old.push(old.last().map_or(0, |start| start + line.len()));
        }
        Self {
            old,
            after,
            new: hunk.new.clone(),
        }
    }

    /// The end of the old lines that belong to the new ones before `at`.
    fn old_end_before(&self, at: usize) -> usize {
        let index = line_breaks(self.after, self.new.start..at).min(self.old.len() - 1);
        self.old.get(index).copied().unwrap_or_default()
    }

    /// The start of the old lines that belong to the new ones from `at` on.
    fn old_start_from(&self, at: usize) -> usize {
        let rest = line_count(self.after.get(at..self.new.end).unwrap_or_default());
        let index = (self.old.len() - 1).saturating_sub(rest);
        self.old.get(index).copied().unwrap_or_default()
    }
}

/// Where `bytes` are after changes that do not touch them.
fn moved(bytes: &Range<usize>, changes: &[LineHunk]) -> Range<usize> {
    let earlier = changes
        .iter()
        .filter(|change| change.old.end <= bytes.start);
    let (grown, shrunk) = earlier.fold((0, 0), |(grown, shrunk), change| {
        (grown + change.new.len(), shrunk + change.old.len())
    });
    bytes.start + grown - shrunk..bytes.end + grown - shrunk
}

/// How often a text has each line.
fn counts(text: &str) -> HashMap<&str, isize> {
    let mut counts = HashMap::new();
    for line in text.lines() {
        *counts.entry(line).or_insert(0) += 1;
    }
    counts
}

fn line_count(text: &str) -> usize {
    line_breaks(text, 0..text.len()) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Undoes everything that is left; returns the text and the touched lines in it.
    fn undo(before: &str, after: &str, now: &str) -> (String, Vec<Range<usize>>) {
        standing(before, after, now).undone(before, now)
    }

    #[track_caller]
    fn check(before: &str, after: &str, now: &str, expected: &str, touched: Option<Range<usize>>) {
        assert_eq!(
            undo(before, after, now),
            (expected.to_owned(), touched.into_iter().collect())
        );
    }

    #[test]
    fn untouched_changes_are_undone_completely() {
        check(
            "a\nb\nc\n",
            "a\nB\nc\nd\n",
            "a\nB\nc\nd\n",
            "a\nb\nc\n",
            None,
        );
        check(
            "a\nb\nc\n",
            "a\nB\nc\n",
            "new\na\nnew\nB\nC\n",
            "new\na\nnew\nb\nC\n",
            None,
        );
        check("a\nb\nc\n", "A\nb\nC\n", "A\nB\nC\n", "a\nB\nc\n", None);
    }

    #[test]
    fn hunks_are_undone_around_foreign_lines() {
        check("", "1\n2\n3\n", "1\nmine\n2\n3\n", "mine\n", Some(0..1));
        check("", "1\n2\n3\n", "1\nTWO\n3\n", "TWO\n", Some(0..1));
        check(
            "a\nb\nc\n",
            "A\nB\nC\n",
            "A\nmine\nC\n",
            "a\nmine\nc\n",
            Some(1..2),
        );
        check(
            "a\nb\nc\n",
            "A\nB\nC\n",
            "A\nmine\nB\nC\n",
            "a\nmine\nb\nc\n",
            Some(1..2),
        );
        check(
            "x\na\ny\n",
            "x\nA\ny\n",
            "x\nAA\ny\n",
            "x\nAA\ny\n",
            Some(1..2),
        );
        check(
            "x\n1\n2\ny\n",
            "x\nn\nm\nA\nB\ny\n",
            "x\nmine\nm\nA\nB\ny\n",
            "x\nmine\n1\n2\ny\n",
            Some(1..2),
        );
        check(
            "x\n1\n2\n3\ny\n",
            "x\nA\nB\ny\n",
            "x\nA\nmine\nB\ny\n",
            "x\n1\nmine\n2\n3\ny\n",
            Some(2..3),
        );
    }

    #[test]
    fn removed_lines_are_restored_unless_replaced() {
        check("a\nb\nc\n", "a\nc\n", "A\nc\n", "A\nb\nc\n", None);
        check(
            "a\nb\nc\n",
            "a\nc\n",
            "a\nmine\nc\n",
            "a\nmine\nc\n",
            Some(1..2),
        );
        check("a\nb\nc\n", "a\nc\n", "mine\n", "mine\n", Some(0..1));
    }

    #[test]
    fn changes_undone_by_hand_are_not_reported() {
        check("a\nb\n", "a\nB\n", "a\nb\n", "a\nb\n", None);
        check("a\n", "a\nb\n", "a\n", "a\n", None);
        check("a\nb\n", "a\n", "a\nb\nmore\n", "a\nb\nmore\n", None);
    }

    #[test]
    fn a_final_line_without_newline_stays_separate() {
        check("a\nb", "a\nB\n", "a\nB\nmine\n", "a\nb\nmine\n", None);
        check(
            "a\r\nb",
            "a\r\nB\r\n",
            "a\r\nB\r\nmine\r\n",
            "a\r\nb\r\nmine\r\n",
            None,
        );
        check("a\nb", "a\n", "A", "A\nb", None);
        check(
            "a\nb\nc",
            "A\nc\nB\n",
            "A\nc\nmine\n",
            "a\nb\nc\nmine\n",
            Some(3..4),
        );
    }

    #[test]
    fn equal_lines_that_are_back_are_not_restored_again() {
        let restored = |before: &str, after: &str| check(before, after, before, before, None);
        restored("\na\nb\n\n\n", "\n\na\n\n");
        restored("\na\nc\n\nc\n\nc\n", "\na\n\n\nc\n\n\nc\n");
    }

    #[test]
    fn an_end_stays_with_its_beginning() {
        let [one, two, added] =
            ["one", "two", "added"].map(|name| format!("fn {name}() {{\n    {name};\n}}\n\n"));
        check(
            &format!("{one}{two}"),
            &format!("{one}{added}{two}"),
            &format!("{one}{added}"),
            &one,
            None,
        );
    }

    #[test]
    fn an_added_line_is_not_taken_for_a_moved_one() {
        check(
            "f {\n  if x {\n    a\n  }\n}\n\ng {\n  b\n}\n",
            "f {\n  a\n}\n\ng {\n  b\n  if y {\n    m\n  }\n}\n",
            "f {\n  p\n}\n\ng {\n  b\n  if y {\n    m\n  }\n}\n",
            "f {\n  p\n}\n\ng {\n  b\n}\n",
            Some(1..2),
        );
    }

    #[test]
    fn moved_lines_are_never_removed() {
        check(
            "one\n\ntwo\n",
            "two\n\none\n",
            "two\n\none\n\nmine\n",
            "one\n\ntwo\n\nmine\n",
            None,
        );
        assert_eq!(undo("b\na\n", "a\nb\nm\n", "a\nb\n").0, "a\nb\n");
    }

    /// Texts as functions: `b` were there before, `m` are the model's, `p` the person's.
    fn functions() -> impl Strategy<Value = [Vec<String>; 3]> {
        let function =
            |who: char, number: usize| format!("fn {who}{number}() {{\n    {who}{number};\n}}\n\n");
        let steps = || vec((0..3_usize, 0..9_usize, 0..9_usize), 1..3);
        (1..6_usize, steps(), steps()).prop_map(move |(count, model, person)| {
            let before: Vec<_> = (0..count).map(|number| function('b', number)).collect();
            let change = |functions: &[String], steps: &[(usize, usize, usize)], who| {
                let mut functions = functions.to_vec();
                for (number, &(what, from, to)) in steps.iter().enumerate() {
                    let from = from % functions.len().max(1);
                    let one = match (what, functions.get(from)) {
                        (0, _) | (_, None) => function(who, number),
                        (1, Some(one)) if who == 'p' && one.starts_with("fn b") => {
                            functions.remove(from);
                            continue;
                        }
                        _ => functions.remove(from),
                    };
                    functions.insert(to % (functions.len() + 1), one);
                }
                functions
            };
            let after = change(&before, &model, 'm');
            let now = change(&after, &person, 'p');
            [before, after, now]
        })
    }

    /// Lines that are somebody's: `b` were there before, `m` are the model's, `p` the person's.
    fn edited(lines: &[String], edits: &[(usize, usize, usize)], who: char) -> Vec<String> {
        let mut lines = lines.to_vec();
        for (number, &(at, removed, added)) in edits.iter().enumerate() {
            let at = at % (lines.len() + 1);
            let end = (at + removed).min(lines.len());
            lines.splice(
                at..end,
                (0..added).map(|line| format!("{who}{number}-{line}\n")),
            );
        }
        lines
    }

    fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
        vec((0..40_usize, 0..4_usize, 0..4_usize), 0..6)
    }

    proptest! {
        #[test]
        fn undo_reverts_the_change_and_no_foreign_text(
            count in 0..20_usize, model in edits(), person in edits(), last_break in any::<bool>(),
        ) {
            let mut before: Vec<String> = (0..count).map(|line| format!("b{line}\n")).collect();
            if let Some(last) = before.last_mut().filter(|_| !last_break) {
                last.pop();
            }
            let after = edited(&before, &model, 'm');
            let now = edited(&after, &person, 'p');
            let whole = |lines: &[String]| -> String {
                // A line break that is missing inside is one somebody else would have typed.
                let count = lines.len();
                let line = |(index, line): (usize, &String)| {
                    if index + 1 < count && !line.ends_with('\n') { format!("{line}\n") } else { line.clone() }
                };
                lines.iter().enumerate().map(line).collect()
            };
            let (before, after, now) = (whole(&before), whole(&after), whole(&now));
            let standing = standing(&before, &after, &now);
            let (undone, touched) = standing.undone(&before, &now);
            let of = |text: &str, who: char| -> Vec<String> {
                text.lines().filter(|line| line.starts_with(who)).map(str::to_owned).collect()
            };
            prop_assert_eq!(of(&undone, 'm'), Vec::<String>::new());
            prop_assert_eq!(of(&undone, 'p'), of(&now, 'p'));
            let known: std::collections::BTreeSet<&str> = before.lines().collect();
            prop_assert!(of(&undone, 'b').iter().all(|line| known.contains(line.as_str())));
            if now == after {
                prop_assert_eq!((undone.as_str(), touched.len()), (before.as_str(), 0));
            }
            // Typing below a last line without a line break ends that line, too.
            let ended = before.lines().last().filter(|_| !last_break);
            for lines in touched {
                let mut lines = undone.lines().skip(lines.start).take(lines.len());
                prop_assert!(lines.all(|line| line.starts_with('p') || Some(line) == ended));
            }
            // And back again.
            prop_assert_eq!(undo(&now, &undone, &undone), (now, Vec::new()));
        }

        #[test]
        fn functions_stay_whole([before, after, now] in functions()) {
            let undone = undo(&before.concat(), &after.concat(), &now.concat()).0;
            let kept = now.iter().filter(|one| before.contains(one) || one.starts_with("fn p"));
            for line in kept.flat_map(|one| one.lines().take(2)) {
                prop_assert!(undone.lines().any(|left| left == line), "{line} is lost:\n{undone}");
            }
        }

        #[test]
        fn what_somebody_has_undone_stays_as_it_is(before in "([ab]?\n){0,12}", after in "([ab]?\n){0,12}") {
            prop_assert_eq!(undo(&before, &after, &before).0, before);
        }

        #[test]
        fn pieces_do_not_overlap_and_are_in_order(
            before in "[ab\n]{0,20}", after in "[ab\n]{0,20}", now in "[ab\n]{0,20}",
        ) {
            let Standing { pieces, .. } = standing(&before, &after, &now);
            for piece in &pieces {
                prop_assert_eq!(after.get(piece.new.clone()), now.get(piece.now.clone()));
            }
            for pair in pieces.windows(2) {
                prop_assert!(pair[0].old.end <= pair[1].old.start);
                prop_assert!(pair[0].new.end <= pair[1].new.start && pair[0].now.end <= pair[1].now.start);
            }
        }
    }
}
