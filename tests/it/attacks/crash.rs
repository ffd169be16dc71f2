//! Kills at every system call, failing systems and other interruptions: afterwards, a file has its old or its new
//! content, the session loads, and the next prompt works.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::checks::{everything, litter};
use super::scene::{Play, Scene, edit, read, reply, run, write};
use super::tracer::Tracer;
use super::{report, skip};
use crate::driver::{side_by_side, until};

/// The system calls at which the server is killed, and how many of each one by one: more than one change makes.
/// The first four are crash-001 to 004.
const CALLS: [(&str, u64); 6] = [
    ("openat", 20),
    ("write", 20),
    ("fsync", 8),
    ("rename", 8),
    ("unlink", 8),
    ("ftruncate", 8),
];
/// One more, deep in the turn.
const LAST: u64 = 50;
/// How many more changes a turn makes than calls are waited for. Removals, which make few calls, keep their full number.
const SPARE: u64 = 10;
/// The number of servers killed in parallel.
const SIDE_BY_SIDE: usize = 4;

fn old(n: u64) -> String {
    format!("old {n}\n").repeat(50)
}

fn new(n: u64) -> String {
    format!("new {n}\n").repeat(60)
}

/// A change of the file with this number, or its removal.
fn change(n: u64, removes: bool) -> (&'static str, Value) {
    if removes {
        let patch = format!("*** Begin Patch\n*** Delete File: {n}.txt\n*** End Patch\n");
        return ("apply_patch", json!({ "patch": patch }));
    }
    edit(&format!("{n}.txt"), &old(n), &new(n))
}

/// A server that has made the first change, which opens all folders. `more` further changes follow in one turn.
fn ready(scene: &Scene, removes: bool, more: u64) -> Play<'_> {
    for n in 0..=more {
        scene.write(&scene.ws(&format!("{n}.txt")), old(n));
    }
    scene.calls(&[change(0, removes)]);
    let model = if removes {
        "gpt-5-scripted"
    } else {
        "scripted"
    };
    let mut play = scene.start_with("auto", |command| _ = command.env("TANDEM_MODEL", model));
    play.turn();
    scene.calls(&(1..=more).map(|n| change(n, removes)).collect::<Vec<_>>());
    play
}

/// Kills a server at its n-th such call; returns whether it made that many.
fn kill(call: &str, n: u64) -> Result<bool, String> {
    let removes = call == "unlink";
    let scene = Scene::new();
    let changes = SPARE + if removes { LAST } else { n };
    let mut play = ready(&scene, removes, changes);
    let tracer = Tracer::attach(&play, call, &format!("signal=KILL:when={n}"))?;
    let prompt = play.prompt();
    let killed = play.end_or_death(prompt).is_none();
    // A process is not gone while it is being traced.
    drop(tracer);
    let session = play.die();
    for n in 0..=changes {
        match std::fs::read_to_string(scene.ws(&format!("{n}.txt"))) {
            Ok(text) => assert!(
                text == old(n) || (!removes && text == new(n)),
                "{call}: {n}.txt is torn: {text:?}"
            ),
            Err(error) => assert!(removes, "{call}: {n}.txt: {error}"),
        }
    }
    let mut play = resumed(&scene, &session);
    scene.say(json!([reply(&[read("0.txt")])]));
    scene.calls(&[write("0.txt", "again")]);
    play.turn();
    assert_eq!(
        std::fs::read_to_string(scene.ws("0.txt")).unwrap(),
        "again",
        "{call}: the next change"
    );
    let left = [litter(&scene.ws("")), litter(&scene.home("state"))].concat();
    assert!(left.is_empty(), "{call}: left behind: {left:?}");
    Ok(killed)
}

/// A new server that loads the session of the killed one.
fn resumed<'a>(scene: &'a Scene, session: &str) -> Play<'a> {
    scene.world.rehearsal().clear();
    let mut play = scene.serve(|_| ());
    let loaded = play.load(session);
    assert!(loaded.get("result").is_some(), "{loaded}");
    play.set_mode("auto");
    play
}

#[test]
fn a_server_killed_at_any_system_call_leaves_the_old_file_or_the_new_one() {
    let numbers = |one_by_one| (1..=one_by_one).chain([LAST]);
    let all = CALLS
        .into_iter()
        .flat_map(|(call, one_by_one)| numbers(one_by_one).map(move |n| (call, n)));
    let never = Mutex::new(Vec::<(&str, u64)>::new());
    let kills = side_by_side(SIDE_BY_SIDE, all.collect(), |(call, n)| {
        // If one of them is never reached, neither are the later ones.
        if never
            .lock()
            .unwrap()
            .iter()
            .any(|(other, m)| *other == call && *m < n)
        {
            return None;
        }
        match kill(call, n) {
            Ok(true) => return Some(call),
            Ok(false) => never.lock().unwrap().push((call, n)),
            Err(why) => skip(&format!("the kill at {call} {n}"), &why),
        }
        None
    });
    for (call, one_by_one) in CALLS {
        let killed = kills
            .iter()
            .flatten()
            .filter(|other| **other == call)
            .count();
        report(&format!(
            "kill matrix: {call} {killed} of {}",
            numbers(one_by_one).count()
        ));
    }
}

/// How many files a command finds: fewer than the temporary files a tracer watches.
const FILES: u64 = 8;

/// A command that makes every kind of change.
const COMMAND: &str = "sed -i s/old/NEW/ *.txt; rm 3.txt; mkdir made; echo x > made/x; chmod 600 5.txt; ln -s 1.txt link; \
                       ln -sf 2.txt was_file; rm was_link; echo x > was_link; ln -sfn 2.txt other";

/// Kills the server while such a command runs, is recorded, undone and redone.
const DEATHS: [(&str, &[u64]); 6] = [
    ("openat", &[1, 10, 60]),
    ("write", &[1, 4, 20]),
    ("fsync", &[1, 2, 6, 30]),
    ("rename", &[1, 5, 30]),
    ("unlink", &[1, 2]),
    ("symlink", &[1, 2]),
];

/// The entry at each path: a file's bytes, a link's target, and the permissions.
fn contents(scene: &Scene) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let content = |path: PathBuf| {
        let found = path.symlink_metadata().unwrap();
        let link = || {
            path.read_link()
                .map(|target| target.into_os_string().into_encoded_bytes())
        };
        let bytes = link().or_else(|_| std::fs::read(&path)).unwrap_or_default();
        (path, (found.permissions().mode(), bytes))
    };
    everything(&scene.ws("")).into_iter().map(content).collect()
}

/// Kills a server at its n-th such call after a command began, or after `action`; returns whether it made that many.
fn kill_around(call: &str, n: u64, action: Option<&str>) -> Result<bool, String> {
    let scene = Scene::new();
    for n in 0..FILES {
        scene.write(&scene.ws(&format!("{n}.txt")), old(n));
    }
    // From here on, everything the server needs for commands exists.
    scene.calls(&[run(
        "true; echo x > was_file; ln -s 1.txt was_link; ln -s 1.txt other",
    )]);
    let mut play = scene.start("auto");
    play.turn();
    let before = contents(&scene);
    scene.calls(&[run(COMMAND)]);
    let review = |play: &mut Play<'_>, action: &str| {
        let params = json!({ "sessionId": play.session, "action": action });
        play.client.ask("_tandem/review", params)
    };
    if let Some(action) = action {
        play.turn();
        if action == "redo" {
            let undo = review(&mut play, "undo");
            play.client.answer(undo);
        }
    }
    let tracer = Tracer::attach(&play, call, &format!("signal=KILL:when={n}"))?;
    let asked = match action {
        Some(action) => review(&mut play, action),
        None => play.prompt(),
    };
    let killed = play.end_or_death(asked).is_none();
    drop(tracer);
    let session = play.die();
    // The command ends by itself, and with it the programs around it.
    let is_gone =
        || processes().all(|line| !line.contains(&scene.home("state").display().to_string()));
    until("the command is gone", is_gone);
    let mut play = resumed(&scene, &session);
    if contents(&scene) != before {
        let undo = review(&mut play, "undo");
        let undone = play.client.answer(undo);
        assert_eq!(
            undone["result"]["left"],
            json!([]),
            "{call} {n} {action:?}: {undone}"
        );
        assert!(
            contents(&scene) == before,
            "{call} {n} {action:?}: {undone}"
        );
    }
    assert!(litter(&scene.ws("")).is_empty(), "{call} {n} {action:?}");
    play.works();
    Ok(killed)
}

#[test]
fn undo_and_redo_on_a_full_disk_can_be_tried_again() {
    let scene = Scene::new();
    for n in 0..FILES {
        scene.write(&scene.ws(&format!("{n}.txt")), old(n));
    }
    scene.calls(&[run(COMMAND)]);
    let mut play = scene.start("auto");
    let before = contents(&scene);
    play.turn();
    let after = contents(&scene);
    for (action, expected) in [("undo", &before), ("redo", &after)] {
        let review = |play: &mut Play<'_>| {
            let params = json!({ "sessionId": play.session, "action": action });
            play.client.call("_tandem/review", params)
        };
        let tracer = match Tracer::attach(&play, "write", "error=ENOSPC") {
            Ok(tracer) => tracer,
            Err(why) => return skip("undo on a full disk", &why),
        };
        let answer = review(&mut play);
        drop(tracer);
        assert!(
            answer.to_string().contains("no space left"),
            "{action}: {answer}"
        );
        assert!(litter(&scene.ws("")).is_empty(), "{action}");
        for path in contents(&scene).keys() {
            let now = contents(&scene).get(path).cloned();
            assert!(
                now.as_ref() == before.get(path) || now.as_ref() == after.get(path),
                "{}",
                path.display()
            );
        }
        let answer = review(&mut play);
        assert_eq!(answer["result"]["left"], json!([]), "{action}: {answer}");
        assert!(contents(&scene) == *expected, "{action}: {answer}");
    }
}

/// The command lines of all processes.
fn processes() -> impl Iterator<Item = String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok())
}

#[test]
fn a_command_can_be_undone_wherever_the_server_was_killed() {
    let all = DEATHS
        .into_iter()
        .flat_map(|(call, numbers)| numbers.iter().map(move |n| (call, *n)));
    let all = all
        .flat_map(|(call, n)| [None, Some("undo"), Some("redo")].map(|action| (call, n, action)));
    let kills = side_by_side(
        SIDE_BY_SIDE,
        all.collect(),
        |(call, n, action)| match kill_around(call, n, action) {
            Ok(killed) => killed,
            Err(why) => {
                skip(&format!("the kill of a command at {call} {n}"), &why);
                false
            }
        },
    );
    let killed = kills.iter().filter(|killed| **killed).count();
    report(&format!(
        "kill matrix of commands: {killed} of {}",
        kills.len()
    ));
}

#[test]
fn system_errors_are_reported_and_the_old_file_stays() {
    for (call, error, word) in [
        ("write", "ENOSPC", "no space left"),
        ("write", "EIO", "os error 5"),
        ("fsync", "EIO", "os error 5"),
        ("rename", "EIO", "os error 5"),
        ("rename", "EROFS", "read-only"),
        ("rename", "EACCES", "permission denied"),
    ] {
        let scene = Scene::new();
        let mut play = ready(&scene, false, 1);
        // Storing before-images may fail, too: that causes one notice and doesn't prevent any change.
        let tracer = match Tracer::attach(&play, call, &format!("error={error}")) {
            Ok(tracer) => tracer,
            Err(why) => return skip("fs-fault-003", &why),
        };
        play.turn();
        drop(tracer);
        play.fails_with(word);
        play.fails_with("1.txt");
        assert_eq!(
            std::fs::read_to_string(scene.ws("1.txt")).unwrap(),
            old(1),
            "{call} {error}"
        );
        assert!(
            litter(&scene.ws("")).is_empty() && litter(&scene.home("state")).is_empty(),
            "{call} {error}"
        );
        scene.calls(&[change(1, false)]);
        play.turn();
        assert_eq!(
            std::fs::read_to_string(scene.ws("1.txt")).unwrap(),
            new(1),
            "after {call} {error}"
        );
    }
}

#[test]
fn crash_007_a_server_killed_while_it_streams_resumes() {
    for updates in [1, 5, 50] {
        let scene = Scene::new();
        scene.say(
            json!([[{ "words": "word ".repeat(updates), "delay_ms": 1 }, { "gate": "never" }]]),
        );
        let mut play = scene.start("auto");
        play.prompt();
        let mut heard = String::new();
        while heard.len() < "word ".len() * updates {
            heard += play.update("agent_message_chunk")["content"]["text"]
                .as_str()
                .unwrap();
        }
        let session = play.die();
        resumed(&scene, &session).works();
    }
}

#[test]
fn crash_012_a_damaged_session_is_survived() {
    let scene = Scene::new();
    let session = scene.play("ask", &[]).die();
    let files: Vec<_> = everything(&scene.home("state"))
        .into_iter()
        .filter(|path| path.is_file())
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes
            .iter_mut()
            .skip(7)
            .step_by(97)
            .for_each(|byte| *byte ^= 0x41);
        bytes.extend([0, 0, 0xff, 0xfe, b'\n', b'{', b'"', 0]);
        std::fs::write(&file, bytes).unwrap();
    }
    let mut play = scene.serve(|_| ());
    let loaded = play.load(&session);
    assert!(
        loaded.get("result").is_some() || loaded.get("error").is_some(),
        "{loaded}"
    );
    play.lives();
    let log = play.log();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn crash_015_two_servers_in_one_workspace_lose_nothing() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.start("auto"), scene.start("auto"));
    scene.say(json!([[{ "text": "a" }], [{ "text": "b" }]]));
    let prompts = (one.prompt(), two.prompt());
    for answer in [one.end(prompts.0), two.end(prompts.1)] {
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    let sessions = [one.die(), two.die()];
    for session in sessions {
        resumed(&scene, &session).works();
    }
}

#[test]
fn crash_017_a_laptop_may_sleep_longer_than_an_answer_may_be_silent() {
    let scene = Scene::new();
    scene.write(&scene.home("config.toml"), "[limits]\nidle-timeout = 1\n");
    scene.say(json!([[{ "text": "half" }, { "gate": "awake" }, { "text": "whole" }]]));
    let mut play = scene.start("auto");
    let prompt = play.prompt();
    play.update("agent_message_chunk");
    play.program.signal(Signal::STOP);
    // The case is that time passes: a stopped process emits no event to wait for.
    std::thread::sleep(Duration::from_secs(2));
    play.program.signal(Signal::CONT);
    scene.world.rehearsal().open("awake");
    play.end(prompt);
    play.works();
}
