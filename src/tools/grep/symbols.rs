//! Finds definitions by name, for mentions.
//!
//! No language is parsed: a definition is a line with a keyword such as `fn` or `class` before a name, and ends where
//! its indentation suggests.
//!
//! A mistake costs a few lines too many or too few in a mention.

use std::path::PathBuf;

use grep_matcher::{Captures as _, Matcher as _};
use tokio_util::sync::CancellationToken;

use super::matcher;
use super::search::Search;
use crate::tools::Withheld;
use crate::tools::files::roots;
use crate::workspace::Workspace;

/// How many lines are kept, the first ones by path.
const FOUND: usize = 1000;
/// Words that may precede the keyword.
const BEFORE: &str = r#"pub(?:\([^)]*\))?|export|default|declare|async|const|unsafe|extern|"[^"]*"|static|abstract|final|public|private|protected|internal|local|inline|virtual|override|sealed|open|data"#;
/// Keywords of definitions.
const DEFINING: &str = r"fn|struct|enum|union|trait|type|const|static|class|interface|protocol|extension|object|record|def|defp|defmodule|func|fun|function\*?|sub|module|mod|namespace|macro_rules!";

/// A line that defines something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The file, absolute.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The word before the name, such as `fn`.
    pub keyword: String,
    /// The name.
    pub name: String,
}

impl Symbol {
    /// The last line of the definition in `text`, counted from 1: lines indented deeper than the first one, empty lines
    /// in between, and lines that close it (`}`, `)`, `]`, `end`) or continue it (`{`, `where`, `) -> T {`).
    pub fn end(&self, text: &str) -> usize {
        let mut lines = text.lines().zip(1..).skip(self.line.saturating_sub(1));
        let Some((first, mut end)) = lines.next() else {
            return self.line;
        };
        let own = indentation(first);
        for (line, number) in lines {
            let words = line.trim();
            if words.is_empty() {
                continue;
            }
            if indentation(line) > own {
                end = number;
                continue;
            }
            let closes = words.starts_with(['}', ')', ']']) || words.trim_end_matches(';') == "end";
            let goes_on = words == "{"
                || words.starts_with("where")
                || closes && words.ends_with(['{', '(', '[']);
            if indentation(line) < own || !closes && !goes_on {
                break;
            }
            end = number;
            if !goes_on {
                break;
            }
        }
        end
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Definitions whose name contains the characters of `name` in order, ignoring case: in open buffers, otherwise in
/// files, without those that may hold secrets. Blocks; when cancelled, returns what was found so far.
pub fn symbols(workspace: &Workspace, name: &str, cancel: &CancellationToken) -> Vec<Symbol> {
    let Some(pattern) = pattern(name) else {
        return Vec::new();
    };
    let Ok(matcher) = matcher(&pattern, false) else {
        return Vec::new();
    };
    let search = Search {
        starts: roots(workspace),
        matcher,
        files: None,
        context: 0,
        limit: FOUND,
        withheld: Withheld::default(),
    };
    let Ok(hits) = search.run(workspace, cancel) else {
        return Vec::new();
    };
    let Ok(mut captures) = search.matcher.new_captures() else {
        return Vec::new();
    };
    let symbol = |(path, line, text): (PathBuf, u64, String)| {
        search
            .matcher
            .captures(text.as_bytes(), &mut captures)
            .ok()
            .filter(|found| *found)?;
        let group = |index| {
            text.get(captures.get(index).map(|at| at.start()..at.end())?)
                .map(str::to_owned)
        };
        Some(Symbol {
            path,
            line: usize::try_from(line).ok()?,
            keyword: group(1)?,
            name: group(2)?,
        })
    };
    hits.into_lines().filter_map(symbol).collect()
}

/// A regular expression for definitions: the keyword, and the name. `None` for text that no name contains.
fn pattern(name: &str) -> Option<String> {
    let is_in_names = |c: char| c.is_alphanumeric() || "_$.".contains(c);
    if name.is_empty() || !name.chars().all(is_in_names) {
        return None;
    }
    let within = r"[\w$.]*";
    let each: Vec<String> = name
        .chars()
        .map(|c| regex_syntax::escape(c.encode_utf8(&mut [0; 4])))
        .collect();
    let name = each.join(within);
    // A method in Go has its receiver in between.
    Some(format!(
        r"^\s*(?:(?:{BEFORE})\s+)*({DEFINING})\s+(?:\([^)]*\)\s*)?((?i:{within}{name}{within}))"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_recognized_by_line() {
        let check = |line: &str, name: &str, expected: Option<(&str, &str)>| {
            let matcher = matcher(&pattern(name).unwrap(), false).unwrap();
            let mut captures = matcher.new_captures().unwrap();
            let is_found = matcher.captures(line.as_bytes(), &mut captures).unwrap();
            let group = |index| {
                captures
                    .get(index)
                    .map(|at| &line.as_bytes()[at.start()..at.end()])
            };
            let found = is_found.then(|| (group(1).unwrap(), group(2).unwrap()));
            assert_eq!(
                found,
                expected.map(|(word, name)| (word.as_bytes(), name.as_bytes())),
                "{line}"
            );
        };
        check(
            "pub(super) async fn parse_line(text: &str) {",
            "pl",
            Some(("fn", "parse_line")),
        );
        check("    pub const fn of<T>() {", "of", Some(("fn", "of")));
        check(
            "const MAX_LINES: usize = 3;",
            "maxl",
            Some(("const", "MAX_LINES")),
        );
        check(
            "pub static NAME: &str = \"\";",
            "name",
            Some(("static", "NAME")),
        );
        check(
            "pub unsafe extern \"C\" fn call() {}",
            "call",
            Some(("fn", "call")),
        );
        check(
            "func (s *Server) Listen() {",
            "listen",
            Some(("func", "Listen")),
        );
        check(
            "export default class Chat extends View {",
            "chat",
            Some(("class", "Chat")),
        );
        check(
            "local function M.open(path)",
            "open",
            Some(("function", "M.open")),
        );
        check(
            "macro_rules! check {",
            "check",
            Some(("macro_rules!", "check")),
        );
        check("    def save(self):", "save", Some(("def", "save")));
        check("fn größe() {", "RÖß", Some(("fn", "größe")));
        check("// the type parser", "parser", None);
        check("    parse(line)", "parse", None);
        check("fn line_parse() {", "pl", None);
    }

    #[test]
    fn text_that_is_not_a_name_is_not_searched() {
        for name in ["", "a b", "(", "a|b", "a\nb"] {
            assert_eq!(pattern(name), None, "{name}");
        }
    }

    #[test]
    fn definitions_end_with_their_indentation() {
        let check = |line: usize, text: &str, expected: usize| {
            let symbol = Symbol {
                path: PathBuf::new(),
                line,
                keyword: String::new(),
                name: String::new(),
            };
            assert_eq!(symbol.end(text), expected, "{text}");
        };
        check(1, "fn a() {\n    b\n\n    c\n}\n\nfn d() {}\n", 5);
        check(1, "fn a(\n    b: u8,\n) -> u8 {\n    b\n}\nfn d() {}\n", 5);
        check(1, "fn a<T>(b: T)\nwhere\n    T: Copy,\n{\n    b\n}\nx\n", 6);
        check(
            2,
            "impl A {\n    fn a() {\n        b\n    }\n\n    fn c() {}\n}\n",
            4,
        );
        check(1, "const A: u8 = 1;\nconst B: u8 = 2;\n", 1);
        check(1, "def a():\n    b\n\n    c\n\ndef d():\n    pass\n", 4);
        check(1, "def a\n  b\nend\n\ndef c\nend\n", 3);
        check(1, "int f(void) {}\n", 1);
        check(9, "short\n", 9);
    }
}
