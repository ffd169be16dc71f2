//! Endpoints that fail, hang up or talk nonsense: a turn recovers or reports why not, and the next prompt works.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rehearsal::Step;
use serde_json::{Value, json};

use super::checks::mistakes;
use super::scene::{Play, Scene, read, reply};
use crate::driver::{World, side_by_side};
use crate::faults::dead_address;
use crate::loopback;

const DIALECTS: [&str; 2] = ["chat", "messages"];

/// A turn with a model that uses this API and says this.
fn turn<R>(api: &str, script: Value, check: impl FnOnce(&mut Play<'_>, Value) -> R) -> R {
    let scene = Scene::new();
    scene.say(script);
    let mut play = scene.start_with("auto", |command| _ = command.env("TANDEM_API", api));
    let answer = play.turn();
    check(&mut play, answer)
}

fn ok() -> Value {
    json!([{ "text": "FINAL_OK" }])
}

fn status(code: u16, message: &str) -> Value {
    json!([{ "status": code, "body": { "error": { "message": message } } }])
}

/// An event of the chat API.
fn delta(delta: Value, finish: Option<&str>) -> String {
    format!(
        "data: {}\n\n",
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    )
}

fn final_ok() -> String {
    delta(json!({ "content": "FINAL_OK" }), None) + &delta(json!({}), Some("stop"))
}

fn requests(play: &Play<'_>) -> usize {
    play.scene.world.rehearsal().requests().len()
}

#[test]
fn passing_errors_are_retried_and_reported() {
    let cases = [
        ("stream-001", 408),
        ("stream-002", 409),
        ("stream-003", 425),
        ("stream-006", 503),
        ("stream-008", 529),
    ];
    let all = cases
        .into_iter()
        .flat_map(|case| DIALECTS.map(|api| (case, api)))
        .collect();
    side_by_side(5, all, |((id, code), api)| {
        let begun = Instant::now();
        turn(
            api,
            json!([status(code, "injected"), status(code, "injected"), ok()]),
            |play, _| {
                assert_eq!(
                    (requests(play), play.said().as_str()),
                    (3, "FINAL_OK"),
                    "{id} {api}: {:?}",
                    play.notices()
                );
                let reported = play
                    .notices()
                    .iter()
                    .filter(|notice| notice.contains("retrying after"))
                    .count();
                assert_eq!(reported, 2, "{id} {api}: {:?}", play.notices());
                assert!(
                    begun.elapsed() >= Duration::from_millis(200),
                    "{id} {api}: without a pause"
                );
                play.works();
            },
        );
    });
}

#[test]
fn stream_010_a_date_to_wait_for_is_respected() {
    let date = Command::new("date")
        .args(["-u", "-d", "+3 seconds", "+%a, %d %b %Y %T GMT"])
        .env("LC_ALL", "C")
        .output();
    let date = String::from_utf8(date.unwrap().stdout).unwrap();
    let wait = json!([{ "status": 429, "headers": { "Retry-After": date.trim() } }]);
    let begun = Instant::now();
    turn("chat", json!([wait, ok()]), |play, _| {
        assert_eq!((requests(play), play.said().as_str()), (2, "FINAL_OK"));
        assert!(
            begun.elapsed() >= Duration::from_millis(1500),
            "{:?}",
            begun.elapsed()
        );
    });
}

#[test]
fn final_errors_are_reported_without_a_retry() {
    let quota = json!({ "error": { "message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota" } });
    for (id, reply, words) in [
        (
            "stream-014",
            json!([{ "status": 429, "body": quota }]),
            ["quota", "quota"],
        ),
        ("stream-015", status(400, "injected"), ["injected", "400"]),
        ("stream-016", status(401, "injected"), ["key", "401"]),
    ] {
        for api in DIALECTS {
            turn(api, json!([reply]), |play, answer| {
                let told = play.notices().concat();
                assert!(
                    answer["error"].is_object() && requests(play) == 1,
                    "{id} {api}: {answer}"
                );
                assert!(
                    words.iter().any(|word| told.contains(word)),
                    "{id} {api}: {told}"
                );
                play.works();
            });
        }
    }
}

#[test]
fn stream_021_attempts_are_bounded() {
    let script = vec![status(500, "injected"); 11];
    turn("chat", json!(script), |play, answer| {
        assert!((3..=10).contains(&requests(play)), "{}", requests(play));
        let told = answer["error"]["message"].as_str().unwrap().to_lowercase();
        assert!(told.contains("500") || told.contains("server"), "{told}");
    });
}

#[test]
fn stream_028_a_key_does_not_follow_a_redirect_to_another_host() {
    let other = World::new(json!([ok()]));
    let to = format!(
        "{}/chat/completions",
        other.model.base_url().replace("127.0.0.1", "localhost")
    );
    turn(
        "chat",
        json!([[{ "status": 307, "headers": { "location": to } }]]),
        |_, answer| {
            assert!(answer["error"].is_object(), "{answer}");
            assert_eq!(other.rehearsal().connections(), 0);
        },
    );
}

/// A turn with a model at this address.
fn turn_at(address: &str, during: impl FnOnce(&mut Play<'_>)) -> String {
    let scene = Scene::new();
    let mut play = scene.start_with("auto", |command| {
        _ = command.env("TANDEM_BASE_URL", address);
    });
    let prompt = play.prompt();
    during(&mut play);
    play.end(prompt);
    play.said()
}

#[test]
fn stream_026_only_encodings_that_are_understood_are_offered() {
    let port = loopback::listen_to_posts(|request, stream| {
        let offered = request.header("accept-encoding").unwrap_or_default();
        loopback::events(
            stream,
            &delta(
                json!({ "content": format!("offered: {offered}") }),
                Some("stop"),
            ),
        )
    });
    assert_eq!(
        turn_at(&format!("http://127.0.0.1:{port}/v1"), |_| ()),
        "offered: gzip"
    );
}

#[test]
fn stream_029_an_endpoint_that_is_down_is_waited_for() {
    let address = dead_address();
    let said = turn_at(&address, |play| {
        for _ in 0..2 {
            play.client.find(|message| {
                message["params"]["message"]
                    .as_str()
                    .is_some_and(|told| told.contains("retrying after"))
            });
        }
        let door = address
            .trim_start_matches("http://")
            .trim_end_matches("/v1");
        loopback::serve_on(TcpListener::bind(door).unwrap(), |_, stream| {
            loopback::events(stream, &final_ok())
        });
    });
    assert_eq!(said, "FINAL_OK");
}

#[test]
fn stream_032_and_070_a_request_that_is_cut_off_is_repeated_and_its_tools_are_not() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let scene = Scene::new();
    let call =
        json!({ "command": format!("echo x >> {}", scene.ws("count").display()) }).to_string();
    let call = json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "run_command", "arguments": call } }] });
    let port = loopback::listen_to_posts(move |request, stream| {
        match count.fetch_add(1, Ordering::Relaxed) {
            0 | 2 | 3 => Ok(()),
            1 => loopback::events(
                stream,
                &(delta(call.clone(), None) + &delta(json!({}), Some("tool_calls"))),
            ),
            _ => {
                let request = serde_json::from_str(&request.body).unwrap();
                loopback::events(
                    stream,
                    &if mistakes(&request).is_empty() {
                        final_ok()
                    } else {
                        String::new()
                    },
                )
            }
        }
    });
    let address = format!("http://127.0.0.1:{port}/v1");
    let mut play = scene.start_with("auto", |command| {
        _ = command.env("TANDEM_BASE_URL", address);
    });
    play.turn();
    assert_eq!(
        (play.said().as_str(), asked.load(Ordering::Relaxed)),
        ("FINAL_OK", 5)
    );
    assert_eq!(std::fs::read_to_string(scene.ws("count")).unwrap(), "x\n");
}

#[test]
fn unusual_streams_are_understood() {
    let empty = "data: {\"choices\":[]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":null}]}\n\n";
    for (id, stream) in [
        ("stream-035", final_ok()),
        (
            "stream-043",
            format!("\u{feff}{}data: [DONE]\n\n", final_ok()),
        ),
        (
            "stream-049",
            format!(
                "{empty}{}{}data: [DONE]\n\n",
                delta(json!({ "content": null }), None),
                final_ok()
            ),
        ),
    ] {
        turn("chat", json!([[{ "raw": stream }]]), |play, _| {
            assert_eq!(
                (requests(play), play.said().as_str()),
                (1, "FINAL_OK"),
                "{id}: {:?}",
                play.notices()
            );
        });
    }
}

#[test]
fn stream_046_a_line_of_100_megabytes_is_not_stored() {
    let scene = Scene::new();
    let line = [
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"".as_slice(),
        &vec![b'A'; 100 << 20],
        b"\"}}]}\n\n",
    ];
    scene
        .world
        .rehearsal()
        .add(vec![vec![Step::Bytes(line.concat().into())]]);
    let mut play = scene.start("auto");
    let answer = play.turn();
    assert!(answer["error"].is_object(), "{answer}");
    assert!(
        play.program.peak_memory() <= 200 << 20,
        "{}",
        play.program.peak_memory()
    );
    play.works();
}

#[test]
fn stream_051_an_overloaded_claude_is_asked_again() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    turn(
        "messages",
        json!([[{ "raw": format!("event: error\ndata: {error}\n\n") }], ok()]),
        |play, _| {
            assert_eq!(
                (requests(play), play.said().as_str()),
                (2, "FINAL_OK"),
                "{:?}",
                play.notices()
            );
        },
    );
}

#[test]
fn a_request_that_is_too_long_is_compacted_or_explained() {
    for (id, api, error) in [
        (
            "stream-053",
            "chat",
            json!({ "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded" }),
        ),
        (
            "stream-054",
            "messages",
            json!({ "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum" }),
        ),
        (
            "stream-055",
            "chat",
            json!({ "code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT" }),
        ),
        (
            "stream-056",
            "chat",
            json!({ "code": 400, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "exceed_context_size_error" }),
        ),
    ] {
        turn(
            api,
            json!([[{ "status": 400, "body": { "error": error } }], ok(), ok()]),
            |play, answer| {
                let told = play.notices().concat() + &answer.to_string();
                let explained = ["context", "too long", "compact"]
                    .iter()
                    .any(|word| told.contains(word));
                assert!(explained || play.said() == "FINAL_OK", "{id}: {told}");
                assert!(
                    (1..=3).contains(&requests(play)),
                    "{id}: {}",
                    requests(play)
                );
                play.works();
            },
        );
    }
}

#[test]
fn stream_065_a_huge_index_costs_nothing() {
    let call = json!([{ "index": u32::MAX, "id": "c", "function": { "name": "read", "arguments": "{}" } }]);
    let stream = delta(json!({ "tool_calls": call }), None) + &delta(json!({}), Some("tool_calls"));
    turn("chat", json!([[{ "raw": stream }], ok()]), |play, _| {
        assert!(
            play.program.peak_memory() <= 100 << 20,
            "{}",
            play.program.peak_memory()
        );
        play.lives();
    });
}

#[test]
fn stream_066_calls_may_be_interleaved_and_out_of_order() {
    let last_first = |fragment: &dyn Fn(usize) -> Value| -> String {
        (0..4)
            .rev()
            .map(|n| delta(json!({ "tool_calls": [fragment(n)] }), None))
            .collect()
    };
    let glob = json!({ "name": "glob", "arguments": "" });
    let pieces = last_first(&|n| json!({ "index": n, "id": format!("c{n}"), "function": glob }))
        + &last_first(
            &|n| json!({ "index": n, "function": { "arguments": "{\"pattern\": \"*.no" } }),
        )
        + &last_first(
            &|n| json!({ "index": n, "function": { "arguments": format!("ne{n}\"}}") } }),
        );
    turn(
        "chat",
        json!([[{ "raw": pieces + &delta(json!({}), Some("tool_calls")) }], ok()]),
        |play, _| {
            let completed = play
                .results()
                .iter()
                .filter(|(status, _)| status == "completed")
                .count();
            assert_eq!(completed, 4, "{:?}", play.results());
            play.works();
        },
    );
}

#[test]
fn stream_068_two_hundred_calls_in_one_message_work() {
    let calls: Vec<_> = (0..200)
        .map(|n| ("glob", json!({ "pattern": format!("*.none{n}") })))
        .collect();
    for api in DIALECTS {
        turn(api, json!([reply(&calls), ok()]), |play, _| {
            play.lives();
            play.works();
        });
    }
}

#[test]
fn stream_071_an_endless_loop_of_calls_is_bounded() {
    let scene = Scene::new();
    scene.write(&scene.ws("a.txt"), "x");
    scene.say(json!(vec![reply(&[read("a.txt")]); 301]));
    let mut play = scene.start("auto");
    let answer = play.turn();
    assert_eq!(
        answer["result"]["stopReason"], "max_turn_requests",
        "{answer}"
    );
    assert!(requests(&play) <= 300, "{}", requests(&play));
}

#[test]
fn stream_072_a_cancel_in_the_middle_leaves_a_valid_history() {
    for api in DIALECTS {
        let scene = Scene::new();
        scene.say(json!([[{ "words": "long ".repeat(50) }, { "gate": "never" }]]));
        let mut play = scene.start_with("auto", |command| _ = command.env("TANDEM_API", api));
        let prompt = play.prompt();
        play.update("agent_message_chunk");
        play.cancel();
        assert_eq!(play.end(prompt)["result"]["stopReason"], "cancelled");
        play.works();
    }
}
