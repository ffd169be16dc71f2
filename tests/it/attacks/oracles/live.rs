//! What the server does when it is asked once more.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Found, must, short};
use crate::attacks::case::Case;
use crate::attacks::faults::litter;
use crate::attacks::inputs::Run;
use crate::attacks::server::{Heard, PATIENCE};

pub const KINDS: &[&str] = &[
    "exit",
    "exit_any",
    "alive_or_exit",
    "all_answered",
    "replies_for_id",
    "rpc_error",
    "rpc_error_any_id",
    "rpc_reply_any",
    "no_reply",
    "initialize_then_works",
    "alive",
    "starts_or_reports",
    "session_log_loads",
    "history_valid",
    "next_prompt_works",
    "no_temp_litter_after_restart",
];

/// How long an answer may take that has no limit of its own.
const SOON: Duration = Duration::from_secs(2);

pub fn ask(run: &mut Run, case: &Case, kind: &str, oracle: &Value) -> Found {
    let limit = Duration::from_millis(oracle["within_ms"].as_u64().unwrap_or(2000));
    match kind {
        "exit" => {
            let code = ends(run, limit)?;
            must(code.map(i64::from) == oracle["code"].as_i64(), || format!("it ended with {code:?}"))
        }
        "exit_any" => ends(run, limit).map(|_| ()),
        "alive_or_exit" => match run.server.exits_within(limit) {
            Some(_) => {
                let code = ends(run, limit)?;
                let words = std::fs::read_to_string(run.scene.stderr()).unwrap_or_default();
                must(oracle["code_nonzero"] != true || code != Some(0), || "it ended well".to_owned())?;
                must(oracle["stderr_nonempty"] != true || !words.is_empty(), || "it ended without a word".to_owned())
            }
            None => alive(run),
        },
        "all_answered" => all_answered(run, case, oracle),
        "replies_for_id" => replies(run, oracle),
        "rpc_error" | "rpc_error_any_id" | "rpc_reply_any" => rpc_error(run, kind, oracle),
        "no_reply" => {
            alive(run)?;
            let replies: Vec<Value> =
                run.server.heard().into_iter().filter(is_stray).map(|heard| heard.message).collect();
            must(replies.is_empty(), || format!("{replies:?}"))
        }
        "initialize_then_works" => {
            must(run.server.initialize(None), || "it does not initialize".to_owned())?;
            must(run.server.session().is_some(), || "it opens no session".to_owned())
        }
        "alive" => alive(run),
        "starts_or_reports" => starts(run),
        "session_log_loads" => loads(run, case),
        "history_valid" => history(run),
        "next_prompt_works" => {
            let answer = next(run)?;
            must(answer["result"]["stopReason"] == "end_turn", || short(&answer.to_string()))
        }
        _ => must(litter(&run.scene).is_empty(), || format!("{:?}", litter(&run.scene))),
    }
}

/// The answer to a request the runner did not make itself.
fn is_stray(heard: &Heard) -> bool {
    heard.is_answer() && !heard.message["id"].as_str().is_some_and(|id| id.starts_with("runner-"))
}

/// The exit code, if it ends in time after the last step.
fn ends(run: &mut Run, limit: Duration) -> Result<Option<i32>, String> {
    let left = (run.notes.last + limit).saturating_duration_since(Instant::now());
    run.server.exits_within(left).ok_or_else(|| "it does not end".to_owned())?;
    let (status, at) = run.server.exited.expect("it has ended");
    let took = at.saturating_duration_since(run.notes.last);
    must(took <= limit, || format!("late: it took {took:?}"))?;
    must(status.signal() != Some(6), || "it aborted".to_owned())?;
    Ok(status.code())
}

fn alive(run: &mut Run) -> Found {
    let begun = Instant::now();
    // An answer of any kind, from a server that may be busy with what was before: so it is not asked for anything long.
    let answer = run.server.call("tandem/areYouThere", json!({}), SOON);
    must(answer.is_some(), || format!("no answer after {:?}", begun.elapsed()))
}

fn all_answered(run: &mut Run, case: &Case, oracle: &Value) -> Found {
    let count = usize::try_from(oracle["count"].as_u64().unwrap_or(0)).unwrap();
    let paused =
        case.input["steps"].as_array().into_iter().flatten().filter_map(|step| step["pause_reading_ms"].as_u64());
    let limit = Duration::from_millis(oracle["within_ms"].as_u64().unwrap_or(2000))
        .max(Duration::from_millis(paused.sum::<u64>()));
    let left = (run.notes.last + limit).saturating_duration_since(Instant::now());
    let found = run.server.wait(left, |heard| {
        (heard.len() >= count)
            .then(|| heard.iter().filter(|heard| is_stray(heard)).count())
            .filter(|found| *found >= count)
    });
    must(found == Some(count), || {
        format!("late: {} answers", run.server.heard().iter().filter(|heard| is_stray(heard)).count())
    })
}

fn replies(run: &mut Run, oracle: &Value) -> Found {
    let fits = |heard: &Heard| heard.is_answer() && heard.message["id"] == oracle["id"];
    let (min, max) = (oracle["min"].as_u64().unwrap_or(0), oracle["max"].as_u64().unwrap_or(u64::MAX));
    let count = |heard: &[Heard]| heard.iter().filter(|heard| fits(heard)).count() as u64;
    run.server.wait(Duration::from_secs(10), |heard| (count(heard) >= min).then_some(()));
    // Whatever else comes for it comes before the answer to another request.
    alive(run)?;
    let found = count(&run.server.heard());
    must((min..=max).contains(&found), || format!("{found}"))
}

fn rpc_error(run: &mut Run, kind: &str, oracle: &Value) -> Found {
    let fits = |heard: &&Heard| match kind {
        "rpc_error" => heard.is_answer() && heard.message["id"] == oracle["id"],
        _ => is_stray(heard),
    };
    let answer = run.server.wait(SOON, |heard| heard.iter().find(fits).cloned()).ok_or("no answer".to_owned())?;
    if kind == "rpc_reply_any" {
        return Ok(());
    }
    let code = &answer.message["error"]["code"];
    let is_right = match &oracle["code"] {
        Value::Array(codes) => codes.contains(code),
        Value::String(any) if any == "any" => code.is_i64(),
        wanted => code == wanted,
    };
    must(is_right, || short(&answer.message.to_string()))
}

fn starts(run: &mut Run) -> Found {
    let words = std::fs::read_to_string(run.scene.stderr()).unwrap_or_default();
    if run.server.exits_within(Duration::ZERO).is_some() {
        return must(!words.is_empty() && !words.contains("panicked"), || format!("it died: {}", short(&words)));
    }
    alive(run)?;
    let session = run.session.clone().unwrap_or_default();
    let answer = load(run, &session);
    must(answer.is_some() && !words.contains("panicked"), || format!("no answer to load; {}", short(&words)))
}

fn load(run: &mut Run, session: &str) -> Option<Value> {
    let cwd = run.scene.roots()[0].clone();
    run.server.call(
        "session/load",
        json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }),
        Duration::from_secs(10),
    )
}

/// What was acknowledged is there again. A session killed before that may be unknown, and then it is in no list.
fn loads(run: &mut Run, case: &Case) -> Found {
    let mut sessions: Vec<String> = run.session.iter().chain(&run.more_sessions).cloned().collect();
    must(!sessions.is_empty(), || "there was no session".to_owned())?;
    sessions.reverse();
    for session in sessions {
        let answer = load(run, &session).ok_or("no answer to `session/load`".to_owned())?;
        if answer.get("result").is_some() {
            continue;
        }
        let list = run.server.call("session/list", json!({}), SOON).unwrap_or_default();
        let listed = list["result"]["sessions"].as_array().ok_or("it keeps no sessions".to_owned())?;
        let is_listed = listed.iter().any(|listed| listed["sessionId"] == *session);
        let may_be_lost = case.input["kind"] == "kill_at_syscall" && !is_listed;
        must(may_be_lost, || short(&answer.to_string()))?;
        run.session = run.server.session();
    }
    Ok(())
}

/// One more turn.
fn next(run: &mut Run) -> Result<Value, String> {
    let session = match &run.session {
        Some(session) => session.clone(),
        None => run.server.session().ok_or("no session".to_owned())?,
    };
    run.model.forget();
    let mut turn = run.server.prompt(&session, "and now?");
    run.server.end(&mut turn, PATIENCE);
    must(turn.answered.is_some(), || "the next prompt is not answered".to_owned())?;
    Ok(turn.answer)
}

/// The next request to the model tells a history that the wire allows.
fn history(run: &mut Run) -> Found {
    let before = run.model.hits().len();
    next(run)?;
    let hits = run.model.hits();
    let Some(hit) = hits.get(before..).and_then(<[_]>::last) else {
        return Err("there was no next request".to_owned());
    };
    let request: Value = serde_json::from_str(&hit.body).map_err(|error| format!("{error}: {}", short(&hit.body)))?;
    let wrong = hit.wire.mistakes(&request);
    must(wrong.is_empty(), || format!("{wrong:?}"))
}
