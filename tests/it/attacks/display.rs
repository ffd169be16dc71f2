//! Text from outside that could deceive its reader.

use std::net::TcpListener;

use serde_json::json;

use super::checks::{blocks_images, control};
use super::scene::{Scene, run, write};

#[test]
fn display_003_and_004_hidden_characters_of_a_command_are_shown() {
    for (id, command, shown) in [
        (
            "display-003",
            "echo \"\u{202e};WNP hcuot\"; touch PWN",
            ["202e", "touch PWN"].as_slice(),
        ),
        (
            "display-004",
            "touch\u{200b} PWN\u{2060} \u{e0041}",
            &["200b", "2060", "e0041"],
        ),
    ] {
        let asked = Scene::new().play("ask", &[run(command)]).asked().concat();
        assert!(
            shown
                .iter()
                .all(|word| asked.to_lowercase().contains(&word.to_lowercase())),
            "{id}: {asked:?}"
        );
        assert!(
            !asked.contains(['\u{202e}', '\u{200b}', '\u{2060}', '\u{e0041}']),
            "{id}: {asked:?}"
        );
    }
}

#[test]
fn display_008_escape_sequences_of_the_model_are_removed() {
    let scene = Scene::new();
    scene.say(json!([[{ "text": "\u{1b}]52;c;Y3VybCBldmls\u{7} \u{1b}]8;;http://evil\u{7}x\u{1b}]8;;\u{7}" }]]));
    let mut play = scene.start("auto");
    play.turn();
    assert!(play.said().contains("http://evil"), "{}", play.said());
    assert_eq!(control(&play.heard), None);
}

#[test]
fn display_009_escape_sequences_of_a_command_are_removed() {
    let scene = Scene::new();
    let play = scene.play(
        "auto",
        &[run("printf \"\\033]0;pwn\\007\\033[31mred\\033c\"")],
    );
    assert!(play.results()[0].1.contains("red"), "{:?}", play.results());
    assert_eq!(control(&play.heard), None);
}

#[test]
fn display_010_pictures_in_an_answer_are_not_fetched() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    scene.say(
        json!([[{ "text": format!("![x](http://{}/?d=CANARY)", listener.local_addr().unwrap()) }]]),
    );
    scene.start("auto").turn();
    assert!(listener.accept().is_err(), "somebody came");
    let chat = concat!(env!("CARGO_MANIFEST_DIR"), "/editors/vscode/src/chat.ts");
    assert!(blocks_images(&std::fs::read_to_string(chat).unwrap()));
}

#[test]
fn display_015_the_difference_shown_is_what_is_written() {
    let scene = Scene::new();
    scene.calls(&[write("a.txt", "a\u{200b}\r\n\u{feff}b\0c \n")]);
    let mut play = scene.start("ask");
    play.answer = "allow_once";
    play.turn();
    let request = play
        .heard
        .iter()
        .find(|message| message["method"] == "session/request_permission")
        .unwrap();
    let content = request["params"]["toolCall"]["content"].as_array().unwrap();
    let shown = content.iter().find(|item| item["type"] == "diff").unwrap();
    assert_eq!(
        std::fs::read_to_string(scene.ws("a.txt")).unwrap(),
        shown["newText"].as_str().unwrap()
    );
}
