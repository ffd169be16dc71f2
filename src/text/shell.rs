//! Shell command lines: the one reader of them, and the one way to quote a word. Pure.
//!
//! [`read`] gives the commands of a line as bash runs them: compound commands and substitutions are commands within
//! commands. What depends on more than the line (a variable, a pattern, the output of a command) stays an open piece
//! of its word. A line is [`plain`](Line::plain) only if every POSIX shell (and fish) reads it the same way and nothing
//! of it is open.
//!
//! Lines of PowerShell and `cmd` are read as far as both read them the same way: plain words and plain quotes.
//!
//! Crates were considered: `brush-parser` brings 60 more crates and a C compiler, `yash-syntax` is under the GPL,
//! `conch-parser` is abandoned; `rable` and `shuck-parser` are light and alive but keep words as bash source, so the part
//! that permission rests on (what a word is, and where shells differ) would have to be written here all the same.

mod reader;
mod windows;
mod words;

use std::sync::{Arc, OnceLock};

use serde::Serialize;

pub use reader::read;

/// The language of a shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `sh`, `bash` and what reads the same.
    #[default]
    Posix,
    /// PowerShell 5 or newer.
    PowerShell,
    /// The command processor of Windows.
    Cmd,
}

/// The words of one simple command as the program receives them; the first one is the program.
pub type Words = Vec<String>;

/// Why a line is not understood, to complete "it …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("it {0}")]
pub struct Unclear(&'static str);

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// In order.
    pub commands: Vec<Command>,
    /// The first reason why shells may read it differently, or why its words depend on more than the line.
    unclear: Option<Unclear>,
}

/// A simple command or a compound one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The word that begins a compound command, such as `for`, `(` or `[[`.
    pub keyword: Option<&'static str>,
    /// `NAME=value` before the words.
    pub assignments: Vec<Word>,
    /// Of a compound command: what it tests, matches or goes over.
    pub words: Vec<Word>,
    /// In order.
    pub redirections: Vec<Redirection>,
    /// The commands within a compound one.
    pub body: Vec<Command>,
    /// The operator between it and the next one.
    pub end: End,
}

/// What ends a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// `;`, a line break, or nothing.
    #[default]
    Sequence,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|` or `|&`
    Pipe,
    /// `&`
    Background,
}

/// `2>&1`, `> file`, `<<END`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Without the number before it.
    pub operator: &'static str,
    /// The file, the text of a here-string, or the delimiter of a here-document.
    pub target: Word,
    /// The text of a here-document, once it was read.
    body: Option<Arc<OnceLock<Word>>>,
}

/// One word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// In order; none for `''`.
    pub pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As the program receives it.
    Text(String),
    /// An unquoted `*`, `?`, `[…]`, `{a,b}` or `~`, as written: it depends on files, or becomes several words.
    Pattern(String),
    /// A variable, a substitution or a calculation.
    Expansion(Expansion),
}

/// What a shell puts in place of a `$` or a backtick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// As written.
    pub source: String,
    /// The commands it runs.
    pub commands: Vec<Command>,
    /// Whether it stays one word.
    pub is_quoted: bool,
    /// Whether the shell evaluates the value of a variable, as `$((x))` and `${x@P}` do.
    pub evaluates: bool,
}

impl Line {
    /// The simple commands.
    ///
    /// # Errors
    /// Any part of the line is not understood.
    pub fn plain(&self) -> Result<Vec<Words>, Unclear> {
        self.patterned()?
            .iter()
            .map(|words| words.iter().map(Word::text).collect())
            .collect::<Option<_>>()
            .ok_or(Unclear("contains a pattern"))
    }

    /// [`Line::plain`] for rules, in which a `*` may stand for words.
    ///
    /// # Errors
    /// The same.
    pub fn patterned(&self) -> Result<Vec<&[Word]>, Unclear> {
        match self.unclear {
            Some(unclear) => Err(unclear),
            None => Ok(self
                .commands
                .iter()
                .map(|command| command.words.as_slice())
                .collect()),
        }
    }

    /// All commands, compound ones and those within others too.
    pub fn all(&self) -> Vec<&Command> {
        let mut all = Vec::new();
        let mut rest: Vec<&Command> = self.commands.iter().rev().collect();
        while let Some(command) = rest.pop() {
            all.push(command);
            rest.extend(command.inner().into_iter().rev());
        }
        all
    }
}

impl Command {
    /// The commands directly within it: of its body, and of the substitutions in its words.
    pub fn inner(&self) -> Vec<&Command> {
        self.all_words()
            .flat_map(Word::expansions)
            .flat_map(|expansion| &expansion.commands)
            .chain(&self.body)
            .collect()
    }

    /// The words of its redirections: their targets and here-documents.
    pub fn redirected(&self) -> impl Iterator<Item = &Word> {
        self.redirections
            .iter()
            .flat_map(|it| [Some(&it.target), it.document()])
            .flatten()
    }

    /// Its words and those of its assignments and redirections.
    pub fn all_words(&self) -> impl Iterator<Item = &Word> {
        self.assignments
            .iter()
            .chain(&self.words)
            .chain(self.redirected())
    }

    /// Whether it consists of words alone.
    pub fn does_nothing_else(&self) -> bool {
        self.assignments.is_empty() && self.redirections.is_empty() && self.body.is_empty()
    }

    /// The words of a simple command, if they are all known.
    pub fn texts(&self) -> Option<Words> {
        self.keyword
            .is_none()
            .then(|| self.words.iter().map(Word::text).collect())
            .flatten()
    }
}

impl Redirection {
    /// The text of a here-document.
    pub fn document(&self) -> Option<&Word> {
        self.body.as_ref().and_then(|body| body.get())
    }
}

impl Word {
    /// The text, if it depends on nothing else.
    pub fn text(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Pattern(_) | Piece::Expansion(_) => None,
            })
            .collect()
    }

    /// The text with its open pieces as written.
    pub fn written(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) | Piece::Pattern(text) => text.as_str(),
                Piece::Expansion(expansion) => &expansion.source,
            })
            .collect()
    }

    /// The parts that a shell expands.
    pub fn expansions(&self) -> impl Iterator<Item = &Expansion> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Expansion(expansion) => Some(expansion),
            Piece::Text(_) | Piece::Pattern(_) => None,
        })
    }

    fn push_pattern(&mut self, pattern: impl Into<String>) {
        self.pieces.push(Piece::Pattern(pattern.into()));
    }

    /// Adds text to its end.
    pub fn push(&mut self, text: &str) {
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.push_str(text);
        } else {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }
}

/// The name a program goes by: `/usr/bin/Bash` and `bash.exe` are `bash`.
pub fn program_name(program: &str) -> String {
    let base = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_lowercase();
    base.strip_suffix(".exe").unwrap_or(&base).to_owned()
}

/// Whether a program is a shell that reads lines like these.
pub fn is_shell(program: &str) -> bool {
    matches!(
        program_name(program).as_str(),
        "sh" | "ash" | "bash" | "dash" | "ksh" | "zsh" | "fish"
    )
}

/// Quotes the words so that the line reads as the same words.
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
mod tests;
