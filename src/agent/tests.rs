//! Turns with a scripted model and scripted tools: what starts when, and that every call has its result.

mod limits;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rehearsal::{Script, Server};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::event::{About, AgentEvent, Permission, PermissionRequest, Termination};
use super::{Entry, Goal, Guidance, Spent, Steer, Step, Steps, Turn, run_turn};
use crate::domain::{Allowance, Finish, Limits};
use crate::model::{Api, Endpoint, Instructions, Message, Part, Provider};
use crate::text::Encoding;
use crate::tools::{Pending, Preview, Tool, ToolContext, ToolKind, ToolOutput};
use crate::workspace::{Documents, NoEditor, Workspace};

/// How long to wait for anything before the test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A tool whose calls run until the test releases them.
struct Held {
    name: &'static str,
    kind: ToolKind,
    places: Arc<Semaphore>,
}

impl Tool for Held {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Does as it is told."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    fn kind(&self) -> ToolKind {
        self.kind
    }

    fn preview<'a>(&'a self, _: &'a ToolContext, _: &'a Value) -> Pending<'a, Preview> {
        async { Ok(Preview::default()) }.boxed()
    }

    fn run<'a>(&'a self, _: &'a ToolContext, arguments: &'a Value) -> Pending<'a, ToolOutput> {
        assert!(arguments["panic"] != true, "as it was told");
        async {
            self.places.acquire().await.unwrap().forget();
            Ok(ToolOutput {
                content: "fine".into(),
                ..ToolOutput::default()
            })
        }
        .boxed()
    }
}

/// A running turn.
struct Play {
    server: Server,
    /// Permits that let calls of `look` end.
    look: Arc<Semaphore>,
    change: Arc<Semaphore>,
    cancel: CancellationToken,
    steering: mpsc::Sender<Steer>,
    steps: mpsc::Receiver<Step>,
    /// Abbreviated events of calls.
    log: Vec<String>,
    ends: Vec<(String, ToolOutput, f64, f64)>,
    entries: Vec<Arc<Entry>>,
    notices: Vec<String>,
    /// The number of requests to continue the turn, and how many of them are answered with yes.
    pauses: Vec<String>,
    yeses: usize,
    cancel_at_pause: bool,
    done: Option<Termination>,
    /// The calls announced so far.
    announced: Vec<String>,
    turn: JoinHandle<()>,
}

impl Play {
    fn new(script: Value, limits: Limits) -> Self {
        let script: Script = serde_json::from_value(script).unwrap();
        let server = Server::start(script).unwrap();
        let endpoint = Endpoint::new("rehearsal", Api::Chat, server.base_url(), "script");
        let provider = Provider::http(endpoint);
        let (look, change) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let held = |name, kind, places: &Arc<_>| {
            Arc::new(Held {
                name,
                kind,
                places: Arc::clone(places),
            })
        };
        let tools: Arc<[Arc<dyn Tool>]> = Arc::new([
            held("look", ToolKind::Read, &look),
            held("change", ToolKind::Execute, &change),
        ]);
        let message = Message::User {
            parts: vec![Part::Text { text: "go".into() }],
        };
        let workspace = Workspace::new(
            Vec::new(),
            Documents::new(Encoding::Utf16),
            Arc::new(NoEditor),
        );
        let cancel = CancellationToken::new();
        let (steering, said) = mpsc::channel(8);
        let turn = Turn {
            id: "t".into(),
            goal: Goal::Answer,
            preamble: provider.preamble(&Instructions {
                system: "Be brief.".into(),
                ..Instructions::default()
            }),
            history: vec![Entry::new(message, &provider)],
            call_ids: HashSet::new(),
            provider,
            tools,
            context: ToolContext::new(workspace, cancel.clone()),
            guidance: Guidance::default(),
            limits,
            finish: Finish::default(),
            plan: None,
            spent: Spent::default(),
            steering: said,
            explorers: None,
        };
        let (sender, steps) = mpsc::channel(64);
        Self {
            server,
            look,
            change,
            cancel,
            steering,
            steps,
            log: Vec::new(),
            ends: Vec::new(),
            entries: Vec::new(),
            notices: Vec::new(),
            pauses: Vec::new(),
            yeses: 0,
            cancel_at_pause: false,
            done: None,
            announced: Vec::new(),
            turn: tokio::spawn(run_turn(turn, Steps(sender))),
        }
    }

    /// Lets calls end immediately.
    fn free(script: Value, limits: Limits) -> Self {
        let play = Self::new(script, limits);
        play.look.add_permits(1000);
        play.change.add_permits(1000);
        play
    }

    /// Receives events until this line is in the log.
    async fn until(&mut self, line: &str) {
        while !self.log.iter().any(|seen| seen == line) {
            assert!(
                self.take().await,
                "the turn ended without {line:?}: {:#?}",
                self.log
            );
        }
    }

    async fn end(&mut self) -> Termination {
        while self.take().await {}
        (&mut self.turn).await.unwrap();
        self.done.expect("the last event of a turn is its end")
    }

    async fn take(&mut self) -> bool {
        let step = tokio::time::timeout(TIMEOUT, self.steps.recv())
            .await
            .expect("the turn makes no progress");
        assert!(
            step.is_none() || self.done.is_none(),
            "something follows the end: {step:?}"
        );
        match step {
            None => return false,
            Some(Step::Entry(entry)) => self.entries.push(entry),
            Some(Step::History(entries)) => self.entries = entries,
            Some(Step::Event(event) | Step::Tried(event)) => self.event(event),
            Some(Step::Note(_) | Step::Announced { .. }) => {}
        }
        true
    }

    fn event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::ToolCallComplete { call } => self.log.push(format!("complete {}", call.id)),
            AgentEvent::ToolExecutionStart { call_id, .. } => {
                self.log.push(format!("start {call_id}"));
            }
            AgentEvent::ToolCallStart { id, .. } => self.announced.push(id),
            AgentEvent::ToolExecutionEnd {
                call_id,
                result,
                wait_ms,
                execute_duration_ms,
                ..
            } => {
                assert!(
                    self.announced.contains(&call_id),
                    "an end without a beginning: {call_id}"
                );
                self.log.push(format!("end {call_id}"));
                self.ends
                    .push((call_id, result, wait_ms, execute_duration_ms));
            }
            AgentEvent::PermissionRequested(request) if request.about == About::Pause => {
                let PermissionRequest { preview, reply, .. } = *request;
                assert!(
                    preview.caution.is_some(),
                    "no mode and no rule may answer this"
                );
                self.pauses.push(preview.title);
                if self.cancel_at_pause {
                    self.cancel.cancel();
                }
                let yes = self.pauses.len() <= self.yeses;
                let answer = if yes {
                    Permission::AllowOnce
                } else {
                    Permission::Reject
                };
                assert!(reply.unwrap().send(answer).is_ok() || self.cancel_at_pause);
            }
            AgentEvent::PermissionRequested(request) => {
                request.reply.unwrap().send(Permission::AllowOnce).unwrap();
            }
            AgentEvent::TextDelta { content } => self.log.push(content),
            AgentEvent::LoopDetected {
                consecutive_count, ..
            } => self.log.push(format!("loop {consecutive_count}")),
            AgentEvent::Notice { message } => self.notices.push(message),
            AgentEvent::Done {
                termination_reason, ..
            } => self.done = Some(termination_reason),
            _ => {}
        }
    }

    /// The calls that ran, in the order they started and ended.
    fn runs(&self) -> Vec<&str> {
        self.log
            .iter()
            .map(String::as_str)
            .filter(|line| line.starts_with("start") || line.starts_with("end"))
            .collect()
    }

    /// The result of a call as the model reads it; checks that it is in the history exactly once.
    #[track_caller]
    fn result(&self, id: &str) -> String {
        assert_eq!(
            self.ends.iter().filter(|(call, ..)| call == id).count(),
            1,
            "{id}: {:?}",
            self.log
        );
        let results = self
            .entries
            .iter()
            .filter_map(|entry| match entry.message().clone() {
                Message::Results { results } => Some(results),
                _ => None,
            });
        let mut results = results.flatten().filter(|result| result.call_id == id);
        let result = results
            .next()
            .unwrap_or_else(|| panic!("{id} has no result"));
        assert_eq!(results.next(), None);
        result.content
    }
}

fn call(id: &str, name: &str) -> Value {
    call_with(id, name, &json!({ "n": id }))
}

fn call_with(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments } })
}

#[tokio::test]
async fn read_only_calls_start_while_the_answer_streams_and_run_in_parallel() {
    let answer = json!([
        call("a", "look"),
        { "gate": "second" },
        call("b", "look"),
        { "gate": "third" },
        call("c", "look"),
        { "gate": "last" },
        { "text": "so much for that" },
    ]);
    let mut play = Play::new(json!([answer, [{ "text": "done" }]]), Limits::default());
    for (id, gate) in [("a", "second"), ("b", "third"), ("c", "last")] {
        play.until(&format!("start {id}")).await;
        play.server.rehearsal().waiting_at(gate).await;
        play.server.rehearsal().open(gate);
    }
    play.until("so much for that").await;
    assert_eq!(
        play.runs(),
        ["start a", "start b", "start c"],
        "all run in parallel, and none has ended"
    );
    play.look.add_permits(3);
    assert_eq!(play.end().await, Termination::EndTurn);
    assert!(["a", "b", "c"].iter().all(|id| play.result(id) == "fine"));
}

#[tokio::test]
async fn calls_with_side_effects_run_alone_and_in_order() {
    let calls = json!([
        call("a", "look"),
        call("b", "look"),
        call("c", "change"),
        call("d", "look")
    ]);
    let mut play = Play::new(json!([calls, [{ "text": "done" }]]), Limits::default());
    play.until("complete d").await;
    play.look.add_permits(1);
    play.until("end a").await;
    play.look.add_permits(1);
    play.until("start c").await;
    play.look.add_permits(1);
    play.change.add_permits(1);
    assert_eq!(play.end().await, Termination::EndTurn);
    let runs = [
        "start a", "start b", "end a", "end b", "start c", "end c", "start d", "end d",
    ];
    assert_eq!(play.runs(), runs);
}

#[tokio::test]
async fn a_panic_fails_only_its_call() {
    let panics = call_with("a", "look", &json!({ "panic": true }));
    let mut play = Play::free(
        json!([[panics, call("b", "look")], [{ "text": "done" }]]),
        Limits::default(),
    );
    assert_eq!(play.end().await, Termination::EndTurn);
    assert!(
        play.result("a")
            .starts_with("internal error: look panicked"),
        "{}",
        play.result("a")
    );
    assert_eq!(play.result("b"), "fine");
}

#[tokio::test]
async fn invalid_calls_are_answered_without_running() {
    let calls = json!([
        call("a", "fly"),
        call_with("b", "look", &json!("{\"n\":")),
        call_with("c", "look", &json!("[1]")),
        call("d", "look"),
        call_with("e", "change", &json!("")),
        { "finish": "length" },
    ]);
    let mut play = Play::free(json!([calls, [{ "text": "done" }]]), Limits::default());
    assert_eq!(play.end().await, Termination::EndTurn);
    assert_eq!(
        play.log
            .iter()
            .filter(|line| line.starts_with("start"))
            .collect::<Vec<_>>(),
        ["start d"]
    );
    assert_eq!(
        play.result("a"),
        "unknown tool `fly`; available tools: look, change"
    );
    assert!(
        ["b", "c", "e"]
            .iter()
            .all(|id| play.result(id).starts_with("not run: the arguments"))
    );
}

#[tokio::test]
async fn calls_with_a_repeated_id_get_their_own_even_if_the_stream_is_cut() {
    let error = json!({ "error": { "message": "out of luck", "code": 400 } });
    let cut = call_with("a", "look", &json!("{\"n\":"));
    let mut play = Play::free(
        json!([[call("a", "look")], [cut, error]]),
        Limits::default(),
    );
    assert_eq!(play.end().await, Termination::Error);
    let [first, second] = play.announced.as_slice() else {
        panic!("two calls: {:?}", play.announced)
    };
    assert_ne!(first, second);
    assert!(play.result(second).starts_with("not run: the answer ended"));
}

#[tokio::test]
async fn waiting_and_running_time_are_measured_separately() {
    let calls = json!([call("a", "look"), call("b", "look")]);
    let limits = Limits {
        parallel: 1,
        ..Limits::default()
    };
    let started = Instant::now();
    let mut play = Play::new(json!([calls, [{ "text": "done" }]]), limits);
    play.until("complete b").await;
    play.until("start a").await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        // Measurable time has to pass.
        std::hint::spin_loop();
    }
    play.look.add_permits(2);
    play.end().await;
    let [(_, _, a_wait, a_run), (_, _, b_wait, b_run)] = &play.ends[..] else {
        panic!("{:?}", play.ends)
    };
    let total = started.elapsed().as_secs_f64() * 1000.0;
    assert!(
        *a_run >= 20.0 && a_wait + a_run <= total,
        "a waited {a_wait} ms and ran {a_run} ms of {total} ms"
    );
    assert!(
        *b_wait >= 20.0 && b_wait + b_run <= total,
        "b waited {b_wait} ms and ran {b_run} ms of {total} ms"
    );
}

#[tokio::test]
async fn steering_messages_join_after_the_running_tools() {
    let rounds = json!([[call("a", "look")], [{ "text": "so be it" }, { "gate": "last" }], [{ "text": "that too" }], []]);
    let mut play = Play::new(rounds, Limits::default());
    let mut joined = Vec::new();
    let mut say = |play: &Play, words: &str| {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let parts = vec![Part::Text { text: words.into() }];
        play.steering
            .try_send(Steer {
                prompt: "p".into(),
                words: words.into(),
                parts,
                joined: sender,
            })
            .unwrap();
        joined.push(receiver);
    };
    play.until("start a").await;
    say(&play, "not there");
    play.look.add_permits(1);
    play.server.rehearsal().waiting_at("last").await;
    say(&play, "and the other one");
    play.server.rehearsal().open("last");
    assert_eq!(play.end().await, Termination::EndTurn);
    let requests = play.server.rehearsal().requests();
    let last = |n: usize| {
        requests[n]["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string()
    };
    assert!(last(1).contains("not there"), "{}", last(1));
    assert!(
        last(2).contains("and the other one"),
        "an answer that would have been the last is not: {}",
        last(2)
    );
    assert_eq!(requests.len(), 3);
    assert!(joined.iter_mut().all(|joined| joined.try_recv().is_ok()));
    let (sender, late) = tokio::sync::oneshot::channel();
    drop(play.steering.try_send(Steer {
        prompt: "p".into(),
        words: String::new(),
        parts: Vec::new(),
        joined: sender,
    }));
    assert!(late.await.is_err(), "a late caller learns of the end");
}

#[tokio::test]
async fn cancelling_during_a_slow_call_still_gives_each_call_a_result() {
    let answer =
        json!([call("a", "look"), call("b", "change"), call("c", "look"), { "gate": "never" }]);
    let mut play = Play::new(json!([answer]), Limits::default());
    play.until("start a").await;
    play.until("complete c").await;
    play.server.rehearsal().waiting_at("never").await;
    play.cancel.cancel();
    assert_eq!(play.end().await, Termination::Cancelled);
    play.server.rehearsal().closed_early(1).await;
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|id| play.result(id).starts_with("cancelled"))
    );
    assert!(!play.log.contains(&"start b".to_owned()), "{:?}", play.log);
}
