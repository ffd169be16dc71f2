//! Handshake, bad messages, and the ways to end.

use serde_json::{Value, json};
use tandem::server::{Ended, Transport};

use crate::driver::World;

#[test]
fn the_handshake_announces_requested_capabilities() {
    let world = World::new(json!([]));
    let mut client = world.stranger();
    let answer = client.call(
        "initialize",
        json!({ "capabilities": { "experimental": { "tandem": {} } } }),
    );
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    assert_eq!(capabilities["textDocumentSync"]["change"], 2);
    assert_eq!(capabilities["experimental"]["tandem"]["protocolVersion"], 1);
    assert_eq!(
        capabilities["experimental"]["tandem"]["agentInfo"]["name"],
        "tandem"
    );
    assert_eq!(
        capabilities.get("executeCommandProvider"),
        None,
        "a plugin has its own commands"
    );
}

#[test]
fn lsp_only_clients_get_commands_and_no_sessions() {
    let world = World::new(json!([]));
    let mut client = world.stranger();
    let encodings = json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } });
    let answer = client.call("initialize", json!({ "capabilities": encodings }));
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["positionEncoding"], "utf-8");
    assert_eq!(capabilities.get("experimental"), None);
    assert!(
        capabilities["executeCommandProvider"]["commands"]
            .as_array()
            .unwrap()
            .contains(&json!("tandem.ask"))
    );
    let refused = client.call(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [] }),
    );
    assert_eq!(refused["error"]["code"], -32600);
}

#[test]
fn clients_that_reorder_changes_are_asked_for_full_sync() {
    let world = World::new(json!([]));
    for (name, version, expected) in [
        ("helix", "25.01.1", 1),
        ("helix", "24.7", 1),
        ("helix", "25.07", 2),
        ("helix", "26.1.2 (abc)", 2),
        ("vim", "1.0", 2),
    ] {
        let client_info = json!({ "name": name, "version": version });
        let answer = world.stranger().call(
            "initialize",
            json!({ "clientInfo": client_info, "capabilities": {} }),
        );
        assert_eq!(
            answer["result"]["capabilities"]["textDocumentSync"]["change"], expected,
            "{name} {version}"
        );
    }
}

#[test]
fn nothing_is_answered_before_initialize() {
    let world = World::new(json!([]));
    for transport in [Transport::Lsp, Transport::Acp] {
        let mut client = world.stranger_on(transport, &[]);
        let answer = client.call("session/new", json!({ "cwd": "/", "mcpServers": [] }));
        assert_eq!(answer["error"]["code"], -32002);
    }
}

#[test]
fn bad_messages_are_answered_and_the_next_works() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let cases: [(&str, i64, Value); 4] = [
        ("{nonsense", -32700, Value::Null),
        ("[1, 2]", -32600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}"#,
            -32600,
            json!(1.5),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"no/such"}"#,
            -32601,
            json!("x"),
        ),
    ];
    for (body, code, id) in cases {
        client.raw(frame(body).as_bytes());
        let answer = client.find(|message| message["error"]["code"] == code);
        assert_eq!(answer["id"], id, "{body}");
    }
    let missing = client.call("session/new", json!({ "mcpServers": [] }));
    assert_eq!(missing["error"]["code"], -32602);
    assert!(
        missing["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cwd"),
        "{missing}"
    );
    let unknown = client.call(
        "session/prompt",
        json!({ "sessionId": "nope", "prompt": [] }),
    );
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("session/new"),
        "{unknown}"
    );
    client.session(&world);
}

#[test]
fn exit_succeeds_only_after_shutdown() {
    let world = World::new(json!([]));
    let mut client = world.client();
    assert_eq!(client.call("shutdown", Value::Null)["result"], Value::Null);
    let late = client.call(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [] }),
    );
    assert_eq!(late["error"]["code"], -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.end(), Ended::Well);

    let mut client = world.client();
    client.notify("exit", Value::Null);
    assert_eq!(client.end(), Ended::Abruptly);
}

#[test]
fn a_non_numeric_length_ends_the_server_with_a_reason() {
    let world = World::new(json!([]));
    let mut client = world.client();
    client.raw(b"Content-Length: many\r\n\r\n{}");
    assert!(matches!(client.end(), Ended::Fatally(reason) if reason.contains("many")));
}
