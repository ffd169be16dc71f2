//! A question and its answer, and everything that keeps a model from answering.

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::World;
#[cfg(unix)]
use crate::git::shell;

#[test]
fn text_and_reasoning_stream_before_the_prompt_is_answered() {
    let world = World::new(
        json!([[{ "reasoning": "hm" }, { "text": "Hello" }, { "gate": "half" }, { "text": ", world" }]]),
    );
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "hi");
    assert_eq!(
        client.update("agent_thought_chunk")["content"]["text"],
        "hm"
    );
    assert_eq!(
        client.update("agent_message_chunk")["content"]["text"],
        "Hello"
    );
    world.rehearsal().open("half");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(
        client.text(),
        ", world",
        "updates of a turn precede its answer"
    );
}

#[test]
fn conversations_keep_history_and_a_stable_prefix() {
    let world = World::new(json!([[{ "text": "one" }], [{ "text": "two" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    for question in ["first", "second"] {
        let id = client.prompt(&session, question);
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    }
    let requests = world.rehearsal().requests();
    let (first, second) = (&requests[0]["messages"], &requests[1]["messages"]);
    let (first, second) = (first.as_array().unwrap(), second.as_array().unwrap());
    assert_eq!(first[..], second[..first.len()]);
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    assert_eq!(second[first.len()]["content"], "one");
    assert!(
        requests[0].to_string().len() <= 8_250,
        "the first request is {} bytes",
        requests[0].to_string().len()
    );
}

#[test]
fn selections_include_unsaved_changes() {
    let world = World::new(json!([[{ "text": "ok" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let resource =
        json!({ "uri": format!("{}#L3-L4", world.uri("a.rs")), "text": "fn unsaved() {}" });
    let terminal = json!({ "uri": "bash", "text": "$ ls" });
    let prompt = json!([
        { "type": "text", "text": "why?" },
        { "type": "resource", "resource": resource },
        { "type": "resource", "resource": terminal },
    ]);
    let id = client.ask(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    client.answer(id);
    let request = world.rehearsal().requests()[0].to_string();
    assert!(
        request.contains("fn unsaved() {}") && request.contains("lines 3-4 (as it is now)"),
        "{request}"
    );
    assert!(request.contains("From bash:"), "{request}");
}

#[test]
fn two_sessions_run_side_by_side() {
    let world =
        World::new(json!([[{ "gate": "hold" }, { "text": "slow" }], [{ "text": "quick" }]]));
    let mut client = world.client();
    let (one, other) = (client.session(&world), client.session(&world));
    let slow = client.prompt(&one, "slow");
    world.wait(world.rehearsal().waiting_at("hold"));
    let quick = client.prompt(&other, "quick");
    assert_eq!(client.answer(quick)["result"]["stopReason"], "end_turn");
    world.rehearsal().open("hold");
    assert_eq!(client.answer(slow)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_refused_key_is_an_error_with_a_remedy() {
    let unauthorized =
        json!({ "status": 401, "body": { "error": { "message": "Incorrect API key provided" } } });
    let world = World::new(json!([[unauthorized], [{ "text": "welcome" }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "hi");
    let error = client.answer(id)["error"].clone();
    assert_eq!(error["code"], -32000);
    assert_eq!(error["data"]["code"], "auth");
    assert_eq!(error["data"]["status"], 401);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("Incorrect API key provided"),
        "{error}"
    );
    let id = client.prompt(&session, "again");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
}

#[test]
fn without_a_model_the_error_names_three_remedies() {
    let world = World::new(json!([]));
    for transport in [Transport::Lsp, Transport::Acp] {
        let mut client = world.stranger_on(transport, &[]);
        client.call(
            "initialize",
            json!({ "protocolVersion": 1, "capabilities": { "experimental": { "tandem": {} } } }),
        );
        let session = client.session(&world);
        let id = client.prompt(&session, "hi");
        let error = client.answer(id)["error"].clone();
        assert_eq!(error["data"]["code"], "no_model");
        let words = error["message"].as_str().unwrap();
        for way in ["TANDEM_BASE_URL", "config.toml", "API_KEY"] {
            assert!(words.contains(way), "{way} is missing in: {words}");
        }
    }
}

#[test]
fn blank_prompts_are_refused_with_a_reason() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "  \n");
    assert_eq!(client.answer(id)["error"]["code"], -32602);
}

#[test]
fn mode_changes_are_announced_to_the_client() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let answer = client.call(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [] }),
    );
    assert_eq!(answer["result"]["modes"]["currentModeId"], "ask");
    let session = answer["result"]["sessionId"].clone();
    let set = client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    assert_eq!(set["result"], json!({}));
    assert_eq!(
        client.update("current_mode_update")["currentModeId"],
        "plan"
    );
    let wrong = client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "yolo" }),
    );
    assert_eq!(wrong["error"]["code"], -32602);
    let option = json!({ "sessionId": session, "configId": "mode", "value": "edit" });
    let options = client.call("session/set_config_option", option);
    let mode = options["result"]["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|o| o["id"] == "mode")
        .unwrap()
        .clone();
    assert_eq!(mode["currentValue"], "edit");
    let _: Value = client.update("config_option_update");
}

#[cfg(unix)]
#[test]
fn the_environment_stays_that_of_the_first_prompt_even_in_another_process() {
    let world = World::new(json!([[{ "text": "One." }], [{ "text": "Two." }]]));
    world.write(".gitignore", ".home\n");
    shell(&world.path(), "git init -q -b trunk .");
    shell(
        &world.path(),
        "git add -A && git commit -q -m one && echo new > new.txt && echo '* filter=own' > .gitattributes",
    );
    // A program named by a repository is not run: nobody approved it.
    shell(
        &world.path(),
        "git config filter.own.clean 'touch ran; cat' && git config core.fsmonitor 'touch ran'",
    );
    world.write(".gitignore", ".home\nran\n");
    assert_eq!(world.run(&["run", "hi"]).code, Some(0));
    assert!(!world.path().join("ran").exists());
    shell(
        &world.path(),
        "git config --unset core.fsmonitor && git add -A && git commit -q -m two && git switch -q -c other",
    );
    assert_eq!(world.run(&["run", "--continue", "again"]).code, Some(0));
    let requests = world.rehearsal().requests();
    let [first, second] =
        [0, 1].map(|at: usize| requests[at]["messages"][0]["content"].as_str().unwrap());
    let line = first
        .lines()
        .find(|line| line.starts_with("System: "))
        .unwrap();
    for part in [
        std::env::consts::OS,
        "shell: ",
        "today: 20",
        "git branch trunk",
        "commands: ",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(
        line.contains("commands: sandboxed"),
        line.contains("trunk, 3 changed files;"),
        "{line}"
    );
    assert_eq!(first, second);
}
