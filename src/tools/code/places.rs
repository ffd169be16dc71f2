//! Places with their lines of text, each file read once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::text::LineIndex;
use crate::text::display::escape_line;
use crate::tools::ToolContext;
use crate::tools::files::shown;
use crate::workspace::language::Place;
use crate::workspace::native;

/// How many places are shown.
const SHOWN: usize = 100;
/// How much of a line is shown, in bytes.
const MAX_LINE: usize = 200;

/// `path:line: text`, a line each, in the order of the files.
pub(super) async fn list(context: &ToolContext, places: &[Place]) -> String {
    let mut texts = Texts::default();
    let mut lines: Vec<String> = Vec::new();
    let mut places = places.iter();
    for place in places.by_ref() {
        let holder = place
            .name
            .as_deref()
            .map(|name| format!(" [in {}]", escape_line(name)))
            .unwrap_or_default();
        let at = format!(
            "{}:{}",
            name(context, &place.uri),
            place.range.start.line.saturating_add(1)
        );
        let line = match texts.line(context, place).await {
            Some(text) => format!("{at}: {}{holder}", text.trim()),
            None => format!("{at}{holder}"),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() == SHOWN {
            break;
        }
    }
    let left_out = places.len();
    let more = if left_out > 0 {
        format!("[{left_out} more]\n")
    } else {
        String::new()
    };
    lines.join("\n") + "\n" + &more
}

/// The outline of a file: the lines of each symbol, and its first line, indented by nesting.
pub(super) async fn outline(context: &ToolContext, places: &[Place]) -> String {
    let mut texts = Texts::default();
    let mut outline = String::new();
    for place in places.iter().take(SHOWN * 2) {
        let (first, last) = (
            place.range.start.line.saturating_add(1),
            place.range.end.line.saturating_add(1),
        );
        let lines = if first == last {
            first.to_string()
        } else {
            format!("{first}–{last}")
        };
        let text = texts
            .line(context, place)
            .await
            .or_else(|| place.name.clone())
            .unwrap_or_default();
        outline += &format!("{lines}\t{}{}\n", "  ".repeat(place.depth), text.trim());
    }
    if places.len() > SHOWN * 2 {
        outline += &format!("[{} more]\n", places.len() - SHOWN * 2);
    }
    outline
}

/// A document as the model knows it.
fn name(context: &ToolContext, uri: &str) -> String {
    match native::file_of(uri) {
        Some(path) => shown(&context.workspace, &path),
        None => escape_line(uri).into_owned(),
    }
}

/// The texts that were read, by URI; `None` for what is not shown.
#[derive(Default)]
pub(super) struct Texts(HashMap<String, Option<(Arc<str>, LineIndex)>>);

impl Texts {
    /// The line a place begins in. Files outside the workspace are not read, and what may hold a secret is not shown.
    pub async fn line(&mut self, context: &ToolContext, place: &Place) -> Option<String> {
        if !self.0.contains_key(&place.uri) {
            let text = text(context, &place.uri).await;
            self.0.insert(place.uri.clone(), text);
        }
        let (text, index) = self.0.get(&place.uri)?.as_ref()?;
        let line = text
            .get(index.bytes(text, place.range.start.line as usize))?
            .trim_end_matches(['\n', '\r']);
        let (beginning, rest) = line.split_at(line.floor_char_boundary(MAX_LINE));
        Some(if rest.is_empty() {
            beginning.to_owned()
        } else {
            format!("{beginning}…")
        })
    }
}

async fn text(context: &ToolContext, uri: &str) -> Option<(Arc<str>, LineIndex)> {
    let path = context
        .workspace
        .resolve_path(&native::file_of(uri)?)
        .ok()
        .filter(|path| context.shows(path))?;
    let text = context.workspace.peek(&path).await.ok()?.text;
    let index = LineIndex::new(&text);
    Some((text, index))
}
