//! The reasoning effort in the terms of an API, host and model family.
//!
//! Invariant: only this module turns an effort into request fields, whether it was configured or chosen in a menu, so
//! that a request never has two.

use serde_json::{Value, json};

use super::family::{self, Family};
use super::host::Host;
use super::{Api, Endpoint};
use crate::domain::Effort;
use crate::text::Fields;

/// How much an answer may have in addition to its thoughts, in tokens.
const ROOM: u32 = 32_000;
/// The most tokens asked for at once: a limit, not a price.
const LONGEST: u32 = 64_000;

/// The request fields for the effort.
pub(super) fn fields(endpoint: &Endpoint) -> Fields {
    let fields = match endpoint.api {
        Api::Chat => chat(endpoint),
        Api::Responses => responses(endpoint),
        Api::Messages => Some(messages(endpoint)),
    };
    match fields {
        Some(Value::Object(fields)) => fields,
        _ => Fields::new(),
    }
}

impl Endpoint {
    /// Whether the model's name contains `part`.
    fn is_called(&self, part: &str) -> bool {
        family::plain(&self.model).contains(part)
    }

    /// The effort as a request to this model spells it, if it has one.
    pub fn effort_sent(&self) -> Option<String> {
        let fields = Value::Object(fields(self));
        let places = [
            "/reasoning/effort",
            "/reasoning_effort",
            "/output_config/effort",
            "/thinking/type",
        ];
        let said = places
            .iter()
            .find_map(|place| fields.pointer(place)?.as_str());
        said.map(str::to_owned)
    }
}

/// The effort somebody chose, as the nearest one that the model takes, or else this one.
fn effort(endpoint: &Endpoint, default: Option<&str>) -> Option<String> {
    let word = endpoint.effort.as_deref().or(default)?;
    let taken = Effort::taken(&endpoint.provider, &endpoint.model);
    // The provider may have words of its own, and others translate `none` for Claude.
    let passes = match endpoint.known().family {
        Family::Claude => word == "none" && endpoint.api == Api::Chat,
        Family::Other => matches!(
            endpoint.host(),
            Host::OpenAi | Host::Azure | Host::Hosted | Host::Other
        ),
        _ => false,
    };
    let word = match Effort::named(word).filter(|_| !passes) {
        Some(effort) => effort.nearest(&taken)?.name(),
        None => word,
    };
    Some(word.to_owned())
}

/// Without an effort gpt-5.1 and later do not reason at all.
fn of_openai(endpoint: &Endpoint) -> Option<String> {
    let is_openai = matches!(endpoint.known().family, Family::Gpt | Family::OSeries);
    effort(endpoint, is_openai.then_some("medium"))
}

fn responses(endpoint: &Endpoint) -> Option<Value> {
    let effort = of_openai(endpoint)?;
    let mut reasoning = json!({ "effort": effort });
    if matches!(endpoint.known().family, Family::Gpt | Family::OSeries) {
        reasoning["summary"] = "auto".into();
    }
    if endpoint.knows_cache_writes() {
        // Without it the server drops the reasoning of earlier turns.
        reasoning["context"] = "all_turns".into();
    }
    Some(json!({ "reasoning": reasoning }))
}

fn chat(endpoint: &Endpoint) -> Option<Value> {
    let known = endpoint.known();
    let word = endpoint.effort.as_deref();
    match endpoint.host() {
        // From 5.4 on the chat API refuses tools beside an effort.
        Host::OpenAi | Host::Azure => {
            let plain = known.family == Family::Gpt && known.at_least(5, 4) && word.is_none();
            let effort = if plain { None } else { of_openai(endpoint) };
            Some(json!({ "reasoning_effort": effort? }))
        }
        Host::OpenRouter | Host::Vercel => {
            let reasons = match known.family {
                Family::Gpt => known.at_least(5, 0),
                Family::Claude => known.at_least(4, 6),
                _ => false,
            };
            let effort = effort(endpoint, reasons.then_some("medium"))?;
            Some(json!({ "reasoning": { "effort": effort } }))
        }
        Host::DeepSeek if word? == "none" => Some(toggle(false)),
        // It refuses `reasoning_effort` beside `thinking`, and older models know neither.
        Host::Moonshot if known.at_least(3, 0) => {
            Some(json!({ "reasoning_effort": effort(endpoint, None)? }))
        }
        Host::Moonshot if known.at_least(2, 6) => {
            // The coding models always think.
            let thinks = word != Some("none") || endpoint.is_called("code");
            Some(if thinks {
                json!({ "thinking": { "type": "enabled", "keep": "all" } })
            } else {
                toggle(false)
            })
        }
        Host::Moonshot if known.at_least(2, 5) => Some(toggle(word? != "none")),
        Host::Moonshot => None,
        Host::Zai => glm(endpoint),
        Host::DashScope => Some(dashscope(endpoint)),
        Host::Groq if known.family == Family::Qwen => {
            Some(json!({ "reasoning_effort": if word? == "none" { "none" } else { "default" } }))
        }
        Host::Google if known.family == Family::Gemini => Some(gemini(endpoint)),
        Host::Mistral | Host::Groq | Host::Google | Host::DeepSeek => {
            Some(json!({ "reasoning_effort": effort(endpoint, None)? }))
        }
        Host::Xai | Host::Anthropic | Host::Hosted | Host::Other => Some(own_server(endpoint)),
    }
}

fn toggle(on: bool) -> Value {
    json!({ "thinking": { "type": if on { "enabled" } else { "disabled" } } })
}

/// GLM forgets the thoughts of earlier turns unless it is told to keep them, and then misses its cache.
fn glm(endpoint: &Endpoint) -> Option<Value> {
    let (known, word) = (endpoint.known(), endpoint.effort.as_deref());
    if !known.at_least(4, 7) {
        return Some(toggle(word? != "none"));
    }
    // From 5.3 on it always thinks.
    if word == Some("none") && !known.at_least(5, 3) {
        return Some(toggle(false));
    }
    let mut fields = json!({ "thinking": { "type": "enabled", "clear_thinking": false } });
    if let Some(effort) = effort(endpoint, None).filter(|_| known.at_least(5, 2)) {
        fields["reasoning_effort"] = effort.into();
    }
    Some(fields)
}

/// Qwen forgets the thoughts of earlier turns unless it is told to keep them.
fn dashscope(endpoint: &Endpoint) -> Value {
    let (known, mut fields) = (endpoint.known(), Fields::new());
    if let Some(word) = &endpoint.effort {
        fields.insert("enable_thinking".into(), (word != "none").into());
    }
    if known.family == Family::Qwen && known.at_least(3, 6) {
        fields.insert("preserve_thinking".into(), true.into());
    }
    fields.into()
}

/// Gemini shows its thoughts only where they are asked for.
fn gemini(endpoint: &Endpoint) -> Value {
    let known = endpoint.known();
    let mut thinking = json!({ "include_thoughts": true });
    if known.at_least(3, 0) {
        if let Some(level) = effort(endpoint, None) {
            thinking["thinking_level"] = level.into();
        }
    } else if let Some(effort) = endpoint.effort.as_deref().and_then(Effort::named) {
        // Pro always thinks, and the others think less.
        let least = if endpoint.is_called("pro") { 128 } else { 0 };
        thinking["thinking_budget"] = effort.budget().clamp(least, 24_576).into();
    }
    json!({ "extra_body": { "google": { "thinking_config": thinking } } })
}

/// Templates of models that people run themselves drop earlier thoughts unless told otherwise: then the request no longer
/// begins like the one before, and the server reads it anew.
fn own_server(endpoint: &Endpoint) -> Value {
    let mut fields = Fields::new();
    if let Some(effort) = effort(endpoint, None) {
        fields.insert("reasoning_effort".into(), effort.into());
    }
    if let Some((switch, value)) = endpoint.template_switch() {
        fields.insert("chat_template_kwargs".into(), json!({ switch: value }));
    }
    fields.into()
}

/// The API demands a limit of the answer, which counts the thoughts too.
fn messages(endpoint: &Endpoint) -> Value {
    let known = endpoint.known();
    let most = longest(endpoint);
    let limit = |tokens: u32| endpoint.max_tokens.unwrap_or_else(|| tokens.into());
    match known.family {
        Family::Kimi | Family::MiniMax if known.at_least(3, 0) => {
            let mut fields = json!({ "max_tokens": limit(LONGEST) });
            if let Some(effort) = effort(endpoint, None) {
                let is_off = effort == "none";
                let kind = if is_off { "disabled" } else { "adaptive" };
                fields["thinking"] = json!({ "type": kind });
                if !is_off {
                    fields["output_config"] = json!({ "effort": effort });
                }
            }
            fields
        }
        Family::Claude if known.at_least(4, 6) => {
            let mut fields = json!({ "max_tokens": limit(LONGEST.min(most)) });
            let is_called = |part| endpoint.is_called(part);
            let is_newest = known.at_least(5, 5);
            let always_thinks =
                is_called("fable") || is_called("mythos") || is_called("opus") && is_newest;
            if endpoint.effort.as_deref() == Some("none") && !always_thinks {
                // From 5.5 on, Sonnet takes no notes before it acts, but some in between.
                let notes = is_called("sonnet") && is_newest;
                let kind = if notes { "between_tools" } else { "disabled" };
                fields["thinking"] = json!({ "type": kind });
                return fields;
            }
            fields["thinking"] = json!({ "type": "adaptive" });
            if known.at_least(4, 7) {
                // By default they think in secret.
                fields["thinking"]["display"] = "summarized".into();
            }
            if let Some(effort) = effort(endpoint, None) {
                fields["output_config"] = json!({ "effort": effort });
            }
            fields
        }
        Family::Claude if !known.at_least(3, 7) => json!({ "max_tokens": limit(most) }),
        Family::Claude => {
            // Half of the limit stays for the answer.
            let wanted = chosen_budget(endpoint, Effort::Medium.budget());
            let half = u32::try_from(limit(most.min(wanted + ROOM)) / 2).unwrap_or(u32::MAX);
            let budget = wanted.min(half);
            budgeted(budget, limit(most.min(budget + ROOM)))
        }
        // Others think by default.
        _ if endpoint.effort.as_deref() == Some("none") => {
            json!({ "max_tokens": limit(ROOM), "thinking": { "type": "disabled" } })
        }
        _ => {
            let budget = chosen_budget(endpoint, 0);
            budgeted(budget, limit(ROOM + budget))
        }
    }
}

fn chosen_budget(endpoint: &Endpoint, default: u32) -> u32 {
    let effort = endpoint.effort.as_deref().and_then(Effort::named);
    effort.map_or(default, Effort::budget)
}

/// The API takes no budget below 1 024.
fn budgeted(budget: u32, limit: u64) -> Value {
    if budget < 1_024 {
        return json!({ "max_tokens": limit });
    }
    json!({ "max_tokens": limit, "thinking": { "type": "enabled", "budget_tokens": budget } })
}

/// The most a Claude of this version writes.
fn longest(endpoint: &Endpoint) -> u32 {
    let known = endpoint.known();
    let is_opus = endpoint.is_called("opus");
    if known.at_least(4, 5) || known.at_least(3, 7) && !is_opus {
        LONGEST
    } else if known.at_least(4, 0) {
        ROOM
    } else if known.at_least(3, 5) {
        8_192
    } else {
        4_096
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effort_that_is_sent_is_shown() {
        let check = |provider: &str, api, model: &str, expected: Option<&str>| {
            assert_eq!(
                Endpoint::new(provider, api, "", model)
                    .effort_sent()
                    .as_deref(),
                expected,
                "{model}"
            );
        };
        check("openai", Api::Responses, "gpt-5.5", Some("medium"));
        check("openai", Api::Responses, "gpt-4.1", None);
        check(
            "anthropic",
            Api::Messages,
            "claude-sonnet-4-6",
            Some("adaptive"),
        );
        check(
            "anthropic",
            Api::Messages,
            "claude-sonnet-4-5",
            Some("enabled"),
        );
        check("xai", Api::Chat, "grok-4.3", None);
    }

    #[test]
    fn a_model_that_thinks_by_default_can_be_told_not_to() {
        for (provider, model) in [("deepseek", "deepseek-v4-pro"), ("proxy", "qwen3.7-max")] {
            let endpoint = Endpoint {
                effort: Some("none".to_owned()),
                ..Endpoint::new(provider, Api::Messages, "", model)
            };
            assert_eq!(endpoint.effort_sent().as_deref(), Some("disabled"));
        }
    }
}
