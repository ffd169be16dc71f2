//! Servers of the client itself, over its own connection (`mcp/message`).

use serde_json::{Value, json};
use tandem::server::Transport;

use super::{call, offered, results};
use crate::driver::{Client, World};

/// A client with such a server, and its session.
fn start(world: &World, transport: Transport) -> (Client, String) {
    let mut client = match transport {
        Transport::Lsp => world.client(),
        Transport::Acp => {
            let mut client = world.acp();
            let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
            let hello = client.call("initialize", hello);
            let can = &hello["result"]["agentCapabilities"]["mcpCapabilities"];
            assert_eq!(can["acp"], true);
            client
        }
    };
    let server = json!({ "type": "acp", "name": "own", "serverId": "s-1" });
    let params = json!({ "cwd": world.path(), "mcpServers": [server] });
    let answer = client.call("session/new", params);
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    (client, session)
}

/// The next request to the server, which must have this method.
fn asked(client: &mut Client, method: &str) -> Value {
    let request = client.next("mcp/message");
    let params = &request["params"];
    assert_eq!(
        (&params["serverId"], &params["method"]),
        (&json!("s-1"), &json!(method))
    );
    let version = &params["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28", "each request describes itself");
    request
}

fn say(client: &mut Client, request: &Value, result: &Value) {
    client.respond(request, json!({ "result": result }));
}

/// Answers the requests before a turn. The server has one tool, and reports changes if `listens`.
fn describe(client: &mut Client, listens: bool) -> Option<Value> {
    let request = asked(client, "server/discover");
    let tools = json!({ "listChanged": listens });
    let found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": tools } });
    say(client, &request, &found);
    // The requests to list and to listen are sent in parallel.
    let mut listening = None;
    for _ in 0..=usize::from(listens) {
        let request = client.next("mcp/message");
        match request["params"]["method"].as_str() {
            Some("tools/list") => list(client, &request, "query"),
            Some("subscriptions/listen") => listening = Some(request),
            other => panic!("{other:?}"),
        }
    }
    listening
}

fn list(client: &mut Client, request: &Value, name: &str) {
    say(client, request, &json!({ "tools": [{ "name": name }] }));
}

fn allow(client: &mut Client) {
    let question = client.next("session/request_permission");
    let yes = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    client.respond(&question, yes);
}

#[test]
fn tools_of_the_client_are_offered_approved_and_called() {
    for transport in [Transport::Lsp, Transport::Acp] {
        let calls = [
            call("own__query", json!({ "q": 1 })),
            call("own__query", json!({ "q": 2 })),
            call("own__query", json!({ "q": 3 })),
        ];
        let world = World::new(
            calls
                .into_iter()
                .chain([json!([{ "text": "done" }])])
                .collect(),
        );
        let (mut client, session) = start(&world, transport);
        let id = client.prompt(&session, "go");
        describe(&mut client, false);
        let answers = [
            json!({ "result": { "content": [{ "type": "text", "text": "42 rows" }] } }),
            json!({ "error": { "code": -32000, "message": "no such table" } }),
            json!({ "nonsense": true }),
        ];
        for (number, answer) in (1..).zip(answers) {
            allow(&mut client);
            let request = asked(&mut client, "tools/call");
            let params = &request["params"]["params"];
            assert_eq!(
                (&params["name"], &params["arguments"]),
                (&json!("query"), &json!({ "q": number }))
            );
            client.respond(&request, answer);
        }
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
        let results = results(&world);
        assert_eq!(results[0], "42 rows");
        assert!(results[1].contains("no such table"), "{results:?}");
        assert!(
            results[2].contains("an error without a message"),
            "{results:?}"
        );
    }
}

#[test]
fn the_client_tells_what_changes_while_tandem_listens() {
    let world = World::new(json!([[{ "text": "One." }], [{ "text": "Two." }]]));
    let (mut client, session) = start(&world, Transport::Acp);
    let id = client.prompt(&session, "go");
    let listening = describe(&mut client, true).unwrap();
    client.answer(id);
    let changed = "notifications/tools/list_changed";
    for request in [json!("nobody's"), listening["params"]["requestId"].clone()] {
        let notification = json!({ "serverId": "s-1", "requestId": request, "method": changed });
        client.notify("mcp/message", notification);
    }
    let request = asked(&mut client, "tools/list");
    list(&mut client, &request, "search");
    let id = client.prompt(&session, "go");
    client.answer(id);
    let requests = world.rehearsal().requests();
    assert_eq!(offered(&requests[0]), ["own__query"]);
    assert_eq!(offered(&requests[1]), ["own__search"]);
}

#[test]
fn a_call_that_is_cancelled_is_cancelled_at_the_client() {
    for (transport, method, field) in [
        (Transport::Acp, "$/cancel_request", "requestId"),
        (Transport::Lsp, "$/cancelRequest", "id"),
    ] {
        let world = World::new(json!([call("own__query", json!({}))]));
        let (mut client, session) = start(&world, transport);
        let id = client.prompt(&session, "go");
        describe(&mut client, false);
        allow(&mut client);
        let request = asked(&mut client, "tools/call");
        client.notify("session/cancel", json!({ "sessionId": session }));
        let cancelled = client.next(method);
        assert_eq!(cancelled["params"][field], request["id"]);
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    }
}

#[test]
fn a_client_that_does_not_know_its_server_stops_no_turn() {
    let world = World::new(json!([[{ "text": "Without." }]]));
    let (mut client, session) = start(&world, Transport::Acp);
    let id = client.prompt(&session, "go");
    for _ in 0..2 {
        let request = client.next("mcp/message");
        let error = json!({ "code": -32601, "message": "no mcp/message here" });
        client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
        if request["params"]["method"] != "server/discover" {
            break;
        }
    }
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "Without.");
}
