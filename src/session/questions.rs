//! Permission requests of a turn: those the mode and the rules decide are answered at once, the others go to the
//! person, one at a time.
//!
//! All answers pass through here. So a mode that changed while a request was open counts, and a changing call is
//! recorded before it can run.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::permission::{Facts, Rule, Verdict};
use super::{Actor, Ground, Running};
use crate::agent::event::{About, AgentEvent, Permission, START, START_FRESH, Scope};
use crate::config::Mode;
use crate::domain::{Preview, ToolKind};

/// What an explorer reads where a person would have to decide.
const NOT_ASKED: &str =
    "this requires the user's approval, which you cannot ask for; leave it out and say so";

/// Unanswered requests of a turn.
#[derive(Default)]
pub(super) struct Questions {
    /// The request shown to the person.
    open: Option<Open>,
    /// Requests that wait until it is answered.
    waiting: VecDeque<Request>,
}

struct Open {
    call_id: String,
    kind: ToolKind,
    facts: Facts,
    /// Whether a message of the person is the answer itself.
    is_form: bool,
    /// Where the turn waits; `None` once it has an answer.
    reply: Option<oneshot::Sender<Permission>>,
    answer: oneshot::Receiver<Permission>,
}

/// A request for the person.
struct Request {
    about: About,
    call_id: String,
    name: String,
    kind: ToolKind,
    preview: Box<Preview>,
    facts: Facts,
    reply: oneshot::Sender<Permission>,
}

impl Questions {
    /// The kind of the call in the open request.
    pub fn open_kind(&self) -> Option<ToolKind> {
        self.open.as_ref().map(|open| open.kind)
    }

    /// The person's answer. Pending while no request is open.
    pub async fn answer(&mut self) -> Permission {
        match self.open.as_mut().filter(|open| open.reply.is_some()) {
            Some(open) => (&mut open.answer).await.unwrap_or(Permission::Reject),
            None => std::future::pending().await,
        }
    }
}

impl Actor {
    fn open_question(&self) -> Option<&Open> {
        self.running.as_ref()?.questions.open.as_ref()
    }

    /// The person writes while the model asks them something: what they write is the answer, and joins the turn.
    pub(super) fn answer_by_message(&mut self) {
        if self
            .open_question()
            .is_some_and(|open| open.facts.is_question())
        {
            self.decided(Permission::Answered(
                "see the message that follows".to_owned(),
            ));
        }
    }

    /// Takes a message as the answer to an open form of a server: the model does not read it.
    pub(super) fn fill_in_by_message(&mut self, words: &str) -> bool {
        let takes = self.open_question().is_some_and(|open| open.is_form);
        if takes {
            self.decided(Permission::Answered(words.to_owned()));
        }
        takes
    }

    /// A prompt that waits for the turn: whoever writes one revises the plan.
    pub(super) fn revise_plan(&mut self) {
        let is_plan = |open: &Open| open.facts.is_plan();
        if self.open_question().is_some_and(is_plan) {
            self.decided(Permission::Reject);
        }
    }

    /// Back to the mode that sessions start in.
    fn leave_plan_mode(&mut self) {
        let mode = match self.settings.mode {
            Mode::Plan => Mode::Ask,
            mode => mode,
        };
        self.mode = mode.min(self.settings.widest_mode);
        self.journal.mode(self.mode);
    }

    /// Decides about a call, or asks the person after all earlier requests.
    pub(super) fn question(&mut self, event: AgentEvent) {
        let AgentEvent::PermissionRequested {
            about,
            call_id,
            name,
            kind,
            preview,
            reply,
            asked,
            ..
        } = event
        else {
            return;
        };
        let mode = self.deciding_mode();
        let (Some(running), Some(reply)) = (self.running.as_mut(), reply) else {
            return;
        };
        let facts = Facts::new(&name, about.clone(), kind, &preview, &self.workspace);
        let outcome = match self.policy.decide(mode, &facts) {
            Verdict::Allow => Permission::AllowOnce,
            Verdict::Ask if matches!(about, About::Call { asks: false, .. }) => {
                Permission::Forbidden(NOT_ASKED.to_owned())
            }
            Verdict::Forbid(why) => Permission::Forbidden(why),
            Verdict::Ask => {
                let _turn_gone = asked.map(|asked| asked.send(()));
                running.questions.waiting.push_back(Request {
                    about,
                    call_id,
                    name,
                    kind,
                    preview,
                    facts,
                    reply,
                });
                return self.ask_next();
            }
        };
        running.decide(&call_id, kind, reply, outcome);
    }

    /// The mode that decides about calls now. A turn on a copy of the workspace, or one the person allowed, asks only
    /// about what the widest mode would.
    fn deciding_mode(&self) -> Mode {
        let asks_less = |running: &Running| running.is_allowed || running.ground == Ground::Copy;
        match self.mode {
            Mode::Plan => Mode::Plan,
            _ if self.running.as_ref().is_some_and(asks_less) => self.settings.widest_mode,
            mode => mode,
        }
    }

    /// Opens the next request. It is decided again, because the previous answer may have decided it.
    fn ask_next(&mut self) {
        let mode = self.deciding_mode();
        while let Some(running) = self.running.as_mut()
            && running.questions.open.is_none()
            && let Some(request) = running.questions.waiting.pop_front()
        {
            let Request {
                about,
                call_id,
                name,
                kind,
                preview,
                facts,
                reply,
            } = request;
            match self.policy.decide(mode, &facts) {
                Verdict::Allow => running.decide(&call_id, kind, reply, Permission::AllowOnce),
                Verdict::Forbid(why) => {
                    running.decide(&call_id, kind, reply, Permission::Forbidden(why));
                }
                Verdict::Ask => {
                    let offer = self.policy.offers(self.settings.widest_mode, &facts);
                    let is_form = preview.form.is_some();
                    let (person, answer) = oneshot::channel();
                    let (id, reply) = (call_id.clone(), Some(reply));
                    running.questions.open = Some(Open {
                        call_id: id,
                        kind,
                        facts,
                        is_form,
                        reply,
                        answer,
                    });
                    let reply = Some(person);
                    self.tell(AgentEvent::PermissionRequested {
                        about,
                        call_id,
                        name,
                        kind,
                        preview,
                        offer,
                        reply,
                        asked: None,
                    });
                }
            }
        }
    }

    /// The person answered the open request. What the mode forbids by now stays forbidden.
    pub(super) fn decided(&mut self, permission: Permission) {
        let mode = self.deciding_mode();
        let Some(running) = self.running.as_mut() else {
            return;
        };
        let Some(open) = running.questions.open.as_mut() else {
            return;
        };
        let Some(reply) = open.reply.take() else {
            return;
        };
        let outcome = match self.policy.decide(mode, &open.facts) {
            Verdict::Forbid(why) => Permission::Forbidden(why),
            _ => permission,
        };
        let (call_id, kind) = (open.call_id.clone(), open.kind);
        running.decide(&call_id, kind, reply, outcome);
    }

    /// The mode changed: answers an open request that it forbids.
    pub(super) fn reconsider(&mut self) {
        if let Some(open) = self.open_question()
            && matches!(
                self.policy.decide(self.deciding_mode(), &open.facts),
                Verdict::Forbid(_)
            )
        {
            self.decided(Permission::Reject);
        }
    }

    /// Stores rules for the project; the error is for the person.
    async fn store(&self, rules: &[Rule]) -> Result<(), String> {
        let failed = |why: &dyn std::fmt::Display| {
            let rules: Vec<_> = rules.iter().map(ToString::to_string).collect();
            let rules = rules.join(", ");
            format!("`{rules}` applies to this session only: {why}")
        };
        let remembered = self.remembered.as_ref();
        let remembered = remembered.ok_or_else(|| failed(&"there is no state folder"))?;
        for rule in rules {
            let added = remembered.add(rule).await;
            added.map_err(|error| failed(&format!("it cannot be stored ({error})")))?;
        }
        Ok(())
    }

    /// A request was answered, by whomever: stores what it allows from now on, and opens the next one.
    pub(super) async fn answered(&mut self, call_id: String, outcome: Permission) {
        let Some(running) = self.running.as_mut() else {
            return;
        };
        let questions = &mut running.questions;
        let Some(Open { facts, .. }) = questions.open.take_if(|open| open.call_id == call_id)
        else {
            // Dropped while it waited, or answered without a person.
            questions
                .waiting
                .retain(|request| request.call_id != call_id);
            return;
        };
        running.is_allowed |=
            matches!(&outcome, Permission::AllowAlways(grant) if grant.scope == Scope::Turn);
        if facts.is_pause() && matches!(outcome, Permission::AllowOnce | Permission::AllowAlways(_))
        {
            self.spent.go_on(&self.limits.session);
        }
        if let Permission::Answered(answer) = &outcome
            && facts.is_plan()
            && [START, START_FRESH].contains(&answer.as_str())
        {
            self.leave_plan_mode();
        }
        if let Permission::AllowAlways(grant) = &outcome
            && grant.scope != Scope::Turn
        {
            let rules = self.policy.remember(&facts, grant.rule.as_deref());
            let problem = match rules {
                Ok(rules) if grant.scope == Scope::Project => self.store(&rules).await.err(),
                Ok(_) => None,
                Err(why) => Some(format!("allowed once, but the rule was not added: {why}")),
            };
            self.outgoing
                .extend(problem.map(|message| AgentEvent::Notice { message }.into()));
        }
        self.tell(AgentEvent::PermissionResolved { call_id, outcome });
        self.ask_next();
    }
}

impl Running {
    /// Answers the turn. A call that may change something is recorded before it can.
    fn decide(
        &mut self,
        call_id: &str,
        kind: ToolKind,
        reply: oneshot::Sender<Permission>,
        outcome: Permission,
    ) {
        if matches!(outcome, Permission::AllowOnce | Permission::AllowAlways(_))
            && !kind.is_read_only()
        {
            self.changing.insert(call_id.to_owned(), kind);
        }
        let _turn_gone = reply.send(outcome);
    }

    /// A call began or ended: an edit may change something until its end, other calls are shown from their beginning.
    pub(super) fn note_call(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolExecutionStart { call_id, .. }
                if self
                    .changing
                    .get(call_id)
                    .is_some_and(|kind| *kind != ToolKind::Edit) =>
            {
                self.changing.remove(call_id);
            }
            AgentEvent::ToolExecutionEnd { call_id, .. } => drop(self.changing.remove(call_id)),
            _ => {}
        }
    }
}
