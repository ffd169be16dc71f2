//! Death at every system call, and systems that refuse: the old file or the new one, and the next request works.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::case::{Case, Done, Expect, Trouble};
use super::faults::{Tracer, litter};
use super::inputs::Run;
use super::scene::Scene;
use crate::driver::side_by_side;

/// The calls at which the server is killed, and how many of them one by one: more than one change makes.
const CALLS: [(&str, u64); 6] =
    [("openat", 20), ("write", 20), ("fsync", 8), ("rename", 8), ("unlink", 8), ("ftruncate", 8)];
/// One more, deep in the turn.
const LAST: u64 = 50;
/// The changes of one turn: enough to come to the last call.
const CHANGES: u64 = 60;
/// How many servers are killed side by side.
const SIDE_BY_SIDE: usize = 4;

fn old(n: u64) -> String {
    format!("old {n}\n").repeat(50)
}

fn new(n: u64) -> String {
    format!("new {n}\n").repeat(60)
}

/// A turn that changes file after file, or removes them, with a first change before it that opens all folders.
fn case(removes: bool) -> Case {
    let change = |n: u64| {
        if removes {
            let patch = format!("*** Begin Patch\n*** Delete File: {n}.txt\n*** End Patch\n");
            return json!({ "name": "apply_patch", "args": { "patch": patch } });
        }
        json!({ "name": "edit", "args": { "path": format!("{n}.txt"), "old": old(n), "new": new(n) } })
    };
    let file = |n: u64| json!({ "op": "write", "path": format!("${{WS}}/{n}.txt"), "text": old(n) });
    let mut setup: Vec<Value> = (0..=CHANGES).map(file).collect();
    if removes {
        setup.push(json!({ "op": "env", "name": "TANDEM_MODEL", "value": "gpt-5-scripted" }));
    }
    let calls: Vec<Value> = (1..=CHANGES).map(change).collect();
    let input = json!({ "kind": "tool", "policy": "auto", "mode": "auto", "calls": [change(0)], "more": calls });
    Case {
        id: "matrix".into(),
        category: "crash".into(),
        title: String::new(),
        severity: String::new(),
        platforms: Vec::new(),
        setup,
        input,
        expect: Expect { verdict: String::new(), oracles: Vec::new() },
    }
}

/// A server that has made the first change; the others are what the model says next.
fn ready(case: &Case) -> Done<Run> {
    let scene = Scene::build(case)?;
    let mut run = Run::enter(case, &scene)?;
    run.converse("warm up", |_, _| {});
    run.model.add(json!({ "reply": "calls", "calls": case.input["more"] }));
    Ok(run)
}

/// Kills a server at its n-th such call; whether it came to that, and what is wrong afterwards.
fn kill(call: &str, n: u64) -> Done<(bool, Vec<String>)> {
    let case = case(call == "unlink");
    let mut run = ready(&case)?;
    let tracer = Tracer::attach(run.server.pid, &run.scene, call, &format!("signal=KILL:when={n}"))?;
    let killed = run.converse_to_death(tracer);
    let mut wrong = Vec::new();
    for n in 0..=CHANGES {
        match std::fs::read_to_string(run.scene.place("WS").join(format!("{n}.txt"))) {
            Ok(text) if text == old(n) || (call != "unlink" && text == new(n)) => {}
            Err(_) if call == "unlink" => {}
            other => wrong.push(format!("{n}.txt is torn: {other:?}")),
        }
    }
    run.model.forget();
    run.restart(&case)?;
    run.session = run.server.session();
    // Where it was removed there is nothing to read.
    run.model.add(json!({ "reply": "calls", "calls": [{ "name": "read", "args": { "path": "0.txt" } }] }));
    run.model.add(
        json!({ "reply": "calls", "calls": [{ "name": "write", "args": { "path": "0.txt", "content": "again" } }] }),
    );
    run.open(&case);
    run.converse("again", |_, _| {});
    if std::fs::read_to_string(run.scene.place("WS").join("0.txt")).ok().as_deref() != Some("again") {
        wrong.push("the next change does not work".to_owned());
    }
    wrong.extend(litter(&run.scene).into_iter().map(|path| format!("left behind: {path}")));
    Ok((killed, wrong))
}

#[test]
fn a_server_killed_at_any_system_call_leaves_the_old_file_or_the_new_one() {
    let numbers = |one_by_one| (1..=one_by_one).chain([LAST]);
    let all = CALLS.into_iter().flat_map(|(call, one_by_one)| numbers(one_by_one).map(move |n| (call, n)));
    let never = Mutex::new(Vec::<(&str, u64)>::new());
    let results = side_by_side(SIDE_BY_SIDE, all.collect(), |(call, n)| {
        // Where one is never made, those after it are not either.
        if never.lock().unwrap().iter().any(|(other, m)| *other == call && *m < n) {
            return None;
        }
        let done = kill(call, n);
        if matches!(done, Ok((false, _))) {
            never.lock().unwrap().push((call, n));
        }
        Some((call, n, done))
    });
    let results: Vec<_> = results.into_iter().flatten().collect();
    let mut wrong = Vec::new();
    for (call, one_by_one) in CALLS {
        let of_call = || results.iter().filter(|(other, ..)| *other == call);
        let killed = of_call().filter(|(_, _, done)| matches!(done, Ok((true, _)))).count();
        eprint_line(&format!("kill matrix: {call} {killed} of {}", numbers(one_by_one).count()));
    }
    for (call, n, done) in results {
        match done {
            Ok((_, found)) => wrong.extend(found.into_iter().map(|what| format!("{call} {n}: {what}"))),
            Err(Trouble::NotBuilt(why)) => eprint_line(&format!("skipped kill at {call} {n}: {why}")),
            Err(Trouble::Unknown(word)) => wrong.push(format!("the runner does not know {word}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line past the harness, which keeps what tests that pass have printed.
fn eprint_line(line: &str) {
    use std::io::Write as _;
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn system_errors_are_reported_and_the_old_file_stays() {
    for (calls, error, words) in [
        ("write", "ENOSPC", "no space left"),
        ("write", "EIO", "os error 5"),
        ("fsync", "EIO", "os error 5"),
        ("rename", "EIO", "os error 5"),
        ("rename", "EROFS", "read-only"),
        ("rename", "EACCES", "permission denied"),
    ] {
        let mut case = case(false);
        case.input["more"] = json!([case.input["more"][0]]);
        let mut run = match ready(&case) {
            Ok(run) => run,
            Err(trouble) => panic!("{trouble:?}"),
        };
        // The folder of before-images may fail too: that is one remark and keeps no change from happening.
        let file = run.scene.place("WS").join("1.txt");
        let tracer = match Tracer::attach(run.server.pid, &run.scene, calls, &format!("error={error}")) {
            Ok(tracer) => tracer,
            Err(trouble) => return eprint_line(&format!("skipped faults: {trouble:?}")),
        };
        run.converse("go", |_, _| {});
        drop(tracer);
        run.note();
        let told = run.notes.hits.last().unwrap().body.clone();
        assert!(told.contains("1.txt") && told.contains(words), "{calls} {error}: {told}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), old(1), "{calls} {error}");
        assert_eq!(litter(&run.scene), Vec::<String>::new(), "{calls} {error}");
        run.model.add(json!({ "reply": "calls", "calls": case.input["more"] }));
        run.converse("once more", |_, _| {});
        assert_eq!(std::fs::read_to_string(&file).unwrap(), new(1), "after {calls} {error}");
    }
}
