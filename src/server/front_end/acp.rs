//! A client of the Agent Client Protocol: it is sent version 1 and nothing else.

use serde_json::{Map, Value, json};

use super::updates::Updates;
use super::{Answering, FrontEnd};
use crate::agent::event::{AgentEvent, Grant, Permission};
use crate::protocol::acp;
use crate::rpc::Peer;
use crate::server::permission::{Choice, Request};
use crate::server::updates::question;
use crate::session::event::{PromptId, PromptState, State};
use crate::session::{Offered, SessionId};

/// A client without tandem's extensions.
pub(in crate::server) struct AcpClient {
    updates: Updates,
    /// Whether it has `elicitation/create`.
    shows_forms: bool,
}

impl AcpClient {
    pub fn new(peer: Peer, id: &SessionId, shows_forms: bool) -> Self {
        Self {
            updates: Updates::new(peer, id),
            shows_forms,
        }
    }
}

impl FrontEnd for AcpClient {
    fn event(&mut self, event: AgentEvent) {
        if let Some(notice) = self.updates.event(event) {
            // The protocol has no notices, so each becomes a thought.
            let thought = acp::ContentChunk::new(format!("{notice}\n").into());
            self.updates
                .send(acp::SessionUpdate::AgentThoughtChunk(thought));
        }
    }

    fn prompt(&mut self, id: &PromptId, state: &PromptState) {
        self.updates.prompt(id, state);
    }

    fn state(&mut self, state: &State) {
        self.updates.state(state);
    }

    fn commands(&mut self, commands: &[Offered]) {
        self.updates.commands(commands);
    }

    fn ask(&mut self, request: &Request) -> Answering {
        match &request.preview.answers {
            Some(answers) if self.shows_forms => ask_by_form(&self.updates, request, answers),
            _ => request_permission(&mut self.updates, request),
        }
    }

    fn resolved(&mut self, call_id: &str, _decision: &Permission) {
        self.updates.resolved(call_id);
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
    let params = json!({
        "sessionId": request.session,
        "toolCallId": request.call_id,
        "mode": "form",
        "message": request.title(),
        "requestedSchema": { "type": "object", "properties": fields, "required": required },
    });
    let answer = updates.peer().request("elicitation/create", &params);
    Box::pin(async move {
        Some(
            answer
                .await
                .map_or(Permission::Reject, |answer| filled_in(&answer)),
        )
    })
}

fn filled_in(answer: &Value) -> Permission {
    let written = |field: &str| {
        answer["content"][field]
            .as_str()
            .filter(|words| !words.trim().is_empty())
    };
    match written("other").or(written("answer")) {
        Some(words) if answer["action"] == "accept" => Permission::Answered(words.to_owned()),
        _ => Permission::Reject,
    }
}

/// `session/request_permission`.
pub(super) fn request_permission(updates: &mut Updates, request: &Request) -> Answering {
    updates.announce(request);
    let params = acp::RequestPermissionRequest::new(
        SessionId::clone(&request.session),
        question(&request.call_id, request.kind, request.preview.clone()),
        request
            .choices()
            .into_iter()
            .map(|choice| option(choice, request.rule.as_deref()))
            .collect(),
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

fn option(choice: Choice, rule: Option<&str>) -> acp::PermissionOption {
    let kind = match choice.permission {
        Permission::AllowOnce => acp::PermissionOptionKind::AllowOnce,
        // Clients answer `allow_once` by themselves or by one key, which would be an answer nobody gave.
        Permission::AllowAlways(_) | Permission::Answered(_) => {
            acp::PermissionOptionKind::AllowAlways
        }
        _ => acp::PermissionOptionKind::RejectOnce,
    };
    let option = acp::PermissionOption::new(choice.id, choice.title, kind);
    match (kind, rule) {
        (acp::PermissionOptionKind::AllowAlways, Some(rule)) => option.meta(Map::from_iter([(
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
            rule: edited.map(str::to_owned),
        }),
        Some(permission) => permission.clone(),
        None => Permission::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::event::Scope;
    use crate::server::permission::choices;

    #[track_caller]
    fn check(answer: &Value, rule: Option<&str>, expected: &Permission) {
        assert_eq!(understood(answer, &choices(rule)), *expected, "{answer}");
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
            &grant(Scope::Session, None),
        );
        check(
            &selected("allow_always_project"),
            offered,
            &grant(Scope::Project, None),
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
