//! The next edit: prompts in the models' training formats, one change from an answer, and what is neither sent nor suggested.

use serde_json::{Value, json};

use super::{ask, ask_at, client, document, warnings};
use crate::driver::{Client, World};

const TEXT: &str = "fn area(side: u32) -> u32 {\n    side * side\n}\n";
/// The text after the person renamed the parameter.
const RENAMED: &str = "fn area(width: u32) -> u32 {\n    side * side\n}\n";
const DONE: &str = "fn area(width: u32) -> u32 {\n    width * width\n}\n";

/// The response of a server with OpenAI-compatible completions.
fn completed(text: &str) -> Value {
    document(json!({ "choices": [{ "text": text, "finish_reason": "stop" }] }))
}

fn opened(script: Value, completion: &Value) -> (World, Client, String) {
    let world = World::new(script);
    let mut completion = completion.clone();
    completion["debounce-ms"] = json!(0);
    completion["next-edit"] = json!(true);
    let provider = completion["model"]
        .as_str()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let mut client = client(&world, &provider, completion);
    let uri = world.uri("src/main.rs");
    client.open(&uri, TEXT);
    (world, client, uri)
}

/// Uses one of Sweep's small models.
fn sweep(script: Value) -> (World, Client, String) {
    opened(script, &json!({ "model": "vllm/sweep-next-edit-1.5B" }))
}

/// Replaces characters of a line.
fn edit(client: &mut Client, uri: &str, (line, from, until): (u32, u32, u32), text: &str) {
    let at = |character: u32| json!({ "line": line, "character": character });
    let change = json!({ "range": { "start": at(from), "end": at(until) }, "text": text });
    let document = json!({ "uri": uri, "version": client.seen.len() + 2 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [change] }),
    );
}

fn rename(client: &mut Client, uri: &str) {
    edit(client, uri, (0, 8, 12), "width");
}

/// The range and the text of the suggestion.
fn suggested(client: &mut Client, id: i64) -> Option<(Value, String)> {
    let answer = client.answer(id);
    let item = answer["result"]["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .first()?;
    Some((
        item["range"].clone(),
        item["insertText"].as_str().unwrap().to_owned(),
    ))
}

fn lines(from: u32, until: u32) -> Value {
    json!({ "start": { "line": from, "character": 0 }, "end": { "line": until, "character": 0 } })
}

#[test]
fn each_model_gets_the_prompt_it_was_trained_with() {
    let original = "original:\nfn area(side: u32) -> u32 {\n    side * side\n}";
    let updated = "updated:\nfn area(width: u32) -> u32 {\n    side * side\n}";
    let diff = "@@ -1,3 +1,3 @@\n-fn area(side: u32) -> u32 {\n+fn area(width: u32) -> u32 {\n     side * side\n }";
    let marked = |mark: &str| RENAMED.replacen("    side", &format!("    {mark}side"), 1);
    let (here, user) = (marked("<|user_cursor_is_here|>"), marked("<|user_cursor|>"));
    let history =
        format!("<filename>edit_history\n--- a/src/main.rs\n+++ b/src/main.rs\n{diff}\n\n");
    let instruction = "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and then \
        rewrite an excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into \
        account the cursor location.\n\n";
    let cases = [
        (
            "sweep-next-edit-1.5B",
            format!(
                "<|file_sep|>src/main.rs.diff\n{original}\n{updated}\n<|file_sep|>original/src/main.rs\n{TEXT}\
                <|file_sep|>current/src/main.rs\n{RENAMED}<|file_sep|>updated/src/main.rs\n"
            ),
            DONE.to_owned(),
        ),
        (
            "zeta",
            format!(
                "{instruction}### User Edits:\n\nUser edited src/main.rs:\n```diff\n{diff}\n```\n\n### User Excerpt:\n\n\
                ```src/main.rs\n<|start_of_file|>\n<|editable_region_start|>\n{here}<|editable_region_end|>\n\n```\n\n\
                ### Response:\n"
            ),
            format!("<|editable_region_start|>\n{DONE}<|editable_region_end|>"),
        ),
        (
            "zed-industries/zeta-2",
            format!(
                "<[fim-suffix]>\n<[fim-prefix]>{history}<filename>src/main.rs\n<<<<<<< CURRENT\n{user}=======\n<[fim-middle]>"
            ),
            format!("{DONE}>>>>>>> UPDATED\n"),
        ),
        (
            "zeta-2.1",
            format!(
                "<[fim-suffix]>\n<[fim-prefix]>{history}<filename>src/main.rs\n<|marker_1|>{user}<|marker_2|>\n<[fim-middle]>"
            ),
            format!(
                "<|marker_1|>{}<|marker_2|>",
                DONE.replace("width * width", "width<|user_cursor|> * width")
            ),
        ),
    ];
    for (model, prompt, answer) in cases {
        let completion = json!({ "model": format!("vllm/{model}") });
        let (world, mut client, uri) = opened(json!([completed(&answer)]), &completion);
        rename(&mut client, &uri);
        let id = ask(&mut client, &uri, 4);
        let expected = (lines(1, 2), "    width * width\n".to_owned());
        assert_eq!(suggested(&mut client, id), Some(expected), "{model}");
        let request = &world.rehearsal().requests()[0];
        assert_eq!(request["prompt"].as_str().unwrap(), prompt, "{model}");
        assert_eq!(world.rehearsal().paths(), ["/v1/completions"]);
    }
}

#[test]
fn ollama_gets_the_prompt_as_it_is_and_the_format_can_be_chosen() {
    let completion = json!({ "model": "ollama/mine", "edit-format": "sweep" });
    let answer = document(json!({ "response": DONE, "done_reason": "stop" }));
    let (world, mut client, uri) = opened(json!([answer]), &completion);
    rename(&mut client, &uri);
    let id = ask(&mut client, &uri, 4);
    assert!(suggested(&mut client, id).is_some());
    let request = &world.rehearsal().requests()[0];
    assert_eq!(
        (&request["raw"], &request["options"]["stop"]),
        (&json!(true), &json!(["<|file_sep|>"]))
    );
    assert_eq!(world.rehearsal().paths(), ["/api/generate"]);
}

#[test]
fn a_model_that_is_not_known_for_edits_is_named() {
    let world = World::new(json!([]));
    let mut client = world.stranger();
    let mut params = world.handshake(json!({ "textDocument": { "inlineCompletion": {} } }));
    params["initializationOptions"] =
        json!({ "completion": { "model": "llamacpp/qwen2.5-coder", "next-edit": true } });
    let answer = client.call("initialize", params);
    assert_eq!(
        answer["result"]["capabilities"].get("inlineCompletionProvider"),
        None
    );
    client.notify("initialized", json!({}));
    let id = ask(&mut client, &world.uri("main.rs"), 0);
    assert_eq!(client.answer(id)["error"]["code"], -32601);
    let warnings = warnings(&client);
    assert!(
        warnings[0].contains("`llamacpp/qwen2.5-coder`") && warnings[0].contains("`edit-format`"),
        "{warnings:?}"
    );
}

#[test]
fn an_edit_is_known_until_the_text_changes_and_an_insertion_is_typed_along() {
    let script = json!([
        completed(DONE),
        completed(&DONE.replace("}\n", "} // done\n"))
    ]);
    let (world, mut client, uri) = sweep(script);
    rename(&mut client, &uri);
    for character in [4, 6] {
        let id = ask(&mut client, &uri, character);
        assert_eq!(suggested(&mut client, id).unwrap().0, lines(1, 2));
    }
    assert_eq!(world.rehearsal().requests().len(), 1);
    edit(&mut client, &uri, (1, 4, 15), "width * width");
    edit(&mut client, &uri, (2, 1, 1), " ");
    let position = json!({ "line": 2, "character": 2 });
    let params = json!({ "textDocument": { "uri": uri }, "position": position, "context": { "triggerKind": 2 } });
    let id = client.ask("textDocument/inlineCompletion", params);
    let cursor = json!({ "start": position, "end": position });
    assert_eq!(
        suggested(&mut client, id),
        Some((cursor, "// done".to_owned()))
    );
    edit(&mut client, &uri, (2, 2, 2), "// ");
    let params = json!({ "textDocument": { "uri": uri }, "position": { "line": 2, "character": 5 }, "context": { "triggerKind": 2 } });
    let id = client.ask("textDocument/inlineCompletion", params);
    assert_eq!(suggested(&mut client, id).unwrap().1, "done");
    assert_eq!(world.rehearsal().requests().len(), 2);
}

#[test]
fn lines_are_counted_in_the_document_and_positions_in_its_encoding() {
    let script = json!([
        completed("// äöü 🎈\nlet second = 2;"),
        completed("// äöü 🎈\nlet second = 2;\nlet third = 3;")
    ]);
    let (_world, mut client, uri) = sweep(script);
    let other = uri.replace("main", "other");
    client.open(&other, "// äöü 🎈\r\nlet one = 1;");
    edit(&mut client, &other, (0, 0, 0), "//");
    edit(&mut client, &other, (0, 0, 2), "");
    edit(&mut client, &other, (1, 4, 7), "uno");
    let id = ask(&mut client, &other, 7);
    let range =
        json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 12 } });
    assert_eq!(
        suggested(&mut client, id),
        Some((range, "let second = 2;".to_owned()))
    );
    edit(&mut client, &other, (1, 0, 12), "let second = 2;");
    let id = ask(&mut client, &other, 4);
    let end = json!({ "line": 1, "character": 15 });
    assert_eq!(
        suggested(&mut client, id),
        Some((
            json!({ "start": end, "end": end }),
            "\nlet third = 3;".to_owned()
        ))
    );
}

#[test]
fn nothing_is_suggested_that_changes_nothing_or_undoes_an_edit() {
    for (what, answer) in [
        ("the same", RENAMED),
        (
            "nothing but blanks",
            "fn area(width: u32) -> u32 {  \n\n    side * side\n}\n",
        ),
        ("the text before", TEXT),
        (
            "a part of it",
            "fn area(wide: u32) -> u32 {\n    side * side\n}\n",
        ),
        ("an end that is left out", "fn area(width: u32) -> u32 {\n"),
        (
            "an end too early",
            "fn area(width: u32) -> u32 {\n    side * side\n",
        ),
        (
            "an end too early behind a change",
            "fn area(width: u32) -> u32 {\n    width\n",
        ),
        ("nothing", ""),
    ] {
        let (world, mut client, uri) = sweep(json!([completed(answer)]));
        edit(&mut client, &uri, (0, 8, 12), "widthx");
        edit(&mut client, &uri, (0, 8, 14), "width");
        let id = ask(&mut client, &uri, 4);
        assert_eq!(suggested(&mut client, id), None, "{what}");
        assert_eq!(world.rehearsal().requests().len(), 1, "{what}");
    }
    let cut = document(json!({ "choices": [{ "text": DONE, "finish_reason": "length" }] }));
    let (_world, mut client, uri) = sweep(json!([cut]));
    rename(&mut client, &uri);
    let id = ask(&mut client, &uri, 4);
    assert_eq!(
        suggested(&mut client, id),
        None,
        "an answer that was cut off"
    );
}

#[test]
fn an_answer_for_a_text_that_has_changed_is_dropped() {
    let answer = json!({ "choices": [{ "text": DONE }] }).to_string();
    let (world, mut client, uri) =
        sweep(json!([[{ "gate": "typed" }, { "raw": answer }], completed(DONE)]));
    rename(&mut client, &uri);
    let id = ask(&mut client, &uri, 4);
    world.wait(world.rehearsal().requested(1));
    edit(&mut client, &uri, (2, 1, 1), "\n");
    // Answered once the preceding change has been read.
    client.call("tandem/nothing", json!({}));
    world.rehearsal().open("typed");
    assert_eq!(suggested(&mut client, id), None);
}

#[test]
fn edits_of_files_with_secrets_and_of_other_folders_are_not_sent() {
    let (world, mut client, uri) = sweep(json!([completed(TEXT)]));
    let id = ask(&mut client, &uri, 4);
    assert_eq!(suggested(&mut client, id), None);
    assert_eq!(world.rehearsal().connections(), 0, "nothing was edited");
    let elsewhere = "file:///elsewhere/lib.rs".to_owned();
    for (place, text) in [
        (world.uri(".env"), "A=1\n"),
        (elsewhere, "fn far() {}\n"),
        (world.uri("src/lib.rs"), "fn near() {}\n"),
    ] {
        client.open(&place, text);
        edit(&mut client, &place, (0, 0, 1), "canary");
        if place.ends_with("lib.rs") {
            continue;
        }
        let id = ask_at(&mut client, &place, 0, 1);
        assert_eq!(suggested(&mut client, id), None);
    }
    let id = ask(&mut client, &uri, 4);
    assert_eq!(suggested(&mut client, id), None);
    let sent = world.rehearsal().requests()[0]["prompt"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        sent.contains(
            "<|file_sep|>src/lib.rs.diff\noriginal:\nfn near() {}\nupdated:\ncanaryn near() {}"
        ),
        "{sent}"
    );
    assert!(
        !sent.contains("canary=1") && !sent.contains("far()"),
        "{sent}"
    );
    // A secret in the lines themselves would return as a mask.
    edit(&mut client, &uri, (0, 0, 0), "// sk-canary-canary\n");
    let id = ask(&mut client, &uri, 4);
    assert_eq!(suggested(&mut client, id), None);
    assert_eq!(world.rehearsal().requests().len(), 1);
}
