//! `session/request_permission`: a question of a turn, as the client shows it.

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::status::working;
use super::{Server, updates};
use crate::agent::event::{Grant, Permission, Preview, Scope, ToolKind};
use crate::protocol::{acp, ext};
use crate::session::SessionId;
use crate::text::display;

/// The words on the choices, on both carriers.
pub(super) const ALLOW: &str = "Allow";
/// The safe choice.
pub(super) const REJECT: &str = "Reject";

/// The choices that remember, with their option ids, from narrow to wide.
const ALWAYS: [(&str, Scope); 2] = [("allow_always", Scope::Session), ("allow_always_project", Scope::Project)];

/// What a choice that remembers says: for how long (first, because menus cut), and the very rule it adds.
pub(super) fn always(rule: &str, scope: Scope) -> String {
    let place = match scope {
        Scope::Session => "session",
        Scope::Project => "project",
    };
    format!("Always ({place}): {}", display::escape_line(rule))
}

impl Server {
    pub(super) fn ask_permission(
        &mut self,
        id: &SessionId,
        call_id: &str,
        kind: ToolKind,
        (preview, rule): (Preview, Option<String>),
        reply: oneshot::Sender<Permission>,
    ) {
        let request = acp::RequestPermissionRequest::new(
            std::sync::Arc::clone(id),
            updates::question(call_id, kind, preview),
            options(rule.as_deref()),
        );
        let answer = self.peer.request("session/request_permission", &request);
        self.tasks.spawn(async move {
            let mut reply = reply;
            let permission = tokio::select! {
                answer = answer => answer.map_or(Permission::Reject, |answer| understood(&answer, rule.is_some())),
                // The turn does not wait any longer: it was cancelled.
                () = reply.closed() => return,
            };
            let _turn_gone = reply.send(permission);
        });
        self.tell_status(id, ext::State::Waiting, working(kind));
    }
}

fn options(rule: Option<&str>) -> Vec<acp::PermissionOption> {
    let mut options = vec![acp::PermissionOption::new("allow_once", ALLOW, acp::PermissionOptionKind::AllowOnce)];
    for (rule, (id, scope)) in rule.into_iter().flat_map(|rule| ALWAYS.map(|choice| (rule, choice))) {
        let meta = Map::from_iter([("tandem".to_owned(), json!({ "rule": rule }))]);
        let option = acp::PermissionOption::new(id, always(rule, scope), acp::PermissionOptionKind::AllowAlways);
        options.push(option.meta(meta));
    }
    options.push(acp::PermissionOption::new("reject_once", REJECT, acp::PermissionOptionKind::RejectOnce));
    options
}

/// Only a clear yes to what was offered is a yes.
fn understood(answer: &Value, may_remember: bool) -> Permission {
    let outcome = &answer["outcome"];
    let edited = [outcome, answer].map(|part| part["_meta"]["tandem"]["rule"].as_str());
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some("allow_once")) => Permission::AllowOnce,
        (Some("selected"), Some(option)) if may_remember => {
            let scope = ALWAYS.iter().find(|(id, _)| *id == option).map(|(_, scope)| *scope);
            let grant = |scope| Grant { scope, rule: edited.into_iter().flatten().next().map(str::to_owned) };
            scope.map_or(Permission::Reject, |scope| Permission::AllowAlways(grant(scope)))
        }
        (Some("cancelled"), _) => Permission::Cancelled,
        _ => Permission::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &Value, may_remember: bool, expected: &Permission) {
        assert_eq!(understood(answer, may_remember), *expected, "{answer}");
    }

    fn selected(id: &str) -> Value {
        json!({ "outcome": { "outcome": "selected", "optionId": id } })
    }

    #[test]
    fn whatever_is_not_a_clear_yes_is_no() {
        check(&selected("allow_once"), false, &Permission::AllowOnce);
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
            check(&nonsense, false, &Permission::Reject);
        }
    }

    #[test]
    fn a_yes_that_is_remembered_says_for_how_long_and_what() {
        let grant = |scope, rule: Option<&str>| Permission::AllowAlways(Grant { scope, rule: rule.map(str::to_owned) });
        check(&selected("allow_always"), true, &grant(Scope::Session, None));
        check(&selected("allow_always_project"), true, &grant(Scope::Project, None));
        check(&selected("allow_always_for_good"), true, &Permission::Reject);
        let mut answer = selected("allow_always");
        answer["_meta"]["tandem"]["rule"] = json!("run_command(cargo test *)");
        check(&answer, true, &grant(Scope::Session, Some("run_command(cargo test *)")));
    }
}
