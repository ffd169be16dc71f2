//! From settings to the parts of a session: the endpoint of the model, the rules, the limits.

use super::permission::Policy;
use super::{SessionId, Setup};
use crate::agent::Limits;
use crate::config::{self, KeySource, ModelSettings, Settings};
use crate::model::{Api, Endpoint, ErrorCode, Key, Prices, Provider, Proxy, TimeLimits};
use crate::workspace::Workspace;

/// Why there is no model to ask.
#[derive(Debug, Clone)]
pub struct NoProvider {
    /// The cause and the ways out, for the person.
    pub message: String,
    /// The kind.
    pub code: ErrorCode,
    /// Nothing at all is configured: a model server on this machine may be looked for.
    pub unset: bool,
}

/// A session on `workspace` as the settings want it.
#[must_use]
pub fn setup(id: SessionId, settings: &Settings, workspace: Workspace) -> Setup {
    let rules = &settings.permissions;
    Setup {
        id,
        provider: provider(settings),
        workspace,
        tools: crate::tools::all(),
        mode: settings.mode,
        policy: Policy::new(&rules.allow, &rules.ask, &rules.deny).0,
        limits: Limits {
            iterations: settings.limits.iterations,
            tokens: settings.limits.tokens,
            cost: settings.limits.cost,
            parallel: settings.limits.parallel as usize,
        },
    }
}

/// What is wrong with the permission rules, in words that name the rule.
#[must_use]
pub fn rule_problems(settings: &Settings) -> Vec<String> {
    let rules = &settings.permissions;
    Policy::new(&rules.allow, &rules.ask, &rules.deny).1
}

/// The configured model.
///
/// # Errors
/// When none is configured, or its key is missing.
pub fn provider(settings: &Settings) -> Result<Provider, NoProvider> {
    match &settings.model {
        Ok(model) => endpoint(model).map(Provider::http),
        Err(config::NoModel { message, unset }) => {
            Err(NoProvider { message: message.clone(), code: ErrorCode::NoModel, unset: *unset })
        }
    }
}

fn endpoint(model: &ModelSettings) -> Result<Endpoint, NoProvider> {
    let key = match &model.key {
        KeySource::None => Key::None,
        KeySource::Variable { value, .. } => Key::Value(value.clone()),
        KeySource::Command(command) => Key::Command(command.words().to_vec()),
        KeySource::Missing { name } => {
            let message = format!(
                "{} needs a key: set the environment variable {name}, or have it printed by a program, such as your \
                 system's keyring, with `api-key-command = {}` in config.toml",
                model.name(),
                keyring(&model.provider)
            );
            return Err(NoProvider { message, code: ErrorCode::Auth, unset: false });
        }
    };
    Ok(Endpoint {
        provider: model.provider.clone(),
        api: match model.api {
            config::Api::Chat => Api::Chat,
            config::Api::Responses => Api::Responses,
            config::Api::Messages => Api::Messages,
        },
        base_url: model.base_url.clone(),
        key,
        model: model.model.clone(),
        headers: model.headers.clone().into_iter().collect(),
        body: model.body.clone(),
        ca_file: model.ca_file.clone(),
        proxy: model.proxy.as_ref().map(|proxy| Proxy { url: proxy.url.clone(), except: proxy.except.clone() }),
        context_window: model.context_window,
        prices: model.prices.map(|prices| Prices {
            input: prices.input,
            cached: prices.cached.unwrap_or(prices.input),
            output: prices.output,
        }),
        limits: TimeLimits {
            connect: model.connect_timeout,
            first_byte: model.first_byte_timeout,
            between: model.idle_timeout,
        },
    })
}

/// The command that prints a key kept in the system's keyring.
fn keyring(provider: &str) -> String {
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["security", "find-generic-password", "-w", "-s", provider]
    } else {
        &["secret-tool", "lookup", "service", provider]
    };
    format!("{words:?}")
}

/// The first model of a server that runs on this machine.
pub(super) async fn local() -> Option<Provider> {
    let server = crate::model::detect().await.into_iter().find(|server| !server.models.is_empty())?;
    let model = server.models.into_iter().next()?;
    Some(Provider::http(Endpoint {
        context_window: model.context_window,
        limits: TimeLimits { first_byte: None, ..TimeLimits::default() },
        ..Endpoint::new(server.name, Api::Chat, &server.base_url, &model.id)
    }))
}

impl Setup {
    /// `provider/model`.
    #[must_use]
    pub fn model_name(&self) -> Option<String> {
        self.provider.as_ref().ok().map(Provider::name)
    }
}
