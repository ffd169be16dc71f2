//! The beginning and end of a session's turns, and steering messages in between.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::event::{PromptId, PromptState, ReturnReason};
use super::store::Held;
use super::{
    Actor, Attachment, Ground, Model, NoProvider, Prompt, Questions, Running, STEPS, Sent, Steered,
    UNANSWERED, connect, servers, shadow, store,
};
use crate::agent::prompt::Stage;
use crate::agent::{Entry, Goal, PlanFile, Steer, Steps, Turn, prompt};
use crate::config::Mode;
use crate::model::{Api, AssistantMessage, Effort, ErrorCode, Failure, Message, Part, Provider};
use crate::tools::ToolContext;

/// How many steering messages may be queued.
const STEERING: usize = 8;

/// Why a turn runs.
struct Cause {
    prompt: PromptId,
    turn: String,
    number: Option<u64>,
    waited: Option<Arc<Value>>,
    cancel: CancellationToken,
    ground: Ground,
}

impl Actor {
    pub(super) async fn prompt(
        &mut self,
        id: PromptId,
        mut prompt: Prompt,
        sent: &Arc<Value>,
        waited: Option<Arc<Value>>,
        cancel: CancellationToken,
        ground: Ground,
    ) {
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(why) => return self.fail(&id, why.into()),
        };
        let _cancelled = cancel.run_until_cancelled(self.look_around()).await;
        self.close_last_turn(&provider);
        self.notes.extend(self.shell.ended_jobs());
        let words = match ground {
            Ground::Workspace => prompt.words(),
            Ground::Copy => format!("{}{}", store::TRY, prompt.words()),
        };
        let said = prompt.clone();
        if !self.attached(&mut prompt, &cancel).await {
            prompt = said;
        }
        prompt
            .parts
            .extend(self.notes.drain(..).map(Attachment::Text));
        if ground == Ground::Copy {
            prompt
                .parts
                .push(Attachment::Text(shadow::ABOUT.to_owned()));
        }
        self.begin_turn(
            &words,
            attached(sent),
            prompt::render(prompt, self.stage()),
            &provider,
        );
        let turn = format!("{}-{}", self.id, self.turns);
        self.begin(
            Goal::Answer,
            Cause {
                prompt: id,
                turn,
                number: Some(self.turns),
                waited,
                cancel,
                ground,
            },
        )
        .await;
        self.offer_import().await;
    }

    /// A turn that ended without an answer gets one.
    pub(super) fn close_last_turn(&mut self, provider: &Provider) {
        if self
            .history
            .last()
            .is_some_and(|last| !matches!(last.outline(), Message::Assistant(_)))
        {
            let message = Message::Assistant(AssistantMessage {
                text: UNANSWERED.to_owned(),
                ..AssistantMessage::default()
            });
            self.keep(Entry::new(message, provider));
        }
    }

    /// The person's message becomes part of the conversation and begins its next turn.
    pub(super) fn begin_turn(
        &mut self,
        words: &str,
        attached: Vec<Value>,
        parts: Vec<Part>,
        provider: &Provider,
    ) {
        self.turns += 1;
        self.shell.begin_turn(self.turns);
        self.others = 0;
        self.restored.clear();
        self.title = (self.turns == 1).then(|| store::title(words));
        let entry = Entry::new(Message::User { parts }, provider);
        self.journal.prompt(
            words,
            attached,
            &entry,
            Held {
                model: provider.name(),
                effort: self.effort,
            },
        );
        self.history.push(entry);
    }

    /// What the mode means for the next message. Whether the last one asked for a plan is recorded in the history
    /// itself.
    pub(super) fn stage(&self) -> Stage {
        let of_person = |entry: &&Arc<Entry>| matches!(entry.outline(), Message::User { .. });
        let last = || self.history.iter().rfind(of_person);
        match self.mode {
            Mode::Plan => Stage::Plan,
            _ if last().is_some_and(|entry| prompt::plans_only(&entry.message())) => Stage::Go,
            _ => Stage::Usual,
        }
    }

    /// Compacts the conversation, as a turn of its own.
    pub(super) async fn compact(
        &mut self,
        id: PromptId,
        waited: Option<Arc<Value>>,
        cancel: CancellationToken,
    ) {
        if let Err(why) = self.provider() {
            return self.fail(&id, why.into());
        }
        let turn = self.other_turn();
        let ground = Ground::Workspace;
        self.begin(
            Goal::Compact,
            Cause {
                prompt: id,
                turn,
                number: None,
                waited,
                cancel,
                ground,
            },
        )
        .await;
    }

    /// The model. Loaded messages, and those encoded for another model, are encoded for it now.
    pub(super) fn provider(&mut self) -> Result<Provider, NoProvider> {
        let provider = self
            .model
            .as_ref()
            .map(|model| model.provider.clone())
            .map_err(Clone::clone)?;
        let provider = provider.switched().unwrap_or(provider);
        if Some(provider.api()) != self.api() {
            self.model = Ok(self.model_of(provider.clone()));
            self.stale = true;
        }
        if std::mem::take(&mut self.stale) {
            for entry in &mut self.history {
                *entry = Entry::new(entry.message().into_owned(), &provider);
            }
        }
        self.history.extend(
            self.kept
                .drain(..)
                .map(|message| Entry::new(message, &provider)),
        );
        Ok(provider)
    }

    /// The model's dialect.
    fn api(&self) -> Option<Api> {
        self.model.as_ref().ok().map(|model| model.provider.api())
    }

    async fn begin(&mut self, goal: Goal, cause: Cause) {
        self.typing_ended();
        let Ok(Model { provider, preamble }) = &self.model else {
            return;
        };
        let Cause {
            prompt,
            turn: name,
            number,
            waited,
            cancel,
            ground,
        } = cause;
        let (said, steering) = mpsc::channel(STEERING);
        let turn = Turn {
            id: name.clone(),
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
            finish: self.settings.finish.clone(),
            plan: number.and_then(|turn| self.plan_file(turn)),
            spent: self.spent,
            steering,
            explorers: Some(self.explorers(provider)),
        };
        self.write().await;
        self.report(
            &prompt,
            PromptState::Running {
                turn: name.clone(),
                number,
                waited,
            },
        );
        let (sender, steps) = mpsc::channel(STEPS);
        let task = match ground {
            Ground::Workspace => tokio::spawn(servers::run_turn(
                turn,
                self.servers.join(),
                self.server_timeout,
                Steps(sender),
            )),
            Ground::Copy => tokio::spawn(shadow::run_turn(turn, Steps(sender))),
        };
        self.running = Some(Running {
            prompt,
            name,
            steps,
            task,
            cancel,
            steering: said,
            steers: Vec::new(),
            questions: Questions::default(),
            ground,
            is_allowed: false,
            changing: HashMap::new(),
            failure: None,
            done: false,
        });
    }

    fn plan_file(&self, turn: u64) -> Option<PlanFile> {
        let state = self.settings.state_dir.as_deref()?;
        Some(PlanFile {
            path: state.join("plans").join(format!("{}-{turn}.md", self.id)),
            origin: format!("(planned in turn {turn} of session {})", self.id),
        })
    }

    /// Adds context to a prompt, unless it is cancelled: then nobody waits for an editor any more.
    async fn attached(&mut self, prompt: &mut Prompt, cancel: &CancellationToken) -> bool {
        let attached = cancel
            .run_until_cancelled(self.attach(prompt))
            .await
            .is_some();
        if !attached {
            // The news was not used, so it is reported again.
            self.guidance
                .reset_to(self.history.iter().map(|entry| entry.message()));
        }
        attached
    }

    /// Another model from the next turn on. What only the previous one understands (its reasoning) is dropped.
    pub(super) fn set_model(&mut self, provider: Provider, effort: Option<Effort>) {
        self.journal.held(Held {
            model: provider.name(),
            effort,
        });
        self.effort = effort;
        self.tools = connect::offered(
            &provider.endpoint().model,
            self.shell.dialect(),
            &self.workspace,
            &self.skills,
        );
        if let Ok(before) = &self.model {
            self.former
                .retain(|former| former.name() != before.provider.name());
            self.former.push(before.provider.clone());
        }
        let provider = self
            .former
            .iter()
            .fold(self.journal.teach(provider), Provider::remembering);
        self.model = Ok(self.model_of(provider));
        self.choices = self.choose_from();
        self.stale = true;
    }

    /// Passes a message to the running turn.
    pub(super) async fn steer(&mut self, sent: Sent) {
        let Sent {
            id,
            mut prompt,
            said,
            cancel,
        } = sent;
        let place = self
            .running
            .as_ref()
            .filter(|running| !running.done && !cancel.is_cancelled());
        let Some(place) =
            place.and_then(|running| running.steering.clone().try_reserve_owned().ok())
        else {
            let reason = if cancel.is_cancelled() {
                ReturnReason::Cancelled
            } else {
                ReturnReason::NoTurn
            };
            return self.give_back(id, said, reason);
        };
        let words = prompt.words();
        if self.fill_in_by_message(&words)
            && let Some(running) = &self.running
        {
            let turn = running.name.clone();
            return self.report(&id, PromptState::Joined { turn });
        }
        if !self.attached(&mut prompt, &cancel).await {
            return self.give_back(id, said, ReturnReason::Cancelled);
        }
        let parts = prompt::render(prompt, self.stage());
        let (joined, taken) = oneshot::channel();
        if let Some(running) = &mut self.running {
            running.steers.push(Steered {
                id: Arc::clone(&id),
                said,
                cancel,
                taken,
            });
        }
        place.send(Steer {
            prompt: id,
            words,
            parts,
            joined,
        });
        self.answer_by_message();
    }

    /// A message joined the running turn.
    pub(super) fn joined(&mut self, id: &PromptId) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.steers.retain(|steered| steered.id != *id);
        let turn = running.name.clone();
        self.report(id, PromptState::Joined { turn });
    }

    /// Whoever has seen `Done` may send a prompt before the turn's task has ended.
    pub(super) async fn settle(&mut self) {
        if self.running.as_ref().is_some_and(|running| running.done) {
            self.turn_ended().await;
        }
    }

    /// The turn's steps have ended: it is over, or it panicked.
    pub(super) async fn turn_ended(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        if let Err(error) = (&mut running.task).await {
            tracing::error!("a turn panicked: {error}");
        }
        if !running.done {
            let failure = Failure::new(
                ErrorCode::Internal,
                "internal error: the turn panicked (the log has the cause). The next prompt works",
            );
            running.failure = Some(failure.clone());
            self.repair_history();
            self.tell_failure(failure);
            self.report_end(crate::agent::event::Termination::Error);
        }
        self.running = None;
    }

    /// A turn that panicked may have left calls without results, which no provider accepts.
    fn repair_history(&mut self) {
        let Ok(Model { provider, .. }) = &self.model else {
            return;
        };
        if let Some(results) = self
            .history
            .last()
            .and_then(|entry| prompt::missing_results(entry.outline()))
        {
            self.keep(Entry::new(results, provider));
        }
    }

    /// Appends to the conversation and its journal.
    pub(super) fn keep(&mut self, entry: Arc<Entry>) {
        if let Ok(model) = &self.model {
            self.journal.taught(&model.provider);
        }
        self.journal.message(&entry);
        self.history.push(entry);
    }
}

/// What a client sent besides text; the bytes of images are in the message.
fn attached(sent: &Value) -> Vec<Value> {
    let others = sent
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| block["type"] != "text");
    let mut attached: Vec<Value> = others.cloned().collect();
    for data in attached
        .iter_mut()
        .filter_map(|block| block.get_mut("data"))
    {
        *data = Value::from("");
    }
    attached
}
