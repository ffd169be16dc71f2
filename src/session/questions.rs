//! Permission requests of a turn: those the mode and the rules decide are answered at once, the others go to the
//! person, one at a time.
//!
//! All answers pass through here. So a mode that changed while a request was open counts, and a changing call is
//! recorded before it can run.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::outbox::Outbox;
use super::permission::remembered::Remembered;
use super::permission::{Facts, Policy, Rule, Verdict};
use crate::agent::event::{About, AgentEvent, Permission, PermissionRequest, Scope};
use crate::config::Mode;
use crate::domain::ToolKind;
use crate::workspace::Workspace;

/// The mode, the rules, and what the running turn asks.
pub(super) struct Questions {
    pub mode: Mode,
    /// The last mode that was not `plan`: a plan is carried out in it.
    acting: Mode,
    /// The widest mode the administrator allows.
    pub widest: Mode,
    pub policy: Policy,
    remembered: Option<Remembered>,
    turn: Asking,
}

/// What the running turn asks, and what it was allowed.
#[derive(Default)]
struct Asking {
    /// Whether it works on a copy of the workspace.
    on_copy: bool,
    /// Whether the person allowed the rest of it.
    is_allowed: bool,
    /// Running calls that may change something, by id.
    changing: HashMap<String, ToolKind>,
    /// The request shown to the person.
    open: Option<Open>,
    /// Requests that wait until it is answered.
    waiting: VecDeque<(Box<PermissionRequest>, Facts)>,
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

impl Questions {
    pub fn new(mode: Mode, widest: Mode, policy: Policy, remembered: Option<Remembered>) -> Self {
        Self {
            mode,
            acting: if mode == Mode::Plan { Mode::Ask } else { mode },
            widest,
            policy,
            remembered,
            turn: Asking::default(),
        }
    }

    /// Takes other rules and another widest mode.
    pub async fn configure(&mut self, policy: Policy, widest: Mode) {
        (self.policy, self.widest) = (policy, widest);
        self.mode = self.mode.min(widest);
        self.load_rules().await;
    }

    /// Loads the permissions stored for this project.
    pub async fn load_rules(&mut self) {
        let Some(remembered) = &self.remembered else {
            return;
        };
        match remembered.rules().await {
            Ok(rules) => self.policy.add_stored(rules),
            Err(error) => {
                tracing::warn!("what was allowed in this project cannot be read: {error}");
            }
        }
    }

    /// A turn begins or has ended.
    pub fn reset(&mut self, on_copy: bool) {
        self.turn = Asking {
            on_copy,
            ..Asking::default()
        };
    }

    /// The kind of the call in the open request.
    pub fn open_kind(&self) -> Option<ToolKind> {
        self.turn.open.as_ref().map(|open| open.kind)
    }

    /// Whether a call runs that may change something and is not shown to be running.
    pub fn is_changing(&self) -> bool {
        !self.turn.changing.is_empty()
    }

    /// The person's answer. Pending while no request is open.
    pub async fn answer(&mut self) -> Permission {
        match &mut self.turn.open {
            Some(open) if open.reply.is_some() => {
                (&mut open.answer).await.unwrap_or(Permission::Reject)
            }
            _ => std::future::pending().await,
        }
    }

    /// The mode is another one from now on.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        if mode != Mode::Plan {
            self.acting = mode;
        }
        self.turn.is_allowed = false;
    }

    /// The person started a plan.
    pub fn leave_plan(&mut self) {
        self.set_mode(self.acting.min(self.widest));
    }

    fn open_facts(&self) -> Option<&Facts> {
        self.turn.open.as_ref().map(|open| &open.facts)
    }

    /// Takes a message that the user writes while the model asks them something as the answer; it joins the turn.
    pub fn answer_by_message(&mut self) {
        if self.open_facts().is_some_and(Facts::is_question) {
            self.decided(Permission::Answered(
                "see the message that follows".to_owned(),
            ));
        }
    }

    /// Takes a message as the answer to an open form of a server: the model does not read it.
    pub fn fill_in_by_message(&mut self, words: &str) -> bool {
        let takes = self.turn.open.as_ref().is_some_and(|open| open.is_form);
        if takes {
            self.decided(Permission::Answered(words.to_owned()));
        }
        takes
    }

    /// A prompt was queued during the turn: the person wants to revise the plan.
    pub fn revise_plan(&mut self) {
        if self.open_facts().is_some_and(Facts::is_plan) {
            self.decided(Permission::Reject);
        }
    }

    /// Decides about a call, or asks the person after all earlier requests.
    pub fn ask(
        &mut self,
        request: Box<PermissionRequest>,
        workspace: &Workspace,
        outbox: &mut Outbox,
    ) {
        let facts = Facts::new(&request, workspace);
        if let Some(mut request) = self.settle(request, &facts) {
            if let Some(asked) = request.asked.take() {
                asked.send(()).ok();
            }
            self.turn.waiting.push_back((request, facts));
            self.ask_next(outbox);
        }
    }

    /// Answers a request that the mode and the rules decide; returns one that the person has to.
    fn settle(
        &mut self,
        mut request: Box<PermissionRequest>,
        facts: &Facts,
    ) -> Option<Box<PermissionRequest>> {
        let outcome = match self.policy.decide(self.deciding_mode(), facts) {
            Verdict::Allow => Permission::AllowOnce,
            Verdict::Forbid(why) => Permission::Forbidden(why),
            Verdict::Ask if matches!(request.about, About::Call { asks: false, .. }) => {
                Permission::unasked()
            }
            Verdict::Ask => return Some(request),
        };
        let reply = request.reply.take()?;
        self.turn
            .decide(&request.call_id, request.kind, reply, outcome);
        None
    }

    /// The mode that decides about calls now. A turn on a copy of the workspace, or one the person allowed, asks only
    /// about what the widest mode would.
    fn deciding_mode(&self) -> Mode {
        match self.mode {
            Mode::Plan => Mode::Plan,
            _ if self.turn.is_allowed || self.turn.on_copy => self.widest,
            mode => mode,
        }
    }

    /// Opens the next request. It is decided again, because the previous answer may have decided it.
    pub fn ask_next(&mut self, outbox: &mut Outbox) {
        while self.turn.open.is_none()
            && let Some((request, facts)) = self.turn.waiting.pop_front()
        {
            let Some(mut request) = self.settle(request, &facts) else {
                continue;
            };
            request.offer = self.policy.offers(self.widest, &facts);
            let (person, answer) = oneshot::channel();
            self.turn.open = Some(Open {
                call_id: request.call_id.clone(),
                kind: request.kind,
                facts,
                is_form: request.preview.form.is_some(),
                reply: request.reply.replace(person),
                answer,
            });
            outbox.push(AgentEvent::PermissionRequested(request));
        }
    }

    /// The person answered the open request. What the mode forbids by now stays forbidden.
    pub fn decided(&mut self, permission: Permission) {
        let mode = self.deciding_mode();
        let Some(open) = &mut self.turn.open else {
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
        self.turn.decide(&call_id, kind, reply, outcome);
    }

    /// The mode changed: answers an open request that it forbids.
    pub fn reconsider(&mut self) {
        if let Some(facts) = self.open_facts()
            && matches!(
                self.policy.decide(self.deciding_mode(), facts),
                Verdict::Forbid(_)
            )
        {
            self.decided(Permission::Reject);
        }
    }

    /// Stores rules for the project; the error is for the person.
    async fn store(&self, rules: &[Rule]) -> Result<(), String> {
        let store = async {
            let remembered = self.remembered.as_ref();
            let remembered =
                remembered.ok_or("there is no state directory; set TANDEM_STATE_DIR")?;
            for rule in rules {
                let added = remembered.add(rule).await;
                added.map_err(|error| format!("it cannot be stored ({error})"))?;
            }
            Ok(())
        };
        store.await.map_err(|why: String| {
            let rules: Vec<_> = rules.iter().map(ToString::to_string).collect();
            let rules = rules.join(", ");
            format!("`{rules}` applies to this session only: {why}")
        })
    }

    /// Handles an answered request: stores what it allows from now on. Returns what it was about if the user saw it; then
    /// [`Self::ask_next`] opens the next one.
    pub async fn answered(
        &mut self,
        call_id: &str,
        outcome: &Permission,
        outbox: &mut Outbox,
    ) -> Option<Facts> {
        let Some(Open { facts, .. }) = self.turn.open.take_if(|open| open.call_id == call_id)
        else {
            // Dropped while it waited, or answered without a person.
            self.turn
                .waiting
                .retain(|(request, _)| request.call_id != call_id);
            return None;
        };
        if let Permission::AllowAlways(grant) = outcome {
            if grant.scope == Scope::Turn {
                self.turn.is_allowed = true;
                return Some(facts);
            }
            let problem = match self.policy.remember(&facts, grant.rule.as_deref()) {
                Ok(rules) if grant.scope == Scope::Project => self.store(&rules).await.err(),
                Ok(_) => None,
                Err(why) => Some(format!("allowed once, but the rule was not added: {why}")),
            };
            outbox.notices(problem);
        }
        Some(facts)
    }

    /// A call began or ended: an edit may change something until its end, other calls are shown from their beginning.
    pub fn note(&mut self, event: &AgentEvent) {
        let changing = &mut self.turn.changing;
        let (AgentEvent::ToolExecutionStart { call_id, .. }
        | AgentEvent::ToolExecutionEnd { call_id, .. }) = event
        else {
            return;
        };
        if matches!(event, AgentEvent::ToolExecutionEnd { .. })
            || changing.get(call_id) != Some(&ToolKind::Edit)
        {
            changing.remove(call_id);
        }
    }
}

impl Asking {
    /// Answers the turn. A call that may change something is recorded before it can.
    fn decide(
        &mut self,
        call_id: &str,
        kind: ToolKind,
        reply: oneshot::Sender<Permission>,
        outcome: Permission,
    ) {
        if outcome.allows() && !kind.is_read_only() {
            self.changing.insert(call_id.to_owned(), kind);
        }
        // A turn that was cancelled does not wait.
        reply.send(outcome).ok();
    }
}
