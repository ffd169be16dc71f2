//! What a setup form needs: the providers, their models, and whether one of them works. Keys in these requests are used
//! once and never stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use crate::domain::{Finding, Verdict};

/// The answer to `_tandem/providers`, a request without params.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Providers {
    /// The providers tandem knows, those found on this machine first.
    pub providers: Vec<ProviderInfo>,
}

/// A provider to choose from.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderInfo {
    /// Its name in `config.toml`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Whether it needs an API key.
    pub needs_key: bool,
    /// The base URL of its API, if known.
    pub base_url: Option<String>,
    /// Whether it is a server running on this machine now.
    pub found_locally: bool,
}

/// `_tandem/models`, a request: the models an endpoint offers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelsParams {
    /// The provider's name.
    pub provider: String,
    /// The key, unless it is configured.
    #[serde(default)]
    pub api_key: Option<String>,
    /// The base URL, unless it is configured.
    #[serde(default)]
    pub base_url: Option<String>,
}

/// The answer to [`ModelsParams`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Models {
    /// The models, the best for a coding agent first where tandem knows it, the others in the endpoint's order.
    pub models: Vec<ModelInfo>,
}

/// A model to choose from.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Its name at the endpoint.
    pub id: String,
    /// The context window in tokens, if known.
    pub context_window: Option<u64>,
    /// The price, if known.
    pub price: Option<ModelPrice>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ModelPrice {
    /// For tokens the model reads.
    pub input: f64,
    /// For tokens the model writes.
    pub output: f64,
}

/// `_tandem/check`, a request: the checks of `tandem doctor` for one model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckParams {
    /// The provider's name.
    pub provider: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// As in [`ModelsParams`].
    #[serde(default)]
    pub api_key: Option<String>,
    /// As in [`ModelsParams`].
    #[serde(default)]
    pub base_url: Option<String>,
}

/// The answer to [`CheckParams`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Checked {
    /// Whether the model can be used.
    pub ok: bool,
    /// What was checked, in order.
    pub findings: Vec<Finding>,
}
