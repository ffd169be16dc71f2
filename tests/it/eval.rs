//! `tandem eval`: tasks that are played with a model, and the numbers that come of it.

use serde_json::{Value, json};

use crate::driver::World;

fn call(name: &str, arguments: Value) -> Value {
    json!([{ "call": { "id": "c1", "name": name, "arguments": arguments } }])
}

/// What was written into the folder of results.
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
    let output =
        world.run(&["eval", "--model", "scripted", "--suite", "behave", "--task", "long-output", "--json", out]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("pass@1 1 of 1"), "{}", output.stdout);
    let outcome = &results(&world)["outcomes"][0];
    assert_eq!((&outcome["passed"], &outcome["rounds"]), (&json!(true), &json!(4)), "{outcome}");
    assert_eq!(outcome["checks"]["a check ran after the last edit"], true, "{outcome}");
    assert_eq!(outcome["checks"]["the answer names places as path:line"], true, "{outcome}");
    assert!(world.read("out/results.svg").starts_with("<svg"));
    let events = world.read("out/events/long-output.jsonl");
    assert!(events.lines().last().unwrap().contains("\"done\""));
}

#[test]
fn open_buffers_are_changed_and_checked_in_the_editor() {
    let edit = json!({ "path": "greet.sh", "edits": [{ "old_text": "echo \"Hello, $1!\"", "new_text": "echo \"HELLO, $1!\" | tr a-z A-Z" }] });
    let world = World::new(json!([call("edit_file", edit), [{ "text": "Done." }]]));
    let output = world.run(&["eval", "--model", "scripted", "--task", "unsaved"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn unfinished_tasks_fail_and_differ_from_the_baseline() {
    let world = World::new(json!([[{ "text": "It is 5, see client.sh:2." }], [{ "text": "I do not know." }]]));
    let out = world.path().join("out");
    let out = out.to_str().unwrap();
    let question = ["eval", "--model", "scripted", "--task", "question"];
    let eval = |more: &[&str]| world.run(&[question.as_slice(), more].concat());
    assert_eq!(eval(&["--json", out]).code, Some(0));
    let output = eval(&["--baseline", out]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("pass@1 0/1, was 1/1"), "{}", output.stdout);
    assert!(output.stdout.contains("question: no, was yes"), "{}", output.stdout);
}

#[test]
fn an_exhausted_budget_runs_nothing_and_is_reported() {
    let world = World::new(json!([]));
    let output = world.run(&["eval", "--model", "scripted", "--task", "question", "--budget", "0"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("1 not played") && output.stderr.contains("budget"), "{}", output.stderr);
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
    world.write(&format!("{folder}/.docs/instructions.md"), "Is it a leap year?");
    world.write(&format!("{folder}/leap.py"), "def leap_year(year):\n    pass\n");
    world.write(
        &format!("{folder}/leap_test.py"),
        "import unittest\nfrom leap import leap_year\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(leap_year(2024))\n        self.assertFalse(leap_year(1900))\n",
    );
    let exercises = world.path().join("tracks");
    let (exercises, out) = (exercises.to_str().unwrap(), world.path().join("out"));
    let out = out.to_str().unwrap();
    let output =
        world.run(&["eval", "--model", "scripted", "--suite", "polyglot", "--exercises", exercises, "--json", out]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let outcome = &results(&world)["outcomes"][0];
    assert_eq!((&outcome["passed"], &outcome["passed_first"]), (&json!(true), &json!(false)), "{outcome}");
    assert_eq!(outcome["task"], "python/leap");
}
