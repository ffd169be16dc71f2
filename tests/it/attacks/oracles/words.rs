//! What the server said: to the person, to the model, in time or not.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Found, must, short};
use crate::attacks::inputs::Notes;
use crate::attacks::server::{Heard, Turn};

pub const KINDS: &[&str] = &[
    "final_text_equals",
    "notifications_no_controls",
    "notifications_valid_utf8",
    "permission_requested",
    "permission_shows",
    "permission_shows_escaped",
    "permission_text_no_bidi",
    "progress_notice",
    "prompt_stop",
    "stops_within_ms",
    "within_ms",
    "cancel_works_within_ms",
    "tool_calls_executed",
    "tool_result_contains",
    "tool_result_error",
    "user_error_mentions",
    "compacted_or_explained",
];

pub fn ask(notes: &Notes, kind: &str, oracle: &Value) -> Found {
    let text = |key: &str| oracle[key].as_str().unwrap_or_default();
    let limit = |key: &str| Duration::from_millis(oracle[key].as_u64().unwrap_or(u64::MAX >> 20));
    let turn = notes.turns.first().ok_or("there was no turn".to_owned());
    match kind {
        "final_text_equals" => {
            let said = answer_text(notes);
            must(said == text("text"), || format!("it said {:?}; {}", short(&said), answers(notes)))
        }
        "notifications_no_controls" => no_controls(notes),
        "notifications_valid_utf8" => must(notes.noise.is_empty(), || format!("{:?}", notes.noise)),
        "permission_requested" => {
            let asked = questions(notes);
            must(!asked.is_empty(), || "nobody was asked".to_owned())?;
            let shows = oracle["shows"].as_array().into_iter().flatten().filter_map(Value::as_str);
            shows.into_iter().try_for_each(|word| {
                must(asked.iter().any(|question| question.contains(word)), || format!("no {word} in {asked:?}"))
            })
        }
        "permission_shows" => {
            let asked = questions(notes);
            must(asked.iter().any(|question| question.contains(text("text"))), || format!("it showed {asked:?}"))
        }
        "permission_shows_escaped" => oracle["chars"].as_array().into_iter().flatten().try_for_each(|code| {
            let code = code.as_str().unwrap_or_default();
            let raw = u32::from_str_radix(code, 16).ok().and_then(char::from_u32).unwrap_or('\0');
            let asked = questions(notes);
            let is_escaped = |question: &String| question.to_lowercase().contains(code) && !question.contains(raw);
            must(asked.iter().any(is_escaped), || format!("no {code} in {asked:?}"))
        }),
        "permission_text_no_bidi" => {
            let bidi = |c: char| matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let asked = questions(notes);
            must(!asked.is_empty() && !asked.iter().any(|question| question.contains(bidi)), || format!("{asked:?}"))
        }
        "progress_notice" => progress(notes),
        "prompt_stop" => {
            let turn = turn?;
            let reason = &turn.answer["result"]["stopReason"];
            must(*reason == text("reason"), || format!("it ended with {}", short(&turn.answer.to_string())))?;
            in_time(turn.cancelled.unwrap_or(turn.asked), turn, limit("within_ms"))
        }
        "stops_within_ms" | "within_ms" => in_time(turn.clone()?.asked, turn?, limit("ms")),
        "cancel_works_within_ms" => {
            let turn = turn?;
            let cancelled = turn.cancelled.ok_or("it was not cancelled".to_owned())?;
            in_time(cancelled, turn, limit("ms"))
        }
        "tool_calls_executed" => {
            let ran = results(notes).filter(|(status, _)| status == "completed").count() as u64;
            must(Some(ran) == oracle["n"].as_u64(), || format!("{ran} ran"))
        }
        "tool_result_contains" => {
            let seen: Vec<_> = results(notes).map(|(_, words)| words).collect();
            must(seen.iter().any(|words| words.contains(text("text"))), || format!("{seen:?}"))
        }
        "tool_result_error" => {
            let seen: Vec<_> = results(notes).collect();
            let wanted = text("contains").to_lowercase();
            let fits =
                |(status, words): &(String, String)| status == "failed" && words.to_lowercase().contains(&wanted);
            must(seen.iter().any(fits), || short(&format!("{seen:?}")))
        }
        "user_error_mentions" => {
            let told = (answers(notes) + &notices(notes)).to_lowercase();
            let words = oracle["any"].as_array().into_iter().flatten().filter_map(Value::as_str);
            must(words.into_iter().any(|word| told.contains(&word.to_lowercase())), || short(&told))
        }
        _ => {
            let told = (answers(notes) + &notices(notes)).to_lowercase();
            let explained = ["context", "too long", "compact"].iter().any(|word| told.contains(word));
            must(explained || answer_text(notes) == "FINAL_OK", || short(&told))
        }
    }
}

fn in_time(from: Instant, turn: &Turn, limit: Duration) -> Found {
    let Some(answered) = turn.answered else { return Err("it never ended".to_owned()) };
    let took = answered.saturating_duration_since(from);
    must(took <= limit, || format!("late: it took {took:?}"))
}

/// The text of the first turn's answer.
fn answer_text(notes: &Notes) -> String {
    let end = notes.turns.first().and_then(|turn| turn.answered);
    let heard = notes.heard.iter().filter(|heard| end.is_none_or(|end| heard.at <= end));
    let chunks = heard.filter_map(|heard| heard.update("agent_message_chunk")?["content"]["text"].as_str());
    chunks.collect()
}

/// How the prompts ended.
fn answers(notes: &Notes) -> String {
    notes.turns.iter().map(|turn| turn.answer.to_string()).collect()
}

/// What a person was told besides the answer.
fn notices(notes: &Notes) -> String {
    told(&notes.heard.iter().collect::<Vec<_>>())
}

fn told(heard: &[&Heard]) -> String {
    const TOLD: [&str; 3] = ["_tandem/status", "window/showMessage", "window/logMessage"];
    let told = heard.iter().filter(|heard| TOLD.iter().any(|method| heard.message["method"] == *method));
    told.filter_map(|heard| heard.message["params"]["message"].as_str()).collect()
}

/// All that a person sees of each question.
fn questions(notes: &Notes) -> Vec<String> {
    let asked = notes.heard.iter().filter(|heard| heard.message["method"] == "session/request_permission");
    asked.map(|heard| visible(&heard.message["params"])).collect()
}

fn visible(question: &Value) -> String {
    let call = &question["toolCall"];
    let mut seen = vec![call["title"].as_str().unwrap_or_default()];
    for content in call["content"].as_array().into_iter().flatten() {
        seen.extend(
            [&content["content"]["text"], &content["path"], &content["newText"]]
                .map(|v| v.as_str().unwrap_or_default()),
        );
    }
    let list = |value: &'static str, of: &'static str, from: &Value| -> Vec<String> {
        let all = from[value].as_array().into_iter().flatten();
        all.filter_map(|item| item[of].as_str().map(str::to_owned)).collect()
    };
    let mut seen: Vec<String> = seen.into_iter().map(str::to_owned).collect();
    seen.extend(list("locations", "path", call));
    seen.extend(list("options", "name", question));
    seen.join("\n")
}

/// How each call ended, and with what words.
fn results(notes: &Notes) -> impl Iterator<Item = (String, String)> {
    notes.heard.iter().filter_map(|heard| {
        let update = heard.update("tool_call_update")?;
        let status = update["status"].as_str().filter(|status| ["completed", "failed"].contains(status))?;
        let content = update["content"].as_array().into_iter().flatten();
        let words = content.filter_map(|content| content["content"]["text"].as_str()).collect();
        Some((status.to_owned(), words))
    })
}

/// Whoever waited long was told why.
fn progress(notes: &Notes) -> Found {
    let first = notes.turns.first().map(|turn| turn.asked).into_iter();
    let times: Vec<Instant> = first.chain(notes.hits.iter().map(|hit| hit.at)).collect();
    let is_told = |from: Instant, to: Instant| {
        let between: Vec<&Heard> = notes.heard.iter().filter(|heard| heard.at >= from && heard.at <= to).collect();
        !told(&between).is_empty()
    };
    let in_silence =
        times.windows(2).find(|pair| pair[1] - pair[0] > Duration::from_secs(2) && !is_told(pair[0], pair[1]));
    must(in_silence.is_none(), || format!("{:?} in silence", in_silence.map(|pair| pair[1] - pair[0])))
}

/// Nothing that reaches a person moves a cursor. What carries changes as they are is exempt.
fn no_controls(notes: &Notes) -> Found {
    let bad = |c: char| c.is_control() && !['\t', '\r', '\n'].contains(&c);
    for Heard { message, .. } in &notes.heard {
        let update = &message["params"]["update"];
        let mut texts = vec![&update["title"], &message["params"]["toolCall"]["title"]];
        if update["sessionUpdate"].as_str().is_some_and(|kind| kind.starts_with("agent_")) {
            texts.push(&update["content"]["text"]);
        }
        texts.extend(update["content"].as_array().into_iter().flatten().map(|content| &content["content"]["text"]));
        if let Some(text) = texts.iter().filter_map(|text| text.as_str()).find(|text| text.contains(bad)) {
            return Err(format!("{text:?}"));
        }
    }
    must(!notes.heard.is_empty(), || "it said nothing at all".to_owned())
}
