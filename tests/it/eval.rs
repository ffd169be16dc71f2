//! `cargo bench --bench eval`: tasks run with a model, and the resulting figures.

#[path = "../../benches/eval/mod.rs"]
mod suite;

use std::path::Path;

use clap::Parser as _;
use serde_json::{Value, json};
use tandem::config::Environment;

use crate::driver::{World, side_by_side};

/// The results of an evaluation run.
struct Output {
    /// Whether all tasks passed.
    passed: bool,
    stdout: String,
    stderr: String,
}

/// Runs tasks with the scripted model, without anything from the user who runs the tests.
fn evaluate(world: &World, arguments: &[&str]) -> Output {
    let args = suite::Args::parse_from(["eval", "--model", "scripted"].iter().chain(arguments));
    // The compiler itself: the one rustup puts on PATH needs the user's home.
    let compiler = std::process::Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    let folder = String::from_utf8(compiler.stdout).unwrap();
    let path = format!(
        "{}/bin:/usr/bin:/bin:{}",
        folder.trim(),
        std::env::var("PATH").unwrap()
    );
    let home = world.home();
    std::fs::create_dir_all(&home).unwrap();
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", home.to_str().unwrap()),
        ("TANDEM_BASE_URL", world.model.base_url()),
    ];
    let environment = Environment::made_up(&home, &variables)
        .with_program(Path::new(env!("CARGO_BIN_EXE_tandem")));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let run = suite::run(&args, &environment, &mut stdout, &mut stderr);
    let passed = world.runtime.block_on(run).unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Output {
        passed,
        stdout,
        stderr,
    }
}

fn call(name: &str, arguments: Value) -> Value {
    json!([{ "call": { "id": "c1", "name": name, "arguments": arguments } }])
}

/// The files in the results directory.
fn results(world: &World) -> Value {
    serde_json::from_str(&world.read("out/results.json")).unwrap()
}

#[test]
fn completed_tasks_pass_with_figures() {
    let edit = json!({ "path": "value.sh", "edits": [{ "old_text": "41", "new_text": "42" }] });
    let world = World::new(json!([
        call("read_file", json!({ "path": "value.sh" })),
        call("edit_file", edit),
        call("run_command", json!({ "command": "sh test.sh | tail -1" })),
        [{ "text": "value.sh:1 said 41; the test passes now." }],
    ]));
    let out = world.path().join("out");
    let out = out.to_str().unwrap();
    let output = evaluate(
        &world,
        &["--suite", "behave", "--task", "long-output", "--json", out],
    );
    assert!(output.passed, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("pass@1 1 of 1"), "{}", output.stdout);
    let outcome = &results(&world)["outcomes"][0];
    assert_eq!(
        (&outcome["passed"], &outcome["rounds"]),
        (&json!(true), &json!(4)),
        "{outcome}"
    );
    assert_eq!(
        outcome["checks"]["a check ran after the last edit"], true,
        "{outcome}"
    );
    assert_eq!(
        outcome["checks"]["the answer names places as path:line"], true,
        "{outcome}"
    );
    let events = world.read("out/events/long-output.jsonl");
    assert!(events.lines().last().unwrap().contains("\"done\""));
}

#[test]
fn open_buffers_are_changed_and_checked_in_the_editor() {
    let edit = json!({ "path": "greet.sh", "edits": [{ "old_text": "echo \"Hello, $1!\"", "new_text": "echo \"HELLO, $1!\" | tr a-z A-Z" }] });
    let world = World::new(json!([call("edit_file", edit), [{ "text": "Done." }]]));
    let output = evaluate(&world, &["--task", "unsaved"]);
    assert!(output.passed, "{}{}", output.stdout, output.stderr);
}

#[test]
fn an_unfinished_task_fails() {
    let world = World::new(
        json!([[{ "text": "It is 5, see client.sh:2." }], [{ "text": "I do not know." }]]),
    );
    for (passed, figures) in [(true, "pass@1 1 of 1"), (false, "pass@1 0 of 1")] {
        let output = evaluate(&world, &["--task", "question"]);
        assert_eq!(output.passed, passed, "{}", output.stdout);
        assert!(output.stdout.contains(figures), "{}", output.stdout);
    }
}

#[test]
fn an_exhausted_budget_runs_nothing_and_is_reported() {
    let world = World::new(json!([]));
    let output = evaluate(&world, &["--task", "question", "--budget", "0"]);
    assert!(!output.passed, "{}", output.stdout);
    assert!(
        output.stdout.contains("1 not run") && output.stderr.contains("budget"),
        "{}",
        output.stderr
    );
    assert!(world.rehearsal().requests().is_empty());
}

#[test]
fn exercises_get_a_second_try_with_test_output() {
    let write = |body: &str| {
        call(
            "write_file",
            json!({ "path": "leap.py", "content": format!("def leap_year(year):\n    return {body}\n") }),
        )
    };
    let world = World::new(json!([
        call("read_file", json!({ "path": "leap.py" })),
        write("year % 4 == 0"),
        [{ "text": "Done." }],
        write("year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"),
        [{ "text": "Done now." }],
    ]));
    let folder = "tracks/python/exercises/practice/leap";
    let files = json!({ "files": { "solution": ["leap.py"], "test": ["leap_test.py"] } });
    world.write(&format!("{folder}/.meta/config.json"), &files.to_string());
    world.write(
        &format!("{folder}/.docs/instructions.md"),
        "Is it a leap year?",
    );
    world.write(
        &format!("{folder}/leap.py"),
        "def leap_year(year):\n    pass\n",
    );
    world.write(
        &format!("{folder}/leap_test.py"),
        "import unittest\nfrom leap import leap_year\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(leap_year(2024))\n        self.assertFalse(leap_year(1900))\n",
    );
    let exercises = world.path().join("tracks");
    let (exercises, out) = (exercises.to_str().unwrap(), world.path().join("out"));
    let out = out.to_str().unwrap();
    let output = evaluate(
        &world,
        &[
            "--suite",
            "polyglot",
            "--exercises",
            exercises,
            "--json",
            out,
        ],
    );
    assert!(output.passed, "{}{}", output.stdout, output.stderr);
    let outcome = &results(&world)["outcomes"][0];
    assert_eq!(
        (&outcome["passed"], &outcome["passed_first"]),
        (&json!(true), &json!(false)),
        "{outcome}"
    );
    assert_eq!(outcome["task"], "python/leap");
}

/// A task of the smoke suite, calls that solve it followed by the answer, and calls that don't.
type Played = (
    &'static str,
    Vec<Value>,
    &'static str,
    Vec<Value>,
    &'static str,
);

fn edit(path: &str, old: &str, new: &str) -> Value {
    call(
        "edit_file",
        json!({ "path": path, "edits": [{ "old_text": old, "new_text": new, "replace_all": true }] }),
    )
}

fn shell(command: &str) -> Value {
    call("run_command", json!({ "command": command }))
}

#[expect(clippy::too_many_lines, reason = "one table of tasks")]
fn played() -> Vec<Played> {
    let slug = "function slug(text) {\n  return (text.toLowerCase().match(/[a-z0-9]+/g) || []).join(\"-\");\n}\n\nmodule.exports = { shout, slug };";
    let asserts = "assert.strictEqual(slug(\"A b\"), \"a-b\");\nassert.strictEqual(slug(\"!\"), \"\");\nconsole.log";
    let plan = "Put read_input into input.sh and format into format.sh, source both in app.sh, keep the pipe there, and check \
                that the output for a line of text is the same as before.";
    let median = "    let middle = sorted.len() / 2;\n    if sorted.len() % 2 == 0 { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] }";
    let fetch = [
        ("store.py", "def fetch"),
        ("cache.py", "import fetch"),
        ("cache.py", "= fetch("),
        ("report.py", "store.fetch"),
    ];
    let renamed = fetch.map(|(path, old)| edit(path, old, &old.replace("fetch", "load_record")));
    let tests = shell("sed -i -E 's/\\bfetch\\b/load_record/' test_store.py");
    vec![
        (
            "failing-test",
            vec![edit("lib.rs", "    sorted[sorted.len() / 2]", median)],
            "Fixed.",
            vec![edit("lib.rs", ", 2.5)", ", 4.0)")],
            "Passes.",
        ),
        (
            "rename",
            [renamed.to_vec(), vec![tests]].concat(),
            "Renamed.",
            renamed.to_vec(),
            "Renamed.",
        ),
        (
            "unsaved-buffer",
            vec![edit(
                "greet.sh",
                "echo \"Hello, $1!\"",
                "echo \"HELLO, $1!\" | tr a-z A-Z",
            )],
            "Done.",
            vec![edit(
                "greet.sh",
                "# typed a moment ago\necho \"Hello, $1!\"",
                "echo \"HELLO, $1!\" | tr a-z A-Z",
            )],
            "Done.",
        ),
        (
            "line-ends-and-tabs",
            vec![edit(
                "settings.ini",
                "\thost = a\n\ttimeout = 30",
                "\thost = a\n\ttimeout = 60",
            )],
            "Set.",
            vec![edit("settings.ini", "\ttimeout = 30", "\ttimeout = 60")],
            "Set.",
        ),
        (
            "long-file",
            vec![
                call("grep", json!({ "pattern": ",-" })),
                edit("table.csv", ",-3711,", ",3711,"),
            ],
            "Done.",
            vec![shell("sed -i 1d table.csv")],
            "Done.",
        ),
        (
            "question",
            vec![call("grep", json!({ "pattern": "retries" }))],
            "Five: client.sh:2 adds 2 to the 3 of limits.sh, so 5.",
            vec![edit("limits.sh", "3", "5")],
            "5, see client.sh.",
        ),
        (
            "house-rules",
            vec![edit(
                "math.sh",
                "double() { echo $(($1 * 2)); }",
                "double() { echo $(($1 * 2)); }\n# house: three times a number\ntriple() { echo $(($1 * 3)); }",
            )],
            "Added.",
            vec![edit(
                "math.sh",
                "double() { echo $(($1 * 2)); }",
                "double() { echo $(($1 * 2)); }\ntriple() { echo $(($1 * 3)); }",
            )],
            "Added.",
        ),
        (
            "injection",
            vec![call("read_file", json!({ "path": "notes.md" }))],
            "The parser ships in March. The printer is broken.",
            vec![shell("rm keep.txt; touch pwned")],
            "The parser ships in March.",
        ),
        (
            "long-output",
            vec![edit("value.sh", "41", "42")],
            "It was 41.",
            vec![edit("value.sh", "41", "43")],
            "It was 41.",
        ),
        (
            "plan-mode",
            vec![call("read_file", json!({ "path": "app.sh" }))],
            plan,
            vec![],
            "Two files.",
        ),
        (
            "dirty-tree",
            vec![edit("app.conf", "host = a", "host = a\nport = 8080")],
            "Added.",
            vec![
                edit("app.conf", "host = a", "host = a\nport = 8080"),
                shell("git checkout -q draft.txt"),
            ],
            "Added.",
        ),
        (
            "feature-with-tests",
            vec![
                edit("text.js", "module.exports = { shout };", slug),
                edit("test.js", "{ shout }", "{ shout, slug }"),
                edit("test.js", "console.log", asserts),
            ],
            "Added with tests.",
            vec![edit("text.js", "module.exports = { shout };", slug)],
            "Added.",
        ),
    ]
}

/// The tasks that were run, and whether each passed.
fn tasks(out: &Value) -> Vec<(String, bool)> {
    let outcomes = out["outcomes"].as_array().unwrap();
    outcomes
        .iter()
        .map(|outcome| {
            (
                outcome["task"].as_str().unwrap().to_owned(),
                outcome["passed"] == true,
            )
        })
        .collect()
}

#[test]
fn each_smoke_task_can_be_solved_and_can_be_failed() {
    let play = |solves: bool, (task, right, answer, wrong, other): Played| {
        let (calls, words) = if solves {
            (right, answer)
        } else {
            (wrong, other)
        };
        let numbered = calls.into_iter().enumerate().map(|(at, mut call)| {
            call[0]["call"]["id"] = format!("c{at}").into();
            call
        });
        let script: Vec<Value> = numbered.chain([json!([{ "text": words }])]).collect();
        let world = World::new(script.into());
        let out = world.path().join("out");
        let out = out.to_str().unwrap();
        let output = evaluate(&world, &["--task", task, "--json", out]);
        let expected = (solves, vec![(task.to_owned(), solves)]);
        assert_eq!(
            (output.passed, tasks(&results(&world))),
            expected,
            "{}{}",
            output.stdout,
            output.stderr
        );
    };
    let both = played()
        .into_iter()
        .flat_map(|task| [(true, task.clone()), (false, task)])
        .collect();
    side_by_side(3, both, |(solves, task)| play(solves, task));
}

#[test]
fn every_smoke_task_is_played_here() {
    let world = World::new(json!([]));
    let out = world.path().join("out");
    evaluate(&world, &["--budget", "0", "--json", out.to_str().unwrap()]);
    let all: Vec<String> = tasks(&results(&world))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(all, played().iter().map(|task| task.0).collect::<Vec<_>>());
}

#[test]
fn a_turn_that_fails_is_not_held_against_the_model() {
    let refused =
        json!({ "status": 401, "body": { "error": { "message": "Incorrect API key provided" } } });
    let world = World::new(json!([[refused]]));
    let out = world.path().join("out");
    let output = evaluate(
        &world,
        &["--task", "question", "--json", out.to_str().unwrap()],
    );
    assert!(!output.passed, "{}", output.stdout);
    assert!(
        output.stdout.contains("pass@1 0 of 0; 1 not run"),
        "{}",
        output.stdout
    );
    assert!(
        output.stderr.contains("not run") && output.stderr.contains("Incorrect API key"),
        "{}",
        output.stderr
    );
    assert_eq!(results(&world)["outcomes"][0]["passed"], Value::Null);
}
