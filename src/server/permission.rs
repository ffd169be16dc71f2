//! Pending permission requests and the answers they offer: one table for all sessions and front ends, so that a command
//! or a code action can answer, too.

use std::ops::Deref;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Server;
use super::dispatch::{Answer, error};
use crate::agent::event::{
    About, Grant, Offer, Permission, PermissionRequest, START, START_ELSEWHERE, START_FRESH, Scope,
};
use crate::rpc::ErrorCode;
use crate::session::SessionId;
use crate::text::display;

/// How many answers may be queued for the server.
const DECISIONS: usize = 8;

/// A request, as a front end shows it.
#[derive(Debug)]
pub(super) struct Request {
    /// A unique key: an answer to a request that is gone must not count for another one, and two sessions may have
    /// calls with the same id.
    pub key: String,
    pub session: SessionId,
    asked: Box<PermissionRequest>,
    /// Whether the client opens a session for a plan.
    pub opens_sessions: bool,
}

impl Deref for Request {
    type Target = PermissionRequest;

    fn deref(&self) -> &PermissionRequest {
        &self.asked
    }
}

impl Request {
    /// What will happen, in one line.
    pub fn title(&self) -> String {
        display::escape_line(&self.preview.title).into_owned()
    }

    /// What it asks for, before its title.
    pub fn lead(&self) -> &'static str {
        match self.about {
            About::Call { .. } if self.preview.answers.is_none() => "Allow?",
            About::Apply => "Apply?",
            About::Call { .. } => "Question:",
            About::Pause => "Paused:",
            About::Plan => "Plan:",
            About::Server => "MCP server:",
        }
    }

    pub fn choices(&self) -> Vec<Choice> {
        if self.about == About::Apply {
            return yes_or_no("Apply", "Discard");
        }
        if self.about == About::Plan {
            return plan_choices(self.opens_sessions);
        }
        if self.preview.link.is_some() {
            return yes_or_no("Open in the Browser", "Not Now");
        }
        match &self.preview.answers {
            Some(options) => answers(options, self.preview.form.is_some()),
            None => choices(&self.offer),
        }
    }
}

/// One possible answer.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub id: String,
    pub title: String,
    pub permission: Permission,
}

impl From<(&str, &str, Permission)> for Choice {
    fn from((id, title, permission): (&str, &str, Permission)) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            permission,
        }
    }
}

fn yes_or_no(yes: &str, no: &str) -> Vec<Choice> {
    [
        ("allow_once", yes, Permission::AllowOnce),
        ("reject_once", no, Permission::Reject),
    ]
    .map(Choice::from)
    .into()
}

/// The choices, from narrow to wide, the refusal last. Titles begin with how long they apply, because menus truncate.
pub(super) fn choices(offer: &Offer) -> Vec<Choice> {
    let mut choices = vec![Choice::from(("allow_once", "Allow", Permission::AllowOnce))];
    let grant = |scope, rule| Permission::AllowAlways(Grant { scope, rule });
    if offer.turn {
        let turn = (
            "allow_turn",
            "Allow All of This Turn",
            grant(Scope::Turn, None),
        );
        choices.push(turn.into());
    }
    let always = [
        ("allow_always", Scope::Session, &offer.rule),
        ("allow_always_prefix", Scope::Session, &offer.prefix),
        (
            "allow_always_project",
            Scope::Project,
            if offer.prefix.is_some() {
                &offer.prefix
            } else {
                &offer.rule
            },
        ),
    ];
    choices.extend(always.into_iter().filter_map(|(id, scope, rule)| {
        let rule = rule.as_deref()?;
        Some(Choice {
            id: id.to_owned(),
            title: format!("Always ({}): {}", scope.name(), display::escape_line(rule)),
            permission: grant(scope, Some(rule.to_owned())),
        })
    }));
    choices.push(("reject_once", "Reject", Permission::Reject).into());
    choices
}

/// The choices for a plan. A client that opens sessions can start it in a new one; in any other, the session can drop
/// its other context.
fn plan_choices(opens_sessions: bool) -> Vec<Choice> {
    let fresh = if opens_sessions {
        ("answer_start_new", START_ELSEWHERE)
    } else {
        ("answer_start_fresh", START_FRESH)
    };
    let choice = |(id, title): (&str, &str)| {
        Choice::from((id, title, Permission::Answered(title.to_owned())))
    };
    let revise = ("reject_once", "Revise", Permission::Reject).into();
    [choice(("answer_start", START)), choice(fresh), revise].into()
}

/// What the model reads when the person wants to write the answer, for clients that offer only choices.
const IN_CHAT: &str = "I'll answer in my next message. End your turn now by restating the question";

/// The answers to a question, and the ways to write another one or none. What the person writes in the chat answers a
/// form; for a question of the model, it is a message.
fn answers(options: &[String], is_form: bool) -> Vec<Choice> {
    let answer = |(number, option): (usize, &String)| Choice {
        id: format!("answer_{number}"),
        title: display::escape_line(option).into_owned(),
        permission: Permission::Answered(option.clone()),
    };
    let in_chat = Permission::Answered(IN_CHAT.to_owned());
    let in_chat = Choice::from(("answer_in_chat", "Answer in the Chat", in_chat));
    options
        .iter()
        .enumerate()
        .map(answer)
        .chain((!is_form).then_some(in_chat))
        .chain([("reject_once", "No Answer", Permission::Reject).into()])
        .collect()
}

/// The open requests.
#[derive(Debug)]
pub(super) struct Requests {
    open: Vec<Open>,
    decisions: mpsc::Sender<(String, Permission)>,
    decided: mpsc::Receiver<(String, Permission)>,
}

#[derive(Debug)]
struct Open {
    request: Request,
    /// The task that waits for the front end's answer.
    task: AbortHandle,
}

impl Default for Requests {
    fn default() -> Self {
        let (decisions, decided) = mpsc::channel(DECISIONS);
        Self {
            open: Vec::new(),
            decisions,
            decided,
        }
    }
}

impl Requests {
    /// The next answer from a front end: a request's key, and the decision.
    pub async fn decided(&mut self) -> Option<(String, Permission)> {
        self.decided.recv().await
    }

    /// The open requests, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Request> {
        self.open.iter().map(|open| &open.request)
    }

    /// Answers the request with this key or for the call with this id, or else the oldest.
    pub fn answer(&mut self, wanted: Option<&str>, permission: Permission) -> Answer<()> {
        let refused = |why: &str| error(ErrorCode::InvalidRequest, why);
        let nothing = || {
            refused("no pending permission request with that id; it may already have been answered")
        };
        let matches = |open: &Open| {
            wanted.is_none_or(|name| name == open.request.key || name == open.request.call_id)
        };
        let mut meant = self.open.iter_mut().filter(|open| matches(open));
        let open = meant.next().ok_or_else(nothing)?;
        if wanted.is_some() && meant.next().is_some() {
            return Err(refused(
                "two sessions have a pending call with that id; answer with a code action",
            ));
        }
        let is_offered = |grant: &Grant| match grant.scope {
            Scope::Turn => open.request.offer.turn,
            Scope::Session | Scope::Project => open.request.offer.rule.is_some(),
        };
        if matches!(&permission, Permission::AllowAlways(grant) if !is_offered(grant)) {
            return Err(refused(
                "this requires approval every time; `tandem.allow` allows it once",
            ));
        }
        if matches!(permission, Permission::Answered(_)) && open.request.preview.answers.is_none() {
            return Err(refused(
                "this is not a question; `tandem.allow` without an answer allows it",
            ));
        }
        let reply = open.request.asked.reply.take().ok_or_else(nothing)?;
        let _turn_gone = reply.send(permission);
        Ok(())
    }

    /// Removes the requests of a closed session.
    pub fn forget(&mut self, id: &str) {
        self.remove(|request| *request.session == *id);
    }

    fn remove(&mut self, is_over: impl Fn(&Request) -> bool) {
        for open in self.open.extract_if(.., |open| is_over(&open.request)) {
            open.task.abort();
        }
    }
}

impl Server {
    /// Asks the person to decide about a call.
    pub fn ask_permission(&mut self, id: &SessionId, asked: Box<PermissionRequest>) {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        let key = format!("{id}/{}", asked.call_id);
        let request = Request {
            key: key.clone(),
            session: SessionId::clone(id),
            asked,
            opens_sessions: self.client.opens_sessions,
        };
        let answer = conversation.front.ask(&request);
        let decisions = self.requests.decisions.clone();
        let task = self.tasks.spawn(async move {
            if let Some(permission) = answer.await {
                let _server_gone = decisions.send((key, permission)).await;
            }
        });
        self.requests.open.push(Open { request, task });
    }

    /// A request is decided, wherever the answer came from.
    pub fn permission_resolved(&mut self, id: &SessionId, call_id: &str, decision: &Permission) {
        let is_it = |request: &Request| request.session == *id && request.call_id == call_id;
        let link = self
            .requests
            .open()
            .find(|request| is_it(request))
            .and_then(|request| request.preview.link.clone());
        // A client of the Agent Client Protocol opened it before it answered.
        if let Some(link) = link
            && *decision == Permission::AllowOnce
        {
            self.open_in_browser(&link);
        }
        self.requests.remove(is_it);
        if let Some(conversation) = self.conversations.get_mut(id) {
            conversation.front.resolved(call_id, decision);
        }
    }
}
