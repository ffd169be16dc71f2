//! Patches and edits made at random of files made at random: what a case must do is known before it is written in one of
//! the forms in which models write it.

mod edits;
mod patches;

use std::collections::BTreeMap;

use super::*;

/// Pseudo-random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % limit.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A line and its ending.
type Line = (String, &'static str);

/// Lines with endings of one or two kinds, the last one possibly without.
fn ended(dice: &mut Dice, lines: &[String]) -> Vec<Line> {
    let kinds: [&[&str]; 4] = [&["\n"], &["\n"], &["\r\n"], &["\n", "\r\n"]];
    let kind = *dice.pick(&kinds);
    let mut text: Vec<Line> = lines
        .iter()
        .map(|line| (line.clone(), *dice.pick(kind)))
        .collect();
    if dice.chance(25)
        && let Some((line, ending)) = text.last_mut()
        && !line.is_empty()
    {
        *ending = "";
    }
    text
}

fn joined(lines: &[Line]) -> String {
    lines
        .iter()
        .flat_map(|(line, ending)| [line, *ending])
        .collect()
}

/// The contents of a folder: texts, and links as `-> TARGET`.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).unwrap();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for entry in dir.read_dir(format!("./{below}")).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(format!("{name}/"));
            } else if kind.is_symlink() {
                let target = dir.read_link(&name).unwrap();
                found.insert(name, format!("-> {}", target.display()));
            } else {
                found.insert(name.clone(), dir.read_to_string(&name).unwrap());
            }
        }
    }
    found
}
