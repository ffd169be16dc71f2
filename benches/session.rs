//! What lasting costs: listing many conversations, taking a long one up again, and the journal in a round of tools.

#![expect(
    clippy::disallowed_methods,
    reason = "a bench writes the files it measures"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rehearsal::{Script, Server};
use serde_json::{Value, json};
use tandem::agent::event::AgentEvent;
use tandem::config::{Environment, Settings, Sources};
use tandem::domain::{Failure, Prompt};
use tandem::model::{Api, Endpoint, Provider};
use tandem::session::event::SessionEvent;
use tandem::session::{Session, Sessions, Setup, Start, setup};
use tandem::text::Encoding;
use tandem::workspace::{Documents, NoEditor, Root, StateFolder, Workspace};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const SESSIONS: usize = 10_000;
const MESSAGES: usize = 2_000;
const ROUNDS: u64 = 200;

/// A home folder on the disk the build is on: a temporary folder may be memory, which syncs for nothing.
fn home() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made")
}

/// The program's runtime.
fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
}

/// Writes the journal of a conversation of `folder`.
fn keep(state: &Path, id: &str, folder: &str, records: &[Value]) {
    let head = json!({ "type": "session", "version": 1, "id": id, "folders": [folder], "title": format!("This is {id}") });
    let lines = std::iter::once(&head)
        .chain(records)
        .map(|record| format!("{record}\n"));
    let journals = state.join("sessions");
    std::fs::create_dir_all(&journals).expect("a folder can be made");
    std::fs::write(
        journals.join(format!("{id}.jsonl")),
        lines.collect::<String>(),
    )
    .expect("a journal can be written");
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "type": "text", "text": text }] })
}

fn listing(criterion: &mut Criterion) {
    let (home, runtime) = (home(), runtime());
    let prompt = [json!({ "type": "prompt", "text": "x".repeat(1_000), "message": user("x") })];
    for number in 0..SESSIONS {
        keep(
            home.path(),
            &format!("{number:x}"),
            if number == 0 { "/rare" } else { "/common" },
            &prompt,
        );
    }
    let sessions = Sessions::new(home.path());
    let mut group = criterion.benchmark_group("10 000 sessions");
    group.sample_size(30);
    let mut bench = |name: &str, folder: Option<&str>, size: usize, expected: usize| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let page = runtime
                    .block_on(sessions.page(folder.map(Path::new), None, size))
                    .expect("they are there");
                assert_eq!(page.0.len(), expected);
            });
        });
    };
    bench("a page of 100", None, 100, 100);
    bench("the only one of its folder", Some("/rare"), 100, 1);
    bench("all", None, usize::MAX, SESSIONS);
    group.finish();
}

/// Prompts, answers with a call, results, and last answers, a kilobyte each.
fn conversation() -> Vec<Value> {
    let text = "Some words of a conversation. ".repeat(33);
    let mut records = Vec::new();
    for turn in 0..MESSAGES / 4 {
        let id = format!("call_{turn}");
        let call = json!({ "id": id, "name": "read_file", "arguments": { "object": { "path": "src/main.rs" } } });
        let result = json!({ "call_id": id, "content": text, "is_error": false });
        records.extend([
            json!({ "type": "prompt", "text": text, "message": user(&text) }),
            json!({ "type": "message", "message": { "role": "assistant", "text": text, "calls": [call] } }),
            json!({ "type": "call", "id": id, "title": "Read src/main.rs", "kind": "read" }),
            json!({ "type": "message", "message": { "role": "results", "results": [result] } }),
            json!({ "type": "message", "message": { "role": "assistant", "text": text } }),
        ]);
    }
    records
}

/// What a session needs around it.
struct World {
    home: tempfile::TempDir,
    settings: Settings,
}

impl World {
    fn new() -> Self {
        let home = home();
        let environment = Environment::made_up(home.path(), &[]);
        let settings = Settings::load(&environment, &Sources::default());
        Self { home, settings }
    }

    fn setup(&self, id: &str, start: Start, model: &Server) -> Setup {
        let root = Arc::new(Root::open(self.home.path()).expect("the folder is there"));
        let workspace = Workspace::new(
            vec![root],
            Documents::new(Encoding::Utf16),
            Arc::new(NoEditor),
        );
        let endpoint = Endpoint::new("rehearsal", Api::Chat, model.base_url(), "script");
        let provider = Ok(Provider::http(endpoint));
        Setup {
            provider,
            ..setup(id.into(), start, &self.settings, workspace)
        }
    }

    fn state(&self) -> PathBuf {
        self.settings.state_dir.clone().expect("it was made up")
    }
}

fn loading(criterion: &mut Criterion) {
    let (world, runtime) = (World::new(), runtime());
    let path = world.home.path().display().to_string();
    keep(&world.state(), "long", &path, &conversation());
    let _inside = runtime.enter();
    let model = Server::start(Script::new()).expect("a port is free");
    let mut group = criterion.benchmark_group("a session of 2 000 messages");
    group.sample_size(20);
    group.bench_function("load and replay", |bencher| {
        bencher.iter(|| runtime.block_on(replay(world.setup("long", Start::Replay, &model))));
    });
    group.finish();
}

/// Takes a conversation up again and reads all of it.
async fn replay(setup: Setup) {
    let (sender, mut events) = mpsc::channel(256);
    let session = Session::start(setup, sender, &CancellationToken::new());
    let mut answers = 0;
    while let Some((_, event)) = events.recv().await {
        let SessionEvent::Agent(event) = event else {
            continue;
        };
        match event {
            AgentEvent::TextDelta { .. } => answers += 1,
            AgentEvent::Resumed { .. } => break,
            AgentEvent::Error(Failure { message, .. }) | AgentEvent::Notice { message } => {
                panic!("{message}")
            }
            _ => {}
        }
    }
    assert_eq!(answers, MESSAGES / 2);
    session.close().await;
}

fn rounds(criterion: &mut Criterion) {
    let (world, runtime) = (World::new(), runtime());
    let lines = "a line of a file\n".repeat(usize::try_from(ROUNDS).expect("it is small") + 1);
    std::fs::write(world.home.path().join("a.txt"), lines).expect("a file can be written");
    let script: Script = (1..=ROUNDS)
        .map(|line| json!({ "id": line.to_string(), "name": "read_file", "arguments": { "path": "a.txt", "offset": line, "limit": 1 } }))
        .map(|call| json!([{ "call": call }]))
        .chain([json!([{ "text": "Read." }])])
        .map(|reply| serde_json::from_value(reply).expect("it is a reply"))
        .collect();
    let _inside = runtime.enter();
    let model = Server::start(Script::new()).expect("a port is free");
    let mut group = criterion.benchmark_group("a round of tools");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(ROUNDS));
    let mut bench = |name: &str, is_kept: bool| {
        let mut count = 0;
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    count += 1;
                    model.rehearsal().add(script.clone());
                    let mut setup = world.setup(&format!("{name}-{count}"), Start::New, &model);
                    setup.journal = setup.journal.filter(|_| is_kept);
                    spent += runtime.block_on(turn(setup));
                }
                spent
            });
        });
    };
    bench("without", false);
    bench("with", true);
    group.finish();
}

/// How long a turn takes, from its prompt to its last event.
async fn turn(setup: Setup) -> Duration {
    let (sender, mut events) = mpsc::channel(256);
    let session = Session::start(setup, sender, &CancellationToken::new());
    let begun = Instant::now();
    session
        .prompt("p".into(), Prompt::text("read it all"), Arc::default())
        .expect("it has just begun");
    let done = loop {
        let SessionEvent::Agent(event) = events.recv().await.expect("a turn has an end").1 else {
            continue;
        };
        match event {
            AgentEvent::Done { iterations, .. } => break iterations,
            AgentEvent::Error(Failure { message, .. }) | AgentEvent::Notice { message } => {
                panic!("{message}")
            }
            _ => {}
        }
    };
    let spent = begun.elapsed();
    assert_eq!(u64::from(done), ROUNDS + 1);
    session.close().await;
    spent
}

/// A kilobyte.
const LINE: [u8; 1_000] = [b'x'; 1_000];

fn writing(criterion: &mut Criterion) {
    let (home, runtime) = (home(), runtime());
    let folder = runtime
        .block_on(StateFolder::open(home.path().to_owned()))
        .expect("it can be opened");
    let log = runtime
        .block_on(folder.create_log("log"))
        .expect("it can be made");
    let mut group = criterion.benchmark_group("a line of a kilobyte");
    group.bench_function("written", |bencher| {
        bencher.iter(|| {
            runtime
                .block_on(log.append(|out| out.write_all(&LINE)))
                .expect("there is room");
        });
    });
    group.bench_function("written and synced", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                log.append(|out| out.write_all(&LINE))
                    .await
                    .expect("there is room");
                log.sync().await.expect("the disk works");
            });
        });
    });
    group.finish();
}

criterion_group!(benches, listing, loading, rounds, writing);
criterion_main!(benches);
