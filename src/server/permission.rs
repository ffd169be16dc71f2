//! Pending permission requests: one table for all conversations and front ends.

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::Server;
use super::dispatch::{Answer, error};
use crate::agent::event::{About, AgentEvent, Grant, Permission, Scope};
use crate::domain::{Preview, ToolKind};
use crate::rpc::ErrorCode;
use crate::session::SessionId;
use crate::text::display;

/// How many answers may be queued for the server.
const DECISIONS: usize = 8;

/// A request, as a front end shows it.
#[derive(Debug)]
pub(super) struct Request {
    /// A unique key: an answer to a request that is gone must not count for another one, and two conversations may have
    /// calls with the same id.
    pub key: String,
    pub session: SessionId,
    pub call_id: String,
    pub about: About,
    pub kind: ToolKind,
    pub preview: Preview,
    /// The rule that "always" would add; `None` if this requires approval every time.
    pub rule: Option<String>,
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
            About::Call { .. } | About::Pause => "tandem asks:",
        }
    }

    pub fn choices(&self) -> Vec<Choice> {
        if self.about == About::Apply {
            return [
                ("allow_once", "Apply", Permission::AllowOnce),
                ("reject_once", "Discard", Permission::Reject),
            ]
            .map(|(id, title, permission)| Choice {
                id: id.to_owned(),
                title: title.to_owned(),
                permission,
            })
            .into();
        }
        self.preview
            .answers
            .as_deref()
            .map_or_else(|| choices(self.rule.as_deref()), answers)
    }
}

/// One possible answer.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub id: String,
    pub title: String,
    pub permission: Permission,
}

/// The choices, from narrow to wide, the refusal last. Titles begin with how long they apply, because menus truncate.
pub(super) fn choices(rule: Option<&str>) -> Vec<Choice> {
    let choice = |id: &str, title: &str, permission| Choice {
        id: id.to_owned(),
        title: title.to_owned(),
        permission,
    };
    let mut choices = vec![choice("allow_once", "Allow", Permission::AllowOnce)];
    if let Some(rule) = rule.map(display::escape_line) {
        let always = [
            ("allow_always", "session", Scope::Session),
            ("allow_always_project", "project", Scope::Project),
        ];
        choices.extend(always.map(|(id, place, scope)| {
            choice(
                id,
                &format!("Always ({place}): {rule}"),
                Permission::AllowAlways(Grant::offered(scope)),
            )
        }));
    }
    choices.push(choice("reject_once", "Reject", Permission::Reject));
    choices
}

/// What the model reads when the person wants to write the answer, for clients that offer only choices.
const IN_CHAT: &str = "in their next message. End your turn now by repeating the question, and go on when it is answered";

/// The answers to a question of the model's, and the ways to write another one or none.
fn answers(options: &[String]) -> Vec<Choice> {
    let answer = |(number, option): (usize, &String)| Choice {
        id: format!("answer_{number}"),
        title: display::escape_line(option).into_owned(),
        permission: Permission::Answered(option.clone()),
    };
    let in_chat = Choice {
        id: "answer_in_chat".to_owned(),
        title: "Answer in the Chat".to_owned(),
        permission: Permission::Answered(IN_CHAT.to_owned()),
    };
    let none = Choice {
        id: "reject_once".to_owned(),
        title: "No Answer".to_owned(),
        permission: Permission::Reject,
    };
    options
        .iter()
        .enumerate()
        .map(answer)
        .chain([in_chat, none])
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
    reply: Option<oneshot::Sender<Permission>>,
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
                "two conversations have a pending call with that id; answer with a code action",
            ));
        }
        if matches!(permission, Permission::AllowAlways(_)) && open.request.rule.is_none() {
            return Err(refused(
                "this requires approval every time; `tandem.allow` allows it once",
            ));
        }
        if matches!(permission, Permission::Answered(_)) && open.request.preview.answers.is_none() {
            return Err(refused(
                "this is not a question; `tandem.allow` without an answer allows it",
            ));
        }
        let reply = open.reply.take().ok_or_else(nothing)?;
        let _turn_gone = reply.send(permission);
        Ok(())
    }

    fn remove(&mut self, id: &SessionId, call_id: &str) {
        self.open.retain(|open| {
            let is_it = open.request.session == *id && open.request.call_id == call_id;
            if is_it {
                open.task.abort();
            }
            !is_it
        });
    }

    /// Removes the requests of a closed conversation.
    pub fn forget(&mut self, id: &str) {
        self.open.retain(|open| {
            if *open.request.session == *id {
                open.task.abort();
            }
            *open.request.session != *id
        });
    }
}

impl Server {
    /// Asks the person to decide about a call.
    pub(super) fn ask_permission(&mut self, id: &SessionId, event: AgentEvent) {
        let AgentEvent::PermissionRequested {
            about,
            call_id,
            kind,
            preview,
            rule,
            reply,
            ..
        } = event
        else {
            return;
        };
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        let key = format!("{id}/{call_id}");
        let session = SessionId::clone(id);
        let request = Request {
            key: key.clone(),
            session,
            call_id,
            about,
            kind,
            preview: *preview,
            rule,
        };
        let answer = conversation.front.ask(&request);
        let decisions = self.requests.decisions.clone();
        let task = self.tasks.spawn(async move {
            if let Some(permission) = answer.await {
                let _server_gone = decisions.send((key, permission)).await;
            }
        });
        self.requests.open.push(Open {
            request,
            reply,
            task,
        });
    }

    /// A request is decided, wherever the answer came from.
    pub(super) fn permission_resolved(
        &mut self,
        id: &SessionId,
        call_id: &str,
        decision: &Permission,
    ) {
        self.requests.remove(id, call_id);
        if let Some(conversation) = self.conversations.get_mut(id) {
            conversation.front.resolved(call_id, decision);
        }
    }
}
