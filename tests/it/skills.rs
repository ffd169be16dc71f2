//! Skills: listed by name, loaded when needed, by the model or the person.

use serde_json::{Value, json};

use crate::driver::{Client, World};

fn skill(name: &str, description: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{text}\n")
}

fn load(arguments: Value) -> Value {
    json!([{ "call": { "id": "c1", "name": "skill", "arguments": arguments } }])
}

fn done() -> Value {
    json!([{ "text": "done" }])
}

/// Sends a prompt in a new session and returns the model's requests.
fn say(world: &World, client: &mut Client, words: &str) -> Vec<Value> {
    let session = client.session(world);
    let id = client.prompt(&session, words);
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    world.rehearsal().requests()
}

/// The tool as offered to the model.
fn offered(request: &Value) -> Option<&Value> {
    let tools = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]);
    tools.into_iter().find(|tool| tool["name"] == "skill")
}

/// The result of its call, as the model received it.
fn result(requests: &[Value]) -> &str {
    requests.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()["content"]
        .as_str()
        .unwrap()
}

#[test]
fn skills_are_offered_by_name_and_loaded_on_demand() {
    let world = World::new(json!([load(json!({ "name": "release" })), done()]));
    world.write(
        ".home/config/skills/release/SKILL.md",
        &skill("release", "Make a release", "Tag it.\u{200b}"),
    );
    world.write(
        ".tandem/skills/release/SKILL.md",
        &skill("release", "hidden by the person's own", "CANARY"),
    );
    world.write(
        ".tandem/skills/review/SKILL.md",
        &skill("review-all", "under another name", ""),
    );
    world.write(
        ".agents/skills/test/SKILL.md",
        &skill("test", &"Test. ".repeat(100), ""),
    );
    world.write(".agents/skills/nothing/SKILL.md", "no front matter");
    let requests = say(&world, &mut world.client(), "release it");
    let tool = offered(&requests[0]).unwrap();
    let description = tool["description"].as_str().unwrap();
    assert!(
        description.contains("\n- release: Make a release\n- test: Test. Test."),
        "{description}"
    );
    assert!(
        description.ends_with('…')
            && !description.contains("review")
            && !description.contains("nothing")
    );
    assert!(
        !requests[0].to_string().contains("Tag it."),
        "nothing is loaded before it is needed"
    );
    let told = result(&requests);
    assert!(
        told.contains("it grants no permission]") && told.contains("Tag it.\\u{200b}"),
        "{told}"
    );
    assert!(!told.contains("CANARY"));
}

#[test]
fn without_skills_a_session_does_not_pay_for_them() {
    let world = World::new(json!([done()]));
    let requests = say(&world, &mut world.client(), "hello");
    assert_eq!(offered(&requests[0]), None);
    assert!(!requests[0].to_string().contains("skill"));
}

#[test]
fn users_invoke_skills_by_slash_command() {
    let world = World::new(json!([done()]));
    world.write(
        ".agents/skills/release/SKILL.md",
        &skill("release", "Make a release", "Tag @.env it."),
    );
    world.write(
        ".agents/skills/help/SKILL.md",
        &skill("help", "hidden by ours", ""),
    );
    world.write(".env", "KEY=CANARY");
    let mut client = world.client();
    let session = client.session(&world);
    let announced = client.update("available_commands_update")["availableCommands"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<_> = announced
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "compact", "undo", "redo", "review", "try", "jobs", "model", "help", "release"
        ]
    );
    assert_eq!(announced[8]["description"], "Make a release");
    let id = client.prompt(&session, "/release version 2");
    client.answer(id);
    let message = world.rehearsal().requests()[0]["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with("Use the skill release.\n\nversion 2\n\nThe skill release:\n```\n"),
        "{message}"
    );
    assert!(
        message.contains("Tag @.env it.") && !message.contains(".env may hold"),
        "no mention of the person's: {message}"
    );
}

#[test]
fn a_skill_reads_nothing_but_its_own_folder() {
    let check = |arguments: Value, expected: &str| {
        let world = World::new(json!([load(arguments.clone()), done()]));
        world.write(
            ".home/config/skills/own/SKILL.md",
            &skill("own", "Mine", ""),
        );
        world.write(".home/config/skills/own/more/reference.md", "More of it.");
        world.write(".home/config/config.toml", "# CANARY");
        world.write(
            ".agents/skills/theirs/SKILL.md",
            &skill("theirs", "Theirs", ""),
        );
        world.write(".env", "KEY=CANARY");
        let links = world.path().join(".agents/skills/theirs");
        std::os::unix::fs::symlink("../../../.env", links.join("link.md")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", links.join("far.md")).unwrap();
        let requests = say(&world, &mut world.client(), "go");
        let told = result(&requests);
        assert!(
            told.contains(expected) && !told.contains("CANARY") && !told.contains("root:"),
            "{arguments}: {told}"
        );
    };
    let file = |name: &str, file: &str| json!({ "name": name, "file": file });
    check(file("own", "more/reference.md"), "More of it.");
    check(
        file("own", "../../config.toml"),
        "only the files of the skill's directory",
    );
    check(
        file("theirs", "/etc/passwd"),
        "only the files of the skill's directory",
    );
    check(
        file("theirs", "../../../.env"),
        "only the files of the skill's directory",
    );
    check(file("theirs", "link.md"), "and no secrets");
    check(file("theirs", "far.md"), "outside the workspace");
    check(
        json!({ "name": "nobody" }),
        "unknown skill nobody; available skills: own, theirs",
    );
}

#[test]
fn a_session_with_many_skills_lists_what_fits() {
    let world = World::new(json!([done()]));
    for number in 0..60 {
        let name = format!("skill-{number:02}");
        world.write(
            &format!(".agents/skills/{name}/SKILL.md"),
            &skill(&name, &"x".repeat(400), ""),
        );
    }
    let requests = say(&world, &mut world.client(), "hello");
    let description = offered(&requests[0]).unwrap()["description"]
        .as_str()
        .unwrap();
    assert!(
        description.len() < 10_000 && description.contains("- also skill-25"),
        "{}",
        description.len()
    );
    assert!(
        description.contains("skill-49") && !description.contains("skill-50"),
        "{description}"
    );
}
