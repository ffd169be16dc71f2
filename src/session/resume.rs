//! Loads a conversation from its journal, and writes to the journal before anything is reported.

use super::event::{ReturnReason, SessionEvent, Used};
use super::store::{self, Held, Kept, QueuedPrompt};
use super::{Actor, Sessions, Start, StoreError, connect, shadow};
use crate::agent::event::AgentEvent;
use crate::model::{ErrorCode, Failure};
use crate::process::Changed;
use crate::workspace::blocking;

impl Actor {
    /// Loads the conversation as far as its journal goes.
    pub(super) async fn resume(&mut self) {
        let kept = match self.open_journal().await {
            Ok(kept) => kept,
            Err(problem) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, problem.to_string());
                // Nothing may be said in a conversation other than the one that was meant.
                self.model = Err(failure.clone().into());
                return self.tell_failure(failure);
            }
        };
        if self.keeps_mode {
            self.mode = kept
                .mode
                .unwrap_or(self.mode)
                .min(self.settings.widest_mode);
        } else if kept.mode.is_some_and(|mode| mode != self.mode) {
            self.journal.mode(self.mode);
        }
        self.describe();
        if let Ok(model) = &mut self.model {
            model.provider = self.journal.teach(model.provider.clone());
        }
        let another_model = kept.held.and_then(|held| self.held_with(held).err());
        self.turns = kept.turns;
        self.spent = kept.spent;
        self.guidance.reset_to(kept.messages.iter());
        self.kept = kept.messages;
        for change in store::changes(&kept.shown) {
            self.checkpoints.restore(change).await;
        }
        self.notes
            .extend(store::last_trial(&kept.shown).map(shadow::outcome));
        if self.start == Start::Replay {
            let images = self.checkpoints.images().await;
            let folders = kept.head.as_ref().map(|head| head.folders.clone());
            let replayed =
                blocking(move || store::events(kept.shown, &images, &folders.unwrap_or_default()));
            let replayed = replayed.await.into_iter().map(SessionEvent::from);
            self.outgoing.extend(replayed);
        }
        let title = kept.head.map(|head| head.title).unwrap_or_default();
        self.used = kept.cost.map(|cost| Used {
            tokens: 0,
            window: None,
            cost: Some(cost),
        });
        self.publish();
        self.tell(AgentEvent::Resumed {
            title,
            mode: self.mode.name().to_owned(),
            model: self.model.as_ref().ok().map(|model| model.provider.name()),
            effort: self.effort,
            cost: kept.cost,
        });
        self.outgoing
            .extend(another_model.map(|message| AgentEvent::Notice { message }.into()));
        self.tell_losses(kept.unreadable, kept.forgotten);
        for QueuedPrompt { id, prompt } in kept.queued {
            self.give_back(id.into(), prompt.into(), ReturnReason::Restarted);
            self.journal.queue(Vec::new());
        }
        self.take_up_interrupted().await;
        self.write().await;
        self.shell.forget_interrupted().await;
    }

    /// Opens the journal, which of a fork is a copy of the original's.
    async fn open_journal(&mut self) -> Result<Kept, StoreError> {
        if let (Some(original), Some(state)) = (self.original.take(), &self.settings.state_dir) {
            let roots = self.workspace.roots().iter();
            let folders = roots.map(|root| root.path().to_owned()).collect();
            let sessions = Sessions::new(state);
            sessions.fork(&original, &self.id, folders).await?;
        }
        self.journal.open().await
    }

    /// What the journal or the model has no more, in lines and in messages.
    fn tell_losses(&mut self, unreadable: usize, forgotten: usize) {
        let damaged =
            format!("{unreadable} lines of this session's journal were damaged and skipped");
        let unseen = format!(
            "the model no longer sees the oldest {forgotten} messages: they no longer fit in a request"
        );
        for (count, message) in [(unreadable, damaged), (forgotten, unseen)] {
            if count > 0 {
                self.tell(AgentEvent::Notice { message });
            }
        }
    }

    /// What a command changed that was running when tandem was killed becomes part of the last turn.
    async fn take_up_interrupted(&mut self) {
        let Some(changed) = self.shell.interrupted(&self.workspace).await else {
            return;
        };
        let paths = changed.changes.files.len() + usize::from(!changed.changes.git.is_empty());
        let message = format!(
            "tandem was stopped while a command ran; undo covers what it changed ({paths} paths)"
        );
        self.tell(AgentEvent::Notice { message });
        self.take_up("An interrupted command", changed).await;
    }

    /// What a command changed that no call has reported becomes part of the last turn.
    pub(super) async fn take_up(&mut self, title: &str, changed: Changed) {
        let (turn, command) = (self.turns, Some(&*changed.changes));
        let (recorded, problem) = self
            .checkpoints
            .record(&self.workspace, turn, &changed.diffs, command)
            .await;
        self.journal.unreported(title, recorded);
        for message in changed.told.into_iter().chain(problem) {
            self.tell(AgentEvent::Notice { message });
        }
    }

    /// Continues with the conversation's own model; else returns why another one is used.
    fn held_with(
        &mut self,
        Held {
            model: name,
            effort,
        }: Held,
    ) -> Result<(), String> {
        let Some(settings) = &self.models else {
            return Ok(());
        };
        let current = self.model.as_ref().ok().map(|model| model.provider.name());
        if current.as_ref() == Some(&name) && effort.is_none() {
            return Ok(());
        }
        let provider = connect::provider_named(settings, &name, effort).map_err(|why| {
            let instead = current
                .map(|current| format!(", so {current} continues"))
                .unwrap_or_default();
            format!(
                "this session used {name}, which is not available{instead}: {}",
                why.message
            )
        })?;
        self.set_model(provider, effort);
        Ok(())
    }

    /// Writes the recorded changes before they are reported.
    pub(super) async fn write(&mut self) {
        if let Err(message) = self.journal.flush().await {
            self.outgoing
                .push_front(AgentEvent::Notice { message }.into());
        }
    }
}
