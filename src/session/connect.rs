//! From settings to the parts of a session: the endpoint of the model, the rules, the limits.

use super::permission::Policy;
use super::{SessionId, Setup};
use crate::agent::Limits;
use crate::config::Settings;
use crate::model::{Endpoint, Key, Provider, TimeLimits};
use crate::workspace::Workspace;

/// A session on `workspace` as the settings want it.
#[must_use]
pub fn setup(id: SessionId, settings: &Settings, workspace: Workspace) -> Setup {
    let (policy, _) = Policy::new(&[], &[], &[]);
    let provider = match &settings.model {
        Some(m) => Ok(Provider::http(Endpoint { provider: m.provider.clone(), api: crate::model::Api::Chat, base_url: m.base_url.clone(), key: m.key.clone().map_or(Key::None, |k| Key::Value(k.into())), model: m.model.clone(), headers: vec![], body: serde_json::Map::new(), ca_file: None, context_window: None, limits: TimeLimits::default() })),
        None => Err(settings.no_model.clone()),
    };
    Setup { id, provider, workspace, tools: crate::tools::all(), mode: settings.mode, policy, limits: Limits::default() }
}

impl Setup {
    /// `provider/model`.
    #[must_use]
    pub fn model_name(&self) -> Option<String> {
        self.provider.as_ref().ok().map(Provider::name)
    }
}
