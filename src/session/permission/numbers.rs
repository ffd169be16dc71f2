//! Which variables of a line are numbers, so that calculating with them starts nothing.
//!
//! A shell evaluates the value of a variable that it calculates with, and runs the substitutions in it. A variable is a
//! number only if the line sets it, nothing sets it to anything but numbers, and no built-in that sets variables names it.

use std::collections::HashSet;

use crate::text::lists;
use crate::text::shell::{Command, End, Expansion, Line, Piece, Word};

/// Built-ins that set the variables they are given; `printf` does with `-v` only.
const SETTERS: &str = "
declare export getopts local mapfile printf read readarray readonly typeset
";

/// The variables that are numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers(HashSet<String>);

/// What a line sets variables to, and the texts that name variables which may be anything.
#[derive(Default)]
struct Found {
    values: Vec<(String, Word)>,
    mentions: Vec<String>,
}

impl Numbers {
    pub fn of(line: &Line) -> Self {
        let mut found = Found::default();
        found.calculation("RANDOM=SECONDS=0");
        for command in line.all() {
            if found.command(command).is_none() {
                return Self::default();
            }
        }
        let Found { values, mentions } = found;
        let is_number = |name: &&String| {
            let mut words = mentions.iter().flat_map(|text| text.split(|c| !is_part(c)));
            // The shell itself sets others in capitals. A name may be attached to an option.
            let is_own = name.len() == 1 || name.contains(|c: char| c.is_ascii_lowercase());
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && (is_own || matches!(name.as_str(), "RANDOM" | "SECONDS"))
                && !words.any(|word| word.ends_with(name.as_str()))
        };
        let names = values.iter().map(|(name, _)| name);
        let mut numbers = Self(names.filter(is_number).cloned().collect());
        let is_other = |numbers: &Self, (name, value): &&(String, Word)| {
            numbers.0.contains(name) && !numbers.has(value)
        };
        // What is set to another variable is a number if that one is.
        while let Some((name, _)) = values.iter().find(|set| is_other(&numbers, set)) {
            numbers.0.remove(name);
        }
        numbers
    }

    /// Whether the word is a number, or several.
    pub fn has(&self, word: &Word) -> bool {
        !word.pieces.is_empty()
            && word.pieces.iter().all(|piece| match piece {
                Piece::Text(text) => text.split("..").all(|text| text.parse::<i64>().is_ok()),
                Piece::Pattern(brace) => "{}".contains(brace.as_str()),
                Piece::Expansion(expansion) => self.has_expansion(expansion),
            })
    }

    /// The word with some number in the place of each expansion that is one.
    pub fn filled(&self, word: &Word) -> Word {
        let mut word = word.clone();
        for piece in &mut word.pieces {
            if matches!(piece, Piece::Expansion(expansion) if self.has_expansion(expansion)) {
                *piece = Piece::Text("0".to_owned());
            }
        }
        word
    }

    fn has_expansion(&self, expansion: &Expansion) -> bool {
        let source = expansion.source.trim_start_matches('$');
        let name = source.trim_matches(['{', '}']);
        let counted = name.strip_prefix('#');
        // What begins like a calculation may be commands.
        let is_calculation = expansion.evaluates || expansion.commands.is_empty();
        matches!(source, "" | "?" | "!")
            || (is_calculation && (source.starts_with("((") || source.starts_with('[')))
            || counted.is_some_and(|name| name.trim_end_matches("[@]").chars().all(is_part))
            || self.0.contains(name)
            || is_printed(&expansion.commands)
    }

    /// Whether an expansion that evaluates is plain, and calculates with nothing but numbers.
    pub fn suffice(&self, expansion: &Expansion) -> bool {
        let source = expansion.source.trim_start_matches('$');
        // A variable that is counted or cut may hold any text.
        let is_part_of = usize::from(source.starts_with('{'));
        // `${!1}` evaluates what the value names.
        !source.starts_with("{!") && self.suffice_for(&source.replacen('{', "{#", is_part_of))
    }

    /// Whether a calculation is plain, and with nothing but numbers.
    pub fn suffice_for(&self, text: &str) -> bool {
        let text = text.replace("[@]", "");
        let is_plain = |c: char| is_part(c) || " +-*/%=<>!&|^~,?:;()[]{}$#".contains(c);
        let is_value = |c: char| c.is_ascii_alphabetic() || "#?".contains(c);
        let mut values = text.split('$').skip(1);
        // After `#` comes what is counted, or the digits of a number.
        let mut words = text.split(|c| !is_part(c) && c != '#');
        text.chars().all(is_plain)
            && values.all(|value| value.trim_start_matches('{').starts_with(is_value))
            && words.all(|word| {
                word.starts_with(|c: char| c.is_ascii_digit() || c == '#')
                    || word.is_empty()
                    || self.0.contains(word)
            })
    }
}

/// Whether these commands print nothing but a number.
fn is_printed(commands: &[Command]) -> bool {
    let Some((last, before)) = commands.split_last() else {
        return false;
    };
    last.redirections.iter().all(|it| it.operator == "<")
        && before.iter().all(|command| command.end == End::Pipe)
        && match last.texts().unwrap_or_default().join(" ").as_str() {
            "date +%s" | "nproc" | "wc -c" | "wc -l" | "wc -w" => true,
            line => line
                .strip_prefix("seq ")
                .is_some_and(|range| range.chars().all(|c| c.is_ascii_digit() || c == ' ')),
        }
}

impl Found {
    /// Adds what a command sets; `None` if it may set any variable to anything.
    fn command(&mut self, command: &Command) -> Option<()> {
        let words = command.words.as_slice();
        let program = words.first().map(Word::written).unwrap_or_default();
        let first = words.get(1).and_then(|word| word.pieces.first());
        let is_format =
            matches!(first, Some(Piece::Text(text)) if !text.is_empty() && !text.starts_with('-'));
        match (command.keyword, words) {
            (Some("function" | "select"), _) => return None,
            (Some("for"), [name]) => self.mentions.extend(name.text()),
            (Some("for"), [name, values @ ..]) => {
                let values = values.iter().map(|value| (name.written(), value.clone()));
                self.values.extend(values);
            }
            (None, [_, arguments @ ..]) => match program.as_str() {
                "eval" | "trap" => return None,
                "let" => arguments
                    .iter()
                    .for_each(|it| self.calculation(&it.written())),
                "printf" if is_format => {}
                name if lists(SETTERS, name) => {
                    let texts: Option<Vec<_>> = arguments.iter().map(Word::text).collect();
                    self.mentions.extend(texts?);
                }
                _ => {}
            },
            _ => {}
        }
        for word in &command.assignments {
            let (first, rest) = word.pieces.split_first()?;
            let set = match first {
                Piece::Text(text) => text.split_once('='),
                _ => None,
            };
            // Without `=`, it is a list or an element of one.
            let Some((name, text)) = set else {
                self.mentions.push(word.written());
                continue;
            };
            let mut value = Word::default();
            if !text.is_empty() {
                value.push(text);
            }
            value.pieces.extend_from_slice(rest);
            self.values
                .push((name.trim_end_matches('+').to_owned(), value));
        }
        let all = command
            .assignments
            .iter()
            .chain(words)
            .chain(command.redirected());
        for expansion in all.flat_map(Word::expansions) {
            let source = &expansion.source;
            if source.starts_with("${") && source.contains('=') {
                self.mentions.push(source.clone());
            } else if expansion.evaluates {
                self.calculation(source);
            }
        }
        Some(())
    }

    /// What is set in a calculation is a number.
    fn calculation(&mut self, text: &str) {
        // `==` sets nothing.
        for (before, after) in text.split('=').zip(text.split('=').skip(1)) {
            let name = before
                .trim_end()
                .rsplit(|c| !is_part(c))
                .next()
                .filter(|_| !after.is_empty());
            let zero = Word {
                pieces: vec![Piece::Text("0".to_owned())],
            };
            self.values.extend(name.map(|name| (name.to_owned(), zero)));
        }
    }
}

fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
