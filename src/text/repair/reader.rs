//! Reads a JSON value as leniently as it can be without guessing. Pure.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Number, Value};

/// How deep values may be nested.
const DEPTH: usize = 64;

pub(super) struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    text: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars().peekable(),
            text,
        }
    }

    pub fn after(&self) -> &'a str {
        let left: usize = self.rest.clone().map(char::len_utf8).sum();
        self.text.split_at(self.text.len() - left).1
    }

    /// Skips blanks, and escapes that were meant as such.
    fn blanks(&mut self) {
        loop {
            match self.rest.peek() {
                Some(character) if character.is_whitespace() => {
                    self.rest.next();
                }
                Some('/') => match self.comment() {
                    Some(()) => {}
                    None => return,
                },
                Some('#') => while self.rest.next_if(|c| *c != '\n').is_some() {},
                Some('\\') => {
                    let mut ahead = self.rest.clone();
                    ahead.next();
                    if !matches!(ahead.next(), Some('n' | 't' | 'r')) {
                        return;
                    }
                    self.rest = ahead;
                }
                _ => return,
            }
        }
    }

    /// Skips a comment between two values.
    fn comment(&mut self) -> Option<()> {
        let mut ahead = self.rest.clone();
        ahead.next();
        match ahead.next()? {
            '/' => while ahead.next_if(|c| *c != '\n').is_some() {},
            '*' => loop {
                if ahead.next()? == '*' && ahead.next_if_eq(&'/').is_some() {
                    break;
                }
            },
            _ => return None,
        }
        self.rest = ahead;
        Some(())
    }

    fn eat(&mut self, wanted: char) -> Option<()> {
        self.blanks();
        // Its full-width form is the same sign.
        let wide = u32::from(wanted) + 0xfee0;
        let is_wanted = |it: &char| *it == wanted || u32::from(*it) == wide;
        self.rest.next_if(is_wanted).map(|_| ())
    }

    pub fn value(&mut self, depth: usize) -> Option<Value> {
        self.blanks();
        if depth > DEPTH {
            return None;
        }
        match *self.rest.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' | '`' | '“' => self.text().map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.eat('{')?;
        self.blanks();
        if depth == 0 && self.rest.peek() == Some(&'{') {
            // As in a template, where one brace has to be written as two.
            let inner = self.object(depth + 1)?;
            return self.eat('}').map(|()| inner);
        }
        let mut fields = Map::new();
        loop {
            while self.eat(',').is_some() {}
            if self.eat('}').is_some() {
                return Some(Value::Object(fields));
            }
            self.blanks();
            let name = match self.rest.peek()? {
                '"' | '\'' | '“' => self.string()?,
                _ => self.bare_name()?,
            };
            self.assign()?;
            fields.insert(name, self.value(depth + 1)?);
            if self.eat(',').is_none() && !self.begins_line() && !self.begins_name() {
                self.eat('}')?;
                return Some(Value::Object(fields));
            }
        }
    }

    /// What stands between a name and its value.
    fn assign(&mut self) -> Option<()> {
        self.eat(':').or_else(|| {
            self.eat('=')?;
            let _arrow = self.rest.next_if_eq(&'>');
            Some(())
        })
    }

    /// Whether a quote begins the next line, where only a comma is missing; skips to it.
    fn begins_line(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        let blanks: String = std::iter::from_fn(|| ahead.next_if(|c| c.is_whitespace())).collect();
        let begins = blanks.contains('\n') && ahead.peek() == Some(&'"')
            || blanks.is_empty() && self.at_line();
        if begins {
            self.rest = ahead;
        }
        begins
    }

    /// Whether a name and a colon follow, where only a comma is missing.
    fn begins_name(&self) -> bool {
        let rest = self.after();
        let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        name.is_some_and(|(name, rest)| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && rest.trim_start().starts_with(':')
        })
    }

    /// Whether the blanks before a quote, which were skipped already, contain a line break.
    fn at_line(&self) -> bool {
        let before = self.text.split_at(self.text.len() - self.after().len()).0;
        let blanks = before.split_at(before.trim_end().len()).1;
        self.rest.clone().next() == Some('"') && blanks.contains('\n')
    }

    /// A string, or several that `+` joins.
    fn text(&mut self) -> Option<String> {
        let mut text = self.string()?;
        while self.eat('+').is_some() {
            self.blanks();
            text.push_str(&self.string()?);
        }
        Some(text)
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.eat('[')?;
        let mut items = Vec::new();
        loop {
            if self.eat(']').is_some() {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if self.eat(',').is_none() {
                self.eat(']')?;
                return Some(Value::Array(items));
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        if let Some(text) = self.long_string() {
            return Some(text);
        }
        let quote = match self.rest.next()? {
            '“' => '”',
            plain @ ('"' | '\'' | '`') => plain,
            _ => return None,
        };
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '\\' => self.escape(&mut text)?,
                character if character == quote => return Some(text),
                character => text.push(character),
            }
        }
    }

    /// A string in three quotes, as Python has them.
    fn long_string(&mut self) -> Option<String> {
        const QUOTES: &str = "\"\"\"";
        let mut ahead = self.rest.clone();
        if !QUOTES.chars().all(|quote| ahead.next() == Some(quote)) {
            return None;
        }
        let inside = self.after().strip_prefix(QUOTES)?;
        let (inside, _) = inside.split_once(QUOTES)?;
        let mut text = String::new();
        let mut reader = Reader::new(inside);
        while let Some(character) = reader.rest.next() {
            match character {
                '\\' => reader.escape(&mut text)?,
                character => text.push(character),
            }
        }
        let all = inside.chars().count() + 2 * QUOTES.len();
        self.rest.by_ref().take(all).for_each(drop);
        Some(text)
    }

    /// An escape; one that JSON does not know is what it looks like.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        match self.rest.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            plain @ ('"' | '\\' | '/' | '\'') => text.push(plain),
            'u' => match self.code_point() {
                Some(character) => text.push(character),
                None => text.push_str("\\u"),
            },
            // Including `\b` and `\f`: here, they are meant as part of a pattern.
            other => text.extend(['\\', other]),
        }
        Some(())
    }

    /// The four digits of a `\u` escape, or a surrogate pair of escapes (RFC 8259, section 7).
    fn code_point(&mut self) -> Option<char> {
        let mut ahead = self.rest.clone();
        let first = four_digits(&mut ahead)?;
        let code = if (0xd800..0xdc00).contains(&first) {
            let mut second = ahead.clone();
            (second.next() == Some('\\') && second.next() == Some('u')).then_some(())?;
            let low = four_digits(&mut second).filter(|low| (0xdc00..0xe000).contains(low))?;
            ahead = second;
            0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00)
        } else {
            first
        };
        let character = char::from_u32(code)?;
        self.rest = ahead;
        Some(character)
    }

    fn bare_name(&mut self) -> Option<String> {
        let name: String = std::iter::from_fn(|| {
            self.rest
                .next_if(|c| c.is_alphanumeric() || "_-$".contains(*c))
        })
        .collect();
        (!name.is_empty()).then_some(name)
    }

    fn word(&mut self) -> Option<Value> {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || "+-.".contains(*c);
        let word: String = std::iter::from_fn(|| self.rest.next_if(is_part)).collect();
        match word.as_str() {
            "null" | "None" | "undefined" | "NaN" => Some(Value::Null),
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            number => {
                let number = number.strip_prefix('+').unwrap_or(number);
                if let Some(digits) = number.strip_prefix("0x") {
                    return u64::from_str_radix(digits, 16).ok().map(Value::from);
                }
                let digits = number.trim_start_matches('0');
                let number = if digits.starts_with(|c: char| c.is_ascii_digit()) {
                    digits
                } else {
                    number
                };
                serde_json::from_str::<Number>(number)
                    .ok()
                    .map(Value::Number)
            }
        }
    }
}

fn four_digits(from: &mut Peekable<Chars<'_>>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code * 16 + from.next()?.to_digit(16)?))
}
