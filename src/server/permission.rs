//! `session/request_permission`: a question of a turn, as the client shows it.

use serde_json::Value;
use tokio::sync::oneshot;

use super::status::working;
use super::{Server, updates};
use crate::agent::event::{Permission, Preview, ToolKind};
use crate::protocol::{acp, ext};
use crate::session::SessionId;

impl Server {
    pub(super) fn ask_permission(
        &mut self,
        id: &SessionId,
        call_id: &str,
        kind: ToolKind,
        preview: Preview,
        reply: oneshot::Sender<Permission>,
    ) {
        let may_remember = preview.caution.is_none();
        let request = acp::RequestPermissionRequest::new(
            std::sync::Arc::clone(id),
            updates::question(call_id, kind, preview),
            options(may_remember),
        );
        let answer = self.peer.request("session/request_permission", &request);
        self.tasks.spawn(async move {
            let mut reply = reply;
            let permission = tokio::select! {
                answer = answer => answer.map_or(Permission::Reject, |answer| understood(&answer)),
                // The turn does not wait any longer: it was cancelled.
                () = reply.closed() => return,
            };
            let _turn_gone = reply.send(permission);
        });
        self.tell_status(id, ext::State::Waiting, working(kind));
    }
}

fn options(may_remember: bool) -> Vec<acp::PermissionOption> {
    let option = |id: &'static str, name: &str, kind| acp::PermissionOption::new(id, name, kind);
    let mut options = vec![option("allow_once", "Allow", acp::PermissionOptionKind::AllowOnce)];
    if may_remember {
        let name = "Allow for this file in this session";
        options.push(option("allow_always", name, acp::PermissionOptionKind::AllowAlways));
    }
    options.push(option("reject_once", "Reject", acp::PermissionOptionKind::RejectOnce));
    options
}

/// Only a clear yes is a yes.
fn understood(answer: &Value) -> Permission {
    let outcome = &answer["outcome"];
    match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
        (Some("selected"), Some("allow_once")) => Permission::AllowOnce,
        (Some("selected"), Some("allow_always")) => Permission::AllowAlways,
        (Some("cancelled"), _) => Permission::Cancelled,
        _ => Permission::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_not_a_clear_yes_is_no() {
        let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
        assert_eq!(understood(&selected("allow_once")), Permission::AllowOnce);
        assert_eq!(understood(&selected("allow_always")), Permission::AllowAlways);
        for nonsense in
            [selected("reject_once"), selected("yes"), json!(null), json!([]), json!({ "outcome": "selected" })]
        {
            assert_eq!(understood(&nonsense), Permission::Reject, "{nonsense}");
        }
    }
}
