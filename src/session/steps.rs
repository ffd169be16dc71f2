//! What a session does with the steps of its running turn: it records them, decides permission requests, and passes on the
//! rest.

use super::Actor;
use super::event::PromptState;
use crate::agent::Step;
use crate::agent::event::{AgentEvent, Permission, START, START_FRESH};
use crate::changes::ChangeSet;
use crate::domain::Failure;
use crate::model::ErrorCode;
use crate::text::redact::Redactor;

impl Actor {
    /// Handles the steps of a turn.
    pub async fn take(&mut self, steps: &mut Vec<Step>) {
        let mut has_commands = false;
        for step in steps.drain(..) {
            if let Step::Event(AgentEvent::ToolExecutionEnd { result, .. }) = &step {
                has_commands |= result.changes.is_some();
            }
            self.step(step).await;
        }
        self.conversation.write(&mut self.outbox).await;
        if has_commands && self.conversation.journal.is_saved() {
            self.shell.recorded().await;
        }
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.conversation.journal.sync().await;
        }
    }

    pub async fn step(&mut self, step: Step) {
        let conversation = &mut self.conversation;
        match step {
            Step::Entry(entry) => conversation.keep(entry, self.models.provider.as_ref().ok()),
            Step::History(entries) => conversation.compact(entries),
            Step::Note(note) => conversation.tell(note),
            Step::Announced {
                call_id,
                preview,
                recorded,
            } => {
                self.changes
                    .announce(call_id, &preview, conversation, &mut self.outbox)
                    .await;
                recorded.send(()).ok();
            }
            Step::Tried(event) => {
                if let AgentEvent::ToolExecutionEnd {
                    call_id,
                    name,
                    result,
                    ..
                } = &event
                {
                    let nothing = ChangeSet::default();
                    let journal = &mut conversation.journal;
                    journal.call_ended(call_id, name, result, nothing);
                }
                self.consider(event).await;
            }
            Step::Event(event) => {
                conversation.journal.event(&event);
                if let AgentEvent::ToolExecutionEnd {
                    call_id,
                    name,
                    result,
                    ..
                } = &event
                {
                    let (turn, command) = (conversation.turns, result.changes.as_deref());
                    let changed = self
                        .changes
                        .record(turn, &result.diffs, command, &mut self.outbox)
                        .await;
                    let journal = &mut conversation.journal;
                    let call = journal.call_ended(call_id, name, result, changed);
                    self.changes.confirm(&call, result.is_error, journal);
                }
                let title = conversation
                    .title
                    .take_if(|_| matches!(event, AgentEvent::TurnStart { .. }));
                self.consider(event).await;
                self.outbox.title(title);
            }
        }
    }

    /// Permission requests are decided or asked, other events passed on.
    async fn consider(&mut self, event: AgentEvent) {
        let outbox = &mut self.outbox;
        match event {
            AgentEvent::PermissionRequested(request) => {
                self.questions.ask(request, &self.workspace, outbox);
            }
            AgentEvent::PermissionResolved { call_id, outcome } => {
                let Some(facts) = self.questions.answered(&call_id, &outcome, outbox).await else {
                    return;
                };
                if facts.is_pause() && outcome.allows() {
                    self.spending.go_on();
                    self.conversation.journal.note(self.spending.record());
                }
                if let Permission::Answered(answer) = &outcome
                    && facts.is_plan()
                    && [START, START_FRESH].contains(&answer.as_str())
                {
                    self.questions.leave_plan();
                    self.conversation.journal.mode(self.questions.mode);
                }
                outbox.push(AgentEvent::PermissionResolved { call_id, outcome });
                self.questions.ask_next(outbox);
            }
            mut event => {
                clean(&mut event, &self.secrets);
                if let AgentEvent::UserMessage {
                    prompt: Some(id), ..
                } = &event
                {
                    self.queue.steers.retain(|steered| steered.id != *id);
                    outbox.prompt(id, PromptState::Joined);
                }
                // The usage of a turn is shown before its end is reported.
                if self.spending.note(&event) {
                    self.conversation.journal.note(self.spending.record());
                    self.publish();
                }
                if let AgentEvent::Error(failure) = &event {
                    let is_refusal = failure.code == ErrorCode::Auth;
                    self.models.refusal = is_refusal.then(|| failure.message.clone());
                    self.publish(); // the next prompt may come with the end
                }
                self.questions.note(&event);
                let mut reason = None;
                if let AgentEvent::Done {
                    termination_reason, ..
                } = event
                {
                    reason = Some(termination_reason);
                }
                let Some(running) = &mut self.running else {
                    return self.outbox.push(event);
                };
                if let AgentEvent::Error(failure) = &event {
                    running.failure = Some(failure.clone());
                }
                self.outbox.push(event);
                if let Some(reason) = reason {
                    running.report_end(reason, &mut self.queue, &mut self.outbox);
                }
            }
        }
    }
}

/// Text from elsewhere may quote a key.
fn clean(event: &mut AgentEvent, secrets: &Redactor) {
    match event {
        AgentEvent::Explored { event, .. } => clean(event, secrets),
        AgentEvent::Error(Failure { message: text, .. })
        | AgentEvent::Notice { message: text }
        | AgentEvent::Retry { reason: text, .. } => secrets.clean(text),
        _ => {}
    }
}
