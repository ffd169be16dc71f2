//! Requests of every method in any order, valid or not, without waiting for answers, while the model answers and fails as
//! it likes and the editor refuses as it likes: each request is answered once, as the protocol says, and nothing panics.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::driver::{Client, World, call, play_random};

/// The number of plays; set `TANDEM_DISORDER` for more.
const PLAYS: u32 = 6;

/// The methods of requests, besides prompts.
const REQUESTS: &[&str] = &[
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
    "session/list",
    "session/close",
    "session/set_mode",
    "session/set_config_option",
    "_tandem/session/steer",
    "_tandem/turn/withdraw",
    "_tandem/complete",
    "_tandem/review",
    "_tandem/review",
    "_tandem/origins",
    "_tandem/jobs",
    "_tandem/jobs/output",
    "_tandem/jobs/stop",
    "_tandem/jobs/background",
    "_tandem/inline",
    "_tandem/inline/keep",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/completion",
    "textDocument/definition",
    "textDocument/documentLink",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/hover",
    "textDocument/inlineCompletion",
    "workspace/executeCommand",
    "nonsense",
];

const NOTIFICATIONS: &[&str] = &[
    "session/cancel",
    "$/cancelRequest",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didSave",
    "textDocument/didClose",
    "workspace/didRenameFiles",
    "_tandem/saved",
    "_tandem/didFocus",
    "_tandem/didStartTyping",
    "nonsense",
];

const NAMES: &[&str] = &["a", "b", "d/c", "none", "../outside"];

const WORDS: &[&str] = &[
    "change it",
    "/undo",
    "/redo",
    "/rewind 1",
    "/compact",
    "/status",
    "/try change it",
    "/keep",
    "/nonsense",
    "see @a and @d/c:1-2",
    "",
];

/// Something that a client does.
#[derive(Debug, Clone)]
enum Step {
    Request(&'static str, Chosen),
    Notification(&'static str, Chosen),
    /// It reads this many messages, and answers requests among them with this choice.
    Reads(usize, usize),
}

/// What the parameters are made of.
#[derive(Debug, Clone)]
struct Chosen {
    session: usize,
    name: &'static str,
    words: &'static str,
    action: &'static str,
    number: u64,
    /// The parameter that is missing or of another type, if there is one at that place.
    wrong: usize,
}

fn chosen() -> impl Strategy<Value = Chosen> {
    let action = prop::sample::select(vec!["list", "keep", "reject", "undo", "redo", "restore"]);
    let name = prop::sample::select(NAMES);
    let words = prop::sample::select(WORDS);
    (0..4_usize, name, words, action, 0..4_u64, 0..200_usize).prop_map(
        |(session, name, words, action, number, wrong)| Chosen {
            session,
            name,
            words,
            action,
            number,
            wrong,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let request = (prop::sample::select(REQUESTS), chosen());
    let notification = (prop::sample::select(NOTIFICATIONS), chosen());
    let step = prop_oneof![
        6 => chosen().prop_map(|chosen| Step::Request("session/prompt", chosen)),
        6 => request.prop_map(|(method, chosen)| Step::Request(method, chosen)),
        2 => notification.prop_map(|(method, chosen)| Step::Notification(method, chosen)),
        6 => (1..40_usize, 0..8_usize).prop_map(|(count, choice)| Step::Reads(count, choice)),
    ];
    vec(step, 40..120)
}

/// What the model answers, request after request.
fn script() -> impl Strategy<Value = Value> {
    let line = |n: usize| ["one", "two", "three"][n];
    let command = prop::sample::select(vec!["echo more >> b", "rm -f a", "false", "cat b"]);
    let reply = prop_oneof![
        3 => Just(json!([{ "text": "Done." }])),
        1 => Just(json!([{ "reasoning": "Hm." }, { "text": "<tool_call>" }])),
        1 => Just(json!([{ "text": "Let me" }, { "cut": true }])),
        1 => prop::sample::select(vec![400, 401, 429, 500]).prop_map(|status| json!([{ "status": status }])),
        1 => Just(json!([{ "text": "A part" }, { "finish": "length" }])),
        3 => (prop::sample::select(NAMES), 0..3_usize).prop_map(move |(name, n)| {
            let edits = json!([{ "old_text": line(n), "new_text": format!("{} more", line(n)) }]);
            json!([call("c", "edit_file", json!({ "path": name, "edits": edits }))])
        }),
        2 => (command, any::<bool>()).prop_map(|(command, background)| {
            json!([call("c", "run_command", json!({ "command": command, "background": background }))])
        }),
        1 => prop::sample::select(NAMES).prop_map(|name| {
            json!([call("a", "read_file", json!({ "path": name })), call("a", "grep", json!({ "pattern": "o" }))])
        }),
        1 => Just(json!([call("q", "ask_user", json!({ "question": "Which?", "options": ["a", "b"] }))])),
    ];
    vec(reply, 60).prop_map(Value::from)
}

struct Player {
    /// Dropped before the world it lives in.
    client: Client,
    world: World,
    sessions: Vec<String>,
}

impl Player {
    fn new(script: Value) -> Self {
        let world = World::new(script);
        for name in ["a", "b", "d/c"] {
            world.write(name, "one\ntwo\nthree\n");
        }
        let mut client = world.client();
        let sessions = vec![client.session(&world)];
        Self {
            client,
            world,
            sessions,
        }
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Request(method, chosen) => {
                let params = self.params(chosen);
                self.client.ask(method, params);
            }
            Step::Notification(method, chosen) => {
                let params = self.params(chosen);
                self.client.notify(method, params);
            }
            Step::Reads(count, choice) => {
                for _ in 0..*count {
                    if !self.client.waits() {
                        return;
                    }
                    self.read(*choice);
                }
            }
        }
    }

    /// The members that the parameters of any method have, so that each method finds its own.
    fn params(&self, chosen: &Chosen) -> Value {
        let uri = self.world.uri(chosen.name);
        let at = json!({ "line": chosen.number, "character": 1 });
        let text = json!({ "type": "text", "text": chosen.words });
        let mode = ["ask", "edit", "auto", "none"][chosen.session];
        let mut params = json!({
            "sessionId": self.sessions.iter().rev().nth(chosen.session).or(self.sessions.last()),
            "textDocument": { "uri": uri, "version": chosen.number, "languageId": "text", "text": "one\ntwo\nthree\n" },
            "prompt": [text],
            "action": chosen.action,
            "cwd": self.world.path(),
            "modeId": mode,
            "contentChanges": [{ "text": format!("one\ntwo\nthree\n{}\n", chosen.words) }],
            "position": at,
            "range": { "start": at, "end": at },
            "context": { "diagnostics": [], "triggerKind": 1 },
            "command": "tandem.undo",
            "id": chosen.number,
            "configId": "copy",
            "type": "boolean",
            "value": true,
            "text": chosen.words,
            "offset": 0,
            "promptId": "p",
            "toolCallId": "c",
            "instruction": "Change it.",
            "before": "one\n",
            "after": "two\n",
            "uris": [uri],
            "files": [{ "oldUri": uri, "newUri": self.world.uri("moved") }],
            "capabilities": {},
            "mcpServers": [],
        });
        let fields = params.as_object_mut().unwrap();
        if chosen.number > 0 {
            fields.insert("turn".to_owned(), chosen.number.into());
            let path = self.world.path().join(chosen.name);
            fields.insert("path".to_owned(), json!(path));
        }
        if let Some(field) = fields.values_mut().nth(chosen.wrong) {
            *field = json!([null]);
        }
        params
    }

    /// Reads a message, and answers it if it is a request.
    fn read(&mut self, choice: usize) {
        let message = self.client.receive().expect("the server goes on");
        let said = message.to_string();
        assert!(!said.contains("internal error"), "{said}");
        if message.get("method").is_none() {
            let made = message["result"]["sessionId"].as_str();
            self.sessions.extend(made.map(str::to_owned));
            return self.client.close(&message);
        }
        if message.get("id").is_none() {
            return;
        }
        let options = message["params"]["options"].as_array();
        let result = match options.map_or(&[][..], Vec::as_slice) {
            [] => [json!({ "applied": false }), json!(null), json!({})][choice % 3].clone(),
            _ if choice == 0 => json!({ "outcome": { "outcome": "cancelled" } }),
            options => {
                let option = &options[choice % options.len()]["optionId"];
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            }
        };
        self.client.respond(&message, result);
    }

    /// Every turn is cancelled, and whatever was asked is answered.
    fn ends(&mut self) {
        for session in self.sessions.clone() {
            self.client
                .notify("session/cancel", json!({ "sessionId": session }));
        }
        while self.client.waits() {
            self.read(1);
        }
    }
}

#[test]
fn every_request_is_answered_whatever_the_order() {
    let plays = (script(), steps());
    play_random(&plays, PLAYS, "TANDEM_DISORDER", |(script, steps)| {
        let mut player = Player::new(script);
        for step in &steps {
            player.play(step);
        }
        player.ends();
    });
}
