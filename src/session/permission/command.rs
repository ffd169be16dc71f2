//! The simple commands of unambiguous shell command lines.
//!
//! A line is understood only if every POSIX shell (and fish) reads it the same way and its words depend on nothing but
//! the line.
//!
//! Expansions, substitutions, patterns, redirections, assignments, compound commands, comments, background jobs and
//! invisible characters are not understood; such a line requires approval.
//!
//! A grammar crate was considered: `brush-parser` brings 60 more crates and a C compiler to parse what is rejected
//! here.

pub(super) mod windows;

use std::iter::Peekable;
use std::str::Chars;

use crate::tools::is_deceptive;

/// The words of one simple command; the first one is the program.
pub type Words = Vec<String>;

/// Why a line is not understood, to complete "it …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("it {0}")]
pub struct Unclear(&'static str);

/// Words that start something other than a simple command in some shell.
const RESERVED: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "do",
    "done",
    "case",
    "esac",
    "while",
    "until",
    "for",
    "select",
    "function",
    "time",
    "coproc",
    "repeat",
    "foreach",
    "end",
    "nocorrect",
    "noglob",
    "begin",
    "switch",
    "and",
    "or",
    "not",
];

/// One word, or the `*` of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// As the program receives it.
    Is(String),
    /// An unquoted `*` on its own.
    Star,
}

impl Word {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Is(text) => Some(text.clone()),
            Self::Star => None,
        }
    }
}

/// The simple commands of a line, in order.
///
/// # Errors
/// Any part of it is not understood.
pub fn parse(line: &str) -> Result<Vec<Words>, Unclear> {
    let plain = |word: &Word| word.text().ok_or(Unclear("contains a pattern"));
    commands(line)?
        .iter()
        .map(|words| words.iter().map(plain).collect())
        .collect()
}

/// [`parse`] for rules, in which a `*` may stand for words.
pub(super) fn commands(line: &str) -> Result<Vec<Vec<Word>>, Unclear> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let mut owes_command = false;
    let mut chars = line.chars().peekable();
    while let Some(&character) = chars.peek() {
        match character {
            ' ' | '\t' => _ = chars.next(),
            ';' | '\n' | '&' | '|' => {
                chars.next();
                let is_double =
                    matches!(character, '&' | '|') && chars.next_if_eq(&character).is_some();
                if character == '&' && !is_double {
                    return Err(Unclear("runs something in the background"));
                }
                if character == '\n' && words.is_empty() {
                    continue;
                }
                commands.push(simple(std::mem::take(&mut words))?);
                owes_command = matches!(character, '&' | '|');
            }
            _ => {
                words.push(word(&mut chars)?);
                owes_command = false;
            }
        }
    }
    if !words.is_empty() || owes_command || commands.is_empty() {
        commands.push(simple(words)?);
    }
    Ok(commands)
}

/// Checks that the words are a program and its arguments.
fn simple(words: Vec<Word>) -> Result<Vec<Word>, Unclear> {
    match words.first() {
        None => Err(Unclear("lacks a command")),
        Some(Word::Is(program)) if program.is_empty() => Err(Unclear("names no program")),
        Some(Word::Is(program)) if program.contains('=') => Err(Unclear("sets a variable")),
        Some(Word::Is(program)) if RESERVED.contains(&program.as_str()) => {
            Err(Unclear("contains a compound command"))
        }
        Some(_) => Ok(words),
    }
}

fn word(chars: &mut Peekable<Chars<'_>>) -> Result<Word, Unclear> {
    let mut text = String::new();
    let mut is_first = true;
    while let Some(&character) = chars.peek() {
        if matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|') {
            break;
        }
        chars.next();
        match character {
            '*' if is_first && is_end(chars.peek()) => return Ok(Word::Star),
            '\'' => single_quoted(chars, &mut text)?,
            '"' => double_quoted(chars, &mut text)?,
            // Before a letter or digit it is ignored by one shell and a control character in another.
            '\\' => match chars.next() {
                Some(next) if next.is_ascii_punctuation() || next == ' ' => text.push(next),
                _ => return Err(Unclear("contains an escape that shells read differently")),
            },
            '~' if is_first || text.ends_with(['=', ':']) => {
                return Err(Unclear("contains an expansion"));
            }
            '#' if is_first => return Err(Unclear("contains a comment")),
            '=' | '!' if is_first => {
                return Err(Unclear("contains a word that shells read differently"));
            }
            _ => text.push(literal(character)?),
        }
        is_first = false;
    }
    Ok(Word::Is(text))
}

fn is_end(next: Option<&char>) -> bool {
    next.is_none_or(|next| matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '|'))
}

/// A character outside quotes that stands for itself.
fn literal(character: char) -> Result<char, Unclear> {
    match character {
        '$' | '`' => Err(Unclear("contains an expansion")),
        '<' | '>' => Err(Unclear("redirects")),
        '(' | ')' => Err(Unclear("contains a compound command")),
        '*' | '?' | '[' | ']' | '{' | '}' => Err(Unclear("contains a pattern")),
        other if other.is_whitespace() => Err(Unclear("contains an unusual blank")),
        other => visible(other),
    }
}

fn visible(character: char) -> Result<char, Unclear> {
    if is_deceptive(character) {
        Err(Unclear("contains invisible characters"))
    } else {
        Ok(character)
    }
}

fn single_quoted(chars: &mut Peekable<Chars<'_>>, text: &mut String) -> Result<(), Unclear> {
    while let Some(character) = chars.next() {
        match character {
            '\'' => return Ok(()),
            // An escape only in fish.
            '\\' if matches!(chars.peek(), Some('\'' | '\\')) => {
                return Err(Unclear("contains an escape that shells read differently"));
            }
            other => text.push(visible(other)?),
        }
    }
    Err(Unclear("lacks a closing quote"))
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, text: &mut String) -> Result<(), Unclear> {
    while let Some(character) = chars.next() {
        match character {
            '"' => return Ok(()),
            '$' | '`' => return Err(Unclear("contains an expansion")),
            '\\' => match chars.next() {
                Some(next @ ('"' | '\\' | '$')) => text.push(next),
                Some('`' | '\n') | None => {
                    return Err(Unclear("contains an escape that shells read differently"));
                }
                Some(next) => text.extend(['\\', visible(next)?]),
            },
            other => text.push(visible(other)?),
        }
    }
    Err(Unclear("lacks a closing quote"))
}

/// Quotes the words so that the line parses to the same words.
#[must_use]
pub fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    words
        .iter()
        .map(|word| quoted_word(word.as_ref()))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:@%+,-=".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut line = String::from("'");
    for character in word.chars() {
        match character {
            // Outside the quotes, where all shells agree.
            '\'' | '\\' => line.extend(['\'', '\\', character, '\'']),
            other => line.push(other),
        }
    }
    line.push('\'');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &str, expected: &[&[&str]]) {
        let expected: Vec<Words> = expected
            .iter()
            .map(|words| words.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(parse(line), Ok(expected), "{line}");
    }

    #[test]
    fn simple_commands_split_into_words() {
        check("cargo test", &[&["cargo", "test"]]);
        check(" cargo\ttest \n", &[&["cargo", "test"]]);
        check(
            "a && b || c; d | e\nf;",
            &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]],
        );
        check("a &&\n\n b", &[&["a"], &["b"]]);
        check(
            r#"git commit -m "it's \"done\" \n" 'a b'c"#,
            &[&["git", "commit", "-m", "it's \"done\" \\n", "a bc"]],
        );
        check(
            r"echo \$HOME \* a\ b '' '$x `y` \d'",
            &[&["echo", "$HOME", "*", "a b", "", r"$x `y` \d"]],
        );
        check(
            "git show HEAD~1 a=b x#y :/!",
            &[&["git", "show", "HEAD~1", "a=b", "x#y", ":/!"]],
        );
        check("printf 'a\n\tb'", &[&["printf", "a\n\tb"]]);
    }

    #[test]
    fn ambiguous_lines_are_not_understood() {
        for line in [
            "",
            " \n",
            ";",
            "a;;b",
            "a; ;b",
            "&& a",
            "a &&",
            "a |",
            "a | | b",
            "a &",
            "a & b",
            "a |& b",
            "a &> f",
            "echo $HOME",
            "echo ${HOME}",
            "echo $(id)",
            "echo `id`",
            "echo \"$(id)\"",
            "echo \"`id`\"",
            "echo $'a'",
            "echo > f",
            "cat < f",
            "a 2>&1",
            "cat <<E\nE",
            "echo *",
            "ls a?",
            "ls [ab]",
            "echo {a,b}",
            "{touch,x}",
            "echo ~",
            "cat ~/x",
            "a --x=~/y",
            "a x:~/y",
            "=ls",
            "! a",
            "(a)",
            "{ a; }",
            "if true; then a; fi",
            "for i in a; do b; done",
            "while a; do b; done",
            "f() { a; }",
            "time a",
            "[[ a ]]",
            "[ a ]",
            "A=b c",
            "A=b",
            "PATH+=x ls",
            "echo a # b",
            "'a",
            "\"a",
            "a\\",
            "a\\\nb",
            "a \\n",
            "\"a\\\nb\"",
            "'a\\'b'",
            "'a\\\\b'",
            "''",
            "'' a",
            "a\rb",
            "a\0b",
            "a\u{a0}b",
            "a\u{200b}b",
            "'a\u{202e}b'",
            "a\u{3000}b",
            "echo *(e:'touch x':)",
            "\"\\`\"",
        ] {
            assert!(parse(line).is_err(), "{line:?} is {:?}", parse(line));
        }
    }

    proptest! {
        #[test]
        fn quoting_round_trips(words in prop::collection::vec("[ -~é\n]{0,6}", 0..4)) {
            let mut line = vec!["run".to_owned()];
            line.extend(words);
            prop_assert_eq!(parse(&quoted(&line)), Ok(vec![line]));
        }

        #[test]
        fn quoting_preserves_parsed_commands(line in r#"[ab*'"\\;&|~#=!$ \n]{0,12}"#) {
            for words in parse(&line).into_iter().flatten() {
                prop_assert_eq!(parse(&quoted(&words)), Ok(vec![words]));
            }
        }
    }
}
