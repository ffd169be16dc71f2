//! Which variables of a line are numbers, so that calculating with them starts nothing.
//!
//! A shell evaluates the value of a variable that it calculates with, and runs the substitutions in it. A variable is a
//! number only if the line sets it and everything in the line that may set it sets a number.

use std::collections::{BTreeMap, HashSet};

use crate::text::shell::{Command, End, Expansion, Line, Piece, Word};

/// Variables that bash sets to a number unless the line sets them.
const OF_THE_SHELL: [&str; 4] = ["EPOCHSECONDS", "LINENO", "RANDOM", "SECONDS"];
/// Built-ins that set the variables they are given to anything.
const READERS: [&str; 5] = ["getopts", "mapfile", "printf", "read", "readarray"];
/// Built-ins that take `NAME=value`.
const DECLARERS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// The variables that are numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    names: HashSet<String>,
    /// Whether the line gives names of programs another meaning.
    has_functions: bool,
}

impl Numbers {
    pub(super) fn of(line: &Line) -> Self {
        let mut found = Found::default();
        for command in line.all() {
            found.command(command);
        }
        if found.is_unknown {
            return Self::default();
        }
        let Found {
            mut values, others, ..
        } = found;
        let of_the_shell = OF_THE_SHELL
            .iter()
            .filter(|name| !values.contains_key(**name));
        let names: HashSet<_> = of_the_shell.map(ToString::to_string).collect();
        // The shell itself sets variables whose names are words in capitals.
        values.retain(|name, _| {
            let is_letter = name.len() == 1 && name != "_";
            is_letter || name.contains(|c: char| c.is_ascii_lowercase())
        });
        let mut numbers = Self {
            names: names.into_iter().chain(values.keys().cloned()).collect(),
            has_functions: found.has_functions,
        };
        numbers.names.retain(|name| !others.contains(name));
        loop {
            let is_other = |name: &&String| {
                let values = values.get(*name).into_iter().flatten();
                numbers.names.contains(*name) && !values.into_iter().all(|value| numbers.has(value))
            };
            let Some(other) = values.keys().find(is_other) else {
                return numbers;
            };
            numbers.names.remove(other);
        }
    }

    /// Whether the word is a number, or several.
    pub(super) fn has(&self, word: &Word) -> bool {
        let is_number = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Pattern(text) => {
                text.parse::<i64>().is_ok()
                    || text
                        .chars()
                        .all(|c| c.is_ascii_digit() || ".,{}".contains(c))
            }
            Piece::Expansion(expansion) => self.has_expansion(expansion),
        };
        let is_some = |piece: &Piece| match piece {
            Piece::Text(text) => text.contains(|c: char| c.is_ascii_digit()),
            Piece::Pattern(_) => false,
            Piece::Expansion(_) => true,
        };
        word.pieces.iter().all(is_number) && word.pieces.iter().any(is_some)
    }

    /// The word with some number in the place of each expansion that is one.
    pub(super) fn filled(&self, word: &Word) -> Word {
        let filled = |piece: &Piece| match piece {
            Piece::Expansion(expansion) if self.has_expansion(expansion) => {
                Piece::Text("0".to_owned())
            }
            piece => piece.clone(),
        };
        Word {
            pieces: word.pieces.iter().map(filled).collect(),
        }
    }

    fn has_expansion(&self, expansion: &Expansion) -> bool {
        let source = expansion.source.as_str();
        let braced = source
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        let name = braced.or_else(|| source.strip_prefix('$'));
        matches!(source, "$#" | "$?" | "$$" | "$!")
            || ["$((", "$["].iter().any(|it| source.starts_with(it))
            || braced.is_some_and(is_count)
            || name.is_some_and(|name| self.names.contains(name))
            || self.is_printed(&expansion.commands)
    }

    /// Whether these commands print nothing but a number.
    fn is_printed(&self, commands: &[Command]) -> bool {
        let Some((last, before)) = commands.split_last() else {
            return false;
        };
        let is_input = last.redirections.iter().all(|it| it.operator == "<");
        let is_simple = last.keyword.is_none() && last.assignments.is_empty() && is_input;
        let words: Vec<_> = last.words.iter().map(Word::written).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let counts = |flag: &str| {
            let letters = flag.strip_prefix('-');
            letters.is_some_and(|letters| letters.chars().all(|letter| "clmw".contains(letter)))
        };
        !self.has_functions
            && is_simple
            && before.iter().all(|command| command.end == End::Pipe)
            && match words.as_slice() {
                ["date", "+%s"] | ["nproc"] => true,
                ["wc", flag] => counts(flag),
                ["seq", _, ..] => last.words.iter().skip(1).all(|word| self.has(word)),
                _ => false,
            }
    }

    /// Whether an expansion calculates with nothing but numbers.
    pub(super) fn suffice(&self, expansion: &Expansion) -> bool {
        calculation(&expansion.source).is_some_and(|text| self.suffice_for(text))
    }

    /// Whether a calculation is with nothing but numbers, and plain.
    pub(super) fn suffice_for(&self, text: &str) -> bool {
        operands(text).is_some_and(|names| names.iter().all(|name| self.names.contains(*name)))
    }
}

#[derive(Default)]
struct Found {
    /// What the variables are set to; what a calculation sets is a number.
    values: BTreeMap<String, Vec<Word>>,
    /// Those that may be set to anything.
    others: HashSet<String>,
    /// Whether any variable may be set to anything.
    is_unknown: bool,
    has_functions: bool,
}

impl Found {
    fn command(&mut self, command: &Command) {
        self.has_functions |= command.keyword == Some("function");
        for word in &command.assignments {
            self.assignment(word);
        }
        match (command.keyword, command.words.as_slice()) {
            (Some("for"), [name, values @ ..]) if !values.is_empty() => {
                self.values
                    .entry(name.written())
                    .or_default()
                    .extend(values.iter().cloned());
            }
            (Some("for" | "select"), [name, ..]) => {
                self.others.insert(name.written());
            }
            (None, [program, arguments @ ..]) => self.built_in(program, arguments),
            _ => {}
        }
        let documents = command
            .redirections
            .iter()
            .flat_map(|it| [Some(&it.target), it.document()]);
        let words = command.assignments.iter().chain(&command.words);
        for expansion in words.chain(documents.flatten()).flat_map(Word::expansions) {
            let source = expansion.source.as_str();
            if source.starts_with("${") && source.contains('=') {
                self.others
                    .extend(identifiers(source).map(|(_, name)| name.to_owned()));
            } else if calculation(source).is_some() {
                self.calculated(source);
            }
        }
    }

    fn assignment(&mut self, word: &Word) {
        let mut value = word.clone();
        let Some(Piece::Text(text)) = value.pieces.first_mut() else {
            self.is_unknown = true;
            return;
        };
        let Some((name, rest)) = text.split_once('=') else {
            // A list or an element of one, unless the name goes on.
            let text = text.clone();
            let is_open = |piece: &Piece| matches!(piece, Piece::Pattern(sign) if "[=".contains(sign.as_str()));
            self.is_unknown |= !is_name(&text) || !value.pieces.get(1).is_some_and(is_open);
            self.others.insert(text);
            return;
        };
        let (name, rest) = (name.trim_end_matches('+').to_owned(), rest.to_owned());
        *text = rest;
        value
            .pieces
            .retain(|piece| *piece != Piece::Text(String::new()));
        self.values.entry(name).or_default().push(value);
    }

    fn calculated(&mut self, text: &str) {
        for (at, name) in identifiers(text) {
            let after = text.get(at + name.len()..).unwrap_or_default().trim_start();
            if after.starts_with('=') && !after.starts_with("==") {
                self.values.entry(name.to_owned()).or_default();
            }
        }
    }

    /// What a built-in sets.
    fn built_in(&mut self, program: &Word, arguments: &[Word]) {
        let program = program.text().unwrap_or_default();
        match program.as_str() {
            "eval" | "trap" | "." | "source" => self.is_unknown = true,
            "let" => {
                for word in arguments {
                    self.calculated(&word.written());
                }
            }
            name if DECLARERS.contains(&name) => {
                for word in arguments {
                    if word.text().is_none_or(|text| text.contains('=')) {
                        self.assignment(word);
                    }
                }
            }
            name if READERS.contains(&name) => {
                let is_format = |first: &Word| !first.written().starts_with("-v");
                if name == "printf" && arguments.first().is_some_and(is_format) {
                    return;
                }
                for word in arguments {
                    self.is_unknown |= word.text().is_none();
                    let text = word.written();
                    // A name may be attached to its option.
                    let ends = text.char_indices().filter_map(|(at, _)| text.get(at..));
                    let count = if text.starts_with('-') { text.len() } else { 1 };
                    self.others.extend(ends.take(count).map(str::to_owned));
                }
            }
            _ => {}
        }
    }
}

/// The names in a text, and where they begin.
fn identifiers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
            let length = rest.len() - rest.trim_start_matches(is_part).len();
            let begin = at;
            if length == 0 {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            at += length;
            if !rest.starts_with(|c: char| c.is_ascii_digit()) {
                return Some((begin, rest.get(..length)?));
            }
        }
    })
}

/// What is calculated in an expansion that evaluates nothing else.
fn calculation(source: &str) -> Option<&str> {
    let between = |open: &str, close: &str| source.strip_prefix(open)?.strip_suffix(close);
    let whole = between("((", "))")
        .or_else(|| between("$((", "))"))
        .or_else(|| between("$[", "]"));
    if whole.is_some() {
        return whole;
    }
    let inner = between("${", "}")?;
    let inner = inner.strip_prefix('#').unwrap_or(inner);
    let rest = inner.trim_start_matches(is_part);
    if rest.len() == inner.len() {
        return None;
    }
    let (subscript, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let subscript = if matches!(subscript, "@" | "*") {
        ""
    } else {
        subscript
    };
    match rest.strip_prefix(':') {
        Some(offset) if subscript.is_empty() && !offset.starts_with(['-', '=', '?', '+']) => {
            Some(offset)
        }
        // Behind a subscript, text is cut off or replaced.
        None if !rest.contains(['$', '`', '[', '@', '!', '\'', '"', '\\']) => Some(subscript),
        _ => None,
    }
}

/// The names that a plain calculation is with; `None` if it is not plain.
fn operands(text: &str) -> Option<Vec<&str>> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let (word, after) = rest.split_at(rest.len() - rest.trim_start_matches(is_part).len());
        if first.is_ascii_digit() {
            // `16#ff` is a number.
            let digits = after.strip_prefix('#');
            rest = digits.map_or(after, |digits| digits.trim_start_matches(is_part));
        } else if !word.is_empty() {
            names.push(word);
            rest = after;
        } else if first.is_whitespace() || "+-*/%=<>!&|^~,?:;()".contains(first) {
            rest = rest.get(1..)?;
        } else {
            let value = rest.strip_prefix('$')?;
            rest = if let Some(braced) = value.strip_prefix('{') {
                let (braced, after) = braced.split_once('}')?;
                if !is_count(braced) {
                    names.push(Some(braced).filter(|name| is_name(name))?);
                }
                after
            } else if value.starts_with(|c: char| c.is_ascii_alphabetic()) {
                value
            } else {
                value.strip_prefix(['#', '?'])?
            };
        }
    }
    Some(names)
}

fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_part)
}

/// Whether what stands between braces is a length.
fn is_count(braced: &str) -> bool {
    let counted = braced.strip_prefix('#');
    counted.is_some_and(|name| is_name(name.trim_end_matches("[@]").trim_end_matches("[*]")))
}
