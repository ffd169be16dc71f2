//! OpenAI and Azure.

use serde_json::{Value, json};
use tandem::model::Api;

use super::{Rule, is_word, list};
use crate::strict::server::Request;

pub const FIELDS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "stream",
    "store",
    "include",
    "reasoning",
    "prompt_cache_key",
    "prompt_cache_retention",
    "max_output_tokens",
    "parallel_tool_calls",
    "text",
    "truncation",
    "metadata",
    "service_tier",
    "temperature",
];

fn is_openai(request: &Request) -> bool {
    matches!(request.provider.as_str(), "openai" | "azure")
}

fn speaks(request: &Request) -> bool {
    request.api == Api::Responses
}

fn reasons(request: &Request) -> bool {
    speaks(request)
        && !["gpt-4", "gpt-5-chat"]
            .iter()
            .any(|name| request.model().starts_with(name))
}

/// Models that bill cache writes.
fn writes_cache(request: &Request) -> bool {
    speaks(request)
        && ["gpt-5.6", "gpt-6"]
            .iter()
            .any(|name| request.model().starts_with(name))
}

fn items(request: &Request) -> &[Value] {
    request.body["input"].as_array().map_or(&[], Vec::as_slice)
}

fn ids<'a>(request: &'a Request, kinds: [&str; 2]) -> Vec<&'a str> {
    let of_kind = items(request)
        .iter()
        .filter(|item| kinds.iter().any(|kind| item["type"] == *kind));
    of_kind
        .map(|item| item["call_id"].as_str().unwrap_or_default())
        .collect()
}

const CALLS: [&str; 2] = ["function_call", "custom_tool_call"];
const OUTPUTS: [&str; 2] = ["function_call_output", "custom_tool_call_output"];

pub const RULES: &[Rule] = &[
    Rule {
        says: "Function tools are not supported in /v1/chat/completions. Please use /v1/responses instead.",
        of: is_openai,
        holds: |request, _| speaks(request),
        spoil: |request, _| request.api = Api::Chat,
    },
    Rule {
        says: "Nothing is stored",
        of: speaks,
        holds: |request, _| request.body["store"] == false,
        spoil: |request, _| request.body["store"] = true.into(),
    },
    Rule {
        says: "Encrypted reasoning is asked for",
        of: reasons,
        holds: |request, _| request.body["include"] == json!(["reasoning.encrypted_content"]),
        spoil: |request, _| request.body["include"] = json!([]),
    },
    Rule {
        says: "Encrypted content is not supported with this model. (include)",
        of: |request| speaks(request) && !reasons(request),
        holds: |request, _| request.body.get("include").is_none(),
        spoil: |request, _| request.body["include"] = json!(["reasoning.encrypted_content"]),
    },
    Rule {
        says: "Without an effort the model does not reason",
        of: reasons,
        holds: |request, _| request.body["reasoning"]["effort"].is_string(),
        spoil: |request, _| request.body["reasoning"] = json!({ "summary": "auto" }),
    },
    Rule {
        says: "Reasoning of earlier turns is dropped without reasoning.context",
        of: writes_cache,
        holds: |request, _| request.body["reasoning"]["context"] == "all_turns",
        spoil: |request, _| {
            request.body["reasoning"] = json!({ "effort": "high", "summary": "auto" });
        },
    },
    Rule {
        says: "The cache is written at the end of the instructions only where a breakpoint says so",
        of: writes_cache,
        holds: |request, _| {
            let first = &items(request)[0];
            first["role"] == "developer"
                && first["content"][0]["prompt_cache_breakpoint"] == json!({ "mode": "explicit" })
        },
        spoil: |request, _| drop(list(request).remove(0)),
    },
    Rule {
        says: "The cache of older models is kept for a day only if asked for",
        of: |request| request.provider == "openai" && request.model() == "gpt-4.1",
        holds: |request, _| request.body["prompt_cache_retention"] == "24h",
        spoil: |request, _| request.body["prompt_cache_retention"] = Value::Null,
    },
    Rule {
        says: "Unsupported parameter: prompt_cache_retention",
        of: |request| {
            request.model() == "gpt-4o" || request.provider == "azure" || writes_cache(request)
        },
        holds: |request, _| request.body.get("prompt_cache_retention").is_none(),
        spoil: |request, _| request.body["prompt_cache_retention"] = "24h".into(),
    },
    Rule {
        says: "A summary of the reasoning is asked for",
        of: reasons,
        holds: |request, _| request.body["reasoning"]["summary"] == "auto",
        spoil: |request, _| request.body["reasoning"] = json!({ "effort": "high" }),
    },
    Rule {
        says: "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        of: |request| speaks(request) && !reasons(request),
        holds: |request, _| request.body.get("reasoning").is_none(),
        spoil: |request, _| request.body["reasoning"] = json!({ "effort": "high" }),
    },
    Rule {
        says: "A conversation has a cache key of its own, the same in every request",
        of: speaks,
        holds: |request, memory| {
            let key = &request.body["prompt_cache_key"];
            let fits = key
                .as_str()
                .is_some_and(|key| !key.is_empty() && key.len() <= 64);
            fits && memory.key.as_ref().is_none_or(|known| known == key)
        },
        spoil: |request, _| request.body["prompt_cache_key"] = "".into(),
    },
    Rule {
        says: "Output items go back as they came and in their order",
        of: speaks,
        holds: |request, memory| {
            let row = request.row();
            let issued = memory.issued.iter().filter(|issued| issued.row == row);
            issued
                .filter_map(|issued| issued.exact.as_array())
                .all(|exact| {
                    items(request)
                        .windows(exact.len())
                        .any(|window| window == exact.as_slice())
                })
        },
        spoil: |request, _| {
            for item in list(request) {
                if let Some(item) = item.as_object_mut() {
                    item.shift_remove("phase");
                }
            }
        },
    },
    Rule {
        says: "Item of type 'reasoning' was provided without its required following item.",
        of: speaks,
        holds: |request, _| {
            items(request).iter().enumerate().all(|(at, item)| {
                let next = items(request)
                    .get(at + 1)
                    .map(|next| next["type"].as_str().unwrap_or_default());
                item["type"] != "reasoning"
                    || item["encrypted_content"].is_string()
                        && matches!(next, Some("message" | "function_call" | "reasoning"))
            })
        },
        spoil: |request, _| {
            let list = list(request);
            if let Some(at) = list.iter().position(|item| item["type"] == "reasoning") {
                let item = list.remove(at);
                list.push(item);
            }
        },
    },
    Rule {
        says: "No tool output found for function call, or no call found for an output",
        of: speaks,
        holds: |request, _| ids(request, CALLS) == ids(request, OUTPUTS),
        spoil: |request, _| list(request).retain(|item| item["type"] != "function_call_output"),
    },
    Rule {
        says: "A message does not stand between calls and their outputs",
        of: speaks,
        holds: |request, _| {
            let mut open = 0_usize;
            items(request).iter().all(|item| {
                match item["type"].as_str().unwrap_or_default() {
                    kind if CALLS.contains(&kind) => open += 1,
                    kind if OUTPUTS.contains(&kind) => open = open.saturating_sub(1),
                    _ => return open == 0 || item["role"] != "user",
                }
                true
            })
        },
        spoil: |request, _| {
            let list = list(request);
            if let Some(at) = list
                .iter()
                .position(|item| item["type"] == "function_call_output")
            {
                let content = json!([{ "type": "input_text", "text": "wait" }]);
                list.insert(
                    at,
                    json!({ "type": "message", "role": "user", "content": content }),
                );
            }
        },
    },
    Rule {
        says: "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64",
        of: speaks,
        holds: |request, _| {
            ids(request, CALLS)
                .iter()
                .all(|id| !id.is_empty() && id.len() <= 64)
        },
        spoil: |request, _| {
            for item in list(request) {
                if item.get("call_id").is_some() {
                    item["call_id"] = "c".repeat(65).into();
                }
            }
        },
    },
    Rule {
        says: "Invalid 'input[0].name': string does not match pattern",
        of: speaks,
        holds: |request, _| {
            let calls = items(request)
                .iter()
                .filter(|item| item["type"] == "function_call");
            calls
                .into_iter()
                .all(|call| call["name"].as_str().is_some_and(|name| is_word(name, 64)))
        },
        spoil: |request, _| {
            for item in list(request) {
                if item["type"] == "function_call" {
                    item["name"] = "a call".into();
                }
            }
        },
    },
    Rule {
        says: "A part of a message is input_text, input_image, output_text or refusal",
        of: speaks,
        holds: |request, _| {
            items(request)
                .iter()
                .filter(|item| item["type"] == "message")
                .all(|message| {
                    let kinds: &[&str] = if message["role"] == "assistant" {
                        &["output_text", "refusal"]
                    } else {
                        &["input_text", "input_image"]
                    };
                    message["content"].as_array().is_some_and(|parts| {
                        !parts.is_empty()
                            && parts
                                .iter()
                                .all(|part| kinds.iter().any(|kind| part["type"] == *kind))
                    })
                })
        },
        spoil: |request, _| {
            list(request)
                .push(json!({ "type": "message", "role": "user", "content": [{ "type": "text", "text": "x" }] }));
        },
    },
    Rule {
        says: "An image is a data URL in image_url",
        of: speaks,
        holds: |request, _| {
            let contents = items(request)
                .iter()
                .flat_map(|item| [&item["content"], &item["output"]]);
            let parts = contents.filter_map(Value::as_array).flatten();
            let mut images = parts.filter(|part| part["type"] == "input_image");
            images.all(|image| {
                image["image_url"]
                    .as_str()
                    .is_some_and(|url| url.starts_with("data:image/"))
            })
        },
        spoil: |request, _| {
            let image = json!({ "type": "input_image", "image_url": { "url": "data:image/png;base64,AAAA" } });
            list(request).push(json!({ "type": "message", "role": "user", "content": [image] }));
        },
    },
    Rule {
        says: "Unsupported parameter: 'max_tokens'. Use 'max_output_tokens' instead.",
        of: speaks,
        holds: |request, _| request.body.get("max_tokens").is_none(),
        spoil: |request, _| request.body["max_tokens"] = 100.into(),
    },
];
