//! Loading a journal that is too long to be loaded as a whole.

use super::*;

/// The lines of a conversation of nine turns of about equal length.
fn nine_turns() -> Vec<u8> {
    let mut lines = Vec::new();
    for turn in 1..=9 {
        let text = format!("prompt {turn}");
        Record::Prompt {
            text: text.clone(),
            message: user(&text),
            attached: Vec::new(),
        }
        .write(&mut lines)
        .unwrap();
        Record::Message {
            message: Message::answer(format!("answer {turn}")).into(),
        }
        .write(&mut lines)
        .unwrap();
    }
    lines
}

#[tokio::test]
async fn the_last_turns_of_a_long_journal_are_shown() {
    let lines = nine_turns();
    let turn = lines.len() as u64 / 9;
    let kept = load_bytes(
        &lines,
        MemoryBounds {
            shown: turn * 2 + turn / 2,
            ..MemoryBounds::NONE
        },
    )
    .unwrap();
    assert_eq!(
        (kept.turns(), kept.messages.len(), kept.shown.turns_before),
        (9, 18, 7)
    );
    let events = events(kept.shown, &Images::default(), &[]);
    let numbers: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::UserMessage { turn, .. } => *turn,
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [8, 9], "what a review of them is asked for");
    let events: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    assert!(
        events[0]["message"]
            .as_str()
            .unwrap()
            .contains("first 7 turns"),
        "{events:?}"
    );
    assert_eq!(events[1]["content"], "prompt 8");
    // The journal does not record the end of its last turn.
    let [.., last, end] = &*events else {
        panic!("{events:?}")
    };
    assert_eq!(
        (&last["content"], &end["type"]),
        (&json!("answer 9"), &json!("interrupted"))
    );
}

#[test]
fn a_history_too_long_for_any_request_begins_with_a_later_prompt() {
    let lines = nine_turns();
    let turn = lines.len() as u64 / 9;
    let kept = load_bytes(
        &lines,
        MemoryBounds {
            history: turn * 5 + turn / 2,
            ..MemoryBounds::NONE
        },
    )
    .unwrap();
    assert_eq!(
        (
            kept.messages.len() + kept.forgotten,
            kept.messages.len() % 2
        ),
        (18, 0)
    );
    assert!(
        (4..=10).contains(&kept.messages.len()),
        "{:?}",
        kept.messages
    );
    assert_eq!(
        kept.messages[0],
        user(&format!("prompt {}", kept.forgotten / 2 + 1))
    );
    let kept = load_bytes(
        &lines,
        MemoryBounds {
            history: 1,
            ..MemoryBounds::NONE
        },
    )
    .unwrap();
    assert_eq!(
        kept.messages[0],
        user("prompt 9"),
        "the last prompt stays however long it is"
    );
}
