//! A client of the Agent Client Protocol: it is sent version 1 and nothing else.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::updates::Updates;
use super::{Answering, FrontEnd};
use crate::agent::event::{About, AgentEvent, Grant, Permission, Termination};
use crate::domain::Preview;
use crate::protocol::acp;
use crate::rpc::Peer;
use crate::server::permission::{Choice, Request};
use crate::server::updates::question;
use crate::session::event::{PromptId, PromptState, State};
use crate::session::{Offered, SessionId, new_id};
use crate::text::display;

/// A client without tandem's extensions.
pub(in crate::server) struct AcpClient {
    updates: Updates,
    offers: Offers,
    /// The address that was opened for a login.
    link: Option<Link>,
    id: SessionId,
    /// The running explorers, by call.
    explorers: HashMap<String, Updates>,
}

/// An address that the client was asked to open, until the login there has ended.
struct Link {
    elicitation: String,
    /// The question that stands while the login waits for the browser.
    waiting: Option<String>,
}

/// The optional parts of the protocol that a client offers.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the parts are independent of each other"
)]
pub(in crate::server) struct Offers {
    /// `elicitation/create` with a form.
    form: bool,
    /// `elicitation/create` with an address to open.
    url: bool,
    /// `notice` updates.
    notices: bool,
    /// `compaction_update` updates.
    compaction: bool,
    /// Config options that are on or off.
    pub toggles: bool,
    /// A login in a terminal.
    pub terminal_login: bool,
    /// `subagent_update` updates.
    subagents: bool,
}

impl Offers {
    /// What the capabilities of a client announce.
    pub fn of(capabilities: &Value) -> Self {
        let has = |pointer: &str| capabilities.pointer(pointer).is_some_and(Value::is_object);
        Self {
            form: has("/elicitation/form"),
            url: has("/elicitation/url"),
            notices: has("/session/notices"),
            compaction: has("/session/compaction"),
            toggles: has("/session/configOptions/boolean"),
            terminal_login: capabilities["auth"]["terminal"] == true,
            subagents: has("/subagents"),
        }
    }
}

impl AcpClient {
    pub fn new(peer: Peer, id: &SessionId, offers: Offers) -> Self {
        Self {
            updates: Updates::new(peer, id, offers.toggles),
            offers,
            link: None,
            id: SessionId::clone(id),
            explorers: HashMap::new(),
        }
    }

    /// Remembers an opened address, and the question that waits for the person to come back from there.
    fn note_link(&mut self, request: &Request) {
        let elicitation = request.key.clone();
        match &mut self.link {
            _ if request.preview.link.is_some() => {
                let waiting = None;
                self.link = Some(Link {
                    elicitation,
                    waiting,
                });
            }
            Some(link) if request.about == About::Server => {
                link.waiting = Some(request.call_id.clone());
            }
            _ => {}
        }
    }

    /// Shows what an explorer does as a session of its own.
    fn explored(&mut self, call_id: &str, event: AgentEvent) {
        match &event {
            AgentEvent::UserMessage { content, .. } => {
                let id: SessionId = format!("{}/{call_id}", self.id).into();
                let title = display::escape_line(content).into_owned();
                let state = acp::StateUpdate::Running(acp::RunningStateUpdate::new());
                let update = acp::SubagentUpdate::new(SessionId::clone(&id));
                let update = update.title(title).state(state);
                self.updates
                    .send(acp::SessionUpdate::SubagentUpdate(update));
                let updates = Updates::new(self.updates.peer().clone(), &id, false);
                self.explorers.insert(call_id.to_owned(), updates);
            }
            AgentEvent::Done {
                termination_reason, ..
            } => return self.end_explorer(call_id, *termination_reason),
            _ => {}
        }
        if let Some(updates) = self.explorers.get_mut(call_id) {
            // The call that asked shows what is worth a notice.
            let _notice = updates.event(event);
        }
    }

    fn end_explorer(&mut self, call_id: &str, reason: Termination) {
        if self.explorers.remove(call_id).is_none() {
            return;
        }
        let reason = match reason {
            Termination::EndTurn => acp::IdleStopReason::EndTurn,
            Termination::MaxTokens => acp::IdleStopReason::MaxTokens,
            Termination::Refusal => acp::IdleStopReason::Refusal,
            Termination::MaxTurnRequests => acp::IdleStopReason::MaxTurnRequests,
            Termination::Cancelled => acp::IdleStopReason::Cancelled,
            Termination::Error => acp::IdleStopReason::Error(acp::ErrorStopReason::new()),
        };
        let state = acp::StateUpdate::Idle(acp::IdleStateUpdate::new().stop_reason(reason));
        let update = acp::SubagentUpdate::new(format!("{}/{call_id}", self.id)).state(state);
        self.updates
            .send(acp::SessionUpdate::SubagentUpdate(update));
    }
}

impl FrontEnd for AcpClient {
    fn event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Explored { call_id, event } => {
                if self.offers.subagents {
                    self.explored(&call_id, *event);
                }
                return;
            }
            // Cancelled or out of time: its own turn did not end.
            AgentEvent::ToolExecutionEnd { ref call_id, .. } => {
                self.end_explorer(call_id, Termination::Cancelled);
            }
            _ => {}
        }
        let attached = match &event {
            AgentEvent::UserMessage { attached, .. } => attached.clone(),
            _ => Vec::new(),
        };
        let severity = severity(&event);
        let is_compaction = matches!(event, AgentEvent::Compaction { .. });
        let notice = self.updates.event(event);
        // Plugins draw what was attached beside the message, from its `_meta`.
        for block in attached {
            if let Ok(block) = serde_json::from_value(block) {
                let chunk = acp::ContentChunk::new(block);
                self.updates
                    .send(acp::SessionUpdate::UserMessageChunk(chunk));
            }
        }
        let Some(notice) = notice else {
            return;
        };
        self.updates
            .send(if is_compaction && self.offers.compaction {
                let status = acp::CompactionStatus::Completed;
                let update = acp::CompactionUpdate::new(new_id(), status);
                acp::SessionUpdate::CompactionUpdate(update.summary(vec![notice.into()]))
            } else if self.offers.notices {
                let (title, description) = match notice.split_once('\n') {
                    Some((title, more)) => (title.to_owned(), Some(more.to_owned())),
                    None => (notice, None),
                };
                let notice = acp::Notice::new(severity, title).description(description);
                acp::SessionUpdate::Notice(notice)
            } else {
                let thought = acp::ContentChunk::new(format!("{notice}\n").into());
                acp::SessionUpdate::AgentThoughtChunk(thought)
            });
    }

    fn prompt(&mut self, _id: &PromptId, state: &PromptState) {
        if matches!(state, PromptState::Ended(_)) {
            self.link = None;
        }
        self.updates.prompt(state);
    }

    fn state(&mut self, state: &State) {
        self.updates.state(state);
    }

    fn commands(&mut self, commands: &[Offered]) {
        self.updates.commands(commands);
    }

    fn ask(&mut self, request: &Request) -> Answering {
        if self.offers.url {
            self.note_link(request);
        }
        let Preview {
            answers,
            form,
            link,
            ..
        } = &request.preview;
        match (link, form, answers) {
            (Some(link), ..) if self.offers.url => open_link(&self.updates, request, link),
            (_, Some(form), _) if self.offers.form => fill_in(&self.updates, request, form),
            (_, None, Some(answers)) if self.offers.form && request.about != About::Plan => {
                ask_by_form(&self.updates, request, answers)
            }
            _ => request_permission(&mut self.updates, request),
        }
    }

    fn resolved(&mut self, call_id: &str, _decision: &Permission) {
        let is_over = |link: &mut Link| link.waiting.as_deref() == Some(call_id);
        if let Some(link) = self.link.take_if(is_over) {
            let ended = acp::CompleteElicitationNotification::new(link.elicitation);
            self.updates.peer().notify("elicitation/complete", &ended);
        }
        self.updates.resolved(call_id);
    }
}

/// How much a notice about an event matters.
fn severity(event: &AgentEvent) -> acp::NoticeSeverity {
    match event {
        AgentEvent::Retry { .. } | AgentEvent::LoopDetected { .. } => acp::NoticeSeverity::Warning,
        _ => acp::NoticeSeverity::Info,
    }
}

/// `elicitation/create`: a form with one field; where there are answers to choose from, with one for another answer too.
fn ask_by_form(updates: &Updates, request: &Request, answers: &[String]) -> Answering {
    let mut fields = json!({ "answer": { "type": "string", "title": "Answer" } });
    let mut required = json!(["answer"]);
    if !answers.is_empty() {
        fields["answer"]["enum"] = json!(answers);
        fields["other"] = json!({ "type": "string", "title": "Another answer" });
        required = json!([]);
    }
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    let call = json!({ "toolCallId": request.call_id });
    let form = json!({ "mode": "form", "requestedSchema": schema });
    elicit(updates, request, [call, form], |content| {
        let written = |field: &str| {
            content[field]
                .as_str()
                .filter(|words| !words.trim().is_empty())
        };
        match written("other").or(written("answer")) {
            Some(words) => Permission::Answered(words.to_owned()),
            None => Permission::Reject,
        }
    })
}

/// The form of a server as it is: the fields of both protocols are the same.
fn fill_in(updates: &Updates, request: &Request, schema: &Value) -> Answering {
    let form = json!({ "mode": "form", "requestedSchema": schema });
    elicit(updates, request, [form], |content| {
        Permission::Filled(Box::new(content.as_object().cloned().unwrap_or_default()))
    })
}

/// The client opens the address; its answer says whether the person agreed to that.
fn open_link(updates: &Updates, request: &Request, link: &str) -> Answering {
    let mode = json!({ "mode": "url", "elicitationId": request.key, "url": link });
    elicit(updates, request, [mode], |_content| Permission::AllowOnce)
}

/// `elicitation/create`; anything but an accepted one is a no.
fn elicit<const N: usize>(
    updates: &Updates,
    request: &Request,
    fields: [Value; N],
    accepted: fn(&Value) -> Permission,
) -> Answering {
    let mut message = vec![request.title()];
    message.extend(request.preview.description());
    let message = json!({ "sessionId": request.session, "message": message.join("\n") });
    let params: Map<String, Value> = std::iter::once(message)
        .chain(fields)
        .filter_map(|fields| fields.as_object().cloned())
        .flatten()
        .collect();
    let answer = updates.peer().request("elicitation/create", &params);
    Box::pin(async move {
        Some(match answer.await {
            Ok(answer) if answer["action"] == "accept" => accepted(&answer["content"]),
            _ => Permission::Reject,
        })
    })
}

/// `session/request_permission`.
pub(super) fn request_permission(updates: &mut Updates, request: &Request) -> Answering {
    updates.announce(request);
    let params = acp::RequestPermissionRequest::new(
        SessionId::clone(&request.session),
        question(&request.call_id, request.kind, request.preview.clone()),
        request.choices().into_iter().map(option).collect(),
    );
    let answer = updates
        .peer()
        .request("session/request_permission", &params);
    let choices = request.choices();
    Box::pin(async move {
        Some(
            answer
                .await
                .map_or(Permission::Reject, |answer| understood(&answer, &choices)),
        )
    })
}

fn option(choice: Choice) -> acp::PermissionOption {
    let kind = match &choice.permission {
        Permission::AllowOnce => acp::PermissionOptionKind::AllowOnce,
        // Clients answer `allow_once` by themselves or by one key, which would be an answer nobody gave.
        Permission::AllowAlways(_) | Permission::Answered(_) => {
            acp::PermissionOptionKind::AllowAlways
        }
        _ => acp::PermissionOptionKind::RejectOnce,
    };
    let option = acp::PermissionOption::new(choice.id, choice.title, kind);
    match choice.permission {
        Permission::AllowAlways(Grant {
            rule: Some(rule), ..
        }) => option.meta(Map::from_iter([(
            "tandem".to_owned(),
            json!({ "rule": rule }),
        )])),
        _ => option,
    }
}

/// Only a clear yes to an offered choice counts as a yes.
fn understood(answer: &Value, choices: &[Choice]) -> Permission {
    let outcome = &answer["outcome"];
    match outcome["outcome"].as_str() {
        Some("cancelled") => return Permission::Cancelled,
        Some("selected") => {}
        _ => return Permission::Reject,
    }
    let edited = [outcome, answer]
        .into_iter()
        .find_map(|part| part["_meta"]["tandem"]["rule"].as_str());
    let chosen = choices
        .iter()
        .find(|choice| outcome["optionId"] == choice.id);
    match chosen.map(|choice| &choice.permission) {
        Some(Permission::AllowAlways(grant)) => Permission::AllowAlways(Grant {
            scope: grant.scope,
            rule: edited.map(str::to_owned).or_else(|| grant.rule.clone()),
        }),
        Some(permission) => permission.clone(),
        None => Permission::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::event::{Offer, Scope};
    use crate::server::permission::choices;

    #[track_caller]
    fn check(answer: &Value, rule: Option<&str>, expected: &Permission) {
        let offer = Offer {
            rule: rule.map(str::to_owned),
            ..Offer::default()
        };
        assert_eq!(understood(answer, &choices(&offer)), *expected, "{answer}");
    }

    fn selected(id: &str) -> Value {
        json!({ "outcome": { "outcome": "selected", "optionId": id } })
    }

    #[test]
    fn anything_but_a_clear_yes_is_no() {
        check(&selected("allow_once"), None, &Permission::AllowOnce);
        for nonsense in [
            selected("reject_once"),
            selected("yes"),
            selected("allow_always"),
            selected("allow_always_project"),
            selected("allow_turn"),
            json!(null),
            json!([]),
            json!({ "outcome": "selected" }),
            json!({ "outcome": { "outcome": "selected" } }),
            json!({ "outcome": { "outcome": "selected", "optionId": ["allow_once"] } }),
        ] {
            check(&nonsense, None, &Permission::Reject);
        }
    }

    #[test]
    fn remembered_approvals_name_scope_and_rule() {
        let grant = |scope, rule: Option<&str>| {
            Permission::AllowAlways(Grant {
                scope,
                rule: rule.map(str::to_owned),
            })
        };
        let offered = Some("run_command(cargo *)");
        check(
            &selected("allow_always"),
            offered,
            &grant(Scope::Session, offered),
        );
        check(
            &selected("allow_always_project"),
            offered,
            &grant(Scope::Project, offered),
        );
        check(
            &selected("allow_always_for_good"),
            offered,
            &Permission::Reject,
        );
        let mut answer = selected("allow_always");
        answer["_meta"]["tandem"]["rule"] = json!("run_command(cargo test *)");
        check(
            &answer,
            offered,
            &grant(Scope::Session, Some("run_command(cargo test *)")),
        );
    }
}
