//! What a setup form asks before there is a session: providers, their models, whether one works.

use serde_json::{Value, json};

use crate::driver::World;

#[test]
fn providers_are_listed_with_what_they_need() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let answer = client.call("_tandem/providers", Value::Null);
    let providers = answer["result"]["providers"].as_array().unwrap();
    let named = |name: &str| providers.iter().find(|provider| provider["name"] == name).unwrap();
    assert_eq!(named("anthropic")["needsKey"], true);
    assert_eq!(named("anthropic")["baseUrl"], "https://api.anthropic.com/v1");
    assert_eq!(named("azure").get("baseUrl"), None);
    assert_eq!(named("ollama")["needsKey"], false);
}

#[test]
fn models_come_best_first_with_window_and_price() {
    let world = World::new(json!([]));
    let listed =
        json!({ "data": [{ "id": "text-embedding-3" }, { "id": "gpt-5.1" }, { "id": "gpt-5.5" }, { "id": "gpt-4o" }] });
    world.rehearsal().document("/v1/models", listed);
    let mut client = world.client();
    let request = json!({ "provider": "openai", "apiKey": "sk-setup-form", "baseUrl": world.model.base_url() });
    let answer = client.call("_tandem/models", request);
    let models = answer["result"]["models"].as_array().unwrap();
    let names: Vec<_> = models.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["gpt-5.5", "gpt-5.1", "gpt-4o"]);
    assert_eq!(models[0]["contextWindow"], 922_000);
    assert_eq!(models[0]["price"], json!({ "input": 5.0, "output": 30.0 }));
}

#[test]
fn unreachable_providers_are_reported() {
    let world = World::new(json!([]));
    let mut client = world.client();
    let answer = client.call("_tandem/models", json!({ "provider": "openai", "baseUrl": "http://127.0.0.1:9/v1" }));
    assert!(answer["error"]["message"].as_str().unwrap().contains("127.0.0.1:9"), "{answer}");
    let answer = client.call("_tandem/models", json!({ "provider": "opnai" }));
    assert!(answer["error"]["message"].as_str().unwrap().contains("openai"), "{answer}");
}

#[test]
fn models_are_checked_like_in_doctor() {
    let call = json!([{ "call": { "id": "c1", "name": "report_ready", "arguments": { "ready": true } } }]);
    let world = World::new(json!([[{ "text": "ready" }], call]));
    let mut client = world.client();
    let request = json!({ "provider": "openai", "model": "gpt-5.5", "apiKey": "k", "baseUrl": world.model.base_url() });
    let answer = client.call("_tandem/check", request);
    assert_eq!(answer["result"]["ok"], true, "{answer}");
    let findings = answer["result"]["findings"].as_array().unwrap();
    let checks: Vec<_> = findings.iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["streaming", "window", "tool calls"]);
    assert!(findings.iter().all(|finding| finding["verdict"] == "good"), "{findings:?}");
}
