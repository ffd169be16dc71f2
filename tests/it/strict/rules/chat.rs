//! All other providers, in the API they call compatible.

use serde_json::{Value, json};
use tandem::model::Api;

use super::{Rule, fields, list};
use crate::strict::efforts;
use crate::strict::rows::{ROWS, is_mistral, keeps_thoughts, wants_thoughts};
use crate::strict::server::Request;

pub const FIELDS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "parallel_tool_calls",
    "response_format",
    "temperature",
    "seed",
    "stop",
];

/// Top-level fields that only some providers accept.
const OTHER_FIELDS: [(&str, &[&str]); 10] = [
    ("session_id", &["openrouter"]),
    ("extra_body", &["gemini", "vertex"]),
    ("chat_template_kwargs", &["vllm", "llamacpp"]),
    ("enable_thinking", &["dashscope"]),
    ("preserve_thinking", &["dashscope"]),
    ("reasoning", &["openrouter", "vercel"]),
    ("cache_control", &["openrouter"]),
    ("providerOptions", &["vercel"]),
    ("thinking", &["deepseek", "moonshot", "zai", "zai-coding"]),
    ("prompt_cache_key", &["openrouter", "moonshot"]),
];

/// Message fields that only some providers accept.
const OF_MESSAGES: [(&str, &[&str]); 3] = [
    (
        "reasoning_content",
        &[
            "deepseek",
            "moonshot",
            "zai",
            "zai-coding",
            "dashscope",
            "opencode",
            "xai",
            "fireworks",
            "nvidia",
            "huggingface",
            "vllm",
            "ollama",
            "lmstudio",
            "llamacpp",
            "bedrock",
        ],
    ),
    (
        "reasoning",
        &["openrouter", "cerebras", "together", "vercel"],
    ),
    ("reasoning_details", &["openrouter"]),
];

/// Whether a provider accepts this top-level field, besides the usual ones.
pub fn takes(provider: &str, field: &str) -> bool {
    match field {
        "stream_options" => provider != "mistral",
        "reasoning_effort" => provider != "openrouter",
        field => is_of(&OTHER_FIELDS, provider, field),
    }
}

fn is_of(table: &[(&str, &[&str])], provider: &str, field: &str) -> bool {
    table
        .iter()
        .any(|(name, providers)| *name == field && providers.contains(&provider))
}

fn speaks(request: &Request) -> bool {
    request.api == Api::Chat
}

fn row(request: &Request) -> (&str, &str) {
    (&request.provider, request.model())
}

fn messages(request: &Request) -> &[Value] {
    request.body["messages"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

fn with_calls(request: &Request) -> impl Iterator<Item = &Value> {
    messages(request)
        .iter()
        .filter(|message| !calls(message).is_empty())
}

fn call_ids(request: &Request) -> impl Iterator<Item = &str> {
    let calls = messages(request)
        .iter()
        .flat_map(calls)
        .map(|call| call["id"].as_str());
    let results = messages(request)
        .iter()
        .filter(|message| message["role"] == "tool");
    calls
        .chain(results.map(|result| result["tool_call_id"].as_str()))
        .map(Option::unwrap_or_default)
}

fn is_google(request: &Request) -> bool {
    speaks(request) && matches!(request.provider.as_str(), "gemini" | "vertex")
}

const SIGNATURE: &str = "/extra_content/google/thought_signature";
const SKIP: &str = "skip_thought_signature_validator";

fn is_user(message: &Value) -> bool {
    message["role"] == "user"
}

/// Changes every message with calls.
fn spoil_calls(request: &mut Request, change: impl Fn(&mut Value)) {
    list(request)
        .iter_mut()
        .filter(|message| message.get("tool_calls").is_some())
        .for_each(change);
}

fn without(message: &mut Value, field: &str) {
    if let Some(message) = message.as_object_mut() {
        message.shift_remove(field);
    }
}

pub const RULES: &[Rule] = &[
    Rule {
        says: "Unknown field in a message",
        of: speaks,
        holds: |request, _| {
            const USUAL: [&str; 5] = ["role", "content", "tool_calls", "tool_call_id", "name"];
            messages(request).iter().flat_map(fields).all(|field| {
                USUAL.contains(&field) || is_of(&OF_MESSAGES, &request.provider, field)
            })
        },
        spoil: |request, _| list(request)[0]["frobnicate"] = true.into(),
    },
    Rule {
        says: "Unknown field in a call",
        of: speaks,
        holds: |request, _| {
            let mut calls = messages(request).iter().flat_map(calls);
            calls.all(|call| {
                let known = |field| {
                    ["id", "type", "function"].contains(&field)
                        || is_google(request) && field == "extra_content"
                };
                fields(call).all(known)
                    && fields(&call["function"]).all(|field| ["name", "arguments"].contains(&field))
            })
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["frobnicate"] = true.into();
            });
        },
    },
    Rule {
        says: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
        of: speaks,
        holds: |request, _| {
            messages(request).iter().enumerate().all(|(at, message)| {
                calls(message).iter().enumerate().all(|(slot, call)| {
                    let result = messages(request).get(at + 1 + slot);
                    result.is_some_and(|result| {
                        result["role"] == "tool" && result["tool_call_id"] == call["id"]
                    })
                })
            })
        },
        spoil: |request, _| list(request).retain(|message| message["role"] != "tool"),
    },
    Rule {
        says: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
        of: speaks,
        holds: |request, _| {
            let results = messages(request)
                .iter()
                .filter(|message| message["role"] == "tool")
                .count();
            results
                == messages(request)
                    .iter()
                    .map(|message| calls(message).len())
                    .sum::<usize>()
        },
        spoil: |request, _| {
            list(request).push(json!({ "role": "tool", "tool_call_id": "c", "content": "x" }));
        },
    },
    Rule {
        says: "Arguments of a call are the text of a JSON object",
        of: speaks,
        holds: |request, _| {
            let mut calls = messages(request).iter().flat_map(calls);
            calls.all(|call| {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                serde_json::from_str::<Value>(arguments)
                    .is_ok_and(|arguments| arguments.is_object())
            })
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["function"]["arguments"] = json!({ "x": 1 });
            });
        },
    },
    Rule {
        says: "A message of the assistant has words or calls",
        of: speaks,
        holds: |request, _| {
            messages(request)
                .iter()
                .filter(|message| message["role"] == "assistant")
                .all(|message| {
                    !calls(message).is_empty()
                        || message["content"]
                            .as_str()
                            .is_none_or(|text| !text.is_empty())
                })
        },
        spoil: |request, _| list(request).insert(1, json!({ "role": "assistant", "content": "" })),
    },
    Rule {
        says: "The last message is a person's or a result",
        of: speaks,
        holds: |request, _| {
            messages(request)
                .last()
                .is_some_and(|last| last["role"] != "assistant")
        },
        spoil: |request, _| list(request).push(json!({ "role": "assistant", "content": "And" })),
    },
    Rule {
        says: "An image is a data URL in image_url.url, in a person's message",
        of: speaks,
        holds: |request, _| {
            messages(request).iter().all(|message| {
                let parts = message["content"].as_array().into_iter().flatten();
                let mut images = parts.filter(|part| part["type"] == "image_url");
                images.all(|image| {
                    let url = image["image_url"]["url"].as_str().unwrap_or_default();
                    is_user(message) && url.starts_with("data:image/")
                })
            })
        },
        spoil: |request, _| {
            let image = json!({ "type": "image_url", "image_url": "data:image/png;base64,AAAA" });
            list(request).push(json!({ "role": "user", "content": [image] }));
        },
    },
    Rule {
        says: "Tokens are counted: stream_options.include_usage",
        of: |request| speaks(request) && request.provider != "mistral",
        holds: |request, _| request.body["stream_options"]["include_usage"] == true,
        spoil: |request, _| request.body["stream_options"] = Value::Null,
    },
    // OpenRouter
    Rule {
        says: "Claude caches only where cache_control asks for it",
        of: |request| request.provider == "openrouter" && request.model().starts_with("anthropic/"),
        holds: |request, _| request.body["cache_control"] == json!({ "type": "ephemeral" }),
        spoil: |request, _| without(&mut request.body, "cache_control"),
    },
    Rule {
        says: "The gateway marks what Claude caches only where caching: auto asks for it",
        of: |request| request.provider == "vercel",
        holds: |request, _| request.body["providerOptions"]["gateway"]["caching"] == "auto",
        spoil: |request, _| without(&mut request.body, "providerOptions"),
    },
    Rule {
        says: "reasoning_details go back as they came",
        of: |request| request.provider == "openrouter",
        holds: |request, memory| {
            let row = request.row();
            let issued = memory.issued.iter().filter(|issued| issued.row == row);
            issued
                .filter_map(|issued| issued.exact.get("reasoning_details"))
                .all(|exact| {
                    messages(request)
                        .iter()
                        .any(|message| message["reasoning_details"] == *exact)
                })
        },
        spoil: |request, _| {
            for message in list(request) {
                without(message, "reasoning_details");
            }
        },
    },
    Rule {
        says: "An effort is said as reasoning.effort",
        of: |request| matches!(request.provider.as_str(), "openrouter" | "vercel"),
        holds: |request, _| {
            let effort = &request.body["reasoning"]["effort"];
            effort.is_string() || !ROWS.contains(&(&request.provider, request.model()))
        },
        spoil: |request, _| without(&mut request.body, "reasoning"),
    },
    // Gemini
    Rule {
        says: "Function call is missing a thought_signature in functionCall parts.",
        of: is_google,
        holds: |request, _| {
            with_calls(request).all(|message| {
                calls(message)[0]
                    .pointer(SIGNATURE)
                    .is_some_and(Value::is_string)
            })
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                without(&mut message["tool_calls"][0], "extra_content");
            });
        },
    },
    Rule {
        says: "Thought signature is not valid: a real one goes back on its call, and only there",
        of: is_google,
        holds: |request, memory| {
            let row = request.row();
            let own = || memory.issued.iter().filter(|issued| issued.row == row);
            let mut owed = own().filter_map(|issued| issued.exact.pointer(SIGNATURE));
            let there: Vec<_> = with_calls(request)
                .flat_map(calls)
                .filter_map(|call| call.pointer(SIGNATURE))
                .collect();
            let mut real = there.iter().filter(|signature| ***signature != SKIP);
            owed.all(|signature| there.contains(&signature))
                && real
                    .all(|signature| own().any(|issued| **signature == issued.secrets[1].as_str()))
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["extra_content"] =
                    json!({ "google": { "thought_signature": SKIP } });
            });
        },
    },
    // DeepSeek, Moonshot, and their models at other providers
    Rule {
        says: "thinking is enabled but reasoning_content is missing in assistant tool call message",
        of: |request| speaks(request) && wants_thoughts(row(request)),
        holds: |request, _| {
            with_calls(request).all(|message| message["reasoning_content"].is_string())
        },
        spoil: |request, _| spoil_calls(request, |message| without(message, "reasoning_content")),
    },
    Rule {
        says: "The reasoning_content of a model's own calls goes back",
        of: |request| speaks(request) && wants_thoughts(row(request)),
        holds: |request, memory| {
            let row = request.row();
            let issued = memory.issued.iter().filter(|issued| issued.row == row);
            issued
                .filter_map(|issued| issued.exact.get("reasoning_content"))
                .all(|exact| {
                    with_calls(request).any(|message| message["reasoning_content"] == *exact)
                })
        },
        spoil: |request, _| {
            spoil_calls(request, |message| message["reasoning_content"] = "".into());
        },
    },
    Rule {
        says: "A conversation stays with the host that has its cache: session_id",
        of: |request| request.provider == "openrouter",
        holds: |request, memory| {
            let before = memory
                .before
                .as_ref()
                .filter(|before| before.row() == request.row())
                .map(|before| &before.body["session_id"]);
            let id = &request.body["session_id"];
            id.as_str().is_some_and(|id| !id.is_empty()) && before.is_none_or(|before| before == id)
        },
        spoil: |request, _| without(&mut request.body, "session_id"),
    },
    Rule {
        says: "Thoughts are shown where include_thoughts asks for them",
        of: is_google,
        holds: |request, _| {
            let thinking = &request.body["extra_body"]["google"]["thinking_config"];
            thinking["include_thoughts"] == true
        },
        spoil: |request, _| without(&mut request.body, "extra_body"),
    },
    Rule {
        says: "Without clear_thinking: false the thoughts of earlier turns are dropped, and the cache with them",
        of: |request| {
            request.provider.starts_with("zai") && efforts::version(request.model()) > 4.65
        },
        holds: |request, memory| {
            let thinking = &request.body["thinking"];
            memory.effort == Some("none") && thinking["type"] == "disabled"
                || *thinking == json!({ "type": "enabled", "clear_thinking": false })
        },
        spoil: |request, _| request.body["thinking"] = json!({ "type": "enabled" }),
    },
    Rule {
        says: "Without thinking.keep the thoughts of earlier turns are dropped",
        of: |request| request.provider == "moonshot" && request.model() == "kimi-k2.6",
        holds: |request, memory| {
            let thinking = &request.body["thinking"];
            memory.effort == Some("none") && thinking["type"] == "disabled"
                || *thinking == json!({ "type": "enabled", "keep": "all" })
        },
        spoil: |request, _| request.body["thinking"] = json!({ "type": "enabled" }),
    },
    Rule {
        says: "kimi-k3 takes reasoning_effort, not thinking",
        of: |request| request.provider == "moonshot" && request.model() == "kimi-k3",
        holds: |request, _| request.body.get("thinking").is_none(),
        spoil: |request, _| request.body["thinking"] = json!({ "type": "enabled" }),
    },
    Rule {
        says: "Qwen's template drops the thoughts of earlier turns without preserve_thinking",
        of: |request| request.model().contains("Qwen3.6"),
        holds: |request, _| {
            request.body["chat_template_kwargs"] == json!({ "preserve_thinking": true })
        },
        spoil: |request, _| without(&mut request.body, "chat_template_kwargs"),
    },
    Rule {
        says: "The thoughts of every answer go back where the cache needs them",
        of: |request| speaks(request) && keeps_thoughts(row(request)),
        holds: |request, memory| {
            let row = request.row();
            let issued = memory.issued.iter().filter(|issued| issued.row == row);
            issued
                .filter_map(|issued| issued.exact.get("reasoning_content"))
                .all(|exact| {
                    let mut there = messages(request).iter();
                    there.any(|message| message["reasoning_content"] == *exact)
                })
        },
        spoil: |request, _| {
            for message in list(request) {
                if message.get("tool_calls").is_none() {
                    without(message, "reasoning_content");
                }
            }
        },
    },
    Rule {
        says: "Invalid request: thinking and reasoning_effort cannot be used together",
        of: |request| request.provider == "moonshot",
        holds: |request, _| {
            request.body.get("reasoning_effort").is_none() || request.body.get("thinking").is_none()
        },
        spoil: |request, _| {
            request.body["reasoning_effort"] = "high".into();
            request.body["thinking"] = json!({ "type": "enabled" });
        },
    },
    Rule {
        says: "The ids of Kimi's calls are kept",
        of: |request| request.provider == "moonshot",
        holds: |request, memory| {
            let row = request.row();
            let own = memory.issued.iter().filter(|issued| issued.row == row);
            let own = own.filter_map(|issued| issued.exact["reasoning_content"].as_str());
            let own: Vec<_> = own.collect();
            let mine = |message: &&Value| {
                message["reasoning_content"]
                    .as_str()
                    .is_some_and(|text| own.contains(&text))
            };
            let mut ids = with_calls(request)
                .filter(mine)
                .flat_map(calls)
                .map(|call| call["id"].as_str());
            ids.all(|id| id.is_some_and(|id| id.starts_with("functions.") && id.contains(':')))
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["id"] = "call_1".into();
            });
        },
    },
    // Mistral
    Rule {
        says: "Tool call id has to be a-z, A-Z, 0-9, with a length of 9",
        of: |request| speaks(request) && is_mistral(row(request)),
        holds: |request, _| {
            call_ids(request)
                .all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["id"] = "call_1".into();
            });
        },
    },
    Rule {
        says: "Every call of a conversation has an id of its own",
        of: speaks,
        holds: |request, _| {
            let mut ids: Vec<_> = messages(request)
                .iter()
                .flat_map(calls)
                .map(|call| call["id"].as_str())
                .collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            ids.len() == all
        },
        spoil: |request, _| {
            spoil_calls(request, |message| {
                for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                    call["id"] = "a00000000".into();
                }
            });
        },
    },
    Rule {
        says: "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
        of: |request| request.provider == "github",
        holds: |request, _| call_ids(request).all(|id| id.len() <= 40),
        spoil: |request, _| {
            spoil_calls(request, |message| {
                message["tool_calls"][0]["id"] = "c".repeat(41).into();
            });
        },
    },
    Rule {
        says: "Unexpected role 'user' after role 'tool'",
        of: |request| speaks(request) && is_mistral(row(request)),
        holds: |request, _| {
            !messages(request)
                .windows(2)
                .any(|pair| pair[0]["role"] == "tool" && is_user(&pair[1]))
        },
        spoil: |request, _| {
            let list = list(request);
            if let Some(at) = list.iter().rposition(|message| message["role"] == "tool") {
                list.insert(at + 1, json!({ "role": "user", "content": "wait" }));
            }
        },
    },
    // xAI, Groq
    Rule {
        says: "A conversation stays with the server that has its cache: x-grok-conv-id",
        of: |request| request.provider == "xai",
        holds: |request, memory| {
            let named = request
                .conversation
                .as_ref()
                .is_some_and(|id| !id.is_empty());
            named && (memory.conversation.is_none() || memory.conversation == request.conversation)
        },
        spoil: |request, _| request.conversation = None,
    },
    Rule {
        says: "Model grok-4.3 does not support parameter reasoningEffort.",
        of: |request| request.provider == "xai",
        holds: |request, memory| {
            let is_refused = memory.refuses_efforts || memory.effort.is_none();
            !is_refused || request.body.get("reasoning_effort").is_none()
        },
        spoil: |request, _| request.body["reasoning_effort"] = "high".into(),
    },
    Rule {
        says: "Nobody chose an effort",
        of: |request| {
            speaks(request)
                && !matches!(
                    request.provider.as_str(),
                    "openrouter" | "xai" | "moonshot" | "zai" | "zai-coding"
                )
        },
        holds: |request, memory| {
            let thinking = request.body.get("thinking");
            let effort = request.body.get("reasoning_effort").or(thinking);
            memory.effort.is_some() || effort.is_none()
        },
        spoil: |request, _| request.body["reasoning_effort"] = "high".into(),
    },
];
