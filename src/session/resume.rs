//! Loads a session from its journal.

use super::event::ReturnReason;
use super::store::{self, Kept, QueuedPrompt, Record};
use super::{Actor, Sessions, Start, StoreError, shadow};
use crate::agent::event::AgentEvent;
use crate::model::{ErrorCode, Failure};
use crate::text::display::counted;
use crate::workspace::blocking;

impl Actor {
    /// Loads the session as far as its journal goes.
    pub async fn resume(&mut self) {
        let kept = match self.open_journal().await {
            Ok(kept) => kept,
            Err(problem) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, problem.to_string());
                // Nothing may be said in a session other than the one that was meant.
                self.models.provider = Err(failure.clone());
                return self.outbox.failure(failure);
            }
        };
        let lost = lost(&kept);
        let (questions, conversation) = (&mut self.questions, &mut self.conversation);
        if self.keeps_mode {
            for mode in kept.acting.into_iter().chain(kept.mode) {
                questions.set_mode(mode.min(questions.widest));
            }
        } else if kept.mode.is_some_and(|mode| mode != questions.mode) {
            conversation.journal.mode(questions.mode);
        }
        conversation.turns = kept.turns();
        let head = kept.head.unwrap_or_default();
        self.models.environment.clone_from(&head.environment);
        if let Ok(provider) = &mut self.models.provider {
            *provider = conversation.journal.teach(provider.clone());
        }
        self.models.changed();
        let another_model = kept
            .held
            .filter(|_| self.keeps_model)
            .and_then(|held| self.models.resume(held, &mut conversation.journal).err());
        self.spending.resume(kept.spent, kept.tokens, kept.cost);
        self.changes.checkpoints.prompts = kept.prompts;
        conversation.loaded = kept.messages;
        conversation.call_ids = kept.call_ids;
        conversation.reset_guidance();
        for change in store::changes(&kept.shown) {
            self.changes.checkpoints.restore(change).await;
        }
        self.changes.unconfirmed = kept.unconfirmed;
        conversation.notes = kept.notes;
        if let Some(applied) = store::last_trial(&kept.shown) {
            conversation.tell(shadow::outcome(applied));
        }
        if self.start == Start::Replay {
            let images = self.changes.checkpoints.images().await;
            let replayed = blocking(move || store::events(kept.shown, &images, &head.folders));
            let replayed = replayed.await.into_iter();
            replayed.for_each(|event| self.outbox.push(event));
        }
        self.publish();
        self.outbox.push(AgentEvent::Resumed {
            title: head.title,
            mode: self.questions.mode.name().to_owned(),
            model: self.models.name(),
            effort: self.models.effort,
            cost: kept.cost,
        });
        self.outbox.notices(another_model.into_iter().chain(lost));
        for QueuedPrompt { id, prompt } in kept.queued {
            self.outbox
                .give_back(&id.into(), prompt.into(), ReturnReason::Restarted);
            let prompts = Vec::new();
            self.conversation.journal.note(Record::Queue { prompts });
        }
        let is_stored = self
            .changes
            .take_up_interrupted(&mut self.conversation, &mut self.outbox)
            .await;
        self.conversation.write(&mut self.outbox).await;
        // On a full disk, the only copies of what a command destroyed are those it left behind.
        if is_stored && self.conversation.journal.is_saved() {
            self.shell.forget_interrupted().await;
        }
    }

    /// Opens the journal; that of a fork is a copy of the original's.
    async fn open_journal(&mut self) -> Result<Kept, StoreError> {
        let state = &self.models.settings.state_dir;
        let mut copied = None;
        if let (Some(original), Some(state)) = (self.original.take(), state) {
            let mut folders = Vec::new();
            for root in self.workspace.roots() {
                folders.push(root.path().to_owned());
            }
            let sessions = Sessions::new(state);
            sessions.fork(&original, &self.id, folders).await?;
            copied = Some(sessions);
        }
        let opened = self.conversation.journal.open().await;
        if let (Err(_), Some(sessions)) = (&opened, copied) {
            // A copy that cannot be continued is of no use in the list.
            let _still_listed = sessions.remove(&self.id).await;
        }
        opened
    }
}

/// What the journal or the model's history lacks, for the person.
fn lost(kept: &Kept) -> Vec<String> {
    let mut lost = Vec::new();
    if kept.unreadable > 0 {
        let lines = counted(kept.unreadable, "line");
        lost.push(format!(
            "this session's journal is damaged: {lines} skipped"
        ));
    }
    if kept.forgotten > 0 {
        let messages = counted(kept.forgotten, "message");
        lost.push(format!(
            "the oldest messages don't fit in a request: the model no longer sees {messages}"
        ));
    }
    lost
}
