//! A file's line endings are preserved, line by line, whatever a model writes and with whatever tool.

use serde_json::{Value, json};

use crate::driver::{World, call};

/// Pseudo-random numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A file of lines with these endings.
fn file(endings: &[&str]) -> String {
    let lines = endings.iter().enumerate();
    let lines: Vec<_> = lines
        .map(|(number, ending)| format!("line {number}{ending}"))
        .collect();
    lines.concat()
}

/// A call of one of the tools that changes the lines `from..to` to `new` (all with one kind of ending), and the expected
/// file: unchanged lines keep their endings, new ones take that of the line they replace or follow.
fn change(
    id: &str,
    path: &str,
    endings: &[&str],
    at: usize,
    written: &str,
    tool: usize,
) -> (Value, String) {
    let new = [format!("new {at}"), "more".to_owned()];
    let mut lines: Vec<(String, &str)> = (0..)
        .map(|it| format!("line {it}"))
        .zip(endings.iter().copied())
        .collect();
    let ending = lines[at].1;
    lines.splice(at..=at, new.clone().map(|line| (line, ending)));
    let expected: String = lines
        .iter()
        .flat_map(|(line, ending)| [line.as_str(), ending])
        .collect();
    let (before, after) = (at - 1, at + 1);
    let around =
        |middle: &str| format!("line {before}{written}{middle}{written}line {after}{written}");
    let call = if tool == 0 {
        let edit = json!({
            "old_text": around(&format!("line {at}")),
            "new_text": around(&new.join(written)),
        });
        call(id, "edit_file", json!({ "path": path, "edits": [edit] }))
    } else {
        let content: String = lines
            .iter()
            .flat_map(|(line, _)| [line.as_str(), "\n"])
            .collect();
        call(
            id,
            "write_file",
            json!({ "path": path, "content": content }),
        )
    };
    (call, expected)
}

#[test]
fn each_line_keeps_its_ending() {
    let mut numbers = Numbers(7);
    let (mut files, mut calls, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..300 {
        let kinds: &[&str] = match number % 4 {
            0 => &["\n"],
            1 => &["\r\n"],
            _ => &["\n", "\r\n"],
        };
        let endings: Vec<&str> = (0..8).map(|_| kinds[numbers.below(kinds.len())]).collect();
        let written = ["\n", "\r\n"][numbers.below(2)];
        let name = format!("{number}.txt");
        let at = 1 + numbers.below(6);
        let (call, after) = change(
            &format!("c{number}"),
            &name,
            &endings,
            at,
            written,
            number / 4 % 2,
        );
        files.push((name, file(&endings)));
        calls.push(call);
        expected.push(after);
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.clone(), text.as_str()))
        .collect();
    let (world, results) = results(&files, calls);
    let mut wrong = Vec::new();
    for ((result, expected), (name, before)) in results.iter().zip(&expected).zip(&files) {
        if world.read(name) != *expected {
            wrong.push(format!(
                "{before:?} became {:?}, not {expected:?}: {result}",
                world.read(name)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

/// Makes these calls in one turn in mode `edit`, each on its own file, and returns their results.
fn results(texts: &[(String, &str)], calls: Vec<Value>) -> (World, Vec<String>) {
    let world = World::new(json!([
        texts
            .iter()
            .enumerate()
            .map(|(number, (name, _))| call(&format!("r{number}"), "read_file", json!({ "path": name })))
            .collect::<Vec<_>>(),
        calls,
        [{ "text": "done" }],
    ]));
    for (name, text) in texts {
        world.write(name, text);
    }
    let mut client = world.client();
    let session = client.session(&world);
    let mode = json!({ "sessionId": session, "modeId": "edit" });
    client.call("session/set_mode", mode);
    let id = client.prompt(&session, "change them");
    client.answer(id);
    let last = world.rehearsal().requests()[2].clone();
    let results = last["messages"].as_array().unwrap().iter();
    let of_calls = |message: &&Value| {
        let id = message["tool_call_id"].as_str();
        id.is_some_and(|id| id.starts_with('c'))
    };
    let results = results.filter(of_calls);
    let results = results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    (world, results)
}
