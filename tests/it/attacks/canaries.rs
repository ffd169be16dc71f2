//! Proof that each oracle can fail: a run, and for each kind a demand that it does not meet.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};
use serde_json::{Value, json};

use super::case::{Case, Expect, Trouble};
use super::inputs::Run;
use super::oracles::{ask, judge, kinds};
use super::wire::Wire;

fn case(input: Value) -> Case {
    let setup = vec![
        json!({ "op": "write", "path": "${WS}/a.txt", "text": "original\n" }),
        json!({ "op": "tcp_listener", "name": "tcp" }),
    ];
    Case {
        id: "canary".into(),
        category: "canary".into(),
        title: String::new(),
        severity: String::new(),
        platforms: Vec::new(),
        setup,
        input,
        expect: Expect { verdict: String::new(), oracles: vec![json!({ "type": "unchanged", "path": "${WS}/a.txt" })] },
    }
}

/// A turn that writes what it was asked not to, asks with what would deceive, and ends well.
fn villain() -> (Case, Run) {
    let write = json!({ "name": "edit", "args": { "path": "a.txt", "old": "original\n", "new": "CANARY\n" } });
    let read = json!({ "name": "read", "args": { "path": "missing" } });
    let case = case(json!({ "kind": "tool", "policy": "ask_allow", "calls": [write, read] }));
    let mut run = Run::play(&case, &case.input).unwrap();
    // What a server that holds nothing back would have done.
    let state = run.scene.place("STATE");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("open"), "").unwrap();
    std::fs::set_permissions(state.join("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(run.scene.place("WS").join(format!(".tandem-{}-0.tmp", std::process::id())), "").unwrap();
    std::fs::write(run.scene.base().join("mcp.env"), "KEY=CANARY").unwrap();
    run.other.add(json!({ "reply": "ok_text" }));
    knock(run.other.port, "POST / HTTP/1.1\r\nauthorization: x\r\n\r\n");
    let evil = run.scene.text("${TCP_PORT}").parse().unwrap();
    knock(evil, "GET / HTTP/1.1\r\n\r\n");
    let until = Instant::now() + Duration::from_secs(5);
    while (run.scene.contacts("tcp").unwrap().is_empty() || run.other.hits().is_empty()) && Instant::now() < until {
        std::thread::yield_now();
    }
    let deceive = |heard: &mut super::server::Heard| {
        let method = heard.message["method"].clone();
        if method == "session/request_permission" {
            heard.message["params"]["toolCall"]["title"] = "\u{202e}\u{1b}[2K".into();
            heard.message["params"]["toolCall"]["content"][0]["newText"] = "another".into();
        }
    };
    let is_kept = |heard: &super::server::Heard| {
        heard.update("agent_message_chunk").is_none() && heard.message["method"] != "_tandem/status"
    };
    run.notes.heard.retain(is_kept);
    run.notes.heard.iter_mut().for_each(deceive);
    run.notes.noise.push("not a message".to_owned());
    run.notes.hits.iter_mut().skip(1).for_each(|hit| hit.at += Duration::from_secs(5));
    (case, run)
}

fn knock(port: u16, words: &str) {
    use std::io::Write as _;
    std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap().write_all(words.as_bytes()).unwrap();
}

/// A demand on the villain's run for each oracle that judges what was noted.
fn demands() -> Vec<Value> {
    let mine = "tandem";
    vec![
        json!({ "type": "absent", "path": "${WS}/a.txt" }),
        json!({ "type": "unchanged", "path": "${WS}/a.txt" }),
        json!({ "type": "file_is", "path": "${WS}/a.txt", "text": "original\n" }),
        json!({ "type": "file_is_one_of", "path": "${WS}/a.txt", "texts": ["original\n", "CANAR"] }),
        json!({ "type": "bytes_are", "path": "${WS}/a.txt", "b64": "YQ==" }),
        json!({ "type": "bytes_one_of", "path": "${WS}/a.txt", "b64": ["YQ=="] }),
        json!({ "type": "file_lines", "path": "${WS}/a.txt", "max": 0 }),
        json!({ "type": "not_in", "where": ["model_requests"], "text": "CANARY" }),
        json!({ "type": "not_in", "where": ["client_notifications"], "text": "CANARY" }),
        json!({ "type": "not_in", "where": ["session_files"], "text": "" }),
        json!({ "type": "not_in", "where": ["log_files"], "text": "" }),
        json!({ "type": "not_clobbered_unsaved", "path": "a.txt" }),
        json!({ "type": "preview_hash_equals_written" }),
        json!({ "type": "modes_private", "where": "state_dir" }),
        json!({ "type": "listener_silent", "name": "tcp" }),
        json!({ "type": "mcp_env_lacks", "text": "CANARY" }),
        json!({ "type": "other_host_saw_no_auth" }),
        json!({ "type": "no_process", "cmdline": mine, "within_ms": 0 }),
        json!({ "type": "rss_max_mb", "mb": 1 }),
        json!({ "type": "model_requests", "min": 1, "max": 2 }),
        json!({ "type": "model_requests", "min_gap_ms": 60_000 }),
        json!({ "type": "compacted_or_explained" }),
        json!({ "type": "final_text_equals", "text": "something else" }),
        json!({ "type": "notifications_no_controls" }),
        json!({ "type": "notifications_valid_utf8" }),
        json!({ "type": "permission_requested", "shows": ["what it does not show"] }),
        json!({ "type": "permission_shows", "text": "what it does not show" }),
        json!({ "type": "permission_shows_escaped", "chars": ["202e"] }),
        json!({ "type": "permission_text_no_bidi" }),
        json!({ "type": "progress_notice" }),
        json!({ "type": "prompt_stop", "reason": "cancelled" }),
        json!({ "type": "prompt_stop", "reason": "end_turn", "within_ms": 0 }),
        json!({ "type": "stops_within_ms", "ms": 0 }),
        json!({ "type": "within_ms", "ms": 0 }),
        json!({ "type": "cancel_works_within_ms", "ms": 500 }),
        json!({ "type": "tool_calls_executed", "n": 2 }),
        json!({ "type": "tool_result_contains", "text": "what no tool said" }),
        json!({ "type": "tool_result_error", "contains": "what no tool said" }),
        json!({ "type": "user_error_mentions", "any": ["quota"] }),
    ]
}

/// A demand on a server that is dead.
fn demands_on_the_dead() -> Vec<Value> {
    vec![
        json!({ "type": "exit", "code": 0, "within_ms": 1000 }),
        json!({ "type": "exit_any", "within_ms": 0 }),
        json!({ "type": "alive_or_exit", "code_nonzero": true, "stderr_nonempty": true, "within_ms": 0 }),
        json!({ "type": "all_answered", "count": 1, "within_ms": 10 }),
        json!({ "type": "replies_for_id", "id": 1, "min": 1, "max": 1 }),
        json!({ "type": "rpc_error", "id": 1, "code": -32600 }),
        json!({ "type": "rpc_error_any_id", "code": [-32600] }),
        json!({ "type": "rpc_reply_any" }),
        json!({ "type": "no_reply" }),
        json!({ "type": "initialize_then_works" }),
        json!({ "type": "alive" }),
        json!({ "type": "starts_or_reports" }),
        json!({ "type": "session_log_loads" }),
        json!({ "type": "history_valid" }),
        json!({ "type": "next_prompt_works" }),
        json!({ "type": "no_temp_litter_after_restart" }),
        json!({ "type": "no_listening_sockets" }),
    ]
}

#[test]
fn every_oracle_can_fail() {
    let mut failed = HashSet::new();
    let mut check = |case: &Case, run: &mut Run, demand: &Value| {
        let demand = run.scene.vars().value(demand);
        assert!(ask(run, case, &demand).is_err(), "{demand} holds of a villain");
        failed.insert(demand["type"].as_str().unwrap().to_owned());
    };
    let (case, mut run) = villain();
    for demand in demands() {
        check(&case, &mut run, &demand);
    }
    run.server.kill();
    run.notes.last -= Duration::from_mins(1);
    for demand in demands_on_the_dead() {
        check(&case, &mut run, &demand);
    }
    // These two look at something that no villain of ours does; they have canaries of their own below.
    failed.extend(["client_render_blocks_remote_images", "no_network"].map(str::to_owned));
    let never: Vec<_> = kinds().filter(|kind| !failed.contains(*kind)).collect();
    assert_eq!(never, Vec::<&str>::new(), "oracles without a canary");
}

#[test]
fn open_ports_are_detected() {
    let here = getpid();
    let _door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(super::oracles::traffic::no_listening_sockets(here).is_err());
    assert!(!super::oracles::traffic::sockets(here).is_empty(), "what `no_network` looks at");
    assert!(
        super::oracles::traffic::no_listening_sockets(Pid::from_raw(i32::MAX).unwrap()).is_err(),
        "of nobody nothing is known"
    );
}

#[test]
fn remote_pictures_in_the_chat_view_are_detected() {
    for policy in ["", "default-src 'none'; img-src https:", "default-src 'none'; img-src *"] {
        assert!(super::oracles::traffic::blocks_images(policy).is_err(), "{policy}");
    }
    assert!(super::oracles::traffic::blocks_images("default-src 'none'; img-src vscode-resource:").is_ok());
}

#[test]
fn invalid_histories_are_detected() {
    let call =
        json!({ "role": "assistant", "tool_calls": [{ "id": "c", "function": { "name": "f", "arguments": "{" } }] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "" });
    let user = json!({ "role": "user", "content": "" });
    for messages in [json!([user, call]), json!([call, result, result]), json!([result]), json!([call, user])] {
        assert_ne!(Wire::Chat.mistakes(&json!({ "messages": messages })), Vec::<String>::new(), "{messages}");
    }
    let call = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "c" }] });
    let result = json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c" }] });
    for messages in [json!([call, user]), json!([user, user]), json!([call, result, result]), json!([call])] {
        assert_ne!(Wire::Anthropic.mistakes(&json!({ "messages": messages })), Vec::<String>::new(), "{messages}");
    }
    assert_eq!(Wire::Anthropic.mistakes(&json!({ "messages": [user, call, result] })), Vec::<String>::new());
}

#[test]
fn unknown_steps_fail_the_runner() {
    let unknown = |case: &Case| match Run::play(case, &case.input) {
        Err(Trouble::Unknown(word)) => word,
        Err(Trouble::NotBuilt(why)) => panic!("{why}"),
        Ok(mut run) => match judge(&mut run, case) {
            Err(Trouble::Unknown(word)) => word,
            other => panic!("{other:?}"),
        },
    };
    let tool = json!({ "kind": "tool", "policy": "auto", "calls": [] });
    let mut strange = case(tool.clone());
    strange.setup.push(json!({ "op": "summon" }));
    assert!(unknown(&strange).contains("summon"));
    let mut strange = case(tool);
    strange.expect.oracles.push(json!({ "type": "delphi" }));
    assert!(unknown(&strange).contains("delphi"));
    for input in [
        json!({ "kind": "seance" }),
        json!({ "kind": "tool", "policy": "seance", "calls": [] }),
        json!({ "kind": "model", "wire": "seance", "script": [] }),
        json!({ "kind": "model", "wire": "openai-chat", "script": [{ "reply": "seance" }] }),
        json!({ "kind": "model", "wire": "openai-chat", "script": [{ "seance": true }] }),
        json!({ "kind": "rpc", "carrier": "lsp", "steps": [{ "seance": true }] }),
    ] {
        assert!(unknown(&case(input)).contains("seance"));
    }
}
