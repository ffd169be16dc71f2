//! The models of an endpoint, and model servers on this machine.

use std::time::Duration;

use futures_util::future::{join_all, join3};
use serde_json::{Value, json};

use super::family::Known;
use super::http::Http;
use super::{Api, Endpoint, Failure};
use crate::domain::Prices;

/// A model an endpoint offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelInfo {
    /// Its name at the endpoint.
    pub id: String,
    /// The window of a request in tokens, if the endpoint reports it: on a local server that of the loaded model, not
    /// the model's maximum.
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    pub output: Option<u64>,
    /// Its prices.
    pub prices: Option<Prices>,
    /// Whether it accepts images, if known.
    pub images: Option<bool>,
    /// Whether it is not a chat model: embeddings, images, audio.
    pub is_other: bool,
    /// Whether it supports tool calls, if its server reports that.
    pub calls: Option<bool>,
}

impl ModelInfo {
    /// A model of which only the name is known.
    pub fn named(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            is_other: is_other(id),
            ..Self::default()
        }
    }
}

/// Substrings in names of models that are not chat models.
const OTHERS: [&str; 15] = [
    "embed",
    "bge-",
    "rerank",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "image",
    "imagine",
    "audio",
    "realtime",
    "transcribe",
    "sora",
    "ocr",
    "guard",
];

fn is_other(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    OTHERS.iter().any(|part| id.contains(part))
}

/// A model server on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalServer {
    /// `ollama`, `lmstudio` or `llamacpp`: the provider's name.
    pub name: &'static str,
    /// The base URL of its chat API.
    pub base_url: String,
    /// The other user it runs as, who could read what is sent; `None` for root and the user of this process.
    pub owner: Option<String>,
    /// Its models: chat models first, and of those the loaded ones, whose window is known.
    pub models: Vec<ModelInfo>,
}

/// The ports of well-known servers.
const SERVERS: [(&str, u16); 3] = [("ollama", 11434), ("lmstudio", 1234), ("llamacpp", 8080)];
/// A local server accepts or refuses a connection at once.
const TIMEOUT: Duration = Duration::from_millis(400);

/// Probes the well-known ports for model servers; takes less than half a second.
pub async fn detect() -> Vec<LocalServer> {
    let asked = SERVERS.map(|(name, port)| async move {
        let server = probe(name, format!("http://127.0.0.1:{port}/v1")).await?;
        let owner = owner(port);
        Some(LocalServer { owner, ..server })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn probe(name: &'static str, base_url: String) -> Option<LocalServer> {
    let (http, endpoint) = (
        Http::default(),
        Endpoint::new(name, Api::Chat, &base_url, ""),
    );
    let asked = async {
        let runtime = Runtime::ask(&http, &endpoint).await;
        let listed = http.document(&endpoint, "models", None).await.ok()?;
        let models = runtime.is(name).then(|| runtime.fill(parse(&listed)))?;
        Some(if name == "ollama" {
            with_capabilities(&http, &endpoint, models).await
        } else {
            models
        })
    };
    let mut models = tokio::time::timeout(TIMEOUT, asked).await.ok()??;
    models.sort_by_key(|model| {
        (
            model.is_other,
            model.calls != Some(true),
            model.context_window.is_none(),
        )
    });
    Some(LocalServer {
        name,
        base_url,
        owner: None,
        models,
    })
}

/// The name of another user, except root, who listens on this port; `None` if the system does not tell.
#[expect(
    clippy::disallowed_methods,
    reason = "the system's own tables, not a file of the workspace"
)]
fn owner(port: u16) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ours = status.lines().find_map(|line| {
        let mut ids = line.strip_prefix("Uid:")?.split_whitespace();
        ids.nth(1)
    })?;
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let mut listeners = tables
        .iter()
        .flatten()
        .flat_map(|table| listeners(table, port));
    let id = listeners.find(|id| *id != ours && *id != "0")?;
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(user(&users, id).unwrap_or(id).to_owned())
}

/// The ids of the users who listen on this port, by a table of the kernel: local address, remote address, state, …, user.
fn listeners(table: &str, port: u16) -> impl Iterator<Item = &str> {
    let port = format!(":{port:04X}");
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let is_local = fields.nth(1)?.ends_with(&port);
        let listens = fields.nth(1)? == "0A";
        fields.nth(3).filter(|_| is_local && listens)
    })
}

/// The name of the user with this id, by `/etc/passwd`: name, password, id, ….
fn user<'a>(users: &'a str, id: &str) -> Option<&'a str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then_some(name)
    })
}

/// The maximum number of models whose capabilities are queried.
const ASKED: usize = 12;

/// The models with their capabilities, as Ollama reports them.
async fn with_capabilities(
    http: &Http,
    endpoint: &Endpoint,
    mut models: Vec<ModelInfo>,
) -> Vec<ModelInfo> {
    let asked = models.iter().take(ASKED);
    let shown = join_all(asked.map(|model| show(http, endpoint, &model.id))).await;
    for (model, shown) in models.iter_mut().zip(shown) {
        model.is_other |= can(&shown, "completion") == Some(false);
        model.calls = can(&shown, "tools");
    }
    models
}

/// What Ollama says of a model; `null` if nothing.
async fn show(http: &Http, endpoint: &Endpoint, model: &str) -> Value {
    let named = json!({ "model": model });
    let shown = http.document(endpoint, "/api/show", Some(&named)).await;
    shown.unwrap_or_default()
}

/// Whether a model of Ollama's has this capability.
fn can(shown: &Value, capability: &str) -> Option<bool> {
    let capabilities = shown["capabilities"].as_array()?;
    Some(capabilities.iter().any(|name| name == capability))
}

/// The models of an endpoint; a local server is also asked for their actual windows.
pub(super) async fn models(http: &Http, endpoint: &Endpoint) -> Result<Vec<ModelInfo>, Failure> {
    let models = parse(&http.document(endpoint, "models", None).await?);
    if !endpoint.may_be_own_server() {
        return Ok(models);
    }
    Ok(Runtime::ask(http, endpoint).await.fill(models))
}

/// The endpoint's information about its own model, from every API it may have.
pub(super) async fn model(http: &Http, endpoint: &Endpoint) -> Option<ModelInfo> {
    let listed = async {
        let listed = http.document(endpoint, "models", None).await.ok()?;
        Some(parse(&listed))
    };
    if !endpoint.may_be_own_server() {
        return named(listed.await?, &endpoint.model);
    }
    let (listed, runtime) = tokio::join!(listed, Runtime::ask(http, endpoint));
    let listed = listed.and_then(|models| named(models, &endpoint.model));
    let mut model = listed.unwrap_or_else(|| ModelInfo::named(&endpoint.model));
    let window = runtime.window(&endpoint.model);
    model.calls = runtime.calls();
    if runtime.ollama.is_some() {
        let shown = show(http, endpoint, &endpoint.model).await;
        model.calls = can(&shown, "tools");
        // A loaded model's window counts; otherwise the configured one.
        model.context_window = window.or_else(|| num_ctx(&shown));
    } else {
        model.context_window = window.or(model.context_window);
    }
    Some(model)
}

/// The models with names similar to an unknown one: its own family first, three at most.
pub(super) fn nearest(name: &str, models: &[ModelInfo]) -> Vec<String> {
    let family = Known::by_name(name).family;
    let mut near: Vec<_> = models
        .iter()
        .filter(|model| !model.is_other)
        .map(|model| {
            let likeness = strsim::jaro_winkler(name, &model.id);
            (
                Known::by_name(&model.id).family == family,
                likeness,
                &model.id,
            )
        })
        .collect();
    near.sort_by(|(own, one, _), (its, other, _)| its.cmp(own).then(other.total_cmp(one)));
    near.into_iter()
        .take(3)
        .map(|(_, _, name)| name.clone())
        .collect()
}

fn named(models: Vec<ModelInfo>, name: &str) -> Option<ModelInfo> {
    models.into_iter().find(|model| is_same(&model.id, name))
}

/// Whether both names mean the same model: Ollama adds an omitted tag, Google a prefix.
fn is_same(listed: &str, name: &str) -> bool {
    listed == name
        || listed.strip_suffix(":latest") == Some(name)
        || listed.strip_prefix("models/") == Some(name)
}

/// The configured window of an Ollama model, not the one it was trained for.
fn num_ctx(shown: &Value) -> Option<u64> {
    let parameters = shown["parameters"].as_str()?;
    let line = parameters
        .lines()
        .find_map(|line| line.trim().strip_prefix("num_ctx"))?;
    line.trim().parse().ok()
}

/// Parses providers' various list formats.
fn parse(listed: &Value) -> Vec<ModelInfo> {
    const WINDOWS: [&str; 6] = [
        "/context_length",
        "/max_model_len",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
        "/meta/n_ctx",
    ];
    const OUTPUTS: [&str; 3] = [
        "/top_provider/max_completion_tokens",
        "/max_completion_tokens",
        "/max_tokens",
    ];
    list(if listed["data"].is_array() {
        &listed["data"]
    } else {
        listed
    })
    .filter_map(|model| {
        let id = model["id"].as_str().or(model["name"].as_str())?;
        let number = |pointers: &[&str]| {
            pointers.iter().find_map(|pointer| {
                model
                    .pointer(pointer)?
                    .as_u64()
                    .filter(|number| *number > 0)
            })
        };
        let other_type = model["type"].as_str().is_some_and(is_other);
        let chats = model
            .pointer("/capabilities/completion_chat")
            .and_then(Value::as_bool);
        let modalities = model
            .pointer("/architecture/input_modalities")
            .and_then(Value::as_array);
        let info = ModelInfo::named(id);
        Some(ModelInfo {
            context_window: number(&WINDOWS),
            output: number(&OUTPUTS),
            prices: prices(&model["pricing"]),
            images: modalities
                .map(|modalities| modalities.iter().any(|modality| modality == "image")),
            is_other: info.is_other || other_type || chats == Some(false),
            ..info
        })
    })
    .collect()
}

/// The prices of `OpenRouter` and Vercel: US dollars per token, as text.
fn prices(pricing: &Value) -> Option<Prices> {
    let price = |field: &str| {
        pricing[field]
            .as_str()?
            .parse::<f64>()
            .ok()
            .filter(|price| *price >= 0.0)
            .map(|price| price * 1e6)
    };
    Some(Prices {
        input: price("prompt").or_else(|| price("input"))?,
        cached: price("input_cache_read"),
        cache_write: price("input_cache_write"),
        output: price("completion").or_else(|| price("output"))?,
        long: None,
    })
}

/// How the three kinds of local servers report what they run.
struct Runtime {
    ollama: Option<Value>,
    lmstudio: Option<Value>,
    llamacpp: Option<Value>,
}

impl Runtime {
    async fn ask(http: &Http, endpoint: &Endpoint) -> Self {
        let get = async |path| http.document(endpoint, path, None).await.ok();
        let (ollama, lmstudio, llamacpp) =
            join3(get("/api/ps"), get("/api/v0/models"), get("/props")).await;
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
            model.calls = self.calls();
        }
        models
    }

    /// Whether llama.cpp's chat template has tools: without them the model never learns of any.
    fn calls(&self) -> Option<bool> {
        self.llamacpp.as_ref()?["chat_template_caps"]["supports_tools"].as_bool()
    }

    fn window(&self, id: &str) -> Option<u64> {
        let loaded = |answer: &Option<Value>, models: &str, name: &str, window: &str| {
            let mut models = list(&answer.as_ref()?[models]);
            models.find(|model| model[name].as_str().is_some_and(|name| is_same(name, id)))?[window]
                .as_u64()
        };
        loaded(&self.ollama, "models", "name", "context_length")
            .or_else(|| loaded(&self.lmstudio, "data", "id", "loaded_context_length"))
            .or_else(|| self.llamacpp.as_ref()?["default_generation_settings"]["n_ctx"].as_u64())
            // A server that loads models on demand has none yet.
            .filter(|window| *window > 0)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use rehearsal::{Script, Server};

    #[track_caller]
    fn check(listed: &Value, expected: &[(&str, Option<u64>)]) {
        let models = parse(listed);
        let models: Vec<_> = models
            .iter()
            .map(|model| (model.id.as_str(), model.context_window))
            .collect();
        assert_eq!(models, expected);
    }

    #[test]
    fn model_lists_of_all_providers_are_parsed() {
        check(
            &json!({ "data": [{ "id": "a" }, { "id": "b", "context_length": 8192 }] }),
            &[("a", None), ("b", Some(8192))],
        );
        check(
            &json!({ "data": [{ "id": "vllm", "max_model_len": 4096 }] }),
            &[("vllm", Some(4096))],
        );
        check(&json!([{ "id": "together" }]), &[("together", None)]);
        check(&json!({ "error": "no" }), &[]);
    }

    #[test]
    fn the_users_who_listen_on_a_port_are_found_by_name() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  998        0 7 1\n\
             1: 0100007F:2CAA 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000  1000       0 8 1\n\
             2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001       0 9 1\n";
        assert_eq!(listeners(table, 11434).collect::<Vec<_>>(), ["998"]);
        assert_eq!(listeners(table, 8080).collect::<Vec<_>>(), ["1001"]);
        let users =
            "root:x:0:0:root:/root:/bin/sh\nollama:x:998:998::/usr/share/ollama:/bin/false\n";
        assert_eq!(user(users, "998"), Some("ollama"));
        assert_eq!(user(users, "1001"), None);
    }

    #[tokio::test]
    async fn local_servers_report_the_loaded_context_window() {
        let rows = [
            (
                "ollama",
                "/api/ps",
                json!({ "models": [{ "name": "m", "context_length": 4096 }] }),
            ),
            (
                "lmstudio",
                "/api/v0/models",
                json!({ "data": [{ "id": "m", "loaded_context_length": 4096 }] }),
            ),
            (
                "llamacpp",
                "/props",
                json!({ "default_generation_settings": { "n_ctx": 4096 } }),
            ),
        ];
        for (name, path, answer) in rows {
            let server = Server::start(Script::new()).unwrap();
            server.rehearsal().document(
                "/v1/models",
                json!({ "data": [{ "id": "idle" }, { "id": "m" }] }),
            );
            server.rehearsal().document(path, answer);
            let found = probe(name, server.base_url().to_owned()).await.unwrap();
            let loaded = found.models.iter().find(|model| model.id == "m").unwrap();
            assert_eq!(loaded.context_window, Some(4096), "{name}");
            let endpoint = Endpoint::new(name, Api::Chat, server.base_url(), "m");
            assert_eq!(
                model(&Http::default(), &endpoint)
                    .await
                    .unwrap()
                    .context_window,
                Some(4096)
            );
        }
    }

    #[tokio::test]
    async fn a_window_of_nothing_is_unknown() {
        let server = Server::start(Script::new()).unwrap();
        let models = json!({ "data": [{ "id": "m", "context_length": 0, "meta": { "n_ctx": 4096 } }, { "id": "idle" }] });
        server.rehearsal().document("/v1/models", models);
        let router = json!({ "default_generation_settings": { "n_ctx": 0 } });
        server.rehearsal().document("/props", router);
        let found = probe("llamacpp", server.base_url().to_owned()).await;
        let windows: Vec<_> = found
            .unwrap()
            .models
            .iter()
            .map(|it| it.context_window)
            .collect();
        assert_eq!(windows, [Some(4096), None]);
    }

    #[test]
    fn non_chat_models_are_recognized() {
        let listed = json!({ "data": [
            { "id": "nomic-embed-text" }, { "id": "bge-m3" }, { "id": "x", "type": "embeddings" }, { "id": "qwen3-coder" },
        ] });
        let others: Vec<_> = parse(&listed)
            .into_iter()
            .map(|model| model.is_other)
            .collect();
        assert_eq!(others, [true, true, true, false]);
    }

    #[test]
    fn suggested_models_are_of_the_same_family() {
        let models: Vec<_> = [
            "text-embedding-3",
            "deepseek-v4-flash",
            "deepseek-v4-pro",
            "gpt-5",
        ]
        .map(ModelInfo::named)
        .into();
        assert_eq!(
            nearest("deepseek-chat", &models)[..2],
            ["deepseek-v4-flash", "deepseek-v4-pro"]
        );
    }

    #[test]
    fn listed_prices_are_per_million_tokens() {
        // `OpenRouter`'s names, and Vercel's.
        for (input, output) in [("prompt", "completion"), ("input", "output")] {
            let pricing = json!({
                input: "0.000003", output: "0.000015", "input_cache_read": "0.0000003",
            });
            let listed = parse(&json!({ "data": [{ "id": "a", "pricing": pricing }] }));
            let prices = listed[0].prices.unwrap();
            let is_near = |price: f64, expected: f64| (price - expected).abs() < 1e-9;
            assert!(
                is_near(prices.input, 3.0)
                    && is_near(prices.output, 15.0)
                    && is_near(prices.cached.unwrap(), 0.3),
                "{prices:?}"
            );
            assert_eq!(prices.cache_write, None);
        }
    }

    #[tokio::test]
    async fn an_unrelated_server_on_the_port_is_not_a_model_server() {
        let server = Server::start(Script::new()).unwrap();
        assert_eq!(probe("llamacpp", server.base_url().to_owned()).await, None);
    }
}
