//! The loop of a session: what it waits for, and its end.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::event::SessionEvent;
use super::jobs::JobChanges;
use super::{
    Actor, Change, ChangeError, Command, Questions, Review, ReviewError, Reviewed, STEPS, Start,
    connect,
};
use crate::agent::Step;
use crate::agent::event::AgentEvent;
use crate::changes::ChangeSet;
use crate::changes::checkpoint::TurnReview;
use crate::domain::Failure;

impl Actor {
    /// Runs until the handle is dropped.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.load_rules().await;
        if self.start != Start::New {
            self.resume().await;
        }
        self.look_for_a_server().await;
        // What the first prompt would wait for; dropping it ends it.
        let mut warming = JoinSet::new();
        if let Ok(model) = &self.model {
            let provider = model.provider.clone();
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
        let (events, end, control) = (
            self.events.clone(),
            self.end.clone(),
            Arc::clone(&self.control),
        );
        let mut jobs_changed = JobChanges::new(self.shell.jobs_changed());
        loop {
            self.publish();
            let idle = self.outgoing.is_empty();
            let running = self
                .running
                .as_mut()
                .map(|running| (&mut running.steps, &mut running.questions));
            let (steps, questions) = running.unzip();
            let next = OptionFuture::from(
                steps
                    .filter(|_| idle)
                    .map(|steps| steps.recv_many(&mut batch, STEPS)),
            );
            let answer = OptionFuture::from(questions.map(Questions::answer));
            let offers_changed = self.servers.offers_changed();
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                () = control.changed() => self.take_changes().await,
                () = offers_changed => self.take_offers(),
                Ok(()) = jobs_changed.next() => {
                    let jobs = self.shell.jobs().await;
                    self.outgoing.push_back(SessionEvent::Jobs(jobs));
                }
                Some(permission) = answer => self.decided(permission),
                command = commands.recv() => match command {
                    Some(command) => self.handle(command).await,
                    None => return,
                },
                room = events.reserve(), if !idle => match (room, self.outgoing.pop_front()) {
                    (Ok(room), Some(event)) => room.send((self.id.clone(), event)),
                    _ => return,
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
                Ok(()) => self.taken.push(taken),
                Err(error) => drop(taken.send(Err(error))),
            }
        }
        self.write().await;
        self.reconsider();
        self.advance().await;
    }

    async fn change(&mut self, change: Change) -> Result<(), ChangeError> {
        let (name, effort) = match change {
            Change::Mode(wanted) if wanted > self.settings.widest_mode => {
                return Err(ChangeError::Mode {
                    wanted,
                    widest: self.settings.widest_mode,
                });
            }
            Change::Mode(mode) => {
                self.mode = mode;
                self.journal.mode(mode);
                if let Some(running) = &mut self.running {
                    running.is_allowed = false;
                }
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
            Change::Model(name) => (name, self.effort),
            Change::Effort(effort) => (self.model_name().unwrap_or_default(), effort),
        };
        let provider = connect::provider_named(&self.settings, &name, effort);
        let provider = provider.map_err(|why| ChangeError::Model(why.message))?;
        self.set_model(provider, effort);
        Ok(())
    }

    /// Publishes the state if it changed, and answers changes that are in force: a call allowed in the previous mode
    /// has ended by then, or is shown to be running.
    pub(super) fn publish(&mut self) {
        let state = self.state();
        if *self.published.borrow() != state {
            self.published.send_replace(state.clone());
            self.outgoing.push_back(SessionEvent::State(state.clone()));
        }
        if !self.taken.is_empty()
            && self
                .running
                .as_ref()
                .is_none_or(|running| running.changing.is_empty())
        {
            for taken in self.taken.drain(..) {
                let _asker_gone = taken.send(Ok(state.clone()));
            }
        }
    }

    async fn handle(&mut self, command: Command) {
        self.settle().await;
        match command {
            Command::Prompt(sent) => self.accept(sent).await,
            Command::Steer(sent) => self.steer(sent).await,
            Command::Withdraw(id, reply) => {
                let withdrawn = self.withdraw(&id).await;
                let _asker_gone = reply.send(withdrawn);
            }
            Command::Typing => self.typing_began().await,
            Command::Edited(edit, reply) => self.edited(edit, reply),
            Command::Review(review, reply) => {
                let end = self.end.clone();
                let reviewed = end.run_until_cancelled(self.review(review)).await;
                let _asker_gone = reviewed.map(|reviewed| reply.send(reviewed));
            }
        }
        self.advance().await;
    }

    /// Handles the steps of a turn.
    async fn take(&mut self, steps: &mut Vec<Step>) {
        let is_command = |step: &Step| match step {
            Step::Event(AgentEvent::ToolExecutionEnd { result, .. }) => result.changes.is_some(),
            _ => false,
        };
        let has_commands = steps.iter().any(is_command);
        for step in steps.drain(..) {
            self.step(step).await;
        }
        self.write().await;
        if has_commands {
            self.shell.recorded().await;
        }
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.journal.sync().await;
        }
    }

    /// Ends the turn and everything that runs for it.
    async fn end(mut self) {
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
            drop(running.steps);
            let _ended = running.task.await;
        }
        self.record_edits().await;
        if self.control.has_returned() && !self.queue.is_empty() {
            self.queue.clear();
            self.note_queue();
        }
        // Saves choices made right before the end.
        for (change, taken) in self.control.take() {
            if self.change(change).await.is_ok() {
                self.taken.push(taken);
            }
        }
        self.write().await;
        let state = self.state();
        for taken in self.taken.drain(..) {
            let _asker_gone = taken.send(Ok(state.clone()));
        }
        self.journal.synced().await;
        self.shell.end().await;
        self.servers.close().await;
    }

    /// Chooses the model for the next prompt, if nobody chose one.
    pub(super) async fn look_for_a_model(&mut self) {
        if let Some(Ok(Some(provider))) = self.better.join_next().await {
            self.set_model(provider, self.effort);
        }
        self.look_for_a_server().await;
        self.ask_for_the_window().await;
    }

    /// With nothing configured, a local model server is used, even one that was started only now.
    pub(super) async fn look_for_a_server(&mut self) {
        if self.model.as_ref().is_err_and(|why| why.unset)
            && let Err(why) = connect::provider(&self.settings)
        {
            self.model = match connect::local(&self.settings, why).await {
                Ok(provider) => Ok(self.model_of(provider)),
                Err(why) => Err(why),
            };
            self.choices = self.choose_from();
        }
    }

    /// A small window gets a short system prompt, in every process of a conversation the same.
    pub(super) async fn ask_for_the_window(&mut self) {
        if let Ok(model) = &self.model {
            let provider = model.provider.clone();
            if provider.learn_early().await {
                self.model = Ok(self.model_of(provider));
            }
        }
    }

    pub(super) async fn review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
        if self.running.is_some() && review != Review::List {
            return Err(ReviewError(
                "a turn is running; wait until it ends, or cancel it".to_owned(),
            ));
        }
        if review == Review::List {
            return self.do_review(review).await;
        }
        self.stop_undone_jobs(&review).await;
        self.take_up_jobs().await;
        let before = self.checkpoints.under_review();
        // What applies changes again and is killed in the middle can be undone.
        let ahead = match &review {
            Review::Undo(_) if !self.restored.is_empty() => Vec::new(),
            _ => self.checkpoints.reviewed_ahead(&review).await,
        };
        self.note_reviews(&ahead).await;
        let reviewed = self.do_review(review).await;
        self.shell.look_past(&self.workspace).await;
        // What was done before a failure was done as well.
        let reviews = self.checkpoints.reviewed_since(&before);
        if reviews != ahead {
            self.note_reviews(&reviews).await;
        }
        self.write().await;
        reviewed
    }

    async fn note_reviews(&mut self, reviews: &[TurnReview]) {
        for review in reviews {
            self.journal.reviewed(review.clone());
        }
        self.write().await;
    }

    /// Jobs end with the turn that began them: going back to before it leaves nothing running.
    async fn stop_undone_jobs(&self, review: &Review) {
        let turns = match review {
            Review::Restore(turn) => *turn..=u64::MAX,
            Review::Undo(Some(turn)) => *turn..=*turn,
            // Later turns changed nothing, but may have begun a job.
            Review::Undo(None) if self.restored.is_empty() => {
                match self.checkpoints.next_undone() {
                    Some(turn) => turn..=u64::MAX,
                    None => return,
                }
            }
            _ => return,
        };
        self.shell.stop_jobs_of(turns).await;
    }

    /// What jobs in the background have changed so far becomes part of the last turn.
    async fn take_up_jobs(&mut self) {
        let Some(changed) = self.shell.changed_by_jobs(&self.workspace).await else {
            return;
        };
        self.take_up("Background job", changed).await;
    }

    async fn do_review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
        let done = match review {
            Review::Restore(turn) => Some(self.restore(turn).await?),
            Review::Undo(None) => self.unrestore().await,
            _ => None,
        };
        let mut reviewed = match done {
            Some(done) => self.listed(done).await?,
            None => {
                self.checkpoints
                    .review(&self.workspace, review.with_identity(&self.workspace))
                    .await?
            }
        };
        reviewed.cut_from = self.restored.iter().map(|restored| restored.turn).min();
        self.notes.extend(reviewed.note.take());
        reviewed.name_files(&self.workspace);
        Ok(reviewed)
    }

    pub(super) async fn step(&mut self, step: Step) {
        match step {
            Step::Entry(entry) => self.keep(entry),
            Step::History(entries) => {
                self.journal.compacted(
                    entries
                        .iter()
                        .map(|entry| entry.message().into_owned())
                        .collect(),
                );
                self.history = entries;
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
                    self.journal.call_ended(call_id, name, result, nothing);
                }
                self.consider(event).await;
            }
            Step::Note(note) => self.notes.push(note),
            Step::Event(event) => {
                self.journal.event(&event);
                self.spent.note(&event);
                if let AgentEvent::ToolExecutionEnd {
                    call_id,
                    name,
                    result,
                    ..
                } = &event
                {
                    let command = result.changes.as_deref();
                    let (changed, problem) = self
                        .checkpoints
                        .record(&self.workspace, self.turns, &result.diffs, command)
                        .await;
                    self.journal.call_ended(call_id, name, result, changed);
                    self.outgoing
                        .extend(problem.map(|message| AgentEvent::Notice { message }.into()));
                }
                let title = self
                    .title
                    .take_if(|_| matches!(event, AgentEvent::TurnStart { .. }));
                self.consider(event).await;
                self.outgoing
                    .extend(title.map(|title| AgentEvent::SessionTitle { title }.into()));
            }
        }
    }

    /// Permission requests are decided or asked, other events passed on.
    async fn consider(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::PermissionRequested { .. } => self.question(event),
            AgentEvent::PermissionResolved { call_id, outcome } => {
                self.answered(call_id, outcome).await;
            }
            event => {
                let event = self.without_secrets(event);
                self.note(&event);
                let reason = match &event {
                    AgentEvent::Done {
                        termination_reason, ..
                    } => Some(*termination_reason),
                    _ => None,
                };
                self.tell(event);
                if let Some(reason) = reason {
                    self.report_end(reason);
                }
            }
        }
    }

    /// Updates the session's own state from an event.
    fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::UserMessage {
                prompt: Some(id), ..
            } => self.joined(id),
            AgentEvent::TurnStart { context_window, .. } => self.window = *context_window,
            AgentEvent::Window { tokens } => self.window = Some(*tokens),
            AgentEvent::Usage(usage) => self.note_usage(*usage, false),
            AgentEvent::Explored { event, .. } => {
                if let AgentEvent::Usage(usage) = **event {
                    self.note_usage(usage, true);
                }
            }
            _ => {}
        }
        let Some(running) = &mut self.running else {
            return;
        };
        running.note_call(event);
        if let AgentEvent::Error(failure) = event {
            running.failure = Some(failure.clone());
        }
    }

    /// Sends an event to the session's followers.
    pub(super) fn tell(&mut self, event: AgentEvent) {
        self.outgoing.push_back(event.into());
    }

    /// Text from elsewhere may quote a key.
    fn without_secrets(&self, mut event: AgentEvent) -> AgentEvent {
        if let AgentEvent::Explored { call_id, event } = event {
            let event = Box::new(self.without_secrets(*event));
            return AgentEvent::Explored { call_id, event };
        }
        if let AgentEvent::Error(Failure { message: text, .. })
        | AgentEvent::Notice { message: text }
        | AgentEvent::Retry { reason: text, .. }
        | AgentEvent::ToolOutput { content: text, .. } = &mut event
        {
            self.secrets.clean(text);
        }
        event
    }

    /// Loads the permissions stored for this project.
    pub(super) async fn load_rules(&mut self) {
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
}
