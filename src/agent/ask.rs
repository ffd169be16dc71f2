//! Permission: shows what a call is going to do, and asks before it runs.
//!
//! No call runs without such a request; whether a person, the mode or a rule answers it is up to the session
//! (`session/questions.rs`).
//!
//! No answer means no. A call may do only what was shown: the returned context limits the tool to these files. A turn
//! that a limit or a loop stopped asks in the same way whether to continue.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::event::{About, AgentEvent, Offer, Permission, PermissionRequest};
use super::steps::Steps;
use crate::tools::{
    Ask, Person, Preview, Reply, Tool, ToolContext, ToolError, ToolKind, ToolOutput,
};

/// Used where a request about a call has the name of its tool.
const PAUSE: &str = "go_on";
/// The same of a request to apply what was tried.
pub const APPLY: &str = "apply";
/// The same of a request to start a plan.
const PLAN: &str = "plan";
/// The same of a question of an MCP server's.
const SERVER: &str = "mcp";

/// What the model is told of a call that the person did not allow.
const REJECTED: &str = "the user rejected this call; nothing was changed.\nDo not retry it or work around it: ask what they want instead, or continue without it";

/// A call waiting for permission.
pub(super) struct Wish<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
    pub tool: &'a dyn Tool,
    pub arguments: &'a serde_json::Value,
    /// See [`Call`](super::schedule::Call).
    pub in_prose: Option<&'a str>,
}

/// Returns the context the call may run with, or else its result. `asking` is true while a person has to
/// answer.
pub(super) async fn ask(
    wish: Wish<'_>,
    context: &ToolContext,
    steps: &Steps,
    asking: &watch::Sender<bool>,
) -> Result<ToolContext, Box<ToolOutput>> {
    let unrun = |error: ToolError| Box::new(ToolOutput::from(error));
    let Wish {
        call_id,
        name,
        tool,
        in_prose,
        ..
    } = wish;
    let cancelled = || unrun(ToolError("cancelled before it ran".to_owned()));
    let shown = context
        .cancel
        .run_until_cancelled(show(&wish, context, steps));
    let preview = shown.await.ok_or_else(cancelled)?.map_err(unrun)?;
    let decided = Arc::new(preview.clone());
    let is_question = preview.answers.is_some();
    let (asked, is_asked) = oneshot::channel();
    let about = About::Call {
        rule_name: tool.rule_name().to_owned(),
        in_prose: in_prose.is_some(),
        asks: true,
    };
    let mut request = request(about, call_id.to_owned(), name, tool.kind(), preview);
    request.asked = Some(asked);
    let note = async {
        // Only a call that needs no person drops the receiver.
        if is_asked.await.is_ok() {
            asking.send_replace(true);
        }
        pending().await
    };
    let outcome = decision(request, steps, &context.cancel, note).await;
    asking.send_replace(false);
    match outcome {
        Permission::AllowOnce | Permission::AllowAlways(_) => Ok(ToolContext {
            decided: Some(decided),
            ..context.clone()
        }),
        Permission::Answered(answer) => Ok(ToolContext {
            decided: Some(decided),
            answer: Some(answer),
            ..context.clone()
        }),
        Permission::Reject if is_question => Ok(context.clone()),
        // A form is filled in only if one was shown, and no call shows one.
        Permission::Reject | Permission::Filled(_) => Err(Box::new(ToolOutput {
            rejected: true,
            ..ToolError(REJECTED.to_owned()).into()
        })),
        Permission::Cancelled => Err(cancelled()),
        Permission::Forbidden(why) => {
            // So that a person can read the example it may have been.
            if let Some(text) = in_prose.filter(|text| !text.is_empty()) {
                let content = format!("\n{text}");
                steps.event(AgentEvent::TextDelta { content }).await;
            }
            Err(unrun(ToolError(why)))
        }
    }
}

/// Shows what a call is going to do. For a call that cannot work, what it tried replaces the part that was shown while
/// it streamed.
pub(super) async fn show(
    wish: &Wish<'_>,
    context: &ToolContext,
    steps: &Steps,
) -> Result<Preview, ToolError> {
    let preview = wish.tool.preview(context, wish.arguments).await;
    let shown = match &preview {
        Ok(preview) => Some(preview.clone()),
        Err(_) if context.cancel.is_cancelled() => None,
        Err(_) => wish.tool.sketch(context, wish.arguments).await,
    };
    if let Some(preview) = shown {
        let kind = wish.tool.kind();
        steps
            .event(AgentEvent::preview(wish.call_id, kind, preview))
            .await;
    }
    preview
}

/// Asks whether to continue a turn that was stopped at this place (unique in its session) for this reason. Only the
/// person can decide this, no mode and no rule.
pub(super) async fn go_on(
    place: &str,
    why: &str,
    cancel: &CancellationToken,
    steps: &Steps,
) -> bool {
    let preview = Preview {
        title: format!("Continue? The turn paused {why}"),
        caution: Some("answering no ends the turn; changes so far are kept".to_owned()),
        ..Preview::default()
    };
    let call_id = format!("{PAUSE}-{place}");
    let request = request(About::Pause, call_id, PAUSE, ToolKind::Think, preview);
    decision(request, steps, cancel, pending()).await.allows()
}

/// Asks what becomes of the plan of a turn. Only the person can decide this, no mode and no rule.
pub(super) async fn about_plan(
    place: &str,
    preview: Preview,
    cancel: &CancellationToken,
    steps: &Steps,
) -> Permission {
    let call_id = format!("{PLAN}-{place}");
    let request = request(About::Plan, call_id, PLAN, ToolKind::Think, preview);
    decision(request, steps, cancel, pending()).await
}

/// Asks whether to apply what a turn changed in a copy of the workspace. Only the person can decide this, no mode and no
/// rule.
pub async fn whether_to_apply(
    call_id: &str,
    preview: Preview,
    cancel: &CancellationToken,
    steps: &Steps,
) -> Permission {
    let kind = ToolKind::Edit;
    for event in AgentEvent::own_call(call_id, APPLY, kind, preview.clone()) {
        steps.event(event).await;
    }
    let request = request(About::Apply, call_id.to_owned(), APPLY, kind, preview);
    decision(request, steps, cancel, pending()).await
}

/// The person of a turn, for questions named after `place`, which is unique in its session.
pub fn person(place: &str, cancel: &CancellationToken, steps: Steps) -> Person {
    Person::new(Asking {
        place: place.to_owned(),
        asked: AtomicU32::new(0),
        cancel: cancel.clone(),
        steps,
    })
}

struct Asking {
    place: String,
    /// How many questions there were.
    asked: AtomicU32,
    cancel: CancellationToken,
    steps: Steps,
}

impl Ask for Asking {
    fn ask(&self, preview: Preview, withdrawn: CancellationToken) -> BoxFuture<'static, Reply> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let call_id = format!("{SERVER}-{}-{number}", self.place);
        let request = request(About::Server, call_id, SERVER, ToolKind::Think, preview);
        let (steps, cancel) = (self.steps.clone(), self.cancel.clone());
        async move {
            let withdrawn = withdrawn.cancelled().map(|()| Permission::Reject);
            match decision(request, &steps, &cancel, withdrawn).await {
                Permission::AllowOnce => Reply::Yes,
                Permission::Answered(text) => Reply::Text(text),
                Permission::Filled(form) => Reply::Form(*form),
                _ => Reply::No,
            }
        }
        .boxed()
    }
}

/// A request that nobody has been asked yet.
fn request(
    about: About,
    call_id: String,
    name: &str,
    kind: ToolKind,
    preview: Preview,
) -> PermissionRequest {
    PermissionRequest {
        about,
        call_id,
        name: name.to_owned(),
        kind,
        preview,
        offer: Offer::default(),
        reply: None,
        asked: None,
    }
}

/// Asks, and waits for the answer, or for `otherwise`. "Cancelled" means the turn (ACP), and may arrive before the
/// cancellation itself does.
async fn decision(
    mut request: PermissionRequest,
    steps: &Steps,
    cancel: &CancellationToken,
    otherwise: impl Future<Output = Permission>,
) -> Permission {
    let (reply, answer) = oneshot::channel();
    request.reply = Some(reply);
    let call_id = request.call_id.clone();
    steps
        .event(AgentEvent::PermissionRequested(Box::new(request)))
        .await;
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Permission::Cancelled,
        answer = answer => answer.unwrap_or(Permission::Reject),
        outcome = otherwise => outcome,
    };
    if matches!(outcome, Permission::Cancelled) {
        cancel.cancel();
    }
    steps
        .event(AgentEvent::PermissionResolved {
            call_id,
            outcome: outcome.clone(),
        })
        .await;
    outcome
}
