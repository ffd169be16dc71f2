//! Every provider's row against a server that enforces the rules of the real one: whole sessions, over real HTTP.
//!
//! `rules` is the table. One session is run per row: fresh, a turn with parallel calls, a steering message, a
//! cancelled turn, an interrupted answer, a new process, two other models and back, a summary in the middle of a
//! turn, a process that ends in the middle of one. Nothing is refused, and every rule is proved to refuse a request
//! that breaks it.

mod efforts;
mod pictures;
mod rows;
mod rules;
mod server;
mod voice;
mod wire;

use std::panic::catch_unwind;

use serde_json::{Value, json};
use tandem::server::Transport;

use self::rows::{ROWS, Row};
use self::server::{Act, Memory, Request, Strict};
use self::voice::Said;
use crate::driver::{Client, World, side_by_side};

/// How many sessions run in parallel.
const SIDE_BY_SIDE: usize = 3;

fn say(text: &'static str) -> Act {
    Act::Say(Said {
        text,
        ..Said::default()
    })
}

/// Words, and two parallel calls.
fn look(text: &'static str) -> Act {
    let calls = ["*.rs", "*.md"].map(|pattern| ("glob", json!({ "pattern": pattern })));
    Act::Say(Said {
        text,
        calls: calls.into(),
        pauses: false,
    })
}

/// A session of a world with the strict server.
struct Play {
    /// Dropped before the world, whose runtime it needs to end.
    client: Client,
    world: World,
    strict: Strict,
    session: String,
    rows: Vec<Row>,
    /// The words of both sides.
    words: Vec<&'static str>,
}

fn client(world: &World, strict: &Strict, rows: &[Row], more: &Value) -> Client {
    let mut providers = json!({});
    for (provider, model) in rows {
        providers[*provider]["base-url"] = strict.base_url(provider).into();
        providers[*provider]["models"][*model] = more.clone();
    }
    let mut client = world.stranger_on(Transport::Lsp, &[]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let model = format!("{}/{}", rows[0].0, rows[0].1);
    params["initializationOptions"] = json!({ "model": model, "providers": providers });
    client.shake_hands(params);
    client
}

impl Play {
    fn begin(rows: &[Row]) -> Self {
        Self::begin_with(rows, &json!({}))
    }

    /// The same with these model settings.
    fn begin_with(rows: &[Row], more: &Value) -> Self {
        let world = World::new(json!([]));
        let strict = Strict::of(&world);
        world.write("AGENTS.md", "RULE-ONE: use tabs.");
        world.write("a.rs", "fn a() {}\n");
        world.write("long.rs", &"// line\n".repeat(2000));
        let mut client = client(&world, &strict, rows, more);
        let session = client.session(&world);
        Self {
            client,
            world,
            strict,
            session,
            rows: rows.to_vec(),
            words: Vec::new(),
        }
    }

    /// A prompt, and the model's replies.
    #[track_caller]
    fn turn(&mut self, prompt: &'static str, acts: impl IntoIterator<Item = Act>) {
        let acts: Vec<Act> = acts.into_iter().collect();
        self.words.push(prompt);
        self.words.extend(acts.iter().filter_map(|act| match act {
            Act::Say(said) | Act::Pause(said) => Some(said.text),
            Act::Break(_) | Act::Overflow => None,
        }));
        self.strict.add(acts);
        let id = self.client.prompt(&self.session, prompt);
        self.end(id);
    }

    #[track_caller]
    fn end(&mut self, prompt: i64) {
        let answer = self.client.answer(prompt);
        let refusals = self.strict.refusals();
        assert!(
            answer["result"]["stopReason"] == "end_turn" && refusals.is_empty(),
            "{answer} {refusals:#?}"
        );
    }

    /// A message sent while a call waits for permission.
    #[track_caller]
    fn steered(&mut self) {
        let write = (
            "write_file",
            json!({ "path": "new.txt", "content": "new\n" }),
        );
        let glob = ("glob", json!({ "pattern": "*" }));
        self.strict.add([
            Act::Say(Said {
                text: "Writing.",
                calls: vec![glob, write],
                pauses: false,
            }),
            say("Written."),
        ]);
        let prompt = self.client.prompt(&self.session, "write it");
        let request = self.client.next("session/request_permission");
        let words = json!([{ "type": "text", "text": "only a small one" }]);
        let steered = self.client.ask(
            "_tandem/session/steer",
            json!({ "sessionId": self.session, "prompt": words }),
        );
        // Answered once the session has accepted the preceding message; a permission overtakes both.
        self.client.call(
            "_tandem/review",
            json!({ "sessionId": self.session, "action": "list" }),
        );
        self.client.respond(
            &request,
            json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
        );
        self.client.answer(steered);
        self.end(prompt);
        self.words
            .extend(["write it", "Writing.", "only a small one", "Written."]);
    }

    /// Two calls, one of which waits for permission; returns the prompt and the request.
    #[track_caller]
    fn waiting(&mut self) -> (i64, Value) {
        let write = (
            "write_file",
            json!({ "path": "other.txt", "content": "other\n" }),
        );
        let glob = ("glob", json!({ "pattern": "*" }));
        self.strict.add([Act::Say(Said {
            text: "Writing another.",
            calls: vec![glob, write],
            pauses: false,
        })]);
        let prompt = self.client.prompt(&self.session, "write another");
        self.words.extend(["write another", "Writing another."]);
        (prompt, self.client.next("session/request_permission"))
    }

    /// A turn that is cancelled while a call waits for permission.
    #[track_caller]
    fn cancelled(&mut self) {
        let (prompt, request) = self.waiting();
        self.client
            .notify("session/cancel", json!({ "sessionId": self.session }));
        self.client
            .respond(&request, json!({ "outcome": { "outcome": "cancelled" } }));
        assert_eq!(
            self.client.answer(prompt)["result"]["stopReason"],
            "cancelled"
        );
    }

    /// A turn whose process ends while a call waits for permission.
    #[track_caller]
    fn interrupted(&mut self) {
        self.waiting();
        self.restart();
    }

    /// An answer that ends in the middle of a call.
    #[track_caller]
    fn broken_off(&mut self) {
        let Act::Say(said) = look("Broken off.") else {
            unreachable!("it looks")
        };
        self.strict.add([Act::Break(said)]);
        let prompt = self.client.prompt(&self.session, "go on");
        let answer = self.client.answer(prompt);
        assert!(
            answer["error"].is_object() && self.strict.refusals().is_empty(),
            "{answer}"
        );
        self.words.push("go on");
    }

    #[track_caller]
    fn switch(&mut self, (provider, model): Row) {
        self.set("model", &format!("{provider}/{model}"));
    }

    #[track_caller]
    fn set(&mut self, option: &str, value: &str) -> Value {
        let params = json!({ "sessionId": self.session, "configId": option, "value": value });
        let answer = self.client.call("session/set_config_option", params);
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }

    /// The session continues in another process.
    fn restart(&mut self) {
        let next = client(&self.world, &self.strict, &self.rows, &json!({}));
        // Once the first process has ended, the session is saved and its journal unlocked.
        drop(std::mem::replace(&mut self.client, next));
        let params =
            json!({ "sessionId": self.session, "cwd": self.world.path(), "mcpServers": [] });
        let resumed = self.client.call("session/resume", params);
        assert!(resumed["error"].is_null(), "{resumed}");
    }

    /// The last request.
    fn last(&self) -> Request {
        self.strict.requests().pop().unwrap().0
    }

    /// The last request contains all words so far.
    #[track_caller]
    fn check_words(&self) {
        let last = self.last();
        for words in &self.words[..self.words.len() - 1] {
            assert!(
                last.raw.contains(words),
                "{}/{}: {words} is gone: {}",
                last.provider,
                last.model(),
                last.raw
            );
        }
    }
}

/// A session that begins with a row and switches to two others; returns its requests, with the server's state at each.
fn whole_session(index: usize) -> Vec<(Request, Memory)> {
    let other = |step: usize| ROWS[(index + step) % ROWS.len()];
    let rows = [ROWS[index], other(5), other(12)];
    let mut play = Play::begin(&rows);
    play.turn("THE-FIRST question", [look("Looking."), say("Two files.")]);
    play.steered();
    play.check_words();
    play.turn(
        "THE-SECOND question, about long.rs",
        [look("Again."), say("The same.")],
    );
    play.cancelled();
    play.turn(
        "THE-QUESTION after it was cancelled",
        [look("Once more."), say("Still the same.")],
    );
    play.restart();
    play.turn(
        "THE-QUESTION in a new process",
        [look("And again."), say("As before.")],
    );
    if rows[0].0 == "anthropic" {
        let pause = Act::Pause(Said {
            text: "Searching.",
            ..Said::default()
        });
        play.turn(
            "THE-QUESTION that needs a search",
            [pause, look("Found."), say("As they say.")],
        );
    }
    play.broken_off();
    play.turn(
        "THE-QUESTION after it broke off",
        [look("Whole now."), say("Yes.")],
    );
    play.check_words();
    for row in [rows[1], rows[2], rows[0]] {
        play.switch(row);
        play.turn("THE-NEXT question", [look("Here too."), say("No change.")]);
        play.check_words();
    }
    play.turn(
        "THE-REQUEST, word for word, about @long.rs",
        [
            look("Now."),
            Act::Overflow,
            look("Where was I?"),
            say("Done."),
        ],
    );
    let last = play.last();
    for words in ["THE-REQUEST, word for word", "RULE-ONE", "THE-SUMMARY"] {
        assert!(
            last.raw.contains(words),
            "{rows:?}: {words} is gone: {}",
            last.raw
        );
    }
    assert!(
        !play.client.text().contains("THE-SUMMARY"),
        "a summary is no answer"
    );
    play.interrupted();
    play.turn("THE-LAST question", [look("Still here."), say("The end.")]);
    assert!(play.last().raw.contains("THE-REQUEST, word for word"));
    play.strict.requests()
}

#[test]
fn a_whole_session_of_every_row_is_never_refused_and_every_rule_can_refuse() {
    // All rows are run, so that one run reports everything.
    let play = |index: usize| catch_unwind(|| whole_session(index)).map_err(|_| ROWS[index]);
    let sessions = side_by_side(SIDE_BY_SIDE, (0..ROWS.len()).collect(), play);
    let refused: Vec<_> = sessions
        .iter()
        .filter_map(|session| session.as_ref().err())
        .collect();
    assert!(refused.is_empty(), "these sessions failed: {refused:?}");
    let requests: Vec<_> = sessions.into_iter().flatten().flatten().collect();
    let unproved: Vec<_> = rules::all()
        .filter(|rule| {
            !requests
                .iter()
                .filter(|(request, _)| (rule.of)(request))
                .any(|(request, memory)| {
                    let mut spoiled = request.clone();
                    (rule.spoil)(&mut spoiled, memory);
                    spoiled.raw = spoiled.body.to_string();
                    (rule.holds)(request, memory) && !(rule.holds)(&spoiled, memory)
                })
        })
        .map(|rule| rule.says)
        .collect();
    assert!(
        unproved.is_empty(),
        "these rules never refused a request: {unproved:#?}"
    );
}

#[test]
fn every_provider_of_the_configuration_is_played() {
    use tandem::config::{EDITOR, PROVIDERS};
    // The editor's own models are not reached over HTTP; see `editor_models`.
    for provider in PROVIDERS.iter().filter(|row| row.base_url != EDITOR) {
        assert!(
            ROWS.iter().any(|row| row.0 == provider.name),
            "{} has no row",
            provider.name
        );
    }
}

#[test]
fn a_chosen_limit_and_temperature_are_sent_where_each_model_takes_them() {
    let play = |row: Row| {
        let chosen = json!({ "max-tokens": rules::CHOSEN_LIMIT, "temperature": 0.5 });
        let mut play = Play::begin_with(&[row], &chosen);
        play.strict.choose();
        play.turn("one", [look("Looking."), say("Seen.")]);
    };
    side_by_side(SIDE_BY_SIDE, ROWS.to_vec(), play);
}

/// Encrypted reasoning belongs to the account it was made for.
#[test]
fn reasoning_does_not_go_to_another_provider_of_the_same_model() {
    for rows in [
        [("openai", "gpt-5.5"), ("openrouter", "openai/gpt-5.5")],
        [("vllm", "Qwen/Qwen3-Coder"), ("ollama", "qwen3-coder")],
    ] {
        let mut play = Play::begin(&rows);
        play.turn("one", [look("Looking."), say("Seen.")]);
        play.switch(rows[1]);
        play.turn("two", [look("Looking."), say("Seen.")]);
    }
}

#[test]
fn a_conversation_has_a_cache_key_of_its_own() {
    let mut play = Play::begin(&[ROWS[0]]);
    play.turn("one", [say("One.")]);
    let first = play.last().body["prompt_cache_key"].clone();
    play.session = play.client.session(&play.world);
    play.strict.add([say("Two.")]);
    let id = play.client.prompt(&play.session, "two");
    play.client.answer(id);
    assert_ne!(play.last().body["prompt_cache_key"], first);
}

#[track_caller]
fn notices(client: &Client, part: &str) -> usize {
    let said = |message: &&Value| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains(part))
    };
    client.seen.iter().filter(said).count()
}

#[test]
fn a_field_that_a_host_refuses_by_name_is_left_out_once_in_the_session() {
    let row = ("xai", "grok-4.3");
    let world = World::new(json!([]));
    let strict = Strict::of(&world);
    strict.refuse_efforts();
    let mut client = client(
        &world,
        &strict,
        &[row, ROWS[0]],
        &json!({ "reasoning-effort": "low" }),
    );
    let session = client.session(&world);
    let ask = |client: &mut Client, text: &'static str| {
        strict.add([say("Yes.")]);
        let id = client.prompt(&session, text);
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    };
    let set = |client: &mut Client, option: &str, value: &str| {
        let params = json!({ "sessionId": session, "configId": option, "value": value });
        assert!(client.call("session/set_config_option", params)["error"].is_null());
    };
    ask(&mut client, "one");
    set(&mut client, "effort", "high");
    ask(&mut client, "two");
    set(&mut client, "model", "openai/gpt-5.5");
    ask(&mut client, "three");
    set(&mut client, "model", "xai/grok-4.3");
    ask(&mut client, "four");
    assert_eq!(notices(&client, "`reasoning_effort`"), 1);
    // A new process remembers it.
    let next = self::client(
        &world,
        &strict,
        &[row, ROWS[0]],
        &json!({ "reasoning-effort": "low" }),
    );
    drop(std::mem::replace(&mut client, next));
    let params = json!({ "sessionId": session, "cwd": world.path(), "mcpServers": [] });
    assert!(client.call("session/resume", params.clone())["error"].is_null());
    ask(&mut client, "five");
    let refusals = strict.refusals();
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    assert_eq!(notices(&client, "`reasoning_effort`"), 0, "once is enough");
    // Another server under the same name is still unknown.
    let elsewhere = World::new(json!([]));
    let other = Strict::of(&elsewhere);
    other.refuse_efforts();
    let next = self::client(
        &world,
        &other,
        &[row, ROWS[0]],
        &json!({ "reasoning-effort": "low" }),
    );
    drop(std::mem::replace(&mut client, next));
    assert!(client.call("session/resume", params)["error"].is_null());
    other.add([say("Yes.")]);
    let id = client.prompt(&session, "six");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(other.refusals().len(), 1, "{:#?}", other.refusals());
}

#[test]
fn a_host_that_names_the_other_api_is_used_with_it_from_then_on() {
    let world = World::new(json!([]));
    let strict = Strict::of(&world);
    let mut client = world.stranger_on(Transport::Lsp, &[]);
    let mut params = world.handshake(json!({ "experimental": { "tandem": {} } }));
    let mine = json!({ "base-url": strict.base_url("openai"), "api": "chat", "models": { "gpt-5.5": {} } });
    params["initializationOptions"] =
        json!({ "model": "mine/gpt-5.5", "providers": { "mine": mine } });
    client.shake_hands(params);
    let session = client.session(&world);
    for _ in 0..2 {
        strict.add([look("Looking."), say("Seen.")]);
        let id = client.prompt(&session, "look");
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    }
    let refusals = strict.refusals();
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    assert_eq!(notices(&client, "`responses` API"), 1);
}
