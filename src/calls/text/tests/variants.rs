//! Generated variants of calls in text: every form in the table of marks × the place where it stands × the language
//! beside it × what the call does. Each place has one rule. A new row of the table is covered without a case of its own.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::calls::text::{Held, Quotation, TextCalls};
use crate::text::marks::{Kind, MARKS, Mark};
use crate::tools::{Editing, all};

/// What must hold for a call in a place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// It runs.
    Runs,
    /// It runs if it only reads or a person approves it.
    Asks,
    /// It runs under the same condition, or is text.
    Beside,
    /// It is text.
    Never,
}

use Rule::{Asks, Beside, Never, Runs};

/// Pseudo-random choices, the same in every run.
struct Dice(u64);

impl Dice {
    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        // Xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let sides = u64::try_from(list.len()).unwrap();
        list[usize::try_from(self.0 % sides).unwrap()].clone()
    }
}

/// Text before and after a call, in many languages: an announcement, an explanation.
const SENTENCES: [(&str, &str); 10] = [
    ("Now I do it.", "That is how it works."),
    ("A call looks like this:", "It takes two arguments."),
    ("So ruft man es auf:", "Mehr braucht es nicht."),
    ("これから実行します。", "以上です。"),
    ("Zapisuje się to w ten sposób:", "To wszystko."),
    ("Сейчас создам файл.", "Вот и всё."),
    ("هكذا يكتب:", "هذا كل شيء."),
    ("इसे ऐसे लिखते हैं:", "बस इतना ही।"),
    ("이렇게 씁니다:", "이상입니다."),
    ("ตัวอย่าง:", "จบแล้ว"),
];

/// Names and namespaces inserted into the table's marks.
const NAMES: [&str; 4] = ["tool_use", "toolcall", "TOOLCALL", "callcode"];
const SPACES: [&str; 5] = ["", "", "minimax:", "｜DSML｜", "seed:"];

/// A mark as a model writes it, with a name and a namespace filled in.
fn written(mark: &str, name: &str, space: &str) -> String {
    let mark = mark
        .replace("</*", &format!("</{name}"))
        .replace("[^", &format!("[/{name}"))
        .replace('^', &format!("{name}_end"))
        .replace('*', name)
        .replace('+', "function");
    let open = if mark.starts_with("</") { "</" } else { "<" };
    match mark.strip_prefix(open) {
        Some(tag) if tag.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            format!("{open}{space}{tag}")
        }
        _ => mark,
    }
}

/// Forms without marks: the answer must contain nothing else.
const PLAIN: [&str; 7] = [
    "$json",
    "{\"toolName\": \"$name\", \"inputs\": $inner}",
    "call:default_api:$name$inner",
    "[$json]",
    "{\"tool_calls\": [$json]}",
    "[$name($keywords)]",
    "$name($keywords)",
];
/// Forms of families that differ from the table in more than one way.
const SPECIAL: [&str; 18] = [
    "Action: $name\nAction Input: $inner",
    "<$name>\n$elements\n</$name>",
    "<tool_call>$name\n$pairs\n</tool_call>",
    "<tool_call>\n<function $name>\n$elements\n</function>\n</tool_call>",
    "<tool_call>\n<function>$name</function>\n$inner\n</tool_call>",
    "<tool_call:opensource>$name<tool_sep:opensource>$inner<end_of_tool_call:opensource>",
    "[TOOL_CALLS]$name[ARGS]$inner",
    "[TOOL_CALL]\n{tool => \"$name\", args => {\n$flags\n}}\n[/TOOL_CALL]",
    "<tool_call>\nname: $name\narguments: $inner\n</tool_call>",
    "<tool_call>\n$name\n$lines\n</tool_call>",
    "<tool_call>\n<tool_name>$name</tool_name>\n$elements\n</tool_call>",
    "<tool_call>$name($inner)</tool_call>",
    "<tool_call>{\"tool\": \"$name\", $members}</tool_call>",
    "<tool_call>\n<$name $attributes/>\n</tool_call>",
    "<function_calls>\n<invoke name=\"$name\" $attributes/>\n</function_calls>",
    "<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$inner<|call|>",
    "<|tool_call_begin|>functions.$name:0<|tool_call_argument_begin|>$inner<|tool_call_end|>",
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$inner\n```<｜tool▁call▁end｜>",
];

/// A call in the plain forms, then in all forms with marks.
fn forms(tool: &str, arguments: &Value, dice: &mut Dice) -> Vec<String> {
    let json = json!({ "name": tool, "arguments": arguments }).to_string();
    let each = |form: &str, between: &str| {
        let filled = |(key, value): (&String, &Value)| {
            form.replace("$key", key)
                .replace("$quoted", &value.to_string())
                .replace("$value", value.as_str().unwrap())
        };
        let members = arguments.as_object().unwrap().iter();
        members.map(filled).collect::<Vec<_>>().join(between)
    };
    let filled = |form: &str| {
        form.replace("$name", tool)
            .replace("$json", &json)
            .replace("$inner", &arguments.to_string())
            .replace("$keywords", &each("$key=$quoted", ", "))
            .replace("$flags", &each("--$key $quoted", "\n"))
            .replace("$lines", &each("$key: $quoted", "\n"))
            .replace("$members", &each("\"$key\": $quoted", ", "))
            .replace("$attributes", &each("$key=$quoted", " "))
            .replace("$elements", &each("<$key>$value</$key>", "\n"))
            .replace(
                "$pairs",
                &each("<arg_key>$key</arg_key><arg_value>$value</arg_value>", ""),
            )
    };
    let mut forms: Vec<String> = PLAIN
        .iter()
        .chain(&SPECIAL)
        .map(|form| filled(form))
        .collect();
    let of_kind = |kind: Kind| MARKS.iter().filter(move |row| row.2 == kind);
    for (begin, end, _) in of_kind(Kind::Calls) {
        let (name, space) = (dice.pick(&NAMES), dice.pick(&SPACES));
        // A mark that is a word names a message's sender, so a message has ended before it.
        let before = if begin.starts_with(char::is_alphabetic) {
            end
        } else {
            ""
        };
        let [begin, end] = [begin, end].map(|mark| written(mark, name, space));
        forms.push(format!("{before}{begin}{json}{end}"));
    }
    let is_named = |row: &&Mark| row.0.ends_with('=');
    for (begin, end, _) in of_kind(Kind::Named).filter(is_named) {
        for (key, close, _) in of_kind(Kind::Argument).filter(is_named) {
            let space = dice.pick(&SPACES);
            let [begin, end, key, close] =
                [begin, end, key, close].map(|mark| written(mark, "", space));
            let quote = |mark: &str| if mark.contains(' ') { "\"" } else { "" };
            let (outer, inner) = (quote(&begin), quote(&key));
            let arguments = each(&format!("{key}{inner}$key{inner}>$value{close}"), "\n");
            forms.push(format!("{begin}{outer}{tool}{outer}>\n{arguments}\n{end}"));
        }
    }
    forms
}

/// Places in an answer: the call, its lines quoted with `>` or indented, and the sentences before and after it.
const PLACES: [(&str, Rule); 17] = [
    ("CALL", Runs),
    ("\nCALL\n\n", Runs),
    ("BEFORE\n\nCALL", Asks),
    ("CALL\n\nAFTER", Never),
    ("BEFORE\n\nCALL\n\nAFTER", Never),
    ("BEFORE\n\n```\nCALL\n```", Never),
    ("BEFORE\n\n```xml\nCALL\n```\n\nAFTER", Never),
    ("BEFORE\n\n~~~\nCALL\n~~~\n\nAFTER", Never),
    ("````md\nBEFORE\n```\nCALL\n```\n````", Never),
    ("BEFORE\n\nQUOTED", Never),
    ("BEFORE\n\nINDENTED", Never),
    ("BEFORE\n\n1. CALL", Beside),
    ("BEFORE\n\n- CALL\n- AFTER", Never),
    ("### CALL", Beside),
    ("BEFORE **CALL**", Never),
    ("BEFORE\n\n| call |\n|---|\n| CALL |", Never),
    ("BEFORE `CALL`", Never),
];

/// The prefix of each line of a text that the model has read.
const PREFIXES: [&str; 6] = [
    "     1\t",
    "docs/notes.md:1: ",
    "+",
    "> ",
    "        ",
    "// ",
];

fn lines(text: &str, prefix: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}

/// Contexts in which the model has read a text.
fn carried(text: &str) -> Vec<String> {
    let escaped = Value::from(text).to_string();
    let entities = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('"', "&quot;")
    };
    let in_hex = |escape: &dyn Fn(u32) -> String| -> String {
        let escaped = |c: char| match c {
            '<' | '>' | '"' | '{' | '}' => escape(u32::from(c)),
            other => other.to_string(),
        };
        text.chars().map(escaped).collect()
    };
    let mut all = vec![
        in_hex(&|c| format!("%{c:02X}")),
        in_hex(&|c| format!("\\u{c:04x}")),
        text.to_owned(),
        format!("Look at this:\n\n{text}\n\nWhat does it do?"),
        Value::from(escaped.as_str()).to_string(),
        entities(&escaped),
        escaped,
        entities(text),
        text.replace('\n', "\r\n\t"),
    ];
    all.extend(PREFIXES.map(|prefix| lines(text, prefix)));
    all
}

struct Play {
    dice: Dice,
    played: usize,
    failed: Vec<String>,
}

impl Play {
    /// Streams an answer in pieces, after the model has read a text.
    fn check(&mut self, text: &str, read: &str, rule: Rule) {
        let mut calls = TextCalls::new(all(Editing::Replacements));
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.ceil_char_boundary(self.dice.pick(&[1, 2, 3, 7, 40]));
            let (piece, after) = rest.split_at(end);
            calls.push(piece);
            rest = after;
        }
        let held = calls.settle(&|call| Quotation::of(call).stands_in(read));
        let (runs, asks) = match &held {
            Held::Calls(written) => (true, written.is_beside_prose),
            Held::Text(_) | Held::Unusable(..) => (false, false),
        };
        let follows = match rule {
            Runs => runs && !asks,
            Asks => runs && asks,
            Beside => runs == asks,
            Never => !runs,
        };
        self.played += 1;
        if !follows {
            let read = if read.is_empty() {
                String::new()
            } else {
                format!(" after {read:?}")
            };
            self.failed
                .push(format!("{rule:?}{read}, but {held:?}:\n{text}\n"));
        }
    }
}

#[test]
fn every_form_follows_the_rule_of_its_place() {
    let mut play = Play {
        dice: Dice(27),
        played: 0,
        failed: Vec::new(),
    };
    let calls = |name: &str| {
        [
            ("read_file", json!({ "path": format!("{name}.py") })),
            (
                "write_file",
                json!({ "path": format!("{name}.txt"), "content": format!("{name} 1\nb\n") }),
            ),
            ("run_command", json!({ "command": format!("touch {name}") })),
        ]
    };
    for ((tool, arguments), (_, others)) in calls("owned").into_iter().zip(calls("other")) {
        let forms = forms(tool, &arguments, &mut play.dice);
        let others = self::forms(tool, &others, &mut play.dice);
        for (index, form) in forms.iter().enumerate() {
            for (place, rule) in PLACES {
                let (before, after) = play.dice.pick(&SENTENCES);
                let text = place
                    .replace("BEFORE", before)
                    .replace("AFTER", after)
                    .replace("QUOTED", &lines(form, "> "))
                    .replace("INDENTED", &lines(form, "    "))
                    .replace("CALL", form);
                // JSON after prose may be an example even if it only reads.
                let rule = if index >= PLAIN.len() || rule != Asks {
                    rule
                } else {
                    Beside
                };
                play.check(&text, "", rule);
            }
            for read in carried(form) {
                // The model may repeat it in the marks of another family, after other text.
                let another = play.dice.pick(&forms);
                let said = play.dice.pick(&[form, &another]);
                let before = play.dice.pick(&["", SENTENCES[0].0, SENTENCES[2].0]);
                play.check(&format!("{before}\n{said}"), &read, Never);
            }
            let (read, other) = (play.dice.pick(&carried(form)), play.dice.pick(&others));
            play.check(&other, &read, Runs);
        }
    }
    let Play { played, failed, .. } = play;
    let line = format!(
        "variants of calls in text: {} of {played} hold\n",
        played - failed.len()
    );
    // Bypasses the test harness, which captures the output of passing tests.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
