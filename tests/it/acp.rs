//! The Agent Client Protocol's own transport: one message a line, the same sessions behind it.

use std::time::{Duration, Instant};

use serde_json::json;
use tandem::server::{Ended, Transport};

use crate::driver::World;

#[test]
fn a_conversation_over_lines() {
    let call = json!({ "call": { "id": "c1", "name": "write_file", "arguments": { "path": "a.txt", "content": "hi\n" } } });
    let world = World::new(json!([[call], [{ "text": "written" }]]));
    let mut client = world.acp();
    let answer = client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    assert_eq!(answer["result"]["protocolVersion"], 1);
    assert_eq!(answer["result"]["agentInfo"]["name"], "tandem");
    let session = client.session(&world);
    let id = client.prompt(&session, "write");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "written");
    assert_eq!(world.read("a.txt"), "hi\n");
    assert!(
        client
            .seen
            .iter()
            .all(|message| message["method"] != "_tandem/status"),
        "clients of ACP know no status"
    );
}

#[test]
fn files_go_through_a_client_that_offers_it() {
    let edit =
        json!({ "path": "a.txt", "edits": [{ "old_text": "typed", "new_text": "changed" }] });
    let call = json!({ "call": { "id": "c1", "name": "edit_file", "arguments": edit } });
    let world = World::new(json!([[call], [{ "text": "done" }]]));
    world.write("a.txt", "on disk\n");
    let mut client = world.acp();
    let files = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": files }),
    );
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let id = client.prompt(&session, "change");
    let written = loop {
        let request = client.find(|message| {
            message["method"]
                .as_str()
                .is_some_and(|name| name.starts_with("fs/"))
        });
        assert_eq!(request["params"]["sessionId"], session.as_str());
        if request["method"] == "fs/write_text_file" {
            client.respond(&request, json!({}));
            break request["params"]["content"].clone();
        }
        client.respond(&request, json!({ "content": "typed, not saved\n" }));
    };
    assert_eq!(written, "changed, not saved\n");
    // What reads it back afterwards sees what was written.
    loop {
        let message =
            client.find(|message| message["id"] == id || message["method"] == "fs/read_text_file");
        if message["method"] != "fs/read_text_file" {
            client.seen.push_front(message);
            break;
        }
        client.respond(&message, json!({ "content": written }));
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(
        world.read("a.txt"),
        "on disk\n",
        "the client's buffer was changed, and it saves when it likes"
    );
}

#[test]
fn a_prompt_can_be_cancelled_while_mentions_are_loading() {
    let world = World::new(json!([[{ "text": "Hello." }]]));
    world.write("a.txt", "hi\n");
    let mut client = world.acp();
    let reads = json!({ "fs": { "readTextFile": true } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": reads }),
    );
    let session = client.session(&world);
    for text in ["What is in @a.txt?", "And in @a.txt?"] {
        let id = client.prompt(&session, text);
        client.next("fs/read_text_file");
        let begun = Instant::now();
        client.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "it waited for the client: {:?}",
            begun.elapsed()
        );
    }
    let id = client.prompt(&session, "Hello?");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    let last = world.rehearsal().requests()[0]["messages"].to_string();
    assert!(
        last.contains("What is in @a.txt?") && last.contains("And in @a.txt?"),
        "{last}"
    );
}

#[test]
fn newer_protocol_versions_are_answered_with_ours() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    let answer = client.call("initialize", json!({ "protocolVersion": 7 }));
    assert_eq!(answer["result"]["protocolVersion"], 1);
}

#[test]
fn relative_folders_are_refused_and_mcp_servers_are_optional() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let refused = client.call("session/new", json!({ "cwd": "src" }));
    assert_eq!(refused["error"]["code"], -32602);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("absolute"),
        "{refused}"
    );
    let answer = client.call("session/new", json!({ "cwd": world.path() }));
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
}

#[test]
fn bad_lines_are_answered_and_the_next_works() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.raw(b"not json\n");
    assert_eq!(
        client.find(|message| message["error"]["code"] == -32700)["id"],
        json!(null)
    );
    client.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(client.end(), Ended::Well);
}

#[test]
fn authenticate_reports_a_missing_model_or_key() {
    let world = World::new(json!([]));
    let keyless = [("TANDEM_MODEL", "openai/gpt-5.1")];
    for (environment, problem) in [(None, None), (Some(&keyless[..]), Some("OPENAI_API_KEY"))] {
        let mut client = environment.map_or_else(
            || world.acp(),
            |named| world.stranger_on(Transport::Acp, named),
        );
        let hello = client.call("initialize", json!({ "protocolVersion": 1 }));
        let method = hello["result"]["authMethods"][0]["id"].clone();
        let answer = client.call("authenticate", json!({ "methodId": method }));
        match problem {
            None => assert!(answer["result"].is_object(), "{answer}"),
            Some(key) => {
                assert_eq!(answer["error"]["code"], -32000, "{answer}");
                assert!(
                    answer["error"]["message"].as_str().unwrap().contains(key),
                    "{answer}"
                );
            }
        }
        let unknown = client.call("authenticate", json!({ "methodId": "oauth" }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

#[test]
fn notices_are_sent_as_thoughts() {
    let world = World::new(json!([[{ "text": "Half an" }, { "finish": "length" }]]));
    let mut client = world.acp();
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let session = client.session(&world);
    let id = client.prompt(&session, "Tell me.");
    assert_eq!(client.answer(id)["result"]["stopReason"], "max_tokens");
    let thought = client.update("agent_thought_chunk")["content"]["text"].clone();
    assert!(
        thought.as_str().unwrap().contains("token limit"),
        "{thought}"
    );
    assert_eq!(client.text(), "Half an");
}
