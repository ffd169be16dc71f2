//! Tools of MCP servers: found, approved, called; and servers that die, hang, flood, send nonsense or change.

mod editor;
mod http;
mod login;
mod offers;
mod server;
mod today;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use tandem::server::Transport;

use crate::driver::{Client, World, until};

const CONFIG: &str = ".home/config/config.toml";
const CANARY: &str = "sk-CANARYKEY-0123456789abcdef";

/// A configuration with a server in this role.
fn configure(world: &World, role: &str) {
    let command: Vec<_> = std::iter::once(program())
        .chain(server::ARGUMENTS.map(str::to_owned))
        .collect();
    let env = format!("{{ TANDEM_TEST_MCP = {role:?}, OWN = \"set\" }}");
    add(
        world,
        &format!("[mcp.tricks]\ncommand = {command:?}\nenv = {env}\n"),
    );
}

/// Adds a section to the configuration.
fn add(world: &World, section: &str) {
    let before = std::fs::read_to_string(world.path().join(CONFIG)).unwrap_or_default();
    world.write(CONFIG, &format!("{before}{section}\n"));
}

fn program() -> String {
    std::env::current_exe()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

fn call(name: &str, arguments: Value) -> Value {
    json!([{ "call": { "id": format!("c-{name}"), "name": name, "arguments": arguments } }])
}

/// A script in which the model calls these tools, one by one, and then stops.
fn calls(names: &[&str]) -> Value {
    let arguments = |number: usize| json!({ "text": "hi", "number": number });
    let calls = names
        .iter()
        .enumerate()
        .map(|(number, name)| call(&format!("tricks__{name}"), arguments(number)));
    calls.chain([json!([{ "text": "done" }])]).collect()
}

/// Sends a prompt, answers yes to every request, and returns the response to the prompt.
fn prompt(client: &mut Client, session: &str) -> Value {
    let id = client.prompt(session, "go");
    loop {
        let message = client.find(|message| {
            message["method"] == "session/request_permission"
                || (message["id"] == id && message.get("method").is_none())
        });
        if message.get("method").is_none() {
            client.seen.push_back(message);
            return client.answer(id);
        }
        client.respond(
            &message,
            json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
        );
    }
}

/// The results of its calls that the model received.
fn results(world: &World) -> Vec<String> {
    let requests = world.rehearsal().requests();
    let messages = requests.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// The MCP tools in a request.
fn offered(request: &Value) -> Vec<&str> {
    let names = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap());
    names.filter(|name| name.contains("__")).collect()
}

/// What the person was told besides the answer.
fn notices(client: &Client) -> Vec<String> {
    let statuses = client
        .seen
        .iter()
        .filter(|message| message["method"] == "_tandem/status");
    statuses
        .filter_map(|status| status["params"]["message"].as_str().map(str::to_owned))
        .collect()
}

/// Runs a server's role through one prompt in which the model calls these tools; returns their results and the notices.
fn play(role: &str, names: &[&str]) -> (Vec<String>, Vec<String>) {
    let world = World::new(calls(names));
    configure(&world, role);
    let mut client = world.client();
    let session = client.session(&world);
    let answer = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    (results(&world), notices(&client))
}

#[test]
fn mcp_tools_are_offered_approved_and_called() {
    let world = World::new(calls(&["echo"]));
    configure(&world, "good");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"],
        r#"tricks: echo {"text":"hi","number":0}"#
    );
    assert_eq!(question["params"]["toolCall"]["kind"], "other");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(results(&world), ["\"hi\" said"]);
    let requests = world.rehearsal().requests();
    assert_eq!(offered(&requests[0]).len(), 10);
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    let tools = requests[0]["tools"].as_array().unwrap();
    let echo = tools
        .iter()
        .find(|tool| tool["function"]["name"] == "tricks__echo")
        .unwrap();
    assert_eq!(echo["function"]["description"], "Does echo.");
}

#[test]
fn both_eras_are_spoken_to_programs() {
    // A current server knows no handshake; an older one may not respond when asked to describe itself.
    for role in ["modern", "silent"] {
        let (results, _) = play(role, &["echo", "heard"]);
        assert_eq!(results[0], "\"hi\" said", "{role}");
        let was_greeted = results[1].contains("notifications/initialized");
        assert_eq!(was_greeted, role == "silent", "{role}: {results:?}");
    }
}

#[test]
fn the_era_of_a_program_is_remembered() {
    let world = World::new(with_prompts(2, &["echo", "heard"]));
    configure(&world, "noting");
    for expected in [true, false] {
        let mut client = world.client();
        let session = client.session(&world);
        prompt(&mut client, &session);
        assert_eq!(client.end(), tandem::server::Ended::Well);
        client.finish();
        let results = results(&world);
        let was_asked = results.last().unwrap().contains("server/discover");
        assert_eq!(was_asked, expected, "{results:?}");
    }
}

/// A script for several prompts in which the model calls these tools.
fn with_prompts(prompts: usize, names: &[&str]) -> Value {
    let script = calls(names);
    let answers = script.as_array().unwrap();
    std::iter::repeat_n(answers, prompts)
        .flatten()
        .cloned()
        .collect()
}

#[test]
fn a_server_asks_the_person_and_gets_its_state_back() {
    let world = World::new(calls(&["ask", "heard"]));
    configure(&world, "modern");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    let allow = |client: &mut Client, title: &str, option: &str| {
        let question = client.next("session/request_permission");
        let shown = question["params"]["toolCall"]["title"].as_str().unwrap();
        assert!(shown.starts_with(title), "{shown}");
        client.respond(
            &question,
            json!({ "outcome": { "outcome": "selected", "optionId": option } }),
        );
    };
    allow(&mut client, "tricks: ask", "allow_once");
    allow(&mut client, "tricks asks: Which color?", "answer_1");
    allow(&mut client, "tricks: heard", "allow_once");
    client.answer(id);
    let results = results(&world);
    assert_eq!(
        results[0],
        r#"{"action":"accept","content":{"color":"blue"}} with opaque  stäte"#
    );
}

#[test]
fn a_refused_call_never_reaches_the_server() {
    let world = World::new(calls(&["echo", "heard"]));
    configure(&world, "good");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    for option in ["reject_once", "allow_once"] {
        let question = client.next("session/request_permission");
        client.respond(
            &question,
            json!({ "outcome": { "outcome": "selected", "optionId": option } }),
        );
    }
    client.answer(id);
    let results = results(&world);
    assert!(results[0].contains("rejected this call"), "{results:?}");
    assert!(!results[1].contains("tools/call"), "{results:?}");
}

#[test]
fn rules_and_modes_apply_to_mcp_tools() {
    let world = World::new(json!([
        call("tricks__echo", json!({ "text": "hi" })),
        call("tricks__environment", json!({})),
        [{ "text": "done" }],
        call("tricks__echo", json!({ "text": "hi" })),
        [{ "text": "done" }],
    ]));
    configure(&world, "good");
    add(
        &world,
        "[permissions]\nallow = [\"tricks__echo\"]\ndeny = [\"tricks__environment\"]",
    );
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "nobody is asked");
    client.answer(id);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    let id = client.prompt(&session, "nothing runs");
    client.answer(id);
    let results = results(&world);
    assert_eq!(results[0], "\"hi\" said");
    assert!(
        results[1].contains("one of the user's rules forbids"),
        "{results:?}"
    );
    assert!(results[2].contains("mode `plan`"), "{results:?}");
    let request = &world.rehearsal().requests()[0];
    assert!(!offered(request).contains(&"tricks__environment"));
}

#[test]
fn servers_inherit_no_keys_and_run_in_the_workspace() {
    let world = World::new(calls(&["environment"]));
    configure(&world, "good");
    let (url, home) = (
        world.model.base_url().to_owned(),
        world.path().join(".home"),
    );
    let environment = [
        ("TANDEM_MODEL", "scripted"),
        ("TANDEM_BASE_URL", url.as_str()),
        ("TANDEM_API_KEY", CANARY),
        ("OPENAI_API_KEY", CANARY),
        ("HOME", home.to_str().unwrap()),
        ("LC_ALL", "C.UTF-8"),
    ];
    let mut client = world.stranger_on(Transport::Lsp, &environment);
    client.shake_hands(world.handshake(json!({ "experimental": { "tandem": {} } })));
    let session = client.session(&world);
    prompt(&mut client, &session);
    let seen: Value = serde_json::from_str(&results(&world)[0]).unwrap();
    let mut names: Vec<_> = seen["variables"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.retain(|name| !name.starts_with("RUST_"));
    assert_eq!(names, ["HOME", "LC_ALL", "OWN", "TANDEM_TEST_MCP"]);
    assert_eq!(
        seen["folder"],
        home.to_str().unwrap(),
        "where no repository is in the way"
    );
}

#[test]
fn listed_tools_become_valid_for_all_providers() {
    let world =
        World::new(json!([call("tricks__e_cho_2", json!({ "text": "hi" })), [{ "text": "done" }]]));
    configure(&world, "sloppy");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"], r#"tricks: e.cho {"text":"hi"}"#,
        "no hint grants anything"
    );
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    client.answer(id);
    assert_eq!(results(&world), ["\"hi\" said"]);
    let request = &world.rehearsal().requests()[0];
    assert_eq!(
        offered(request),
        ["tricks__e_cho", "tricks__e_cho_2", "tricks__echo"]
    );
    for tool in request["tools"].as_array().unwrap() {
        assert_eq!(tool["function"]["parameters"]["type"], "object", "{tool}");
        assert!(
            tool["function"]["parameters"]["properties"].is_object(),
            "{tool}"
        );
    }
    let notices = notices(&client).join("\n");
    assert!(
        notices.contains("2 tools without a usable name") && notices.contains("the first of each"),
        "{notices}"
    );
}

#[test]
fn endless_lists_and_long_descriptions_are_bounded() {
    let world = World::new(calls(&[]));
    configure(&world, "chatty");
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    let request = &world.rehearsal().requests()[0];
    let (size, offered) = (request.to_string().len(), offered(request).len());
    assert!(
        size < 48 << 10 && offered > 20,
        "{size} bytes for {offered} tools"
    );
    let notices = notices(&client).join("\n");
    assert!(
        notices.contains("MCP server `tricks` offers more than 24 kB")
            && notices.contains("t59")
            && notices.contains("`tricks` lists more than 500 tools or 20 pages of them"),
        "{notices}"
    );
}

/// A world with the good server: one turn calls these tools, another none.
fn with_two_turns(tools: &[&str]) -> World {
    let mut script = calls(tools);
    script
        .as_array_mut()
        .unwrap()
        .push(json!([{ "text": "done" }]));
    let world = World::new(script);
    configure(&world, "good");
    world
}

#[test]
fn crashed_servers_are_restarted_a_limited_number_of_times() {
    let called = ["die", "echo", "die", "die", "die", "die", "echo"];
    let turns = [calls(&called), calls(&["echo"])];
    let turns = turns.iter().flat_map(|turn| turn.as_array().unwrap());
    let world = World::new(turns.cloned().collect());
    configure(&world, "good");
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    let results = || results(&world);
    let all = results();
    assert!(all[0].contains("crashed during this call"), "{all:?}");
    assert_eq!(all[1], "\"hi\" said");
    assert!(
        all[6].contains("ended (exit status: 9): killed by a test"),
        "{all:?}"
    );
    prompt(&mut client, &session);
    let notices = notices(&client).join("\n");
    assert!(
        notices.contains("killed by a test; it will not be tried again before the next prompt"),
        "{notices}"
    );
    let all = results();
    assert_eq!(all.last().unwrap(), "\"hi\" said", "{all:?}");
    let requests = world.rehearsal().requests();
    assert!(
        requests
            .iter()
            .all(|request| request["tools"] == requests[0]["tools"]),
        "the beginning stays as it was"
    );
}

#[test]
fn servers_that_cannot_start_are_named_with_their_output() {
    let (_, notices) = play("dumb", &[]);
    let notices = notices.join("\n");
    assert!(
        notices.contains("MCP server `tricks` ended (exit status: 7): no license found"),
        "{notices}"
    );
}

#[test]
fn servers_without_a_valid_list_are_named() {
    let (_, notices) = play("listless", &[]);
    let notices = notices.join("\n");
    assert!(
        notices.contains("MCP server `tricks` does not list its tools: the answer has none"),
        "{notices}"
    );
}

#[test]
fn unanswered_calls_time_out_and_notify_the_server() {
    let world = World::new(calls(&["hang", "heard"]));
    configure(&world, "good");
    add(&world, "[limits]\ncommand-timeout = 2");
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    let results = results(&world);
    assert!(
        results[0].contains("did not answer within 2 s (limits.command-timeout)"),
        "{results:?}"
    );
    check_heard(&results[1]);
}

/// The server learned that nobody waits for the response to its hanging call.
fn check_heard(heard: &str) {
    let heard: Vec<Value> = serde_json::from_str(heard).unwrap();
    let hanging = heard
        .iter()
        .find_map(|message| message.get("hangs"))
        .unwrap();
    let cancelled = heard
        .iter()
        .find(|message| message["method"] == "notifications/cancelled")
        .unwrap();
    assert_eq!(&cancelled["params"]["requestId"], hanging, "{heard:?}");
}

#[test]
fn cancelling_the_turn_cancels_the_call() {
    let world = World::new(
        json!([call("tricks__hang", json!({})), call("tricks__heard", json!({})), [{ "text": "done" }]]),
    );
    configure(&world, "good");
    let mut client = world.client();
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    client.find(|message| message["params"]["update"]["status"] == "in_progress");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    prompt(&mut client, &session);
    let results = results(&world);
    assert!(results[0].contains("cancelled"), "{results:?}");
    check_heard(&results[1]);
}

#[test]
fn a_server_that_asks_and_does_not_read_holds_up_no_cancel() {
    let world = World::new(calls(&["deaf"]));
    configure(&world, "deaf");
    world.write(".home/config.toml", &world.read(CONFIG));
    let (_program, mut client) = world.serve(Transport::Acp);
    let capabilities = json!({ "elicitation": { "form": {} } });
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
    );
    let session = client.session(&world);
    let id = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    client.respond(
        &question,
        json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }),
    );
    let form = client.next("elicitation/create");
    client.respond(&form, json!({ "action": "accept", "content": {} }));
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_flooding_server_is_stopped_and_nothing_else() {
    let (results, _) = play("good", &["line", "flood", "echo"]);
    let reasons = ["sent a message of more than 4 MiB", "sent more than 32 MiB"];
    for (result, reason) in results.iter().zip(reasons) {
        assert!(result.contains(reason), "{results:?}");
    }
    assert_eq!(results[2], "\"hi\" said");
}

#[test]
fn invalid_messages_are_ignored() {
    let (results, _) = play("good", &["nonsense", "echo"]);
    assert_eq!(results, ["(the tool returned nothing)", "\"hi\" said"]);
}

#[test]
fn an_error_beside_an_empty_result_is_an_error() {
    let (results, _) = play("good", &["refuse"]);
    assert_eq!(results, ["the MCP server `tricks` answered: no disk"]);
}

#[test]
fn changed_tool_lists_apply_with_the_next_prompt() {
    let world = with_two_turns(&["rename", "echo"]);
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    let requests = world.rehearsal().requests();
    assert!(
        requests
            .iter()
            .all(|request| request["tools"] == requests[0]["tools"]),
        "fixed within a turn"
    );
    prompt(&mut client, &session);
    assert_eq!(
        offered(world.rehearsal().requests().last().unwrap()),
        ["tricks__echoed"]
    );
}

#[test]
fn stored_approvals_apply_only_to_the_same_tool_of_the_same_program() {
    let turns: Vec<Value> = (0..4)
        .flat_map(|_| {
            [
                call("tricks__echo", json!({ "text": "hi" })),
                json!([{ "text": "done" }]),
            ]
        })
        .collect();
    let world = World::new(turns.into());
    let allowed_after = |answer: Option<&str>| {
        let mut client = world.client();
        let session = client.session(&world);
        let id = client.prompt(&session, "go");
        if let Some(answer) = answer {
            let question = client.next("session/request_permission");
            client.respond(
                &question,
                json!({ "outcome": { "outcome": "selected", "optionId": answer } }),
            );
        }
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
        assert_eq!(results(&world).last().unwrap(), "\"hi\" said");
        assert!(
            client
                .seen
                .iter()
                .all(|message| message["method"] != "session/request_permission")
        );
    };
    configure(&world, "good");
    allowed_after(Some("allow_always_project"));
    allowed_after(None);
    let change = |from: &str, to: &str| {
        let before = world.read(CONFIG);
        world.write(CONFIG, &before.replacen(from, to, 1));
    };
    // The tool's description has changed.
    change("\"good\"", "\"sloppy\"");
    allowed_after(Some("allow_once"));
    change("\"sloppy\"", "\"good\"");
    let last = server::ARGUMENTS.last().unwrap();
    let other = format!("{last:?}, \"--test-threads=1\"]");
    change(&format!("{last:?}]"), &other);
    allowed_after(Some("allow_once"));
}

#[test]
fn slow_servers_do_not_block_and_join_later() {
    let world = World::new((0..60).map(|_| json!([{ "text": "done" }])).collect());
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    configure(&world, &format!("gate {}", gate.local_addr().unwrap()));
    add(&world, "[limits]\nconnect-timeout = 1");
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    assert_eq!(
        offered(&world.rehearsal().requests()[0]),
        Vec::<&str>::new()
    );
    let told = notices(&client).join("\n");
    assert!(
        told.contains(
            "MCP servers still starting: tricks; their tools will be available with a later prompt"
        ),
        "{told}"
    );
    let mut gate = gate.accept().unwrap().0;
    gate.write_all(b"!").unwrap();
    gate.read_exact(&mut [0]).unwrap();
    // It has listed its tools; that tandem has read the list takes a moment longer.
    let joined = (0..50).any(|_| {
        prompt(&mut client, &session);
        offered(world.rehearsal().requests().last().unwrap()).contains(&"tricks__echo")
    });
    assert!(joined);
}

#[test]
fn a_server_that_never_answers_ends_with_the_session() {
    let world = World::new(json!([[{ "text": "done" }]]));
    let line = format!(
        "echo $$ > started; exec {} {}",
        program(),
        server::ARGUMENTS.join(" ")
    );
    let env = "env = { TANDEM_TEST_MCP = \"mute\" }\ncwd = \".\"";
    let config = format!(
        "[limits]\nconnect-timeout = 1\n[mcp.mute]\ncommand = [\"/bin/sh\", \"-c\", {line:?}]\n{env}\n"
    );
    world.write(".home/config/config.toml", &config);
    let mut client = world.client();
    let session = client.session(&world);
    prompt(&mut client, &session);
    let server = world.read("started").trim().parse().unwrap();
    client.end();
    client.finish();
    let server = rustix::process::Pid::from_raw(server).unwrap();
    until("the server has ended", || is_gone(server));
}

#[test]
fn a_server_of_the_client_joins_the_session() {
    let world = World::new(
        json!([call("of_the_client__echo", json!({ "text": "hi" })), [{ "text": "done" }]]),
    );
    let mut client = world.acp();
    let answer = client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    assert_eq!(
        answer["result"]["agentCapabilities"]["mcpCapabilities"],
        json!({ "http": true, "sse": false, "acp": true })
    );
    let env = json!([{ "name": "TANDEM_TEST_MCP", "value": "good" }]);
    let server = json!({ "name": "of the client", "command": program(), "args": server::ARGUMENTS, "env": env });
    let answer = client.call(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [server] }),
    );
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    prompt(&mut client, &session);
    assert_eq!(results(&world), ["\"hi\" said"]);
}

#[test]
fn http_servers_get_their_headers_and_are_reinitialized() {
    let called = ["web__whoami", "web__forget", "web__whoami"];
    let calls = called
        .iter()
        .enumerate()
        .map(|(number, name)| call(name, json!({ "number": number })));
    let world = World::new(calls.chain([json!([{ "text": "done" }])]).collect());
    let (url, asked) = http::serve();
    let mut client = world.acp();
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let header = json!({ "name": "Authorization", "value": "Bearer of good news" });
    let server = json!({ "type": "http", "name": "web", "url": url, "headers": [header] });
    let answer = client.call(
        "session/new",
        json!({ "cwd": world.path(), "mcpServers": [server] }),
    );
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(*asked.lock().unwrap(), [], "lazily");
    prompt(&mut client, &session);
    let results = results(&world);
    // A call whose session is gone is repeated once, in a new session.
    assert_eq!(
        (results[0].as_str(), results[2].as_str()),
        ("s1", "s5"),
        "{results:?}"
    );
    assert!(
        results[1].contains("lost its session twice and did not carry out this call"),
        "{results:?}"
    );
    assert_eq!(client.end(), tandem::server::Ended::Well);
    client.finish();
    let asked = asked.lock().unwrap();
    assert!(
        asked.iter().all(|(_, _, key)| key == "Bearer of good news"),
        "{asked:?}"
    );
    assert_eq!(asked.last().unwrap().0, "DELETE", "{asked:?}");
    let begun = asked
        .iter()
        .filter(|(method, session, _)| method == "initialize" && session.is_empty());
    assert_eq!(begun.count(), 3, "{asked:?}");
}

#[test]
fn http_servers_that_deny_are_asked_once_and_the_remedy_is_told() {
    let begin: &[&str] = &["initialize", "notifications/initialized"];
    let no_login =
        "requires a login, and it does not say where to log in: the editor supplies this server";
    let refused = "HTTP status 403 Forbidden: it does not accept the credentials in its headers";
    let missing =
        "HTTP status 403 Forbidden: the editor supplies this server, so set its credentials there";
    let nothing = "no MCP server at the address in mcp.web.url";
    let lost = "does not accept the session it started";
    let key = json!([{ "name": "X-Key", "value": "k" }]);
    for (status, takes, headers, remedy, posts) in [
        (401, &[][..], json!([]), no_login, 1),
        (401, begin, json!([]), no_login, 1),
        (403, &[], json!([]), missing, 2),
        (403, &[], key, refused, 2),
        (404, &[], json!([]), nothing, 2),
        (405, &[], json!([]), nothing, 2),
        (404, begin, json!([]), lost, 4),
    ] {
        let world = World::new(json!([[{ "text": "done" }]]));
        let (url, asked) = http::serve_denying(status, takes);
        let mut client = world.client();
        let server = json!({ "type": "http", "name": "web", "url": url, "headers": headers });
        let answer = client.call(
            "session/new",
            json!({ "cwd": world.path(), "mcpServers": [server] }),
        );
        prompt(&mut client, answer["result"]["sessionId"].as_str().unwrap());
        let told = notices(&client).join("\n");
        assert!(
            told.contains("MCP server `web` ") && told.contains(remedy),
            "{told}"
        );
        assert!(!told.contains("restarting"), "{told}");
        assert_eq!(client.end(), tandem::server::Ended::Well);
        client.finish();
        let asked = asked.lock().unwrap();
        let requests = asked
            .iter()
            .filter(|method| !["GET", "DELETE"].contains(&method.as_str()));
        assert_eq!(requests.count(), posts, "{status}: {asked:?}");
    }
}

#[test]
fn doctor_checks_all_servers() {
    let world =
        World::new(json!([[{ "text": "ready" }], call("report_ready", json!({ "ready": true }))]));
    configure(&world, "good");
    let good = world.read(CONFIG);
    let more = "[mcp.gone]\ncommand = [\"/no/such/program\"]\n[mcp.web]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    world.write(".home/config.toml", &format!("{good}{more}"));
    let output = crate::program::finish(&mut world.command(&["doctor", "--json"]));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["check"] == "mcp");
    let word = |value: &Value| {
        value
            .as_str()
            .unwrap()
            .split(" (os error")
            .next()
            .unwrap()
            .to_owned()
    };
    let findings: Vec<_> = findings
        .map(|finding| [&finding["verdict"], &finding["found"]].map(word))
        .collect();
    assert_eq!(
        findings,
        [
            [
                "warning",
                "`gone` cannot be started: No such file or directory"
            ],
            ["good", "`tricks` (Tricks 1.2) offers 10 tools"],
            ["warning", "`web` cannot be reached: Connection refused"],
        ]
    );
    assert_eq!(
        output.code,
        Some(0),
        "a model is enough to work: {report:#}"
    );
}

#[test]
fn servers_of_other_agents_are_offered_and_copied_by_name() {
    let world = World::new(json!([]));
    let mark = world.path().join("started");
    let touch = json!({ "command": "touch", "args": [mark] });
    let good = json!({
        "command": program(),
        "args": server::ARGUMENTS,
        "env": { "TANDEM_TEST_MCP": "good", "TOKEN": CANARY },
    });
    // The repository uses the name of one of the person's servers.
    let servers = json!({
        "docs": touch,
        "other": touch,
        "old": { "type": "sse", "url": "http://127.0.0.1:9/sse" },
        "open": { "command": "x", "args": ["${HOME}"] },
    });
    world.write(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    world.write(".vscode/mcp.json", "{ damaged");
    let codex =
        "[mcp_servers.web]\nurl = \"http://127.0.0.1:9/mcp\"\nhttp_headers = { A = \"b\" }\n";
    world.write(".home/.codex/config.toml", codex);
    world.write(
        ".home/config.toml",
        "[mcp.mine]\ncommand = [\"true\"] # mine\n",
    );
    let mine = json!({ "mcpServers": { "mine": touch, "docs": good } });
    world.write(".home/.claude.json", &mine.to_string());

    let before = world.read(".home/config.toml");
    let listed = world.run(&["mcp", "import"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    for (name, what) in [
        ("docs", &*program()),
        ("other", "touch"),
        ("old", "uses SSE"),
        ("open", "contains variables"),
        ("web", "http://127.0.0.1:9/mcp"),
        ("mine", "already configured"),
    ] {
        let start = format!("{name}  ");
        let line = listed.stdout.lines().find(|line| line.starts_with(&start));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{name}: {}",
            listed.stdout
        );
    }
    assert!(!listed.stdout.contains(CANARY), "{}", listed.stdout);
    assert_eq!(world.read(".home/config.toml"), before);
    for refused in ["old", "open", "mine", "nothing"] {
        let output = world.run(&["mcp", "import", refused]);
        assert!(
            output.code.is_some_and(|code| code > 0),
            "{refused}: {}",
            output.stdout
        );
        assert_eq!(world.read(".home/config.toml"), before, "{refused}");
    }

    let copied = world.run(&["mcp", "import", "docs", "web"]);
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    let config = world.read(".home/config.toml");
    assert!(
        config.starts_with(&before) && !config.contains("other"),
        "{config}"
    );
    assert!(config.contains("headers = { A = \"b\" }"), "{config}");
    let checked = world.run(&["mcp", "check", "docs"]);
    assert!(
        checked.stdout.contains("docs (Tricks 1.2) offers"),
        "{checked:?}"
    );
    assert!(!mark.exists(), "nothing is started unasked");
}

#[cfg(unix)]
#[test]
fn what_is_no_ordinary_file_of_another_agent_is_not_read() {
    let world = World::new(json!([]));
    let pipe = world.path().join(".mcp.json");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    for folder in [".cursor", ".vscode"] {
        std::fs::create_dir(world.path().join(folder)).unwrap();
    }
    let endless = world.path().join(".cursor/mcp.json");
    std::os::unix::fs::symlink("/dev/zero", endless).unwrap();
    let servers = json!({ "servers": { "docs": { "command": "true" } } }).to_string();
    world.write(".vscode/mcp.json", &servers);
    let listed = world.run(&["mcp", "import"]);
    assert!(listed.stdout.starts_with("docs  true  ("), "{listed:?}");
}

#[test]
fn secrets_in_command_lines_and_urls_are_not_shown() {
    let world = World::new(json!([]));
    let key = format!("--api-key={CANARY}");
    let command = json!([
        "true",
        key,
        "--header",
        format!("Authorization: Bearer {CANARY}2")
    ]);
    let url = format!("https://tools.example/mcp?apiKey={CANARY}3");
    world.write(
        ".home/config.toml",
        &format!("[mcp.a]\ncommand = {command}\n[mcp.b]\nurl = \"{url}\"\n"),
    );
    let servers =
        json!({ "mcpServers": { "c": { "command": "x", "args": [key] }, "d": { "url": url } } });
    world.write(".mcp.json", &servers.to_string());
    for arguments in [["config", "show"], ["mcp", "list"], ["mcp", "import"]] {
        let shown = world.run(&arguments).stdout;
        assert!(
            shown.contains("--api-key=[secret]") && shown.contains("/mcp?apiKey=[secret]"),
            "{shown}"
        );
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

#[test]
fn servers_of_other_agents_are_named_once_in_an_editor() {
    let world = World::new(with_prompts(3, &[]));
    let mark = world.path().join("started");
    let touch = json!({ "command": "touch", "args": [mark] });
    let servers = |names: &[&str]| {
        let servers: serde_json::Map<_, _> = names
            .iter()
            .map(|name| ((*name).to_owned(), touch.clone()))
            .collect();
        json!({ "mcpServers": servers }).to_string()
    };
    add(&world, "[mcp.mine]\ncommand = [\"true\"]");
    world.write(".home/.claude.json", &servers(&["mine", "docs"]));
    let home = world.path().join(".home");
    let environment = [
        ("TANDEM_MODEL", "scripted"),
        ("TANDEM_BASE_URL", world.model.base_url()),
        ("HOME", home.to_str().unwrap()),
    ];
    let mut named = Vec::new();
    for names in [
        &["a\n`b"][..],
        &["a\n`b"],
        &["docs", "a\n`b", "c", "d", "e", "f", "g", "h"],
    ] {
        world.write(".mcp.json", &servers(names));
        let mut client = world.stranger_on(Transport::Lsp, &environment);
        client.shake_hands(world.handshake(json!({ "experimental": { "tandem": {} } })));
        let session = client.session(&world);
        prompt(&mut client, &session);
        let notices = notices(&client).into_iter();
        named.extend(notices.filter(|notice| notice.contains("other agents")));
        assert_eq!(client.end(), tandem::server::Ended::Well);
        client.finish();
    }
    let line = |names: &str| {
        format!(
            "MCP servers of other agents, which tandem does not start: {names}. `tandem mcp import` lists and copies them"
        )
    };
    let first = line("`docs`, `a\\n'b`");
    let rest = ["c", "d", "e", "f", "g"].map(|name| format!("`{name}`"));
    assert_eq!(
        named,
        [first, line(&format!("{}, 1 more", rest.join(", ")))]
    );
    assert!(!mark.exists(), "nothing is started unasked");
}

#[test]
fn invalid_server_configurations_are_refused() {
    let world = World::new(json!([]));
    let mut client = world.acp();
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    for (server, why) in [
        (
            json!({ "name": "x", "command": "", "args": [], "env": [] }),
            "a command needs at least the name of a program",
        ),
        (
            json!({ "type": "sse", "name": "x", "url": "http://localhost/sse", "headers": [] }),
            "use `http` or stdio",
        ),
    ] {
        let refused = client.call(
            "session/new",
            json!({ "cwd": world.path(), "mcpServers": [server] }),
        );
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(
            refused["error"]["message"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
}

#[test]
fn servers_start_with_the_first_prompt_and_end_with_the_session() {
    let world = World::new(calls(&["echo"]));
    // The program leaves a child process that would otherwise survive.
    let line = format!(
        "sleep 1000 & echo $! > started; exec {} {}",
        program(),
        server::ARGUMENTS.join(" ")
    );
    let env = "env = { TANDEM_TEST_MCP = \"good\" }\ncwd = \".\"";
    add(
        &world,
        &format!("[mcp.tricks]\ncommand = [\"/bin/sh\", \"-c\", {line:?}]\n{env}"),
    );
    let mut client = world.client();
    let session = client.session(&world);
    assert!(!world.path().join("started").exists(), "lazily");
    prompt(&mut client, &session);
    assert_eq!(results(&world), ["\"hi\" said"]);
    let child: i32 = world.read("started").trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    assert_eq!(rustix::process::test_kill_process(child), Ok(()));
    client.end();
    client.finish();
    until("the tree is gone", || is_gone(child));
}

/// Whether a process has ended; an unreaped zombie doesn't count as a process.
fn is_gone(process: rustix::process::Pid) -> bool {
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    let is_zombie = |stat: &str| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    };
    let is_zombie = std::fs::read_to_string(&stat).is_ok_and(|stat| is_zombie(&stat));
    is_zombie || rustix::process::test_kill_process(process).is_err()
}

#[cfg(unix)]
#[test]
fn a_workspace_cannot_supply_the_program_of_a_server() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(json!([[{ "text": "done" }]]));
    let outside = tempfile::tempdir().unwrap();
    let folders = [world.path().join("bin"), outside.path().to_owned()];
    for folder in &folders {
        let program = folder.join("docs-server");
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&program, "#!/bin/sh\n: > \"$0.ran\"\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    }
    add(&world, "[mcp.docs]\ncommand = [\"docs-server\"]");
    let system = ["bin".into(), "/usr/bin".into(), "/bin".into()];
    let path = std::env::join_paths(folders.iter().chain(&system)).unwrap();
    let environment = [
        ("TANDEM_MODEL", "scripted"),
        ("TANDEM_BASE_URL", world.model.base_url()),
        ("PATH", path.to_str().unwrap()),
    ];
    let mut client = world.stranger_on(Transport::Acp, &environment);
    client.call("initialize", json!({ "protocolVersion": 1 }));
    let session = client.session(&world);
    prompt(&mut client, &session);
    let ran = folders.map(|folder| folder.join("docs-server.ran").exists());
    assert_eq!(ran, [false, true]);
}
