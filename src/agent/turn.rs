//! One turn, from a person's message to the model's final answer.

mod explore;
mod finish;
mod limits;
mod nudge;
mod plan;
mod room;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

pub use self::explore::Explorers;
use self::finish::Ending;
pub use self::limits::Spent;
use self::nudge::Nudges;
pub use self::plan::PlanFile;
use self::room::Cause;
use super::Entry;
use super::answer::{Answer, End, Inputs, listen};
use super::ask;
use super::event::{AgentEvent, Termination};
use super::guidance::Guidance;
use super::loops::{Loop, LoopDetector};
use super::schedule::{Outcome, Permits, Schedule};
use super::steps::{Step, Steps};
use crate::domain::{Bounds, Finish, Limits};
use crate::model::{
    ErrorCode, Failure, Message, ModelRequest, Part, Preamble, Provider, ToolCall, ToolResult,
    Usage,
};
use crate::tools::{Tool, ToolContext, ToolOutput};

/// How many overflows in a row are answered by compaction: the size of a request is an estimate.
const RECOVERIES: u32 = 2;

/// The purpose of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// To answer the person's last message.
    Answer,
    /// To compact the conversation.
    Compact,
    /// To answer a question about the code, within bounds.
    Explore {
        /// The total it may use.
        bounds: Bounds,
        /// When it has to answer; `None` for never.
        until: Option<Instant>,
    },
}

/// Everything a turn works with.
pub struct Turn {
    /// Its id, unique in its session.
    pub id: String,
    /// Its purpose.
    pub goal: Goal,
    /// The model.
    pub provider: Provider,
    /// Tools and system prompt in the model's API.
    pub preamble: Preamble,
    /// The conversation, with the person's new message last.
    pub history: Vec<Arc<Entry>>,
    /// The ids of all calls of the session, those that the conversation no longer has, too.
    pub call_ids: HashSet<String>,
    /// The tools the model may call.
    pub tools: Arc<[Arc<dyn Tool>]>,
    /// The context of tools; its token cancels the turn.
    pub context: ToolContext,
    /// The folder instructions the model has seen.
    pub guidance: Guidance,
    /// When to stop.
    pub limits: Limits,
    /// The checks at its end.
    pub finish: Finish,
    /// Where the plan is saved; `None` if there is no state directory.
    pub plan: Option<PlanFile>,
    /// What the session used before this turn, counted towards its limits.
    pub spent: Spent,
    /// Messages the person sends during the turn.
    pub steering: mpsc::Receiver<Steer>,
    /// Runs the sub-agents of `explore`; a sub-agent has none.
    pub explorers: Option<Arc<Explorers>>,
}

/// A message that joins a running turn.
#[derive(Debug)]
pub struct Steer {
    /// Its id.
    pub prompt: Arc<str>,
    /// The person's own text, for display.
    pub words: String,
    /// The parts the model reads.
    pub parts: Vec<Part>,
    /// Notified when the turn takes the message. The send fails if it was withdrawn; it is dropped if the turn ends
    /// first.
    pub joined: oneshot::Sender<()>,
}

/// Runs a turn to its end. The last step is [`AgentEvent::Done`] in every case.
pub async fn run_turn(mut turn: Turn, steps: Steps) {
    let (model, context_window) = (turn.provider.name(), turn.provider.window());
    turn.context.window = turn.room();
    turn.context.explorer = turn
        .explorers
        .as_ref()
        .map(|explorers| explorers.of_turn(&steps));
    steps
        .event(AgentEvent::TurnStart {
            turn_id: turn.id.clone(),
            model,
            context_window,
        })
        .await;
    let mut state = State {
        messages: turn.history.clone(),
        permits: Permits::new(turn.limits.parallel),
        loops: LoopDetector::default(),
        spent: Spent::default(),
        usage: Usage::default(),
        iteration: 0,
        calls: 0,
        is_last: false,
        counted: None,
        shortest: 0,
        recovered: 0,
        nudges: Nudges::default(),
        answer: None,
        learning: room::learning(&turn.provider),
        ending: Ending::new(turn.finish.clone(), &turn.context.workspace),
        turn,
        steps,
    };
    let reason = match state.run().await {
        Ok(reason) => reason,
        Err(error) => state.report(error).await,
    };
    let done = AgentEvent::Done {
        answer: state.answer,
        termination_reason: reason,
        iterations: state.iteration,
        usage: state.usage,
    };
    state.steps.event(done).await;
}

/// The text of an answer.
fn said(answer: Option<&Message>) -> &str {
    answer.map_or("", Message::answer_text)
}

struct State {
    turn: Turn,
    steps: Steps,
    messages: Vec<Arc<Entry>>,
    permits: Permits,
    loops: LoopDetector,
    /// Usage that counts towards its limits.
    spent: Spent,
    usage: Usage,
    iteration: u32,
    /// How many calls there were.
    calls: u64,
    /// Whether an explorer has to answer now.
    is_last: bool,
    /// The tokens of the last request and answer, and how many messages they had.
    counted: Option<(u64, usize)>,
    /// The size after the last compaction, in tokens.
    shortest: u64,
    /// How many overflows in a row were answered by compaction; after [`RECOVERIES`] the next one is an error.
    recovered: u32,
    nudges: Nudges,
    /// The model's last answer.
    answer: Option<Arc<Message>>,
    /// Pending requests to the endpoint about its model.
    learning: JoinSet<()>,
    ending: Ending,
}

impl State {
    async fn run(&mut self) -> Result<Termination, Failure> {
        if self.turn.goal == Goal::Compact {
            return Ok(self.compact_by_hand().await);
        }
        loop {
            if let Some(limit) = self.limit()
                && let Some(reason) = self.pause(format!("after {limit}")).await
            {
                return Ok(reason);
            }
            self.make_room().await;
            self.iteration += 1;
            let end = match self.iterate().await {
                Err(error)
                    if error.code == ErrorCode::ContextOverflow && self.recovered < RECOVERIES =>
                {
                    self.recovered += 1;
                    self.note_overflow(&error).await;
                    if let Some(why) = self.too_small() {
                        let message = format!("{}; {why}", error.message);
                        return Err(Failure { message, ..error });
                    }
                    let is_shorter = self.compact(Cause::Overflow).await;
                    let is_cancelled = self.turn.context.cancel.is_cancelled();
                    if !is_shorter && (is_cancelled || !self.continue_half().await) {
                        return Err(error);
                    }
                    continue;
                }
                Err(_) if self.switch_dialect() => continue,
                Err(error) if self.leave_out_images(&error).await => continue,
                end => end?,
            };
            self.recovered = 0;
            let steered = matches!(end, None | Some(Termination::EndTurn)) && self.join().await;
            if let Some(reason) = end.filter(|_| !steered)
                && !(reason == Termination::EndTurn && self.goes_on().await)
            {
                let cancelled = self.turn.context.cancel.is_cancelled();
                return Ok(if cancelled {
                    Termination::Cancelled
                } else {
                    reason
                });
            }
        }
    }

    /// Whether the turn continues although the model wants to stop: because of unfinished work, an approved plan, or a new
    /// message of the person.
    async fn goes_on(&mut self) -> bool {
        self.go_on_to_finish().await || self.start_plan().await || self.join().await
    }

    /// Messages sent meanwhile join the conversation; returns whether there were any.
    async fn join(&mut self) -> bool {
        let mut any = false;
        while let Ok(Steer {
            prompt,
            words,
            parts,
            joined,
        }) = self.turn.steering.try_recv()
        {
            if joined.send(()).is_ok() {
                any = true;
                self.steps
                    .event(AgentEvent::UserMessage {
                        content: words,
                        prompt: Some(prompt),
                        turn: None,
                        attached: Vec::new(),
                    })
                    .await;
                self.push(Message::User { parts }).await;
            }
        }
        any
    }

    /// Asks the person whether to continue; `None` if so, and usage is counted from zero.
    async fn pause(&mut self, why: String) -> Option<Termination> {
        if let Goal::Explore { .. } = self.turn.goal {
            return self.conclude(&why).await;
        }
        let place = format!("{}-{}", self.turn.id, self.iteration);
        if ask::go_on(&place, &why, &self.turn.context.cancel, &self.steps).await {
            self.loops = LoopDetector::default();
            self.spent = Spent::default();
            self.turn.spent.go_on(&self.turn.limits.session);
            return None;
        }
        if self.turn.context.cancel.is_cancelled() {
            return Some(Termination::Cancelled);
        }
        let message = format!("stopped {why}; send \"continue\" to go on");
        self.steps.notice(message).await;
        Some(Termination::MaxTurnRequests)
    }

    /// One request and its calls; `Some` when the turn is over.
    async fn iterate(&mut self) -> Result<Option<Termination>, Failure> {
        let iteration = self.iteration;
        let message_count = self.messages.len();
        self.tell(AgentEvent::IterationStart {
            iteration,
            message_count,
        })
        .await;
        let messages = self.messages.iter();
        let request = ModelRequest {
            preamble: self.turn.preamble.clone(),
            messages: messages.map(|entry| entry.encoded().clone()).collect(),
            may_call: !self.is_last,
        };
        let mut schedule = self.schedule();
        let sent = self.least_size();
        let inputs = Inputs {
            provider: &self.turn.provider,
            tools: &self.turn.tools,
            context: &self.turn.context,
            history: &self.messages,
            taken: &self.turn.call_ids,
            steps: &self.steps,
        };
        let answer = listen(inputs, request, &mut schedule).await;
        self.learn_window(&answer.end).await;
        if let Some(usage) = answer.usage {
            let whole = self.check_window(sent, usage).await;
            self.counted = whole.then_some((usage.input + usage.output, self.messages.len() + 1));
            self.account(usage).await;
        }
        self.warn_of_unknown_cost().await;
        // The answer is saved before its calls run: nothing happens that the conversation does not record.
        let Answer {
            message,
            end,
            unusable,
            ..
        } = answer;
        let calls = message.calls.clone();
        let is_empty =
            nudge::says_nothing(&message.text) && calls.is_empty() && message.refusal.is_empty();
        self.answer = if is_empty {
            None
        } else {
            Some(self.push(Message::Assistant(message)).await)
        };
        let outcomes = schedule.finish().await;
        self.count(&outcomes);
        self.nudges.note(&outcomes);
        self.ending.note(&outcomes, &self.turn.context.workspace);
        let words = said(self.answer.as_deref());
        let repeated = self.loops.note(words, &calls, &outcomes, &self.turn.tools);
        let tool_calls = outcomes.len();
        let tool_name = outcomes
            .last()
            .map(|outcome| outcome.name.clone())
            .unwrap_or_default();
        self.record(&calls, outcomes).await;
        self.steps
            .event(AgentEvent::IterationComplete {
                iteration,
                tool_calls,
            })
            .await;
        if self.turn.context.cancel.is_cancelled() {
            return Ok(Some(Termination::Cancelled));
        }
        let reason = nudge::reason(&end, is_empty, unusable);
        let next = match self.next(end, tool_calls).await? {
            Some(Termination::EndTurn) if !self.is_last && self.nudge(reason).await => None,
            next => next,
        };
        match repeated.filter(|_| next.is_none()) {
            Some(repeated) => Ok(self.pause_loop(repeated, tool_name).await),
            None => Ok(next),
        }
    }

    fn schedule(&self) -> Schedule {
        let (context, guidance) = (self.turn.context.clone(), self.turn.guidance.clone());
        Schedule::new(context, guidance, self.steps.clone(), self.permits.clone())
    }

    /// A loop was detected: asks the person whether to continue; `None` if so.
    async fn pause_loop(&mut self, repeated: Loop, tool_name: String) -> Option<Termination> {
        let action = format!("{repeated}; the turn waits for your decision whether to continue");
        let consecutive_count = repeated.rounds;
        self.steps
            .event(AgentEvent::LoopDetected {
                tool_name,
                consecutive_count,
                action,
            })
            .await;
        self.pause(format!("because {repeated}")).await
    }

    /// Warns if a limit on cost cannot be enforced because the price is unknown.
    async fn warn_of_unknown_cost(&mut self) {
        let limit = self.turn.limits.of_cost();
        if let (1, None, Some(limit)) = (self.iteration, self.usage.cost, limit) {
            let why = "the provider reports no cost, and config.toml has no prices for the model";
            let message = format!("{limit} cannot be enforced: {why}");
            self.steps.notice(message).await;
        }
    }

    /// Whether the loop continues after an answer with this many calls.
    async fn next(&mut self, end: End, tool_calls: usize) -> Result<Option<Termination>, Failure> {
        let (reason, message) = match end {
            End::Failed(error) => return Err(error),
            End::Broken(error) if self.nudges.are_used_up() => return Err(error),
            _ if tool_calls > 0 => return Ok(None),
            End::Pause => return Ok(None),
            End::Stop | End::Malformed | End::NoCalls => return Ok(Some(Termination::EndTurn)),
            End::Broken(error) => (
                Termination::EndTurn,
                format!("{}; asking the model to continue", error.message),
            ),
            End::Length => (
                Termination::MaxTokens,
                "the model's token limit cut the answer off; send \"continue\" to go on".to_owned(),
            ),
            End::Filtered(word) => (
                Termination::Refusal,
                format!("the provider's content filter cut the answer off (`{word}`); rephrase the prompt"),
            ),
            End::Refused => (
                Termination::Refusal,
                "the model refused to answer; rephrase the prompt".to_owned(),
            ),
            End::Repeats => (
                Termination::MaxTokens,
                "the model repeated itself endlessly and was stopped; rephrase the prompt, or choose another model".to_owned(),
            ),
            End::Other(word) => (
                Termination::EndTurn,
                format!(
                    "the provider ended the answer with `{word}`, an unknown reason; send \"continue\" if something is missing"
                ),
            ),
        };
        self.steps.notice(message).await;
        Ok(Some(reason))
    }

    async fn compact_by_hand(&mut self) -> Termination {
        let shorter = self.compact(Cause::Wish).await;
        if self.turn.context.cancel.is_cancelled() {
            return Termination::Cancelled;
        }
        if !shorter {
            let message = "the session cannot be shortened any further".to_owned();
            self.steps.notice(message).await;
        }
        Termination::EndTurn
    }

    async fn account(&mut self, usage: Usage) {
        self.usage.add(&usage);
        self.tell(AgentEvent::Usage(usage)).await;
    }

    /// Sends an event and counts its usage.
    async fn tell(&mut self, event: AgentEvent) {
        self.spent.note(&event);
        self.turn.spent.note(&event);
        self.steps.event(event).await;
    }

    /// Appends the results of an answer's calls to the conversation.
    async fn record(&mut self, calls: &[ToolCall], outcomes: Vec<Outcome>) {
        let is_blind = self.turn.provider.sees() == Some(false);
        let result = |(call, outcome): (&ToolCall, Outcome)| {
            let ToolOutput {
                mut content,
                is_error,
                mut images,
                ..
            } = outcome.result;
            if is_blind && !images.is_empty() {
                images.clear();
                content
                    .push_str("[this model does not accept images, so the image was omitted; ask the user to describe it]\n");
            }
            // It stays as long as the conversation, and does not grow.
            content.shrink_to_fit();
            ToolResult {
                call_id: call.id.clone(),
                content,
                is_error,
                images,
            }
        };
        let results: Vec<_> = calls.iter().zip(outcomes).map(result).collect();
        if !results.is_empty() {
            self.push(Message::Results { results }).await;
        }
    }

    async fn push(&mut self, message: Message) -> Arc<Message> {
        let ids = message.calls().iter().map(|call| call.id.clone());
        self.turn.call_ids.extend(ids);
        let entry = Entry::new(message, &self.turn.provider);
        self.messages.push(Arc::clone(&entry));
        let message = entry.share();
        self.steps.send(Step::Entry(entry)).await;
        message
    }

    async fn report(&mut self, error: Failure) -> Termination {
        if self.turn.context.cancel.is_cancelled() {
            return Termination::Cancelled;
        }
        if error.code == ErrorCode::Internal {
            tracing::error!("a turn failed: {error}");
        }
        self.steps.event(AgentEvent::Error(error)).await;
        Termination::Error
    }
}
