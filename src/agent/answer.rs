//! Listening to one answer of the model: what it says goes out as it comes, and a read-only call starts as soon as its
//! own arguments are complete, while the rest still streams.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::Value;

use super::event::{AgentEvent, CompleteCall};
use super::live::Live;
use super::schedule::{Call, Schedule, Work};
use super::steps::Steps;
use super::turn::Turn;
use crate::model::collect::{Collected, Collector, Outcome};
use crate::model::{
    Arguments, AssistantMessage, ErrorCode, Finish, ModelError, ModelEvent, ModelRequest, ToolCall, Usage,
};
use crate::tools::{Tool, ToolKind};

/// What the model answered, in whole or as far as it came.
pub(super) struct Answer {
    pub message: AssistantMessage,
    pub usage: Option<Usage>,
    pub end: End,
}

/// How an answer ended.
pub(super) enum End {
    Stop,
    /// The provider wants the same request again, with this answer at its end.
    Pause,
    Length,
    Filtered,
    Refused,
    Failed(ModelError),
}

/// Asks the model and hands its calls to `schedule`: each exactly once, in the order of the answer. `taken` are the ids of
/// all calls before.
pub(super) async fn listen(
    turn: &Turn,
    request: ModelRequest,
    taken: &HashSet<String>,
    schedule: &mut Schedule,
    steps: &Steps,
) -> Answer {
    let mut listener =
        Listener { turn, steps, taken, collector: Collector::new(taken), open: HashMap::new(), handed: 0 };
    let mut stream = Some(turn.provider.stream(request));
    let cancel = &turn.context.cancel;
    let end = loop {
        let Some(open) = &mut stream else { break Ok(()) };
        let event = tokio::select! {
            biased;
            () = cancel.cancelled() => break Ok(()),
            event = open.next() => match event {
                Some(Ok(event)) => event,
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            },
            Some(ended) = schedule.ended() => {
                schedule.settle(ended).await;
                continue;
            }
        };
        let mut hearing = pin!(listener.hear(event, schedule));
        tokio::select! {
            biased;
            () = &mut hearing => {}
            () = cancel.cancelled() => {
                // While nobody reads what is told, hearing takes its time; the socket does not wait for it.
                stream = None;
                hearing.await;
            }
        }
    };
    // The socket is closed before anything else happens: a cancelled model stops at once.
    drop(stream);
    listener.close(end, schedule).await
}

struct Listener<'a> {
    turn: &'a Turn,
    steps: &'a Steps,
    taken: &'a HashSet<String>,
    collector: Collector<'a>,
    open: HashMap<usize, Open>,
    /// Calls handed to the schedule so far; also the place of the next one.
    handed: usize,
}

/// A call whose arguments still come.
struct Open {
    id: String,
    json: String,
    /// Present for an edit: its diff is shown while it grows.
    live: Option<(Work, Live)>,
}

impl Listener<'_> {
    async fn hear(&mut self, event: ModelEvent, schedule: &mut Schedule) {
        let complete = self.collector.push(&event);
        match event {
            ModelEvent::Text(content) | ModelEvent::Refusal(content) => {
                self.steps.event(AgentEvent::TextDelta { content }).await;
            }
            ModelEvent::Reasoning(content) => self.steps.event(AgentEvent::ReasoningDelta { content }).await,
            ModelEvent::CallStart { slot, id, name } => self.start(slot, id, name).await,
            ModelEvent::CallDelta { slot, json } => self.grow(slot, json).await,
            ModelEvent::Retry { attempt, wait, reason } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.steps.event(AgentEvent::Retry { attempt, wait_ms, reason }).await;
            }
            ModelEvent::Notice(message) => self.steps.event(AgentEvent::Notice { message }).await,
            ModelEvent::CallEnd { slot } => {
                if let Some(call) = complete
                    && slot == self.handed
                {
                    self.hand_over(slot, call, schedule).await;
                }
            }
            ModelEvent::ReasoningItem(_) | ModelEvent::Usage(_) | ModelEvent::Finish(_) => {}
        }
    }

    /// Announces a call once its id is certain; an id that is missing or taken is decided when the call is complete.
    async fn start(&mut self, slot: usize, id: String, name: String) {
        let certain = !id.is_empty() && !name.is_empty() && !self.taken.contains(&id);
        if !certain
            || slot < self.handed
            || self.open.contains_key(&slot)
            || self.open.values().any(|open| open.id == id)
        {
            return;
        }
        let tool = self.tool(&name);
        let kind = tool.map_or(ToolKind::Other, |tool| tool.kind());
        let live = tool
            .filter(|_| kind == ToolKind::Edit)
            .map(|tool| (Work { tool: Arc::clone(tool), arguments: Value::Null }, Live::new()));
        self.open.insert(slot, Open { id: id.clone(), json: String::new(), live });
        self.steps.event(AgentEvent::ToolCallStart { index: slot, id, name, kind }).await;
    }

    async fn grow(&mut self, slot: usize, json_chunk: String) {
        let Some(open) = self.open.get_mut(&slot) else { return };
        let id = open.id.clone();
        if let Some((work, live)) = &mut open.live {
            open.json.push_str(&json_chunk);
            live.grow(&id, work, &open.json, &self.turn.context, self.steps).await;
        }
        self.steps.event(AgentEvent::ToolCallDelta { index: slot, id, json_chunk }).await;
    }

    /// A complete call: announced if it was not yet, told, and put on the schedule.
    async fn hand_over(&mut self, slot: usize, call: ToolCall, schedule: &mut Schedule) {
        self.handed = slot + 1;
        self.announce(slot, &call).await;
        let (arguments, raw) = match &call.arguments {
            Arguments::Object(object) => (Value::Object(object.clone()), None),
            Arguments::Unparsable(raw) => (Value::Null, Some(raw.clone())),
        };
        let work = match (self.tool(&call.name), raw.is_some()) {
            (None, _) => Err(self.unknown(&call.name)),
            (Some(_), true) => Err(UNPARSABLE.to_owned()),
            (Some(tool), false) => Ok(Work { tool: Arc::clone(tool), arguments: arguments.clone() }),
        };
        let ToolCall { id, name, .. } = call;
        let call = CompleteCall { id: id.clone(), name: name.clone(), arguments, raw };
        self.steps.event(AgentEvent::ToolCallComplete { call }).await;
        schedule.add(Call { slot, id, name, work });
    }

    /// Whatever is told of a call comes after its beginning.
    async fn announce(&mut self, slot: usize, call: &ToolCall) {
        match self.open.remove(&slot) {
            Some(Open { live: Some((_, live)), .. }) => live.settle().await,
            Some(_) => {}
            None => {
                let kind = self.tool(&call.name).map_or(ToolKind::Other, |tool| tool.kind());
                let (id, name) = (call.id.clone(), call.name.clone());
                self.steps.event(AgentEvent::ToolCallStart { index: slot, id, name, kind }).await;
            }
        }
    }

    /// The stream is over, one way or another: what is left of the calls gets its place on the schedule.
    async fn close(mut self, end: Result<(), ModelError>, schedule: &mut Schedule) -> Answer {
        let cancelled = self.turn.context.cancel.is_cancelled();
        let collector = std::mem::replace(&mut self.collector, Collector::new(self.taken));
        let cut = end.as_ref().err().cloned();
        let Collected { message, usage, finish, outcome, .. } = collector.finish(end);
        let end = match outcome {
            _ if cancelled => End::Stop,
            Outcome::Error(error) => End::Failed(error),
            // Of nothing, nothing is kept: then the words say what was tried.
            Outcome::Truncated => {
                End::Failed(cut.filter(|_| message == AssistantMessage::default()).unwrap_or_else(truncated))
            }
            Outcome::Ok => match finish {
                Some(Finish::Pause) => End::Pause,
                Some(Finish::Length) => End::Length,
                Some(Finish::ContentFilter) => End::Filtered,
                Some(Finish::Refusal) => End::Refused,
                _ if !message.refusal.is_empty() => End::Refused,
                _ => End::Stop,
            },
        };
        for (slot, call) in message.calls.iter().enumerate().skip(self.handed) {
            if matches!(end, End::Failed(_)) {
                self.refuse(slot, call, schedule).await;
            } else {
                self.hand_over(slot, call.clone(), schedule).await;
            }
        }
        Answer { message, usage, end }
    }

    /// A call of an answer that failed in the middle: answered, never run.
    async fn refuse(&mut self, slot: usize, call: &ToolCall, schedule: &mut Schedule) {
        self.announce(slot, call).await;
        let work = Err("not run: the answer broke off before it was complete".to_owned());
        schedule.add(Call { slot, id: call.id.clone(), name: call.name.clone(), work });
    }

    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.turn.tools.iter().find(|tool| tool.name() == name)
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<_> = self.turn.tools.iter().map(|tool| tool.name()).collect();
        format!("there is no tool `{name}`; the tools are {}", names.join(", "))
    }
}

const UNPARSABLE: &str = "not run: the arguments are not a complete JSON object (they may have been cut by the token \
                          limit). Call again with valid JSON; write long content in smaller pieces";

fn truncated() -> ModelError {
    ModelError {
        code: ErrorCode::Truncated,
        message: "the model's stream ended in the middle; what arrived is kept. Prompt again to go on".to_owned(),
        status: None,
        retryable: true,
    }
}
