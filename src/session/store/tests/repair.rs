//! Loading a journal that ends midway, is damaged, or is from another version.

use super::*;

#[track_caller]
fn repaired(records: &[Record], expected: &[Arc<Message>]) {
    let mut lines = Vec::new();
    for record in records {
        record.write(&mut lines).unwrap();
    }
    let kept = load_bytes(&lines, MemoryBounds::NONE).unwrap();
    let shape = |message: &Arc<Message>| match &**message {
        Message::Results { results } => results
            .iter()
            .map(|result| result.call_id.clone())
            .collect::<Vec<_>>()
            .join(","),
        Message::User { .. } => "user".to_owned(),
        Message::Assistant(_) => "assistant".to_owned(),
    };
    let shapes = |messages: &[Arc<Message>]| messages.iter().map(shape).collect::<Vec<_>>();
    assert_eq!(shapes(&kept.messages), shapes(expected));
}

#[test]
fn each_call_has_exactly_one_result() {
    let prompt = || Record::Prompt {
        text: String::new(),
        message: user("x"),
        attached: Vec::new(),
    };
    let message = |message: Arc<Message>| Record::Message { message };
    let (calls, both) = (answer(&["a", "b"]), results(&["a", "b"]));
    let whole = [user("x"), calls.clone(), both.clone()];
    repaired(
        &[prompt(), message(calls.clone()), message(both.clone())],
        &whole,
    );
    repaired(&[prompt(), message(calls.clone())], &whole);
    repaired(
        &[prompt(), message(calls.clone()), message(results(&["a"]))],
        &whole,
    );
    repaired(
        &[
            prompt(),
            message(calls.clone()),
            message(both.clone()),
            message(both.clone()),
        ],
        &whole,
    );
    repaired(&[prompt(), message(both.clone())], &[user("x")]);
    let then = [user("x"), calls.clone(), both, user("x")];
    repaired(&[prompt(), message(calls), prompt()], &then);
}

#[test]
fn compacted_history_stays_compacted_but_is_shown_in_full() {
    let said = |message: Arc<Message>| Record::Message { message };
    let records = [
        said(user("a")),
        said(answer(&["1"])),
        said(results(&["1"])),
        Record::Compacted {
            messages: vec![user("in short"), answer(&["2"])],
        },
        said(results(&["2"])),
        said(user("and")),
    ];
    repaired(
        &records,
        &[
            user("in short"),
            answer(&["2"]),
            results(&["2"]),
            user("and"),
        ],
    );
}

#[test]
fn finished_and_interrupted_calls_are_distinguished() {
    let call = |id: &str| Call {
        id: id.to_owned(),
        title: String::new(),
        kind: ToolKind::Edit,
        locations: Vec::new(),
        changed: ChangeSet::default(),
        exit: None,
        rejected: false,
    };
    let mut lines = Vec::new();
    Record::Message {
        message: answer(&["a", "b"]),
    }
    .write(&mut lines)
    .unwrap();
    Record::Call(call("a")).write(&mut lines).unwrap();
    let kept = load_bytes(&lines, MemoryBounds::NONE).unwrap();
    let Some(Message::Results { results }) = kept.repair.as_deref() else {
        panic!("{kept:?}")
    };
    assert!(results[0].content.starts_with("it ran"), "{results:?}");
    assert!(
        results[1].content.starts_with("tandem was stopped"),
        "{results:?}"
    );
}

#[test]
fn damaged_lines_are_skipped_and_newer_formats_refused() {
    let mut lines =
        b"{\"type\":\"prompt\",\"text\":\"a\",\"mess\n{\"type\":\"later\",\"x\":1}\n".to_vec();
    Record::Prompt {
        text: "b".to_owned(),
        message: user("b"),
        attached: Vec::new(),
    }
    .write(&mut lines)
    .unwrap();
    let kept = load_bytes(&lines, MemoryBounds::NONE).unwrap();
    assert_eq!((kept.messages, kept.unreadable), (vec![user("b")], 1));
    let head = Head {
        version: VERSION + 1,
        id: "s".to_owned(),
        folders: Vec::new(),
        title: String::new(),
        environment: String::new(),
        chat: None,
    };
    let mut lines = Vec::new();
    Record::Session(head).write(&mut lines).unwrap();
    assert_eq!(
        load_bytes(&lines, MemoryBounds::NONE).unwrap_err(),
        TooNew(VERSION + 1)
    );
}

#[tokio::test]
async fn a_partial_line_is_cut_off_and_reported() {
    let home = tempfile::tempdir().unwrap();
    keep(home.path(), "s").await;
    let path = folder(home.path()).join("s.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"message\",\"mes");
    std::fs::write(&path, text).unwrap();
    let mut again = journal(home.path(), "s");
    let kept = again.open().await.unwrap();
    assert_eq!((kept.messages.len(), kept.unreadable), (3, 1));
    again.flush().await.unwrap();
    drop(again);
    assert_eq!(
        journal(home.path(), "s").open().await.unwrap().unreadable,
        0
    );
}
