//! Servers that behave in unusual ways, over a real socket.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use futures_util::StreamExt;
use rehearsal::{Reply, Server, Step};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::faults::{DIALECTS, endpoint, play, request, run, status, text};
use crate::model::{
    Api, Endpoint, ErrorCode, Instructions, Key, Message, ModelEvent, Outcome, Provider, TimeLimits,
};

fn gate(name: &str) -> Step {
    Step::Gate { gate: name.into() }
}

fn failing(status: u16, body: Value) -> Step {
    Step::Status {
        status,
        body,
        headers: BTreeMap::new(),
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_printed_key_that_has_expired_is_printed_again() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("counter").display().to_string();
    // Prints sk-1, then sk-2, ….
    let program = "echo >> \"$0\"; echo sk-$(grep -c '' \"$0\")";
    let command = ["sh", "-c", program, &counter].map(str::to_owned);
    let server = Server::start(Vec::<Reply>::new()).unwrap();
    let mut valid = ["sk-1", "sk-2", "sk-2", "none", "none"].into_iter();
    server.rehearsal().answer_with(move |request| {
        let expected = format!("Bearer {}", valid.next().unwrap());
        if request.header("authorization") == Some(&expected) {
            vec![text("fine")]
        } else {
            status(401, "the token has expired")
        }
    });
    let provider = Provider::http(Endpoint {
        key: Key::Command(command.into()),
        ..endpoint(Api::Chat, server.base_url())
    });
    for requests in [1, 3] {
        let (waits, got) = run(&provider).await;
        assert_eq!((waits, got.outcome), (Vec::new(), Outcome::Ok));
        assert_eq!(server.rehearsal().requests().len(), requests);
    }
    // A new key that is refused, too, is not the cause.
    let (_, got) = run(&provider).await;
    let Outcome::Error(error) = got.outcome else {
        panic!("{:?}", got.outcome)
    };
    assert_eq!(error.code, ErrorCode::Auth);
    assert_eq!(server.rehearsal().requests().len(), 5);
}

#[tokio::test]
async fn a_limit_that_ends_soon_is_not_an_empty_account() {
    let limit = json!([{ "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 0.4s.",
        "details": [
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [] },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.4s" },
        ],
    } }]);
    let in_stream = Step::Error {
        error: json!({
            "code": "rate_limit_exceeded",
            "message": "Rate limit reached for gpt-6-sol on tokens per min (TPM). Please try again in 0.3s. Visit us.",
        }),
    };
    for (fault, wait) in [(failing(429, limit), 400), (in_stream, 300)] {
        let tried = play(Api::Chat, vec![vec![fault], vec![text("fine")]]).await;
        assert_eq!(
            (tried.waits, tried.got.message.text.as_str()),
            (vec![Duration::from_millis(wait)], "fine")
        );
    }
}

#[tokio::test]
async fn a_model_that_thinks_may_be_silent_longer_than_one_that_writes() {
    for api in DIALECTS {
        let thought = Step::Reasoning {
            reasoning: "hm".into(),
        };
        let server = Server::start(vec![vec![thought, gate("thought"), text("fine")]]).unwrap();
        let limits = TimeLimits {
            first_byte: Some(Duration::from_secs(30)),
            between: Duration::from_millis(200),
            ..TimeLimits::default()
        };
        let provider = Provider::http(Endpoint {
            limits,
            ..endpoint(api, server.base_url())
        });
        let mut stream = provider.stream(request(&provider));
        while stream.next().await != Some(Ok(ModelEvent::Reasoning("hm".into()))) {}
        let silence = timeout(3 * limits.between, stream.next()).await;
        assert!(silence.is_err(), "{api:?}: {silence:?}");
        server.rehearsal().open("thought");
        let rest: Vec<_> = stream.collect().await;
        assert!(
            rest.contains(&Ok(ModelEvent::Text("fine".into()))),
            "{api:?}: {rest:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_has_ended_is_complete_when_the_connection_breaks() {
    let chat =
        "data: {\"choices\":[{\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\n";
    let messages = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"fine\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    for (api, raw) in [(Api::Chat, chat), (Api::Messages, messages)] {
        for end in [Step::Cut { cut: true }, Step::Hang { hang: true }] {
            let tried = play(api, vec![vec![Step::Raw { raw: raw.into() }, end]]).await;
            assert_eq!(
                (tried.requests, tried.got.message.text.as_str()),
                (1, "fine")
            );
            assert_eq!(tried.got.outcome, Outcome::Ok, "{api:?}");
        }
    }
}

#[tokio::test]
async fn a_list_of_models_that_never_ends_is_not_stored() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let sent = tokio::task::spawn_blocking(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _request = socket.read(&mut [0; 4096]).unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n[").unwrap();
        let blanks = vec![b' '; 1 << 20];
        (0..256)
            .take_while(|_| socket.write_all(&blanks).is_ok())
            .count()
    });
    let provider = Provider::http(endpoint(Api::Chat, &url));
    let error = provider.models().await.unwrap_err();
    assert!(error.message.contains("larger than"), "{error}");
    assert!(sent.await.unwrap() < 128);
}

#[tokio::test]
async fn a_field_that_is_refused_twice_at_once_is_left_out_of_both_requests() {
    let refusal = json!({ "error": {
        "message": "Unsupported parameter: 'reasoning_effort'", "param": "reasoning_effort",
    } });
    let refused = vec![gate("both"), failing(400, refusal)];
    let fine = vec![text("fine")];
    let server = Server::start(vec![refused.clone(), refused, fine.clone(), fine]).unwrap();
    let provider = Provider::http(Endpoint {
        effort: Some("low".into()),
        ..endpoint(Api::Chat, server.base_url())
    });
    let open = async {
        server.rehearsal().requested(2).await;
        server.rehearsal().open("both");
    };
    let ((_, one), (_, other), ()) = tokio::join!(run(&provider), run(&provider), open);
    assert_eq!((one.outcome, other.outcome), (Outcome::Ok, Outcome::Ok));
    for request in server.rehearsal().requests().split_off(2) {
        assert!(request.get("reasoning_effort").is_none(), "{request}");
    }
}

#[tokio::test]
async fn a_single_question_follows_its_server_to_another_api() {
    let script = vec![
        status(404, "Not Found"),
        vec![text("one")],
        vec![text("two")],
    ];
    let server = Server::start(script).unwrap();
    let provider = Provider::http(endpoint(Api::Responses, server.base_url()));
    for expected in ["one", "two"] {
        let events = provider.ask(&Instructions::default(), "hello".into());
        let events: Vec<_> = events.collect().await;
        assert!(
            events.iter().all(Result::is_ok)
                && events.contains(&Ok(ModelEvent::Text(expected.into()))),
            "{events:?}"
        );
    }
    assert_eq!(
        server.rehearsal().paths(),
        [
            "/v1/responses",
            "/v1/chat/completions",
            "/v1/chat/completions"
        ]
    );
}

#[tokio::test]
async fn passwords_in_addresses_are_not_shown() {
    let page = |body: &str| vec![Step::Raw { raw: body.into() }];
    for reply in [page("<html>Sign in</html>"), status(404, "no such page")] {
        let server = Server::start(vec![reply]).unwrap();
        let url = server.base_url().replace("//", "//someone:hunter22@");
        let (_, got) = run(&Provider::http(endpoint(Api::Chat, &url))).await;
        let Outcome::Error(error) = got.outcome else {
            panic!("{:?}", got.outcome)
        };
        assert!(
            error.message.contains("someone") && !error.message.contains("hunter22"),
            "{error}"
        );
    }
}

/// The events of a stream in the messages API.
fn events(events: &[Value]) -> Reply {
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    vec![Step::Raw {
        raw: lines.collect(),
    }]
}

#[tokio::test]
async fn unsigned_thoughts_go_back_where_nobody_checks_them() {
    let reply = events(&[
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "hm" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "a", "name": "f" } }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "input_tokens": 0, "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ]);
    for (model, goes_back) in [("deepseek-v4-pro", true), ("claude-sonnet-4-6", false)] {
        let server = Server::start(vec![reply.clone()]).unwrap();
        let provider = Provider::http(Endpoint {
            model: model.into(),
            ..endpoint(Api::Messages, server.base_url())
        });
        let (_, got) = run(&provider).await;
        assert_eq!(got.usage.unwrap().input, 9);
        let sent = provider.encode(&Message::Assistant(got.message));
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let is_thought = sent["content"][0]["type"] == "thinking";
        assert_eq!(is_thought, goes_back, "{sent}");
    }
}
