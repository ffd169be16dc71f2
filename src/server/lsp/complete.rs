//! Completion in chat files: mentions after an `@`, and slash commands at the beginning of a prompt. For every other
//! document the answer is empty and immediate: its own language servers know better.

use futures_util::FutureExt as _;
use futures_util::future::ready;
use serde_json::{Value, json};

use super::chat;
use crate::domain::{Completion, CompletionKind};
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::dispatch::{Later, later};
use crate::session::{Offered, typed_mention};
use crate::text;

/// Characters that trigger completion.
pub(in crate::server) const TRIGGERS: [&str; 2] = ["@", "/"];

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// A slash command, slash included.
    Command,
    /// The text after an `@`.
    Mention,
}

impl Server {
    /// Answers `textDocument/completion`.
    pub fn chat_completion(&mut self, params: lsp::CompletionParams) -> Later<Value> {
        let place = params.text_document_position_params;
        let uri = place.text_document.uri.0;
        let Some((typed, query, range)) = self.typed(&uri, place.position.into()) else {
            return later(ready(Ok(list(&[]))));
        };
        let id = self.prepare(&uri, &uri)?;
        let session = &self.conversation(&id)?.session;
        Ok(match typed {
            Typed::Command => ready(Ok(list(&commands(&session.state().commands, range)))).boxed(),
            Typed::Mention => {
                let completer = session.completer();
                let offered = async move {
                    // Editors without a plugin do not report the selection.
                    let offered = completer.complete(&query, None).await;
                    Ok(list(&mentions(offered, range)))
                };
                offered.boxed()
            }
        })
    }

    /// What is being typed at a place in a chat file: its kind, its text and its range.
    fn typed(&self, uri: &str, at: text::Position) -> Option<(Typed, String, text::Range)> {
        let document = self
            .documents
            .get(uri)
            .filter(|_| chat::is_chat(uri) && !self.client.speaks_acp)?;
        let encoding = self.documents.encoding();
        let at = document.lines.offset(&document.text, at, encoding);
        let (typed, query) = typed_at(&document.text, at)?;
        let range = document
            .lines
            .range(&document.text, &(at - query.len()..at), encoding);
        Some((typed, query.to_owned(), range))
    }
}

/// The mention or command that ends at byte `at` of a chat file. Commands count only at the beginning of a prompt.
fn typed_at(text: &str, at: usize) -> Option<(Typed, &str)> {
    let asked = text.get(chat::prompt_start(text)?..at)?;
    let first = asked.trim_start();
    if first.starts_with('/') && !first.contains(char::is_whitespace) {
        return Some((Typed::Command, first));
    }
    Some((Typed::Mention, typed_mention(asked)?))
}

/// A list that the client may filter, but has to request again for more.
fn list(items: &[Value]) -> Value {
    json!({ "isIncomplete": !items.is_empty(), "items": items })
}

fn commands(available: &[Offered], range: text::Range) -> Vec<Value> {
    let item = |command: &Offered| {
        let text = format!("/{}", command.name);
        json!({
            "label": text,
            "kind": lsp::CompletionItemKind::Function,
            "detail": command.description,
            "textEdit": { "range": range, "newText": text },
        })
    };
    available.iter().map(item).collect()
}

/// Keeps the order of the offers, however the client sorts.
fn mentions(offered: Vec<Completion>, range: text::Range) -> Vec<Value> {
    let mut items = Vec::new();
    for (index, offer) in offered.into_iter().enumerate() {
        let kind = match offer.kind {
            CompletionKind::File => lsp::CompletionItemKind::File,
            CompletionKind::Folder => lsp::CompletionItemKind::Folder,
            CompletionKind::Symbol | CompletionKind::Resource => lsp::CompletionItemKind::Reference,
            CompletionKind::Diagnostics | CompletionKind::Selection => {
                lsp::CompletionItemKind::Keyword
            }
        };
        items.push(json!({
            "label": offer.label,
            "kind": kind,
            "detail": offer.detail,
            "sortText": format!("{index:02}"),
            "textEdit": { "range": range, "newText": offer.insert },
        }));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completion_query_ends_at_the_cursor() {
        // The bar marks the cursor.
        let check = |marked: &str, expected: Option<(Typed, &str)>| {
            let text = marked.replace('|', "");
            assert_eq!(
                typed_at(&text, marked.find('|').unwrap()),
                expected,
                "{marked}"
            );
        };
        check("## You\n\nsee @src/m|", Some((Typed::Mention, "src/m")));
        check("## You\n\nsee @|", Some((Typed::Mention, "")));
        check("## You\n\nsee @src/main.rs |", None);
        check("## You\n\nsee @\"my no|", Some((Typed::Mention, "\"my no")));
        check("## You\n\n/mo|", Some((Typed::Command, "/mo")));
        check("## You\n\n/|\n\nmore", Some((Typed::Command, "/")));
        check("/mo|", Some((Typed::Command, "/mo")));
        check("## You\n\n/fix @a|", Some((Typed::Mention, "a")));
        check("## You\n\nsee\n/mo|", None);
        check("## You\n\none @a|\n\n## tandem\n\ntwo\n\n## You\n\n", None);
        check("## You\n\none\n\n## tandem\n\nmail @a|", None);
    }
}
