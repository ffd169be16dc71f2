//! What providers refuse or require, one rule per sentence. The `wire-rules` audit names the
//! sources.
//!
//! Each rule states to whom it applies, whether a request follows it, and how to break it in a request: with the last,
//! the tests prove that the rule can fail.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};
use tandem::model::Api;

use super::efforts;
use super::server::{Memory, Request, known};

/// A rule.
pub struct Rule {
    pub says: &'static str,
    /// The providers and models it applies to.
    pub of: fn(&Request) -> bool,
    pub holds: fn(&Request, &Memory) -> bool,
    /// Breaks it in a request, if possible.
    pub spoil: fn(&mut Request, &Memory),
}

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    EVERYWHERE
        .iter()
        .chain(responses::RULES)
        .chain(messages::RULES)
        .chain(chat::RULES)
        .chain(efforts::RULES)
}

/// The rules that a request breaks.
pub fn broken(request: &Request, memory: &Memory) -> Vec<&'static str> {
    all()
        .filter(|rule| (rule.of)(request) && !(rule.holds)(request, memory))
        .map(|rule| rule.says)
        .collect()
}

const EVERYWHERE: &[Rule] = &[
    Rule {
        says: "The model does not exist",
        of: |_| true,
        holds: |request, _| known(request).is_some(),
        spoil: |request, _| request.body["model"] = "gpt-0".into(),
    },
    Rule {
        says: "Unknown field at the top level",
        of: |_| true,
        holds: |request, _| fields(&request.body).all(|field| is_known(request, field)),
        spoil: |request, _| request.body["frobnicate"] = true.into(),
    },
    Rule {
        says: "The answer is streamed",
        of: |_| true,
        holds: |request, _| request.body["stream"] == true,
        spoil: |request, _| request.body["stream"] = false.into(),
    },
    Rule {
        says: "Tools, system prompt and settings are the same bytes in every request to a model",
        of: |_| true,
        holds: |request, memory| {
            memory
                .openings
                .get(&request.row())
                .is_none_or(|opening| opening == request.opening())
        },
        spoil: |request, _| request.body["tools"][0]["description"] = "Another.".into(),
    },
    Rule {
        says: "A request repeats the one before byte for byte",
        of: |_| true,
        holds: |request, memory| {
            let before = memory
                .before
                .as_ref()
                .filter(|before| before.row() == request.row());
            before.is_none_or(|before| request.raw.starts_with(before.raw.trim_end_matches("]}")))
        },
        spoil: |request, _| {
            list(request)[0] = json!({ "role": "user", "content": "Another beginning." });
        },
    },
    Rule {
        says: "Another model's reasoning is not in the request",
        of: |_| true,
        holds: |request, memory| {
            let foreign = memory
                .issued
                .iter()
                .filter(|issued| issued.row != request.row());
            !foreign
                .flat_map(|issued| &issued.secrets)
                .any(|secret| request.raw.contains(secret))
        },
        spoil: |request, memory| {
            let row = request.row();
            if let Some(foreign) = memory.issued.iter().find(|issued| issued.row != row) {
                request.body["model_note"] = foreign.secrets[1].clone().into();
            }
        },
    },
    Rule {
        says: "A temperature is sent where somebody chose one and the model takes it",
        of: |_| true,
        holds: |request, memory| {
            let is_sent = request.body.get("temperature").is_some();
            is_sent == (memory.is_chosen && takes_temperature(request))
                && request.body.get("top_p").is_none()
        },
        spoil: |request, _| request.body["top_p"] = 1.into(),
    },
    Rule {
        says: "The limit of an answer is the chosen one, in the field that the model takes",
        of: |_| true,
        holds: |request, memory| {
            let ours = if request.api == Api::Responses {
                "max_output_tokens"
            } else {
                "max_tokens"
            };
            let is_free = request.api == Api::Messages && !memory.is_chosen;
            let expected = memory.is_chosen.then(|| json!(CHOSEN_LIMIT));
            is_free
                || request.body.get(ours) == expected.as_ref()
                    && request.body.get("max_completion_tokens").is_none()
        },
        spoil: |request, _| request.body["max_completion_tokens"] = 7.into(),
    },
    Rule {
        says: "A tool has a name of letters, digits, _ and -, a description and a schema of an object",
        of: |request| !request.is_summary(),
        holds: |request, _| {
            tools(&request.body).iter().all(|tool| is_good_tool(tool))
                && !tools(&request.body).is_empty()
        },
        spoil: |request, _| {
            let tool = &mut request.body["tools"][0];
            let function = if tool.get("function").is_some() {
                &mut tool["function"]
            } else {
                tool
            };
            function["name"] = "a tool".into();
        },
    },
    Rule {
        says: "OpenAI's models since gpt-4.1 edit with patches, whoever serves them, all others with old and new text",
        of: |request| !request.is_summary(),
        holds: |request, _| {
            let model = request.model();
            let patches = ["gpt-", "o3", "o4"].iter().any(|name| model.contains(name))
                && !model.contains("gpt-4o");
            let has = |name: &str| tools(&request.body).iter().any(|tool| tool["name"] == name);
            has("apply_patch") == patches && has("edit_file") != patches
        },
        spoil: |request, _| request.body["tools"] = json!([]),
    },
];

/// The answer limit in a session with a configured limit.
pub const CHOSEN_LIMIT: u64 = 40_000;

/// Models that always think refuse a temperature.
fn takes_temperature(request: &Request) -> bool {
    let model = request.model().to_lowercase();
    !["gpt-5", "gpt-6", "kimi", "k3", "claude"]
        .iter()
        .any(|name| model.contains(name))
}

/// The functions in a body, whatever surrounds them.
fn tools(body: &Value) -> Vec<&Value> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .map(|tool| tool.get("function").unwrap_or(tool))
        .collect()
}

fn is_good_tool(tool: &Value) -> bool {
    let schema = tool.get("parameters").or_else(|| tool.get("input_schema"));
    tool["name"].as_str().is_some_and(|name| is_word(name, 64))
        && tool["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
        && schema.is_some_and(|schema| schema["type"] == "object")
}

/// Whether it consists of letters, digits, `_` and `-`.
fn is_word(text: &str, longest: usize) -> bool {
    !text.is_empty()
        && text.len() <= longest
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn fields(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(field, _)| field.as_str())
}

/// The messages of a request.
fn list(request: &mut Request) -> &mut Vec<Value> {
    let field = if request.api == Api::Responses {
        "input"
    } else {
        "messages"
    };
    request.body[field]
        .as_array_mut()
        .expect("a request has messages")
}

/// The top-level fields that a provider accepts.
fn is_known(request: &Request, field: &str) -> bool {
    let usual = match request.api {
        Api::Responses => responses::FIELDS,
        Api::Messages => messages::FIELDS,
        Api::Chat => chat::FIELDS,
    };
    usual.contains(&field) || request.api == Api::Chat && chat::takes(&request.provider, field)
}
