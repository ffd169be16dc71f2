//! The outline of a chat file: the turns, their tool calls and the code in them. Answers `textDocument/documentSymbol`
//! and `textDocument/foldingRange`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::chat::{self, TANDEM, YOU};
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::dispatch::Answer;
use crate::text::{Fences, Range};

/// How much of a prompt fits in a list, in bytes.
const NAME: usize = 80;

/// Something of a chat file, with its first and its last line.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// A prompt and its answer, under the first line of the prompt.
    Turn(&'a str, usize, usize),
    /// A tool call, as it is written.
    Tool(&'a str, usize),
    /// A code block.
    Code(usize, usize),
}

impl Server {
    /// Answers `textDocument/documentSymbol`: each turn, and in it its tool calls.
    pub fn chat_symbols(&mut self, params: lsp::DocumentSymbolParams) -> Answer<Vec<Value>> {
        let uri = &params.text_document.uri.0;
        let symbols = symbols(&self.chat_text(uri));
        Ok(if self.client.can.nested_symbols {
            symbols
        } else {
            flat(&symbols, uri)
        })
    }

    /// Answers `textDocument/foldingRange`: turns and code blocks.
    pub fn chat_folds(&mut self, params: lsp::FoldingRangeParams) -> Answer<Vec<Value>> {
        Ok(folds(&self.chat_text(&params.text_document.uri.0)))
    }

    /// The text of a chat file; empty for every other document, which its own language servers know.
    pub(super) fn chat_text(&self, uri: &str) -> Arc<str> {
        let document = self.documents.get(uri).filter(|_| chat::is_chat(uri));
        document.map_or_else(|| "".into(), |document| Arc::clone(&document.text))
    }
}

/// The parts of a chat file, a turn before what is in it. A prompt needs no heading in a new file.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = vec![Part::Turn("", 0, 0)];
    let mut fences = Fences::default();
    let (mut turn, mut code) = (0, None);
    let mut last = 0;
    for (row, line) in text.lines().map(str::trim_end).enumerate() {
        if fences.take(line) {
            let first = *code.get_or_insert(row);
            if !fences.is_open() {
                parts.push(Part::Code(first, row));
                code = None;
            }
        } else if line.eq_ignore_ascii_case(YOU) {
            close(&mut parts, turn, last);
            turn = parts.len();
            parts.push(Part::Turn("", row, row));
        } else if ["- ✓ ", "- ✗ ", "- ● "]
            .iter()
            .any(|sign| line.starts_with(sign))
        {
            parts.push(Part::Tool(line, row));
        } else if !line.is_empty()
            && !line.starts_with("# ")
            && let Some(Part::Turn(name, ..)) = parts.get_mut(turn)
            && name.is_empty()
        {
            *name = line;
        }
        if !line.is_empty() {
            last = row;
        }
    }
    close(&mut parts, turn, last);
    parts.retain(|part| !matches!(part, Part::Turn("" | TANDEM, ..)));
    parts
}

/// A turn ends before the next one.
fn close(parts: &mut [Part<'_>], turn: usize, row: usize) {
    if let Some(Part::Turn(.., last)) = parts.get_mut(turn) {
        *last = row;
    }
}

fn symbols(text: &str) -> Vec<Value> {
    let mut turns: Vec<Value> = Vec::new();
    for part in parts(text) {
        match part {
            Part::Turn(name, first, last) => {
                turns.push(symbol(name, lsp::SymbolKind::String, first, last));
            }
            Part::Tool(title, row) => {
                let tool = symbol(
                    title.trim_start_matches("- "),
                    lsp::SymbolKind::Function,
                    row,
                    row,
                );
                if let Some(tools) = turns
                    .last_mut()
                    .and_then(|turn| turn["children"].as_array_mut())
                {
                    tools.push(tool);
                }
            }
            Part::Code(..) => {}
        }
    }
    turns
}

/// The symbols as a list, each with what it is in.
fn flat(symbols: &[Value], uri: &str) -> Vec<Value> {
    let information = |symbol: &Value, container: &Value| {
        let location = json!({ "uri": uri, "range": symbol["range"] });
        let mut flat =
            json!({ "name": symbol["name"], "kind": symbol["kind"], "location": location });
        if !container.is_null() {
            flat["containerName"] = container.clone();
        }
        flat
    };
    let turn = |turn: &Value| {
        let tools = turn["children"].as_array().into_iter().flatten();
        let tools = tools.map(|tool| information(tool, &turn["name"]));
        std::iter::once(information(turn, &Value::Null))
            .chain(tools)
            .collect::<Vec<_>>()
    };
    symbols.iter().flat_map(turn).collect()
}

fn symbol(name: &str, kind: lsp::SymbolKind, first: usize, last: usize) -> Value {
    let name = name.get(..name.floor_char_boundary(NAME)).unwrap_or(name);
    json!({
        "name": name,
        "kind": kind,
        "range": Range::of_lines(first..last + 1),
        "selectionRange": Range::of_lines(first..first),
        "children": [],
    })
}

fn folds(text: &str) -> Vec<Value> {
    let folds = parts(text).into_iter().filter_map(|part| match part {
        Part::Turn(_, first, last) | Part::Code(first, last) if first < last => Some((first, last)),
        _ => None,
    });
    folds
        .map(|(first, last)| json!({ "startLine": first, "endLine": last }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_contain_tool_calls_and_code() {
        let text = "# Notes\n\n## You\n\nwhy?\nreally?\n\n## tandem\n\n- ✓ Read a.rs\n\n```rust\n## You\n```\n\n\n## You\n\n";
        assert_eq!(
            parts(text),
            [
                Part::Turn("why?", 2, 13),
                Part::Tool("- ✓ Read a.rs", 9),
                Part::Code(11, 13)
            ]
        );
        let turns = symbols(text);
        assert_eq!(turns.len(), 1, "a place without a prompt is no turn");
        assert_eq!(
            (&turns[0]["name"], &turns[0]["children"][0]["name"]),
            (&json!("why?"), &json!("✓ Read a.rs"))
        );
        assert_eq!(
            folds(text),
            [
                json!({ "startLine": 2, "endLine": 13 }),
                json!({ "startLine": 11, "endLine": 13 })
            ]
        );
    }

    #[test]
    fn the_first_prompt_needs_no_heading() {
        assert_eq!(
            parts("why?\n\n## tandem\n\nso\n"),
            [Part::Turn("why?", 0, 4)]
        );
        assert_eq!(
            parts("## You\n\n## tandem\n\nso\n"),
            [],
            "an answer is no prompt"
        );
        assert_eq!(parts("# Notes\n"), []);
    }
}
