//! Compares what a case expects with what was observed.

use std::path::Path;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use serde_json::Value;

use super::play::Seen;

/// Everything that is not as expected.
pub fn judge(expect: &Value, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut fields = expect
        .as_object()
        .expect("a case expects something")
        .clone();
    fields.entry("done").or_insert("end_turn".into());
    for (field, wanted) in &fields {
        wrong.extend(
            check(field, wanted, seen)
                .into_iter()
                .map(|why| format!("{field}: {why}")),
        );
    }
    if let Some(last) = seen.requests.last() {
        wrong.extend(
            mistakes(last)
                .into_iter()
                .map(|why| format!("history: {why}")),
        );
    }
    wrong
}

#[expect(
    clippy::too_many_lines,
    reason = "one arm for each field of an expectation"
)]
fn check(field: &str, wanted: &Value, seen: &Seen) -> Vec<String> {
    let each = |hold: &dyn Fn(&str) -> bool, why: &str| -> Vec<String> {
        let words = wanted
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        words
            .filter(|word| !hold(word))
            .map(|word| format!("{why} {word:?}"))
            .collect()
    };
    match field {
        "requests" => range(wanted, u64::try_from(seen.requests.len()).unwrap()),
        "ran" => range(wanted, seen.ran),
        "asked" => range(wanted, seen.asked),
        "done" if wanted.is_null() || *wanted == seen.done => vec![],
        "done" => vec![format!(
            "{} instead of {wanted}; {:?}",
            seen.done, seen.notices
        )],
        "files" => files(wanted, &seen.workspace),
        "outside" => files(wanted, &seen.outside),
        "buffers" => {
            let entries = wanted.as_object().into_iter().flatten();
            entries
                .flat_map(|(name, wanted)| compare(name, wanted, seen.buffers.get(name).cloned()))
                .collect()
        }
        "shown" => each(&|word| seen.text.contains(word), "not seen"),
        "hidden" => each(&|word| !seen.text.contains(word), "seen"),
        "thought" => each(&|word| seen.thoughts.contains(word), "not thought"),
        "plan" => each(&|word| seen.plan.contains(word), "not planned"),
        "events" => each(
            &|word| seen.kinds.iter().any(|kind| kind == word),
            "no event",
        ),
        "results" => text(
            wanted,
            &seen.requests.last().map(results).unwrap_or_default(),
        ),
        "sent" => sent(wanted, &seen.requests),
        "body" => body(wanted, &seen.requests),
        "notice" => match wanted.as_str() {
            Some(pattern) if !seen.notices.iter().any(|notice| matches(pattern, notice)) => {
                vec![format!("nothing like {pattern} in {:?}", seen.notices)]
            }
            _ => vec![],
        },
        "quiet" => {
            let pattern = wanted.as_str().unwrap_or("^$");
            seen.notices
                .iter()
                .filter(|notice| matches(pattern, notice))
                .cloned()
                .collect()
        }
        "image" => {
            let is_there = seen.requests.last().is_some_and(has_image);
            if *wanted == is_there {
                vec![]
            } else {
                vec![format!("{is_there}")]
            }
        }
        "any" => {
            let ways = wanted.as_array().into_iter().flatten();
            let ways: Vec<Vec<String>> = ways
                .map(|way| {
                    way.as_object()
                        .into_iter()
                        .flatten()
                        .flat_map(|(field, wanted)| check(field, wanted, seen))
                        .collect()
                })
                .collect();
            if ways.iter().any(Vec::is_empty) {
                vec![]
            } else {
                ways.concat()
            }
        }
        other => vec![format!("the runner does not know `{other}`")],
    }
}

fn range(wanted: &Value, found: u64) -> Vec<String> {
    let fits = wanted[0].as_u64().unwrap() <= found && found <= wanted[1].as_u64().unwrap();
    if fits {
        vec![]
    } else {
        vec![format!("{found}, not {wanted}")]
    }
}

fn files(wanted: &Value, folder: &Path) -> Vec<String> {
    let entries = wanted.as_object().into_iter().flatten();
    let check = |(name, wanted): (&String, &Value)| {
        compare(
            name,
            wanted,
            std::fs::read_to_string(folder.join(name)).ok(),
        )
    };
    entries.flat_map(check).collect()
}

fn compare(name: &str, wanted: &Value, found: Option<String>) -> Vec<String> {
    match (wanted, found) {
        (Value::Null, None) => vec![],
        (Value::Null, Some(_)) => vec![format!("{name} is there")],
        (_, None) => vec![format!("{name} is not there")],
        (Value::String(wanted), Some(found)) if *wanted == found => vec![],
        (Value::String(_), Some(found)) => vec![format!("{name} is {found:?}")],
        (wanted, Some(found)) => text(wanted, &found)
            .into_iter()
            .map(|why| format!("{name}: {why}"))
            .collect(),
    }
}

/// `{has, lacks, re, nre}` of a text.
fn text(wanted: &Value, found: &str) -> Vec<String> {
    let list = |key: &str| {
        wanted[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(
        list("has")
            .filter(|word| !found.contains(word))
            .map(|word| format!("lacks {word:?}")),
    );
    wrong.extend(
        list("lacks")
            .filter(|word| found.contains(word))
            .map(|word| format!("has {word:?}")),
    );
    wrong.extend(
        list("re")
            .filter(|word| !matches(word, found))
            .map(|word| format!("does not match {word:?}")),
    );
    wrong.extend(
        list("nre")
            .filter(|word| matches(word, found))
            .map(|word| format!("matches {word:?}")),
    );
    if !wrong.is_empty() {
        wrong.push(format!(
            "in {:?}",
            found.chars().take(600).collect::<String>()
        ));
    }
    wrong
}

fn matches(pattern: &str, text: &str) -> bool {
    RegexMatcher::new(pattern)
        .unwrap()
        .is_match(text.as_bytes())
        .unwrap()
}

fn sent(wanted: &Value, requests: &[Value]) -> Vec<String> {
    let check = |(which, wanted): (&String, &Value)| {
        let request = which
            .parse::<usize>()
            .map_or(requests.last(), |index| requests.get(index));
        let words = request.map(|request| {
            messages(request)
                .iter()
                .filter(|message| message["role"] != "system")
                .map(words)
                .collect::<String>()
        });
        text(wanted, &words.unwrap_or_default())
    };
    wanted
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(check)
        .collect()
}

/// Fields of a request's body, by JSON pointer; null means absent.
fn body(wanted: &Value, requests: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (which, fields) in wanted.as_object().into_iter().flatten() {
        let request = which
            .parse::<usize>()
            .map_or(requests.last(), |index| requests.get(index));
        for (pointer, wanted) in fields.as_object().into_iter().flatten() {
            let found = request.and_then(|request| request.pointer(pointer));
            if found.unwrap_or(&Value::Null) != wanted {
                wrong.push(format!("{pointer} is {found:?} instead of {wanted}"));
            }
        }
    }
    wrong
}

fn messages(request: &Value) -> &[Value] {
    let list = if request["input"].is_array() {
        &request["input"]
    } else {
        &request["messages"]
    };
    list.as_array().map_or(&[], Vec::as_slice)
}

/// All texts in a message.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(words).collect(),
        Value::Object(fields) => fields.values().map(words).collect(),
        _ => String::new(),
    }
}

/// The results of tools in a request.
fn results(request: &Value) -> String {
    let mut found = String::new();
    for message in messages(request) {
        if message["role"] == "tool" {
            found.push_str(&words(&message["content"]));
        } else if message["type"] == "function_call_output"
            || message["type"] == "custom_tool_call_output"
        {
            found.push_str(&words(&message["output"]));
        }
        for block in message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == "tool_result")
        {
            found.push_str(&words(&block["content"]));
        }
    }
    found
}

fn has_image(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_image),
        Value::Object(fields) => {
            let kind = fields
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default();
            ["image", "image_url", "input_image"].contains(&kind) || fields.values().any(has_image)
        }
        _ => false,
    }
}

/// What is wrong with the history in a request: every call must have exactly one result, and JSON arguments.
fn mistakes(request: &Value) -> Vec<String> {
    let (mut wrong, mut open): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let id = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let blocks = |message: &Value, kind: &str| -> Vec<Value> {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        blocks
            .into_iter()
            .filter(|block| block["type"] == kind)
            .collect()
    };
    for message in messages(request) {
        let mut answered: Vec<String> = blocks(message, "tool_result")
            .iter()
            .map(|block| id(&block["tool_use_id"]))
            .collect();
        if message["role"] == "tool" {
            answered.push(id(&message["tool_call_id"]));
        }
        let is_output = message["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("_call_output"));
        if is_output {
            answered.push(id(&message["call_id"]));
        }
        for call in &answered {
            match open.iter().position(|other| other == call) {
                Some(index) => _ = open.remove(index),
                None => wrong.push(format!(
                    "a result for {call}, which was not called or has one"
                )),
            }
        }
        let is_call = message["type"] == "function_call" || message["type"] == "custom_tool_call";
        if answered.is_empty() && !is_call && !open.is_empty() {
            wrong.push(format!("no result for {open:?}"));
            open.clear();
        }
        let mut called = |call: &Value, arguments: &Value| {
            open.push(id(call));
            if arguments
                .as_str()
                .is_some_and(|text| serde_json::from_str::<Value>(text).is_err())
            {
                wrong.push(format!("arguments that are no JSON: {arguments}"));
            }
        };
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            called(&call["id"], &call["function"]["arguments"]);
        }
        if is_call {
            called(&message["call_id"], &message["arguments"]);
        }
        for block in blocks(message, "tool_use") {
            called(&block["id"], &Value::Null);
        }
    }
    if !open.is_empty() {
        wrong.push(format!("no result for {open:?}"));
    }
    wrong
}
