//! Patches in the V4A format.

use std::fmt::Write;

use super::*;

/// Lines that look like parts of a patch, and lines that files repeat.
const LINES: &[&str] = &[
    "*** Delete File: a.txt",
    "*** Update File: a.txt",
    "*** End Patch",
    "*** Begin Patch",
    "*** End of File",
    "*** Move to: b",
    "@@ -1,2 +1,2 @@",
    "+ plus",
    "- minus",
    "-- x",
    "++ y",
    "--- a/a.txt",
    "+++ b/a.txt",
    "diff --git a/a.txt b/a.txt",
    "rename from a.txt",
    "\\ No newline at end of file",
    "-- ",
    "```",
    "<<<<<<< SEARCH",
    "}",
    "    }",
    "",
    "",
    "\treturn",
    "ends in blanks  ",
];

const NAMES: &[&str] = &["a.txt", "src/b.rs", "src/deep/c.py", "two words.md", "é.md"];

/// Sections that cannot be applied, so their whole patch is refused.
const WRONG: &[&str] = &[
    "*** Update File: gone.txt\n@@\n-x\n+y\n",
    "*** Delete File: gone.txt\n",
    "*** Update File: a.txt\n@@\n-no such line 1\n+y\n",
    "*** Update File: src/b.rs\n@@ no such anchor 1\n-}\n+y\n",
    "*** Update File: link\n*** Move to: src/deep/c.py\n",
    "*** Add File: src/deep/c.py\n+x\n",
    "*** Add File: ../outside.txt\n+x\n",
    "*** Delete File: src\n",
    "*** Rename File: a.txt\n",
];

/// An expected line with the endings it may have.
type Expected = (String, Vec<&'static str>);

struct Hunk {
    at: usize,
    gone: usize,
    new: Vec<String>,
    /// How many surrounding lines are quoted.
    around: [usize; 2],
}

impl Hunk {
    fn start(&self) -> usize {
        self.at - self.around[0]
    }

    fn end(&self) -> usize {
        self.at + self.gone + self.around[1]
    }
}

enum Action {
    Update(Vec<Hunk>, Option<String>),
    Add,
    Delete,
}

/// What a patch does to a file. `new` is the text afterwards.
struct Section {
    path: String,
    old: Vec<Line>,
    action: Action,
    new: Vec<Expected>,
    /// Whether each hunk names its location.
    is_unique: bool,
}

fn line(dice: &mut Dice, number: &mut usize) -> String {
    if dice.chance(35) {
        return (*dice.pick(LINES)).to_owned();
    }
    *number += 1;
    format!("{}let v{number} = {number};", " ".repeat(4 * dice.below(3)))
}

fn file(dice: &mut Dice, number: &mut usize) -> Vec<Line> {
    let count = 1 + dice.below(14);
    let lines: Vec<String> = (0..count).map(|_| line(dice, number)).collect();
    ended(dice, &lines)
}

fn hunks(dice: &mut Dice, number: &mut usize, count: usize) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut from = 0;
    while from < count && hunks.len() < 3 {
        let before = dice.below(4).min(count - from);
        let at = from + before + dice.below(3);
        if at > count {
            break;
        }
        let gone = dice.below(3).min(count - at);
        let after = dice.below(4).min(count - at - gone);
        let mut new: Vec<String> = Vec::new();
        for _ in 0..dice.below(3) {
            new.push(line(dice, number));
        }
        if (gone > 0 || !new.is_empty()) && before + gone + after > 0 {
            let around = [before, after];
            hunks.push(Hunk {
                at,
                gone,
                new,
                around,
            });
        }
        from = at + gone + after + 1;
    }
    hunks
}

impl Section {
    fn update(dice: &mut Dice, number: &mut usize, path: &str, old: &[Line]) -> Option<Self> {
        let hunks = hunks(dice, number, old.len());
        let changes_nothing = |hunk: &Hunk| {
            old[hunk.at..hunk.at + hunk.gone]
                .iter()
                .map(|(line, _)| line)
                .eq(&hunk.new)
        };
        if hunks.is_empty() || hunks.iter().any(changes_nothing) {
            return None;
        }
        let endings = |from: usize, to: usize| -> Vec<&'static str> {
            let near = &old[from.saturating_sub(1)..(to + 1).min(old.len())];
            let mut endings: Vec<_> = near
                .iter()
                .map(|(_, ending)| *ending)
                .filter(|it| !it.is_empty())
                .collect();
            if endings.is_empty() {
                let mut before = old.iter().rev().map(|(_, ending)| *ending);
                endings.push(before.find(|it| !it.is_empty()).unwrap_or("\n"));
            }
            endings
        };
        let (mut new, mut from): (Vec<Expected>, _) = (Vec::new(), 0);
        for hunk in &hunks {
            new.extend(kept(&old[from..hunk.at]));
            let either = endings(hunk.at, hunk.at + hunk.gone);
            new.extend(hunk.new.iter().map(|line| (line.clone(), either.clone())));
            from = hunk.at + hunk.gone;
        }
        new.extend(kept(&old[from..]));
        // Of two equal lines, either may be removed, so either ending may remain.
        let gone = hunks
            .iter()
            .flat_map(|hunk| &old[hunk.at..hunk.at + hunk.gone]);
        for (line, ending) in gone {
            for (_, endings) in new.iter_mut().filter(|(same, _)| same == line) {
                endings.push(ending);
            }
        }
        let was_open = old.last()?.1.is_empty();
        let last = hunks.last()?;
        let is_end_changed = last.at + last.gone == old.len();
        let either = endings(old.len() - 1, old.len());
        let count = new.len();
        for (nth, (_, ending)) in new.iter_mut().enumerate() {
            if nth + 1 < count && ending.contains(&"") {
                ending.clone_from(&either);
            }
        }
        if let Some((_, ending)) = new.last_mut().filter(|_| is_end_changed) {
            // A text without a final newline stays without one; if its last line is removed, either is accepted.
            match was_open {
                true if last.new.is_empty() => *ending = [vec![""], either].concat(),
                true => *ending = vec![""],
                false => {}
            }
        }
        let blocks = |hunk: &Hunk| {
            let sought = &old[hunk.start()..hunk.end()];
            let same = |block: &&[Line]| {
                std::iter::zip(*block, sought).all(|(a, b)| a.0.trim() == b.0.trim())
            };
            old.windows(sought.len()).filter(same).count()
        };
        let is_unique = hunks.iter().all(|hunk| blocks(hunk) == 1);
        Some(Self {
            path: path.to_owned(),
            old: old.to_vec(),
            action: Action::Update(hunks, None),
            new,
            is_unique,
        })
    }

    fn v4a(&self, dice: &mut Dice) -> String {
        let stars = if dice.chance(10) { " ***" } else { "" };
        let heading = |verb: &str| format!("*** {verb} File: {}{stars}\n", self.path);
        let (hunks, to) = match &self.action {
            Action::Delete => return heading("Delete"),
            Action::Add => {
                let lines = self.new.iter().map(|(line, _)| format!("+{line}\n"));
                return heading("Add") + &lines.collect::<String>();
            }
            Action::Update(hunks, to) => (hunks, to),
        };
        let mut patch = heading("Update");
        if let Some(to) = to {
            writeln!(patch, "*** Move to: {to}").unwrap();
        }
        for (nth, hunk) in hunks.iter().enumerate() {
            let is_anchor = |line: &str| {
                let same = self
                    .old
                    .iter()
                    .filter(|(other, _)| other.trim() == line.trim());
                line.trim().starts_with("let") && same.count() == 1
            };
            let anchors: Vec<_> = self.old[..hunk.start()]
                .iter()
                .map(|(line, _)| line)
                .filter(|line| is_anchor(line))
                .collect();
            match anchors.last() {
                Some(anchor) if dice.chance(40) => writeln!(patch, "@@ {}", anchor.trim()).unwrap(),
                _ if nth == 0 && dice.chance(30) => {}
                _ => patch += "@@\n",
            }
            let is_bare = dice.chance(15)
                && self.old[hunk.start()..hunk.end()].iter().all(|(line, _)| {
                    line.trim_start().starts_with("let") && !line.starts_with(' ')
                });
            patch += &self.body(dice, hunk, is_bare);
            if hunk.end() == self.old.len() && dice.chance(30) {
                patch += *dice.pick(&["*** End of File\n", "*** End of File\n\n"]);
            }
        }
        patch
    }

    /// The lines of a hunk, each with its sign.
    fn body(&self, dice: &mut Dice, hunk: &Hunk, is_bare: bool) -> String {
        let mut body = String::new();
        let mut add = |sign: &str, line: &str| body.extend([sign, line, "\n"]);
        let no_sign = dice.chance(20);
        let quoted = |at: usize| {
            let (line, _) = &self.old[at];
            let is_signed = !(is_bare || no_sign && line.is_empty());
            (if is_signed { " " } else { "" }, line.as_str())
        };
        let gone_to = hunk.at + hunk.gone;
        for (sign, line) in (hunk.start()..hunk.at).map(quoted) {
            add(sign, line);
        }
        let mut gone = (hunk.at..gone_to).map(|at| ("-", self.old[at].0.as_str()));
        let mut new = hunk.new.iter().map(|line| ("+", line.as_str()));
        let is_mixed = dice.chance(30);
        while is_mixed && gone.len() > 0 && new.len() > 0 {
            for (sign, line) in gone.next().into_iter().chain(new.next()) {
                add(sign, line);
            }
        }
        for (sign, line) in gone.chain(new).chain((gone_to..hunk.end()).map(quoted)) {
            add(sign, line);
        }
        body
    }
}

/// Files, a patch for them, and the expected files afterwards; `None` if nothing may change.
struct Case {
    before: Vec<(String, Vec<Line>)>,
    patch: String,
    after: Option<BTreeMap<String, Vec<Expected>>>,
    is_unique: bool,
}

fn kept(lines: &[Line]) -> Vec<Expected> {
    lines
        .iter()
        .map(|(line, ending)| (line.clone(), vec![*ending]))
        .collect()
}

fn case(dice: &mut Dice) -> Case {
    let mut number = 0;
    let before: Vec<(String, Vec<Line>)> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), file(dice, &mut number)))
        .collect();
    let mut after: BTreeMap<_, _> = before
        .iter()
        .map(|(name, lines)| (name.clone(), kept(lines)))
        .collect();
    after.insert("link".to_owned(), vec![("-> a.txt".to_owned(), vec![""])]);
    let (mut sections, mut is_unique) = (Vec::new(), true);
    for (name, old) in &before {
        let section = |action, new| Section {
            path: name.clone(),
            old: old.clone(),
            action,
            new,
            is_unique: true,
        };
        match dice.below(8) {
            0 => {
                after.remove(name);
                sections.push(section(Action::Delete, Vec::new()).v4a(dice));
            }
            1 => {
                let lines = (0..dice.below(4))
                    .map(|_| (line(dice, &mut number), vec!["\n"]))
                    .collect::<Vec<_>>();
                let path = format!("new/{}", name.replace('/', " "));
                let add = Section {
                    path: path.clone(),
                    ..section(Action::Add, lines.clone())
                };
                after.insert(path, lines);
                sections.push(add.v4a(dice));
            }
            2..6 => {
                let Some(mut section) = Section::update(dice, &mut number, name, old) else {
                    continue;
                };
                is_unique &= section.is_unique;
                let to = dice.chance(20).then(|| format!("moved/{name}"));
                after.remove(name);
                after.insert(to.clone().unwrap_or(name.clone()), section.new.clone());
                if let Action::Update(_, moved_to) = &mut section.action {
                    *moved_to = to;
                }
                sections.push(section.v4a(dice));
            }
            _ => {}
        }
    }
    match dice.below(10) {
        0 => {
            after.remove("link");
            sections.push("*** Delete File: link\n".to_owned());
        }
        1 => {
            let link = after.remove("link").unwrap();
            after.insert("moved link".to_owned(), link);
            sections.push("*** Update File: link\n*** Move to: moved link\n".to_owned());
        }
        _ => {}
    }
    for at in (1..sections.len()).rev() {
        sections.swap(at, dice.below(at + 1));
    }
    let is_wrong = dice.chance(25) || sections.is_empty();
    if is_wrong {
        sections.insert(
            dice.below(sections.len() + 1),
            (*dice.pick(WRONG)).to_owned(),
        );
    }
    Case {
        before,
        patch: patch(dice, &sections),
        after: (!is_wrong).then_some(after),
        is_unique,
    }
}

/// The sections between their marks, in one of the forms models use.
fn patch(dice: &mut Dice, sections: &[String]) -> String {
    let (begin, end) = *dice.pick(&[
        ("*** Begin Patch\n", "*** End Patch"),
        ("*** Begin Patch\n", "*** End Patch\n"),
        ("*** Begin Patch ***\n", "*** End Patch ***\n"),
        ("*** begin patch\n", "*** end patch\n"),
    ]);
    let mut text = begin.to_owned();
    for (nth, section) in sections.iter().enumerate() {
        if nth > 0 && dice.chance(15) {
            text += end.trim_end();
            text += *dice.pick(&["\n", "\n\n", "\nAnd the second:\n"]);
            text += begin;
        }
        text += section;
    }
    text += end;
    let text = match dice.below(12) {
        0 => format!("```diff\n{}\n```", text.trim_end()),
        1 => format!("apply_patch <<'EOF'\n{}\nEOF", text.trim_end()),
        2 => format!("Here it is:\n{text}"),
        _ => text,
    };
    if dice.chance(10) {
        text.replace('\n', "\r\n")
    } else {
        text
    }
}

/// Whether a text has these lines, each with an ending it may have.
fn is(text: &str, expected: &[Expected]) -> bool {
    let mut rest = text;
    for (line, endings) in expected {
        let Some(after) = rest.strip_prefix(line.as_str()) else {
            return false;
        };
        // The longest first, because every text begins with `""`.
        let mut endings = endings.clone();
        endings.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
        let Some(after) = endings.iter().find_map(|ending| after.strip_prefix(ending)) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

#[tokio::test]
async fn generated_patches_do_what_they_say_or_nothing() {
    let (mut wrong, mut applied, mut refused) = (Vec::new(), 0, 0);
    for seed in 1..=400 {
        let dice = &mut Dice::new(seed);
        let Case {
            before,
            patch,
            after,
            is_unique,
        } = case(dice);
        let place = Place::new(&[]);
        for (name, lines) in &before {
            place.write(name, joined(lines).as_bytes());
        }
        std::os::unix::fs::symlink("a.txt", place.folder.path().join("link")).unwrap();
        let untouched = tree(place.folder.path());
        let answer = place.run("apply_patch", json!({ "patch": patch })).await;
        let now = tree(place.folder.path());
        let is_done = after.as_ref().is_some_and(|after| {
            now.len() == after.len()
                && after
                    .iter()
                    .all(|(name, lines)| now.get(name).is_some_and(|text| is(text, lines)))
        });
        let is_right = match (&answer, &after) {
            (Ok(_), _) => is_done,
            (Err(_), Some(_)) => now == untouched && !is_unique,
            (Err(_), None) => now == untouched,
        };
        *(if answer.is_ok() {
            &mut applied
        } else {
            &mut refused
        }) += 1;
        if !is_right {
            let answer = answer.map_or_else(|error| error.0, |output| output.content);
            let differs = after.map(|after| {
                after
                    .into_iter()
                    .filter(|(name, lines)| !now.get(name).is_some_and(|text| is(text, lines)))
                    .collect::<Vec<_>>()
            });
            wrong.push(format!("--- {seed}\n{patch}\n=> {answer}\nbefore {untouched:?}\nnow {now:?}\nexpected {differs:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
    assert!(applied > 250 && refused > 75, "{applied} {refused}");
}
