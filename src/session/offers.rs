//! Providers and models that can be chosen before a session has begun.

use std::time::Duration;

use secrecy::SecretString;
use tokio::time::timeout;

use super::connect;
use crate::config::{self, ProviderEntry, Settings};
use crate::model::{Endpoint, ErrorCode, Failure, Key, ModelInfo, Provider, detect};

/// All known providers; probes the well-known local ports, which takes less than half a second. A server of another
/// user is listed with that user's name.
pub async fn providers(settings: &Settings) -> Vec<ProviderEntry> {
    let running = detect().await;
    let mut entries = settings.providers();
    let is_editors = |entry: &ProviderEntry| entry.base_url.as_deref() == Some(config::EDITOR);
    entries.retain(|entry| settings.editor_models.is_some() || !is_editors(entry));
    for entry in &mut entries {
        if let Some(server) = running.iter().find(|server| server.name == entry.name) {
            entry.is_running = true;
            if let Some(owner) = &server.owner {
                entry.title = format!("{}, run by user {owner}", entry.title);
            }
        }
    }
    entries
}

/// A provider that is being set up.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The provider's name.
    pub provider: String,
    /// The key, used once and never stored; `None` for the configured one.
    pub key: Option<SecretString>,
    /// The base URL; `None` for the configured one.
    pub base_url: Option<String>,
}

impl Candidate {
    /// A provider with this key and base URL, if given.
    pub fn new(provider: &str, key: Option<String>, base_url: Option<String>) -> Self {
        let given = |text: &String| !text.trim().is_empty();
        Self {
            provider: provider.to_owned(),
            key: key.filter(given).map(Into::into),
            base_url: base_url.filter(given),
        }
    }

    /// The provider with this model, or with the best one it offers.
    ///
    /// # Errors
    /// The provider is unknown, has no base URL, needs a key, or offers no chat model.
    pub async fn chosen(&self, settings: &Settings, model: &str) -> Result<Provider, Failure> {
        if !model.is_empty() {
            return self.with_model(settings, model);
        }
        let models = self.models(settings).await?;
        let first = models.first().ok_or_else(|| {
            let message = format!("{} offers no chat model", self.provider);
            Failure::new(ErrorCode::NoModel, message)
        })?;
        self.with_model(settings, &first.id)
    }

    /// The chat models, the best for a coding agent first, with what is known of each.
    ///
    /// # Errors
    /// The provider cannot be reached, refuses the key, or has no list of models.
    pub async fn models(&self, settings: &Settings) -> Result<Vec<ModelInfo>, Failure> {
        let listed = self.with_model(settings, "")?.models().await?;
        let mut models: Vec<_> = listed.into_iter().filter(|model| !model.is_other).collect();
        if let Some(best) = best(&self.provider, &models)
            && let Some(index) = models.iter().position(|model| named(model) == best)
            && let Some(upto) = models.get_mut(..=index)
        {
            upto.rotate_right(1);
        }
        let own_server =
            config::Provider::named(&self.provider).is_some_and(config::Provider::is_local);
        let known = |model: ModelInfo| model.with_known(own_server);
        Ok(models.into_iter().map(known).collect())
    }

    fn with_model(&self, settings: &Settings, model: &str) -> Result<Provider, Failure> {
        // A provider is reached in the same way for every model.
        let name = format!(
            "{}/{}",
            self.provider,
            if model.is_empty() { "?" } else { model }
        );
        let mut endpoint = settings.model_at(&name, self.base_url.as_deref())?;
        if let Some(key) = &self.key {
            endpoint.key = Key::Value(key.clone());
        }
        connect::ready(settings, endpoint).map(Provider::http)
    }
}

/// Its name without the prefix in Google's list.
fn named(model: &ModelInfo) -> &str {
    model.id.strip_prefix("models/").unwrap_or(&model.id)
}

/// How long a first prompt waits for the list of models.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The best model this provider's key can use; `None` if the list cannot be fetched or the current model is the best.
pub(super) async fn better(provider: Provider) -> Option<Provider> {
    let models = timeout(TIMEOUT, provider.models()).await.ok()?.ok()?;
    let best = best(&provider.endpoint().provider, &models)?;
    (best != provider.endpoint().model).then(|| provider.with_model(&best))
}

/// The best model by the provider's preferences.
pub(super) fn best(provider: &str, models: &[ModelInfo]) -> Option<String> {
    let row = config::Provider::named(provider)?;
    config::best(
        row.preferred,
        &models.iter().filter(|model| !model.is_other).map(named),
    )
    .map(str::to_owned)
}

/// The model for a new session, and why it was chosen.
///
/// # Errors
/// There is none, or its key is missing.
pub async fn chosen(settings: &Settings) -> Result<(Provider, String), Failure> {
    if settings.names_no_model() {
        let why = "nothing is configured, and this server runs on this machine".to_owned();
        return Ok((connect::provider_or_local(settings).await?, why));
    }
    let configured = connect::provider(settings)?;
    let Some(Endpoint { key, .. }) = settings.model_of_a_key() else {
        let entry = settings
            .entries()
            .into_iter()
            .find(|entry| entry.key == "model");
        let place = entry.and_then(|entry| entry.origins.last().map(ToString::to_string));
        return Ok((
            configured,
            place.map_or_else(String::new, |place| format!("chosen in {place}")),
        ));
    };
    let best = better(configured.clone()).await;
    let why = format!(
        "{key} is set, and this is the best model tandem knows for it; set `model` to choose another"
    );
    Ok((best.unwrap_or(configured), why))
}
