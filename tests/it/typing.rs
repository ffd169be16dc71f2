//! A local server processes the beginning of a request while the person types the prompt.

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World};

/// A client with this model configured at the scripted server.
fn client(world: &World, provider: &str, model: &str) -> Client {
    let mut client = world.stranger_on(Transport::Lsp, &[("TANDEM_API_KEY", "sk-test")]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let settings =
        json!({ "base-url": world.model.base_url(), "api": "chat", "models": { (model): {} } });
    params["initializationOptions"] =
        json!({ "model": format!("{provider}/{model}"), "providers": { (provider): settings } });
    client.shake_hands(params);
    client
}

fn types(client: &mut Client, session: &str) {
    client.notify("_tandem/didStartTyping", json!({ "sessionId": session }));
}

/// The part of a request that a server renders before the last message.
fn beginning(request: &Value) -> (Value, Vec<Value>) {
    let messages = request["messages"].as_array().unwrap();
    let before = messages[..messages.len() - 1].to_vec();
    (request["tools"].clone(), before)
}

#[test]
fn a_local_server_preloads_the_beginning_of_the_prompt() {
    let answer = |text: &str| json!([{ "text": text }]);
    let never = json!([{ "gate": "never" }]);
    let world = World::new(json!([never, answer("one"), answer("e"), answer("two")]));
    let mut client = client(&world, "llamacpp", "m");
    let session = client.session(&world);

    types(&mut client, &session);
    world.wait(world.rehearsal().waiting_at("never"));
    // Once per prompt, which ends it.
    types(&mut client, &session);
    let prompt = client.prompt(&session, "hi");
    world.wait(world.rehearsal().closed_early(1));
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");

    types(&mut client, &session);
    world.wait(world.rehearsal().requested(3));
    let prompt = client.prompt(&session, "and on");
    client.answer(prompt);

    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    for pair in requests.chunks(2) {
        assert_eq!(pair[0]["max_tokens"], 1, "no output is wanted");
        assert_eq!(pair[1]["max_tokens"], Value::Null);
        assert_eq!(beginning(&pair[0]), beginning(&pair[1]));
    }
    assert_eq!(beginning(&requests[2]).1.len(), 3, "system, hi, one");
}

#[test]
fn a_paid_model_gets_no_request_before_the_prompt() {
    for (provider, model) in [("company", "m"), ("ollama", "gpt-oss:120b-cloud")] {
        let world = World::new(json!([[{ "text": "one" }]]));
        let mut client = client(&world, provider, model);
        let session = client.session(&world);
        types(&mut client, &session);
        let prompt = client.prompt(&session, "hi");
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(world.rehearsal().requests().len(), 1, "{provider}/{model}");
    }
}

#[test]
fn nothing_is_evaluated_while_a_turn_runs() {
    let world = World::new(json!([[{ "gate": "open" }, { "text": "one" }]]));
    let mut client = client(&world, "llamacpp", "m");
    let session = client.session(&world);
    let prompt = client.prompt(&session, "hi");
    world.wait(world.rehearsal().waiting_at("open"));
    types(&mut client, &session);
    // The session answers in order, so it has processed the notification.
    client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": "list" }),
    );
    world.rehearsal().open("open");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(world.rehearsal().requests().len(), 1);
}
