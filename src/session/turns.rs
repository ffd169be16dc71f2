//! The beginning and the end of a session's turns, and what the person says in between.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::store::Held;
use super::{
    Actor, Attachment, Model, NoProvider, Prompt, Questions, Running, STEPS, UNANSWERED, connect, failed, servers,
    store,
};
use crate::agent::prompt::Stage;
use crate::agent::{Entry, Goal, Steer, Turn, prompt};
use crate::config::Mode;
use crate::model::{Api, AssistantMessage, Effort, ErrorCode, Message, Provider};
use crate::tools::ToolContext;

/// Messages that may wait to join a turn.
const STEERING: usize = 8;

impl Actor {
    pub(super) async fn prompt(&mut self, mut prompt: Prompt) {
        let Some(provider) = self.free() else { return };
        if self.history.last().is_some_and(|last| !matches!(last.outline(), Message::Assistant(_))) {
            let message =
                Message::Assistant(AssistantMessage { text: UNANSWERED.to_owned(), ..AssistantMessage::default() });
            self.keep(Entry::new(message, &provider));
        }
        let words = prompt.words();
        let said = prompt.clone();
        if !self.attached(&mut prompt).await {
            prompt = said;
        }
        prompt.parts.extend(self.remarks.drain(..).map(Attachment::Text));
        let message = Message::User { parts: prompt::render(prompt, self.stage()) };
        self.turns += 1;
        self.restored.clear();
        self.title = (self.turns == 1).then(|| store::title(&words));
        let entry = Entry::new(message, &provider);
        self.journal.prompt(&words, &entry, Held { model: provider.name(), effort: self.effort });
        self.history.push(entry);
        self.begin(Goal::Answer).await;
    }

    /// What the mode means for the next message. That the last one asked for a plan stands in the history itself.
    fn stage(&self) -> Stage {
        let of_person = |entry: &&Arc<Entry>| matches!(entry.outline(), Message::User { .. });
        let last = || self.history.iter().rfind(of_person);
        match self.mode {
            Mode::Plan => Stage::Plan,
            _ if last().is_some_and(|entry| prompt::plans_only(&entry.message())) => Stage::Go,
            _ => Stage::Usual,
        }
    }

    /// Makes the conversation shorter, as a turn of its own.
    pub(super) async fn compact(&mut self) {
        if self.free().is_some() {
            self.begin(Goal::Compact).await;
        }
    }

    /// The model, when a turn can begin; else that is told. What was kept of the conversation is encoded for it now.
    fn free(&mut self) -> Option<Provider> {
        let provider = match &self.model {
            Ok(model) => model.provider.clone(),
            Err(NoProvider { message, code, .. }) => {
                self.fail(message.clone(), *code);
                return None;
            }
        };
        if self.running.is_some() {
            self.fail("a turn is running: wait for its end or cancel it".to_owned(), ErrorCode::Internal);
            return None;
        }
        let provider = provider.switched().unwrap_or(provider);
        if Some(provider.api()) != self.api() {
            self.model = Ok(Model::new(provider.clone(), &self.id, &self.workspace, &self.tools));
            self.stale = true;
        }
        if std::mem::take(&mut self.stale) {
            for entry in &mut self.history {
                *entry = Entry::new(entry.message().into_owned(), &provider);
            }
        }
        self.history.extend(self.kept.drain(..).map(|message| Entry::new(message, &provider)));
        Some(provider)
    }

    /// The dialect of the model.
    fn api(&self) -> Option<Api> {
        self.model.as_ref().ok().map(|model| model.provider.api())
    }

    async fn begin(&mut self, goal: Goal) {
        let Ok(Model { provider, preamble }) = &self.model else { return };
        let cancel = self.end.child_token();
        let (said, steering) = mpsc::channel(STEERING);
        let turn = Turn {
            id: format!("{}-{}", self.id, self.turns),
            goal,
            provider: provider.clone(),
            preamble: preamble.clone(),
            history: self.history.clone(),
            tools: Arc::clone(&self.tools),
            context: ToolContext {
                secrets: self.secrets.clone(),
                shell: self.shell.clone(),
                ..ToolContext::new(self.workspace.clone(), cancel.clone())
            },
            guidance: self.guidance.clone(),
            limits: self.limits,
            spent: self.spent,
            steering,
        };
        self.write().await;
        let (sender, steps) = mpsc::channel(STEPS);
        let task = tokio::spawn(servers::run_turn(turn, self.servers.join(), self.patience, sender));
        self.running =
            Some(Running { steps, task, cancel, steering: said, questions: Questions::default(), done: false });
    }

    /// Puts into a prompt what comes along with it, unless a cancel waits: then nobody waits for an editor any more.
    async fn attached(&self, prompt: &mut Prompt) -> bool {
        let mut sent = self.cancels.sent.clone();
        tokio::select! {
            biased;
            Ok(_) = sent.wait_for(|sent| *sent > self.cancels.heard) => {
                // What was found for nothing is still to be told.
                self.guidance.recall(self.history.iter().map(|entry| entry.message()));
                false
            }
            () = self.attach(prompt) => true,
        }
    }

    /// Another model from the next turn on. What only the other one understands (its reasoning) is left out then.
    pub(super) fn set_model(&mut self, provider: Provider, effort: Option<Effort>) {
        self.journal.held(Held { model: provider.name(), effort });
        self.effort = effort;
        self.tools = connect::offered(&provider.endpoint().model, &self.workspace, &self.skills);
        let provider = match &self.model {
            Ok(before) => provider.remembering(&before.provider),
            Err(_) => provider,
        };
        self.model = Ok(Model::new(provider, &self.id, &self.workspace, &self.tools));
        self.stale = true;
    }

    pub(super) fn cancel(&self) {
        if let Some(running) = &self.running {
            running.cancel.cancel();
        }
    }

    pub(super) async fn steer(&self, mut prompt: Prompt, joined: oneshot::Sender<()>) {
        // What the turn does not take is dropped, which tells the asker. What would come along with it still can.
        if let Some(running) = &self.running
            && let Ok(place) = running.steering.try_reserve()
        {
            let words = prompt.words();
            if self.attached(&mut prompt).await {
                let parts = prompt::render(prompt, self.stage());
                place.send(Steer { words, parts, joined });
            }
        }
    }

    /// Who has heard `Done` may come again before the turn's task is quite gone.
    pub(super) async fn settle(&mut self) {
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.turn_ended().await;
        }
    }

    /// The steps have ended: the turn is over, or it broke.
    pub(super) async fn turn_ended(&mut self) {
        let Some(running) = self.running.take() else { return };
        if let Err(error) = running.task.await {
            tracing::error!("a turn broke: {error}");
        }
        if !running.done {
            self.mend();
            self.fail(
                "the turn broke (a bug of tandem; its log has the cause). The next prompt works".to_owned(),
                ErrorCode::Internal,
            );
        }
    }

    /// A turn that broke may have left calls without results: no provider takes such a history.
    fn mend(&mut self) {
        let Ok(Model { provider, .. }) = &self.model else { return };
        if let Some(results) = self.history.last().and_then(|entry| prompt::missing_results(entry.outline())) {
            self.keep(Entry::new(results, provider));
        }
    }

    /// Adds to the conversation and its journal.
    pub(super) fn keep(&mut self, entry: Arc<Entry>) {
        self.journal.message(&entry);
        self.history.push(entry);
    }

    pub(super) fn fail(&mut self, message: String, code: ErrorCode) {
        self.outgoing.extend(failed(message, code));
    }
}
