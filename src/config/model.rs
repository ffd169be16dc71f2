//! Model selection: which model, at which endpoint, with which key.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::address::{completed, provider_at};
use super::environment::Environment;
use super::keyring;
use super::layer::{nearest, overlay};
use super::options::{BaseUrl, LimitOptions, ModelOptions, Options, ProviderOptions};
use super::providers::{PROVIDERS, Provider};
use crate::domain::{Api, Effort, Endpoint, ErrorCode, Failure, Key, TimeLimits, is_local};

/// The provider name for an endpoint given as a bare `base-url`.
const CUSTOM: &str = "custom";

/// A provider, for a setup form.
#[derive(Debug, Clone)]
pub struct ProviderEntry {
    /// Its name before the slash of `provider/model`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its base URL; `None` if it has to be configured.
    pub base_url: Option<String>,
    /// Its key as configured.
    pub key: Key,
    /// Whether it is a server on this machine.
    pub is_local: bool,
    /// Whether that server was found running.
    pub is_running: bool,
}

/// Everything a model is chosen from.
pub(super) struct Choice<'a> {
    pub options: &'a Options,
    pub environment: &'a Environment,
}

/// A model, and the options that apply to it alone (`base-url` and so on at the top level).
#[derive(Clone, Copy)]
struct Wanted<'a> {
    provider: &'a str,
    model: &'a str,
    base_url: Option<&'a BaseUrl>,
    api: Option<Api>,
    key_variable: Option<&'a str>,
}

impl Choice<'_> {
    /// The configured model, or else the default one of a well-known key.
    pub fn default_model(&self) -> Result<Endpoint, Failure> {
        let (provider, model) = match (self.options.model.as_deref(), &self.options.base_url) {
            (Some(name), None) => self.split(name)?,
            (Some(name), Some(url)) => self.split(name).unwrap_or_else(|_| {
                let provider = provider_at(url).unwrap_or(CUSTOM);
                // As it is shown, or as the endpoint calls it.
                let shown = name.strip_prefix(provider);
                let id = shown.and_then(|rest| rest.strip_prefix('/'));
                (provider, id.unwrap_or(name))
            }),
            (None, Some(url)) => {
                let what = format!("an endpoint is configured ({}), but no model", url.as_str());
                return Err(wrong(self.explain(&what)));
            }
            (None, None) => self
                .model_of_a_key()
                .ok_or_else(|| wrong(self.explain("no model configured")))?,
        };
        self.resolve(&self.wanted(provider, model))
    }

    /// Another model, by `provider/model`.
    pub fn model_named(&self, name: &str) -> Result<Endpoint, Failure> {
        match self.default_model() {
            Ok(model) if model.name() == name => Ok(model),
            _ => self.model_at(name, None),
        }
    }

    /// A model by `provider/model`, at this base URL instead of the configured one.
    pub fn model_at(&self, name: &str, base_url: Option<&str>) -> Result<Endpoint, Failure> {
        let url = base_url
            .map(|url| BaseUrl::try_from(url.to_owned()))
            .transpose();
        let url = url.map_err(|problem| wrong(format!("base-url: {problem}")))?;
        if let (Some((provider, model)), Some(_), None) =
            (name.split_once('/'), &self.options.base_url, &url)
            && self
                .default_model()
                .is_ok_and(|default| default.provider == provider)
        {
            return self.resolve(&self.wanted(provider, model)); // of the endpoint that is configured for the default one
        }
        let (provider, model) = match (self.split(name), name.split_once('/')) {
            // A provider that is being set up is not configured yet.
            (Err(_), Some(named)) if url.is_some() => named,
            (named, _) => named?,
        };
        self.resolve(&Wanted {
            provider,
            model,
            base_url: url.as_ref(),
            api: None,
            key_variable: None,
        })
    }

    fn wanted<'n>(&'n self, provider: &'n str, model: &'n str) -> Wanted<'n> {
        let Options {
            base_url,
            api,
            api_key_env,
            ..
        } = self.options;
        Wanted {
            provider,
            model,
            base_url: base_url.as_ref(),
            api: *api,
            key_variable: api_key_env.as_deref(),
        }
    }

    /// All known providers.
    pub fn providers(&self) -> Vec<ProviderEntry> {
        let unset = ProviderOptions::default();
        let built_in = PROVIDERS.iter().map(|row| row.name);
        let configured = self.options.providers.keys().map(String::as_str);
        let own = configured.filter(|name| Provider::named(name).is_none());
        let entry = |name: &str| {
            let options = self.options.providers.get(name).unwrap_or(&unset);
            let row = Provider::named(name);
            let usual = row.map(|row| row.base_url).filter(|url| !url.is_empty());
            let base_url = options.base_url.as_ref().map(BaseUrl::as_str).or(usual);
            let is_local = row.is_some_and(Provider::is_local);
            ProviderEntry {
                name: name.to_owned(),
                title: row.map_or(name, |row| row.title).to_owned(),
                base_url: base_url.map(str::to_owned),
                key: self.key(None, options, row, is_local),
                is_local,
                is_running: false,
            }
        };
        built_in.chain(own).map(entry).collect()
    }

    /// The models known without asking a server, as `provider/model`.
    pub fn known_models(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .default_model()
            .into_iter()
            .map(|model| model.name())
            .collect();
        let configured = self.options.providers.iter();
        names.extend(configured.flat_map(|(provider, options)| {
            options
                .models
                .keys()
                .map(move |model| format!("{provider}/{model}"))
        }));
        names.extend(
            self.providers_with_keys()
                .map(|provider| format!("{}/{}", provider.name, provider.default_model)),
        );
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    fn model_of_a_key(&self) -> Option<(&'static str, &'static str)> {
        self.providers_with_keys()
            .next()
            .map(|provider| (provider.name, provider.default_model))
    }

    fn providers_with_keys(&self) -> impl Iterator<Item = &'static Provider> {
        PROVIDERS.iter().filter(|provider| {
            !provider.default_model.is_empty()
                && self.environment.get(provider.key_variable).is_some()
        })
    }

    /// Splits `provider/model` where the provider is known.
    fn split<'n>(&self, name: &'n str) -> Result<(&'n str, &'n str), Failure> {
        let Some((provider, model)) = name.split_once('/') else {
            return Err(wrong(format!(
                "model `{name}` has no provider; write `provider/{name}`, such as `openai/{name}`"
            )));
        };
        let configured = self.options.providers.keys().map(String::as_str);
        let known: Vec<_> = PROVIDERS
            .iter()
            .map(|provider| provider.name)
            .chain(configured)
            .collect();
        if known.contains(&provider) && !model.is_empty() {
            return Ok((provider, model));
        }
        let hint = match nearest(provider, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(
                "built-in providers are {}; others need `[providers.{provider}]` with a base-url",
                known.join(", ")
            ),
        };
        Err(wrong(format!(
            "model `{name}` has an unknown provider; {hint}"
        )))
    }

    fn resolve(&self, wanted: &Wanted<'_>) -> Result<Endpoint, Failure> {
        let (no_provider, no_model) = (ProviderOptions::default(), ModelOptions::default());
        let provider = self
            .options
            .providers
            .get(wanted.provider)
            .unwrap_or(&no_provider);
        let model = provider.models.get(wanted.model).unwrap_or(&no_model);
        let row = Provider::named(wanted.provider);

        let configured = wanted
            .base_url
            .or(provider.base_url.as_ref())
            .map(BaseUrl::as_str);
        let base_url = configured
            .or(row.map(|row| row.base_url))
            .unwrap_or_default();
        let base_url = &*completed(wanted.provider, base_url);
        if base_url.is_empty() {
            let example = row
                .map(|row| format!(", such as {}", row.example_url))
                .unwrap_or_default();
            return Err(wrong(format!(
                "provider `{0}` needs a base-url in `[providers.{0}]`{example}",
                wanted.provider
            )));
        }
        let api = wanted
            .api
            .or(provider.api)
            .or(row.map(|row| row.api))
            .unwrap_or_default();
        let local = is_local(base_url);
        let LimitOptions {
            connect_timeout,
            first_byte_timeout,
            idle_timeout,
            ..
        } = &self.options.limits;
        let usual = TimeLimits::default();
        let seconds = |limit: &Option<std::num::NonZeroU64>| {
            limit.map(|limit| Duration::from_secs(limit.get()))
        };
        Ok(Endpoint {
            provider: wanted.provider.to_owned(),
            model: wanted.model.to_owned(),
            api,
            base_url: base_url.to_owned(),
            key: self.key(wanted.key_variable, provider, row, local),
            headers: provider.headers.clone(),
            effort: model.reasoning_effort.clone(),
            max_tokens: model.max_tokens.map(Into::into),
            body: body(provider, model),
            context_window: model.context_window.map(Into::into),
            prices: model.prices,
            ca_file: provider.ca_file.clone(),
            proxy: base_url
                .split_once("://")
                .and_then(|(scheme, _)| self.environment.proxy(scheme)),
            limits: TimeLimits {
                connect: seconds(connect_timeout).unwrap_or(usual.connect),
                first_byte: seconds(first_byte_timeout).or(usual.first_byte.filter(|_| !local)),
                between: seconds(idle_timeout).unwrap_or(usual.between),
            },
            editor: None,
        })
    }

    /// The key from the most specific setting; a program is used if no variable is set.
    fn key(
        &self,
        wanted: Option<&str>,
        provider: &ProviderOptions,
        row: Option<&Provider>,
        local: bool,
    ) -> Key {
        let well_known = row
            .map(|row| row.key_variable)
            .filter(|name| !name.is_empty());
        let variable = wanted
            .or(provider.api_key_env.as_deref())
            .or(well_known)
            .map(str::to_owned);
        let set = variable
            .as_deref()
            .and_then(|name| self.environment.get(name));
        let kept = || provider.api_key_keyring.as_deref().map(keyring::lookup);
        match (
            variable,
            set,
            provider.api_key_command.clone().or_else(kept),
        ) {
            (Some(name), Some(value), _) => Key::Variable {
                name,
                value: value.into(),
            },
            (_, _, Some(command)) => Key::Command(command.words().to_vec()),
            (Some(name), None, None) if !local => Key::Missing { name },
            _ => Key::None,
        }
    }

    /// What is missing, and the ways to configure a model, the easiest first.
    fn explain(&self, what: &str) -> String {
        let file = self
            .environment
            .config_file()
            .unwrap_or_else(|| PathBuf::from("config.toml"));
        format!(
            "{what}. Do one of these:\n\
             - run `tandem login` in a terminal\n\
             - set a provider's key (OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY, …), or start a local server \
             (Ollama, LM Studio, llama.cpp)\n\
             - set TANDEM_BASE_URL and TANDEM_MODEL (TANDEM_API_KEY if it needs a key)\n\
             - write `model = \"provider/model\"` into {}",
            file.display()
        )
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(ErrorCode::NoModel, message)
}

/// The provider's fields, then the model's own.
fn body(provider: &ProviderOptions, model: &ModelOptions) -> Map<String, Value> {
    let mut body = json!({});
    let mut lay = |fields: &Map<String, Value>| {
        overlay(
            &mut body,
            &Value::Object(fields.clone()),
            &mut Vec::new(),
            &mut |_, _| (),
        );
    };
    // An effort needs the field that the provider's body omits.
    let is_in_the_way = |field: &str, value: &Value| {
        let is_effort = Effort::FIELDS.contains(&field);
        model.reasoning_effort.is_some()
            && is_effort
            && matches!(value, Value::Null | Value::Bool(false))
    };
    lay(&provider
        .body
        .iter()
        .filter(|(field, value)| !is_in_the_way(field, value))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect());
    lay(&model
        .temperature
        .map(|temperature| ("temperature".to_owned(), json!(temperature)))
        .into_iter()
        .collect());
    lay(&model.body);
    match body {
        Value::Object(body) => body,
        _ => unreachable!("it was made as an object"),
    }
}
