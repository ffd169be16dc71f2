//! Receives one answer of the model: its text is forwarded as it arrives, and a read-only call starts as soon as its
//! own arguments are complete, while the rest still streams.

mod nested;
mod source;

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::Value;

use super::Entry;
use super::event::{AgentEvent, CompleteCall};
use super::live::StreamedDiff;
use super::repetition::Repetition;
use super::schedule::{Call, Schedule, Work};
use super::steps::Steps;
use crate::calls;
use crate::calls::text::{Held, Quotation, TextCall, TextCalls, Written};
use crate::model::collect::{Collected, Collector, Outcome};
use crate::model::{
    Arguments, AssistantMessage, ErrorCode, Failure, Finish, ModelEvent, ModelRequest, Provider,
    ToolCall, Usage,
};
use crate::text::repair::Repair;
use crate::tools::{self, Resolved, Tool, ToolContext, ToolKind};

/// The model's answer, complete or as far as it arrived.
pub(super) struct Answer {
    pub message: AssistantMessage,
    pub usage: Option<Usage>,
    pub end: End,
    /// Why text that looks like a call is not one.
    pub unusable: Option<String>,
}

/// How an answer ended.
pub(super) enum End {
    Stop,
    /// The provider wants the same request again, with this answer appended.
    Pause,
    Length,
    /// By a content filter, with the provider's reason.
    Filtered(String),
    Refused,
    /// With a call that the provider could not parse.
    Malformed,
    /// With the reason "tool calls", but without any.
    NoCalls,
    /// It was stopped because the model went on repeating itself.
    Repeats,
    /// For an unknown reason, as the provider named it.
    Other(String),
    /// The provider failed after the answer had begun.
    Broken(Failure),
    Failed(Failure),
}

/// What reading an answer needs.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub provider: &'a Provider,
    pub tools: &'a Arc<[Arc<dyn Tool>]>,
    pub context: &'a ToolContext,
    /// The conversation so far.
    pub history: &'a [Arc<Entry>],
    /// The ids of all earlier calls.
    pub taken: &'a HashSet<String>,
    pub steps: &'a Steps,
}

/// Sends the request and passes the answer's calls to `schedule`: each exactly once, in order.
pub(super) async fn listen(
    inputs: Inputs<'_>,
    request: ModelRequest,
    schedule: &mut Schedule,
) -> Answer {
    let mut listener = Listener::new(inputs);
    let mut stream = Some(inputs.provider.stream(request));
    let cancel = &inputs.context.cancel;
    let end = loop {
        let Some(open) = &mut stream else {
            break Ok(());
        };
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
        if listener.repeats(&event) {
            break Ok(());
        }
        let mut handling = pin!(listener.on_event(event, schedule));
        tokio::select! {
            biased;
            () = &mut handling => {}
            () = cancel.cancelled() => {
                // Events may block while nobody reads them; the socket does not wait for that.
                stream = None;
                handling.await;
            }
        }
    };
    // The socket is closed first, so that a cancelled model stops at once.
    drop(stream);
    listener.close(end, schedule).await
}

struct Listener<'a> {
    inputs: Inputs<'a>,
    collector: Collector<'a>,
    text_calls: TextCalls<Arc<[Arc<dyn Tool>]>>,
    open: HashMap<usize, Open>,
    /// The number of calls passed to the schedule so far, which is the next call's index.
    handed: usize,
    /// The calls as they were resolved, by index.
    understood: HashMap<usize, ToolCall>,
    /// Whether the model ended the answer, rather than a limit or a failure.
    is_whole: bool,
    /// The calls as they stand in the text of the answer, and whether it has prose beside them.
    written: Option<(String, bool)>,
    repetition: Repetition,
    is_repetition: bool,
}

/// A call whose arguments are still streaming.
struct Open {
    id: String,
    json: String,
    /// Present for an edit, whose diff is shown while it grows.
    live: Option<(Work, StreamedDiff)>,
}

impl<'a> Listener<'a> {
    fn new(inputs: Inputs<'a>) -> Self {
        Self {
            inputs,
            collector: Collector::new(inputs.taken),
            text_calls: TextCalls::new(Arc::clone(inputs.tools)),
            open: HashMap::new(),
            handed: 0,
            understood: HashMap::new(),
            is_whole: false,
            written: None,
            repetition: Repetition::default(),
            is_repetition: false,
        }
    }

    /// Whether the model only repeats itself.
    fn repeats(&mut self, event: &ModelEvent) -> bool {
        if let ModelEvent::Text(text) | ModelEvent::Reasoning(text) = event
            && self.inputs.provider.endpoint().is_local_row()
        {
            self.is_repetition = self.repetition.add(text);
        }
        self.is_repetition
    }

    async fn on_event(&mut self, event: ModelEvent, schedule: &mut Schedule) {
        if let ModelEvent::Text(text) = event {
            let shown = self.text_calls.push(&text);
            return self.say(shown).await;
        }
        if event == ModelEvent::TextWasReasoning {
            let held = self.text_calls.release();
            self.say(held).await;
            self.text_calls = TextCalls::new(Arc::clone(self.inputs.tools));
        }
        if let ModelEvent::CallStart { .. } = event {
            let is_quoted = |call: &_| is_quoted(self.inputs, call);
            let held = self.text_calls.release_beside_calls(&is_quoted);
            self.say(held).await;
        }
        if event == ModelEvent::TextIsForeign {
            self.text_calls.note_foreign();
        }
        if let ModelEvent::Refusal(_) = event {
            let held = self.text_calls.release();
            self.say(held).await;
        }
        let complete = self.collector.push(&event);
        match event {
            ModelEvent::Refusal(content) => {
                self.inputs
                    .steps
                    .event(AgentEvent::TextDelta { content })
                    .await;
            }
            ModelEvent::Reasoning(content) => {
                self.inputs
                    .steps
                    .event(AgentEvent::ReasoningDelta { content })
                    .await;
            }
            ModelEvent::CallStart { slot, id, name } => self.start(slot, id, name).await,
            ModelEvent::CallDelta { slot, json } => self.grow(slot, json).await,
            ModelEvent::Retry {
                attempt,
                wait,
                reason,
            } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.inputs
                    .steps
                    .event(AgentEvent::Retry {
                        attempt,
                        wait_ms,
                        reason,
                    })
                    .await;
            }
            ModelEvent::Notice(message) => {
                self.inputs.steps.notice(message).await;
            }
            ModelEvent::CallEnd { slot } => {
                if let Some(call) = complete
                    && slot == self.handed
                    && nested::calls(self.inputs.tools, &call).is_none()
                {
                    let repair = self.collector.repair(slot);
                    self.hand_over(slot, call, repair, schedule).await;
                }
            }
            ModelEvent::Text(_)
            | ModelEvent::TextWasReasoning
            | ModelEvent::TextIsForeign
            | ModelEvent::ReasoningItem(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Finish(_) => {}
        }
    }

    /// Forwards text that is certain not to be a call.
    async fn say(&mut self, content: String) {
        if !content.is_empty() {
            self.inputs
                .steps
                .event(AgentEvent::TextDelta { content })
                .await;
        }
    }

    /// The text is complete: held-back text is either a call or text after all. Returns why it cannot be the call it
    /// looks like.
    async fn settle(&mut self, is_whole: bool) -> Option<String> {
        let is_quoted = |call: &_| is_quoted(self.inputs, call);
        let held = if is_whole {
            self.text_calls.settle(&is_quoted)
        } else {
            Held::Text(self.text_calls.release())
        };
        match held {
            Held::Text(text) => self.say(text).await,
            Held::Unusable(text, why) => {
                self.say(text).await;
                return Some(why);
            }
            Held::Calls(Written {
                text,
                words,
                calls,
                is_beside_prose,
            }) => {
                self.say(words).await;
                let names = calls
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                let message = format!("the model wrote a tool call as text: {names}");
                self.inputs.steps.notice(message).await;
                self.written = Some((text, is_beside_prose));
                for (slot, (name, json)) in calls.into_iter().enumerate() {
                    self.collector.push(&ModelEvent::CallStart {
                        slot,
                        id: String::new(),
                        name,
                    });
                    self.collector.push(&ModelEvent::CallDelta { slot, json });
                }
            }
        }
        None
    }

    /// Announces a call once its id is certain; a missing or duplicate id is replaced when the call is complete.
    async fn start(&mut self, slot: usize, id: String, name: String) {
        let certain = !id.is_empty() && !name.is_empty() && !self.inputs.taken.contains(&id);
        if !certain
            || slot < self.handed
            || self.open.contains_key(&slot)
            || self.open.values().any(|open| open.id == id)
        {
            return;
        }
        let tool = self.tool(&name);
        let name = tool.as_ref().map_or(name, |tool| tool.name().to_owned());
        let live = tool
            .filter(|tool| tool.kind() == ToolKind::Edit)
            .map(|tool| {
                (
                    Work {
                        tool,
                        arguments: Value::Null,
                        note: None,
                    },
                    StreamedDiff::new(),
                )
            });
        self.open.insert(
            slot,
            Open {
                id: id.clone(),
                json: String::new(),
                live,
            },
        );
        self.show_start(slot, id, name).await;
    }

    async fn show_start(&self, slot: usize, id: String, name: String) {
        let kind = self.tool(&name).map_or(ToolKind::Other, |tool| tool.kind());
        self.inputs
            .steps
            .event(AgentEvent::ToolCallStart {
                index: slot,
                id,
                name,
                kind,
            })
            .await;
    }

    async fn grow(&mut self, slot: usize, json_chunk: String) {
        let Some(open) = self.open.get_mut(&slot) else {
            return;
        };
        let id = open.id.clone();
        if let Some((work, live)) = &mut open.live {
            open.json.push_str(&json_chunk);
            live.grow(
                &id,
                work,
                &open.json,
                self.inputs.context,
                self.inputs.steps,
            )
            .await;
        }
        self.inputs
            .steps
            .event(AgentEvent::ToolCallDelta {
                index: slot,
                id,
                json_chunk,
            })
            .await;
    }

    /// A complete call: resolved, announced if it was not yet, reported, and scheduled.
    async fn hand_over(
        &mut self,
        slot: usize,
        mut call: ToolCall,
        mut repair: Repair,
        schedule: &mut Schedule,
    ) {
        self.handed = slot + 1;
        if let Arguments::Unparsable(raw) = &call.arguments
            && self.is_whole
            && let Some(arguments) = self.text_calls.arguments(&call.name, raw)
        {
            (call.arguments, repair) = (Arguments::Object(arguments), Repair::Spelling);
        }
        let work = match &call.arguments {
            Arguments::Object(arguments) => {
                let written = Value::Object(arguments.clone());
                let has_more = calls::holds_another(&written);
                let mut resolved = tools::resolve(self.inputs.tools, &call.name, written);
                if has_more
                    && let Ok(resolved) = &mut resolved
                    && !calls::holds_another(&resolved.as_taken())
                {
                    let notes = resolved.note.take().into_iter();
                    let notes: Vec<_> = notes.chain([calls::SWALLOWED.to_owned()]).collect();
                    resolved.note = Some(notes.join("\n"));
                }
                if let Ok(Resolved {
                    tool,
                    arguments: Value::Object(arguments),
                    ..
                }) = &resolved
                {
                    tool.name().clone_into(&mut call.name);
                    call.arguments = Arguments::Object(arguments.clone());
                }
                resolved.and_then(|resolved| self.work(resolved, repair))
            }
            Arguments::Unparsable(_) => {
                let known = tools::resolve(self.inputs.tools, &call.name, Value::Null);
                if let Ok(known) = &known {
                    known.tool.name().clone_into(&mut call.name);
                }
                Err(known.err().unwrap_or_else(|| self.unreadable()))
            }
        };
        self.announce(slot, &call).await;
        let complete = CompleteCall::from(&call);
        self.inputs
            .steps
            .event(AgentEvent::ToolCallComplete { call: complete })
            .await;
        let may_be_read = |work: &Work| {
            let arguments = work.arguments.as_object();
            arguments.is_some_and(|it| source::may_be_read(&self.inputs, &*work.tool, it))
        };
        // The text is shown once, whichever of its calls may not run.
        let in_prose = match &mut self.written {
            Some((text, is_beside_prose))
                if *is_beside_prose || work.as_ref().is_ok_and(may_be_read) =>
            {
                Some(std::mem::take(text))
            }
            _ => None,
        };
        schedule.add(Call {
            slot,
            id: call.id.clone(),
            name: call.name.clone(),
            work,
            in_prose,
        });
        self.understood.insert(slot, call);
    }

    /// Announces a call before any other event about it.
    async fn announce(&mut self, slot: usize, call: &ToolCall) {
        match self.open.remove(&slot) {
            Some(Open {
                live: Some((_, live)),
                ..
            }) => live.settle().await,
            Some(_) => {}
            None => {
                let (id, name) = (call.id.clone(), call.name.clone());
                self.show_start(slot, id, name).await;
            }
        }
    }

    /// The stream ended, in whatever way: schedules the remaining calls.
    async fn close(mut self, end: Result<(), Failure>, schedule: &mut Schedule) -> Answer {
        let cancelled = self.inputs.context.cancel.is_cancelled();
        let is_whole = end.is_ok() && !cancelled && self.collector.is_whole();
        self.is_whole = is_whole;
        let unusable = self.settle(is_whole).await;
        let collector = std::mem::replace(&mut self.collector, Collector::new(self.inputs.taken));
        let cut = end.as_ref().err().cloned();
        let Collected {
            mut message,
            usage,
            finish,
            outcome,
            repairs,
            ..
        } = collector.finish(end);
        message.text = self.text_calls.take_text();
        let end = match outcome {
            _ if cancelled => End::Stop,
            Outcome::Error(error)
                if matches!(finish, Some(Finish::Broken(_)))
                    && message != AssistantMessage::default() =>
            {
                End::Broken(error)
            }
            Outcome::Error(error) => End::Failed(error),
            // An empty answer is not added to the conversation.
            Outcome::Truncated => End::Failed(
                cut.filter(|_| message == AssistantMessage::default())
                    .unwrap_or_else(truncated),
            ),
            Outcome::Ok if self.is_repetition => End::Repeats,
            Outcome::Ok => match finish {
                Some(Finish::Pause) => End::Pause,
                Some(Finish::Length) => End::Length,
                Some(Finish::ContentFilter(word)) => End::Filtered(word),
                Some(Finish::Refusal) => End::Refused,
                Some(Finish::Malformed) => End::Malformed,
                _ if !message.refusal.is_empty() => End::Refused,
                Some(Finish::ToolCalls) if message.calls.is_empty() => End::NoCalls,
                Some(Finish::Other(word)) => End::Other(word),
                _ => End::Stop,
            },
        };
        let repairs = nested::spread(self.inputs.tools, &mut message.calls, &repairs);
        for (slot, call) in message.calls.iter().enumerate().skip(self.handed) {
            if matches!(end, End::Failed(_) | End::Broken(_)) {
                self.refuse(slot, call, schedule).await;
            } else {
                let repair = repairs.get(slot).copied().unwrap_or_default();
                self.hand_over(slot, call.clone(), repair, schedule).await;
            }
        }
        // The conversation records the calls as they were run.
        for (slot, call) in message.calls.iter_mut().enumerate() {
            if let Some(understood) = self.understood.remove(&slot) {
                *call = understood;
            }
        }
        Answer {
            message,
            usage,
            end,
            unusable,
        }
    }

    /// A call of an answer that failed midway: it gets a result, but never runs.
    async fn refuse(&mut self, slot: usize, call: &ToolCall, schedule: &mut Schedule) {
        self.announce(slot, call).await;
        let work = Err("not run: the answer ended before the call was complete".to_owned());
        schedule.add(Call {
            slot,
            id: call.id.clone(),
            name: call.name.clone(),
            work,
            in_prose: None,
        });
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        tools::tool(self.inputs.tools, name)
    }

    /// The work a call resolves to. What changes something runs only as the model ended it.
    fn work(&self, resolved: Resolved, repair: Repair) -> Result<Work, String> {
        let Resolved {
            tool,
            arguments,
            note,
        } = resolved;
        if repair == Repair::Brackets && !tool.kind().is_read_only() {
            return Err(self.unreadable());
        }
        let repaired = (repair != Repair::None)
            .then(|| "[the arguments were not valid JSON and were repaired]".to_owned());
        let notes: Vec<_> = note.into_iter().chain(repaired).collect();
        Ok(Work {
            tool,
            arguments,
            note: (!notes.is_empty()).then(|| notes.join("\n")),
        })
    }

    /// The error for arguments that are not JSON.
    fn unreadable(&self) -> String {
        let pieces = tools::edit_name(self.inputs.tools).map(|edit| {
            format!(". Write long content in pieces: the first with write_file, the others after its last line with {edit}")
        });
        let pieces = pieces.unwrap_or_default();
        format!(
            "not run: the arguments are not a complete JSON object (the token limit may have cut them). Call again with \
             valid JSON{pieces}"
        )
    }
}

/// Whether a call occurs in something that the model has read.
fn is_quoted(inputs: Inputs<'_>, call: &TextCall) -> bool {
    let texts = inputs.history.iter().flat_map(|it| it.read_texts());
    // It may have been read in pieces.
    Quotation::of(call).stands_in(&texts.collect::<Vec<_>>().join("\n"))
}

fn truncated() -> Failure {
    Failure::passing(
        ErrorCode::Truncated,
        "the model's stream ended early; what arrived is kept. Prompt again to continue",
    )
}
