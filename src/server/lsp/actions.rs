//! Code actions and commands of LSP-only clients. Every command is answered at once while the work continues in the
//! background, because clients give up on a command after seconds and discard its result.

use futures_util::future::ready;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chat;
use super::front::safe_first;
use super::hints::SOURCE;
use crate::agent::event::{Grant, Permission, Scope};
use crate::domain::{Attachment, Prompt};
use crate::protocol::ext::{Origin, ReviewAction};
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::capabilities::LLM_GENERATED;
use crate::server::dispatch::{Answer, Later, invalid, later};
use crate::text::{Range, display};
use crate::workspace::native;

/// The kinds of tandem's code actions.
pub(in crate::server) const ACTION_KINDS: [&str; 3] = ["quickfix", "refactor", "source"];
/// The kind of the actions that send a prompt. Helix sorts by kind and selects the first: `refactor` itself comes after
/// `source`, of which undo is.
const QUESTION: &str = "refactor.rewrite";
const ASK: &str = "tandem.ask";
/// tandem's commands.
pub(in crate::server) const COMMANDS: [&str; 9] = [
    ASK,
    "tandem.cancel",
    "tandem.allow",
    "tandem.allowAlways",
    "tandem.reject",
    "tandem.undo",
    "tandem.redo",
    "tandem.keep",
    "tandem.openTurn",
];

/// What the selection actions ask.
const ABOUT: &str = "Review this selection: what it does, what is wrong or surprising, and what to look at next. Change \
                     nothing.";
const EXPLAIN: &str = "Explain this selection step by step. Change nothing.";
const EDIT: &str = "Edit this selection. Where its comments give instructions (such as `AI! make this async`), follow \
                    them and remove those comments; else correct what is wrong and make it clearer without changing \
                    what it does.";
/// Offer fixes for at most this many diagnostics, to keep the menu readable.
const FIXES: usize = 3;
/// At most this many diagnostics are sent with a prompt.
const DIAGNOSTICS: usize = 10;

/// The argument of `tandem.ask`.
#[derive(Debug, Deserialize)]
struct Ask {
    prompt: String,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    range: Option<Range>,
}

impl Server {
    /// Answers `textDocument/codeAction`; automatic requests get an empty list.
    pub fn code_actions(&mut self, params: lsp::CodeActionParams) -> Later<Vec<Value>> {
        if params.context.trigger_kind == Some(lsp::CodeActionTriggerKind::Automatic)
            || self.client.speaks_acp
        {
            return later(ready(Ok(Vec::new())));
        }
        let on_hunks = self.hunk_actions(&params.text_document.uri.0, params.range.into());
        let origins = self.origins_of(&params.text_document.uri.0, Some(params.range.into()));
        let only = serde_json::to_value(&params.context.only).unwrap_or_default();
        let others = self.actions(params);
        let (literals, tags) = (
            self.client.can.code_action_literals,
            self.client.can.tags_actions,
        );
        let all = async move {
            let mut actions = on_hunks.await;
            actions.extend(turn_actions(&origins.await));
            actions.extend(others);
            if let Some(only) = only.as_array() {
                actions.retain(|action| is_wanted(action, only));
            }
            if tags {
                let asking = |action: &&mut Value| action["command"]["command"] == ASK;
                for action in actions.iter_mut().filter(asking) {
                    action["tags"] = json!([LLM_GENERATED]);
                }
            }
            if !literals {
                actions = actions
                    .iter_mut()
                    .map(|action| action["command"].take())
                    .collect();
            }
            Ok(actions)
        };
        later(all)
    }

    fn actions(&self, params: lsp::CodeActionParams) -> Vec<Value> {
        let uri = params.text_document.uri.0;
        let mut actions = self.prompt_actions();
        if chat::is_chat(&uri) {
            if self
                .documents
                .get(&uri)
                .is_some_and(|document| chat::prompt(&document.text).is_some())
            {
                actions.push(action(
                    "tandem: Send",
                    "source",
                    ASK,
                    &json!([{ "prompt": "", "uri": uri }]),
                ));
            }
        } else {
            if let Some(document) = self.documents.get(&uri) {
                actions.extend(comment_actions(&uri, &document.text));
            }
            actions.extend(selection_actions(
                &uri,
                &params.range,
                &params.context.diagnostics,
            ));
        }
        if self.is_busy() {
            actions.push(action(
                "tandem: Stop",
                "source",
                "tandem.cancel",
                &json!([]),
            ));
        } else {
            actions.extend(self.undo_actions());
        }
        actions
    }

    /// The open permission requests as actions, the refusal first.
    fn prompt_actions(&self) -> Vec<Value> {
        let mut actions = Vec::new();
        for request in self.requests.open() {
            for choice in safe_first(request.choices()) {
                let (command, details) = match &choice.permission {
                    Permission::AllowOnce => ("tandem.allow", vec![]),
                    Permission::Answered(answer) => ("tandem.allow", vec![answer.as_str()]),
                    Permission::AllowAlways(grant) => {
                        let scope = std::iter::once(grant.scope.name());
                        (
                            "tandem.allowAlways",
                            scope.chain(grant.rule.as_deref()).collect(),
                        )
                    }
                    _ => ("tandem.reject", vec![]),
                };
                let title = match choice.permission {
                    Permission::AllowAlways(_) => format!("tandem: {}", choice.title),
                    _ => format!("tandem: {}: {}", choice.title, request.title()),
                };
                let arguments: Vec<_> = std::iter::once(request.key.as_str())
                    .chain(details)
                    .collect();
                actions.push(action(&title, "quickfix", command, &json!(arguments)));
            }
        }
        actions
    }

    /// Actions to undo, redo and keep turns.
    fn undo_actions(&self) -> Vec<Value> {
        let offers = [
            (
                "tandem: Undo the last turn",
                "tandem.undo",
                ReviewAction::Undo,
            ),
            (
                "tandem: Redo the last undone turn",
                "tandem.redo",
                ReviewAction::Redo,
            ),
            (
                "tandem: Keep the changes",
                "tandem.keep",
                ReviewAction::Keep,
            ),
        ];
        let offer = |(title, name, command)| {
            let arguments = json!([{ "sessionId": self.last_changed(command)? }]);
            Some(action(title, "source", name, &arguments))
        };
        offers.into_iter().filter_map(offer).collect()
    }

    pub fn execute(&mut self, params: lsp::ExecuteCommandParams) -> Answer<Value> {
        let mut arguments = params
            .arguments
            .unwrap_or_default()
            .into_iter()
            .map(json_of);
        let first = arguments.next().unwrap_or_default();
        match params.command.as_str() {
            ASK => self.ask(first)?,
            "tandem.cancel" => self.cancel_all(),
            "tandem.allow" => {
                let answer = arguments
                    .next()
                    .and_then(|answer| answer.as_str().map(str::to_owned));
                let permission = answer.map_or(Permission::AllowOnce, Permission::Answered);
                self.requests.answer(first.as_str(), permission)?;
            }
            "tandem.allowAlways" => {
                let name = arguments.next().unwrap_or_default();
                let scope = [Scope::Turn, Scope::Project]
                    .into_iter()
                    .find(|scope| name == scope.name())
                    .unwrap_or(Scope::Session);
                let rule = arguments
                    .next()
                    .and_then(|rule| rule.as_str().map(str::to_owned));
                self.requests.answer(
                    first.as_str(),
                    Permission::AllowAlways(Grant { scope, rule }),
                )?;
            }
            "tandem.reject" => self.requests.answer(first.as_str(), Permission::Reject)?,
            "tandem.undo" => self.review_by_command(first, ReviewAction::Undo)?,
            "tandem.redo" => self.review_by_command(first, ReviewAction::Redo)?,
            "tandem.keep" => self.review_by_command(first, ReviewAction::Keep)?,
            "tandem.openTurn" => self.open_turn(first)?,
            other => {
                let message = format!(
                    "unknown command `{other}`; expected one of {}",
                    COMMANDS.join(", ")
                );
                return Err(invalid(message));
            }
        }
        Ok(Value::Null)
    }

    fn ask(&mut self, argument: Value) -> Answer<()> {
        let usage = "tandem.ask takes a prompt, or {prompt, uri?, range?}";
        let ask = match argument {
            Value::String(prompt) => Ask {
                prompt,
                uri: None,
                range: None,
            },
            argument => serde_json::from_value(argument).map_err(|_| invalid(usage))?,
        };
        if let Some(uri) = ask.uri.as_deref().filter(|uri| chat::is_chat(uri)) {
            return self.send_chat(uri);
        }
        if ask.prompt.trim().is_empty() {
            return Err(invalid(usage));
        }
        let mut parts = vec![Attachment::Text(ask.prompt.clone())];
        parts.extend(
            ask.uri
                .as_deref()
                .and_then(|uri| self.excerpt(uri, ask.range.as_ref())),
        );
        let about = ask.uri.unwrap_or_else(|| self.documents.newest());
        self.ask_in_new_chat(&ask.prompt, Prompt { parts, focus: None }, &about)
    }

    /// The selected lines of a document as full lines, with the editor's unsaved text.
    fn excerpt(&self, uri: &str, range: Option<&Range>) -> Option<Attachment> {
        let name = native::shown(&native::file_of(uri)?);
        let Some(range) = range else {
            return Some(Attachment::Mention { name, lines: None });
        };
        let document = self.documents.get(uri)?;
        let (first, last) = (range.start.line, range.last_line());
        let lines = document
            .text
            .lines()
            .skip(first as usize)
            .take((last - first) as usize + 1);
        let text = lines.collect::<Vec<_>>().join("\n");
        Some(Attachment::Excerpt {
            name,
            lines: Some((first.saturating_add(1), last.saturating_add(1))),
            text,
        })
    }
}

/// Whether an action is of one of the requested kinds, or of a kind within one. Some editors run whatever they get when a
/// file is saved.
fn is_wanted(action: &Value, only: &[Value]) -> bool {
    let kind = action["kind"].as_str().unwrap_or_default();
    let mut wanted = only.iter().filter_map(Value::as_str);
    only.is_empty()
        || wanted.any(|wanted| {
            let within = kind.strip_prefix(wanted);
            // The empty kind has all others in it.
            wanted.is_empty() || within.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

/// Actions that show the turns which wrote the lines.
fn turn_actions(origins: &[Origin]) -> Vec<Value> {
    let mut actions: Vec<Value> = Vec::new();
    for Origin {
        session_id,
        turn,
        prompt,
        ..
    } in origins
    {
        let title = format!("tandem: Open turn “{prompt}”");
        let arguments = json!([{ "sessionId": session_id, "turn": turn }]);
        let action = action(&title, "quickfix", "tandem.openTurn", &arguments);
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    actions.truncate(FIXES);
    actions
}

/// Instructions in comments, such as `// AI! make this async`.
fn comment_actions(uri: &str, text: &str) -> Vec<Value> {
    let comments = text.lines().zip(0_u32..).filter_map(|(line, number)| {
        let (_, instruction) = line.split_once("AI!")?;
        Some((
            instruction
                .trim()
                .trim_end_matches("*/")
                .trim_end_matches("-->")
                .trim(),
            number,
            line,
        ))
    });
    comments
        .filter(|(instruction, ..)| !instruction.is_empty())
        .take(FIXES)
        .map(|(instruction, number, line)| {
            let title = format!("tandem: AI! {}", display::escape_line(instruction));
            let prompt = format!(
                "Do what this comment asks, then remove the comment:\n{}",
                line.trim()
            );
            let at = |character: usize| json!({ "line": number, "character": character });
            let range = json!({ "start": at(0), "end": at(line.len()) });
            action(
                &title,
                QUESTION,
                ASK,
                &json!([{ "prompt": prompt, "uri": uri, "range": range }]),
            )
        })
        .collect()
}

fn selection_actions(uri: &str, range: &lsp::Range, diagnostics: &[lsp::Diagnostic]) -> Vec<Value> {
    let ask = |title: &str, kind: &str, prompt: &str, range: &lsp::Range| {
        action(
            title,
            kind,
            ASK,
            &json!([{ "prompt": prompt, "uri": uri, "range": range }]),
        )
    };
    let mut actions: Vec<Value> = foreign(diagnostics)
        .take(FIXES)
        .map(|diagnostic| {
            let text = plain_text(diagnostic);
            let title = format!(
                "tandem: Fix: {}",
                display::escape_line(text.lines().next().unwrap_or_default())
            );
            ask(
                &title,
                "quickfix",
                &format!("Fix this diagnostic: {text}"),
                &diagnostic.range,
            )
        })
        .collect();
    for (title, prompt) in [
        ("tandem: Ask about this", ABOUT),
        ("tandem: Explain this", EXPLAIN),
        ("tandem: Edit this", EDIT),
    ] {
        actions.push(ask(
            title,
            QUESTION,
            &with_diagnostics(prompt, diagnostics),
            range,
        ));
    }
    actions
}

/// The diagnostics that are not ours: our own hints need no fix.
fn foreign(diagnostics: &[lsp::Diagnostic]) -> impl Iterator<Item = &lsp::Diagnostic> {
    diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.source.as_deref() != Some(SOURCE))
}

/// Adds the selection's diagnostics to the prompt: an LSP-only client cannot be asked for them later.
fn with_diagnostics(prompt: &str, diagnostics: &[lsp::Diagnostic]) -> String {
    let shown = foreign(diagnostics).take(DIAGNOSTICS).map(|diagnostic| {
        let text = plain_text(diagnostic);
        format!(
            "\n- line {}: {}",
            diagnostic.range.start.line.saturating_add(1),
            display::escape_line(text.trim())
        )
    });
    let shown: String = shown.collect();
    if shown.is_empty() {
        prompt.to_owned()
    } else {
        format!("{prompt}\n\nThe editor reports here:{shown}")
    }
}

/// The message of a diagnostic, which newer clients may send as marked-up text.
fn plain_text(diagnostic: &lsp::Diagnostic) -> String {
    let message = serde_json::to_value(&diagnostic.message).unwrap_or_default();
    let text = message
        .as_str()
        .or_else(|| message["value"].as_str())
        .unwrap_or_default();
    text.to_owned()
}

pub(super) fn action(title: &str, kind: &str, command: &str, arguments: &Value) -> Value {
    json!({
        "title": title,
        "kind": kind,
        "command": { "title": title, "command": command, "arguments": arguments },
    })
}

fn json_of(any: lsp::LspAny) -> Value {
    serde_json::to_value(any).unwrap_or_default()
}
