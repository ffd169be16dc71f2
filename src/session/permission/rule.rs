//! Rules as they are written: `tool`, `tool(path pattern)`, `run_command(words)`, `network(words)`.
//!
//! A pattern of words is read as a shell reads a command. A `*` that stands alone is one word, or at the end any
//! number of words; everything else is that word exactly. A path pattern is a glob (`*` stays in its folder, `**` does
//! not), relative to the workspace folder or absolute.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};

use super::command::{self, Word};
use super::programs;

/// The tool that runs commands.
pub(super) const COMMAND: &str = "run_command";
/// What a command is called that may reach the network.
pub(super) const NETWORK: &str = "network";

/// What means more than itself in a path pattern.
const GLOB: [char; 4] = ['*', '?', '[', '{'];
/// The same, meaning itself.
const ESCAPED: [&str; 7] = ["[*]", "[?]", "[[]", "[]]", "[{]", "[}]", "[!]"];

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
enum Pattern {
    /// Every call.
    Anything,
    Paths(GlobMatcher),
    Words {
        fixed: Vec<Word>,
        /// More words may follow.
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
    /// Reads a rule.
    ///
    /// # Errors
    /// When it is none, in words that name it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let failed = |why: &dyn fmt::Display| format!("`{text}`: {why}");
        let (tool, pattern) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| failed(&"the closing `)` is missing"))?;
                (tool.trim(), Some(pattern))
            }
        };
        if tool.is_empty() || !tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(failed(&"a rule is `tool` or `tool(pattern)`, such as `edit_file(docs/**)`"));
        }
        let pattern = match pattern {
            None => Pattern::Anything,
            Some(pattern) if matches!(tool, COMMAND | NETWORK) => words(pattern).map_err(|why| failed(&why))?,
            Some(pattern) => {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                Pattern::Paths(glob.map_err(|error| failed(&error))?.compile_matcher())
            }
        };
        Ok(Self { text: text.trim().to_owned(), tool: tool.to_owned(), pattern })
    }

    /// Whether the rule speaks of the tool. One about editing holds whichever way the model edits.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.tool == tool || (self.tool == "edit_file" && tool == "apply_patch")
    }

    /// Whether it speaks of every call of its tool.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.pattern, Pattern::Anything)
    }

    /// Whether it speaks of this path.
    pub(super) fn has_path(&self, path: &str) -> bool {
        match &self.pattern {
            Pattern::Anything => true,
            Pattern::Paths(glob) => glob.is_match(path),
            Pattern::Words { .. } => false,
        }
    }

    /// Whether it speaks of these words of a simple command.
    pub(super) fn has_words(&self, words: &[String]) -> bool {
        match &self.pattern {
            Pattern::Anything => true,
            Pattern::Paths(_) => false,
            Pattern::Words { fixed, is_open } => {
                let long_enough = if *is_open { words.len() >= fixed.len() } else { words.len() == fixed.len() };
                long_enough
                    && fixed.iter().zip(words).all(|(slot, word)| match slot {
                        Word::Star => true,
                        Word::Is(text) => text == word,
                    })
            }
        }
    }

    /// Whether it names one command, every word of it.
    pub(super) fn is_exact(&self) -> bool {
        matches!(&self.pattern, Pattern::Words { fixed, is_open: false } if !fixed.contains(&Word::Star))
    }

    /// Why it allows nothing, where that is so.
    pub(crate) fn futile(&self) -> Option<String> {
        let Pattern::Words { fixed, .. } = &self.pattern else { return None };
        let words: Vec<String> = fixed.iter().map_while(Word::text).chain([String::new()]).collect();
        let is_futile = !self.is_exact() && words.len() > 1 && programs::runs_others(&words);
        let program = words.first().filter(|_| is_futile)?;
        Some(format!("`{self}`: `{program}` can run anything; only a rule with all words allows it"))
    }

    /// Whether a person may add it by answering a question: it names a program and its first argument, or a
    /// folder of the workspace.
    pub(super) fn is_narrow(&self) -> bool {
        match &self.pattern {
            Pattern::Anything => false,
            Pattern::Words { fixed, .. } => {
                let named = fixed.iter().take_while(|word| **word != Word::Star).count();
                self.is_exact() || named >= 2
            }
            Pattern::Paths(glob) => {
                let first = glob.glob().glob().split('/').next().unwrap_or_default();
                let is_literal =
                    !ESCAPED.iter().fold(first.to_owned(), |name, one| name.replace(one, "")).contains(GLOB);
                is_literal && !first.is_empty()
            }
        }
    }
}

fn words(pattern: &str) -> Result<Pattern, String> {
    let commands = command::commands(pattern).map_err(|why| format!("{why}; quote what is meant as it is"))?;
    let Ok([mut fixed]) = <[Vec<Word>; 1]>::try_from(commands) else {
        return Err("a rule is about one simple command".to_owned());
    };
    let is_open = fixed.last() == Some(&Word::Star);
    if is_open {
        fixed.pop();
    }
    Ok(Pattern::Words { fixed, is_open })
}

/// The rule about one command, every word of it.
pub(super) fn of_words(tool: &str, words: &[String]) -> String {
    format!("{tool}({})", command::quoted(words))
}

/// The rule about one path.
pub(super) fn of_path(tool: &str, path: &str) -> String {
    let tool = if tool == "apply_patch" { "edit_file" } else { tool };
    format!("{tool}({})", globset::escape(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, line: &str, expected: bool) {
        let words = command::parse(line).unwrap().remove(0);
        assert_eq!(Rule::parse(rule).unwrap().has_words(&words), expected, "{rule} {line}");
    }

    #[test]
    fn words_are_matched_one_by_one() {
        check("run_command(cargo test *)", "cargo test", true);
        check("run_command(cargo test *)", "cargo test --lib 'a b'", true);
        check("run_command(cargo test *)", "cargo testy", false);
        check("run_command(cargo test)", "cargo test --lib", false);
        check("run_command(npm run * --silent)", "npm run build --silent", true);
        check("run_command(npm run * --silent)", "npm run --silent", false);
        check("run_command(echo 'a b' \\*)", "echo 'a b' '*'", true);
        check("run_command(echo '*')", "echo x", false);
        check("run_command(*)", "ls", true);
        check("run_command", "ls -l", true);
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_reason() {
        for (rule, why) in [
            ("edit_file(docs/**", "the closing `)` is missing"),
            ("edit file(x)", "a rule is `tool` or `tool(pattern)`"),
            ("", "a rule is `tool` or `tool(pattern)`"),
            ("edit_file(a{)", "alternate"),
            ("run_command()", "lacks a command"),
            ("run_command(a && b)", "one simple command"),
            ("run_command(ls a*)", "holds a pattern; quote"),
            ("run_command(echo $HOME)", "holds an expansion"),
        ] {
            let problem = Rule::parse(rule).unwrap_err();
            assert!(problem.contains(why) && problem.contains(rule), "{rule}: {problem}");
        }
    }

    #[test]
    fn a_rule_that_allows_nothing_is_noticed() {
        let check =
            |rule: &str, expected: bool| assert_eq!(Rule::parse(rule).unwrap().futile().is_some(), expected, "{rule}");
        check("run_command(sudo *)", true);
        check("run_command(git -c * status)", true);
        check("run_command(sh build.sh)", false);
        check("run_command(python *)", false);
        check("run_command(*)", false);
        check("edit_file(**)", false);
    }

    #[test]
    fn a_rule_that_was_made_is_read_as_what_it_was_made_of() {
        for line in ["cargo test", "grep 'a b' 'x)' '*' '$y'", r#"echo "it's""#] {
            let words = command::parse(line).unwrap().remove(0);
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
    fn answers_add_narrow_rules_only() {
        let check = |rule: &str, expected: bool| assert_eq!(Rule::parse(rule).unwrap().is_narrow(), expected, "{rule}");
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
