//! The models an endpoint offers, and the model servers that run on this machine.

use std::time::Duration;

use futures_util::future::{join_all, join3};
use serde_json::Value;

use super::http::Http;
use super::{Api, Endpoint, ModelError};

/// A model an endpoint offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name on the wire.
    pub id: String,
    /// The window in tokens that a request gets, where the endpoint tells: on a local server that of the loaded model,
    /// not what the model could have.
    pub context_window: Option<u64>,
}

/// A model server that answers on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// `ollama`, `lmstudio` or `llamacpp`: the provider's name.
    pub name: &'static str,
    /// The base URL of its chat dialect.
    pub base_url: String,
    /// What it has, models with a known window (the loaded ones) first.
    pub models: Vec<ModelInfo>,
}

/// Where the well-known servers listen.
const SERVERS: [(&str, u16); 3] = [("ollama", 11434), ("lmstudio", 1234), ("llamacpp", 8080)];
/// Who runs answers at once; who does not run refuses at once.
const PATIENCE: Duration = Duration::from_millis(400);

/// Asks the well-known ports which model servers run here; takes less than half a second.
pub async fn detect() -> Vec<LocalServer> {
    let asked = SERVERS.map(|(name, port)| probe(name, format!("http://127.0.0.1:{port}/v1")));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn probe(name: &'static str, base_url: String) -> Option<LocalServer> {
    let (http, endpoint) = (Http::default(), Endpoint::new(name, Api::Chat, &base_url, ""));
    let asked = async {
        let runtime = Runtime::ask(&http, &endpoint).await;
        let listed = http.get(&endpoint, "models").await.ok()?;
        runtime.is(name).then(|| runtime.fill(parse(&listed)))
    };
    let mut models = tokio::time::timeout(PATIENCE, asked).await.ok()??;
    models.sort_by_key(|model| model.context_window.is_none());
    Some(LocalServer { name, base_url, models })
}

/// The models of an endpoint; a local server is also asked for the windows it really gives.
pub(super) async fn models(http: &Http, endpoint: &Endpoint) -> Result<Vec<ModelInfo>, ModelError> {
    let models = parse(&http.get(endpoint, "models").await?);
    if !Http::is_local(endpoint) {
        return Ok(models);
    }
    Ok(Runtime::ask(http, endpoint).await.fill(models))
}

/// The list as the providers of the world send it.
fn parse(listed: &Value) -> Vec<ModelInfo> {
    const WINDOWS: [&str; 6] = [
        "/context_length",
        "/max_model_len",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
        "/meta/n_ctx",
    ];
    list(if listed["data"].is_array() { &listed["data"] } else { listed })
        .filter_map(|model| {
            let id = model["id"].as_str().or(model["name"].as_str())?.to_owned();
            let window = WINDOWS.iter().find_map(|window| model.pointer(window)?.as_u64());
            Some(ModelInfo { id, context_window: window })
        })
        .collect()
}

/// What the three kinds of local servers say about what they run, each in its own way.
struct Runtime {
    ollama: Option<Value>,
    lmstudio: Option<Value>,
    llamacpp: Option<Value>,
}

impl Runtime {
    async fn ask(http: &Http, endpoint: &Endpoint) -> Self {
        let get = async |path| http.get(endpoint, path).await.ok();
        let (ollama, lmstudio, llamacpp) = join3(get("/api/ps"), get("/api/v0/models"), get("/props")).await;
        Self {
            ollama: ollama.filter(|answer| answer["models"].is_array()),
            lmstudio: lmstudio.filter(|answer| answer["data"].is_array()),
            llamacpp: llamacpp.filter(|answer| answer["default_generation_settings"].is_object()),
        }
    }

    fn is(&self, name: &str) -> bool {
        match name {
            "ollama" => self.ollama.is_some(),
            "lmstudio" => self.lmstudio.is_some(),
            _ => self.llamacpp.is_some(),
        }
    }

    fn fill(&self, mut models: Vec<ModelInfo>) -> Vec<ModelInfo> {
        for model in &mut models {
            model.context_window = self.window(&model.id).or(model.context_window);
        }
        models
    }

    fn window(&self, id: &str) -> Option<u64> {
        let loaded = |answer: &Option<Value>, models: &str, name: &str, window: &str| {
            list(&answer.as_ref()?[models]).find(|model| model[name] == id)?[window].as_u64()
        };
        loaded(&self.ollama, "models", "name", "context_length")
            .or_else(|| loaded(&self.lmstudio, "data", "id", "loaded_context_length"))
            .or_else(|| self.llamacpp.as_ref()?["default_generation_settings"]["n_ctx"].as_u64())
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::rehearsal::{Script, Server};

    #[track_caller]
    fn check(listed: &Value, expected: &[(&str, Option<u64>)]) {
        let models = parse(listed);
        let models: Vec<_> = models.iter().map(|model| (model.id.as_str(), model.context_window)).collect();
        assert_eq!(models, expected);
    }

    #[test]
    fn lists_are_read_as_each_provider_sends_them() {
        check(
            &json!({ "data": [{ "id": "a" }, { "id": "b", "context_length": 8192 }] }),
            &[("a", None), ("b", Some(8192))],
        );
        check(&json!({ "data": [{ "id": "vllm", "max_model_len": 4096 }] }), &[("vllm", Some(4096))]);
        check(&json!([{ "id": "together" }]), &[("together", None)]);
        check(&json!({ "error": "no" }), &[]);
    }

    #[tokio::test]
    async fn local_servers_say_the_window_they_really_give() {
        let rows = [
            ("ollama", "/api/ps", json!({ "models": [{ "name": "m", "context_length": 4096 }] })),
            ("lmstudio", "/api/v0/models", json!({ "data": [{ "id": "m", "loaded_context_length": 4096 }] })),
            ("llamacpp", "/props", json!({ "default_generation_settings": { "n_ctx": 4096 } })),
        ];
        for (name, path, answer) in rows {
            let server = Server::start(Script::new()).await.unwrap();
            server.rehearsal().document("/v1/models", json!({ "data": [{ "id": "idle" }, { "id": "m" }] }));
            server.rehearsal().document(path, answer);
            let found = probe(name, server.base_url().to_owned()).await.unwrap();
            assert!(found.models.contains(&ModelInfo { id: "m".into(), context_window: Some(4096) }), "{found:?}");
        }
    }

    #[tokio::test]
    async fn somebody_else_on_the_port_is_not_a_model_server() {
        let server = Server::start(Script::new()).await.unwrap();
        assert_eq!(probe("llamacpp", server.base_url().to_owned()).await, None);
    }
}
