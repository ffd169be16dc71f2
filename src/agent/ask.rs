//! Permission: showing what a call is going to do, and asking before it does it.
//!
//! Every call is asked about, here and nowhere else; whether a person has to answer or the mode and the rules do is
//! decided by whoever receives the request. No answer is no. What may run then is what was shown: the returned context lets
//! the tool touch these files alone. A turn that a guard has stopped asks the same way whether it goes on.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::event::{About, AgentEvent, Permission};
use super::steps::Steps;
use crate::tools::{Preview, Tool, ToolContext, ToolError, ToolKind};

/// Stands where a request about a call has the name of its tool.
const PAUSE: &str = "go_on";

/// A call that wants to run.
pub(super) struct Wish<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
    pub tool: &'a dyn Tool,
    pub arguments: &'a serde_json::Value,
}

/// The context the call may run with, else what the model is told. `asking` is true while a person has to answer.
pub(super) async fn ask(
    wish: Wish<'_>,
    context: &ToolContext,
    steps: &Steps,
    asking: &watch::Sender<bool>,
) -> Result<ToolContext, String> {
    let Wish { call_id, name, tool, arguments } = wish;
    let kind = tool.kind();
    let preview = tool.preview(context, arguments).await.map_err(|ToolError(why)| why)?;
    steps.event(AgentEvent::ToolPreview { call_id: call_id.to_owned(), kind, preview: preview.clone() }).await;
    let decided = Arc::new(preview.clone());
    let (reply, answer) = oneshot::channel();
    let (asked, is_asked) = oneshot::channel();
    let request = AgentEvent::PermissionRequested {
        about: About::Call { rule_name: tool.rule_name().to_owned() },
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        kind,
        preview: Box::new(preview),
        rule: None,
        reply: Some(reply),
        asked: Some(asked),
    };
    steps.event(request).await;
    let note = async {
        // Only a call that waits for nobody drops it.
        if is_asked.await.is_ok() {
            asking.send_replace(true);
        }
        std::future::pending().await
    };
    let outcome = tokio::select! {
        outcome = decision(answer, &context.cancel) => outcome,
        never = note => never,
    };
    asking.send_replace(false);
    steps.event(AgentEvent::PermissionResolved { call_id: call_id.to_owned(), outcome: outcome.clone() }).await;
    match outcome {
        Permission::AllowOnce | Permission::AllowAlways(_) => {
            Ok(ToolContext { decided: Some(decided), ..context.clone() })
        }
        Permission::Reject => {
            Err("the user said no to this call; nothing was changed.\nDo not repeat it: ask what they \
                                   want instead, or go another way"
                .to_owned())
        }
        Permission::Cancelled => Err("cancelled by the user before it ran".to_owned()),
        Permission::Forbidden(why) => Err(why),
    }
}

/// Asks whether a turn goes on that was stopped at a place (unique in its session) for a reason. Only the person can say
/// so: no mode, no rule.
pub(super) async fn go_on(place: &str, why: &str, cancel: &CancellationToken, steps: &Steps) -> bool {
    let call_id = format!("{PAUSE}-{place}");
    let (reply, answer) = oneshot::channel();
    let preview = Preview {
        title: format!("Go on? The turn stopped {why}"),
        caution: Some("no ends it here; nothing is lost".to_owned()),
        ..Preview::default()
    };
    let question = AgentEvent::PermissionRequested {
        about: About::Pause,
        call_id: call_id.clone(),
        name: PAUSE.to_owned(),
        kind: ToolKind::Think,
        preview: Box::new(preview),
        rule: None,
        reply: Some(reply),
        asked: None,
    };
    steps.event(question).await;
    let outcome = decision(answer, cancel).await;
    let goes_on = matches!(outcome, Permission::AllowOnce | Permission::AllowAlways(_));
    steps.event(AgentEvent::PermissionResolved { call_id, outcome }).await;
    goes_on
}

/// What the person says. "Cancelled" means the turn (ACP), and may arrive before the cancellation itself does.
async fn decision(answer: oneshot::Receiver<Permission>, cancel: &CancellationToken) -> Permission {
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Permission::Cancelled,
        answer = answer => answer.unwrap_or(Permission::Reject),
    };
    if matches!(outcome, Permission::Cancelled) {
        cancel.cancel();
    }
    outcome
}
