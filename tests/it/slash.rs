//! Slash commands and the options of a session: model and reasoning effort.

use std::path::Path;

use serde_json::{Value, json};

use crate::driver::{Client, World};

/// A client with a second model configured at the same endpoint.
fn client(world: &World) -> Client {
    let mut client = world.stranger();
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let other = json!({ "base-url": world.model.base_url(), "api": "responses", "api-key-env": "", "models": { "big": {} } });
    params["initializationOptions"] = json!({ "providers": { "other": other } });
    client.shake_hands(params);
    client
}

fn ask(client: &mut Client, session: &str, text: &str) -> Value {
    let id = client.prompt(session, text);
    client.answer(id)
}

fn said(client: &mut Client) -> String {
    client.update("agent_message_chunk")["content"]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn commands_are_announced_and_local_ones_need_no_model() {
    let world = World::new(json!([]));
    world.write(
        ".home/config/commands/fix.md",
        "# Fix an issue\nFix $ARGUMENTS.",
    );
    world.write(".home/config/commands/help.md", "hidden by ours");
    let mut client = client(&world);
    let session = client.session(&world);
    let announced = client.update("available_commands_update");
    let commands = announced["availableCommands"].as_array().unwrap();
    let names: Vec<_> = commands
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "compact", "undo", "redo", "review", "try", "jobs", "model", "help", "fix"
        ]
    );
    for page in ["docs/context.md", "editors/neovim/doc/tandem.txt"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let text = std::fs::read_to_string(path).unwrap();
        for name in &names[..8] {
            assert!(text.contains(&format!("/{name}")), "{page}: {name}");
        }
    }
    assert_eq!(commands[8]["description"], "Fix an issue");
    assert_eq!(
        ask(&mut client, &session, "/help")["result"]["stopReason"],
        "end_turn"
    );
    assert!(said(&mut client).contains("`/fix`: Fix an issue"));
    assert_eq!(
        ask(&mut client, &session, "/model")["result"]["stopReason"],
        "end_turn"
    );
    let models = said(&mut client);
    assert!(
        models.contains("- custom/scripted (in use)") && models.contains("- other/big\n"),
        "{models}"
    );
    assert_eq!(
        ask(&mut client, &session, "/undo")["result"]["stopReason"],
        "end_turn"
    );
    assert!(said(&mut client).contains("nothing"));
    assert_eq!(
        ask(&mut client, &session, "/model nobody/x")["result"]["stopReason"],
        "end_turn"
    );
    assert!(said(&mut client).contains("nobody"));
    assert_eq!(world.rehearsal().requests().len(), 0);
}

#[test]
fn prompts_behind_an_undo_wait_for_it() {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "x" } } });
    let world = World::new(
        json!([[call], [{ "gate": "go" }, { "text": "Done." }], [{ "text": "Hello." }]]),
    );
    let mut client = client(&world);
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let ids = ["write it", "/undo", "hello"].map(|text| client.prompt(&session, text));
    world.wait(world.rehearsal().waiting_at("go"));
    world.rehearsal().open("go");
    client.answer(ids[2]);
    let told = |message: &Value| match message["params"]["update"]["sessionUpdate"].as_str() {
        Some("user_message_chunk" | "agent_message_chunk") => {
            message["params"]["update"]["content"]["text"]
                .as_str()
                .map(str::to_owned)
        }
        _ => ids
            .iter()
            .position(|id| message["id"] == *id)
            .map(|index| format!("answer {index}")),
    };
    let order: Vec<_> = client.seen.iter().filter_map(told).collect();
    let undone = "undid “write it”: a.txt";
    assert_eq!(
        order,
        [
            "Done.", "answer 0", "/undo", undone, "answer 1", "hello", "Hello."
        ]
    );
    ids.iter().take(2).for_each(|id| _ = client.answer(*id));
    assert!(!world.path().join("a.txt").exists());
}

#[test]
fn user_commands_are_prompts_and_unknown_ones_are_sent_verbatim() {
    let world = World::new(json!([[{ "text": "ok" }], [{ "text": "ok" }]]));
    world.write(".home/config/commands/fix.md", "Fix $ARGUMENTS.");
    let mut client = client(&world);
    let session = client.session(&world);
    ask(&mut client, &session, "/fix the lamp");
    ask(&mut client, &session, "/usr/bin/env is a path");
    let messages = world.rehearsal().requests()[1]["messages"].clone();
    assert_eq!(messages[1]["content"], "Fix the lamp.");
    assert_eq!(messages[3]["content"], "/usr/bin/env is a path");
}

#[test]
fn the_compact_command_leaves_a_summary() {
    let world = World::new(
        json!([[{ "text": "long ".repeat(100) }], [{ "text": "In short." }], [{ "text": "yes" }]]),
    );
    let mut client = client(&world);
    let session = client.session(&world);
    ask(&mut client, &session, "talk");
    assert_eq!(
        ask(&mut client, &session, "/compact")["result"]["stopReason"],
        "end_turn"
    );
    ask(&mut client, &session, "still there?");
    let messages = world.rehearsal().requests()[2]["messages"].clone();
    let roles: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(messages[2]["content"], "In short.");
}

#[test]
fn another_model_continues_with_the_chosen_effort() {
    let world = World::new(
        json!([[{ "reasoning": "hm" }, { "text": "one" }], [{ "text": "two" }], [{ "text": "three" }]]),
    );
    let mut client = client(&world);
    let session = client.session(&world);
    ask(&mut client, &session, "first");
    let set = |client: &mut Client, id: &str, value: &str| {
        let answer = client.call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": id, "value": value }),
        );
        let options = answer["result"]["configOptions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        options
            .into_iter()
            .find(|option| option["id"] == id)
            .map(|option| option["currentValue"].clone())
    };
    assert_eq!(set(&mut client, "model", "no/such"), None, "an error");
    assert_eq!(set(&mut client, "effort", "enormous"), None);
    assert_eq!(set(&mut client, "effort", "high"), Some(json!("high")));
    ask(&mut client, &session, "second");
    assert_eq!(world.rehearsal().requests()[1]["reasoning_effort"], "high");
    assert_eq!(
        set(&mut client, "model", "other/big"),
        Some(json!("other/big"))
    );
    let update = client.find(|message| {
        let options = &message["params"]["update"]["configOptions"];
        options.as_array().is_some_and(|all| {
            all.iter()
                .any(|option| option["currentValue"] == "other/big")
        })
    });
    assert_eq!(
        update["params"]["update"]["sessionUpdate"],
        "config_option_update"
    );
    ask(&mut client, &session, "third");
    let last = world.rehearsal().requests()[2].clone();
    assert_eq!(last["model"], "big");
    assert_eq!(
        last["reasoning"]["effort"], "high",
        "the other API has a field of its own"
    );
    let input = last["input"].to_string();
    assert!(
        input.contains("first") && input.contains("two") && !input.contains("hm"),
        "{input}"
    );
}
