//! Background commands as the person sees them.

use super::*;

/// The jobs that the next `_tandem/jobs/changed` has.
fn changed(client: &mut Client) -> Value {
    client.next("_tandem/jobs/changed")["params"]["jobs"].clone()
}

/// What the model is sent with another prompt, as text. It answers nothing: its script has ended.
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

    // Its output, whole and from a place on.
    let mut ask = json!({ "sessionId": session, "id": 1 });
    let output = client.call("_tandem/jobs/output", ask.clone())["result"].clone();
    assert_eq!(
        output,
        json!({ "text": "ready\n", "offset": 6, "truncated": false })
    );
    ask["offset"] = json!(3);
    let output = client.call("_tandem/jobs/output", ask.clone());
    assert_eq!(output["result"]["text"], "dy\n");

    // Stopping it is seen by everybody.
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

#[test]
fn going_back_to_before_a_job_leaves_nothing_running() {
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
    assert_eq!(
        say("/jobs"),
        "No background command was started in this session."
    );
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
