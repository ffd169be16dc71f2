//! Generated malformed streams: every shape of a call in every API, cut into every kind of fragment, and every
//! finish reason in every API. The test reports the success rate.

use std::collections::HashSet;

use serde_json::{Value, json};
use tandem::model::{Arguments, Batch, Collected, Collector, Finish, Outcome, StreamDecoder};
use tandem::server::Transport;

use crate::driver::{Client, World};

const APIS: [&str; 3] = ["chat", "responses", "messages"];

/// The calls that each stream makes.
fn calls() -> [(&'static str, Value); 3] {
    [
        ("read_file", json!({ "path": "a.rs" })),
        (
            "edit_file",
            json!({ "path": "b.rs", "edits": [{ "old_text": "{\"path\": 1}", "new_text": "é\n\"" }] }),
        ),
        ("read_file", json!({ "path": "c.rs" })),
    ]
}

/// How a stream is malformed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    /// Whether calls have IDs, and indexes of their own.
    marked: bool,
    /// Whether each fragment repeats everything before it.
    cumulative: bool,
    /// Whether everything is repeated at the end.
    whole_after: bool,
    /// Where the calls are.
    place: Place,
    /// The size of a fragment in bytes.
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Deltas,
    Messages,
    LastMessage,
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for place in [Place::Deltas, Place::Messages, Place::LastMessage] {
        for marked in [true, false] {
            for (cumulative, whole_after) in [(false, false), (true, false), (false, true)] {
                for size in [1, 3, 8, 13, 1000] {
                    shapes.push(Shape {
                        marked,
                        cumulative,
                        whole_after,
                        place,
                        size,
                    });
                }
            }
        }
    }
    shapes
}

impl Shape {
    /// The fragments of a text.
    fn fragments(self, text: &str) -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        let mut pieces: Vec<String> = letters
            .chunks(self.size)
            .map(|piece| piece.iter().collect())
            .collect();
        if self.cumulative {
            pieces = (1..=pieces.len())
                .map(|count| pieces[..count].concat())
                .collect();
        }
        pieces.extend(self.whole_after.then(|| text.to_owned()));
        pieces
    }

    fn id(self, at: usize) -> Value {
        if self.marked {
            format!("call_{at}").into()
        } else {
            Value::Null
        }
    }

    fn index(self, at: usize) -> usize {
        if self.marked { at } else { 0 }
    }

    fn chat(self) -> Vec<Value> {
        let field = match self.place {
            Place::Messages => "message",
            Place::Deltas | Place::LastMessage => "delta",
        };
        let chunk = |field: &str, part: Value, finish: Option<&str>| json!({ "choices": [{ "index": 0, field: part, "finish_reason": finish }] });
        let call = |at: usize, name: Value, arguments: &str| {
            let function = json!({ "name": name, "arguments": arguments });
            json!({ "index": self.index(at), "id": self.id(at), "type": "function", "function": function })
        };
        let mut events = vec![
            chunk(
                field,
                json!({ "role": "assistant", "content": "Loo" }),
                None,
            ),
            chunk(field, json!({ "content": "king." }), None),
        ];
        let mut all = Vec::new();
        for (at, (name, arguments)) in calls().iter().enumerate() {
            let text = arguments.to_string();
            all.push(call(at, json!(name), &text));
            for (number, fragment) in self.fragments(&text).iter().enumerate() {
                let name = if number == 0 {
                    json!(name)
                } else {
                    Value::Null
                };
                let calls = json!([call(at, name, fragment)]);
                events.push(chunk(field, json!({ "tool_calls": calls }), None));
            }
        }
        if self.place == Place::LastMessage {
            events.truncate(2);
            let message = json!({ "role": "assistant", "content": "Looking.", "tool_calls": all });
            events.push(chunk("message", message, Some("tool_calls")));
        } else {
            events.push(chunk(field, json!({}), Some("tool_calls")));
        }
        events
    }

    fn responses(self) -> Vec<Value> {
        let mut events = vec![
            json!({ "type": "response.created", "response": { "id": "r" } }),
            json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message", "content": [] } }),
            json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Looking." }),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "message", "content": [{ "type": "output_text", "text": "Looking." }] } }),
        ];
        let mut all = vec![
            json!({ "type": "message", "content": [{ "type": "output_text", "text": "Looking." }] }),
        ];
        for (at, (name, arguments)) in calls().iter().enumerate() {
            let (text, index) = (arguments.to_string(), self.index(at + 1));
            let item = |arguments: &str| json!({ "type": "function_call", "call_id": self.id(at), "name": name, "arguments": arguments });
            all.push(item(&text));
            if self.place == Place::Messages {
                // Without separate beginnings and fragments.
                events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item(&text) }));
                continue;
            }
            events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": item("") }));
            events.extend(self.fragments(&text).iter().map(|fragment| {
                json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": fragment })
            }));
            events.push(json!({ "type": "response.function_call_arguments.done", "output_index": index, "arguments": text }));
            events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item(&text) }));
        }
        if self.place == Place::LastMessage {
            events.truncate(4);
        }
        events.push(json!({ "type": "response.completed", "response": { "status": "completed", "output": all } }));
        events
    }

    fn messages(self) -> Vec<Value> {
        let mut events = vec![
            json!({ "type": "message_start", "message": { "content": [], "usage": { "input_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Looking." } }),
        ];
        let stop = |index: usize| json!({ "type": "content_block_stop", "index": index });
        // A server that marks no beginning marks no end, either.
        events.extend(self.marked.then(|| stop(0)));
        let begun = events.len();
        let mut all = vec![json!({ "type": "text", "text": "Looking." })];
        for (at, (name, arguments)) in calls().iter().enumerate() {
            let index = self.index(at + 1);
            let block = |input: Value| json!({ "type": "tool_use", "id": self.id(at), "name": name, "input": input });
            all.push(block(arguments.clone()));
            let is_whole = self.place == Place::Messages;
            let input = if is_whole {
                arguments.clone()
            } else {
                json!({})
            };
            events.push(json!({ "type": "content_block_start", "index": index, "content_block": block(input) }));
            if !is_whole {
                events.extend(
                    self.fragments(&arguments.to_string())
                        .iter()
                        .map(|fragment| {
                            let delta =
                                json!({ "type": "input_json_delta", "partial_json": fragment });
                            json!({ "type": "content_block_delta", "index": index, "delta": delta })
                        }),
                );
            }
            events.extend(self.marked.then(|| stop(index)));
        }
        let mut last = json!({ "type": "message_stop" });
        if self.place == Place::LastMessage {
            events.truncate(begun);
            last["message"] = json!({ "role": "assistant", "content": all });
        }
        events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 1 } }));
        events.push(last);
        events
    }
}

fn stream(api: &str, events: &[Value]) -> String {
    let events: Vec<_> = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let mut text = events.concat();
    if api == "chat" {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

/// What the program makes of a stream.
fn decoded(api: &str, stream: &str) -> Collected {
    let api = serde_json::from_value(json!(api)).unwrap();
    let (mut decoder, mut batch) = (StreamDecoder::new(api), Batch::default());
    let fed = decoder.feed(stream.as_bytes(), &mut batch);
    let end = fed.and_then(|()| decoder.end(&mut batch));
    let ids = HashSet::new();
    let mut collector = Collector::new(&ids);
    while let Some(event) = batch.pop() {
        collector.push(&event);
    }
    collector.finish(end)
}

#[test]
fn calls_are_read_from_every_shape_and_fragmentation() {
    let expected: Vec<(String, Value)> = calls()
        .into_iter()
        .map(|(name, arguments)| (name.to_owned(), arguments))
        .collect();
    let (mut wrong, mut all) = (Vec::new(), 0);
    for api in APIS {
        for shape in shapes() {
            all += 1;
            let events = match api {
                "chat" => shape.chat(),
                "responses" => shape.responses(),
                _ => shape.messages(),
            };
            let answer = decoded(api, &stream(api, &events)).message;
            let calls = answer.calls.into_iter();
            let made: Vec<(String, Value)> = calls
                .map(|call| match call.arguments {
                    Arguments::Object(arguments) => (call.name, Value::Object(arguments)),
                    Arguments::Unparsable(text) => (call.name, Value::String(text)),
                })
                .collect();
            if made != expected || answer.text != "Looking." {
                wrong.push(format!("{api} {shape:?}: {made:?} {}", answer.text));
            }
        }
    }
    let right = all - wrong.len();
    assert!(
        wrong.is_empty(),
        "{right} of {all} are right; {:#?}",
        &wrong[..wrong.len().min(12)]
    );
}

/// Words for an end, and how the program reports it.
const ENDS: [(&str, &str); 4] = [
    (
        "end_turn",
        "stop end_turn eos stop_sequence complete matched_eos tool_calls tool_use function_call pause_turn other something_new malformed_function_call",
    ),
    (
        "max_tokens",
        "length max_tokens max_output_tokens model_length token_limit",
    ),
    (
        "refusal",
        "content_filter content_filtered safety sensitive guardrail_intervened recitation blocklist prohibited_content spii refusal",
    ),
    (
        "error",
        "error network_error insufficient_system_resource abort cancelled timeout overloaded model_context_window_exceeded context_length_exceeded",
    ),
];

#[test]
fn every_finish_reason_is_read_in_every_api_and_spelling() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for api in APIS {
        for (expected, words) in ENDS {
            for word in words.split(' ') {
                for spelling in [
                    word.to_owned(),
                    word.to_uppercase(),
                    word.replace('_', "-"),
                    format!("gateway/{word}"),
                ] {
                    let text = json!({ "content": "Half" });
                    let events = match api {
                        "chat" => vec![
                            json!({ "choices": [{ "index": 0, "delta": text }] }),
                            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": spelling }] }),
                        ],
                        "responses" => vec![
                            json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Half" }),
                            json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": spelling } } }),
                        ],
                        _ => vec![
                            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Half" } }),
                            json!({ "type": "message_delta", "delta": { "stop_reason": spelling } }),
                            json!({ "type": "message_stop" }),
                        ],
                    };
                    all += 1;
                    let answer = decoded(api, &stream(api, &events));
                    let ended = match (&answer.outcome, &answer.finish) {
                        (Outcome::Error(_) | Outcome::Truncated, _) => "error",
                        (Outcome::Ok, Some(Finish::Length)) => "max_tokens",
                        (Outcome::Ok, Some(Finish::Refusal | Finish::ContentFilter(_))) => {
                            "refusal"
                        }
                        (Outcome::Ok, _) => "end_turn",
                    };
                    if ended != expected || answer.message.text != "Half" {
                        wrong.push(format!(
                            "{api} {spelling}: expected {expected}, got {answer:?}"
                        ));
                    }
                }
            }
        }
    }
    let right = all - wrong.len();
    assert!(
        wrong.is_empty(),
        "{right} of {all} are right; {:#?}",
        &wrong[..wrong.len().min(12)]
    );
}

/// What the person was told.
fn notices(client: &Client) -> String {
    let messages = client.seen.iter();
    let notices = messages.filter_map(|message| message["params"]["message"].as_str());
    notices.collect::<Vec<_>>().join("\n")
}

/// Streams two answers, the first of which ends with this word; returns the notices, the requests and the end.
fn played(first: Value) -> (String, usize, Value) {
    let world = World::new(json!([first, [{ "text": "The rest." }], [{ "text": "The rest." }]]));
    let mut client = world.client();
    let session = client.session(&world);
    let prompt = client.prompt(&session, "go");
    let answer = client.answer(prompt)["result"]["stopReason"].clone();
    let notices = notices(&client);
    (notices, world.rehearsal().requests().len(), answer)
}

#[test]
fn an_end_that_is_not_success_is_reported_or_repaired() {
    let half = |word: &str| json!([{ "text": "Half" }, { "finish": word }]);
    // The provider failed, so the model is asked to continue.
    for word in ["network_error", "insufficient_system_resource", "abort"] {
        let (notices, requests, end) = played(half(word));
        assert!(notices.contains(&format!("`{word}`")), "{notices}");
        assert_eq!((requests, end), (2, json!("end_turn")), "{word}: {notices}");
    }
    // Nothing was said yet, so the same request is sent again.
    let (_, requests, end) = played(json!([{ "finish": "network_error" }]));
    assert_eq!((requests, end), (2, json!("end_turn")));
    // A call that never arrived.
    let (_, requests, end) = played(half("tool_calls"));
    assert_eq!((requests, end), (2, json!("end_turn")));
    for word in ["sensitive", "guardrail_intervened", "recitation"] {
        let (notices, requests, end) = played(half(word));
        assert!(notices.contains(&format!("`{word}`")), "{notices}");
        assert_eq!((requests, end), (1, json!("refusal")), "{word}");
    }
    let (notices, requests, _) = played(half("something_new"));
    assert!(
        notices.contains("`something_new`") && notices.contains("continue") && requests == 1,
        "{notices}"
    );
}

#[test]
fn a_local_model_that_repeats_itself_is_stopped() {
    let world = World::new(json!([[{ "text": "I will do it now. ".repeat(2_000) }]]));
    let (mut client, session) = local(&world, "llamacpp");
    let prompt = client.prompt(&session, "go");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "max_tokens");
}

/// A session with the model `m` on this local server.
fn local(world: &World, provider: &str) -> (Client, String) {
    let mut client = world.stranger_on(Transport::Lsp, &[]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let settings = json!({ "base-url": world.model.base_url(), "models": { "m": {} } });
    params["initializationOptions"] =
        json!({ "model": format!("{provider}/m"), "providers": { (provider): settings } });
    client.shake_hands(params);
    let session = client.session(world);
    (client, session)
}

#[test]
fn a_local_model_without_tools_is_named() {
    let caps = |tools: bool| {
        let caps = json!({ "supports_tools": tools });
        json!({ "default_generation_settings": { "n_ctx": 65_536 }, "chat_template_caps": caps })
    };
    let documents = [
        ("llamacpp", "/props", caps(false), true),
        ("llamacpp", "/props", caps(true), false),
        (
            "ollama",
            "/api/show",
            json!({ "capabilities": ["completion"] }),
            true,
        ),
        (
            "ollama",
            "/api/show",
            json!({ "capabilities": ["completion", "tools"] }),
            false,
        ),
        ("ollama", "/api/show", json!({}), false),
    ];
    for (provider, path, document, lacks) in documents {
        let world = World::new(json!([[{ "text": "hello" }]]));
        world.rehearsal().document(path, document.clone());
        if provider == "ollama" {
            let loaded = json!({ "models": [{ "name": "m", "context_length": 65_536 }] });
            world.rehearsal().document("/api/ps", loaded);
        }
        let (mut client, session) = local(&world, provider);
        let prompt = client.prompt(&session, "go");
        client.answer(prompt);
        let notices = notices(&client);
        assert_eq!(
            notices.contains("cannot call tools"),
            lacks,
            "{provider}, {document}: {notices}"
        );
    }
}
