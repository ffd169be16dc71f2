//! Keys: who receives them, and where they are never written.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::checks::{everything, open_ports};
use super::scene::{Scene, run};
use crate::driver::until;

const KEY: &str = "sk-CANARYKEY-0123456789abcdef";

#[test]
fn secrets_001_commands_do_not_inherit_keys() {
    let scene = Scene::new();
    scene.calls(&[run("env; set; export -p; echo RAN")]);
    let mut play = scene.start_with("auto", |command| {
        command
            .env("TANDEM_API_KEY", KEY)
            .env("OPENAI_API_KEY", KEY);
        command
            .env("GITHUB_TOKEN", "ghp_CANARY")
            .env("AWS_SECRET_ACCESS_KEY", "CANARYAWS");
    });
    play.turn();
    assert!(play.results()[0].1.contains("RAN"), "{:?}", play.results());
    play.hides("CANARYAWS");
    play.hides("ghp_CANARY");
    play.hides_everywhere(KEY);
}

#[test]
fn secrets_002_mcp_servers_do_not_inherit_keys() {
    let scene = Scene::new();
    let (dump, part) = (scene.home("mcp.env"), scene.home("part"));
    let shell = format!(
        "env > {part}; mv {part} {dump}; exec cat",
        part = part.display(),
        dump = dump.display()
    );
    scene.write(
        &scene.home("config.toml"),
        format!("[mcp.dump]\ncommand = [\"sh\", \"-c\", {shell:?}]\n"),
    );
    scene.calls(&[]);
    let mut play = scene.start_with("ask", |command| {
        _ = command
            .env("OPENAI_API_KEY", KEY)
            .env("TANDEM_API_KEY", KEY);
    });
    play.turn();
    until("the server starts", || dump.exists());
    let seen = std::fs::read_to_string(dump).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains(KEY), "{seen}");
}

#[test]
fn secrets_005_a_key_that_an_endpoint_repeats_is_not_shown() {
    let scene = Scene::new();
    let error = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}") } });
    scene.say(json!([[{ "status": 401, "body": error }]]));
    let mut play = scene.start_with("auto", |command| _ = command.env("TANDEM_API_KEY", KEY));
    let answer = play.turn();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Incorrect API key"),
        "{answer}"
    );
    play.hides_everywhere(KEY);
}

#[test]
fn secrets_006_a_key_in_a_mentioned_file_or_in_instructions_is_not_sent() {
    let scene = Scene::new();
    for name in ["notes.md", "AGENTS.md"] {
        scene.write(&scene.ws(name), format!("the key of {name} is {KEY}\n"));
    }
    scene.calls(&[]);
    let mut play = scene.start_with("auto", |command| _ = command.env("TANDEM_API_KEY", KEY));
    let prompt = play.client.prompt(&play.session, "see @notes.md");
    play.end(prompt);
    let sent = scene.world.rehearsal().requests()[0].to_string();
    for name in ["notes.md", "AGENTS.md"] {
        let clean = format!("the key of {name} is [secret]");
        assert!(sent.contains(&clean), "{sent}");
    }
    play.hides_everywhere(KEY);
}

#[test]
fn secrets_007_only_the_person_can_read_what_is_stored() {
    let scene = Scene::new();
    let _play = scene.play("ask", &[]);
    let stored = everything(&scene.home("state"));
    assert!(stored.iter().any(|path| path.is_file()), "{stored:?}");
    for path in stored {
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

#[test]
fn secrets_011_a_key_is_not_sent_without_encryption() {
    let scene = Scene::new();
    let mut play = scene.start_with("ask", |command| {
        command
            .env("TANDEM_API_KEY", KEY)
            .env("TANDEM_BASE_URL", "http://192.0.2.1/v1");
    });
    let answer = play.turn();
    let told = answer["error"]["message"].as_str().unwrap();
    assert!(
        told.contains("https") || told.contains("insecure"),
        "{told}"
    );
}

#[test]
fn secrets_014_no_port_is_open() {
    let scene = Scene::new();
    let play = scene.play("ask", &[]);
    assert_eq!(open_ports(play.program.pid()), Vec::<String>::new());
}
