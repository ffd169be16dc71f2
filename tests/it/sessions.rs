//! Sessions that last: resumed by another process or over the other transport, listed, deleted.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::driver::{Client, World, choose};
use serde_json::{Value, json};

fn script() -> Value {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "new.txt", "content": "new\n" } } });
    json!([
        [{ "reasoning": "hm" }, { "text": "I write it." }, call],
        [{ "text": "Done." }],
        [{ "text": "It was new.txt." }],
    ])
}

/// What was shown of a session, except notices shown only while it happens.
fn shown(client: &Client, session: &str) -> Vec<Value> {
    let mut shown: Vec<Value> = Vec::new();
    let of = |message: &&Value| {
        message["method"] == "session/update" && message["params"]["sessionId"] == session
    };
    for message in client.seen.iter().filter(of) {
        let update = &message["params"]["update"];
        let kind = update["sessionUpdate"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                match shown
                    .last_mut()
                    .filter(|last| last["kind"] == kind.as_str())
                {
                    Some(last) => {
                        last["text"] = format!("{}{text}", last["text"].as_str().unwrap()).into();
                    }
                    None => shown.push(json!({ "kind": kind, "text": text })),
                }
            }
            "tool_call_update"
                if update["status"] == "completed" || update["status"] == "failed" =>
            {
                shown.push(json!({ "kind": kind, "status": update["status"], "content": update["content"] }));
            }
            _ => {}
        }
    }
    shown
}

fn open(client: &mut Client, world: &World, method: &str, session: &str) -> Value {
    let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    client.call(method, params)["result"].clone()
}

/// A turn in mode `edit`, so that nothing requires approval.
fn turn(client: &mut Client, world: &World, text: &str) -> String {
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(&session, text);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    session
}

fn refused(client: &mut Client, session: &str, cwd: Value) -> Value {
    let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    client.call("session/load", params)["error"].clone()
}

#[test]
fn closing_a_loading_session_answers_its_requests() {
    let world = World::new(script());
    let mut client = world.client();
    let session = turn(&mut client, &world, "write new.txt");
    client.call("session/close", json!({ "sessionId": session }));
    for method in ["session/close", "session/delete"] {
        let load = client.ask(
            "session/load",
            json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] }),
        );
        let close = client.ask(method, json!({ "sessionId": session }));
        let loaded = client.answer(load);
        assert_ne!(loaded["error"]["code"], -32603, "{loaded}");
        assert!(client.answer(close)["result"].is_object(), "{method}");
    }
}

#[test]
fn conversations_continue_in_another_process_and_transport() {
    let world = World::new(script());
    let mut first = world.client();
    let session = turn(&mut first, &world, "write new.txt");
    let before = shown(&first, &session);
    first.end();

    let mut second = world.acp();
    second.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let listed = second.call("session/list", json!({ "cwd": world.path() }))["result"].clone();
    assert_eq!(
        listed["sessions"][0]["sessionId"],
        session.as_str(),
        "{listed}"
    );
    assert_eq!(listed["sessions"][0]["title"], "write new.txt");
    let loaded = open(&mut second, &world, "session/load", &session);
    assert_eq!(loaded["modes"]["currentModeId"], "edit");
    assert_eq!(shown(&second, &session), before);
    let id = second.prompt(&session, "which file?");
    assert_eq!(second.answer(id)["result"]["stopReason"], "end_turn");
    let request = world.rehearsal().requests().pop().unwrap();
    let roles: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"],
        "{request}"
    );
    second.end();
}

#[test]
fn resuming_replays_nothing_and_deleting_leaves_nothing() {
    let world = World::new(script());
    let mut first = world.client();
    let session = turn(&mut first, &world, "write new.txt");
    first.end();
    let mut second = world.client();
    open(&mut second, &world, "session/resume", &session);
    assert_eq!(shown(&second, &session), Vec::<Value>::new());
    second.call("session/delete", json!({ "sessionId": session }));
    let listed = second.call("session/list", json!({}))["result"].clone();
    assert_eq!(listed["sessions"], json!([]));
    let error = refused(&mut second, &session, json!(world.path()));
    assert_eq!(error["code"], -32602, "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("unknown session"),
        "{error}"
    );
    second.end();
}

#[test]
fn a_session_that_is_open_elsewhere_is_refused_in_plain_words() {
    let world = World::new(script());
    let mut first = world.client();
    let session = turn(&mut first, &world, "write new.txt");
    let mut second = world.client();
    let error = refused(&mut second, &session, json!(world.path()));
    assert_eq!(
        error["message"],
        "the session is open in another window or editor; close it there first"
    );
    let relative = refused(&mut second, &session, json!("here"));
    assert!(
        relative["message"].as_str().unwrap().contains("absolute"),
        "{relative}"
    );
    second.end();
    first.end();
}

/// Two models at the same endpoint, one of them the default.
fn with_two_models(world: &World) -> Client {
    let mut client = world.stranger();
    let mut hello = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let other =
        json!({ "base-url": world.model.base_url(), "api-key-env": "", "models": { "big": {} } });
    hello["initializationOptions"] = json!({ "providers": { "other": other } });
    client.shake_hands(hello);
    client
}

fn current(answer: &Value) -> Vec<Value> {
    answer["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["currentValue"].clone())
        .collect()
}

/// llama-server names its model by the path of its file.
#[test]
fn a_model_named_by_a_file_is_listed_by_the_name_of_the_file() {
    let world = World::new(json!([]));
    let mut client = world.stranger();
    let mut hello = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let models = json!({ "/srv/models/Coder-7B.Q4_K_M.gguf": {}, "unsloth/Coder-GGUF": {} });
    let own = json!({ "base-url": world.model.base_url(), "api-key-env": "", "models": models });
    hello["initializationOptions"] = json!({ "providers": { "own": own } });
    client.shake_hands(hello);
    let new = json!({ "cwd": world.path(), "mcpServers": [] });
    let new = client.call("session/new", new);
    let options = new["result"]["configOptions"].as_array().unwrap();
    let model = options.iter().find(|it| it["id"] == "model").unwrap();
    let listed = |value: &str| {
        let mut all = model["options"].as_array().unwrap().iter();
        all.find(|it| it["value"] == value).unwrap()["name"].clone()
    };
    assert_eq!(
        listed("own//srv/models/Coder-7B.Q4_K_M.gguf"),
        "own/Coder-7B.Q4_K_M"
    );
    assert_eq!(listed("own/unsloth/Coder-GGUF"), "own/unsloth/Coder-GGUF");
}

#[test]
fn mode_model_and_effort_are_restored() {
    let world = World::new(script());
    let mut first = with_two_models(&world);
    let session = turn(&mut first, &world, "write new.txt");
    for (option, value) in [("model", "other/big"), ("effort", "high"), ("mode", "plan")] {
        let set = json!({ "sessionId": session, "configId": option, "value": value });
        first.call("session/set_config_option", set);
    }
    first.end();

    let mut second = with_two_models(&world);
    let loaded = open(&mut second, &world, "session/load", &session);
    assert_eq!(loaded["modes"]["currentModeId"], "plan");
    assert_eq!(current(&loaded), ["plan", "other/big", "high"]);
    let id = second.prompt(&session, "which file?");
    second.answer(id);
    let request = world.rehearsal().requests().pop().unwrap();
    assert_eq!(
        (&request["model"], &request["reasoning_effort"]),
        (&json!("big"), &json!("high"))
    );
    second.end();

    let mut third = world.client();
    let resumed = open(&mut third, &world, "session/resume", &session);
    assert_eq!(
        current(&resumed),
        ["plan", "custom/scripted", "default"],
        "there is no such model any more"
    );
    let said =
        third.find(|message| message["params"]["message"].is_string())["params"]["message"].clone();
    let expected = "this session used other/big, which is not available, so custom/scripted continues: model \
                    `other/big` has an unknown provider";
    assert!(said.as_str().unwrap().starts_with(expected), "{said}");
    third.end();
}

#[test]
fn a_saved_prompt_is_shown_with_its_context() {
    let world = World::new(json!([[{ "text": "A dot." }]]));
    let uri = world.uri("a.rs");
    let attached = json!([
        { "type": "resource", "resource": { "uri": format!("{uri}#L1-L2"), "mimeType": "text/plain", "text": "fn a" } },
        { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
        { "type": "resource_link", "uri": uri, "name": "a.rs" },
    ]);
    world.write("a.rs", "fn a\n");
    let mut first = world.client();
    let session = first.session(&world);
    let mut prompt = attached.as_array().unwrap().clone();
    prompt.insert(0, json!({ "type": "text", "text": "what is it?" }));
    let id = first.ask(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    first.answer(id);
    first.end();

    let mut second = world.client();
    open(&mut second, &world, "session/load", &session);
    let message = second.update("user_message_chunk");
    assert_eq!(message["content"]["text"], "what is it?");
    assert_eq!(
        message["_meta"],
        json!({ "tandem/turn": 1, "tandem/attached": attached })
    );
    second.end();

    let mut third = world.acp();
    third.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    open(&mut third, &world, "session/load", &session);
    third.update("user_message_chunk");
    for block in attached.as_array().unwrap() {
        assert_eq!(third.update("user_message_chunk")["content"], *block);
    }
}

#[test]
fn the_model_learns_after_a_restart_what_became_of_a_trial() {
    let write = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "a" } } });
    for (answers, expected) in [
        (false, "the changes of that turn were not applied"),
        (true, "the user applied the changes of that turn"),
    ] {
        let world = World::new(json!([[write], [{ "text": "Done." }], [{ "text": "I see." }]]));
        let mut first = world.client();
        let session = first.session(&world);
        first.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "edit" }),
        );
        let trial = first.prompt(&session, "/try write it");
        let request = first.next("session/request_permission");
        if answers {
            choose(&mut first, &request, "allow_once");
            first.answer(trial);
        }
        first.end();
        assert_eq!(world.path().join("a.txt").exists(), answers);

        let mut second = world.client();
        open(&mut second, &world, "session/load", &session);
        assert_eq!(
            second.update("user_message_chunk")["content"]["text"],
            "/try write it"
        );
        let id = second.prompt(&session, "what became of it?");
        second.answer(id);
        let told = world.rehearsal().requests().pop().unwrap()["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(told.contains(expected), "{told}");
    }
}

/// A loaded session shows how each turn that did not end by itself ended.
#[test]
fn a_loaded_conversation_marks_the_turns_that_were_cut() {
    let hanging = json!([{ "text": "Half an answer" }, { "hang": true }]);
    let whole = json!([{ "text": "Done." }]);
    let world = World::new(json!([hanging, whole, hanging, hanging]));
    let mut client = world.client();
    let session = client.session(&world);
    let stopped = client.prompt(&session, "tell me");
    client.find(|message| message["params"]["update"]["content"]["text"] == "Half an answer");
    client.notify("session/cancel", json!({ "sessionId": session }));
    client.answer(stopped);
    let whole = client.prompt(&session, "tell me");
    client.answer(whole);
    client.end();
    let mut killed = world
        .command(&["run", "--json", "--continue", "tell me"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let half = lines.map(Result::unwrap).find(|line| line.contains("Half"));
    assert!(half.is_some());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut client = world.client();
    open(&mut client, &world, "session/resume", &session);
    client.prompt(&session, "tell me");
    client.find(|message| message["params"]["update"]["content"]["text"] == "Half an answer");
    client.end(); // whatever arrived before the process ended is kept

    let mut client = world.client();
    open(&mut client, &world, "session/load", &session);
    let marks: Vec<Value> = client
        .seen
        .iter()
        .filter_map(|message| {
            let update = &message["params"]["update"];
            match update["sessionUpdate"].as_str()? {
                "user_message_chunk" => Some(json!("asked")),
                "agent_message_chunk" => Some(update["content"]["text"].clone()),
                "session_info_update" => update["_meta"].get("tandem/stopped").cloned(),
                _ => None,
            }
        })
        .collect();
    let expected = [
        "asked",
        "Half an answer",
        "cancelled",
        "asked",
        "Done.",
        "asked",
        "interrupted",
        "asked",
        "Half an answer",
        "cancelled",
    ];
    assert_eq!(marks, expected);
}

#[test]
fn a_session_that_began_with_a_command_is_listed() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    let mut client = world.client();
    let session = client.session(&world);
    for words in ["/compact", "hello"] {
        let id = client.prompt(&session, words);
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    }
    let listed = client.call("session/list", json!({ "cwd": world.path() }))["result"].clone();
    assert_eq!(listed["sessions"][0]["title"], "hello", "{listed}");
}
