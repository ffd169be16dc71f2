//! The loop of a session: what it listens to, and its end.

use futures_util::future::OptionFuture;
use tokio::sync::mpsc;

use super::{Actor, Command, Model, Review, ReviewError, Reviewed, STEPS, Start, connect};
use crate::agent::Step;
use crate::agent::event::AgentEvent;

impl Actor {
    /// Does what it is told until the handle is gone.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.recall().await;
        if self.start != Start::New {
            self.resume().await;
        }
        self.look_for_a_server().await;
        let provider = self.model.as_ref().ok().map(|model| model.provider.clone());
        let warming = provider.map(|provider| tokio::spawn(async move { provider.warm().await }));
        self.listen(&mut commands).await;
        if let Some(warming) = warming {
            warming.abort();
        }
        self.end(commands).await;
    }

    async fn listen(&mut self, commands: &mut mpsc::Receiver<Command>) {
        let mut batch = Vec::with_capacity(STEPS);
        let (events, end) = (self.events.clone(), self.end.clone());
        loop {
            let idle = self.outgoing.is_empty();
            let steps = self.running.as_mut().filter(|_| idle);
            let next = OptionFuture::from(steps.map(|running| running.steps.recv_many(&mut batch, STEPS)));
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                command = commands.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                room = events.reserve(), if !idle => match (room, self.outgoing.pop_front()) {
                    (Ok(room), Some(event)) => room.send((self.id.clone(), event)),
                    _ => return,
                },
                Some(count) = next => if count == 0 {
                    self.turn_ended().await;
                } else {
                    self.take(&mut batch).await;
                },
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Prompt(prompt) => {
                self.settle().await;
                self.look_for_a_model().await;
                self.prompt(prompt).await;
            }
            Command::Compact => {
                self.settle().await;
                self.look_for_a_model().await;
                self.compact().await;
            }
            Command::Steer(prompt, joined) => self.steer(prompt, joined).await,
            Command::Cancel => {
                self.cancels.heard += 1;
                self.cancel();
            }
            Command::SetMode(mode) => {
                self.mode = mode;
                self.journal.mode(mode);
                self.write().await;
            }
            Command::SetModel(provider, effort) => {
                self.set_model(provider, effort);
                self.write().await;
            }
            Command::Review(review, reply) => {
                self.settle().await;
                let end = self.end.clone();
                let reviewed = end.run_until_cancelled(self.review(review)).await;
                let _asker_gone = reviewed.map(|reviewed| reply.send(reviewed));
            }
        }
    }

    /// Takes what a turn reports.
    async fn take(&mut self, steps: &mut Vec<Step>) {
        for step in steps.drain(..) {
            self.step(step).await;
        }
        self.write().await;
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.journal.sync().await;
        }
    }

    /// Ends the turn and all that runs for it.
    async fn end(mut self, mut commands: mpsc::Receiver<Command>) {
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
            drop(running.steps);
            let _ended = running.task.await;
        }
        // What was chosen right before the end is kept.
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::SetMode(mode) => self.journal.mode(mode),
                Command::SetModel(provider, effort) => self.set_model(provider, effort),
                _ => {}
            }
        }
        self.write().await;
        self.journal.synced().await;
        self.shell.end().await;
        self.servers.close().await;
    }

    /// Which model answers the next prompt, where nobody chose one.
    async fn look_for_a_model(&mut self) {
        if let Some(Ok(Some(provider))) = self.better.join_next().await {
            self.set_model(provider, self.effort);
        }
        self.look_for_a_server().await;
    }

    /// With nothing configured, a model server that runs on this machine is taken: also one that was started only now.
    async fn look_for_a_server(&mut self) {
        if self.model.as_ref().is_err_and(|why| why.unset)
            && let Some(provider) = connect::local().await
        {
            self.model = Ok(Model::new(provider, &self.id, &self.workspace, &self.tools));
        }
    }

    async fn review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
        if self.running.is_some() && review != Review::List {
            return Err(ReviewError("a turn is running: wait for its end or cancel it".to_owned()));
        }
        let done = match review {
            Review::Restore(turn) => Some(self.restore(turn).await?),
            Review::Undo(None) => self.unrestore().await,
            _ => None,
        };
        let mut reviewed = match done {
            Some(done) => self.listed(done).await?,
            None => self.checkpoints.review(&self.workspace, review).await?,
        };
        reviewed.cut_from = self.restored.iter().map(|restored| restored.turn).min();
        self.remarks.extend(reviewed.remark.take());
        Ok(reviewed)
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Entry(entry) => self.keep(entry),
            Step::History(entries) => {
                self.journal.compacted(entries.iter().map(|entry| entry.message().into_owned()).collect());
                self.history = entries;
            }
            Step::Event(event) => {
                self.journal.event(&event);
                self.spent.note(&event);
                if let AgentEvent::ToolExecutionEnd { result, .. } = &event {
                    let changes = result.changes.as_deref();
                    let problem = self.checkpoints.record(&self.id, self.turns, &result.diffs, changes).await;
                    self.outgoing.extend(problem.map(|message| AgentEvent::Notice { message }));
                }
                let title = self.title.take_if(|_| matches!(event, AgentEvent::TurnStart { .. }));
                self.consider(event).await;
                self.outgoing.extend(title.map(|title| AgentEvent::SessionTitle { title }));
            }
        }
    }

    /// Questions are answered or asked, everything else is passed on.
    async fn consider(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::PermissionRequested { .. } => self.question(event),
            AgentEvent::PermissionResolved { call_id, outcome } => self.answered(call_id, outcome).await,
            event => {
                if let Some(running) = &mut self.running {
                    running.done |= matches!(event, AgentEvent::Done { .. });
                }
                self.outgoing.push_back(self.without_secrets(event));
            }
        }
    }

    /// What others said may quote a key.
    fn without_secrets(&self, mut event: AgentEvent) -> AgentEvent {
        if let AgentEvent::Error { message: text, .. }
        | AgentEvent::Notice { message: text }
        | AgentEvent::Retry { reason: text, .. }
        | AgentEvent::ToolOutput { content: text, .. } = &mut event
        {
            self.secrets.clean(text);
        }
        event
    }

    /// What the person allowed for this project holds again.
    async fn recall(&mut self) {
        let Some(remembered) = &self.remembered else { return };
        match remembered.rules().await {
            Ok(rules) => self.policy.recall(rules),
            Err(error) => tracing::warn!("what was allowed in this project cannot be read: {error}"),
        }
    }
}
