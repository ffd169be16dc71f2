//! An explorer answers one question about the code: a turn of its own with tools that only read.
//!
//! Invariants: the conversation that asked gets the answer and nothing else; a limit is passed by one answer at most,
//! which has no calls; calls are decided by the rules of the session, and what they would ask about is refused; an
//! explorer starts no other one, and dropping it closes its stream.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::{Goal, Spent, Turn, run_turn};
use crate::agent::event::{About, AgentEvent};
use crate::agent::steps::{Step, Steps};
use crate::agent::text::cut;
use crate::agent::{Entry, Guidance};
use crate::domain::{Bounds, Finish, Limits, Preview, ToolKind, Usage, lock};
use crate::model::{Message, Preamble, Provider};
use crate::text::display::counted;
use crate::tools::{Explorer, Pending, Tool, ToolContext, ToolError, ToolOutput};

/// How many run at a time.
const PARALLEL: usize = 2;
/// How many of its steps may be queued.
const STEPS: usize = 32;
/// The longest answer, in bytes.
const ANSWER: usize = 16_000;

/// State shared by the explorers of a turn.
pub struct Explorers {
    model: Result<(Provider, Preamble), String>,
    tools: Arc<[Arc<dyn Tool>]>,
    bounds: Bounds,
    permits: Semaphore,
    /// Usage that their turn has not counted.
    used: Mutex<Usage>,
}

impl Explorers {
    /// Explorers with this model (or why there is none) and these tools.
    pub fn new(
        model: Result<(Provider, Preamble), String>,
        tools: Arc<[Arc<dyn Tool>]>,
        bounds: Bounds,
    ) -> Arc<Self> {
        Arc::new(Self {
            model,
            tools,
            bounds,
            permits: Semaphore::new(PARALLEL),
            used: Mutex::default(),
        })
    }

    /// The usage since the last time.
    pub(super) fn take_usage(&self) -> Usage {
        std::mem::take(&mut *lock(&self.used))
    }

    /// The ones that report to these steps.
    pub(super) fn of_turn(self: &Arc<Self>, steps: &Steps) -> Arc<dyn Explorer> {
        Arc::new(OfTurn {
            shared: Arc::clone(self),
            steps: steps.clone(),
        })
    }
}

struct OfTurn {
    shared: Arc<Explorers>,
    steps: Steps,
}

impl Explorer for OfTurn {
    fn explore<'a>(
        &'a self,
        context: &'a ToolContext,
        line: String,
        question: String,
    ) -> Pending<'a, ToolOutput> {
        self.answer(context, line, question).boxed()
    }
}

impl OfTurn {
    async fn answer(
        &self,
        context: &ToolContext,
        line: String,
        question: String,
    ) -> Result<ToolOutput, ToolError> {
        let Ok(_permit) = self.shared.permits.acquire().await else {
            return Err(ToolError("cancelled".to_owned()));
        };
        let call_id = &context.call_id;
        self.tell(
            call_id,
            AgentEvent::UserMessage {
                content: question.clone(),
                prompt: None,
                turn: None,
                attached: Vec::new(),
            },
        )
        .await;
        let (sender, steps) = mpsc::channel(STEPS);
        let turn = self.turn(context, question)?;
        let mut seen = Seen {
            question: line,
            ..Seen::default()
        };
        let turn = run_turn(turn, Steps(sender)).boxed();
        let following = async { tokio::join!(turn, self.follow(steps, context, &mut seen)) };
        let time = self.shared.bounds.time;
        let is_late = timeout(time, following).await.is_err();
        let problem = if is_late {
            Some(format!(
                "stopped after {} s (explore.seconds)",
                time.as_secs()
            ))
        } else {
            seen.error.take()
        };
        let answer = seen.text.trim();
        if answer.is_empty() {
            let why = problem.unwrap_or_else(|| "the model returned nothing".to_owned());
            return Err(ToolError(format!(
                "no answer: {why}. Ask something smaller, or read the files yourself"
            )));
        }
        let mut content = cut(answer, context.room(ANSWER), "it exceeds the limit");
        if let Some(why) = problem {
            content += &format!("\n[the answer is incomplete: {why}]");
        }
        Ok(content.into())
    }

    fn turn(&self, context: &ToolContext, question: String) -> Result<Turn, ToolError> {
        let shared = &self.shared;
        let (provider, preamble) = shared.model.clone().map_err(ToolError)?;
        let (_nobody, steering) = mpsc::channel(1);
        Ok(Turn {
            id: context.call_id.clone(),
            goal: Goal::Explore {
                bounds: shared.bounds,
                // The rest of the time is for its answer.
                until: Instant::now().checked_add(shared.bounds.time / 4 * 3),
            },
            history: vec![Entry::new(Message::text(question), &provider)],
            call_ids: HashSet::new(),
            provider,
            preamble,
            tools: Arc::clone(&shared.tools),
            context: ToolContext {
                // The model that asked has not read what the explorer reads.
                workspace: context.workspace.fork(),
                decided: None,
                ..context.clone()
            },
            guidance: Guidance::default(),
            limits: Limits::default(),
            // It changes nothing, so nothing gets worse.
            finish: Finish {
                diagnostics: false,
                ..Finish::default()
            },
            plan: None,
            spent: Spent::default(),
            steering,
            explorers: None,
        })
    }

    /// Passes on what the person sees or decides, and keeps the answer.
    async fn follow(
        &self,
        mut steps: mpsc::Receiver<Step>,
        context: &ToolContext,
        seen: &mut Seen,
    ) {
        while let Some(step) = steps.recv().await {
            let Step::Event(mut event) = step else {
                continue;
            };
            if let AgentEvent::PermissionRequested(request) = &mut event
                && let About::Call { asks, .. } = &mut request.about
            {
                *asks = false;
                self.steps.event(event).await;
                continue;
            }
            if let AgentEvent::PermissionResolved { .. } = event {
                continue;
            }
            if let Some(read) = seen.note(&event) {
                context.live.say(&read, String::new());
            }
            let usage = match &event {
                AgentEvent::Usage(usage) => Some(*usage),
                _ => None,
            };
            // Counted first: the next await may be the last.
            if let Some(usage) = usage {
                lock(&self.shared.used).add(&usage);
                seen.usage.add(&usage);
            }
            self.tell(&context.call_id, event).await;
            if usage.is_some() {
                self.show(&context.call_id, seen).await;
            }
        }
    }

    /// Tells the session what happened.
    async fn tell(&self, call_id: &str, event: AgentEvent) {
        let (call_id, event) = (call_id.to_owned(), Box::new(event));
        self.steps
            .event(AgentEvent::Explored { call_id, event })
            .await;
    }

    /// Shows in the call's line what it has cost so far.
    async fn show(&self, call_id: &str, seen: &Seen) {
        let preview = Preview::titled(seen.title());
        self.steps
            .event(AgentEvent::preview(call_id, ToolKind::Think, preview))
            .await;
    }
}

/// What an explorer has done so far.
#[derive(Default)]
struct Seen {
    question: String,
    /// The text of its last answer.
    text: String,
    error: Option<String>,
    calls: u64,
    usage: Usage,
    /// The titles of its calls, by id.
    titles: HashMap<String, String>,
}

impl Seen {
    /// Notes an event; returns what a person reads of it.
    fn note(&mut self, event: &AgentEvent) -> Option<String> {
        match event {
            AgentEvent::IterationStart { .. } => self.text.clear(),
            AgentEvent::TextDelta { content } => self.text.push_str(content),
            AgentEvent::Error(failure) => self.error = Some(failure.message.clone()),
            AgentEvent::ToolPreview {
                call_id, preview, ..
            } => {
                self.titles.insert(call_id.clone(), preview.title.clone());
            }
            AgentEvent::ToolExecutionStart { call_id, .. } => {
                return self.titles.get(call_id).map(|title| format!("{title}\n"));
            }
            AgentEvent::ToolExecutionEnd { .. } => self.calls += 1,
            _ => {}
        }
        None
    }

    /// The call's title: what it has cost stands first, so that a narrow view cuts the question.
    fn title(&self) -> String {
        let tokens = self.usage.input + self.usage.output;
        let cost = self.usage.cost.map(|cost| format!(", ${cost:.4}"));
        let (question, calls) = (&self.question, counted(self.calls, "call"));
        format!(
            "Explore ({calls}, {tokens} tokens{}): {question}",
            cost.unwrap_or_default()
        )
    }
}
