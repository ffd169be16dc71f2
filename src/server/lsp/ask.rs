//! Questions of a turn in a plain client: a block in the chat file, a hint diagnostic where the change will be, code
//! actions, and a message with buttons where the client has them. The first answer counts.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::agent::event::{Grant, Permission, Preview, Scope};
use crate::rpc::ErrorCode;
use crate::server::Server;
use crate::server::dispatch::{Answer, error};
use crate::server::permission::{ALLOW, REJECT, always};
use crate::session::SessionId;
use crate::text::{display, fence, unified};

/// A question nobody has answered yet.
#[derive(Debug)]
pub(in crate::server) struct Question {
    /// What actions and buttons call it: those of a question that is gone must not answer another one, and two
    /// conversations may have calls of the same id.
    pub key: String,
    pub session: SessionId,
    pub call_id: String,
    pub title: String,
    /// The rule that "always" would add; `None` where it is asked every time.
    pub rule: Option<String>,
    /// The document that carries the hint.
    uri: Option<String>,
    reply: Option<oneshot::Sender<Permission>>,
}

impl Server {
    pub(in crate::server) fn plain_ask(
        &mut self,
        id: &SessionId,
        call_id: &str,
        preview: &Preview,
        rule: Option<String>,
        reply: oneshot::Sender<Permission>,
    ) {
        let title = display::escape_line(&preview.title).into_owned();
        let mut block = format!("> **tandem asks:** {title}\n");
        for line in preview.description() {
            let _ = writeln!(block, "> {}", line.replace('\n', "\n> "));
        }
        for diff in &preview.diffs {
            let change = unified(diff.old_text.as_deref().unwrap_or_default(), &diff.new_text, 3);
            let change = display::escape(&change);
            let fence = fence(&change);
            let _ = write!(block, "\n{fence}diff\n{change}{fence}\n");
        }
        block.push_str("\n> Answer with a code action: *Allow* or *Reject*.");
        if let Some(rule) = &rule {
            let _ = write!(block, " *Always* adds the rule `{}`.", display::escape_line(rule));
        }
        if let Some(chat) = self.plain.chat(id) {
            chat.block(&block);
        }
        let location = preview.locations.first();
        let uri = location.and_then(|location| url::Url::from_file_path(&location.path).ok()).map(String::from);
        if let Some(uri) = &uri {
            let line = location.and_then(|location| location.line).unwrap_or(1).saturating_sub(1);
            self.hint(uri, Some((line, &title)));
        }
        let key = format!("{id}/{call_id}");
        if self.client.asks {
            self.show_question(key.clone(), &title, preview, rule.as_deref());
        }
        let question = Question {
            key,
            session: SessionId::clone(id),
            call_id: call_id.to_owned(),
            title,
            rule,
            uri,
            reply: Some(reply),
        };
        self.plain.questions.push(question);
    }

    /// `window/showMessageRequest`, the safe choice first; closing it decides nothing.
    fn show_question(&mut self, key: String, title: &str, preview: &Preview, rule: Option<&str>) {
        let choices = choices(rule);
        let actions: Vec<Value> = choices.iter().map(|(title, _)| json!({ "title": title })).collect();
        let mut message = vec![format!("tandem asks: {title}")];
        message.extend(preview.description());
        message.extend(rule.map(|rule| format!("Always adds the rule {}", display::escape_line(rule))));
        let message = message.join("\n");
        let params = json!({ "type": 3, "message": message, "actions": actions });
        let answer = self.peer.request("window/showMessageRequest", &params);
        let decisions = self.plain.decisions.clone();
        self.tasks.spawn(async move {
            let Ok(answer) = answer.await else { return };
            let chosen = choices.into_iter().find(|(title, _)| answer["title"] == title.as_str());
            let Some((_, permission)) = chosen else { return };
            let _server_gone = decisions.send((key, permission)).await;
        });
    }

    /// Answers the question of this key or of the call with this id, or the oldest.
    pub(in crate::server) fn answer_question(&mut self, wanted: Option<&str>, permission: Permission) -> Answer<()> {
        let refused = |why: &str| error(ErrorCode::InvalidRequest, why);
        let nothing = || refused("tandem has no such question open; it may be answered already");
        let is_meant = |question: &Question| wanted.is_none_or(|name| name == question.key || name == question.call_id);
        let mut meant = self.plain.questions.iter_mut().filter(|question| is_meant(question));
        let question = meant.next().ok_or_else(nothing)?;
        if wanted.is_some() && meant.next().is_some() {
            return Err(refused("two conversations have a call of that name; answer by a code action"));
        }
        if matches!(permission, Permission::AllowAlways(_)) && question.rule.is_none() {
            return Err(refused("this is asked about every time; `tandem.allow` allows it once"));
        }
        let reply = question.reply.take().ok_or_else(nothing)?;
        let _turn_gone = reply.send(permission);
        Ok(())
    }

    /// The question is answered, whoever did it.
    pub(in crate::server) fn plain_answered(&mut self, id: &SessionId, call_id: &str) {
        let questions = &mut self.plain.questions;
        let found = questions.iter().position(|question| question.session == *id && question.call_id == call_id);
        let Some(question) = found.map(|index| questions.remove(index)) else { return };
        if let Some(uri) = question.uri {
            self.hint(&uri, None);
        }
    }

    fn hint(&self, uri: &str, hint: Option<(u32, &str)>) {
        let diagnostics: Vec<Value> = hint
            .map(|(line, title)| {
                let at = json!({ "line": line, "character": 0 });
                json!({
                    "range": { "start": at, "end": at },
                    "severity": 4,
                    "source": "tandem",
                    "message": format!("tandem asks: {title} (answer with a code action)"),
                })
            })
            .into_iter()
            .collect();
        self.peer.notify("textDocument/publishDiagnostics", &json!({ "uri": uri, "diagnostics": diagnostics }));
    }
}

/// The choices, the safe one first, and what each means.
fn choices(rule: Option<&str>) -> Vec<(String, Permission)> {
    let mut choices = vec![(REJECT.to_owned(), Permission::Reject), (ALLOW.to_owned(), Permission::AllowOnce)];
    for (rule, scope) in rule.into_iter().flat_map(|rule| [Scope::Session, Scope::Project].map(|scope| (rule, scope))) {
        choices.push((always(rule, scope), Permission::AllowAlways(Grant::offered(scope))));
    }
    choices
}
