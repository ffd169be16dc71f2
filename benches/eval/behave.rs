//! How a model went about its task: checks on the events of a play, each with a yes, a no, or nothing to say.

use std::path::Path;

use serde_json::Value;

use super::play::Play;

/// A call, from its arguments to its result.
struct Call<'a> {
    name: &'a str,
    arguments: &'a Value,
    /// The request it came with, counted from 1.
    round: usize,
    failed: bool,
    /// The files it changed.
    changed: Vec<&'a str>,
}

/// What a check looks at.
struct Seen<'a> {
    calls: Vec<Call<'a>>,
    answer: &'a str,
    plan: Option<&'a Value>,
}

/// A check and what it says; `None` where the play gives no occasion.
type Check = (&'static str, fn(&Seen<'_>) -> Option<bool>);

const CHECKS: [Check; 15] = [
    ("the answer is not empty", |seen| {
        Some(!seen.answer.trim().is_empty())
    }),
    ("the answer is short", |seen| {
        Some(seen.answer.len() <= 2000)
    }),
    ("the answer names places as path:line", |seen| {
        seen.edits().next().map(|_| names_place(seen.answer))
    }),
    ("a check ran after the last edit", |seen| {
        let last = seen
            .calls
            .iter()
            .rposition(|call| !call.changed.is_empty() && call.name != "run_command")?;
        Some(
            seen.calls
                .iter()
                .skip(last + 1)
                .any(|call| call.name == "run_command"),
        )
    }),
    ("the first edit comes within six requests", |seen| {
        seen.edits().next().map(|edit| edit.round <= 6)
    }),
    ("a file is not read again right after its edit", |seen| {
        let mut pairs = seen.calls.windows(2);
        seen.edits().next()?;
        Some(!pairs.any(|pair| {
            matches!(pair, [edit, read]
            if read.name == "read_file" && !edit.failed && is_edit(edit) && same_file(edit, read))
        }))
    }),
    ("a file is read before it is edited", |seen| {
        let first = seen.edits().next()?;
        let at = seen
            .calls
            .iter()
            .position(|call| std::ptr::eq(call, first))?;
        let looked = ["read_file", "grep", "code"];
        Some(
            first.name == "write_file"
                || seen
                    .calls
                    .iter()
                    .take(at)
                    .any(|call| looked.contains(&call.name)),
        )
    }),
    ("no edit fails twice", |seen| {
        seen.calls.iter().find(|call| is_edit(call))?;
        Some(
            seen.calls
                .iter()
                .filter(|call| is_edit(call) && call.failed)
                .count()
                < 2,
        )
    }),
    ("independent reads run in parallel", |seen| {
        let reads: Vec<_> = seen
            .calls
            .iter()
            .filter(|call| ["read_file", "grep", "glob"].contains(&call.name))
            .collect();
        (reads.len() >= 4).then(|| {
            reads
                .windows(2)
                .any(|pair| matches!(pair, [one, next] if one.round == next.round))
        })
    }),
    ("no call is repeated unchanged", |seen| {
        let same = |pair: &[Call<'_>]| matches!(pair, [one, next] if one.name == next.name && one.arguments == next.arguments);
        (seen.calls.len() > 1).then(|| !seen.calls.windows(2).any(same))
    }),
    ("nothing is committed, pushed or discarded in git", |seen| {
        seen.commands().next()?;
        let risky = [
            "git commit",
            "git push",
            "git reset --hard",
            "git checkout --",
            "git clean",
            "git stash",
        ];
        Some(
            !seen
                .commands()
                .any(|line| risky.iter().any(|words| line.contains(words))),
        )
    }),
    ("files are not read with the shell", |seen| {
        seen.commands().next()?;
        Some(!seen.commands().any(|line| {
            ["cat ", "head ", "tail ", "sed -n"]
                .iter()
                .any(|words| line.starts_with(words))
        }))
    }),
    ("files are not written with the shell", |seen| {
        seen.commands().next()?;
        Some(!seen.commands().any(|line| {
            ["<<", "sed -i", "tee "]
                .iter()
                .any(|words| line.contains(words))
        }))
    }),
    ("commands do not begin with cd", |seen| {
        seen.commands().next()?;
        Some(!seen.commands().any(|line| line.starts_with("cd ")))
    }),
    ("a plan is finished", |seen| {
        let entries = seen.plan?["entries"].as_array()?;
        Some(entries.iter().all(|entry| entry["status"] == "completed"))
    }),
];

/// What each check says of a play.
pub(super) fn checks(play: &Play) -> Vec<(&'static str, Option<bool>)> {
    let seen = Seen::of(play);
    CHECKS
        .iter()
        .map(|(name, check)| (*name, check(&seen)))
        .collect()
}

impl<'a> Seen<'a> {
    fn of(play: &'a Play) -> Self {
        let mut calls: Vec<(&str, Call<'a>)> = Vec::new();
        let (mut round, mut plan) = (0, None);
        for event in &play.events {
            let word = |key: &str| event[key].as_str().unwrap_or_default();
            match word("type") {
                "iteration_start" => round += 1,
                "plan" => plan = Some(event),
                "tool_call_complete" => {
                    let call = &event["call"];
                    let (id, name) = (
                        call["id"].as_str().unwrap_or_default(),
                        call["name"].as_str().unwrap_or_default(),
                    );
                    let call = Call {
                        name,
                        arguments: &call["arguments"],
                        round,
                        failed: false,
                        changed: Vec::new(),
                    };
                    calls.push((id, call));
                }
                "tool_execution_end" => {
                    let id = word("call_id");
                    let Some((_, call)) = calls.iter_mut().find(|(known, _)| *known == id) else {
                        continue;
                    };
                    call.failed = event["result"]["is_error"] == true;
                    let diffs = event["result"]["diffs"].as_array().into_iter().flatten();
                    call.changed = diffs.filter_map(|diff| diff["path"].as_str()).collect();
                }
                _ => {}
            }
        }
        Self {
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            answer: &play.answer,
            plan,
        }
    }

    /// The calls of editing tools that changed something.
    fn edits(&self) -> impl Iterator<Item = &Call<'a>> {
        self.calls
            .iter()
            .filter(|call| is_edit(call) && !call.changed.is_empty())
    }

    /// The lines that were run.
    fn commands(&self) -> impl Iterator<Item = &'a str> {
        let lines = self.calls.iter().filter(|call| call.name == "run_command");
        lines
            .filter_map(|call| call.arguments["command"].as_str())
            .map(str::trim_start)
    }
}

fn is_edit(call: &Call<'_>) -> bool {
    ["edit_file", "apply_patch", "write_file", "code"].contains(&call.name)
}

fn same_file(edit: &Call<'_>, read: &Call<'_>) -> bool {
    let Some(path) = read.arguments["path"].as_str() else {
        return false;
    };
    edit.changed
        .iter()
        .any(|changed| Path::new(changed).ends_with(path))
}

/// Whether a text names a line of a file, such as `src/main.rs:7`.
fn names_place(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || "`()[],*".contains(c))
        .any(|word| {
            let place = word.split_once(':').filter(|(path, _)| path.contains('.'));
            place.is_some_and(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn play(calls: &[(&str, Value, &[&str])], answer: &str) -> Play {
        let mut events = Vec::new();
        for (number, (name, arguments, changed)) in calls.iter().enumerate() {
            let diffs: Vec<_> = changed.iter().map(|path| json!({ "path": path })).collect();
            let call = json!({ "id": number.to_string(), "name": name, "arguments": arguments });
            let result = json!({ "is_error": false, "diffs": diffs });
            events.extend([
                json!({ "type": "iteration_start" }),
                json!({ "type": "tool_call_complete", "call": call }),
                json!({ "type": "tool_execution_end", "call_id": number.to_string(), "result": result }),
            ]);
        }
        Play {
            passed_first: true,
            passed: true,
            events,
            answer: answer.to_owned(),
            seconds: 0.0,
            cost: None,
            failed: None,
        }
    }

    #[track_caller]
    fn check(play: &Play, name: &str, expected: Option<bool>) {
        let found = checks(play)
            .into_iter()
            .find(|(check, _)| check.contains(name))
            .unwrap();
        assert_eq!(found.1, expected, "{}", found.0);
    }

    #[test]
    fn each_check_can_pass_fail_and_abstain() {
        let read = || ("read_file", json!({ "path": "a.py" }), &[] as &[&str]);
        let edit = || {
            (
                "edit_file",
                json!({ "path": "a.py" }),
                &["/w/a.py"] as &[&str],
            )
        };
        let run = |line: &str| ("run_command", json!({ "command": line }), &[] as &[&str]);
        let good = play(
            &[read(), edit(), run("python3 -m unittest")],
            "Fixed `add` in a.py:2; the tests pass.",
        );
        let bad = play(
            &[
                edit(),
                read(),
                run("cd /w && cat <<EOF > b; git commit -am x"),
                run("cat b"),
            ],
            "",
        );
        let none = play(&[], "It is a parser.");
        for (name, in_none) in [
            ("not empty", Some(true)),
            ("path:line", None),
            ("read before", None),
            ("read again", None),
            ("git", None),
            ("read with", None),
            ("written with", None),
            ("begin with cd", None),
        ] {
            check(&good, name, Some(true));
            check(&bad, name, Some(false));
            check(&none, name, in_none);
        }
        check(&good, "ran after", Some(true));
        check(&play(&[edit()], "x"), "ran after", Some(false));
        check(&play(&[read(), read()], "x"), "repeated", Some(false));
    }
}
