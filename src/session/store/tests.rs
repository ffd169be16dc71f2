#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the files themselves"
)]

mod long;
mod repair;

use serde_json::{Map, json};

use super::load::{Kept, MemoryBounds, TooNew, load};
use super::*;
use crate::agent::Spent;
use crate::agent::event::Termination;
use crate::changes::change_set::{self, EntryChange};
use crate::changes::checkpoint::{Checkpoints, Journaled};
use crate::changes::{Images, images};
use crate::domain::{Charset, FileDiff, Stored, Usage};
use crate::model::{
    Api, Arguments, AssistantMessage, Effort, Endpoint, Provider, ToolCall, ToolResult,
};
use crate::session::Undoable;
use crate::workspace::Workspace;
use crate::workspace::state::address;

/// A workspace without directories; texts are stored whatever files they belong to.
fn workspace() -> Workspace {
    let documents = crate::workspace::Documents::new(crate::text::Encoding::Utf16);
    Workspace::new(Vec::new(), documents, Arc::new(crate::workspace::NoEditor))
}

fn entry(message: Arc<Message>) -> Arc<Entry> {
    let endpoint = Endpoint::new("rehearsal", Api::Chat, "", "script");
    Entry::new(message, &Provider::http(endpoint))
}

fn load_bytes(bytes: &[u8], limits: MemoryBounds) -> Result<Kept, TooNew> {
    load(
        &mut std::str::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(str::to_owned),
        limits,
    )
}

fn user(text: &str) -> Arc<Message> {
    Message::text(text).into()
}

fn answer(calls: &[&str]) -> Arc<Message> {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "edit_file".to_owned(),
        arguments: Arguments::Object(Map::new()),
    };
    let calls = calls.iter().map(call).collect();
    Message::Assistant(AssistantMessage {
        text: "well".to_owned(),
        calls,
        ..AssistantMessage::default()
    })
    .into()
}

fn results(ids: &[&str]) -> Arc<Message> {
    let result = |id: &&str| ToolResult {
        call_id: (*id).to_owned(),
        content: "ok".to_owned(),
        ..ToolResult::default()
    };
    Message::Results {
        results: ids.iter().map(result).collect(),
    }
    .into()
}

fn result() -> ToolOutput {
    ToolOutput {
        content: "ok".to_owned(),
        ..ToolOutput::default()
    }
}

fn held() -> Held {
    Held {
        model: "some/model".to_owned(),
        effort: Some(Effort::Low),
    }
}

fn done() -> AgentEvent {
    AgentEvent::Done {
        answer: None,
        termination_reason: Termination::EndTurn,
        iterations: 1,
        usage: Usage::default(),
    }
}

fn journal(home: &std::path::Path, id: &str) -> Journal {
    Journal::new(Some(folder(home)), id.into(), vec!["/w".into()], None)
}

/// A conversation of one turn with one call.
async fn keep(home: &std::path::Path, id: &str) {
    let mut journal = journal(home, id);
    journal.prompt(
        "  \nplease\nmore",
        Vec::new(),
        &entry(user("please (and what came along)")),
        held(),
        "",
    );
    journal.event(&AgentEvent::ReasoningDelta {
        content: "hm".to_owned(),
    });
    journal.message(&entry(answer(&["a"])));
    journal.call_ended("a", "edit_file", &result(), ChangeSet::default());
    journal.message(&entry(results(&["a"])));
    let (spent, tokens, cost) = (Spent::default(), 1, Some(0.5));
    journal.note(Record::Used {
        spent,
        tokens,
        cost,
    });
    journal.event(&done());
    journal.flush().await.unwrap();
    journal.sync().await;
    journal.synced().await;
}

#[tokio::test]
async fn a_conversation_continues_where_it_ended() {
    let home = tempfile::tempdir().unwrap();
    keep(home.path(), "s1").await;
    let mut again = journal(home.path(), "s1");
    let kept = again.open().await.unwrap();
    assert_eq!(
        kept.messages,
        [
            user("please (and what came along)"),
            answer(&["a"]),
            results(&["a"])
        ]
    );
    assert_eq!(
        (kept.turns(), kept.cost, kept.unreadable, kept.repair),
        (1, Some(0.5), 0, None)
    );
    again.mode(Mode::Edit);
    again.prompt("go on", Vec::new(), &entry(user("go on")), held(), "");
    again.flush().await.unwrap();
    drop(again);
    let kept = journal(home.path(), "s1").open().await.unwrap();
    assert_eq!(
        (kept.turns(), kept.mode, kept.messages.len()),
        (2, Some(Mode::Edit), 4)
    );
}

#[tokio::test]
async fn earlier_journals_count_the_usage_of_each_turn() {
    let home = tempfile::tempdir().unwrap();
    keep(home.path(), "s1").await;
    let bytes = std::fs::read(folder(home.path()).join("s1.jsonl")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let ended = r#""type":"end","usage":{"input":7,"output":2,"cost":0.25},"filled":9"#;
    let (new, old): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.contains("\"used\""));
    assert_eq!(new.len(), 1, "{text}");
    let earlier = old.join("\n").replace(r#""type":"end""#, ended) + "\n";
    let load = |text: &str| load_bytes(text.as_bytes(), MemoryBounds::CONTINUED).unwrap();
    let kept = load(&earlier);
    assert_eq!(
        (
            kept.spent.iterations,
            kept.spent.tokens,
            kept.tokens,
            kept.cost
        ),
        (1, 9, 9, Some(0.25)),
        "{earlier}"
    );
    // What counts itself afterwards has counted them.
    let kept = load(&format!(
        "{earlier}{}\n{}",
        new[0],
        earlier.lines().last().unwrap()
    ));
    assert_eq!((kept.tokens, kept.cost), (1, Some(0.5)));
}

/// A call that edited a file, recorded and journaled as in a session.
async fn edited(journal: &mut Journal, checkpoints: &mut Checkpoints, id: &str, diff: FileDiff) {
    let preview = Preview::titled("Edit a");
    journal.event(&AgentEvent::ToolPreview {
        call_id: id.to_owned(),
        kind: ToolKind::Edit,
        preview,
    });
    let (changed, problem) = checkpoints.record(&workspace(), 1, &[diff], None).await;
    assert_eq!(problem, None);
    journal.call_ended(id, "edit_file", &result(), changed);
}

#[tokio::test]
async fn changes_are_journaled_with_images_of_both_states() {
    let home = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(
        Some(images::folder(home.path())),
        tokio::sync::watch::channel(Undoable::default()).0,
    );
    let diff = |old: &str, new: &str| FileDiff::new("/w/a".into(), Some(old.into()), new.into());
    let stored = Stored {
        charset: Charset::Latin1,
        bom: false,
        mode: Some(0o600),
        new_folders: 0,
    };
    let removed = FileDiff {
        before: Some(stored),
        ..diff("caf\u{e9}\n", "")
    };
    let mut journal = journal(home.path(), "s");
    journal.prompt("do it", Vec::new(), &entry(user("do it")), held(), "");
    edited(&mut journal, &mut checkpoints, "a", diff("1\n", "2\n")).await;
    edited(&mut journal, &mut checkpoints, "b", removed).await;
    journal.flush().await.unwrap();
    drop(journal);
    let kept = super::list::open(&folder(home.path()), "s")
        .await
        .unwrap()
        .1;
    let file = |bytes: &[u8], mode: u32| {
        let image = address(bytes);
        let stored = std::fs::read(images::folder(home.path()).join(&image)).unwrap();
        assert_eq!(stored, bytes);
        change_set::Entry::File {
            image,
            size: bytes.len() as u64,
            mode,
        }
    };
    let changed = |before, after| {
        let change = EntryChange {
            is_edit: true,
            ..EntryChange::new("/w/a".into(), before, after)
        };
        let files = vec![change];
        Journaled::Changed(
            1,
            ChangeSet {
                files,
                git: Vec::new(),
            },
        )
    };
    assert_eq!(
        changes(&kept.shown).collect::<Vec<_>>(),
        [
            changed(file(b"1\n", 0o644), file(b"2\n", 0o644)),
            changed(file(b"caf\xe9\n", 0o600), change_set::Entry::Absent),
        ]
    );
}

#[tokio::test]
async fn replay_shows_what_was_shown() {
    let home = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(
        Some(images::folder(home.path())),
        tokio::sync::watch::channel(Undoable::default()).0,
    );
    let diff = FileDiff::new("/w/a".into(), Some("1".into()), "2".into());
    let mut journal = journal(home.path(), "s");
    journal.prompt("do it", Vec::new(), &entry(user("do it")), held(), "");
    journal.event(&AgentEvent::ReasoningDelta {
        content: "hm".to_owned(),
    });
    journal.message(&entry(answer(&["a"])));
    edited(&mut journal, &mut checkpoints, "a", diff).await;
    journal.message(&entry(results(&["a"])));
    journal.flush().await.unwrap();
    drop(journal);
    let kept = super::list::open(&folder(home.path()), "s")
        .await
        .unwrap()
        .1;
    let images = checkpoints.images().await;
    let events = events(kept.shown, &images, &["/w".into()]);
    let events: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let expected = [
        "user_message",
        "iteration_start",
        "reasoning_delta",
        "text_delta",
        "tool_call_start",
        "tool_call_complete",
        "tool_preview",
        "tool_execution_end",
        // The journal does not record the end of this turn.
        "interrupted",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[4]["kind"], "edit");
    assert_eq!(events[6]["preview"]["title"], "Edit a");
    assert_eq!(
        events[7]["result"]["diffs"],
        json!([{ "path": "/w/a", "old_text": "1", "new_text": "2" }])
    );
}

#[tokio::test]
async fn a_journal_is_locked_while_it_is_open() {
    let home = tempfile::tempdir().unwrap();
    keep(home.path(), "s").await;
    let mut first = journal(home.path(), "s");
    first.open().await.unwrap();
    assert!(matches!(
        journal(home.path(), "s").open().await,
        Err(StoreError::Held)
    ));
    assert!(Sessions::new(home.path()).remove("s").await.is_err());
    drop(first);
    Sessions::new(home.path()).remove("s").await.unwrap();
    assert!(matches!(
        journal(home.path(), "s").open().await,
        Err(StoreError::Unknown(_))
    ));
    for name in ["", "../s", "a/b", "nope"] {
        assert!(
            matches!(
                journal(home.path(), name).open().await,
                Err(StoreError::Unknown(_))
            ),
            "{name}"
        );
    }
}

#[tokio::test]
async fn lists_are_paged_and_sorted_by_last_use() {
    let home = tempfile::tempdir().unwrap();
    let sessions = Sessions::new(home.path());
    assert_eq!(
        sessions.page(None, None, 2).await.unwrap(),
        (Vec::new(), false)
    );
    let times = [("a", 1), ("b", 3), ("c", 2)];
    for (id, second) in times {
        keep(home.path(), id).await;
        let file = std::fs::File::options()
            .append(true)
            .open(folder(home.path()).join(format!("{id}.jsonl")))
            .unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(second))
            .unwrap();
    }
    let ids = |page: &[Listed]| {
        page.iter()
            .map(|listed| listed.id.clone())
            .collect::<Vec<_>>()
    };
    let (page, more) = sessions.page(None, None, 2).await.unwrap();
    assert_eq!(
        (ids(&page), more),
        (vec!["b".to_owned(), "c".to_owned()], true)
    );
    assert_eq!(
        (page[0].title.as_str(), page[0].folders.as_slice()),
        ("please", &[PathBuf::from("/w")][..])
    );
    let (page, more) = sessions.page(None, Some("c"), 2).await.unwrap();
    assert_eq!((ids(&page), more), (vec!["a".to_owned()], false));
    for (folder, after) in [(Some("/elsewhere".as_ref()), None), (None, Some("gone"))] {
        assert_eq!(
            sessions.page(folder, after, 9).await.unwrap(),
            (Vec::new(), false)
        );
    }
}

#[tokio::test]
async fn an_unwritable_state_folder_is_reported_once_and_retried() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("sessions"), "a file").unwrap();
    let mut journal = journal(home.path(), "s");
    journal.prompt("x", Vec::new(), &entry(user("x")), held(), "");
    assert!(
        journal
            .flush()
            .await
            .unwrap_err()
            .contains("cannot be saved")
    );
    journal.message(&entry(answer(&[])));
    assert_eq!(journal.flush().await, Ok(()));
    std::fs::remove_file(home.path().join("sessions")).unwrap();
    journal.prompt("y", Vec::new(), &entry(user("y")), held(), "");
    assert_eq!(journal.flush().await, Ok(()));
    drop(journal);
    let kept = super::list::open(&folder(home.path()), "s")
        .await
        .unwrap()
        .1;
    assert_eq!(
        (kept.messages.len(), kept.turns(), kept.unreadable),
        (3, 2, 0),
        "nothing of it is lost"
    );
}

#[test]
fn titles_are_one_short_line() {
    assert_eq!(title("\n  Fix the build  \nplease"), "Fix the build");
    assert_eq!(title(&"é".repeat(100)).chars().count(), TITLE + 1);
    assert_eq!(title(" "), "");
}
