//! `textDocument/hover`: on a changed line the turn that wrote it and the text it replaced, on a tool call of a chat file
//! what the tool gave back.

use futures_util::future::ready;
use serde_json::{Value, json};

use super::chat;
use super::hunks::Reviewed;
use crate::protocol::ext::Origin;
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::dispatch::{Later, later};
use crate::text::{Range, display, fence};

impl Server {
    /// Answers `textDocument/hover`; with nothing where tandem knows nothing.
    pub fn hover(&mut self, params: lsp::HoverParams) -> Later<Option<Value>> {
        let place = params.text_document_position_params;
        let uri = place.text_document.uri.0;
        let as_markdown = self.client.can.reads_markdown;
        if chat::is_chat(&uri) {
            let output = self.output_at(&uri, place.position.line as usize);
            let shown = output.map(|output| contents(as_markdown, &code(as_markdown, "", &output)));
            return later(ready(Ok(shown)));
        }
        let language = self
            .documents
            .get(&uri)
            .map(|document| document.language.clone())
            .unwrap_or_default();
        let at = place.position.into();
        let line = Range { start: at, end: at };
        let (hunks, origins) = (self.hunks_at(&uri, line), self.origins_of(&uri, Some(line)));
        let shown = async move {
            let (hunks, origins) = tokio::join!(hunks, origins);
            let mut shown: Vec<_> = origins
                .iter()
                .map(|origin| wrote(as_markdown, origin))
                .collect();
            shown.extend(
                hunks
                    .iter()
                    .map(|reviewed| replaced(as_markdown, &language, reviewed)),
            );
            Ok((!shown.is_empty()).then(|| contents(as_markdown, &shown.join("\n\n"))))
        };
        later(shown)
    }

    /// What the tool call in a line of a chat file gave back. Calls may look the same: those below it tell which it is.
    fn output_at(&self, uri: &str, row: usize) -> Option<String> {
        let text = self.chat_text(uri);
        let mut lines = text.lines().skip(row);
        let call = lines.next()?;
        let below = lines.filter(|line| *line == call).count();
        self.conversations
            .get(self.chats.session(uri)?)?
            .front
            .output(call, below)
    }
}

fn contents(as_markdown: bool, text: &str) -> Value {
    let kind = if as_markdown { "markdown" } else { "plaintext" };
    json!({ "contents": { "kind": kind, "value": text } })
}

fn code(as_markdown: bool, language: &str, text: &str) -> String {
    let text = display::escape(text);
    let lines = text.trim_end_matches('\n');
    if !as_markdown {
        return lines.to_owned();
    }
    let fence = fence(&text);
    format!("{fence}{language}\n{lines}\n{fence}")
}

/// Which turn wrote a line.
fn wrote(as_markdown: bool, origin: &Origin) -> String {
    let Origin {
        session_id,
        turn,
        prompt,
        model,
        by,
        edited,
        ..
    } = origin;
    let since = if *edited { " (edited since)" } else { "" };
    if !as_markdown {
        return format!("Turn {turn}: {prompt}{since}\n{by}, {model}, session {session_id}");
    }
    let [prompt, by] = [prompt, by].map(|text| {
        let ticks = if text.contains('`') {
            fence(text)
        } else {
            "`".to_owned()
        };
        format!("{ticks} {text} {ticks}")
    });
    format!("**Turn {turn}**: {prompt}{since}\n\n{by}, `{model}`, session `{session_id}`")
}

fn replaced(as_markdown: bool, language: &str, reviewed: &Reviewed) -> String {
    let hunk = &reviewed.hunk;
    if hunk.old_text.is_empty() {
        return "tandem added this.".to_owned();
    }
    format!(
        "tandem changed this. Before:\n\n{}",
        code(as_markdown, language, &hunk.old_text)
    )
}
