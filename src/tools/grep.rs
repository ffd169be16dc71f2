//! `grep`: lines that match a regular expression, in the editor's buffers for open files, otherwise on disk.

mod hits;
mod search;
pub(super) mod symbols;

use std::io;
use std::iter::Peekable;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use self::search::Search;
use super::files::{blocking, missing, search_preview, secrecy, starts};
use super::pattern::PathPattern;
use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::text::display::escape_line;

const RESULTS: usize = 100;
const MAX_RESULTS: usize = 1000;
const MAX_CONTEXT: usize = 20;
/// The most a compiled pattern takes, and again what it keeps while it searches, in bytes.
const MAX_MEMORY: usize = 8 << 20;

pub(super) struct Grep;

/// What to search for.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Rust syntax, for one line.
    pattern: String,
    /// File or directory; by default the workspace.
    path: Option<String>,
    /// Only files whose path matches, such as `*.rs`.
    glob: Option<String>,
    /// Lines to show around each match (0).
    context: Option<usize>,
    #[serde(default)]
    ignore_case: bool,
    /// Matching lines to show (100).
    max_results: Option<usize>,
}

impl TypedTool for Grep {
    type Arguments = Arguments;
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "Search file contents with a regular expression. Includes unsaved changes; skips files ignored by .gitignore.";
    const KIND: ToolKind = ToolKind::Search;
    const EXAMPLE: &'static str = r#"{"pattern": "fn \\w+_test", "path": "src", "glob": "*.rs"}"#;

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let starts = starts(context, arguments.path.as_deref())?;
        let files = arguments
            .glob
            .map(|glob| format!(" in {}", escape_line(&glob)))
            .unwrap_or_default();
        let title = format!("Search “{}”{files}", escape_line(&arguments.pattern));
        Ok(Preview {
            caution: starts.iter().find_map(secrecy),
            ..search_preview(context, &title, &starts)
        })
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let glob = arguments
            .glob
            .as_deref()
            .filter(|glob| !glob.trim().is_empty());
        let (pattern, ignore_case) = (arguments.pattern, arguments.ignore_case);
        let mut readings = blocking(context, move |_, _| readings(&pattern, ignore_case)).await??;
        let (first, _) = readings.peek().expect("a pattern has a reading");
        let mut search = Search {
            matcher: first.clone(),
            starts: starts(context, arguments.path.as_deref())?,
            files: glob.map(PathPattern::new).transpose()?,
            context: arguments.context.unwrap_or(0).min(MAX_CONTEXT),
            limit: arguments
                .max_results
                .unwrap_or(RESULTS)
                .clamp(1, MAX_RESULTS),
            withheld: context.withheld.clone(),
        };
        let starts = search.starts.clone();
        match blocking(context, move |workspace, cancel| {
            let mut nothing = None;
            for (matcher, note) in readings {
                search.matcher = matcher;
                let hits = search.run(workspace, cancel)?;
                if !hits.is_empty() {
                    return Ok((hits, note));
                }
                nothing = nothing.or(Some((hits, note)));
            }
            Ok(nothing.expect("a pattern has a reading"))
        })
        .await?
        {
            Ok((hits, note)) => {
                let content = note + &hits.report(&context.workspace, context.room(hits::TOTAL));
                Ok(content.into())
            }
            Err((index, error)) => {
                if error.kind() == io::ErrorKind::NotFound {
                    return Err(missing(context, &starts[index]).await);
                }
                let name = context.shown(&starts[index]);
                Err(ToolError(format!("cannot search {name}: {error}")))
            }
        }
    }
}

/// How a pattern may be meant, most likely first, each with a note: as written, with `\|` between alternatives as in
/// other programs, and as plain text. Each one is compiled and used only if the one before it finds nothing.
fn readings(
    pattern: &str,
    ignore_case: bool,
) -> Result<Peekable<impl Iterator<Item = (RegexMatcher, String)> + use<>>, ToolError> {
    // JSON decodes `\b` as a character that no source contains.
    let pattern = pattern.replace('\u{8}', r"\b");
    let written = matcher(&pattern, ignore_case);
    let why = match &written {
        Ok(_) => "no match as a regular expression",
        Err(ToolError(why)) => why.lines().next().unwrap_or_default(),
    }
    .to_owned();
    let is_text = pattern.lines().count() == 1 && !pattern.contains('\\');
    let others = [
        (pattern.replace(r"\|", "|"), r"with `\|` as `|`"),
        (
            if is_text {
                regex_syntax::escape(&pattern)
            } else {
                pattern.clone()
            },
            "for the literal text",
        ),
    ];
    let others = others.into_iter().filter_map(move |(other, how)| {
        let matcher = matcher(&other, ignore_case).ok()?;
        // A literal `||` would be an alternative that every line has.
        let is_other = other != pattern && !matcher.is_match(b"").unwrap_or(true);
        is_other.then(|| (matcher, format!("[{why}; searched {how}]\n")))
    });
    let (written, error) = match written {
        Ok(matcher) => (Some((matcher, String::new())), None),
        Err(error) => (None, Some(error)),
    };
    let mut readings = written.into_iter().chain(others).peekable();
    match error {
        Some(error) if readings.peek().is_none() => Err(error),
        _ => Ok(readings),
    }
}

/// A matcher that runs in linear time.
fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError("the pattern is empty".to_owned()));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(ignore_case)
        .multi_line(true)
        .crlf(true)
        .line_terminator(Some(b'\n'));
    builder.size_limit(MAX_MEMORY).dfa_size_limit(MAX_MEMORY);
    builder
        .build(pattern)
        .map_err(|error| ToolError(explained(pattern, &error)))
}

fn explained(pattern: &str, error: &grep_regex::Error) -> String {
    if let grep_regex::ErrorKind::NotAllowed(_) = error.kind() {
        return "the pattern spans lines, but the search goes line by line; search for one of the lines and use `context`"
            .to_owned();
    }
    let literally = regex_syntax::escape(pattern);
    let hint = if literally == pattern {
        String::new()
    } else {
        format!("\nTo find the literal text, use {literally}")
    };
    // Everything before the last line shows the pattern as wrapped by the library.
    let error = error.to_string();
    let reason = error
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    format!("the pattern is not a valid regular expression: {reason}{hint}")
}

#[cfg(test)]
mod tests {
    use super::{matcher, readings};

    #[test]
    fn a_pattern_that_finds_nothing_is_read_in_other_ways() {
        let check = |pattern: &str, expected: &[&str]| {
            let notes = readings(pattern, false).unwrap().map(|(_, note)| note);
            let notes: Vec<_> = notes.map(|note| note.trim_end().to_owned()).collect();
            assert_eq!(notes, expected, "{pattern}");
        };
        let none = "[no match as a regular expression; searched";
        check("word", &[""]);
        check(".html(x)", &["", &format!("{none} for the literal text]")]);
        check(r"a\|b", &["", &format!("{none} with `\\|` as `|`]")]);
        check(r"a \|\| b", &[""]);
        check(r"call\(\)", &[""]);
        let invalid = "[the pattern is not a valid regular expression: unclosed group; searched";
        check("f(x", &[&format!("{invalid} for the literal text]")]);
    }

    #[test]
    fn invalid_patterns_are_explained_with_a_remedy() {
        let error = matcher("foo(bar", false).unwrap_err().0;
        let expected = "the pattern is not a valid regular expression: unclosed group\nTo find the literal text, use foo\\(bar";
        assert_eq!(error, expected);
        assert!(
            matcher("a\nb", false)
                .unwrap_err()
                .0
                .contains("line by line")
        );
        assert!(
            matcher("(?=x)", false)
                .unwrap_err()
                .0
                .contains("look-around")
        );
        assert!(
            matcher(r"\w{1000}{1000}", false)
                .unwrap_err()
                .0
                .contains("size limit")
        );
        assert_eq!(matcher("", false).unwrap_err().0, "the pattern is empty");
    }
}
