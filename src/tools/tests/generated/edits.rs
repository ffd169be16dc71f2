//! Edits of nested files, quoted with less than their indentation and with other line endings.

use super::*;

/// How a model quotes lines, and the expected outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoted {
    /// As they are.
    Well,
    /// All with more or less indentation.
    Shifted,
    /// With tabs in place of four spaces, or vice versa.
    Tabs,
    /// All without indentation.
    Flat,
    /// The first line without its indentation.
    FromTheMiddle,
}

use Quoted::{Flat, FromTheMiddle, Shifted, Tabs, Well};

/// A depth and words.
type Nested = (usize, String);

fn nested(dice: &mut Dice, number: &mut usize, depth: usize) -> Nested {
    *number += 1;
    let number = *number;
    let words = match dice.below(4) {
        0 => format!("key{number}:"),
        1 => format!("if v{number} {{"),
        _ => format!("- item{number}: \"x\""),
    };
    (depth, words)
}

fn file(dice: &mut Dice, number: &mut usize) -> Vec<Nested> {
    let (mut lines, mut depth) = (Vec::new(), 0);
    for _ in 0..4 + dice.below(12) {
        lines.push(nested(dice, number, depth));
        depth = dice.below((depth + 2).min(5));
    }
    lines
}

/// Lines changed as a person would: a new line has the depth of the line before it or of one it replaces, or is one level deeper.
fn changed(dice: &mut Dice, number: &mut usize, old: &[Nested]) -> Vec<Nested> {
    let mut new = old.to_vec();
    for _ in 0..=dice.below(2) {
        let at = dice.below(new.len());
        let depth = new[at].0;
        match dice.below(5) {
            0 if new.len() > 1 => {
                new.remove(at);
            }
            1 => new.insert(at + 1, nested(dice, number, depth)),
            2 => new.insert(at + 1, nested(dice, number, depth + 1)),
            3 => new.insert(at, nested(dice, number, depth)),
            _ => new[at].1 = format!("changed{number}: {}", dice.below(1000)),
        }
    }
    new
}

fn written(lines: &[Nested], unit: &str, less: usize, more: &str) -> Vec<String> {
    let line = |(depth, words): &Nested| format!("{more}{}{words}", unit.repeat(depth - less));
    lines.iter().map(line).collect()
}

/// A file, some of its lines, and how a model writes a change of them.
struct Case {
    text: Vec<Line>,
    /// The lines to change.
    at: std::ops::Range<usize>,
    new: Vec<String>,
    quoted: Quoted,
    old_text: String,
    new_text: String,
}

/// `None` if the quotation is ambiguous.
fn case(dice: &mut Dice) -> Option<Case> {
    let mut number = 0;
    let lines = file(dice, &mut number);
    let unit = *dice.pick(&["  ", "    ", "\t"]);
    let text = ended(dice, &written(&lines, unit, 0, ""));
    let from = dice.below(lines.len());
    let to = (from + 1 + dice.below(5)).min(lines.len());
    let old = &lines[from..to];
    let new = changed(dice, &mut number, old);
    let quoted = *dice.pick(&[Well, Shifted, Tabs, Flat, FromTheMiddle]);
    let least = old.iter().chain(&new).map(|line| line.0).min()?;
    let (other, less, more) = match quoted {
        Shifted if dice.chance(70) => (unit, least, ""),
        Shifted => (unit, 0, unit),
        Tabs if unit == "\t" => ("    ", 0, ""),
        Tabs => ("\t", 0, ""),
        Flat => ("", 0, ""),
        Well | FromTheMiddle => (unit, 0, ""),
    };
    let [mut old_text, mut new_text] =
        [old, &new].map(|lines| written(lines, other, less, more).join("\n"));
    if quoted == FromTheMiddle {
        [old_text, new_text] = [old_text, new_text].map(|text| text.trim_start().to_owned());
    }
    let verbatim = written(&lines, unit, 0, "").join("\n").contains(&old_text);
    if new == old || is_unknown(quoted, old, &new, verbatim) {
        return None;
    }
    for text in [&mut old_text, &mut new_text] {
        if dice.chance(20) {
            *text = text.replace('\n', "\r\n");
        } else if dice.chance(10) {
            *text = text.replacen('\n', "\r\n", 1);
        }
    }
    // Whole lines, including the last line break.
    if dice.chance(30) && !text[to - 1].1.is_empty() {
        old_text += "\n";
        new_text += "\n";
    }
    Some(Case {
        text,
        at: from..to,
        new: written(&new, unit, 0, ""),
        quoted,
        old_text,
        new_text,
    })
}

/// Whether the depth of a first line is unknown, before or after the change, or which of several lines a changed line replaces.
/// Lines found in the file exactly as quoted are unambiguous.
fn is_unknown(quoted: Quoted, old: &[Nested], new: &[Nested], verbatim: bool) -> bool {
    let is_one_depth = old.iter().all(|line| line.0 == old[0].0);
    let gets_deeper = is_one_depth && new.iter().any(|line| line.0 > old[0].0);
    let gets_other = std::iter::zip(old, new).any(|(old, new)| old.0 != new.0);
    match quoted {
        Flat | Shifted if verbatim && old.len() > 1 => true,
        FromTheMiddle => old[0].0 != new[0].0,
        Tabs => old.iter().all(|line| line.0 == 0),
        Flat if gets_deeper => true,
        Flat if new.len() < old.len() => new.iter().any(|line| !old.contains(line)),
        Flat => new.len() == old.len() && gets_other,
        Shifted => old.len() == 1 && gets_deeper,
        Well => false,
    }
}

#[tokio::test]
async fn generated_edits_keep_indentation_and_line_endings_or_are_refused() {
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::<String, [usize; 2]>::new());
    for seed in 1..=1500 {
        let Some(case) = case(&mut Dice::new(seed)) else {
            continue;
        };
        let Case {
            text,
            at,
            new,
            quoted,
            old_text,
            new_text,
        } = &case;
        let place = Place::new(&[("file", &joined(text))]);
        let edit = json!({"path": "file", "edits": [{"old_text": old_text, "new_text": new_text}]});
        let answer = place.run("edit_file", edit).await;
        let now = place.on_disk("file");
        let is_right = if answer.is_ok() {
            let (before, after) = (joined(&text[..at.start]), joined(&text[at.end..]));
            let inside = now.strip_prefix(before.as_str());
            let inside = inside.and_then(|rest| rest.strip_suffix(after.as_str()));
            let near = &text[at.start.saturating_sub(1)..(at.end + 1).min(text.len())];
            inside.is_some_and(|inside| has(inside, new, near, text[at.end - 1].1))
        } else {
            now == joined(text) && *quoted != Well
        };
        let [all, done] = counts.entry(format!("{quoted:?}")).or_default();
        *all += 1;
        *done += usize::from(answer.is_ok());
        if !is_right {
            let answer = answer.map_or_else(|error| error.0, |output| output.content);
            wrong.push(format!(
                "--- {seed} {quoted:?}\nold {old_text:?}\nnew {new_text:?}\nin {:?}\nnow {now:?}\nwanted {new:?}\n{answer}",
                joined(text)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong {counts:?}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // A refusal is correct but useless.
    for (quoted, [all, done]) in counts {
        assert!(done * 2 >= all && all > 100, "{quoted}: {done} of {all}");
    }
}

/// Whether a text consists of these lines, each with the ending of a nearby line, and the last one with that of the last line.
fn has(text: &str, lines: &[String], near: &[Line], last: &str) -> bool {
    let mut rest = text;
    for (nth, line) in lines.iter().enumerate() {
        let Some(after) = rest.strip_prefix(line.as_str()) else {
            return false;
        };
        let is_last = nth + 1 == lines.len();
        let mut endings = near
            .iter()
            .map(|(_, ending)| *ending)
            .filter(|ending| !is_last && !ending.is_empty());
        let ending = endings.find(|ending| after.starts_with(ending));
        rest = match ending {
            Some(ending) => after.strip_prefix(ending).unwrap(),
            None if is_last => after,
            None if near.iter().all(|(_, ending)| ending.is_empty()) => {
                after.strip_prefix('\n').unwrap_or(after)
            }
            None => return false,
        };
    }
    rest == last
        || near
            .iter()
            .any(|(_, ending)| *ending == rest && !last.is_empty())
}
