//! The loop of a session: what it waits for, and its end. Each part of a session has its own state; what concerns
//! several of them is passed on here.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::event::{Activity, PromptState, ReturnReason, SessionEvent, State};
use super::extensions::Extensions;
use super::jobs::JobChanges;
use super::models::Models;
use super::{
    Actor, Change, ChangeError, Command, Review, ReviewError, Reviewed, STEPS, Start, connect,
};
use crate::agent::Step;
use crate::agent::event::{AgentEvent, Permission, START, START_FRESH};
use crate::changes::ChangeSet;
use crate::config::{Mode, Settings};
use crate::domain::Failure;
use crate::model::ErrorCode;
use crate::text::redact::Redactor;

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

    /// The current state.
    fn state(&self) -> State {
        let running = self.running.as_ref().is_some_and(|running| !running.done);
        let activity = match self.questions.open_kind() {
            Some(kind) if running => Activity::Waiting(kind),
            _ if running || !self.queue.is_empty() => Activity::Running,
            _ => Activity::Idle,
        };
        State {
            on_copy: self.on_copy,
            activity,
            queued: self.queue.len(),
            begun: self.conversation.turns > 0,
            usage: self.spending.used,
            ..initial_state(&self.models, &self.extensions, self.questions.mode)
        }
    }

    /// Publishes the state if it changed, and answers changes that have taken effect: a call allowed in the previous
    /// mode has ended by then, or is shown to be running.
    pub fn publish(&mut self) {
        let state = self.state();
        self.outbox.publish(&state);
        if !self.questions.is_changing() {
            self.outbox.answer_changes(&state);
        }
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

    pub async fn review(&mut self, review: Review) -> Result<Reviewed, ReviewError> {
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
    pub async fn write(&mut self) {
        self.conversation.write(&mut self.outbox).await;
    }

    /// Handles the steps of a turn.
    async fn take(&mut self, steps: &mut Vec<Step>) {
        let mut has_commands = false;
        for step in steps.drain(..) {
            if let Step::Event(AgentEvent::ToolExecutionEnd { result, .. }) = &step {
                has_commands |= result.changes.is_some();
            }
            self.step(step).await;
        }
        self.write().await;
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

/// The state of a session without prompts.
pub(super) fn initial_state(models: &Models, extensions: &Extensions, mode: Mode) -> State {
    State {
        mode,
        model: match &models.provider {
            Ok(provider) => Ok(provider.name()),
            Err(why) => Err(why.message.clone()),
        },
        refusal: models.refusal.clone(),
        models: Arc::clone(&models.choices),
        effort: models.effort,
        has_effort: models.settings.model.is_ok(),
        on_copy: false,
        commands: Arc::clone(&extensions.menu),
        activity: Activity::Idle,
        queued: 0,
        begun: false,
        usage: None,
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
