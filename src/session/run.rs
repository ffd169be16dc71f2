//! The loop of a session: what it waits for, and its end. Each part of a session has its own state; what concerns
//! several of them is passed on here.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::event::{ReturnReason, SessionEvent};
use super::jobs::JobChanges;
use super::{
    Actor, Change, ChangeError, Command, Review, ReviewError, Reviewed, STEPS, Start, connect,
};
use crate::config::Settings;
use crate::model::ErrorCode;

impl Actor {
    /// Runs until the handle is dropped.
    pub async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.questions.load_rules().await;
        if self.start != Start::New {
            self.resume().await;
        }
        self.models.look_for_a_server().await;
        // What the first prompt would wait for; dropping it ends it.
        let mut warming = JoinSet::new();
        if let Ok(provider) = self.models.provider.clone() {
            warming.spawn(async move { provider.warm().await });
        }
        let (shell, workspace) = (self.shell.clone(), self.workspace.clone());
        warming.spawn(async move {
            shell.remove_leftovers().await;
            shell.shares_network(&workspace).await;
        });
        self.listen(&mut commands).await;
        drop(warming);
        Box::pin(self.end()).await;
    }

    async fn listen(&mut self, commands: &mut mpsc::Receiver<Command>) {
        let mut batch = Vec::with_capacity(STEPS);
        let (end, control) = (self.end.clone(), Arc::clone(&self.control));
        let mut jobs_changed = JobChanges::new(self.shell.jobs_changed());
        loop {
            self.publish();
            let running = self.running.as_mut().filter(|_| self.outbox.is_empty());
            let next = OptionFuture::from(
                running.map(|running| running.steps.recv_many(&mut batch, STEPS)),
            );
            let offers_changed = self.extensions.servers.offers_changed();
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                () = control.changed() => self.take_changes().await,
                () = offers_changed => self.extensions.take_offers(),
                Ok(()) = jobs_changed.next() => {
                    let jobs = self.shell.jobs().await;
                    self.outbox.push(SessionEvent::Jobs(jobs));
                }
                permission = self.questions.answer() => self.questions.decided(permission),
                command = commands.recv() => match command {
                    Some(command) => self.handle(command).await,
                    None => return,
                },
                sent = self.outbox.send() => if sent.is_none() {
                    return;
                },
                Some(count) = next => if count == 0 {
                    self.turn_ended().await;
                    self.advance().await;
                } else {
                    self.take(&mut batch).await;
                },
            }
        }
    }

    /// Applies the changes that arrived beside the mailbox.
    async fn take_changes(&mut self) {
        for (change, taken) in self.control.take() {
            match self.change(change).await {
                Ok(()) => self.outbox.taken(taken),
                Err(error) => drop(taken.send(Err(error))),
            }
        }
        self.write().await;
        self.questions.reconsider();
        self.advance().await;
    }

    async fn change(&mut self, change: Change) -> Result<(), ChangeError> {
        let journal = &mut self.conversation.journal;
        let (name, effort) = match change {
            Change::Mode(wanted) if wanted > self.questions.widest => {
                return Err(ChangeError::Mode {
                    wanted,
                    widest: self.questions.widest,
                });
            }
            Change::Mode(mode) => {
                self.questions.set_mode(mode);
                journal.mode(mode);
                return Ok(());
            }
            Change::OnCopy(on_copy) => {
                self.on_copy = on_copy;
                return Ok(());
            }
            Change::Settings(settings) => {
                self.configure(*settings).await;
                return Ok(());
            }
            Change::Model(name) => (name, self.models.effort),
            Change::Effort(effort) => (self.models.name().unwrap_or_default(), effort),
        };
        self.models
            .choose(&name, effort, journal)
            .map_err(|why| ChangeError::Model(why.message))
    }

    /// A session for which no model was configured takes the configuration that has been written since.
    ///
    /// It has run no turn, so the rules, limits, secrets and MCP servers in it count as well, not the model alone. What
    /// its folders and files were made from stays: the state folder, and the environment of commands. The checks at the
    /// end of a turn are taken in any case.
    ///
    /// After a refused key, the models alone are taken: the session goes on with its rules and MCP servers.
    async fn configure(&mut self, mut settings: Settings) {
        let before = &mut self.models.settings;
        before.finish.clone_from(&settings.finish);
        let (mode, start) = (before.mode, self.start);
        if self.models.refusal.is_some() {
            self.secrets = settings.redactor();
            settings.mode = mode;
            let journal = &mut self.conversation.journal;
            return self.models.renew(settings, start, journal);
        }
        if !self
            .models
            .provider
            .as_ref()
            .is_err_and(|why| matches!(why.code, ErrorCode::NoModel | ErrorCode::Auth))
        {
            return;
        }
        // A mode that the person chose, or that the session was saved with, stays.
        if start == Start::New && self.questions.mode == mode {
            self.questions.set_mode(settings.mode);
        }
        let workspace = self.workspace.clone();
        let setup = connect::setup(Arc::clone(&self.id), start, &settings, workspace);
        self.secrets = setup.secrets;
        self.spending.limits = setup.limits;
        let extensions = &mut self.extensions;
        extensions.servers = setup.servers;
        extensions.start_timeout = setup.server_timeout;
        extensions.take_offers();
        self.questions
            .configure(setup.policy, settings.widest_mode)
            .await;
        let journal = &mut self.conversation.journal;
        self.models
            .configure(settings, setup.provider, start, journal);
    }

    async fn handle(&mut self, command: Command) {
        // Whoever has seen `Done` may send a prompt before the turn's task has ended.
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.turn_ended().await;
        }
        match command {
            Command::Prompt(sent) if self.queue.is_full() => {
                self.outbox
                    .give_back(&sent.id, sent.said, ReturnReason::QueueFull);
            }
            Command::Prompt(sent) => {
                self.questions.revise_plan();
                self.queue.push(sent);
            }
            Command::Steer(sent) => self.steer(sent).await,
            Command::Withdraw(id, reply) => {
                let outbox = &mut self.outbox;
                let reason = ReturnReason::Withdrawn;
                let withdrawn = self.queue.withdraw(reason, outbox, |other, _| *other == id);
                self.advance().await;
                reply.send(withdrawn).ok();
            }
            Command::Typing => self.typing_began().await,
            Command::Edited(edit, reply) => self.edited(edit, reply),
            Command::Renamed(names) => {
                self.changes
                    .follow(names, &mut self.conversation, &mut self.outbox)
                    .await;
            }
            Command::Review(review, reply) => {
                let end = self.end.clone();
                if let Some(reviewed) = end.run_until_cancelled(self.review(review)).await {
                    reply.send(reviewed).ok();
                }
            }
        }
        self.advance().await;
    }

    /// Returns cancelled prompts, starts the next one if nothing runs, and reports new positions.
    async fn advance(&mut self) {
        let mut recorded = false;
        loop {
            let (outbox, reason) = (&mut self.outbox, ReturnReason::Cancelled);
            self.queue
                .withdraw(reason, outbox, |_, cancel| cancel.is_cancelled());
            if self.running.is_some() {
                break;
            }
            self.record_edits().await;
            let Some((sent, waited)) = self.queue.pop() else {
                break;
            };
            // The queue is written together with what the prompt becomes.
            recorded |= self.queue.record(&mut self.conversation.journal);
            self.start(sent, waited).await;
        }
        self.queue.report_positions(&mut self.outbox);
        if self.queue.record(&mut self.conversation.journal) || recorded {
            self.write().await;
        }
    }

    /// The person began to type.
    async fn typing_began(&mut self) {
        self.extensions.servers.start();
        if self.running.is_some() || !self.queue.is_empty() || self.models.is_evaluating() {
            return;
        }
        self.models.look_for_a_server().await;
        self.models.ask_for_the_window().await;
        if let Ok(provider) = self.provider()
            && provider.is_free()
        {
            let (history, policy) = (&self.conversation.history, &self.questions.policy);
            self.models.evaluate(provider, history, policy).await;
        }
    }

    async fn review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
        if self.running.is_some() && review != Review::List {
            return Err(ReviewError(
                "a turn is running; wait until it ends, or cancel it".to_owned(),
            ));
        }
        self.changes
            .review(review, &mut self.conversation, &mut self.outbox)
            .await
    }

    /// Writes the recorded changes before they are reported.
    async fn write(&mut self) {
        self.conversation.write(&mut self.outbox).await;
    }

    /// Ends the turn and everything that runs for it.
    async fn end(mut self) {
        if let Some(mut running) = self.running.take() {
            running.cancel.cancel();
            // What the turn kept of its answer, and what its last command changed.
            while let Some(step) = running.steps.recv().await {
                self.step(step).await;
            }
            // Panics are reported by the hook.
            running.task.await.ok();
        }
        self.record_edits().await;
        if self.control.has_returned() {
            self.queue.clear();
            self.queue.record(&mut self.conversation.journal);
        }
        // Saves choices made right before the end.
        for (change, taken) in self.control.take() {
            if self.change(change).await.is_ok() {
                self.outbox.taken(taken);
            }
        }
        self.write().await;
        let state = self.state();
        self.outbox.answer_changes(&state);
        self.conversation.journal.synced().await;
        self.shell.end().await;
        self.extensions.servers.close().await;
    }
}
