//! Answers that loop: every opening of a call or of what is in one, over and over. They may be anything, but they end.

use super::*;
use crate::text::marks::{MARKS, STEPS};

/// A small stack, and more than it has room for.
const STACK: usize = 1 << 18;
const REPEATS: usize = 400;

/// What begins or goes on in the forms without marks, in JSON and in arguments.
const OPENINGS: [&str; 45] = [
    "</parameter>",
    "name: ",
    "tool => \"",
    "function<|tool_sep|>",
    "print(",
    "read_file(",
    "read_file ",
    "read_file\n",
    "a<|tool_call:name|>",
    "call:",
    "call:read_file{",
    "functools[",
    "Action: ",
    "Action: read_file\nAction Input: ",
    ">>>",
    "to=read_file ",
    "assistant",
    "[",
    "{",
    "(",
    "{{",
    "{}",
    "[]",
    "\"\"",
    "\"{",
    "\\\"",
    "{\"a\":",
    "[{\"a\":",
    "{\"name\": \"read_file\", \"arguments\": ",
    "{\"tool_calls\": [",
    "a=",
    "--a ",
    "\"\"\"",
    "/*",
    "<read_file>",
    "<path>",
    "<args><file>",
    "<param name=\"a\">",
    "a</arg_key>",
    "</read_file>",
    "```json\n",
    "> ",
    "*** Begin Patch\n",
    "<|",
    "</arg_key>",
];

fn openings() -> Vec<String> {
    let marks = MARKS.iter().map(|(begin, _, _)| *begin);
    let names = [
        ("*", "tool_call"),
        ("^", "tool_call_end"),
        ("+", "function"),
        ("?", "think"),
        ("%", "end_think"),
        ("$", "answer"),
    ];
    let filled = |mark: &str| {
        let places = names.iter();
        places.fold(mark.to_owned(), |mark, (place, name)| {
            mark.replace(place, name)
        })
    };
    let marks = marks.filter(|mark| !mark.is_empty()).map(filled);
    let mut all: Vec<String> = marks.chain(OPENINGS.map(str::to_owned)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Reads a text in each way in which a call is read.
fn read(text: &str) {
    let calls = TextCalls::new(all(Editing::Replacements));
    let _ = calls.arguments("read_file", text);
    let _ = packed(text, &|name| name == "read_file");
    let _ = repair::object(text, true);
}

/// The same for all of an answer.
fn read_all(text: &str) {
    read(text);
    let mut calls = TextCalls::new(all(Editing::Replacements));
    calls.push(text);
    let _ = calls.settle(&|_| false);
}

#[test]
fn answers_that_repeat_an_opening_end() {
    for opening in openings() {
        // The search for a mark takes long where there are many.
        let read = if OPENINGS.contains(&&*opening) {
            read_all
        } else {
            read
        };
        let repeated = opening.repeat(REPEATS);
        let reading = move || {
            for before in ["<tool_call>", "["] {
                read(&format!("{before}{repeated}"));
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        let ended = thread.spawn(reading).unwrap().join();
        assert!(ended.is_ok(), "{opening}");
    }
}

/// Twice as much text takes about twice as many comparisons with marks, in every form.
#[test]
fn openings_that_repeat_are_read_in_linear_time() {
    const FEW: usize = 20;
    let mut slow = Vec::new();
    for opening in openings() {
        let steps = |count| {
            STEPS.set(0);
            read_all(&opening.repeat(count));
            STEPS.get()
        };
        let (few, many) = (steps(FEW), steps(2 * FEW));
        if many > few * 5 / 2 {
            slow.push(format!("{opening}: {few}, {many}"));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
