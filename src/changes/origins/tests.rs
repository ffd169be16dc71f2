//! Random interleavings of everyone who changes a file, checked against a model that knows who wrote each line.

use std::collections::BTreeSet;
use std::path::Path;

use super::{HashMap, Origin, Written, only, origins};
use crate::changes::hunks::without;

/// The number of interleavings.
const PLAYS: u64 = 1000;
/// Lines that occur many times in a program, so their text doesn't identify their writer.
const REPEATED: [&str; 4] = ["}", "", "    }", "return;"];

/// Who wrote a line: a change of a turn, or someone else.
type Writer = Option<usize>;

/// A line of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// Unique among all written lines.
    id: usize,
    /// The same for lines written together.
    block: usize,
    text: String,
    writer: Writer,
    /// The changes whose lines it replaced.
    instead_of: BTreeSet<usize>,
    /// It was deleted.
    is_gone: bool,
}

/// What undo needs to know about a turn's change.
#[derive(Debug, Clone)]
struct Done {
    session: usize,
    before: Vec<Line>,
    after: Vec<Line>,
    is_undone: bool,
}

struct Play {
    state: u64,
    lines: Vec<Line>,
    written: usize,
    /// The lines a person wrote in place of one line.
    retouched: BTreeSet<usize>,
    changes: Vec<Done>,
    /// Every text that the editor's own undo can restore.
    earlier: Vec<Vec<Line>>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut play = Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            lines: Vec::new(),
            written: 0,
            retouched: BTreeSet::new(),
            changes: Vec::new(),
            earlier: Vec::new(),
        };
        let count = play.below(30);
        play.lines = play.typed(count, None);
        play
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap() % bound.max(1)
    }

    /// New lines by this writer; a third of them repeat common lines.
    fn typed(&mut self, count: usize, writer: Writer) -> Vec<Line> {
        let (mut lines, block) = (Vec::new(), self.written);
        for _ in 0..count {
            self.written += 1;
            let text = match self.below(3) {
                0 => REPEATED[self.below(REPEATED.len())].to_owned(),
                _ => format!("let {:x}", self.written.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            };
            lines.push(Line {
                id: self.written,
                block,
                text,
                writer,
                instead_of: BTreeSet::new(),
                is_gone: false,
            });
        }
        lines
    }

    /// Replaces some lines.
    fn edit(&mut self, writer: Writer) {
        let at = self.below(self.lines.len() + 1);
        let removed = if self.below(2) == 0 { 0 } else { self.below(6) };
        let end = (at + removed).min(self.lines.len());
        let count = if removed > 0 && self.below(3) == 0 {
            0
        } else {
            1 + self.below(6)
        };
        self.replace(at, end, count, writer);
    }

    fn replace(&mut self, at: usize, end: usize, count: usize, writer: Writer) {
        let mut lines = self.typed(count, writer);
        // Rewriting the existing lines at either end of a replacement changes nothing.
        let is_same = |a: &Line, b: &Line| a.text == b.text && !b.is_gone;
        let old = &self.lines[at..end];
        let prefix = lines
            .iter()
            .zip(old)
            .take_while(|(a, b)| is_same(a, b))
            .count();
        lines.drain(..prefix);
        let old = &old[prefix..];
        let suffix = lines.iter().rev().zip(old.iter().rev());
        let suffix = suffix.take_while(|(a, b)| is_same(a, b)).count();
        lines.truncate(lines.len() - suffix);
        let (at, end) = (at + prefix, end - suffix);
        for line in &mut self.lines[at..end] {
            line.is_gone = true;
        }
        self.insert(end, lines);
    }

    /// The deleted lines at a position, or next to the block that contains it.
    fn gone_around(&self, at: usize, block: usize) -> impl Iterator<Item = &Line> {
        let (before, after) = self.lines.split_at(at);
        let is_near = move |line: &&Line| line.is_gone || line.block == block;
        let near = before.iter().rev().take_while(is_near);
        near.chain(after.iter().take_while(is_near))
            .filter(|line| line.is_gone)
    }

    /// Inserts lines, which replace any that were deleted there.
    fn insert(&mut self, at: usize, mut lines: Vec<Line>) {
        let mut instead_of = BTreeSet::new();
        for line in self.gone_around(at, usize::MAX) {
            instead_of.extend(line.writer);
            instead_of.extend(&line.instead_of);
        }
        for line in &mut lines {
            line.instead_of.extend(&instead_of);
        }
        self.lines.splice(at..at, lines);
    }

    /// Indents lines as a formatter would.
    fn format(&mut self, writer: Writer) {
        let (at, count) = (self.below(self.lines.len() + 1), self.below(8));
        let mut index = at;
        for _ in 0..count {
            let Some(line) = self
                .lines
                .get_mut(index)
                .filter(|line| line.text.trim_start().starts_with("let") && !line.is_gone)
            else {
                index += 1;
                continue;
            };
            let text = format!("    {}", line.text);
            let mut new = self.typed(1, writer);
            new[0].text = text;
            self.lines[index].is_gone = true;
            self.insert(index + 1, new);
            index += 2;
        }
    }

    /// A person edits single lines.
    fn retouch(&mut self) {
        for _ in 0..=self.below(3) {
            let at = self.below(self.lines.len());
            if self.lines.get(at).is_some_and(|line| !line.is_gone) {
                let text = self.lines[at].text.clone();
                self.replace(at, at + 1, 1, None);
                let written = self.written;
                let new = self.lines.iter_mut().find(|line| line.id == written);
                if let Some(new) = new.filter(|_| !REPEATED.contains(&&*text)) {
                    new.text = format!("{text} //{written}");
                    self.retouched.insert(written);
                }
            }
        }
    }

    /// A tool or command of a turn changes the file, and the change is recorded.
    fn turn(&mut self) {
        let before = self.there();
        let index = self.changes.len();
        match self.below(8) {
            0 => self.format(Some(index)),
            1 => {
                let count = self.below(20);
                self.replace(0, self.lines.len(), count, Some(index));
            }
            _ => (0..=self.below(3)).for_each(|_| self.edit(Some(index))),
        }
        let session = usize::from(self.below(4) == 0);
        self.changes.push(Done {
            session,
            before,
            after: self.there(),
            is_undone: false,
        });
    }

    /// A person undoes or redoes a change with tandem, around text typed since.
    fn undo(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let index = self.below(self.changes.len());
        let done = &mut self.changes[index];
        let (mut from, mut to) = (done.before.clone(), done.after.clone());
        if done.is_undone {
            std::mem::swap(&mut from, &mut to);
        }
        done.is_undone = !done.is_undone;
        let plain = |lines: &[Line]| text(lines, |line| line.text.clone());
        let named = |lines: &[Line]| text(lines, |line| line.id.to_string());
        let (result, _) = without(
            Path::new("a"),
            &plain(&from),
            &plain(&to),
            &plain(&self.lines),
        );
        let (ids, _) = without(
            Path::new("a"),
            &named(&from),
            &named(&to),
            &named(&self.lines),
        );
        let known: HashMap<String, Line> = from
            .iter()
            .chain(&self.lines)
            .map(|line| (line.id.to_string(), line.clone()))
            .collect();
        let lines: Vec<Line> = ids.lines().map(|id| known[id].clone()).collect();
        // If undo matches equal lines by their text, which of them remains is unknown.
        if plain(&lines) == *result {
            self.becomes(lines);
        } else {
            self.changes[index].is_undone ^= true;
        }
    }

    /// The lines that are not deleted.
    fn there(&self) -> Vec<Line> {
        let there = self.lines.iter().filter(|line| !line.is_gone);
        there.cloned().collect()
    }

    /// Sets the current lines. Restored lines take the places of the ones that replaced them.
    fn becomes(&mut self, lines: Vec<Line>) {
        let ids: BTreeSet<usize> = lines.iter().map(|line| line.id).collect();
        let mut old = std::mem::take(&mut self.lines).into_iter().peekable();
        let mut olds: Vec<usize> = old
            .clone()
            .filter(|line| !line.is_gone)
            .map(|line| line.id)
            .collect();
        let mut inserted = Vec::new();
        for line in lines {
            if let Some(at) = olds.iter().position(|id| *id == line.id) {
                olds.drain(..=at);
                let at = self.lines.len();
                self.insert(at, std::mem::take(&mut inserted));
                for mut gone in old
                    .by_ref()
                    .take_while(|old| old.id != line.id || old.is_gone)
                {
                    gone.is_gone = true;
                    self.lines.extend((!ids.contains(&gone.id)).then_some(gone));
                }
                self.lines.push(line);
            } else {
                inserted.push(line);
            }
        }
        for mut gone in old {
            gone.is_gone = true;
            self.lines.extend((!ids.contains(&gone.id)).then_some(gone));
        }
        let at = self.lines.len();
        self.insert(at, inserted);
    }

    fn step(&mut self) {
        self.earlier.push(self.there());
        match self.below(10) {
            0..4 => self.turn(),
            4..6 => (0..=self.below(2)).for_each(|_| self.edit(None)),
            6 => self.retouch(),
            7 => self.format(None),
            8 => self.undo(),
            // The editor's own undo.
            _ => {
                let back = self.below(self.earlier.len().min(4));
                let lines = self.earlier[self.earlier.len() - 1 - back].clone();
                self.becomes(lines);
            }
        }
    }
}

fn text(lines: &[Line], of: impl Fn(&Line) -> String) -> String {
    let there = lines.iter().filter(|line| !line.is_gone);
    there.map(|line| of(line) + "\n").collect()
}

#[derive(Debug, Default)]
struct Count {
    /// How many lines were written by turns, and how many of those are attributed.
    by_turns: usize,
    known: usize,
    /// The same for lines whose text is unique.
    by_turns_alone: usize,
    known_alone: usize,
    /// How many lines of turns were rewritten, and how many of those are attributed.
    rewritten: usize,
    known_rewritten: usize,
    /// Lines attributed to the wrong one of two writers of the same text.
    by_text: usize,
}

fn check(seed: u64, count: &mut Count) {
    let mut play = Play::new(seed);
    for _ in 0..5 + play.below(25) {
        play.step();
    }
    let plain = |lines: &[Line]| text(lines, |line| line.text.clone());
    let mut sessions = [Vec::new(), Vec::new()];
    let mut numbers = [Vec::new(), Vec::new()];
    for (number, done) in play.changes.iter().enumerate() {
        let (before, after) = (plain(&done.before).into(), plain(&done.after).into());
        sessions[done.session].push(Some(Written { before, after }));
        numbers[done.session].push(number);
    }
    let now = plain(&play.lines);
    let found: Vec<_> = sessions
        .iter()
        .map(|changes| origins(changes, &now))
        .collect();
    let places = (0..play.lines.len()).filter(|place| !play.lines[*place].is_gone);
    for (at, place) in places.enumerate() {
        let line = &play.lines[place];
        let is_repeated = REPEATED.contains(&&*line.text);
        count.by_turns += usize::from(line.writer.is_some());
        count.by_turns_alone += usize::from(line.writer.is_some() && !is_repeated);
        let is_rewritten = play.retouched.contains(&line.id) && line.instead_of.len() == 1;
        count.rewritten += usize::from(is_rewritten);
        let origin = only(found.iter().map(|lines| lines[at]));
        let Some((session, Origin { change, is_edited })) = origin else {
            continue;
        };
        let change = numbers[session][change];
        // If one of two adjacent equal lines is deleted, nothing shows which one.
        let gone: Vec<&Line> = play.gone_around(place, line.block).collect();
        let equal = gone.iter().filter(|gone| gone.text == line.text);
        let equal: Vec<Writer> = equal.map(|gone| gone.writer).collect();
        let stood_here = |change| {
            line.instead_of.contains(&change) || gone.iter().any(|gone| gone.writer == Some(change))
        };
        let may_be_by = |writer: Writer| line.writer == writer || equal.contains(&writer);
        let is_right = if is_edited {
            may_be_by(None) && stood_here(change)
        } else {
            may_be_by(Some(change))
        };
        assert!(
            is_right,
            "play {seed}, line {}: {line:?}: {change} {is_edited}",
            at + 1
        );
        count.by_text += usize::from(line.writer != Some(change) && !is_edited);
        count.known_rewritten += usize::from(is_edited && is_rewritten);
        count.known += usize::from(!is_edited);
        count.known_alone += usize::from(!is_edited && !is_repeated);
    }
}

#[test]
fn each_origin_is_right_or_unknown() {
    let mut count = Count::default();
    for seed in 1..=PLAYS {
        check(seed, &mut count);
    }
    let is_mostly_known = count.known * 100 > count.by_turns * 80
        && count.known_alone * 100 > count.by_turns_alone * 99;
    let is_seldom_confused = count.by_text * 1000 < count.known;
    let are_edits_known = count.known_rewritten * 2 > count.rewritten;
    assert!(
        is_mostly_known && is_seldom_confused && are_edits_known,
        "{count:?}"
    );
}
