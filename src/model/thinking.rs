//! The reasoning effort in the terms of an API, host and model family.
//!
//! Invariant: only this module turns an effort into request fields, whether it was configured or chosen in a menu, so
//! that a request never has two.

use serde_json::{Map, Value, json};

use super::family::{self, Family};
use super::host::Host;
use super::{Api, Endpoint};
use crate::domain::Effort;

/// How much an answer may have in addition to its thoughts, in tokens.
const ROOM: u32 = 32_000;
/// The most tokens asked for at once: a limit, not a price.
const LONGEST: u32 = 64_000;

/// The request fields for the effort.
pub(super) fn fields(endpoint: &Endpoint) -> Map<String, Value> {
    let fields = match endpoint.api {
        Api::Chat => chat(endpoint),
        Api::Responses => responses(endpoint),
        Api::Messages => Some(messages(endpoint)),
    };
    match fields {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
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

/// The effort somebody chose, in the words of a family that knows those from `least` to `most`.
fn chosen(endpoint: &Endpoint, least: Effort, most: Effort) -> Option<String> {
    let word = endpoint.effort.as_deref()?;
    Some(
        Effort::named(word)
            .map_or(word, |effort| effort.within(least, most).name())
            .to_owned(),
    )
}

/// Without an effort gpt-5.1 and later do not reason at all.
fn of_openai(endpoint: &Endpoint) -> Option<String> {
    let known = endpoint.known();
    let reasons = match known.family {
        Family::Gpt => known.at_least(5, 0) && !endpoint.is_called("gpt-5-chat"),
        Family::OSeries => true,
        _ => return endpoint.effort.clone(),
    };
    if !reasons {
        return None;
    }
    let hardest = if known.at_least(5, 6) {
        Effort::Max
    } else {
        Effort::Xhigh
    };
    if endpoint.is_called("-pro") {
        return Some(chosen(endpoint, Effort::High, hardest).unwrap_or_else(|| "high".to_owned()));
    }
    let (least, most) = match known.family {
        Family::Gpt if known.at_least(6, 0) => (Effort::Low, hardest),
        Family::Gpt if known.at_least(5, 6) => (Effort::None, hardest),
        Family::Gpt if known.at_least(5, 2) => (Effort::None, Effort::Xhigh),
        Family::Gpt if known.at_least(5, 1) => (Effort::None, Effort::High),
        Family::Gpt => (Effort::Minimal, Effort::High),
        _ => (Effort::Low, Effort::High),
    };
    let word = chosen(endpoint, least, most).unwrap_or_else(|| "medium".to_owned());
    // gpt-5.1 dropped `minimal`.
    let gone = word == "minimal" && known.family == Family::Gpt && known.at_least(5, 1);
    Some(if gone { "low".to_owned() } else { word })
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
    let toggle =
        |on: bool| json!({ "thinking": { "type": if on { "enabled" } else { "disabled" } } });
    let word = endpoint.effort.as_deref();
    match endpoint.host() {
        // From 5.4 on the chat API refuses tools beside an effort.
        Host::OpenAi | Host::Azure => {
            let plain = known.family == Family::Gpt && known.at_least(5, 4) && word.is_none();
            let effort = if plain { None } else { of_openai(endpoint) };
            Some(json!({ "reasoning_effort": effort? }))
        }
        Host::OpenRouter | Host::Vercel => {
            let default = match known.family {
                Family::Gpt => known.at_least(5, 0),
                Family::Claude => known.at_least(4, 6),
                _ => false,
            };
            let effort = match known.family {
                Family::Gpt | Family::OSeries if word.is_some() => of_openai(endpoint),
                _ => word.or(default.then_some("medium")).map(str::to_owned),
            };
            Some(json!({ "reasoning": { "effort": effort? } }))
        }
        Host::DeepSeek if word? == "none" => Some(toggle(false)),
        Host::DeepSeek => {
            let least = if known.at_least(4, 1) { "low" } else { "high" };
            Some(json!({ "reasoning_effort": of_three(endpoint)?.replace("low", least) }))
        }
        // It refuses `reasoning_effort` beside `thinking`, and older models know neither.
        Host::Moonshot if known.at_least(3, 0) => {
            Some(json!({ "reasoning_effort": of_three(endpoint)? }))
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
        Host::DashScope => dashscope(endpoint),
        Host::Mistral => {
            Some(json!({ "reasoning_effort": if word? == "none" { "none" } else { "high" } }))
        }
        Host::Groq if known.family == Family::Qwen => {
            Some(json!({ "reasoning_effort": if word? == "none" { "none" } else { "default" } }))
        }
        Host::Groq => {
            Some(json!({ "reasoning_effort": chosen(endpoint, Effort::Low, Effort::High)? }))
        }
        Host::Google if known.family == Family::Gemini => Some(gemini(endpoint)),
        Host::Google => {
            Some(json!({ "reasoning_effort": chosen(endpoint, Effort::None, Effort::High)? }))
        }
        Host::Xai | Host::Anthropic | Host::Hosted | Host::Other => own_server(endpoint),
    }
}

/// For models that know three efforts: low, high and max.
fn of_three(endpoint: &Endpoint) -> Option<&'static str> {
    match Effort::named(endpoint.effort.as_deref()?)? {
        Effort::None | Effort::Minimal | Effort::Low => Some("low"),
        Effort::Medium | Effort::High => Some("high"),
        Effort::Xhigh | Effort::Max => Some("max"),
    }
}

/// GLM forgets the thoughts of earlier turns unless it is told to keep them, and then misses its cache.
fn glm(endpoint: &Endpoint) -> Option<Value> {
    let (known, word) = (endpoint.known(), endpoint.effort.as_deref());
    if !known.at_least(4, 7) {
        let on = word? != "none";
        return Some(json!({ "thinking": { "type": if on { "enabled" } else { "disabled" } } }));
    }
    // From 5.3 on it always thinks.
    if word == Some("none") && !known.at_least(5, 3) {
        return Some(json!({ "thinking": { "type": "disabled" } }));
    }
    let mut fields = json!({ "thinking": { "type": "enabled", "clear_thinking": false } });
    let effort = of_three(endpoint).filter(|_| known.at_least(5, 2));
    if let Some(effort) = effort {
        let least = if known.at_least(5, 3) { "low" } else { "high" };
        fields["reasoning_effort"] = effort.replace("low", least).into();
    }
    Some(fields)
}

/// Qwen forgets the thoughts of earlier turns unless it is told to keep them.
fn dashscope(endpoint: &Endpoint) -> Option<Value> {
    let (known, mut fields) = (endpoint.known(), Map::new());
    if let Some(word) = &endpoint.effort {
        fields.insert("enable_thinking".into(), (word != "none").into());
    }
    if known.family == Family::Qwen && known.at_least(3, 6) {
        fields.insert("preserve_thinking".into(), true.into());
    }
    (!fields.is_empty()).then(|| fields.into())
}

/// Gemini shows its thoughts only where they are asked for.
fn gemini(endpoint: &Endpoint) -> Value {
    let known = endpoint.known();
    let mut thinking = json!({ "include_thoughts": true });
    if known.at_least(3, 0) {
        let least = if known.at_least(3, 7) {
            Effort::Low
        } else {
            Effort::Minimal
        };
        if let Some(level) = chosen(endpoint, least, Effort::High) {
            thinking["thinking_level"] = level.into();
        }
    } else if let Some(effort) = endpoint.effort.as_deref().and_then(Effort::named) {
        thinking["thinking_budget"] = effort.budget().into();
    }
    json!({ "extra_body": { "google": { "thinking_config": thinking } } })
}

/// Templates of models that people run themselves drop earlier thoughts unless told otherwise: then the request no longer
/// begins like the one before, and the server reads it anew.
fn own_server(endpoint: &Endpoint) -> Option<Value> {
    let mut fields = Map::new();
    if let Some(word) = &endpoint.effort {
        fields.insert("reasoning_effort".into(), word.as_str().into());
    }
    if let Some((switch, value)) = endpoint.template_switch() {
        fields.insert("chat_template_kwargs".into(), json!({ switch: value }));
    }
    (!fields.is_empty()).then(|| fields.into())
}

/// The API demands a limit of the answer, which counts the thoughts too.
fn messages(endpoint: &Endpoint) -> Value {
    let known = endpoint.known();
    let most = longest(endpoint);
    if known.family != Family::Claude {
        let budget = chosen_budget(endpoint, 0);
        return budgeted(
            budget,
            endpoint
                .max_tokens
                .unwrap_or_else(|| (ROOM + budget).into()),
        );
    }
    if known.at_least(4, 6) {
        let limit = endpoint
            .max_tokens
            .map_or(json!(LONGEST.min(most)), |tokens| json!(tokens));
        let always_thinks = ["fable", "mythos"]
            .iter()
            .any(|line| endpoint.is_called(line))
            || endpoint.is_called("opus") && known.at_least(5, 5);
        if endpoint.effort.as_deref() == Some("none") && !always_thinks {
            // From 5.5 on, Sonnet takes no notes before it acts, but some in between.
            let is_newest = endpoint.is_called("sonnet") && known.at_least(5, 5);
            let off = if is_newest {
                "between_tools"
            } else {
                "disabled"
            };
            return json!({ "max_tokens": limit, "thinking": { "type": off } });
        }
        let hardest = |effort: String| {
            if known.at_least(4, 7) {
                effort
            } else {
                effort.replace("xhigh", "high")
            }
        };
        let mut fields = json!({ "max_tokens": limit, "thinking": { "type": "adaptive" } });
        if known.at_least(4, 7) {
            // By default they think in secret.
            fields["thinking"]["display"] = "summarized".into();
        }
        if let Some(effort) = chosen(endpoint, Effort::Low, Effort::Max).map(hardest) {
            fields["output_config"] = json!({ "effort": effort });
        }
        return fields;
    }
    if !known.at_least(3, 7) {
        return json!({ "max_tokens": endpoint.max_tokens.unwrap_or_else(|| most.into()) });
    }
    let limit = |budget: u32| {
        endpoint
            .max_tokens
            .unwrap_or_else(|| most.min(budget + ROOM).into())
    };
    // Half of the limit stays for the answer.
    let wanted = chosen_budget(endpoint, Effort::Medium.budget());
    let half = u32::try_from(limit(wanted) / 2).unwrap_or(u32::MAX);
    let budget = wanted.min(half);
    budgeted(budget, limit(budget))
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
    fn the_effort_that_is_sent_is_told() {
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
}
