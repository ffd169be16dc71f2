//! Every row of the fault table over a real socket: how many requests, which waits, what the person gets to read.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, json};
use tokio::time::timeout;

use super::rehearsal::{Reply, Server, Step};
use super::{
    Api, Collected, Collector, Endpoint, ErrorCode, Instructions, Key, Message, ModelEvent, ModelRequest, Outcome,
    Part, Provider, TimeLimits,
};

fn endpoint(base_url: &str) -> Endpoint {
    Endpoint {
        provider: "local".into(),
        api: Api::Chat,
        base_url: base_url.into(),
        key: Key::Value("sk-test".into()),
        model: "m".into(),
        headers: Vec::new(),
        body: Map::new(),
        ca_file: None,
        context_window: None,
        limits: TimeLimits {
            connect: Duration::from_secs(5),
            first_byte: Some(Duration::from_millis(300)),
            between: Duration::from_millis(300),
        },
    }
}

fn request(provider: &Provider) -> ModelRequest {
    let instructions = Instructions { system: "Be brief.".into(), tools: [].into() };
    let question = Message::User { parts: vec![Part::Text { text: "hello".into() }] };
    ModelRequest { preamble: provider.preamble(&instructions), messages: vec![provider.encode(&question)] }
}

/// The waits that were announced, and what the request brought.
async fn run(provider: &Provider) -> (Vec<Duration>, Collected) {
    let taken = HashSet::new();
    let (mut collector, mut waits, mut end) = (Collector::new(&taken), Vec::new(), Ok(()));
    let mut stream = provider.stream(request(provider));
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Retry { wait, .. }) => waits.push(wait),
            Ok(event) => _ = collector.push(&event),
            Err(error) => end = Err(error),
        }
    }
    (waits, collector.finish(end))
}

struct Tried {
    requests: usize,
    waits: Vec<Duration>,
    got: Collected,
}

impl Tried {
    fn error(&self) -> &super::ModelError {
        match &self.got.outcome {
            Outcome::Error(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

async fn play(script: Vec<Reply>) -> Tried {
    let server = Server::start(script).await.unwrap();
    let (waits, got) = run(&Provider::http(endpoint(server.base_url()))).await;
    Tried { requests: server.rehearsal().requests().len(), waits, got }
}

fn text(text: &str) -> Step {
    Step::Text { text: text.into() }
}

fn status(status: u16, message: &str) -> Reply {
    let body = json!({ "error": { "message": message } });
    vec![Step::Status { status, body, headers: BTreeMap::new() }]
}

fn status_with(status: u16, name: &str, value: &str) -> Reply {
    vec![Step::Status { status, body: json!("slow down"), headers: BTreeMap::from([(name.into(), value.into())]) }]
}

#[tokio::test]
async fn transient_faults_before_any_output_are_tried_again() {
    let faults = [408, 409, 425, 429, 500, 503, 529].map(|code| status(code, "busy"));
    let cut = vec![Step::Cut { cut: true }];
    let overloaded = vec![Step::Error { error: json!({ "type": "overloaded_error", "message": "Overloaded" }) }];
    let empty = vec![Step::Raw { raw: String::new() }];
    let rows = faults.into_iter().chain([cut, overloaded, empty]).map(async |fault| {
        let tried = play(vec![fault.clone(), vec![text("fine")]]).await;
        assert_eq!((tried.requests, tried.waits.len()), (2, 1), "{fault:?}");
        assert!(tried.waits[0] > Duration::from_millis(300), "{fault:?}");
        assert_eq!((tried.got.message.text.as_str(), tried.got.outcome), ("fine", Outcome::Ok), "{fault:?}");
    });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn a_lasting_fault_is_tried_five_times() {
    let tried = play(vec![status(500, "down"); 9]).await;
    assert_eq!((tried.requests, tried.waits.len()), (5, 4));
    assert!(tried.waits.iter().sum::<Duration>() < Duration::from_mins(1));
    assert!(tried.error().message.contains("down"), "{}", tried.error().message);
    assert_eq!(tried.error().status, Some(500));
}

#[tokio::test]
async fn lasting_refusals_are_not_tried_again_and_say_what_to_do() {
    let quota = "You exceeded your current quota";
    let window = "This model's maximum context length is 8192 tokens";
    let rows = [
        (400, "bad field", ErrorCode::InvalidRequest, "bad field"),
        (401, "no such key", ErrorCode::Auth, "TANDEM_API_KEY"),
        (402, "no credit", ErrorCode::RateLimit, "add credit"),
        (403, "not yours", ErrorCode::Auth, "rights"),
        (404, "no such model", ErrorCode::InvalidRequest, "tandem models"),
        (413, "too big", ErrorCode::InvalidRequest, "new session"),
        (422, "bad value", ErrorCode::InvalidRequest, "bad value"),
        (429, quota, ErrorCode::RateLimit, "billing"),
        (400, window, ErrorCode::ContextOverflow, "8192"),
    ];
    for (code, said, kind, way) in rows {
        let tried = play(vec![status(code, said)]).await;
        let error = tried.error();
        assert_eq!((tried.requests, error.code, error.status, error.retryable), (1, kind, Some(code), false), "{code}");
        assert!(error.message.contains(said) && error.message.contains(way), "{}", error.message);
    }
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let tried = play(vec![status_with(429, "retry-after", "0"), vec![text("fine")]]).await;
    assert_eq!((tried.waits, tried.got.message.text.as_str()), (vec![Duration::ZERO], "fine"));
    let tried = play(vec![status_with(429, "retry-after", "3600")]).await;
    assert_eq!((tried.requests, tried.waits.len()), (1, 0));
    assert!(tried.error().message.contains("3600 s"), "{}", tried.error().message);
}

#[tokio::test]
async fn a_cut_after_output_keeps_what_arrived() {
    let tried = play(vec![vec![text("half a"), Step::Cut { cut: true }], vec![text("never")]]).await;
    assert_eq!((tried.requests, tried.waits.len(), tried.got.message.text.as_str()), (1, 0, "half a"));
    assert_ne!(tried.got.outcome, Outcome::Ok);
}

#[tokio::test]
async fn silence_ends_with_the_limit() {
    for script in [vec![Step::Hang { hang: true }], vec![text("and"), Step::Hang { hang: true }]] {
        let tried = timeout(Duration::from_secs(5), play(vec![script])).await.unwrap();
        assert_eq!((tried.requests, tried.error().code), (1, ErrorCode::Timeout));
    }
}

#[tokio::test]
async fn documents_instead_of_streams_are_read_for_their_words() {
    let rows = [
        ("<html><title>Sign in</title></html>", "Sign in"),
        (r#"{"error":{"message":"no such route"}}"#, "no such route"),
        (r#"{"hello":1}"#, "instead of a stream"),
    ];
    for (body, words) in rows {
        let tried = play(vec![vec![Step::Raw { raw: body.into() }]]).await;
        assert_eq!(tried.requests, 1);
        assert!(tried.error().message.contains(words), "{}", tried.error().message);
    }
}

#[tokio::test]
async fn a_dead_port_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let mut stream = Provider::http(endpoint(&url)).stream(request(&Provider::http(endpoint(&url))));
    let Some(Ok(ModelEvent::Retry { attempt: 1, reason, .. })) = stream.next().await else { panic!("no retry") };
    assert!(reason.contains(&url) && reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = Server::start(vec![vec![text("a"), Step::Gate { gate: "never".into() }]]).await.unwrap();
    let provider = Provider::http(endpoint(server.base_url()));
    let mut stream = provider.stream(request(&provider));
    assert_eq!(stream.next().await, Some(Ok(ModelEvent::Text("a".into()))));
    drop(stream);
    timeout(Duration::from_secs(5), server.rehearsal().closed_early(1)).await.unwrap();
}

#[tokio::test]
async fn redirects_do_not_take_the_key_elsewhere() {
    let other = Server::start(vec![vec![text("caught")]]).await.unwrap();
    let target = format!("{}/chat/completions", other.base_url());
    let tried = play(vec![status_with(307, "location", &target)]).await;
    assert!(tried.error().message.contains(&target), "{}", tried.error().message);
    assert!(other.rehearsal().requests().is_empty());
}

#[tokio::test]
async fn keys_never_travel_unencrypted() {
    let (waits, got) = run(&Provider::http(endpoint("http://192.0.2.1/v1"))).await;
    let Outcome::Error(error) = got.outcome else { panic!("{:?}", got.outcome) };
    assert!(waits.is_empty() && error.message.contains("unencrypted"), "{}", error.message);
}

#[tokio::test]
async fn requests_of_a_session_share_their_beginning() {
    let server = Server::start(vec![vec![text("one")], vec![text("two")]]).await.unwrap();
    let provider = Provider::http(endpoint(server.base_url()));
    let mut first = request(&provider);
    provider.stream(first.clone()).collect::<Vec<_>>().await;
    let said = Message::Assistant(super::AssistantMessage { text: "one".into(), ..Default::default() });
    first.messages.push(provider.encode(&said));
    provider.stream(first).collect::<Vec<_>>().await;
    let bodies = server.rehearsal().requests().iter().map(ToString::to_string).collect::<Vec<_>>();
    let (before, after) = (bodies[0].trim_end_matches("]}"), &bodies[1]);
    assert!(after.starts_with(before) && after.len() > before.len());
}
