//! Which model, where, and with which key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use url::Url;

use super::environment::{Environment, Proxy};
use super::keyring;
use super::layer::{nearest, overlay};
use super::options::{
    Api, BaseUrl, CommandLine, LimitOptions, ModelOptions, Options, Prices, ProviderOptions, without_password,
};
use super::providers::{PROVIDERS, Provider};

/// The provider's name of an endpoint that was given as a bare `base-url`.
const CUSTOM: &str = "custom";

/// A model and all that is needed to talk to it.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// The provider's name.
    pub provider: String,
    /// The model's name on the wire.
    pub model: String,
    /// The dialect.
    pub api: Api,
    /// Ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: String,
    /// The key.
    pub key: KeySource,
    /// More HTTP headers.
    pub headers: BTreeMap<String, String>,
    /// Fields merged into every request body.
    pub body: Map<String, Value>,
    /// How many tokens the model reads at once, where that is configured.
    pub context_window: Option<u64>,
    /// What its tokens cost, where that is configured.
    pub prices: Option<Prices>,
    /// A PEM file of further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The proxy the environment names; `None` where it names none.
    pub proxy: Option<Proxy>,
    /// Until a connection must stand.
    pub connect_timeout: Duration,
    /// Until an answer must begin; `None` for ever (a local model may read for minutes).
    pub first_byte_timeout: Option<Duration>,
    /// How long an answer may pause.
    pub idle_timeout: Duration,
}

impl ModelSettings {
    /// `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Whether requests stay on this machine, without TLS.
    #[must_use]
    pub fn is_plain_loopback(&self) -> bool {
        self.base_url.starts_with("http://") && is_loopback(&self.base_url)
    }

    /// The base URL as it may be shown: without a password.
    #[must_use]
    pub fn shown_url(&self) -> String {
        without_password(&self.base_url)
    }
}

/// Where the key comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The endpoint needs none.
    None,
    /// A variable that is set.
    Variable {
        /// Its name.
        name: String,
        /// The key.
        value: SecretString,
    },
    /// A program that prints it.
    Command(CommandLine),
    /// A variable that is not set although the endpoint needs a key.
    Missing {
        /// Its name.
        name: String,
    },
}

/// The origin in words.
impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no key"),
            Self::Variable { name, .. } => write!(formatter, "environment variable {name}"),
            Self::Command(command) => {
                write!(formatter, "output of `{command}`")
            }
            Self::Missing { name } => {
                write!(formatter, "environment variable {name}, which is not set")
            }
        }
    }
}

/// Why there is no model, and the ways to get one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoModel {
    /// For the person.
    pub message: String,
    /// Whether nothing at all is configured, so that a server on this machine may be looked for.
    pub unset: bool,
}

/// What a model is chosen from.
pub(super) struct Choice<'a> {
    pub(super) options: &'a Options,
    pub(super) environment: &'a Environment,
}

/// A model and the options that apply to it alone (`base-url` and so on at the top of the configuration).
struct Wanted<'a> {
    provider: &'a str,
    model: &'a str,
    base_url: Option<&'a BaseUrl>,
    api: Option<Api>,
    key_variable: Option<&'a str>,
}

impl Choice<'_> {
    /// The configured model, or else the one a well-known key stands for.
    pub(super) fn default_model(&self) -> Result<ModelSettings, NoModel> {
        let Options { model, base_url, api, api_key_env, .. } = self.options;
        let (provider, model) = match (model.as_deref(), base_url) {
            (Some(name), None) => self.split(name)?,
            (Some(name), Some(url)) => self.split(name).unwrap_or_else(|_| (provider_at(url).unwrap_or(CUSTOM), name)),
            (None, Some(url)) => {
                return Err(self.misconfigured(&format!("there is an endpoint ({}) but no model", url.as_str())));
            }
            (None, None) => self
                .model_of_a_key()
                .ok_or_else(|| NoModel { message: self.explain("no model configured"), unset: true })?,
        };
        let (base_url, api, key_variable) = (base_url.as_ref(), *api, api_key_env.as_deref());
        self.resolve(&Wanted { provider, model, base_url, api, key_variable })
    }

    /// Another model, by `provider/model`.
    pub(super) fn model_named(&self, name: &str) -> Result<ModelSettings, NoModel> {
        match self.default_model() {
            Ok(model) if model.name() == name => Ok(model),
            _ => {
                let (provider, model) = self.split(name)?;
                self.resolve(&Wanted { provider, model, base_url: None, api: None, key_variable: None })
            }
        }
    }

    /// The models that can be named without asking any server: `provider/model`.
    pub(super) fn known_models(&self) -> Vec<String> {
        let mut names: Vec<_> = self.default_model().into_iter().map(|model| model.name()).collect();
        let configured = self.options.providers.iter();
        names.extend(
            configured
                .flat_map(|(provider, options)| options.models.keys().map(move |model| format!("{provider}/{model}"))),
        );
        names
            .extend(self.providers_with_keys().map(|provider| format!("{}/{}", provider.name, provider.default_model)));
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    fn model_of_a_key(&self) -> Option<(&'static str, &'static str)> {
        self.providers_with_keys().next().map(|provider| (provider.name, provider.default_model))
    }

    fn providers_with_keys(&self) -> impl Iterator<Item = &'static Provider> {
        PROVIDERS.iter().filter(|provider| {
            !provider.default_model.is_empty() && self.environment.get(provider.key_variable).is_some()
        })
    }

    /// Splits `provider/model` where the provider is known.
    fn split<'n>(&self, name: &'n str) -> Result<(&'n str, &'n str), NoModel> {
        let Some((provider, model)) = name.split_once('/') else {
            return Err(self.misconfigured(&format!("model `{name}` names no provider; write `provider/{name}`")));
        };
        let configured = self.options.providers.keys().map(String::as_str);
        let known: Vec<_> = PROVIDERS.iter().map(|provider| provider.name).chain(configured).collect();
        if known.contains(&provider) && !model.is_empty() {
            return Ok((provider, model));
        }
        let hint = match nearest(provider, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known are {}; others need `[providers.{provider}]` with a base-url", known.join(", ")),
        };
        Err(self.misconfigured(&format!("model `{name}` names an unknown provider; {hint}")))
    }

    fn resolve(&self, wanted: &Wanted<'_>) -> Result<ModelSettings, NoModel> {
        let (no_provider, no_model) = (ProviderOptions::default(), ModelOptions::default());
        let provider = self.options.providers.get(wanted.provider).unwrap_or(&no_provider);
        let model = provider.models.get(wanted.model).unwrap_or(&no_model);
        let row = Provider::named(wanted.provider);

        let configured = wanted.base_url.or(provider.base_url.as_ref()).map(BaseUrl::as_str);
        let base_url = configured.or(row.map(|row| row.base_url)).unwrap_or_default();
        if base_url.is_empty() {
            let needed = format!("provider `{0}` needs a base-url in `[providers.{0}]`", wanted.provider);
            return Err(self.misconfigured(&needed));
        }
        let api = wanted.api.or(provider.api).or(row.map(|row| row.api)).unwrap_or_default();
        let local = is_loopback(base_url);
        let LimitOptions { connect_timeout, first_byte_timeout, idle_timeout, .. } = &self.options.limits;
        let seconds = |limit: &Option<std::num::NonZeroU64>| limit.map(|limit| Duration::from_secs(limit.get()));
        Ok(ModelSettings {
            provider: wanted.provider.to_owned(),
            model: wanted.model.to_owned(),
            api,
            base_url: base_url.to_owned(),
            key: self.key(wanted.key_variable, provider, row, local),
            headers: provider.headers.clone(),
            body: body(api, row, provider, model),
            context_window: model.context_window.map(Into::into),
            prices: model.prices,
            ca_file: provider.ca_file.clone(),
            proxy: base_url.split_once("://").and_then(|(scheme, _)| self.environment.proxy(scheme)),
            connect_timeout: seconds(connect_timeout).unwrap_or(Duration::from_secs(10)),
            first_byte_timeout: seconds(first_byte_timeout).or((!local).then_some(Duration::from_mins(5))),
            idle_timeout: seconds(idle_timeout).unwrap_or(Duration::from_secs(90)),
        })
    }

    /// The key by the most particular name; a program is asked when no variable is set.
    fn key(&self, wanted: Option<&str>, provider: &ProviderOptions, row: Option<&Provider>, local: bool) -> KeySource {
        let well_known = row.map(|row| row.key_variable).filter(|name| !name.is_empty());
        let variable = wanted.or(provider.api_key_env.as_deref()).or(well_known).map(str::to_owned);
        let set = variable.as_deref().and_then(|name| self.environment.get(name));
        let kept = || provider.api_key_keyring.as_deref().map(keyring::lookup);
        match (variable, set, provider.api_key_command.clone().or_else(kept)) {
            (Some(name), Some(value), _) => KeySource::Variable { name, value: value.into() },
            (_, _, Some(command)) => KeySource::Command(command),
            (Some(name), None, None) if !local => KeySource::Missing { name },
            _ => KeySource::None,
        }
    }

    fn misconfigured(&self, what: &str) -> NoModel {
        NoModel { message: self.explain(what), unset: false }
    }

    /// What is missing and the three ways to have a model.
    fn explain(&self, what: &str) -> String {
        let file = self.environment.config_file().unwrap_or_else(|| PathBuf::from("config.toml"));
        format!(
            "{what}. Do one of these:\n\
             - set TANDEM_BASE_URL and TANDEM_MODEL to your endpoint and its model (TANDEM_API_KEY if it needs a key)\n\
             - write `model = \"provider/model\"` into the configuration file config.toml ({})\n\
             - set a provider's key, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY, or start a local \
             server (Ollama, LM Studio, llama.cpp)",
            file.display()
        )
    }
}

/// What is known of the provider, then its configured fields, then the model's own; what has a name of our own gets the
/// dialect's.
fn body(api: Api, row: Option<&Provider>, provider: &ProviderOptions, model: &ModelOptions) -> Map<String, Value> {
    let refused = row.filter(|row| row.api == api).map(|row| row.refuses).unwrap_or_default();
    let mut body: Value = refused.iter().map(|&field| (field.to_owned(), Value::Null)).collect();
    let lay = |body: &mut Value, fields: &Map<String, Value>| {
        overlay(body, &Value::Object(fields.clone()), &mut Vec::new(), &mut |_, _| ());
    };
    lay(&mut body, &provider.body);
    let max_tokens = match api {
        Api::Chat => row.and_then(|row| row.max_tokens).unwrap_or("max_tokens"),
        Api::Messages => "max_tokens",
        Api::Responses => "max_output_tokens",
    };
    let effort = |effort: &String| match api {
        Api::Chat => ("reasoning_effort", json!(effort)),
        Api::Responses => ("reasoning", json!({ "effort": effort })),
        Api::Messages => ("output_config", json!({ "effort": effort })),
    };
    let own = [
        model.max_tokens.map(|tokens| (max_tokens, json!(tokens))),
        model.temperature.map(|temperature| ("temperature", json!(temperature))),
        model.reasoning_effort.as_ref().map(effort),
    ];
    lay(&mut body, &own.into_iter().flatten().map(|(field, value)| (field.to_owned(), value)).collect());
    lay(&mut body, &model.body);
    match body {
        Value::Object(body) => body,
        _ => unreachable!("it was made as an object"),
    }
}

/// The hosted provider at this address, whatever the path.
fn provider_at(url: &BaseUrl) -> Option<&'static str> {
    let host = host(url.as_str())?;
    let provider = PROVIDERS.iter().find(|provider| self::host(provider.base_url).as_deref() == Some(&host))?;
    (!provider.is_local()).then_some(provider.name)
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

fn is_loopback(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
