//! Words, quotes and what a shell puts in place of a `$`.

use super::reader::{
    ESCAPES, PATTERN, Read, Reader, SUBSTITUTES, UNENDED, UNQUOTED, UNWRITTEN, ends_word,
};
use super::{Command, Expansion, Piece, Unclear, Word};
use crate::text::display::is_deceptive;

impl<'a> Reader<'a> {
    pub(super) fn word(&mut self) -> Read<Word> {
        let mut word = Word::default();
        let mut previous = None;
        while let Some(character) = self.peek() {
            if ends_word(character) && !self.is_process() {
                break;
            }
            let before = self.rest;
            self.next();
            match character {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word, Some('"'))?,
                '\\' => self.escaped(&mut word)?,
                '$' | '`' => self.expansion(&mut word, before, false)?,
                '<' | '>' => {
                    self.note("redirects");
                    self.eat("(");
                    let commands = self.substituted()?;
                    self.push_expansion(&mut word, before, commands, false, false);
                }
                '*' if previous.is_none()
                    && self.peek().is_none_or(ends_word)
                    && !self.rest.starts_with('(') =>
                {
                    word.push_pattern("*");
                }
                '?' | '*' | '+' | '@' | '!' | '=' if self.rest.starts_with('(') => {
                    self.note(PATTERN);
                    word.push_pattern(character);
                    self.deeper(|reader| reader.group(&mut word))?;
                }
                '*' | '?' | '[' | ']' | '{' | '}' => {
                    self.note(PATTERN);
                    word.push_pattern(character);
                }
                '~' if matches!(previous, None | Some('=' | ':')) => {
                    self.note(SUBSTITUTES);
                    word.push_pattern("~");
                }
                _ => {
                    if previous.is_none() && matches!(character, '=' | '!') {
                        self.note("contains a word that shells read differently");
                    }
                    if character.is_whitespace() {
                        self.note("contains unusual whitespace");
                    }
                    self.literal(&mut word, character);
                }
            }
            previous = Some(character);
        }
        settle(&mut word);
        Ok(word)
    }

    fn literal(&mut self, word: &mut Word, character: char) {
        if is_deceptive(character) {
            self.note("contains invisible characters");
        }
        word.push(character.encode_utf8(&mut [0; 4]));
    }

    /// `(b c)` after `a=`, or `(b|c)` after the `!` of a pattern.
    pub(super) fn group(&mut self, word: &mut Word) -> Read<()> {
        // bash loses the delimiter of a document whose text would begin in such a list.
        if self.awaits_document() {
            return Err(Unclear(UNWRITTEN));
        }
        let before = self.rest;
        self.eat("(");
        let (mut commands, mut evaluates) = (Vec::new(), false);
        loop {
            self.lines()?;
            if self.eat(")") {
                break;
            }
            let next = self.peek().ok_or(Unclear(UNENDED))?;
            if ends_word(next) && !self.is_process() {
                self.next();
                continue;
            }
            let element = self.word()?;
            // `[x]=1` is a calculation.
            let written = element.written();
            let subscript = written
                .strip_prefix('[')
                .and_then(|rest| rest.split_once("]="));
            evaluates |=
                subscript.is_some_and(|(text, _)| !text.chars().all(|c| c.is_ascii_digit()));
            commands.extend(
                element
                    .expansions()
                    .flat_map(|expansion| expansion.commands.clone()),
            );
        }
        self.push_expansion(word, before, commands, false, evaluates);
        Ok(())
    }

    fn escaped(&mut self, word: &mut Word) -> Read<()> {
        let next = self.next().ok_or(Unclear(ESCAPES))?;
        // Before a letter or digit it is ignored by one shell and a control character in another.
        if !next.is_ascii_punctuation() && next != ' ' {
            self.note(ESCAPES);
        }
        if next != '\n' {
            self.literal(word, next);
        }
        Ok(())
    }

    fn single_quoted(&mut self, word: &mut Word) -> Read<()> {
        word.push("");
        loop {
            match self.next().ok_or(Unclear(UNQUOTED))? {
                '\'' => return Ok(()),
                character => {
                    // An escape only in fish.
                    if character == '\\' && matches!(self.peek(), Some('\'' | '\\')) {
                        self.note(ESCAPES);
                    }
                    self.literal(word, character);
                }
            }
        }
    }

    /// A text up to `close`; without one, to the end of a here-document.
    pub(super) fn double_quoted(&mut self, word: &mut Word, close: Option<char>) -> Read<()> {
        word.push("");
        loop {
            let before = self.rest;
            let Some(character) = self.next() else {
                return if close.is_none() {
                    Ok(())
                } else {
                    Err(Unclear(UNQUOTED))
                };
            };
            match character {
                _ if Some(character) == close => return Ok(()),
                '$' | '`' => self.expansion(word, before, true)?,
                '\\' => match self.next() {
                    Some(next @ ('\\' | '$')) => word.push(next.encode_utf8(&mut [0; 4])),
                    Some('"') if close.is_some() => word.push("\""),
                    Some('`') => {
                        self.note(ESCAPES);
                        word.push("`");
                    }
                    Some('\n') => self.note(ESCAPES),
                    None => return Err(Unclear(ESCAPES)),
                    Some(next) => {
                        word.push("\\");
                        self.literal(word, next);
                    }
                },
                _ => self.literal(word, character),
            }
        }
    }

    fn push_expansion(
        &mut self,
        word: &mut Word,
        before: &'a str,
        commands: Vec<Command>,
        is_quoted: bool,
        evaluates: bool,
    ) {
        let source = self.since(before).to_owned();
        word.pieces.push(Piece::Expansion(Expansion {
            source,
            commands,
            is_quoted,
            evaluates,
        }));
    }

    /// What follows a `$` or a backtick.
    pub(super) fn expansion(
        &mut self,
        word: &mut Word,
        before: &'a str,
        is_quoted: bool,
    ) -> Read<()> {
        self.note(SUBSTITUTES);
        self.deeper(|reader| reader.substitution(word, before, is_quoted))
    }

    fn substitution(&mut self, word: &mut Word, before: &'a str, is_quoted: bool) -> Read<()> {
        if before.starts_with('`') {
            let commands = self.backticks()?;
            self.push_expansion(word, before, commands, is_quoted, false);
            return Ok(());
        }
        let start = self.rest;
        for (open, close) in [("((", "))"), ("[", "]")] {
            if start.starts_with(open)
                && let Some(inner) = self.calculation(open, close)?
            {
                self.push_inner(word, before, &inner, is_quoted);
                return Ok(());
            }
            self.rest = start;
        }
        if self.eat("(") {
            let commands = self.substituted()?;
            self.push_expansion(word, before, commands, is_quoted, false);
        } else if self.eat("{") {
            let mut inner = Word::default();
            self.braced(&mut inner, is_quoted)?;
            self.push_inner(word, before, &inner, is_quoted);
        } else if !is_quoted && self.eat("'") {
            while self.next().ok_or(Unclear(UNQUOTED))? != '\'' {
                if self.since(start).ends_with('\\') {
                    self.next();
                }
            }
            self.push_expansion(word, before, Vec::new(), true, false);
        } else if !is_quoted && self.eat("\"") {
            self.double_quoted(word, Some('"'))?;
        } else {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if self.peek().is_some_and(is_name) {
                self.rest = self.rest.trim_start_matches(is_name);
            } else if self.peek().is_some_and(|next| "@*#?-$!".contains(next)) {
                self.next();
            } else {
                word.push("$");
                return Ok(());
            }
            self.push_expansion(word, before, Vec::new(), is_quoted, false);
        }
        Ok(())
    }

    /// An expansion with expansions in it.
    fn push_inner(&mut self, word: &mut Word, before: &'a str, inner: &Word, is_quoted: bool) {
        let commands = inner
            .expansions()
            .flat_map(|expansion| expansion.commands.clone())
            .collect();
        let evaluates = inner.pieces.iter().any(|piece| match piece {
            Piece::Text(_) => false,
            Piece::Pattern(_) => true,
            Piece::Expansion(expansion) => expansion.evaluates,
        });
        self.push_expansion(word, before, commands, is_quoted, evaluates);
    }

    /// A calculation between these marks, as one expansion; `None` if it is not one. A name in it is a pattern, since
    /// its value is evaluated.
    pub(super) fn calculation(&mut self, open: &str, close: &str) -> Read<Option<Word>> {
        let start = self.rest;
        self.eat(open);
        let mut inner = Word::default();
        if !self.arithmetic(&mut inner, close)? {
            return Ok(None);
        }
        let mut word = Word::default();
        self.push_inner(&mut word, start, &inner, true);
        Ok(Some(word))
    }

    fn arithmetic(&mut self, word: &mut Word, end: &str) -> Read<bool> {
        let (mut open, close) = (0_usize, end.chars().next());
        loop {
            let before = self.rest;
            let Some(character) = self.peek() else {
                return Ok(false);
            };
            if open == 0 && Some(character) == close {
                return Ok(self.eat(end));
            }
            self.next();
            match character {
                '(' | '[' => open += 1,
                ')' | ']' => open = open.saturating_sub(1),
                '$' | '`' => {
                    self.expansion(word, before, true)?;
                    // Its value is a part of the calculation.
                    word.push_pattern("");
                }
                '\\' => _ = self.next(),
                // Text in quotation marks is evaluated anyway.
                _ if character.is_alphabetic() || character == '_' => {
                    word.push_pattern(character);
                }
                // `0x1f` and `16#ff` are numbers.
                _ if character.is_ascii_digit() => {
                    self.rest = self
                        .rest
                        .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '#');
                }
                _ => {}
            }
        }
    }

    /// `${…}` after its opening brace.
    fn braced(&mut self, word: &mut Word, is_quoted: bool) -> Read<()> {
        if self
            .peek()
            .is_some_and(|next| next.is_whitespace() || next == '|')
        {
            return Err(Unclear(SUBSTITUTES));
        }
        if self.eat("!") {
            word.push_pattern("!");
        }
        let mut is_name = true;
        loop {
            let before = self.rest;
            match self.next().ok_or(Unclear(UNENDED))? {
                '}' => return Ok(()),
                '\\' => _ = self.next(),
                // Within double quotes, it is a quote in bash and text in dash.
                '\'' if is_quoted => return Err(Unclear(SUBSTITUTES)),
                '\'' => self.single_quoted(word)?,
                '"' => self.double_quoted(word, Some('"'))?,
                '$' | '`' => self.expansion(word, before, true)?,
                // Subscripts and offsets are calculations, `@P` and its like evaluate the value.
                '[' | '@' if is_name => word.push_pattern("["),
                ':' if is_name && !matches!(self.peek(), Some('-' | '=' | '?' | '+')) => {
                    word.push_pattern(":");
                    is_name = false;
                }
                character => {
                    is_name &= character.is_alphanumeric() || character == '_' || character == '#';
                }
            }
        }
    }

    fn backticks(&mut self) -> Read<Vec<Command>> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(Unclear(UNQUOTED))? {
                '`' => break,
                '\\' => match self.next().ok_or(Unclear(ESCAPES))? {
                    next @ ('`' | '\\' | '$') => text.push(next),
                    next => text.extend(['\\', next]),
                },
                character => text.push(character),
            }
        }
        self.within(&text, |reader| Ok(reader.list(&[])?.0))
    }
}

/// A bracket or a pair of braces alone is not a pattern.
fn settle(word: &mut Word) {
    let is_open = |piece: &Piece| matches!(piece, Piece::Pattern(pattern) if "[]{}".contains(pattern.as_str()));
    if word.pieces.iter().all(is_open) && word.pieces.len() <= 2 && !word.pieces.is_empty() {
        let text = word.written();
        word.pieces = vec![Piece::Text(text)];
    }
}
