//! Translates a model's question into one for a language server: about a document, and a position in it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::places;
use crate::text::display::escape_line;
use crate::text::{LineIndex, Position, Range, line_breaks};
use crate::tools::files::{blocking, unless_cancelled};
use crate::tools::grep::symbols::symbols;
use crate::tools::{ToolContext, ToolError};
use crate::workspace::language::{Answer, Operation, Place, Question};
use crate::workspace::{EditorError, WorkspacePath, first_names, native};

pub(super) const NAME: &str = "code";
pub(super) const EXAMPLE: &str = r#"{"op": "references", "symbol": "parse_line"}"#;

/// What to ask.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {
    pub op: Operation,
    /// A name, such as `parse_line`; with `path` and `line` the one that is there.
    pub symbol: Option<String>,
    pub path: Option<String>,
    pub line: Option<usize>,
    /// Left out: the symbol's, or the line's first name.
    column: Option<usize>,
    /// For rename.
    new_name: Option<String>,
}

impl Arguments {
    /// The name to give.
    pub fn new_name(&self) -> Option<&str> {
        self.new_name.as_deref()
    }

    /// A description of its subject.
    pub fn named(&self) -> String {
        let place = || match (&self.path, self.line) {
            (Some(path), Some(line)) => format!("{path}:{line}"),
            (Some(path), None) => path.clone(),
            _ => "the workspace".to_owned(),
        };
        let name = self
            .symbol
            .as_ref()
            .map_or_else(place, |symbol| format!("`{symbol}`"));
        escape_line(&name).into_owned()
    }
}

/// The language servers' answer.
pub(super) async fn answer(
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<Answer, ToolError> {
    let operations = context.workspace.editor().operations();
    if !operations.contains(&arguments.op) {
        let title = arguments.op.title();
        return Err(ToolError(format!(
            "this editor doesn't support {title}; use grep and edit the files instead"
        )));
    }
    let question = question(context, arguments).await?;
    ask(context, question).await
}

async fn ask(context: &ToolContext, question: Question) -> Result<Answer, ToolError> {
    let answer = unless_cancelled(context, context.workspace.editor().language(question)).await?;
    answer.map_err(|EditorError(why)| {
        ToolError(format!(
            "the language servers do not respond: {why}; use grep instead"
        ))
    })
}

async fn question(context: &ToolContext, arguments: &Arguments) -> Result<Question, ToolError> {
    let operation = arguments.op;
    let mut question = Question::new(operation);
    match operation {
        Operation::WorkspaceSymbols => {
            let symbol = arguments
                .symbol
                .clone()
                .ok_or_else(|| missing("`symbol`, the name to look for,"))?;
            question.query = Some(symbol);
            return Ok(question);
        }
        Operation::DocumentSymbols | Operation::Format => {
            let path = arguments
                .path
                .as_deref()
                .ok_or_else(|| missing("`path`, the file,"))?;
            question.uri = Some(uri(context, &context.resolve(path)?)?);
            return Ok(question);
        }
        Operation::Rename => {
            let name = arguments
                .new_name
                .clone()
                .filter(|name| !name.trim().is_empty());
            question.new_name = Some(name.ok_or_else(|| missing("`new_name`"))?);
        }
        _ => {}
    }
    let (uri, position) = spot(context, arguments).await?;
    Ok(Question {
        uri: Some(uri),
        position: Some(position),
        ..question
    })
}

fn missing(what: &str) -> ToolError {
    ToolError(format!("{what} is missing\nExample: {EXAMPLE}"))
}

/// The document and the position that are meant.
async fn spot(
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<(String, Position), ToolError> {
    let symbol = arguments
        .symbol
        .as_deref()
        .map(last_name)
        .filter(|name| !name.is_empty());
    let Some(path) = &arguments.path else {
        let symbol = symbol.ok_or_else(|| missing("`symbol`, or `path` and `line`,"))?;
        let Place { uri, range, .. } = defined(context, symbol).await?;
        return Ok((uri, range.start));
    };
    let path = context.resolve(path)?;
    let text = context.workspace.peek(&path).await?.text;
    let place = path.display();
    let at = match (arguments.line, symbol) {
        (Some(line), symbol) => in_line(&text, line, arguments.column, symbol),
        (None, Some(symbol)) => {
            let uri = uri(context, &path)?;
            match words(&text, symbol).collect::<Vec<_>>().as_slice() {
                // Which one is meant decides what is changed.
                several @ [_, _, ..] if arguments.op.edits() => {
                    let mut defined = written(context, symbol).await?;
                    defined.retain(|place| place.uri == uri);
                    let [Place { range, .. }] = defined.as_slice() else {
                        return Err(several_lines(arguments, &text, several));
                    };
                    in_line(&text, range.start.line as usize + 1, None, Some(symbol))
                }
                all => all.first().copied(),
            }
        }
        (None, None) => return Err(missing("`line` or `symbol`")),
    };
    let not_there = || {
        let at = arguments
            .line
            .map(|line| format!(":{line}"))
            .unwrap_or_default();
        ToolError(format!("{} is not in {place}{at}", arguments.named()))
    };
    let at = at.ok_or_else(not_there)?;
    let position =
        LineIndex::new(&text).position(&text, at, context.workspace.documents().encoding());
    Ok((uri(context, &path)?, position))
}

/// `parse_line` of `text::parse_line(…)`.
fn last_name(symbol: &str) -> &str {
    let symbol = symbol.split('(').next().unwrap_or_default().trim();
    symbol
        .rsplit(['.', ':', '#', '/'])
        .next()
        .unwrap_or_default()
}

/// The byte of `text` that a line, counted from 1, and a column or a name in it mean.
fn in_line(text: &str, line: usize, column: Option<usize>, symbol: Option<&str>) -> Option<usize> {
    let bytes = LineIndex::new(text).bytes(text, line.checked_sub(1)?);
    let content = text
        .get(bytes.clone())
        .filter(|content| !content.is_empty())?;
    let in_content = match (column, symbol) {
        (Some(column), _) => content
            .char_indices()
            .nth(column.saturating_sub(1))
            .map(|(at, _)| at)?,
        (None, Some(symbol)) => word(content, symbol)?,
        (None, None) => content
            .find(|c: char| c.is_alphanumeric() || c == '_')
            .unwrap_or_default(),
    };
    Some(bytes.start + in_content)
}

fn several_lines(arguments: &Arguments, text: &str, places: &[usize]) -> ToolError {
    let mut lines: Vec<_> = places
        .iter()
        .map(|at| 1 + line_breaks(text, 0..*at))
        .collect();
    lines.dedup();
    let lines = first_names(lines.iter(), usize::to_string);
    let name = arguments.named();
    ToolError(format!(
        "{name} is in lines {lines}; pass `line` of the one you mean"
    ))
}

/// The first place where `name` is a word of its own.
fn word(text: &str, name: &str) -> Option<usize> {
    words(text, name).next()
}

fn words<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let stands_alone = move |at: &usize| {
        let before = text
            .get(..*at)
            .and_then(|before| before.chars().next_back());
        let after = text
            .get(*at + name.len()..)
            .and_then(|after| after.chars().next());
        !is_part(before) && !is_part(after)
    };
    text.match_indices(name)
        .map(|(at, _)| at)
        .filter(stands_alone)
}

/// Where the only thing of this name is defined.
async fn defined(context: &ToolContext, symbol: &str) -> Result<Place, ToolError> {
    let mut found = Vec::new();
    if context
        .workspace
        .editor()
        .operations()
        .contains(&Operation::WorkspaceSymbols)
    {
        let question = Question {
            query: Some(symbol.to_owned()),
            ..Question::new(Operation::WorkspaceSymbols)
        };
        // What no language server knows may be found as text.
        if let Ok(Answer::Places(places)) = ask(context, question).await {
            found = places;
        }
        found.retain(|place| {
            let name = place.name.as_deref().map(last_name);
            let path = native::file_of(&place.uri);
            // Some servers name the file alone.
            name == Some(symbol)
                && place.range != Range::default()
                && path.is_some_and(|path| context.workspace.resolve_path(&path).is_ok())
        });
    }
    if found.is_empty() {
        found = written(context, symbol).await?;
    }
    for place in &mut found {
        *place = exactly(context, place, symbol)
            .await
            .unwrap_or_else(|| place.clone());
    }
    found.dedup_by_key(|place| (place.uri.clone(), place.range.start));
    match found.as_slice() {
        [] => Err(ToolError(format!(
            "nothing called `{}` is defined in the workspace; find it with grep, then pass `path` and `line`",
            escape_line(symbol)
        ))),
        [one] => Ok(one.clone()),
        several => Err(ToolError(format!(
            "`{}` is defined in {} places; pass `path` and `line` of the one you mean:\n{}",
            escape_line(symbol),
            several.len(),
            places::list(context, several).await
        ))),
    }
}

/// Lines that look like the definition of `symbol`.
async fn written(context: &ToolContext, symbol: &str) -> Result<Vec<Place>, ToolError> {
    let name = symbol.to_owned();
    let mut lines = blocking(context, move |workspace, cancel| {
        symbols(workspace, &name, cancel)
    })
    .await?;
    lines.retain(|line| last_name(&line.name) == symbol);
    let place = |line: crate::tools::Symbol| {
        let uri = uri(context, &context.workspace.resolve_path(&line.path).ok()?).ok()?;
        let start = Position {
            line: u32::try_from(line.line.saturating_sub(1)).ok()?,
            character: 0,
        };
        Some(Place {
            uri,
            range: Range { start, end: start },
            name: None,
            depth: 0,
        })
    };
    Ok(lines.into_iter().filter_map(place).collect())
}

/// A place at the symbol itself: a language server may report where its whole definition begins.
async fn exactly(context: &ToolContext, place: &Place, symbol: &str) -> Option<Place> {
    let path = context
        .workspace
        .resolve_path(&native::file_of(&place.uri)?)
        .ok()?;
    let text = context.workspace.peek(&path).await.ok()?.text;
    let encoding = context.workspace.documents().encoding();
    let index = LineIndex::new(&text);
    let bytes = index.span(&text, place.range, encoding);
    // The place of a line alone is its beginning.
    let end = index.bytes(&text, place.range.end.line as usize).end;
    let at = bytes.start + word(text.get(bytes.start..end)?, symbol)?;
    let start = index.position(&text, at, encoding);
    Some(Place {
        range: Range { start, end: start },
        name: None,
        ..place.clone()
    })
}

/// What the editor calls a file.
pub(super) fn uri(context: &ToolContext, path: &WorkspacePath) -> Result<String, ToolError> {
    if let Some(document) = context.workspace.document(path) {
        return Ok(document.uri.clone());
    }
    native::uri_of(&path.absolute()).ok_or_else(|| {
        ToolError(format!(
            "{} cannot be written as a URL for the editor",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{in_line, last_name, word};

    #[test]
    fn names_match_whole_words() {
        assert_eq!(word("reparse parse_it parse", "parse"), Some(17));
        assert_eq!(word("größe(größer)", "größe"), Some(0));
        assert_eq!(word("parser", "parse"), None);
    }

    #[test]
    fn a_line_with_a_column_or_name_is_a_position() {
        let text = "fn a() {\n    größe.b(b);\n}\n";
        assert_eq!(in_line(text, 2, None, Some("b")), Some(21));
        assert_eq!(
            in_line(text, 2, Some(11), None),
            Some(21),
            "columns are characters"
        );
        assert_eq!(in_line(text, 2, None, None), Some(13));
        assert_eq!(in_line(text, 3, None, Some("b")), None);
        assert_eq!(in_line(text, 0, None, None), None);
        assert_eq!(in_line(text, 9, None, None), None);
    }

    #[test]
    fn a_qualified_name_means_its_last_part() {
        for symbol in ["parse", "text::parse", "Text.parse(line)", "Text#parse"] {
            assert_eq!(last_name(symbol), "parse");
        }
    }
}
