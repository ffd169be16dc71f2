//! Background commands as the person sees them.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::time::Duration;

use super::changes::automatic;
use super::*;

/// The jobs in the next `_tandem/jobs/changed`.
fn changed(client: &mut Client) -> Value {
    client.next("_tandem/jobs/changed")["params"]["jobs"].clone()
}

/// What the model receives with another prompt, as text. It doesn't answer, because its script has ended.
fn sent(client: &mut Client, session: &str, stage: &Stage) -> String {
    let prompt = client.prompt(session, "and?");
    client.answer(prompt);
    stage.world.rehearsal().requests().last().unwrap()["messages"].to_string()
}

#[test]
fn a_person_lists_reads_and_stops_jobs_and_the_model_is_told() {
    let port = free_port();
    let calls = [
        serve(port),
        json!({ "command": "echo short; exit 3", "background": true }),
    ];
    let stage = Stage::new(Level::Best, &calls);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    let first = changed(&mut client);
    assert_eq!(
        (&first[0]["id"], &first[0]["state"]),
        (&json!(1), &json!("running")),
        "{first}"
    );
    // The second one ended by itself.
    let ask = json!({ "sessionId": session });
    let mut listed = json!([]);
    until("the short job has ended", || {
        listed = client.call("_tandem/jobs", ask.clone())["result"]["jobs"].clone();
        listed[1]["state"] == "exited"
    });
    assert_eq!(listed[1]["exitCode"], 3, "{listed}");
    assert_eq!(listed[0]["ports"], json!([port]), "{listed}");
    assert!(
        listed[0]["command"]
            .as_str()
            .unwrap()
            .starts_with("python3")
    );
    assert!(
        listed[0]["startedAt"].as_u64() <= listed[1]["startedAt"].as_u64(),
        "{listed}"
    );

    // All of its output, and its output from an offset on.
    let mut ask = json!({ "sessionId": session, "id": 1 });
    let output = client.call("_tandem/jobs/output", ask.clone())["result"].clone();
    assert_eq!(
        output,
        json!({ "text": "ready\n", "offset": 6, "line": "" })
    );
    ask["offset"] = json!(3);
    let output = client.call("_tandem/jobs/output", ask.clone());
    assert_eq!(output["result"]["text"], "dy\n");

    // Everyone sees that it was stopped.
    let stopped = client.call("_tandem/jobs/stop", ask.clone());
    assert_eq!(stopped["result"]["state"], "stopped", "{stopped}");
    ask["id"] = json!(7);
    let unknown = client.call("_tandem/jobs/stop", ask);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("unknown job 7"),
        "{unknown}"
    );
    let told = sent(&mut client, &session, &stage);
    assert!(
        told.contains("(job 1 was stopped by the user: `python3"),
        "{told}"
    );
    // The model read the end of the second one when it started it, or is told now.
    assert_eq!(told.matches("exit code 3").count(), 1, "{told}");
    let told = sent(&mut client, &session, &stage);
    assert_eq!(told.matches("stopped by the user").count(), 1, "{told}");
}

/// The response to a connection to a port of this machine.
fn got(port: u16) -> io::Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut said = String::new();
    connection.read_to_string(&mut said)?;
    Ok(said)
}

/// Asks to open a port of a job and gives this answer to the request.
fn open(client: &mut Client, session: &str, id: u32, port: u16, answer: Value) -> Value {
    let ask = json!({ "sessionId": session, "id": id, "port": port });
    let request = client.ask("_tandem/jobs/open", ask);
    let question = client.next("window/showMessageRequest");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("Open port {port} of `python3")),
        "{message}"
    );
    client.respond(&question, answer);
    client.answer(request)
}

/// The host's port in a response.
fn opened(answer: &Value) -> u16 {
    let url = answer["result"]["url"].as_str();
    let url = url.unwrap_or_else(|| panic!("{answer}"));
    let port = url.strip_prefix("http://127.0.0.1:").unwrap();
    port.strip_suffix('/').unwrap().parse().unwrap()
}

fn refused(answer: &Value) -> &str {
    answer["error"]["message"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_port_is_reached_from_the_host_once_a_person_opens_it_and_until_the_job_ends() {
    let (port, other) = (free_port(), free_port());
    let stage = Stage::new(Level::Best, &[serve(port), serve(other)]);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    let ask = json!({ "sessionId": session });
    until("both listen", || {
        let listed = client.call("_tandem/jobs", ask.clone());
        listed["result"]["jobs"][1]["ports"] == json!([other])
    });
    // Without an answer, or with no, nothing is opened.
    for answer in [json!({ "title": "Cancel" }), Value::Null] {
        let answer = open(&mut client, &session, 1, port, answer);
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    assert!(got(port).is_err(), "the host reaches it");

    let yes = json!({ "title": "Open" });
    let answer = open(&mut client, &session, 1, port, yes);
    let there = opened(&answer);
    for _ in 0..100 {
        assert_eq!(got(there).unwrap(), "SERVED");
    }
    assert!(got(port).is_err(), "it is reached at its own port, too");
    // It is already open, so no request is shown.
    let mut ask = json!({ "sessionId": session, "id": 1, "port": port });
    let again = client.call("_tandem/jobs/open", ask.clone());
    assert_eq!(opened(&again), there);
    // Nobody opened the other one's port, and the first one may not open it.
    assert!(got(other).is_err());
    ask["port"] = json!(other);
    let refusal = client.call("_tandem/jobs/open", ask.clone());
    let why = format!("job 1 does not listen on port {other}");
    assert_eq!(refused(&refusal), why);

    client.call(
        "_tandem/jobs/stop",
        json!({ "sessionId": session, "id": 1 }),
    );
    until("the port is closed", || got(there).is_err());
    ask["port"] = json!(port);
    let ended = client.call("_tandem/jobs/open", ask);
    assert!(refused(&ended).contains("does not listen"), "{ended}");
}

#[test]
fn more_connections_than_an_open_port_takes_at_a_time_are_all_served() {
    let port = free_port();
    let server = format!(
        "python3 -uc \"import socket, threading
s = socket.create_server(('127.0.0.1', {port}), backlog=200)
def serve(c):
    c.recv(1); c.sendall(b'SERVED'); c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()\""
    );
    let stage = Stage::new(
        Level::Best,
        &[json!({ "command": server, "background": true })],
    );
    let mut client = stage.client();
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    let ask = json!({ "sessionId": session });
    until("it listens", || {
        let listed = client.call("_tandem/jobs", ask.clone());
        listed["result"]["jobs"][0]["ports"] == json!([port])
    });
    let there = opened(&open(
        &mut client,
        &session,
        1,
        port,
        json!({ "title": "Open" }),
    ));
    let connections: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(("127.0.0.1", there)).unwrap())
        .collect();
    // Waiting ones are opened when others are closed.
    for mut connection in connections {
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        io::Write::write_all(&mut connection, b"x").unwrap();
        let mut said = String::new();
        connection.read_to_string(&mut said).unwrap();
        assert_eq!(said, "SERVED");
    }
}

#[test]
fn ports_are_opened_in_the_chat_and_those_of_the_hosts_network_are_there_already() {
    let port = free_port();
    let mut with_network = serve(port);
    with_network["network"] = json!(true);
    for (call, is_host) in [(serve(port), false), (with_network, true)] {
        let stage = Stage::new(Level::Best, &[call]);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        finish(&mut client, &session);
        let ask = json!({ "sessionId": session });
        until("it listens", || {
            let listed = client.call("_tandem/jobs", ask.clone());
            listed["result"]["jobs"][0]["ports"] == json!([port])
        });
        client.seen.clear();
        let prompt = client.prompt(&session, "/jobs open 1");
        finish_prompt(&mut client, prompt);
        let shown = client.next("window/showDocument")["params"].clone();
        let said = client.update("agent_message_chunk")["content"]["text"].clone();
        let said = said.as_str().unwrap();
        let there = said
            .strip_prefix(&format!("port {port}: <http://127.0.0.1:"))
            .and_then(|rest| rest.strip_suffix("/>"))
            .unwrap_or_else(|| panic!("{said}"));
        let there: u16 = there.parse().unwrap();
        assert_eq!(there == port, is_host, "{said}");
        let url = format!("http://127.0.0.1:{there}/");
        assert_eq!(shown, json!({ "uri": url, "external": true }));
        assert_eq!(got(there).unwrap(), "SERVED");
    }
}

#[test]
fn without_a_language_client_the_question_is_a_permission_request() {
    let port = free_port();
    let stage = Stage::new(Level::Best, &[serve(port)]);
    let mut client = stage.world.stranger_in(Transport::Acp, stage.environment());
    client.call(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
    );
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    let ask = json!({ "sessionId": session, "id": 1, "port": port });
    until("it listens", || {
        let listed = client.call("_tandem/jobs", ask.clone());
        listed["result"]["jobs"][0]["ports"] == json!([port])
    });
    for (option, is_open) in [("Cancel", false), ("Open", true)] {
        let request = client.ask("_tandem/jobs/open", ask.clone());
        let question = client.next("session/request_permission");
        let title = question["params"]["toolCall"]["title"].as_str().unwrap();
        assert!(title.starts_with(&format!("Open port {port}")), "{title}");
        crate::driver::choose(&mut client, &question, option);
        let answer = client.answer(request);
        if is_open {
            assert_eq!(got(opened(&answer)).unwrap(), "SERVED");
        } else {
            assert_eq!(answer["result"], json!({}), "{answer}");
        }
    }
}

#[test]
fn a_killed_server_leaves_no_port_open() {
    let port = free_port();
    let stage = Stage::new(Level::Best, &[serve(port)]);
    let state = tempfile::tempdir().unwrap();
    let (program, mut client) = stage.world.serve_with(Transport::Lsp, |command| {
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", stage.home.path())
            .env("TANDEM_STATE_DIR", state.path());
    });
    let opted_in = json!({
        "experimental": { "tandem": {} },
        "window": { "showMessage": { "messageActionItem": {} } },
    });
    client.shake_hands(stage.world.handshake(opted_in));
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    let ask = json!({ "sessionId": session });
    until("it listens", || {
        let listed = client.call("_tandem/jobs", ask.clone());
        listed["result"]["jobs"][0]["ports"] == json!([port])
    });
    let there = opened(&open(
        &mut client,
        &session,
        1,
        port,
        json!({ "title": "Open" }),
    ));
    assert_eq!(got(there).unwrap(), "SERVED");
    let own = format!("/proc/{}/fd/", program.pid().as_raw_nonzero());
    let helpers = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes
            .filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
        lines
            .filter(|line| line.contains("--connect") && line.contains(&own))
            .count()
    };
    assert_eq!(helpers(), 1);
    program.signal(rustix::process::Signal::KILL);
    until("the port is closed", || got(there).is_err());
    until("the helper has ended", || helpers() == 0);
}

#[test]
fn a_person_has_a_running_command_go_on_in_the_background() {
    let length = unique();
    let stage = Stage::new(
        Level::Best,
        &[run(&format!(
            "sleep {length} & echo begun; wait; echo over"
        ))],
    );
    let mut client = stage.client();
    let session = automatic(&mut client, &stage);
    let prompt = client.prompt(&session, "go");
    hear(&mut client, "begun");
    let ask = json!({ "sessionId": session, "toolCallId": "c0" });
    let moved = client.call("_tandem/jobs/background", ask.clone());
    assert_eq!(moved["result"]["state"], "running", "{moved}");
    finish_prompt(&mut client, prompt);
    let ended = client.find(|message| {
        message["params"]["update"]["_meta"]["tandem/job"] == moved["result"]["id"]
    });
    let update = &ended["params"]["update"];
    assert_eq!(update["status"], "completed", "{update}");
    assert!(update["_meta"]["tandem/exit"].is_null(), "{update}");
    let told = stage.told().remove(0);
    for part in [
        "moved it to the background as job 1",
        "begun",
        "[job 1 is running]",
    ] {
        assert!(told.contains(part), "{told}");
    }
    wait_for_sleepers(&length, 1);
    let listed = client.call("_tandem/jobs", json!({ "sessionId": session }));
    assert_eq!(listed["result"]["jobs"][0]["state"], "running", "{listed}");
    let again = client.call("_tandem/jobs/background", ask);
    assert_eq!(again["result"]["id"], moved["result"]["id"], "{again}");
    client.call(
        "_tandem/jobs/stop",
        json!({ "sessionId": session, "id": 1 }),
    );
    assert_eq!(sleepers(&length), 0);
}

#[test]
fn rewinding_to_before_a_job_leaves_nothing_running() {
    for action in ["undo", "restore"] {
        let length = unique();
        let calls = [
            run("echo changed > file"),
            json!({ "command": format!("echo up; sleep {length}"), "background": true }),
        ];
        let stage = Stage::new(Level::Best, &calls);
        let mut client = stage.client();
        let session = client.session(&stage.world);
        finish(&mut client, &session);
        wait_for_sleepers(&length, 1);
        let answer = client.call(
            "_tandem/review",
            json!({ "sessionId": session, "action": action, "turn": 1 }),
        );
        assert!(answer.get("error").is_none(), "{answer}");
        assert_eq!(sleepers(&length), 0, "{action}: {answer}");
        let told = sent(&mut client, &session, &stage);
        assert!(!told.contains("stopped by the user"), "{action}: {told}");
    }
}

#[test]
fn undoing_a_rejection_stops_no_job() {
    let length = unique();
    let calls = [
        run("echo changed > file"),
        json!({ "command": format!("echo up; sleep {length}"), "background": true }),
    ];
    let stage = Stage::new(Level::Best, &calls);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    finish(&mut client, &session);
    wait_for_sleepers(&length, 1);
    for (action, running) in [("reject", 1), ("undo", 1), ("undo", 0)] {
        let answer = client.call(
            "_tandem/review",
            json!({ "sessionId": session, "action": action }),
        );
        assert!(answer.get("error").is_none(), "{answer}");
        assert_eq!(sleepers(&length), running, "{action}: {answer}");
    }
}

#[test]
fn output_is_what_a_terminal_shows_in_the_end() {
    // The shell's own `printf` writes line by line, and a call that starts a job ends with the first line.
    let bar = r"env printf 'begin\n\033[31m 10%%\r 20%%'";
    let calls = [
        json!({ "command": format!("{bar}; until [ -e go ]; do sleep 0.05; done; printf '\\r100%%\\033[m\\n'") }),
        json!({ "command": format!("{bar}; sleep {}", unique()), "background": true }),
    ];
    let stage = Stage::new(Level::Best, &calls);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let prompt = client.prompt(&session, "go");
    let update = |message: &Value| message["params"]["update"].clone();
    // The call shows the bar in its current state, and is allowed first.
    loop {
        let message = client.receive().unwrap();
        if message["method"] == "session/request_permission" {
            allow(&mut client, &message);
        }
        if update(&message)["content"][0]["content"]["text"] == "begin\n 20%" {
            break;
        }
    }
    stage.world.write("go", "");
    finish_prompt(&mut client, prompt);
    let ended = client.find(|message| update(message)["status"] == "completed");
    let styles = &update(&ended)["_meta"]["tandem/styles"];
    assert_eq!(styles, &json!([{ "start": 6, "end": 10, "color": "1" }]));
    let told = sent(&mut client, &session, &stage);
    assert!(
        told.contains(r"begin\n100%\n") && !told.contains("10%\r"),
        "{told}"
    );
    assert!(
        told.contains(r"begin\n 20%"),
        "the job's current line: {told}"
    );

    let mut ask = json!({ "sessionId": session, "id": 2 });
    for (colors, line) in [(false, " 20%"), (true, "\u{1b}[31m 20%\u{1b}[m")] {
        ask["colors"] = colors.into();
        let output = client.call("_tandem/jobs/output", ask.clone())["result"].clone();
        assert_eq!(
            output,
            json!({ "text": "begin\n", "offset": 6, "line": line })
        );
    }
}

#[test]
fn jobs_are_listed_and_stopped_in_the_chat() {
    let length = unique();
    let server = format!("echo serving; sleep {length}");
    let calls = [json!({ "command": server, "background": true })];
    let stage = Stage::new(Level::Best, &calls);
    let mut client = stage.client();
    let session = client.session(&stage.world);
    let mut say = |words: &str| {
        let prompt = client.prompt(&session, words);
        finish_prompt(&mut client, prompt);
        client.update("agent_message_chunk")["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(say("/jobs"), "No background commands in this session.");
    say("go");
    let listed = say("/jobs");
    assert!(
        listed.starts_with(&format!("- 1 `{server}` (running for ")),
        "{listed}"
    );
    assert_eq!(say("/jobs 1"), "```\nserving\n```");
    assert!(say("/jobs sleep").starts_with("`/jobs` lists"));
    assert_eq!(say("/jobs stop 1"), format!("- 1 `{server}` (stopped)"));
    assert_eq!(sleepers(&length), 0);
    assert!(say("/jobs stop 2").starts_with("unknown job 2"));
}
