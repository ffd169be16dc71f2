//! Reads a JSON value as leniently as it can be without guessing. Pure.

use serde_json::{Map, Number, Value};

use super::escape;

/// How deep values may be nested.
const DEPTH: usize = 64;

/// What a string may stand between: Python's quotes, those of typography, JSON's own and others, and the tokens of Gemma.
const QUOTES: [(&str, &str); 7] = [
    ("\"\"\"", "\"\"\""),
    ("“", "”"),
    ("\"", "\""),
    ("'", "'"),
    ("`", "`"),
    ("<|\"|>", "<|\"|>"),
    ("<escape>", "<escape>"),
];

pub(super) struct Reader<'a> {
    /// What is left of the text.
    pub rest: &'a str,
    /// Whether an object may be in parentheses, and a value without quotes in it (Gemma).
    pub is_bare: bool,
}

impl<'a> Reader<'a> {
    /// Skips blanks, comments, and escapes that were meant as blanks.
    fn blanks(&mut self) {
        const ESCAPES: [&str; 3] = ["\\n", "\\t", "\\r"];
        loop {
            self.rest = self.rest.trim_start();
            let mut lines = ["//", "#"].iter();
            let line = lines.find_map(|begin| self.rest.strip_prefix(begin));
            let after = line
                .map(|line| line.split_at(line.find('\n').unwrap_or(line.len())).1)
                .or_else(|| Some(self.rest.strip_prefix("/*")?.split_once("*/")?.1))
                .or_else(|| ESCAPES.iter().find_map(|it| self.rest.strip_prefix(it)));
            match after {
                Some(after) => self.rest = after,
                None => return,
            }
        }
    }

    fn eat(&mut self, wanted: char) -> Option<()> {
        self.blanks();
        // Its full-width form is the same sign.
        let wide = char::from_u32(u32::from(wanted) + 0xfee0)?;
        self.rest = self.rest.strip_prefix([wanted, wide])?;
        Some(())
    }

    pub fn value(&mut self, depth: usize) -> Option<Value> {
        self.blanks();
        if depth > DEPTH {
            return None;
        }
        match self.rest.chars().next()? {
            '{' => self.object('{', '}', depth),
            '(' if self.is_bare => self.object('(', ')', depth),
            '[' => self.array(depth),
            _ => self.text().map(Value::String).or_else(|| self.word()),
        }
    }

    fn object(&mut self, begin: char, end: char, depth: usize) -> Option<Value> {
        self.eat(begin)?;
        self.blanks();
        if depth == 0 && self.rest.starts_with('{') {
            // As in a template, where one brace has to be written as two.
            let inner = self.object('{', '}', depth + 1)?;
            return self.eat(end).map(|()| inner);
        }
        let mut fields = Map::new();
        loop {
            while self.eat(',').is_some() {}
            if self.eat(end).is_some() {
                return Some(Value::Object(fields));
            }
            let name = self.string().or_else(|| self.bare_name())?;
            self.assign()?;
            let value = self.bare_value().or_else(|| self.value(depth + 1))?;
            fields.insert(name, value);
            let before = self.rest;
            if self.eat(',').is_none() && !self.begins_name(before) {
                self.eat(end)?;
                return Some(Value::Object(fields));
            }
        }
    }

    /// What stands between a name and its value.
    fn assign(&mut self) -> Option<()> {
        self.eat(':').or_else(|| {
            self.eat('=')?;
            self.rest = self.rest.strip_prefix('>').unwrap_or(self.rest);
            Some(())
        })
    }

    /// A value without quotes.
    fn bare_value(&mut self) -> Option<Value> {
        let begun = self.rest.trim_start();
        if !self.is_bare || begun.starts_with(['{', '[', '(', '<', '"', '\'']) {
            return None;
        }
        let (value, rest) = begun.split_at(begun.find([',', '}', ')'])?);
        self.rest = rest;
        Some(serde_json::from_str(value).unwrap_or_else(|_| value.trim_end().into()))
    }

    /// Whether a name follows, where only a comma is missing: a quote begins the next line after `before`, or a colon
    /// follows a word in quotes.
    fn begins_name(&self, before: &str) -> bool {
        let Some(name) = self.rest.strip_prefix('"') else {
            return false;
        };
        let (skipped, _) = before.split_at(before.len() - self.rest.len());
        let is_name = |(name, rest): (&str, &str)| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && rest.trim_start().starts_with(':')
        };
        skipped.contains('\n') || name.split_once('"').is_some_and(is_name)
    }

    /// A string, or several that `+` joins.
    fn text(&mut self) -> Option<String> {
        let mut text = self.string()?;
        loop {
            let rest = self.rest;
            if self.eat('+').is_none() {
                self.rest = rest;
                return Some(text);
            }
            self.blanks();
            text.push_str(&self.string()?);
        }
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
        let (text, rest) = QUOTES.iter().find_map(|(begin, end)| {
            let inside = self.rest.strip_prefix(begin)?;
            // Nothing is escaped between tokens.
            if begin.starts_with('<') {
                let (text, rest) = inside.split_once(end)?;
                return Some((text.to_owned(), rest));
            }
            let (mut text, mut rest) = (String::new(), inside);
            loop {
                if let Some(after) = rest.strip_prefix(end) {
                    return Some((text, after));
                }
                let mut characters = rest.chars();
                rest = match characters.next()? {
                    // Not `\b` and `\f`: here, they are meant as part of a pattern.
                    '\\' => escape(characters.as_str(), "\"\\/'", &mut text)?,
                    character => {
                        text.push(character);
                        characters.as_str()
                    }
                };
            }
        })?;
        self.rest = rest;
        Some(text)
    }

    fn bare_name(&mut self) -> Option<String> {
        let name = self.take(|c| c.is_alphanumeric() || "_-$".contains(c));
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// The characters that a text begins with, as long as they are such.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn word(&mut self) -> Option<Value> {
        match self.take(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
            "null" | "None" | "undefined" | "NaN" => Some(Value::Null),
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            number => {
                let number = number.strip_prefix('+').unwrap_or(number);
                if let Some(digits) = number.strip_prefix("0x") {
                    return u64::from_str_radix(digits, 16).ok().map(Value::from);
                }
                let digits = number.trim_start_matches('0');
                let begins = digits.starts_with(|c: char| c.is_ascii_digit());
                let number: Number =
                    serde_json::from_str(if begins { digits } else { number }).ok()?;
                Some(number.into())
            }
        }
    }
}
