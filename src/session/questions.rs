//! Questions of a turn: what the mode and the rules decide is answered here, the rest goes to the person, one at a time.

use std::collections::VecDeque;

use super::Actor;
use super::permission::{Facts, Verdict};
use crate::agent::event::{AgentEvent, Permission, Scope};

/// What a turn asked and nobody answered yet.
#[derive(Default)]
pub(super) struct Questions {
    /// The one a person is asked: its call, and what the call does.
    open: Option<(String, Facts)>,
    /// Those that wait until it is answered.
    waiting: VecDeque<AgentEvent>,
}

impl Actor {
    /// Decides about a call, or has the person decide once all questions before it are answered.
    pub(super) fn question(&mut self, event: AgentEvent) {
        let Some(running) = self.running.as_mut() else { return };
        if running.questions.open.is_some() {
            running.questions.waiting.push_back(event);
            return;
        }
        let AgentEvent::PermissionRequested { call_id, name, kind, preview, reply, .. } = event else { return };
        let facts = Facts::new(&name, kind, &preview, &self.workspace);
        let outcome = match self.policy.decide(self.mode, &facts) {
            Verdict::Allow => Permission::AllowOnce,
            Verdict::Forbid(why) => Permission::Forbidden(why),
            Verdict::Ask => {
                let rule = self.policy.offer(&facts);
                running.questions.open = Some((call_id.clone(), facts));
                let question = AgentEvent::PermissionRequested { call_id, name, kind, preview, rule, reply };
                return self.outgoing.push_back(question);
            }
        };
        let _turn_gone = reply.map(|reply| reply.send(outcome));
    }

    /// A question has its answer, whoever gave it: what it allows from now on is remembered, and the next one is asked.
    pub(super) async fn answered(&mut self, call_id: String, outcome: Permission) {
        let Some(running) = self.running.as_mut() else { return };
        let questions = &mut running.questions;
        let Some((_, facts)) = questions.open.take_if(|(open, _)| *open == call_id) else {
            // Given up while it waited, or answered without a person.
            let is_it = |event: &AgentEvent| matches!(event, AgentEvent::PermissionRequested { call_id: waiting, .. } if *waiting == call_id);
            questions.waiting.retain(|event| !is_it(event));
            return;
        };
        if facts.is_pause() && matches!(outcome, Permission::AllowOnce | Permission::AllowAlways(_)) {
            self.spent.go_on(&self.limits.session);
        }
        if let Permission::AllowAlways(grant) = &outcome {
            let problem =
                match self.policy.remember(&facts, grant.rule.as_deref()) {
                    Ok(rule) if grant.scope == Scope::Project => match &self.remembered {
                        Some(remembered) => remembered.add(&rule).await.err().map(|error| {
                            format!("`{rule}` holds for this session only: it cannot be stored ({error})")
                        }),
                        None => Some(format!("`{rule}` holds for this session only: there is no state folder")),
                    },
                    Ok(_) => None,
                    Err(why) => Some(format!("allowed once, but not remembered: {why}")),
                };
            self.outgoing.extend(problem.map(|message| AgentEvent::Notice { message }));
        }
        self.outgoing.push_back(AgentEvent::PermissionResolved { call_id, outcome });
        self.ask_what_waited();
    }

    /// What waited is decided anew: the answer before may have decided it.
    fn ask_what_waited(&mut self) {
        while let Some(running) = self.running.as_mut()
            && running.questions.open.is_none()
            && let Some(next) = running.questions.waiting.pop_front()
        {
            self.question(next);
        }
    }
}
