//! The end of a turn: new problems since the prompt are fixed, returned to the model or named, based on reports of the
//! current text.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::driver::{Client, World, call};

const IMPORT: &str = "import { log } from \"./log\";\n";

/// What a checker reports for a text: line, message.
fn problems(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (row, line) in text.lines().enumerate() {
        if line.contains("log(") && !text.contains("import { log }") {
            found.push((row, "Cannot find name 'log'.".to_owned()));
        }
        if line.contains("+ nil") {
            found.push((row, format!("cannot add nil: {line}")));
        }
        if line.contains("legacy") {
            found.push((row, "legacy is gone".to_owned()));
        }
    }
    found
}

fn at(line: usize) -> Value {
    let at = json!({ "line": line, "character": 0 });
    json!({ "start": at, "end": at })
}

/// An editor's response to a request for settled diagnostics: versions of the documents, and the problems shown.
type Reports = dyn FnMut(i32, Vec<(usize, String)>) -> (Value, Vec<(usize, String)>);

/// An editor with one language server, which shows its documents.
struct Desk<'a> {
    world: &'a World,
    client: Client,
    session: String,
    texts: BTreeMap<String, (i32, String)>,
    reports: Box<Reports>,
    /// The quick fixes requested from the language server.
    fixes: usize,
}

impl<'a> Desk<'a> {
    fn new(world: &'a World, settings: Value) -> Self {
        let mut client = world.stranger();
        let can = json!({ "tandem.diagnostics": true, "tandem.language": ["quick_fixes"] });
        let mut hello = world.handshake(json!({ "experimental": { "tandem": { "_meta": can } } }));
        hello["initializationOptions"] = settings;
        client.shake_hands(hello);
        let session = client.session(world);
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "edit" }),
        );
        Self {
            world,
            client,
            session,
            texts: BTreeMap::new(),
            reports: Box::new(|version, found| (version.into(), found)),
            fixes: 0,
        }
    }

    fn open(&mut self, name: &str, text: &str) {
        self.world.write(name, text);
        let uri = self.world.uri(name);
        self.client.open(&uri, text);
        self.texts.insert(uri, (1, text.to_owned()));
    }

    fn text(&self, name: &str) -> &str {
        &self.texts[&self.world.uri(name)].1
    }

    /// Acts as the editor until the prompt is answered.
    fn ask(&mut self, prompt: &str) {
        let prompt = self.client.prompt(&self.session, prompt);
        self.play(prompt);
    }

    fn play(&mut self, request: i64) -> Value {
        loop {
            let message = self.client.receive().expect("an answer");
            match message["method"].as_str() {
                Some("workspace/applyEdit") => self.apply(&message),
                Some("_tandem/diagnostics") => self.tell(&message),
                Some("_tandem/language") => self.fix(&message),
                None if message["id"] == request => {
                    self.client.seen.push_back(message);
                    return self.client.answer(request);
                }
                _ => self.client.seen.push_back(message),
            }
        }
    }

    fn apply(&mut self, request: &Value) {
        for change in request["params"]["edit"]["documentChanges"]
            .as_array()
            .unwrap()
        {
            let uri = change["textDocument"]["uri"].as_str().unwrap();
            let (version, text) = self.texts.get_mut(uri).unwrap();
            let offset = |at: &Value, text: &str| {
                let line = usize::try_from(at["line"].as_u64().unwrap()).unwrap();
                let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
                before + usize::try_from(at["character"].as_u64().unwrap()).unwrap()
            };
            let mut edits = change["edits"].as_array().unwrap().clone();
            edits.reverse();
            for edit in edits {
                let range =
                    offset(&edit["range"]["start"], text)..offset(&edit["range"]["end"], text);
                text.replace_range(range, edit["newText"].as_str().unwrap());
            }
            *version += 1;
            let document = json!({ "uri": uri, "version": version });
            let changes = json!([{ "text": text }]);
            self.client.notify(
                "textDocument/didChange",
                json!({ "textDocument": document, "contentChanges": changes }),
            );
        }
        self.client.respond(request, json!({ "applied": true }));
    }

    fn tell(&mut self, request: &Value) {
        let mut documents = Vec::new();
        for uri in request["params"]["uris"].as_array().unwrap() {
            let Some((version, text)) = self.texts.get(uri.as_str().unwrap()) else {
                continue;
            };
            let (mut told, mut found) = (json!(version), problems(text));
            if request["params"]["settled"] == true {
                (told, found) = (self.reports)(*version, found);
            }
            let diagnostics: Vec<_> = found
                .iter()
                .map(|(line, message)| {
                    json!({ "range": at(*line), "severity": 1, "message": message, "source": "ts" })
                })
                .collect();
            documents.push(json!({ "uri": uri, "version": told, "diagnostics": diagnostics }));
        }
        self.client
            .respond(request, json!({ "documents": documents }));
    }

    /// Prefers to import a missing name, and to delete the line of a type error.
    fn fix(&mut self, request: &Value) {
        let params = &request["params"];
        assert_eq!(params["preferred"], true, "{request}");
        self.fixes += 1;
        let uri = params["uri"].as_str().unwrap();
        let line = usize::try_from(params["position"]["line"].as_u64().unwrap()).unwrap();
        let found = problems(&self.texts[uri].1);
        let problem = found.iter().find(|(row, _)| *row == line);
        let edit = problem.map(|(_, message)| {
            if message.contains("Cannot find") {
                json!({ "range": at(0), "newText": IMPORT })
            } else {
                let next = json!({ "line": line + 1, "character": 0 });
                json!({ "range": { "start": at(line)["start"], "end": next }, "newText": "" })
            }
        });
        let changes = edit.map(|edit| json!({ "changes": { uri: [edit] } }));
        self.client.respond(request, changes.into());
    }

    /// How the turn ended, for machines and for people.
    fn end(&mut self) -> Option<(Value, String)> {
        let is_end =
            |message: &Value| message["params"]["update"]["_meta"]["tandem/finish"].is_object();
        let index = self.client.seen.iter().position(is_end)?;
        let message = self.client.seen.remove(index).unwrap();
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str().unwrap().trim();
        Some((update["_meta"]["tandem/finish"].clone(), text.to_owned()))
    }
}

fn ended(new: usize, fixed: usize, files: usize, unknown: usize) -> Value {
    json!({ "new": new, "fixed": fixed, "files": files, "unknown": unknown })
}

fn edit(old: &str, new: &str) -> Value {
    let edits = json!([{ "old_text": old, "new_text": new }]);
    json!([call(
        "c1",
        "edit_file",
        json!({ "path": "a.ts", "edits": edits })
    )])
}

/// The last message in the model's n-th request.
fn read(world: &World, request: usize) -> String {
    let requests = world.rehearsal().requests();
    let messages = requests[request]["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].to_string()
}

#[test]
fn a_turn_ends_without_new_problems() {
    let world = World::new(json!([
        edit("x = 1", "log(1);\ny = 1 + nil;"),
        [{ "text": "Done." }],
        edit("1 + nil", "2"),
        [{ "text": "Now it is." }],
    ]));
    let mut desk = Desk::new(&world, json!({}));
    let before = "legacy();\nx = 1\n";
    desk.open("a.ts", before);
    desk.open("other.ts", "legacy();\n");
    desk.ask("change it");

    assert_eq!(
        desk.text("a.ts"),
        format!("{IMPORT}legacy();\nlog(1);\ny = 2;\n")
    );
    assert_eq!(
        world.rehearsal().requests().len(),
        4,
        "the import needs no model"
    );
    let returned = read(&world, 2);
    assert_eq!(returned.matches("cannot add nil").count(), 1, "{returned}");
    assert!(returned.contains("a.ts:4: error"), "{returned}");
    assert!(returned.contains("fixed this already"), "{returned}");
    for other in ["legacy is gone", "Cannot find name"] {
        assert!(!returned.contains(other), "{returned}");
    }
    let (counts, line) = desk.end().unwrap();
    assert_eq!(counts, ended(0, 1, 1, 0));
    assert_eq!(line, "1 import fixed by ts");
    assert_eq!(desk.end(), None, "said once");
    let session = desk.session.clone();
    desk.client
        .call("session/close", json!({ "sessionId": session }));
    desk.client.seen.clear();
    let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    desk.client.call("session/load", params);
    let place = |kind: &str| {
        let of = |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
        desk.client.seen.iter().rposition(of).unwrap()
    };
    assert!(place("tool_call_update") < place("agent_message_chunk"));
    assert_eq!(
        desk.end().unwrap(),
        (counts, line),
        "a loaded session shows it again"
    );
    assert!(
        world
            .run(&["sessions", "export", &session])
            .stdout
            .trim_end()
            .ends_with("1 import fixed by ts")
    );

    let undo = json!({ "sessionId": desk.session, "action": "undo" });
    let undo = desk.client.ask("_tandem/review", undo);
    let undone = desk.play(undo);
    assert_eq!(desk.text("a.ts"), before, "{undone}");
}

#[test]
fn a_problem_goes_back_once_and_at_most_twice_in_all() {
    let nil = |number: usize| format!("y = {number} + nil");
    let world = World::new(json!([
        edit("x = 1", &nil(1)),
        [{ "text": "Done." }],
        [{ "text": "I leave it." }],
        edit(&nil(1), &nil(2)),
        [{ "text": "Done." }],
        edit(&nil(2), &nil(3)),
        [{ "text": "Done." }],
        edit(&nil(3), &nil(4)),
        [{ "text": "Done." }],
    ]));
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", "x = 1\n");
    desk.ask("change it");
    assert_eq!(world.rehearsal().requests().len(), 3);
    assert_eq!(desk.end().unwrap().0, ended(1, 0, 1, 0));

    desk.ask("change it again");
    assert_eq!(world.rehearsal().requests().len(), 9);
    let (counts, line) = desk.end().unwrap();
    assert_eq!(counts, ended(1, 0, 1, 0));
    assert_eq!(line, "1 new problem in 1 file");
}

#[test]
fn a_model_that_asks_a_question_is_not_told_to_continue() {
    let world = World::new(json!([edit("x = 1", "x = 1 + nil"), [{ "text": "Is that right?" }]]));
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", "x = 1\n");
    desk.ask("change it");
    assert_eq!(world.rehearsal().requests().len(), 2);
    assert_eq!(desk.end().unwrap().0, ended(1, 0, 1, 0));
}

#[test]
fn fixes_need_approval_where_edits_do() {
    let world =
        World::new(json!([edit("x = 1", "log(1);"), [{ "text": "Done." }], [{ "text": "Fine." }]]));
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", "x = 1\n");
    let rule = json!({ "sessionId": desk.session, "modeId": "ask" });
    desk.client.call("session/set_mode", rule);
    let prompt = desk.client.prompt(&desk.session, "change it");
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let message = desk.client.receive().unwrap();
        match message["method"].as_str() {
            Some("session/request_permission") => {
                asked.push(
                    message["params"]["toolCall"]["title"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
                let option = if asked.len() == 1 {
                    "allow_once"
                } else {
                    "reject_once"
                };
                crate::driver::choose(&mut desk.client, &message, option);
            }
            Some("workspace/applyEdit") => desk.apply(&message),
            Some("_tandem/diagnostics") => desk.tell(&message),
            Some("_tandem/language") => desk.fix(&message),
            _ => desk.client.seen.push_back(message),
        }
    }
    desk.play(prompt);
    assert_eq!(asked, ["Edit a.ts", "Apply the quick fix in a.ts"]);
    assert_eq!(desk.text("a.ts"), "log(1);\n");
    assert!(
        read(&world, 2).contains("Cannot find name"),
        "it goes to the model instead"
    );
}

#[test]
fn a_report_of_an_older_text_is_never_believed() {
    const PLAYS: usize = 200;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % 1_000_003).unwrap() % below
    };
    // For each run: whether the edit introduces a problem, and how the editor reports it.
    let plays: Vec<(bool, usize)> = (0..PLAYS).map(|_| (random(2) == 0, random(5))).collect();
    let line = |number: usize| match number.checked_sub(1) {
        Some(play) if plays[play].0 => format!("x{number} = 1 + nil"),
        _ => format!("x{number} = 1"),
    };
    let mut script = Vec::new();
    for (play, (is_bad, report)) in plays.iter().enumerate() {
        script.push(edit(&line(play), &line(play + 1)));
        script.push(json!([{ "text": "Done." }]));
        if *is_bad && *report < 2 {
            script.push(json!([{ "text": "I leave it." }]));
        }
    }
    let expected = script.len();
    let world = World::new(script.into());
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", &format!("{}\n", line(0)));
    for (play, (is_bad, report)) in plays.iter().copied().enumerate() {
        desk.reports = Box::new(move |version, found| {
            let ghost = vec![(0, "ghost".to_owned())];
            match report {
                0 | 1 => (version.into(), found),
                2 => (json!(version - 1), ghost),
                3 => (json!(version + 1), ghost),
                _ => (Value::Null, ghost),
            }
        });
        desk.ask("change it");
        let end = desk.end();
        let expected = match (report < 2, is_bad) {
            (true, true) => Some((ended(1, 0, 1, 0), "1 new problem in 1 file".to_owned())),
            (true, false) => None,
            (false, _) => Some((ended(0, 0, 0, 1), "problems unknown in 1 file".to_owned())),
        };
        assert_eq!(end, expected, "play {play}");
    }
    let requests = world.rehearsal().requests();
    assert_eq!(requests.len(), expected);
    assert!(!requests.last().unwrap().to_string().contains("ghost"));
}

#[test]
fn nothing_is_asked_or_said_where_nobody_can_tell_or_it_is_off() {
    let script = || json!([edit("x = 1", "x = 1 + nil"), [{ "text": "Done." }]]);
    let world = World::new(script());
    let mut desk = Desk::new(&world, json!({ "finish": { "diagnostics": false } }));
    desk.open("a.ts", "x = 1\n");
    desk.ask("change it");
    assert_eq!(desk.end(), None);

    let world = World::new(json!([
        edit("x = 1", "x = 1 + nil"),
        [{ "text": "Done." }],
        [{ "text": "I leave it." }],
        edit("x = 1", "y = 1"),
        [{ "text": "Done." }],
    ]));
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", "x = 1\n");
    desk.ask("change it");
    assert!(desk.end().is_some());
    let off = json!({ "settings": { "finish": { "diagnostics": false } } });
    desk.client.notify("workspace/didChangeConfiguration", off);
    desk.ask("change it again");
    assert_eq!(desk.end(), None, "a session applies it immediately");

    let world = World::new(script());
    world.write("a.ts", "x = 1\n");
    let mut client = world.client();
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "edit" }),
    );
    let prompt = client.prompt(&session, "change it");
    client.answer(prompt);
    assert_eq!(client.text(), "Done.");

    let world = World::new(
        json!([edit("x = 1", "log(1);"), [{ "text": "Done." }], [{ "text": "So be it." }]]),
    );
    let mut desk = Desk::new(&world, json!({ "finish": { "quick-fixes": "off" } }));
    desk.open("a.ts", "x = 1\n");
    desk.ask("change it");
    assert_eq!((desk.fixes, desk.end().unwrap().0), (0, ended(1, 0, 1, 0)));
}

#[test]
fn a_cancel_during_the_checks_cancels_the_turn() {
    let world = World::new(json!([edit("x = 1", "x = 2"), [{ "text": "Done." }]]));
    let mut desk = Desk::new(&world, json!({}));
    desk.open("a.ts", "x = 1\n");
    let prompt = desk.client.prompt(&desk.session, "change it");
    let mut settled = 0;
    while settled < 2 {
        let message = desk.client.receive().unwrap();
        match message["method"].as_str() {
            Some("workspace/applyEdit") => desk.apply(&message),
            Some("_tandem/diagnostics") => {
                settled += usize::from(message["params"]["settled"] == true);
                if settled < 2 {
                    desk.tell(&message);
                }
            }
            _ => desk.client.seen.push_back(message),
        }
    }
    let session = json!({ "sessionId": desk.session });
    desk.client.notify("session/cancel", session);
    let answer = desk.client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}

#[test]
fn a_turn_that_changes_nothing_ends_as_it_is() {
    let world = World::new(json!([[{ "text": "It is fine." }]]));
    let mut desk = Desk::new(&world, json!({ "finish": { "command": "false" } }));
    desk.open("a.ts", "x = 1 + nil\n");
    desk.ask("is it fine?");
    assert_eq!(desk.end(), None);
    assert_eq!(world.rehearsal().requests().len(), 1);
}
