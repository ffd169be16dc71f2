//! The official schema of the Agent Client Protocol, version 1: every message a client of these tests is sent is checked
//! against it. It is third-party data beside the repository; where it is absent that is said loudly, once.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

/// The definitions of what the server sends, by method: of its own messages, and of its answers.
const MESSAGES: [(&str, &str); 2] =
    [("session/update", "SessionNotification"), ("session/request_permission", "RequestPermissionRequest")];
const ANSWERS: [(&str, &str); 5] = [
    ("session/new", "NewSessionResponse"),
    ("session/prompt", "PromptResponse"),
    ("session/set_mode", "SetSessionModeResponse"),
    ("session/set_config_option", "SetSessionConfigOptionResponse"),
    ("session/close", "CloseSessionResponse"),
];

static SCHEMA: LazyLock<Option<Value>> = LazyLock::new(|| {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared");
    let shared = std::env::var("TANDEM_SHARED").unwrap_or_else(|_| shared.to_owned());
    let path = std::path::Path::new(&shared).join("acp/schema.json");
    if let Ok(text) = std::fs::read_to_string(&path) {
        return Some(serde_json::from_str(&text).unwrap());
    }
    #[expect(clippy::print_stderr, reason = "what is not checked must be seen")]
    let () = eprintln!("NOT CHECKED: {} is absent, no message is held against the ACP schema", path.display());
    None
});

static VALIDATORS: LazyLock<Mutex<HashMap<&'static str, Validator>>> = LazyLock::new(Mutex::default);

/// Panics when a message of the server is not what the protocol says.
pub fn check_message(message: &Value) {
    let definition = MESSAGES.iter().find(|(method, _)| message["method"] == *method);
    if let Some((_, definition)) = definition {
        check(definition, &message["params"]);
    }
}

/// Panics when the result of a request is not what the protocol says.
pub fn check_answer(method: &str, answer: &Value) {
    let definition = ANSWERS.iter().find(|(name, _)| *name == method);
    if let (Some((_, definition)), Some(result)) = (definition, answer.get("result")) {
        check(definition, result);
    }
}

fn check(definition: &'static str, value: &Value) {
    let Some(schema) = &*SCHEMA else { return };
    // A message that is wrong fails its own test alone.
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(definition).or_insert_with(|| {
        let root = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"] });
        jsonschema::validator_for(&root).unwrap()
    });
    let problems: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    drop(validators);
    assert!(problems.is_empty(), "not a {definition}: {problems:?}\n{value:#}");
}

#[test]
fn the_check_can_fail() {
    let wrong = json!({ "method": "session/update", "params": { "sessionId": 7 } });
    let caught = std::panic::catch_unwind(|| check_message(&wrong));
    assert_eq!(caught.is_err(), SCHEMA.is_some());
}
