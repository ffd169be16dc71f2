//! Rules as they are written: `tool`, `tool(path pattern)`, `run_command(words)`, `network(words)`.
//!
//! A pattern of words is parsed like a shell command.
//!
//! A `*` on its own matches one word, or at the end any number of words; every other word has to match exactly. A path
//! pattern is a glob (`*` stays within a folder, `**` does not), relative to the workspace folder or absolute. A
//! restricting rule matches every spelling that some file system considers equal (case, Unicode forms); an allowing one
//! is exact.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};

use super::{programs, windows};
use crate::text::shell::{self, Dialect, Word};
use crate::tools::COMMAND;
use crate::workspace::protect;

/// The name used in rules for commands with network access.
pub(super) const NETWORK: &str = "network";

/// Special characters of a path pattern.
const GLOB: [char; 4] = ['*', '?', '[', '{'];
/// The same characters, escaped.
const ESCAPED: [&str; 7] = ["[*]", "[?]", "[[]", "[]]", "[{]", "[}]", "[!]"];

/// Whether a rule matches a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touch {
    Not,
    /// Cannot be decided.
    Perhaps,
    Surely,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
enum Pattern {
    /// Every call of the tool.
    Anything,
    Paths {
        exact: GlobMatcher,
        /// The same pattern for case-folded names.
        folded: Option<GlobMatcher>,
    },
    Words {
        /// What each word has to be; `None` for anything.
        fixed: Vec<Option<String>>,
        /// Whether more words may follow.
        is_open: bool,
    },
}

/// As it was written.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Rule {
    /// Parses a rule.
    ///
    /// # Errors
    /// It is not a rule; the text names it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let failed = |why: &dyn fmt::Display| format!("`{text}`: {why}");
        let (tool, pattern) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((tool, rest)) => {
                let pattern = rest
                    .strip_suffix(')')
                    .ok_or_else(|| failed(&"missing closing `)`"))?;
                (tool.trim(), Some(pattern))
            }
        };
        if tool.is_empty()
            || !tool
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            return Err(failed(
                &"expected `tool` or `tool(pattern)`, such as `edit_file(docs/**)`",
            ));
        }
        let pattern = match pattern {
            None => Pattern::Anything,
            Some(pattern) if matches!(tool, COMMAND | NETWORK) => {
                words(pattern).map_err(|why| failed(&why))?
            }
            Some(pattern) => {
                let compile = |pattern: &str| {
                    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                    glob.map(|glob| glob.compile_matcher())
                };
                let exact = compile(pattern).map_err(|error| failed(&error))?;
                Pattern::Paths {
                    exact,
                    folded: compile(&folded(pattern)).ok(),
                }
            }
        };
        Ok(Self {
            text: text.trim().to_owned(),
            tool: tool.to_owned(),
            pattern,
        })
    }

    /// Whether the rule is about the tool.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.tool == tool
    }

    /// Whether it covers every call of its tool.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.pattern, Pattern::Anything)
    }

    /// Whether it matches this path.
    pub(super) fn has_path(&self, path: &str) -> bool {
        match &self.pattern {
            Pattern::Anything => true,
            Pattern::Paths { exact, .. } => exact.is_match(path),
            Pattern::Words { .. } => false,
        }
    }

    /// Whether it matches this path under any of its names.
    pub(super) fn has_path_by_any_name(&self, path: &str) -> bool {
        let by_folded = |glob: &GlobMatcher| glob.is_match(folded(path));
        self.has_path(path)
            || matches!(&self.pattern, Pattern::Paths { folded: Some(glob), .. } if by_folded(glob))
    }

    /// Whether it is limited to some paths, which an 8.3 short name may disguise.
    pub(super) fn is_about_paths(&self) -> bool {
        matches!(self.pattern, Pattern::Paths { .. })
    }

    /// Whether it matches these words of a simple command.
    pub(super) fn has_words(&self, words: &[String]) -> bool {
        match &self.pattern {
            Pattern::Anything => true,
            Pattern::Paths { .. } => false,
            Pattern::Words { fixed, is_open } => {
                let long_enough = if *is_open {
                    words.len() >= fixed.len()
                } else {
                    words.len() == fixed.len()
                };
                long_enough
                    && fixed
                        .iter()
                        .zip(words)
                        .all(|(slot, word)| slot.as_ref().is_none_or(|text| text == word))
            }
        }
    }

    /// Whether it matches words that may depend on more than the line.
    pub(super) fn touches(&self, words: &[Word]) -> Touch {
        let Pattern::Words { fixed, is_open } = &self.pattern else {
            return if self.is_bare() {
                Touch::Surely
            } else {
                Touch::Not
            };
        };
        let mut words = words.iter();
        for slot in fixed {
            match words.next().map(Word::text) {
                None => return Touch::Not,
                // It may be any word, or several.
                Some(None) => return Touch::Perhaps,
                Some(Some(text)) if slot.as_ref().is_some_and(|slot| *slot != text) => {
                    return Touch::Not;
                }
                Some(Some(_)) => {}
            }
        }
        match words.next() {
            Some(more) if !is_open && more.text().is_some() => Touch::Not,
            // It may become no word at all.
            Some(_) if !is_open => Touch::Perhaps,
            _ => Touch::Surely,
        }
    }

    /// The same rule for words that are folded as Windows does it.
    pub(super) fn on_windows(&self) -> Self {
        let mut rule = self.clone();
        if let Pattern::Words { fixed, .. } = &mut rule.pattern {
            for (at, word) in fixed.iter_mut().enumerate() {
                if let Some(text) = word {
                    *text = if at == 0 {
                        windows::canonical(text)
                    } else {
                        text.to_lowercase()
                    };
                }
            }
        }
        rule
    }

    /// Whether it is about a program, whatever its arguments.
    pub(super) fn is_about_program(&self, program: &str) -> bool {
        let Pattern::Words { fixed, .. } = &self.pattern else {
            return false;
        };
        let first = fixed.first().and_then(Option::as_ref);
        first.is_none_or(|word| word == program)
    }

    /// Whether it matches exactly one command.
    pub(super) fn is_exact(&self) -> bool {
        matches!(&self.pattern, Pattern::Words { fixed, is_open: false } if !fixed.contains(&None))
    }

    /// Why it may allow nothing, if so.
    pub(crate) fn futile(&self) -> Option<String> {
        let Pattern::Words { fixed, .. } = &self.pattern else {
            return None;
        };
        let words: Vec<String> = fixed
            .iter()
            .map_while(Clone::clone)
            .chain([String::new()])
            .collect();
        let is_futile = !self.is_exact() && words.len() > 1 && programs::runs_others(&words);
        let program = words.first().filter(|_| is_futile)?;
        Some(format!(
            "`{self}`: `{program}` can run or affect other commands; that requires a rule with the whole command"
        ))
    }

    /// Whether a person may add it in a permission request: it names a program and its first argument, or a folder of
    /// the workspace.
    pub(super) fn is_narrow(&self) -> bool {
        match &self.pattern {
            Pattern::Anything => false,
            Pattern::Words { fixed, .. } => {
                let named = fixed.iter().take_while(|word| word.is_some()).count();
                self.is_exact() || named >= 2
            }
            Pattern::Paths { exact, .. } => {
                let first = exact.glob().glob().split('/').next().unwrap_or_default();
                let is_literal = !ESCAPED
                    .iter()
                    .fold(first.to_owned(), |name, one| name.replace(one, ""))
                    .contains(GLOB);
                is_literal && !first.is_empty()
            }
        }
    }
}

/// A path or pattern with each name case-folded.
fn folded(path: &str) -> String {
    let separators: &[char] = if cfg!(windows) { &['/', '\\'] } else { &['/'] };
    path.split(separators)
        .map(protect::fold)
        .collect::<Vec<_>>()
        .join("/")
}

/// Whether a path may be an alias: Windows gives long names short ones such as `SECRET~1`.
pub(super) fn may_be_short(path: &str) -> bool {
    let is_short = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default();
        stem.len() <= 8
            && stem
                .split_once('~')
                .is_some_and(|(_, number)| number.parse::<u32>().is_ok())
    };
    path.split(['/', '\\']).any(is_short)
}

fn words(pattern: &str) -> Result<Pattern, String> {
    let unclear = |why| format!("{why}; quote what is meant literally");
    let line = shell::read(pattern, Dialect::Posix).map_err(unclear)?;
    let commands = line.patterned().map_err(unclear)?;
    let [words] = commands.as_slice() else {
        return Err("a rule matches one simple command".to_owned());
    };
    let mut fixed: Vec<_> = words.iter().map(Word::text).collect();
    let is_open = fixed.pop_if(|last| last.is_none()).is_some();
    Ok(Pattern::Words { fixed, is_open })
}

/// The rule for exactly this command.
pub(super) fn of_words(tool: &str, words: &[String]) -> String {
    format!("{tool}({})", shell::quoted(words))
}

/// The rule for exactly this path.
pub(super) fn of_path(tool: &str, path: &str) -> String {
    format!("{tool}({})", globset::escape(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str) -> shell::Words {
        let line = shell::read(line, Dialect::Posix).unwrap();
        line.plain().unwrap().remove(0)
    }

    #[track_caller]
    fn check(rule: &str, line: &str, expected: bool) {
        let words = words_of(line);
        assert_eq!(
            Rule::parse(rule).unwrap().has_words(&words),
            expected,
            "{rule} {line}"
        );
    }

    #[test]
    fn words_match_one_by_one() {
        check("run_command(cargo test *)", "cargo test", true);
        check("run_command(cargo test *)", "cargo test --lib 'a b'", true);
        check("run_command(cargo test *)", "cargo testy", false);
        check("run_command(cargo test)", "cargo test --lib", false);
        check(
            "run_command(npm run * --silent)",
            "npm run build --silent",
            true,
        );
        check("run_command(npm run * --silent)", "npm run --silent", false);
        check("run_command(echo 'a b' \\*)", "echo 'a b' '*'", true);
        check("run_command(echo '*')", "echo x", false);
        check("run_command(*)", "ls", true);
        check("run_command", "ls -l", true);
    }

    #[test]
    fn invalid_rules_are_rejected_with_a_reason() {
        for (rule, why) in [
            ("edit_file(docs/**", "missing closing `)`"),
            ("edit file(x)", "expected `tool` or `tool(pattern)`"),
            ("", "expected `tool` or `tool(pattern)`"),
            ("edit_file(a{)", "alternate"),
            ("run_command()", "lacks a command"),
            ("run_command(a && b)", "one simple command"),
            ("run_command(ls a*)", "contains a pattern; quote"),
            ("run_command(echo $HOME)", "contains an expansion"),
        ] {
            let problem = Rule::parse(rule).unwrap_err();
            assert!(
                problem.contains(why) && problem.contains(rule),
                "{rule}: {problem}"
            );
        }
    }

    #[test]
    fn rules_that_can_never_match_are_reported() {
        let check = |rule: &str, expected: bool| {
            assert_eq!(
                Rule::parse(rule).unwrap().futile().is_some(),
                expected,
                "{rule}"
            );
        };
        check("run_command(sudo *)", true);
        check("run_command(git -c * status)", true);
        check("run_command(sh build.sh)", false);
        check("run_command(python *)", false);
        check("run_command(*)", false);
        check("edit_file(**)", false);
    }

    #[test]
    fn generated_rules_parse_back() {
        for line in ["cargo test", "grep 'a b' 'x)' '*' '$y'", r#"echo "it's""#] {
            let words = words_of(line);
            let rule = Rule::parse(&of_words(COMMAND, &words)).unwrap();
            assert!(rule.has_words(&words) && rule.is_exact(), "{rule}");
        }
        for path in ["src/a.rs", "a[1]{b}*.md", "/other/x"] {
            let rule = Rule::parse(&of_path("edit_file", path)).unwrap();
            assert!(rule.has_path(path) && !rule.has_path("src/b.rs"), "{rule}");
            assert_eq!(rule.is_narrow(), !path.starts_with('/'), "{rule}");
        }
    }

    #[test]
    fn restricting_rules_match_all_spellings_of_a_path() {
        let rule = Rule::parse("read_file(Secret/**/*.tx[t])").unwrap();
        let names = [
            "Secret/a.txt",
            "secret/A.TXT",
            "SECRET/sub/a.Txt",
            "ｓecret/a.txt",
            "Secret./a.txt",
            "Se\u{200b}cret/a.txt",
        ];
        for name in names {
            assert!(rule.has_path_by_any_name(name), "{name}");
        }
        assert!(
            rule.has_path("Secret/a.txt") && !rule.has_path("secret/a.txt"),
            "what allows is exact"
        );
        assert!(
            !rule.has_path_by_any_name("secrets/a.txt")
                && !rule.has_path_by_any_name("secret/a.md")
        );
        let accented = Rule::parse("read_file(caf\u{e9}/**)").unwrap();
        assert!(accented.has_path_by_any_name("CAFE\u{301}/x"));
    }

    #[test]
    fn short_names_are_recognized() {
        for (path, is_short) in [
            ("SECRET~1/s.txt", true),
            ("a/LONGNA~2.TXT", true),
            ("a\\GIT~1", true),
            ("notes~", false),
            ("file.txt.~1~", false),
            ("src/much-too-long~1", false),
        ] {
            assert_eq!(may_be_short(path), is_short, "{path}");
        }
    }

    #[test]
    fn answers_add_narrow_rules_only() {
        let check = |rule: &str, expected: bool| {
            assert_eq!(Rule::parse(rule).unwrap().is_narrow(), expected, "{rule}");
        };
        check("run_command(cargo test *)", true);
        check("run_command(ls)", true);
        check("run_command(cargo *)", false);
        check("run_command(* test)", false);
        check("run_command", false);
        check("edit_file(src/**)", true);
        check("edit_file(**)", false);
        check("edit_file(*.rs)", false);
        check("edit_file(/home/**)", false);
        check("edit_file", false);
    }
}
