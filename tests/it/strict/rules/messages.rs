//! Anthropic.

use serde_json::{Value, json};
use tandem::model::Api;

use super::{Rule, is_word, list};
use crate::strict::efforts;
use crate::strict::server::Request;

pub const FIELDS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "stream",
    "metadata",
    "stop_sequences",
    "service_tier",
    "temperature",
];

fn speaks(request: &Request) -> bool {
    request.api == Api::Messages
}

fn is_adaptive(request: &Request) -> bool {
    is_claude(request) && efforts::version(request.model()) > 4.55
}

fn is_4_6(request: &Request) -> bool {
    efforts::version(request.model()) < 4.65
}

fn is_claude(request: &Request) -> bool {
    speaks(request) && request.model().starts_with("claude")
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn messages(request: &Request) -> &[Value] {
    request.body["messages"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

fn all_blocks(request: &Request) -> impl Iterator<Item = &Value> {
    messages(request).iter().flat_map(blocks)
}

fn of_kind<'a>(
    blocks: impl Iterator<Item = &'a Value>,
    kind: &'static str,
    field: &'static str,
) -> Vec<&'a str> {
    blocks
        .filter(|block| block["type"] == kind)
        .map(|block| block[field].as_str().unwrap_or_default())
        .collect()
}

/// Adjacent messages of one role, which the provider reads as one message.
fn joined(request: &Request) -> Vec<(&str, Vec<&Value>)> {
    let mut joined: Vec<(&str, Vec<&Value>)> = Vec::new();
    for message in messages(request) {
        let role = message["role"].as_str().unwrap_or_default();
        match joined.last_mut() {
            Some((last, list)) if *last == role => list.extend(blocks(message)),
            _ => joined.push((role, blocks(message).iter().collect())),
        }
    }
    joined
}

pub const RULES: &[Rule] = &[
    Rule {
        says: "anthropic-version: header is required",
        of: |request| request.provider == "anthropic",
        holds: |request, _| request.version.as_deref() == Some("2023-06-01"),
        spoil: |request, _| request.version = None,
    },
    Rule {
        says: "max_tokens: Field required, at most what the model writes",
        of: speaks,
        holds: |request, _| {
            request.body["max_tokens"]
                .as_u64()
                .is_some_and(|limit| (1..=64_000).contains(&limit))
        },
        spoil: |request, _| request.body["max_tokens"] = 640_000.into(),
    },
    Rule {
        says: "thinking.type.enabled is not supported for this model. Use thinking.type.adaptive",
        of: is_adaptive,
        holds: |request, memory| {
            memory.effort == Some("none") || request.body["thinking"]["type"] == "adaptive"
        },
        spoil: |request, _| {
            request.body["thinking"] = json!({ "type": "enabled", "budget_tokens": 2000 });
        },
    },
    Rule {
        says: "adaptive thinking is not supported on this model; budget_tokens is at least 1024 and leaves room in max_tokens",
        of: |request| is_claude(request) && !is_adaptive(request),
        holds: |request, memory| {
            if memory.effort == Some("none") || efforts::version(request.model()) < 3.7 {
                return request.body.get("thinking").is_none();
            }
            let budget = request.body["thinking"]["budget_tokens"]
                .as_u64()
                .unwrap_or_default();
            let limit = request.body["max_tokens"].as_u64().unwrap_or_default();
            request.body["thinking"]["type"] == "enabled"
                && budget >= 1024
                && budget + 16_000 <= limit
        },
        spoil: |request, _| {
            request.body["thinking"] = json!({ "type": "enabled", "budget_tokens": 60_000 });
        },
    },
    Rule {
        says: "Thoughts are secret unless thinking.display asks for a summary, which only 4.7 and later take",
        of: is_adaptive,
        holds: |request, memory| {
            let display = &request.body["thinking"]["display"];
            memory.effort == Some("none") || (*display == "summarized") != is_4_6(request)
        },
        spoil: |request, _| {
            let is_old = is_4_6(request);
            request.body["thinking"]["display"] =
                if is_old { "summarized" } else { "omitted" }.into();
        },
    },
    Rule {
        says: "This model does not support the effort parameter.",
        of: |request| is_claude(request) && !is_adaptive(request),
        holds: |request, _| request.body.get("output_config").is_none(),
        spoil: |request, _| request.body["output_config"] = json!({ "effort": "high" }),
    },
    Rule {
        says: "`thinking` blocks in an assistant message cannot be modified: they go back as they were, in their order",
        of: speaks,
        holds: |request, memory| {
            let row = request.row();
            let issued = memory
                .issued
                .iter()
                .filter(|issued| issued.row == row && issued.exact.is_array());
            issued.map(|issued| &issued.exact).all(|exact| {
                messages(request)
                    .iter()
                    .any(|message| message["role"] == "assistant" && message["content"] == *exact)
            })
        },
        spoil: |request, _| {
            for message in list(request) {
                if let Some(blocks) = message["content"].as_array_mut() {
                    blocks.retain(|block| block["type"] != "redacted_thinking");
                }
            }
        },
    },
    Rule {
        says: "A maximum of 4 blocks with cache_control may be provided",
        of: speaks,
        holds: |request, _| (1..=4).contains(&request.raw.matches("\"cache_control\":").count()),
        spoil: |request, _| {
            for tool in request.body["tools"].as_array_mut().into_iter().flatten() {
                tool["cache_control"] = json!({ "type": "ephemeral" });
            }
        },
    },
    Rule {
        says: "The mark of the end moves along: cache_control at the top level",
        of: speaks,
        holds: |request, _| request.body["cache_control"] == json!({ "type": "ephemeral" }),
        spoil: |request, _| request.body["cache_control"] = Value::Null,
    },
    Rule {
        says: "`tool_use` ids were found without `tool_result` blocks immediately after; results come first",
        of: speaks,
        holds: |request, _| {
            let joined = joined(request);
            joined.iter().enumerate().all(|(at, (_, blocks))| {
                let calls = of_kind(blocks.iter().copied(), "tool_use", "id");
                let next = joined.get(at + 1).map_or(&[][..], |(_, blocks)| blocks);
                let first = next
                    .iter()
                    .copied()
                    .take_while(|block| block["type"] == "tool_result");
                calls == of_kind(first, "tool_result", "tool_use_id")
            })
        },
        spoil: |request, _| {
            let list = list(request);
            if let Some(at) = list
                .iter()
                .position(|message| message["content"][0]["type"] == "tool_result")
            {
                list.insert(
                    at,
                    json!({ "role": "user", "content": [{ "type": "text", "text": "wait" }] }),
                );
            }
        },
    },
    Rule {
        says: "unexpected `tool_use_id` found in `tool_result` blocks",
        of: speaks,
        holds: |request, _| {
            let ids = |kind, field| of_kind(all_blocks(request), kind, field);
            ids("tool_use", "id") == ids("tool_result", "tool_use_id")
        },
        spoil: |request, _| {
            let result = json!({ "type": "tool_result", "tool_use_id": "toolu_0", "content": "x" });
            list(request).push(json!({ "role": "user", "content": [result] }));
        },
    },
    Rule {
        says: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        of: speaks,
        holds: |request, _| {
            let ids = of_kind(all_blocks(request), "tool_use", "id");
            let names = of_kind(all_blocks(request), "tool_use", "name");
            ids.iter().chain(&names).all(|word| is_word(word, 128))
        },
        spoil: |request, _| {
            for message in list(request) {
                for block in message["content"].as_array_mut().into_iter().flatten() {
                    if block["type"] == "tool_use" {
                        block["id"] = "functions.glob:0".into();
                    }
                }
            }
        },
    },
    Rule {
        says: "Tools that write files stream their arguments",
        of: |request| is_claude(request) && !request.is_summary(),
        holds: |request, _| {
            request.body["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|tool| tool["eager_input_streaming"] == true)
        },
        spoil: |request, _| request.body["tools"] = json!([]),
    },
    Rule {
        says: "text content blocks must be non-empty",
        of: speaks,
        holds: |request, _| {
            let all = messages(request)
                .iter()
                .all(|message| !blocks(message).is_empty());
            all && of_kind(all_blocks(request), "text", "text")
                .iter()
                .all(|text| !text.trim().is_empty())
        },
        spoil: |request, _| {
            list(request)
                .push(json!({ "role": "user", "content": [{ "type": "text", "text": " " }] }));
        },
    },
    Rule {
        says: "This model does not support assistant message prefill. The conversation must end with a user message.",
        of: speaks,
        holds: |request, memory| {
            memory.paused.is_some()
                || messages(request)
                    .last()
                    .is_some_and(|last| last["role"] == "user")
        },
        spoil: |request, _| {
            list(request).push(
                json!({ "role": "assistant", "content": [{ "type": "text", "text": "And" }] }),
            );
        },
    },
    Rule {
        says: "A paused turn is sent again with what came of it, and with nothing behind it",
        of: speaks,
        holds: |request, memory| {
            memory.paused.as_ref().is_none_or(|paused| {
                let last = messages(request).last();
                last.is_some_and(|last| last["role"] == "assistant" && last["content"] == *paused)
            })
        },
        spoil: |request, _| {
            list(request)
                .push(json!({ "role": "user", "content": [{ "type": "text", "text": "go on" }] }));
        },
    },
    Rule {
        says: "messages: first message must use the \"user\" role",
        of: speaks,
        holds: |request, _| {
            messages(request)
                .first()
                .is_some_and(|first| first["role"] == "user")
        },
        spoil: |request, _| drop(list(request).remove(0)),
    },
    Rule {
        says: "An image has a base64 source",
        of: speaks,
        holds: |request, _| {
            let inside = all_blocks(request)
                .filter_map(|block| block["content"].as_array())
                .flatten();
            let mut images = all_blocks(request)
                .chain(inside)
                .filter(|block| block["type"] == "image");
            images.all(|image| {
                image["source"]["type"] == "base64" && image["source"]["data"].is_string()
            })
        },
        spoil: |request, _| {
            let image = json!({ "type": "image", "source": { "type": "path", "data": "a.png" } });
            list(request).push(json!({ "role": "user", "content": [image] }));
        },
    },
    Rule {
        says: "Thinking may not be enabled when tool_choice forces tool use",
        of: speaks,
        holds: |request, _| {
            request
                .body
                .get("tool_choice")
                .is_none_or(|choice| choice["type"] == "auto" || choice["type"] == "none")
        },
        spoil: |request, _| request.body["tool_choice"] = json!({ "type": "any" }),
    },
];
