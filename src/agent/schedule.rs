//! Runs the calls of one answer: read-only ones in parallel, changing ones in order and alone.
//!
//! Invariants: every added call gets exactly one [`Outcome`]; a changing call runs only when all calls before it have
//! ended, and nothing else runs meanwhile; while a changing call waits for a person, the read-only calls after it run,
//! and no others; a panic in a tool fails only that call; after cancellation no new call starts, a running read-only call
//! is dropped, and a running changing call may finish (it checks the token itself).

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::advice::{advise, another_path};
use super::ask::{Wish, ask, person, show};
use super::event::AgentEvent;
use super::guidance::Guidance;
use super::steps::Steps;
use crate::tools::{Live, Redactor, Tool, ToolContext, ToolError, ToolKind, ToolOutput};

/// The shortest time between two pieces of a running call's output.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(100);

/// A call to run.
#[derive(Clone)]
pub(super) struct Call {
    /// Its index in the answer.
    pub slot: usize,
    /// The id in its events.
    pub id: String,
    /// The name the model used.
    pub name: String,
    /// What to run, or why nothing can run.
    pub work: Result<Work, String>,
    /// The source text of calls written next to prose, shown if the call is refused. Only the first call has it; for the
    /// others, it is empty.
    pub in_prose: Option<String>,
}

/// A tool and its arguments.
#[derive(Clone)]
pub(super) struct Work {
    pub tool: Arc<dyn Tool>,
    pub arguments: Value,
    /// How the call was interpreted, for the model.
    pub note: Option<String>,
}

impl Work {
    /// The same call, carried out by the tool that the files in this workspace require.
    fn redirected(self, context: &ToolContext) -> Self {
        let Some(tool) = self.tool.instead(context, &self.arguments) else {
            return self;
        };
        let redirected = format!("[`{}` was run as `{}`]", self.tool.name(), tool.name());
        let note = self
            .note
            .map_or(redirected.clone(), |note| format!("{note}\n{redirected}"));
        Self {
            tool,
            note: Some(note),
            ..self
        }
    }
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub id: String,
    pub name: String,
    pub result: ToolOutput,
    pub wait: Duration,
    pub ran: Duration,
}

/// Permits for parallel read-only calls; a changing call takes all of them.
#[derive(Clone)]
pub(super) struct Permits {
    semaphore: Arc<Semaphore>,
    all: u32,
}

impl Permits {
    /// This many permits, at least one.
    pub fn new(count: usize) -> Self {
        let all = u32::try_from(count)
            .unwrap_or(u32::MAX)
            .clamp(1, u32::from(u16::MAX));
        Self {
            semaphore: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    async fn acquire(&self, read_only: bool) -> Option<OwnedSemaphorePermit> {
        let count = if read_only { 1 } else { self.all };
        Arc::clone(&self.semaphore)
            .acquire_many_owned(count)
            .await
            .ok()
    }
}

/// The calls of one answer.
pub(super) struct Schedule {
    run: Run,
    waiting: VecDeque<Waiting>,
    running: JoinSet<Outcome>,
    started: BTreeMap<Id, Running>,
    done: BTreeMap<usize, Outcome>,
    writing: bool,
    /// Whether the changing call waits for a person.
    asking: watch::Sender<bool>,
    asked: watch::Receiver<bool>,
}

/// A call that cannot start yet.
struct Waiting {
    call: Call,
    since: Instant,
    /// The task that shows it, which ends before the call starts or is given up.
    showing: JoinSet<()>,
}

/// A task that ended or panicked.
pub(super) type Ended = Result<(Id, Outcome), JoinError>;

struct Running {
    slot: usize,
    id: String,
    name: String,
    read_only: bool,
}

impl Schedule {
    /// An empty schedule whose calls share `permits`.
    pub fn new(context: ToolContext, guidance: Guidance, steps: Steps, permits: Permits) -> Self {
        let (asking, asked) = watch::channel(false);
        let run = Run {
            permits,
            context,
            guidance,
            steps,
        };
        Self {
            run,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            started: BTreeMap::new(),
            done: BTreeMap::new(),
            writing: false,
            asking,
            asked,
        }
    }

    /// Adds a call whose arguments are complete; it starts as soon as the order allows, and is shown until then.
    pub fn add(&mut self, call: Call) {
        let slot = call.slot;
        self.waiting.push_back(Waiting {
            call,
            since: Instant::now(),
            showing: JoinSet::new(),
        });
        self.start_what_may();
        if let Some(Waiting { call, showing, .. }) = self.waiting.back_mut()
            && call.slot == slot
        {
            showing.spawn(preview(call.clone(), self.run.clone()));
        }
    }

    /// Whether a call is running, so that [`Schedule::ended`] has something to wait for.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits until a running call ends. Cancel safe: the result must be passed to [`Schedule::settle`].
    pub async fn ended(&mut self) -> Option<Ended> {
        loop {
            tokio::select! {
                ended = self.running.join_next_with_id() => return ended,
                Ok(()) = self.asked.changed() => self.start_what_may(),
            }
        }
    }

    /// Reports how a call ended, and starts what waited for it.
    pub async fn settle(&mut self, ended: Ended) {
        if let Some((slot, outcome)) = self.outcome(ended) {
            self.tell(&outcome).await;
            self.done.insert(slot, outcome);
        }
        self.start_what_may();
    }

    /// Waits until every call has its outcome, in the order of the calls. On cancellation, those that have not started get
    /// "cancelled".
    pub async fn finish(mut self) -> Vec<Outcome> {
        let cancel = self.run.context.cancel.clone();
        let mut cancelled = cancel.is_cancelled();
        while self.is_running() || !self.waiting.is_empty() {
            if cancelled {
                self.drop_waiting().await;
                if !self.is_running() {
                    break;
                }
                if let Some(ended) = self.ended().await {
                    self.settle(ended).await;
                }
                continue;
            }
            tokio::select! {
                Some(ended) = self.ended() => self.settle(ended).await,
                () = cancel.cancelled() => cancelled = true,
            }
        }
        self.done.into_values().collect()
    }

    fn start_what_may(&mut self) {
        let mut next = 0;
        while !self.run.context.cancel.is_cancelled()
            && let Some(Waiting { call, .. }) = self.waiting.get(next)
        {
            // Calls that cannot run are queued with the changing ones: their result is immediate anyway.
            let read_only = call
                .work
                .as_ref()
                .is_ok_and(|work| work.tool.kind().is_read_only());
            let waits_for_person = self.writing && *self.asked.borrow();
            let may_start = if read_only {
                !self.writing || waits_for_person
            } else {
                !self.is_running()
            };
            if may_start && let Some(Waiting { call, since, .. }) = self.waiting.remove(next) {
                self.start(call, since, read_only);
            } else if waits_for_person {
                next += 1;
            } else {
                return;
            }
        }
    }

    fn start(&mut self, call: Call, since: Instant, read_only: bool) {
        self.writing |= !read_only;
        let (slot, id, name) = (call.slot, call.id.clone(), call.name.clone());
        let asking = if read_only {
            watch::Sender::new(false)
        } else {
            self.asking.clone()
        };
        let execution = execute(call, since, self.run.clone(), asking, read_only);
        let task = self.running.spawn(execution).id();
        let running = Running {
            slot,
            id,
            name,
            read_only,
        };
        self.started.insert(task, running);
    }

    fn outcome(&mut self, ended: Ended) -> Option<(usize, Outcome)> {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, Ok(outcome)),
            Err(error) => (error.id(), Err(error)),
        };
        let running = self.started.remove(&id)?;
        self.writing &= running.read_only;
        let outcome = outcome.unwrap_or_else(|error| {
            tracing::error!(tool = running.name, "a tool panicked: {error}");
            let why = format!(
                "internal error: {} panicked (a bug in tandem; details are in its log). Try another way",
                running.name
            );
            Outcome::unrun(running.id, running.name, ToolError(why))
        });
        Some((running.slot, outcome))
    }

    async fn drop_waiting(&mut self) {
        for Waiting { call, .. } in std::mem::take(&mut self.waiting) {
            let outcome = Outcome::unrun(call.id, call.name, ToolError(CANCELLED.to_owned()));
            self.tell(&outcome).await;
            self.done.insert(call.slot, outcome);
        }
    }

    async fn tell(&self, outcome: &Outcome) {
        let steps = &self.run.steps;
        steps
            .event(AgentEvent::ToolExecutionEnd {
                call_id: outcome.id.clone(),
                name: outcome.name.clone(),
                result: outcome.result.clone(),
                wait_ms: millis(outcome.wait),
                execute_duration_ms: millis(outcome.ran),
            })
            .await;
        if let Some(entries) = outcome.result.plan.clone() {
            steps.event(AgentEvent::Plan { entries }).await;
        }
    }
}

/// The styles are of the text as it was.
fn hide_secrets(result: &mut ToolOutput, secrets: &Redactor) {
    if let Cow::Owned(clean) = secrets.redact(&result.content) {
        (result.content, result.styles) = (clean, Vec::new());
    }
}

const CANCELLED: &str = "cancelled before it finished";

impl Outcome {
    fn unrun(id: String, name: String, result: impl Into<ToolOutput>) -> Self {
        Self {
            id,
            name,
            result: result.into(),
            wait: Duration::ZERO,
            ran: Duration::ZERO,
        }
    }
}

/// Everything a call runs with.
#[derive(Clone)]
struct Run {
    permits: Permits,
    context: ToolContext,
    guidance: Guidance,
    steps: Steps,
}

/// Shows the preview of a call that cannot start yet. It is refreshed when the call starts.
async fn preview(call: Call, run: Run) {
    let Ok(work) = call.work.map(|work| work.redirected(&run.context)) else {
        return;
    };
    let wish = Wish {
        call_id: &call.id,
        name: &call.name,
        tool: &*work.tool,
        arguments: &work.arguments,
        in_prose: None,
    };
    let _told_when_it_runs = show(&wish, &run.context, &run.steps).await;
}

/// Runs a call once it is allowed. A read-only one ends when the turn is cancelled.
async fn execute(
    call: Call,
    since: Instant,
    run: Run,
    asking: watch::Sender<bool>,
    read_only: bool,
) -> Outcome {
    let work = match call.work {
        Ok(work) => work.redirected(&run.context),
        Err(why) => return Outcome::unrun(call.id, call.name, ToolError(why)),
    };
    let wish = Wish {
        call_id: &call.id,
        name: &call.name,
        tool: &*work.tool,
        arguments: &work.arguments,
        in_prose: call.in_prose.as_deref(),
    };
    let context = match ask(wish, &run.context, &run.steps, &asking).await {
        Ok(context) => context,
        Err(mut result) => {
            hide_secrets(&mut result, &run.context.secrets);
            return Outcome::unrun(call.id, call.name, *result);
        }
    };
    let cancel = context.cancel.clone();
    let done = perform((&call.id, &call.name), work, context, &run, read_only);
    let done = if read_only {
        cancel.run_until_cancelled(done).await.flatten()
    } else {
        done.await
    };
    match done {
        Some((begun, result)) => Outcome {
            id: call.id,
            name: call.name,
            result,
            wait: begun - since,
            ran: begun.elapsed(),
        },
        None => Outcome::unrun(call.id, call.name, ToolError(CANCELLED.to_owned())),
    }
}

/// Runs a call that is allowed; returns when it began, and its result. `None`: it was cancelled before.
async fn perform(
    (id, name): (&str, &str),
    work: Work,
    context: ToolContext,
    run: &Run,
    read_only: bool,
) -> Option<(Instant, ToolOutput)> {
    let Run {
        permits,
        guidance,
        steps,
        ..
    } = run;
    let permit = permits.acquire(read_only).await;
    // Cancelled while it waited for read-only calls.
    if context.cancel.is_cancelled() {
        return None;
    }
    if let Some(preview) = context.decided.clone().filter(|_| !read_only) {
        steps.announce(id, preview).await;
    }
    steps
        .event(AgentEvent::ToolExecutionStart {
            call_id: id.to_owned(),
            name: name.to_owned(),
            arguments: work.arguments.clone(),
        })
        .await;
    let begun = Instant::now();
    let context = ToolContext {
        live: Live::default(),
        person: person(id, &context.cancel, steps.clone()),
        call_id: id.to_owned(),
        ..context
    };
    let answer = tokio::select! {
        answer = work.tool.run(&context, &work.arguments) => answer,
        never = tell_live(id, &context.live, &context.secrets, steps) => match never {},
    };
    drop(permit);
    let mut result = answer.unwrap_or_else(ToolOutput::from);
    for message in std::mem::take(&mut result.notices) {
        steps.notice(message).await;
    }
    if matches!(work.tool.kind(), ToolKind::Read | ToolKind::Edit) {
        advise(&mut result, &context.workspace, guidance).await;
    }
    let path = another_path(&work.arguments, &result, &context.workspace);
    if let Some(note) = work
        .note
        .into_iter()
        .chain(path)
        .reduce(|one, other| format!("{one}\n{other}"))
    {
        add_line(&mut result.content, &note);
    }
    hide_secrets(&mut result, &context.secrets);
    Some((begun, result))
}

/// Appends a line of its own.
fn add_line(content: &mut String, line: &str) {
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(line);
    content.push('\n');
}

/// Forwards the output of a running call, at most once per [`OUTPUT_INTERVAL`].
async fn tell_live(call_id: &str, live: &Live, secrets: &Redactor, steps: &Steps) -> Infallible {
    let mut held = String::new();
    loop {
        let (text, line) = live.next().await;
        held.push_str(&text);
        let content = secrets.take_clean(&mut held);
        let line = secrets.take_clean(&mut format!("{held}{line}"));
        steps
            .event(AgentEvent::ToolOutput {
                call_id: call_id.to_owned(),
                content,
                line,
            })
            .await;
        tokio::time::sleep(OUTPUT_INTERVAL).await;
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
