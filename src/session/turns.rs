//! The beginning and end of a session's turns, and messages that join them in between.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::context::most_of_a_mention;
use super::event::{PromptId, PromptState, ReturnReason};
use super::queue::Steered;
use super::running::Running;
use super::slash::{self, Ground, Local, Work};
use super::{
    Actor, Attachment, Prompt, ReviewError, STEPS, Sent, done, jobs, servers, shadow, store,
};
use crate::agent::event::{AgentEvent, Termination};
use crate::agent::{Goal, PlanFile, Steer, Steps, Turn, prompt};
use crate::config::Mode;
use crate::model::{ErrorCode, Failure, Message, Part, Provider};
use crate::tools::ToolContext;

/// How many steering messages may be queued.
const STEERING: usize = 8;

/// Why a turn runs.
struct Cause {
    prompt: PromptId,
    /// The prompt as the client sent it, if it was queued.
    waited: Option<Arc<Value>>,
    cancel: CancellationToken,
}

impl Actor {
    /// Begins the work that a prompt asks for.
    pub async fn start(&mut self, sent: Sent, waited: bool) {
        let Sent {
            id,
            prompt,
            said,
            cancel,
        } = sent;
        let cause = Cause {
            prompt: id,
            waited: waited.then(|| Arc::clone(&said)),
            cancel,
        };
        self.models.look(&mut self.conversation.journal).await;
        let is_plan = self.questions.mode == Mode::Plan;
        let mut work = match slash::understand(prompt, &self.extensions.commands) {
            Work::Prompt(_, Ground::Copy) if is_plan => {
                Work::Local(Local::Say(shadow::NOT_IN_PLAN.to_owned()))
            }
            Work::Prompt(prompt, _) if self.on_copy && !is_plan => {
                Work::Prompt(prompt, Ground::Copy)
            }
            work => work,
        };
        let most = self.most_of_a_mention();
        if let Work::Prompt(prompt, _) = &mut work
            && let fetched = self.extensions.fetch_prompt(prompt, most)
            && let Some(Err(why)) = cause.cancel.run_until_cancelled(fetched).await
        {
            work = Work::Local(Local::Say(why));
        }
        match work {
            Work::Prompt(prompt, ground) => self.prompt(cause, prompt, &said, ground).await,
            Work::Compact => match self.provider() {
                Ok(provider) => {
                    let turn = self.conversation.other_turn();
                    self.begin(provider, cause, turn, None, Ground::Workspace)
                        .await;
                }
                Err(why) => self.fail(&cause.prompt, why),
            },
            Work::Local(local) => {
                let begun = PromptState::Running {
                    number: None,
                    waited: cause.waited,
                };
                self.outbox.prompt(&cause.prompt, begun);
                self.answer_locally(local).await;
                let ended = PromptState::Ended(Ok(Termination::EndTurn));
                self.outbox.prompt(&cause.prompt, ended);
            }
        }
    }

    async fn prompt(&mut self, cause: Cause, mut prompt: Prompt, sent: &Value, ground: Ground) {
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(why) => return self.fail(&cause.prompt, why),
        };
        let cancel = &cause.cancel;
        cancel.run_until_cancelled(self.models.look_around()).await;
        let mut words = prompt.words();
        let bare = prompt.clone();
        if !self.attached(&mut prompt, cancel).await {
            prompt = bare;
        }
        let notes = self.conversation.notes.drain(..);
        prompt
            .parts
            .extend(notes.chain(self.shell.ended_jobs()).map(Attachment::Note));
        if ground == Ground::Copy {
            words.insert_str(0, store::TRY);
            prompt
                .parts
                .push(Attachment::Note(shadow::ABOUT.to_owned()));
        }
        self.changes
            .settle_unconfirmed(&mut self.conversation)
            .await;
        self.begin_turn(&words, attached(sent), prompt, &provider);
        let number = self.conversation.turns;
        let turn = format!("{}-{number}", self.id);
        self.begin(provider, cause, turn, Some(number), ground)
            .await;
        let offer = self.extensions.import_offer().await;
        self.outbox.notices(offer);
    }

    /// The person's message becomes part of the conversation and begins its next turn.
    pub fn begin_turn(
        &mut self,
        words: &str,
        attached: Vec<Value>,
        prompt: Prompt,
        provider: &Provider,
    ) {
        self.conversation.close_last_turn(provider);
        let parts = self.render(prompt);
        let conversation = &mut self.conversation;
        conversation.begin_turn(words, attached, parts, provider, &self.models);
        self.shell.begin_turn(conversation.turns);
        let prompts = &mut self.changes.checkpoints.prompts;
        prompts.push(store::name(words));
    }

    /// What the model reads of a prompt: no secrets but in the person's own words.
    fn render(&self, prompt: Prompt) -> Vec<Part> {
        let mut parts = prompt::render(prompt, self.conversation.stage(self.questions.mode));
        for part in &mut parts {
            if let Part::Note { text } = part {
                self.secrets.clean(text);
            }
        }
        parts
    }

    /// The model. Loaded messages, and those encoded for another model, are encoded for it now.
    pub fn provider(&mut self) -> Result<Provider, Failure> {
        let (provider, is_stale) = self.models.ready()?;
        self.conversation.encode_for(&provider, is_stale);
        Ok(provider)
    }

    /// Begins a turn: that of the prompt with this number, or a compaction.
    async fn begin(
        &mut self,
        provider: Provider,
        cause: Cause,
        name: String,
        number: Option<u64>,
        ground: Ground,
    ) {
        self.models.stop_evaluating();
        let preamble = self.models.beginning(&provider, &self.questions.policy);
        let Cause {
            prompt,
            waited,
            cancel,
        } = cause;
        let (steers, steering) = mpsc::channel(STEERING);
        let turn = Turn {
            id: name,
            goal: number.map_or(Goal::Compact, |_| Goal::Answer),
            explorers: Some(self.models.explorers(&provider, &self.questions.policy)),
            provider,
            preamble,
            history: self.conversation.history.clone(),
            call_ids: self.conversation.call_ids.clone(),
            tools: Arc::clone(&self.models.tools),
            context: ToolContext {
                secrets: self.secrets.clone(),
                shell: self.shell.clone(),
                withheld: self.questions.policy.withheld(),
                ..ToolContext::new(self.workspace.clone(), cancel.clone())
            },
            guidance: self.conversation.guidance.clone(),
            limits: self.spending.limits,
            finish: self.models.settings.finish.clone(),
            plan: number.and_then(|turn| self.plan_file(turn)),
            spent: self.spending.spent,
            steering,
        };
        self.conversation.write(&mut self.outbox).await;
        let begun = PromptState::Running { number, waited };
        self.outbox.prompt(&prompt, begun);
        let (sender, steps) = mpsc::channel(STEPS);
        let task = match ground {
            Ground::Workspace => tokio::spawn(servers::run_turn(
                turn,
                self.extensions.servers.join(),
                self.extensions.start_timeout,
                self.questions.policy.clone(),
                Steps(sender),
            )),
            Ground::Copy => tokio::spawn(shadow::run_turn(turn, Steps(sender))),
        };
        self.questions.reset(ground == Ground::Copy);
        self.running = Some(Running {
            prompt,
            steps,
            task,
            cancel,
            steering: steers,
            failure: None,
            done: false,
        });
    }

    fn plan_file(&self, turn: u64) -> Option<PlanFile> {
        let state = self.models.settings.state_dir.as_deref()?;
        Some(PlanFile {
            path: store::plans(state).join(format!("{}-{turn}.md", self.id)),
            origin: format!("(planned in turn {turn} of session {})", self.id),
        })
    }

    fn most_of_a_mention(&self) -> usize {
        let provider = self.models.provider.as_ref().ok();
        most_of_a_mention(provider.and_then(Provider::window))
    }

    /// Adds context to a prompt. Stops waiting for the editor if the prompt is cancelled.
    async fn attached(&mut self, prompt: &mut Prompt, cancel: &CancellationToken) -> bool {
        let most = self.most_of_a_mention();
        let attached = self.context.attach(prompt, &mut self.extensions, most);
        let attached = cancel.run_until_cancelled(attached).await.is_some();
        if !attached {
            // The change notices were not used, so they are reported again.
            self.conversation.reset_guidance();
        }
        attached
    }

    /// Passes a message to the running turn.
    pub async fn steer(&mut self, sent: Sent) {
        let Sent {
            id,
            mut prompt,
            said,
            cancel,
        } = sent;
        let place = self
            .running
            .as_ref()
            .filter(|running| !running.done && !cancel.is_cancelled())
            .and_then(|running| running.steering.clone().try_reserve_owned().ok());
        let Some(place) = place else {
            let reason = if cancel.is_cancelled() {
                ReturnReason::Cancelled
            } else {
                ReturnReason::NoTurn
            };
            return self.outbox.give_back(&id, said, reason);
        };
        let words = prompt.words();
        if self.questions.fill_in_by_message(&words) {
            return self.outbox.prompt(&id, PromptState::Joined);
        }
        if !self.attached(&mut prompt, &cancel).await {
            return self.outbox.give_back(&id, said, ReturnReason::Cancelled);
        }
        let parts = self.render(prompt);
        let (joined, taken) = oneshot::channel();
        self.queue.steers.push(Steered {
            id: Arc::clone(&id),
            said,
            cancel,
            taken: Some(taken),
        });
        place.send(Steer {
            prompt: id,
            words,
            parts,
            joined,
        });
        self.questions.answer_by_message();
    }

    /// A prompt failed before its turn began.
    fn fail(&mut self, id: &PromptId, failure: Failure) {
        self.outbox.failure(failure.clone());
        self.outbox.prompt(id, PromptState::Ended(Err(failure)));
    }

    /// Answers a command without a model.
    async fn answer_locally(&mut self, local: Local) {
        let content = match local {
            Local::Review(review) => {
                let (conversation, outbox) = (&mut self.conversation, &mut self.outbox);
                let reviewed = self.changes.review(review, conversation, outbox).await;
                reviewed.map_or_else(
                    |ReviewError(why)| why,
                    |reviewed| reviewed.message.unwrap_or_default(),
                )
            }
            Local::Jobs(which) => jobs::answer(&self.shell, &which, &mut self.outbox).await,
            Local::Model(name) => self.models.command(&name, &mut self.conversation.journal),
            Local::Help => self.extensions.commands.help(),
            Local::Say(message) => message,
        };
        let answer = Arc::new(Message::answer(content.as_str()));
        let done = done(Some(answer), Termination::EndTurn);
        let begin = AgentEvent::IterationStart {
            iteration: 0,
            message_count: 0,
        };
        for event in [begin, AgentEvent::TextDelta { content }, done] {
            self.outbox.push(event);
        }
    }

    /// The turn's channel has closed: the turn is over or panicked.
    pub async fn turn_ended(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        self.questions.reset(false);
        if let Err(error) = (&mut running.task).await {
            tracing::error!("a turn panicked: {error}");
        }
        if !running.done {
            let failure = Failure::new(
                ErrorCode::Internal,
                "internal error: the turn panicked (the log has the cause). The next prompt works",
            );
            running.failure = Some(failure.clone());
            self.outbox.failure(failure);
            running.report_end(Termination::Error, &mut self.queue, &mut self.outbox);
        }
    }
}

/// What a client sent besides text; the bytes of images are in the message.
fn attached(sent: &Value) -> Vec<Value> {
    let mut attached = Vec::new();
    for block in sent.as_array().into_iter().flatten() {
        if block["type"] != "text" {
            let mut block = block.clone();
            if let Some(data) = block.get_mut("data") {
                *data = "".into();
            }
            attached.push(block);
        }
    }
    attached
}
