//! The schema of the Agent Client Protocol, version 1, generated from the official types: every message that these
//! tests' clients receive is checked against it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};
use tandem::protocol::acp;

type Schema = (&'static str, fn() -> Value);

/// The parameters of the server's messages, by method.
const MESSAGES: [Schema; 8] = [
    ("$/cancel_request", of::<acp::CancelRequestNotification>),
    ("session/update", of::<acp::SessionNotification>),
    (
        "session/request_permission",
        of::<acp::RequestPermissionRequest>,
    ),
    ("elicitation/create", of::<acp::CreateElicitationRequest>),
    (
        "elicitation/complete",
        of::<acp::CompleteElicitationNotification>,
    ),
    ("mcp/message", of::<acp::MessageMcpRequest>),
    ("fs/read_text_file", of::<acp::ReadTextFileRequest>),
    ("fs/write_text_file", of::<acp::WriteTextFileRequest>),
];

/// The results of its responses, by method.
const ANSWERS: [Schema; 13] = [
    ("initialize", of::<acp::InitializeResponse>),
    ("authenticate", of::<acp::AuthenticateResponse>),
    ("logout", of::<acp::LogoutResponse>),
    ("session/new", of::<acp::NewSessionResponse>),
    ("session/fork", of::<acp::ForkSessionResponse>),
    ("session/load", of::<acp::LoadSessionResponse>),
    ("session/resume", of::<acp::ResumeSessionResponse>),
    ("session/list", of::<acp::ListSessionsResponse>),
    ("session/prompt", of::<acp::PromptResponse>),
    ("session/set_mode", of::<acp::SetSessionModeResponse>),
    (
        "session/set_config_option",
        of::<acp::SetSessionConfigOptionResponse>,
    ),
    ("session/close", of::<acp::CloseSessionResponse>),
    ("session/delete", of::<acp::DeleteSessionResponse>),
];

static VALIDATORS: LazyLock<Mutex<HashMap<&'static str, Validator>>> =
    LazyLock::new(Mutex::default);

fn of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

/// Panics if a message of the server violates the protocol.
pub fn check_message(message: &Value) {
    if let Some(schema) = MESSAGES
        .iter()
        .find(|(method, _)| message["method"] == *method)
    {
        check(*schema, &message["params"]);
    }
}

/// Panics if the result of a request violates the protocol. In a language server's result, it is part of the capabilities.
pub fn check_answer(method: &str, answer: &Value) {
    let Some(schema) = ANSWERS.iter().find(|(name, _)| *name == method) else {
        return;
    };
    let Some(result) = answer.get("result") else {
        return;
    };
    match result.get("capabilities") {
        Some(capabilities) => {
            if let Some(ours) = capabilities["experimental"].get("tandem") {
                check(*schema, ours);
            }
        }
        None => check(*schema, result),
    }
}

fn check((method, schema): Schema, value: &Value) {
    // An invalid message fails only its own test.
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators
        .entry(method)
        .or_insert_with(|| jsonschema::validator_for(&schema()).unwrap());
    let problems: Vec<_> = validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    drop(validators);
    assert!(
        problems.is_empty(),
        "does not match the schema of `{method}`: {problems:?}\n{value:#}"
    );
}

#[test]
fn the_check_can_fail() {
    let update = |update: Value| json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } });
    check_message(&update(
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "t" } }),
    ));
    for wrong in [
        json!({ "method": "session/update", "params": { "sessionId": 7 } }),
        update(json!({ "sessionUpdate": "made_up" })),
        update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text" } })),
        update(json!({ "sessionUpdate": "tool_call", "title": "t" })),
        json!({ "method": "session/request_permission", "params": { "sessionId": "s", "options": [] } }),
    ] {
        assert!(
            std::panic::catch_unwind(|| check_message(&wrong)).is_err(),
            "{wrong}"
        );
    }
    for (method, _) in ANSWERS.into_iter().filter(|(method, _)| {
        [
            "initialize",
            "session/new",
            "session/prompt",
            "session/list",
        ]
        .contains(method)
    }) {
        assert!(
            std::panic::catch_unwind(|| check_answer(method, &json!({ "result": {} }))).is_err(),
            "{method}"
        );
    }
}
