//! Every row of the fault table over a real socket: how many requests, which waits, what the person gets to read.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::StreamExt;
use rehearsal::{Reply, Server, Step};
use serde_json::json;
use tokio::time::timeout;

use crate::model::{
    Api, Collected, Collector, Endpoint, ErrorCode, Instructions, Key, Message, ModelEvent,
    ModelRequest, Outcome, Part, Provider, TimeLimits,
};

pub(super) const DIALECTS: [Api; 3] = [Api::Chat, Api::Responses, Api::Messages];

pub(super) fn endpoint(api: Api, base_url: &str) -> Endpoint {
    Endpoint {
        key: Key::Value("sk-test".into()),
        limits: TimeLimits {
            connect: Duration::from_secs(5),
            first_byte: Some(Duration::from_millis(300)),
            between: Duration::from_millis(300),
        },
        ..Endpoint::new("local", api, base_url, "m")
    }
}

pub(super) fn request(provider: &Provider) -> ModelRequest {
    let instructions = Instructions {
        system: "Be brief.".into(),
        ..Instructions::default()
    };
    let question = Message::User {
        parts: vec![Part::Text {
            text: "hello".into(),
        }],
    };
    ModelRequest {
        preamble: provider.preamble(&instructions),
        messages: vec![provider.encode(&question)],
        may_call: true,
    }
}

/// The announced waits, and the outcome of the request.
pub(super) async fn run(provider: &Provider) -> (Vec<Duration>, Collected) {
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

pub(super) struct Tried {
    pub requests: usize,
    pub waits: Vec<Duration>,
    pub got: Collected,
}

impl Tried {
    fn error(&self) -> &crate::model::Failure {
        match &self.got.outcome {
            Outcome::Error(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) async fn play(api: Api, script: Vec<Reply>) -> Tried {
    let server = Server::start(script).unwrap();
    let (waits, got) = run(&Provider::http(endpoint(api, server.base_url()))).await;
    Tried {
        requests: server.rehearsal().requests().len(),
        waits,
        got,
    }
}

pub(super) fn text(text: &str) -> Step {
    Step::Text { text: text.into() }
}

/// Overload, reported inside the stream.
fn overloaded() -> Reply {
    vec![Step::Error {
        error: json!({ "type": "overloaded_error", "message": "Overloaded" }),
    }]
}

pub(super) fn status(status: u16, message: &str) -> Reply {
    let body = json!({ "error": { "message": message } });
    vec![Step::Status {
        status,
        body,
        headers: BTreeMap::new(),
    }]
}

fn status_with(status: u16, name: &str, value: &str) -> Reply {
    vec![Step::Status {
        status,
        body: json!("slow down"),
        headers: BTreeMap::from([(name.into(), value.into())]),
    }]
}

#[tokio::test]
async fn transient_failures_before_output_are_retried() {
    let rows = DIALECTS.into_iter().flat_map(|api| {
        let faults = [408, 409, 425, 429, 500, 503, 529].map(|code| status(code, "busy"));
        let cut = vec![Step::Cut { cut: true }];
        let empty = vec![Step::Raw { raw: String::new() }];
        faults
            .into_iter()
            .chain([cut, empty, overloaded()])
            .map(move |fault| (api, fault))
    });
    let rows = rows.map(async |(api, fault)| {
        let tried = play(api, vec![fault.clone(), vec![text("fine")]]).await;
        assert_eq!(
            (tried.requests, tried.waits.len()),
            (2, 1),
            "{api:?} {fault:?}"
        );
        assert!(
            tried.waits[0] > Duration::from_millis(300),
            "{api:?} {fault:?}"
        );
        assert_eq!(
            (tried.got.message.text.as_str(), tried.got.outcome),
            ("fine", Outcome::Ok)
        );
    });
    futures_util::future::join_all(rows).await;
}

#[tokio::test]
async fn persistent_failures_are_tried_five_times() {
    let tried = play(Api::Chat, vec![status(500, "down"); 9]).await;
    assert_eq!((tried.requests, tried.waits.len()), (5, 4));
    assert!(tried.waits.iter().sum::<Duration>() < Duration::from_mins(1));
    assert!(
        tried.error().message.contains("down"),
        "{}",
        tried.error().message
    );
    assert_eq!(tried.error().status, Some(500));
}

#[tokio::test]
async fn refusals_are_not_retried_and_name_a_remedy() {
    let quota = "You exceeded your current quota";
    let window = "This model's maximum context length is 8192 tokens";
    let rows = [
        (400, "bad field", ErrorCode::InvalidRequest, "bad field"),
        (401, "no such key", ErrorCode::Auth, "TANDEM_API_KEY"),
        (402, "no credit", ErrorCode::RateLimit, "add credit"),
        (403, "not yours", ErrorCode::Auth, "permissions"),
        (
            404,
            "no such model",
            ErrorCode::InvalidRequest,
            "tandem models",
        ),
        (413, "too big", ErrorCode::InvalidRequest, "new session"),
        (422, "bad value", ErrorCode::InvalidRequest, "bad value"),
        (429, quota, ErrorCode::RateLimit, "billing"),
        (400, window, ErrorCode::ContextOverflow, "8192"),
    ];
    for api in DIALECTS {
        for (code, said, kind, way) in rows {
            let tried = play(api, vec![status(code, said)]).await;
            let error = tried.error();
            assert_eq!(
                (tried.requests, error.code, error.status),
                (1, kind, Some(code)),
                "{api:?}"
            );
            assert!(
                !error.retryable && error.message.contains(said),
                "{}",
                error.message
            );
            assert!(error.message.contains(way), "{}", error.message);
        }
    }
}

#[tokio::test]
async fn a_loading_model_is_waited_for_and_announced_once() {
    let loading = || {
        let body = json!({ "error": { "message": "Loading model", "type": "unavailable_error" } });
        let headers = BTreeMap::from([("retry-after".into(), "0".into())]);
        vec![Step::Status {
            status: 503,
            body,
            headers,
        }]
    };
    for (provider, requests) in [("custom", 41), ("hosted", 5)] {
        let script = std::iter::repeat_with(loading).take(40);
        let server = Server::start(script.chain([vec![text("fine")]]).collect::<Vec<_>>());
        let server = server.unwrap();
        let endpoint = Endpoint {
            provider: provider.to_owned(),
            ..endpoint(Api::Chat, server.base_url())
        };
        let (waits, got) = run(&Provider::http(endpoint)).await;
        assert_eq!(server.rehearsal().requests().len(), requests, "{provider}");
        let is_own = provider == "custom";
        assert_eq!(waits.len(), if is_own { 1 } else { 4 }, "{provider}");
        assert_eq!(got.outcome == Outcome::Ok, is_own, "{provider}");
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    for api in DIALECTS {
        let tried = play(
            api,
            vec![status_with(429, "retry-after", "0"), vec![text("fine")]],
        )
        .await;
        assert_eq!(
            (tried.waits, tried.got.message.text.as_str()),
            (vec![Duration::ZERO], "fine")
        );
        let tried = play(api, vec![status_with(429, "retry-after", "3600")]).await;
        assert_eq!((tried.requests, tried.waits.len()), (1, 0));
        assert!(
            tried.error().message.contains("3600 s"),
            "{}",
            tried.error().message
        );
    }
}

#[tokio::test]
async fn truncated_streams_keep_received_output() {
    for api in DIALECTS {
        let half = vec![text("half a"), Step::Cut { cut: true }];
        let tried = play(api, vec![half, vec![text("never")]]).await;
        assert_eq!((tried.requests, tried.waits.len()), (1, 0));
        assert_eq!(tried.got.message.text, "half a");
        assert_ne!(tried.got.outcome, Outcome::Ok);
    }
}

#[tokio::test]
async fn silent_streams_end_at_the_timeout() {
    for api in DIALECTS {
        for script in [vec![], vec![text("and")]] {
            let script = [script, vec![Step::Hang { hang: true }]].concat();
            let tried = timeout(Duration::from_secs(5), play(api, vec![script]))
                .await
                .unwrap();
            assert_eq!(
                (tried.requests, tried.error().code),
                (1, ErrorCode::Timeout)
            );
        }
    }
}

#[tokio::test]
async fn error_documents_instead_of_streams_are_quoted() {
    let rows = [
        ("<html><title>Sign in</title></html>", "Sign in"),
        (r#"{"error":{"message":"no such route"}}"#, "no such route"),
        (r#"{"hello":1}"#, "instead of a stream"),
    ];
    for api in DIALECTS {
        for (body, words) in rows {
            let tried = play(api, vec![vec![Step::Raw { raw: body.into() }]]).await;
            assert_eq!(tried.requests, 1);
            assert!(
                tried.error().message.contains(words),
                "{}",
                tried.error().message
            );
        }
    }
}

/// A gzip stream with one stored block.
fn gzip(data: &[u8]) -> Vec<u8> {
    let size = u16::try_from(data.len()).unwrap();
    let crc = !data.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ (0xedb8_8320 * (crc & 1))
        })
    });
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let (size, inverse, whole) = (
        size.to_le_bytes(),
        (!size).to_le_bytes(),
        u32::from(size).to_le_bytes(),
    );
    [&head[..], &size, &inverse, data, &crc.to_le_bytes(), &whole].concat()
}

#[tokio::test]
async fn compressed_streams_are_read() {
    let stream = br#"data: {"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}

"#;
    let headers = BTreeMap::from([("content-encoding".to_owned(), "gzip".to_owned())]);
    let head = Step::Status {
        status: 200,
        body: json!(null),
        headers,
    };
    let tried = play(
        Api::Chat,
        vec![vec![head, Step::Bytes(gzip(stream).into())]],
    )
    .await;
    assert_eq!(tried.got.message.text, "fine", "{:?}", tried.got.outcome);
}

#[tokio::test]
async fn an_unreachable_port_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let provider = Provider::http(endpoint(Api::Chat, &url));
    let first = provider.stream(request(&provider)).next().await;
    let Some(Ok(ModelEvent::Retry {
        attempt: 1, reason, ..
    })) = first
    else {
        panic!("{first:?}")
    };
    assert!(
        reason.contains(&url) && reason.contains("refused"),
        "{reason}"
    );
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for api in DIALECTS {
        let script = vec![vec![
            text("a"),
            Step::Gate {
                gate: "never".into(),
            },
        ]];
        let server = Server::start(script).unwrap();
        let provider = Provider::http(endpoint(api, server.base_url()));
        let mut stream = provider.stream(request(&provider));
        while stream.next().await != Some(Ok(ModelEvent::Text("a".into()))) {}
        drop(stream);
        timeout(Duration::from_secs(5), server.rehearsal().closed_early(1))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn keys_do_not_follow_redirects() {
    let other = Server::start(vec![vec![text("caught")]]).unwrap();
    for api in DIALECTS {
        let target = format!("{}/chat/completions", other.base_url());
        let tried = play(api, vec![status_with(307, "location", &target)]).await;
        assert!(
            tried.error().message.contains(&target),
            "{}",
            tried.error().message
        );
    }
    assert!(other.rehearsal().requests().is_empty());
}

#[tokio::test]
async fn keys_are_never_sent_unencrypted() {
    let (waits, got) = run(&Provider::http(endpoint(Api::Chat, "http://192.0.2.1/v1"))).await;
    let Outcome::Error(error) = got.outcome else {
        panic!("{:?}", got.outcome)
    };
    assert!(
        waits.is_empty() && error.message.contains("unencrypted"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn requests_of_a_session_share_prefix_and_connection() {
    for api in DIALECTS {
        let server = Server::start(vec![vec![text("one")]; 2]).unwrap();
        let provider = Provider::http(endpoint(api, server.base_url()));
        let mut session = request(&provider);
        provider.stream(session.clone()).collect::<Vec<_>>().await;
        let said = crate::model::AssistantMessage {
            text: "one".into(),
            ..Default::default()
        };
        session
            .messages
            .push(provider.encode(&Message::Assistant(said)));
        provider.stream(session).collect::<Vec<_>>().await;
        assert_eq!(
            (
                server.rehearsal().requests().len(),
                server.rehearsal().connections()
            ),
            (2, 1)
        );
        let bodies: Vec<_> = server
            .rehearsal()
            .requests()
            .iter()
            .map(ToString::to_string)
            .collect();
        let (before, after) = (bodies[0].trim_end_matches("]}"), &bodies[1]);
        assert!(
            after.starts_with(before) && after.len() > before.len(),
            "{before} {after}"
        );
    }
}

#[tokio::test]
async fn https_needs_no_process_wide_setup() {
    let provider = Provider::http(endpoint(Api::Chat, "https://127.0.0.1:1/v1"));
    match provider.stream(request(&provider)).next().await {
        Some(Ok(ModelEvent::Retry { reason, .. })) => {
            assert!(reason.contains("refused"), "{reason}");
        }
        // A machine without certificate authorities.
        other => assert!(
            matches!(&other, Some(Err(error)) if error.message.contains("CA")),
            "{other:?}"
        ),
    }
}

#[tokio::test]
async fn events_received_together_are_emitted_together() {
    let words = Step::Words {
        words: "word ".repeat(2000),
        delay_ms: 0,
    };
    let server = Server::start(vec![vec![words]]).unwrap();
    let provider = Provider::http(endpoint(Api::Chat, server.base_url()));
    let texts = provider
        .stream(request(&provider))
        .filter_map(async |event| match event.unwrap() {
            ModelEvent::Text(text) => Some(text),
            _ => None,
        });
    let texts: Vec<_> = texts.collect().await;
    assert_eq!(texts.concat(), "word ".repeat(2000));
    assert!(texts.len() < 200, "{} events for 2000 deltas", texts.len());
}

#[tokio::test]
async fn one_script_gives_the_same_answer_in_all_dialects() {
    let script: Vec<Reply> = serde_json::from_value(json!([[
        { "reasoning": "hm" },
        { "words": "two words" },
        { "call": { "id": "c1", "name": "f", "arguments": { "x": [1, 2] } }, "fragments": 3 },
        { "call": { "id": "c2", "name": "g", "arguments": "{\"cut" } },
        { "usage": { "prompt_tokens": 7, "completion_tokens": 5 } },
        { "finish": "length" },
    ]]))
    .unwrap();
    let chat = play(Api::Chat, script.clone()).await.got;
    assert_eq!(
        (chat.reasoning.as_str(), chat.message.text.as_str()),
        ("hm", "two words")
    );
    assert_eq!(
        chat.message
            .calls
            .iter()
            .map(super::runnable)
            .collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(
        (chat.finish.clone(), chat.usage.unwrap().input),
        (Some(crate::model::Finish::Length), 7)
    );
    for api in [Api::Responses, Api::Messages] {
        let mut got = play(api, script.clone()).await.got;
        got.message.reasoning.clone_from(&chat.message.reasoning);
        assert_eq!(got, chat, "{api:?}");
    }
}
