//! Inline completion as it is configured: off unless it has a model.

use std::num::NonZeroU64;
use std::time::Duration;

use super::model::Choice;
use super::options::CompletionOptions;
use super::providers::Provider;
use crate::domain::{CompletionApi, EditFormat, Failure};

/// A configured inline completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// `provider/model`.
    pub model: String,
    /// How it is asked.
    pub api: CompletionApi,
    /// How long typing has to pause before a request is sent.
    pub debounce: Duration,
    /// The most tokens of a suggestion.
    pub max_tokens: u64,
    /// Whether edits are suggested.
    pub next_edit: bool,
    /// The prompt format for that, unless the model's name tells it.
    pub edit_format: Option<EditFormat>,
}

impl Choice<'_> {
    /// The inline completion, if one is configured.
    pub(super) fn completion(&self) -> Result<Option<Completion>, Failure> {
        let CompletionOptions {
            model,
            api,
            debounce_ms,
            max_tokens,
            next_edit,
            edit_format,
        } = &self.options.completion;
        let Some(model) = model else { return Ok(None) };
        let provider = self.model_named(model)?.provider;
        let usual = || {
            Provider::named(&provider)
                .map(|row| row.completion)
                .unwrap_or_default()
        };
        Ok(Some(Completion {
            model: model.clone(),
            api: api.unwrap_or_else(usual),
            // The defaults are values of the built-in layer.
            debounce: Duration::from_millis(debounce_ms.unwrap_or_default()),
            max_tokens: max_tokens.map_or(u64::MAX, NonZeroU64::get),
            next_edit: next_edit.unwrap_or_default(),
            edit_format: *edit_format,
        }))
    }
}
