//! Histories at random: turns that edit and run commands, on the workspace or on a private copy, files that a person
//! saves or types into in between, restarts, undo and redo in any order. What nobody else touched comes back byte for
//! byte, and no line of the person's is ever lost.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use tandem::server::Transport;

use super::*;
use crate::driver::choose;
use crate::plain::place;
use crate::program::Program;

/// How many histories are played; more with `TANDEM_HISTORIES`.
const HISTORIES: u32 = 12;

/// The names that everything happens to.
const NAMES: [&str; 6] = ["a", "b", "d/c", "d/e", "d", "bytes"];

type Name = usize;

/// Something the model does in a turn.
#[derive(Debug, Clone)]
enum Act {
    /// Changes the line of this number with `edit_file`.
    Edit(Name, usize),
    Write(Name),
    Append(Name),
    Overwrite(Name),
    Binary(Name),
    Remove(Name),
    Move(Name, Name),
    Copy(Name, Name),
    Link(Name, Name),
    Mode(Name),
}

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    Turn(Vec<Act>),
    /// A turn on a private copy; whether it is applied.
    Trial(Vec<Act>, bool),
    /// The person puts a line of theirs above all others: in the editor if the file is open there, or else on disk.
    Type(Name),
    Open(Name),
    /// An open file is saved, and closed or not.
    Save(Name, bool),
    Undo,
    Redo,
    /// A file is rejected, or everything, and that is undone.
    Reject(Option<Name>),
    Restart,
    Kill,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = || 0..NAMES.len();
    let act = prop_oneof![
        (name(), 1..4_usize).prop_map(|(name, line)| Act::Edit(name, line)),
        name().prop_map(Act::Write),
        name().prop_map(Act::Append),
        name().prop_map(Act::Overwrite),
        name().prop_map(Act::Binary),
        name().prop_map(Act::Remove),
        (name(), name()).prop_map(|(from, to)| Act::Move(from, to)),
        (name(), name()).prop_map(|(from, to)| Act::Copy(from, to)),
        (name(), name()).prop_map(|(from, to)| Act::Link(from, to)),
        name().prop_map(Act::Mode),
    ];
    vec(act, 1..4)
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => acts().prop_map(Event::Turn),
        2 => (acts(), any::<bool>()).prop_map(|(acts, apply)| Event::Trial(acts, apply)),
        3 => (0..NAMES.len()).prop_map(Event::Type),
        2 => (0..NAMES.len()).prop_map(Event::Open),
        1 => (0..NAMES.len(), any::<bool>()).prop_map(|(name, close)| Event::Save(name, close)),
        4 => Just(Event::Undo),
        3 => Just(Event::Redo),
        2 => proptest::option::of(0..NAMES.len()).prop_map(Event::Reject),
        1 => Just(Event::Restart),
        1 => Just(Event::Kill),
    ];
    vec(event, 4..16)
}

/// What stands at each path: its kind and mode, and its bytes.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// The workspace without the home folder of the server.
fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in next.read_dir().unwrap().flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            if path == folder.join(".home") {
                continue;
            }
            let bytes = if metadata.is_dir() {
                ahead.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                OsString::from(path.read_link().unwrap()).into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let inside = path.strip_prefix(folder).unwrap().to_owned();
            found.insert(inside, (metadata.mode(), bytes));
        }
    }
    found
}

/// A document in the editor.
struct Document {
    text: String,
    /// What the file had when it was last read or written.
    saved: String,
    version: i64,
}

/// A turn that changed something, and whether the person saved nothing since.
struct Turn {
    before: Tree,
    after: Tree,
    untouched: bool,
}

struct Player {
    world: World,
    server: Option<(Program, Client)>,
    session: String,
    documents: BTreeMap<Name, Document>,
    count: usize,
    done: Vec<Turn>,
    undone: Vec<Turn>,
    /// The person's lines, and where they put them.
    mine: Vec<(PathBuf, String)>,
    /// What an undo said it left.
    left: Vec<PathBuf>,
}

impl Player {
    fn new() -> Self {
        let world = World::new(json!([]));
        world.write("a", "one\ntwo\nthree\nfour\n");
        world.write("b", "eins\r\nzwei\r\ndrei\r\n");
        world.write("d/c", "uno\ndue\ntre");
        std::fs::write(world.path().join("bytes"), b"\0\xff\xfe").unwrap();
        let mut player = Self {
            world,
            server: None,
            session: String::new(),
            documents: BTreeMap::new(),
            count: 0,
            done: Vec::new(),
            undone: Vec::new(),
            mine: Vec::new(),
            left: Vec::new(),
        };
        player.start();
        player.new_session();
        player
    }

    fn start(&mut self) {
        let (program, mut client) = self.world.serve_with(Transport::Lsp, |command| {
            command.env("PATH", std::env::var_os("PATH").unwrap());
        });
        client.shake_hands(
            self.world
                .handshake(json!({ "experimental": { "tandem": {} } })),
        );
        self.server = Some((program, client));
    }

    fn client(&mut self) -> &mut Client {
        &mut self.server.as_mut().unwrap().1
    }

    fn path(&self, name: Name) -> PathBuf {
        self.world.path().join(NAMES[name])
    }

    /// The answer to a request; meanwhile the editor applies edits, and questions are answered with yes, but for the
    /// changes of a private copy with `apply`.
    fn answer(&mut self, id: i64, apply: bool) -> Value {
        loop {
            let message = self.client().find(|message| {
                let is_question = message["method"] == "session/request_permission"
                    || message["method"] == "workspace/applyEdit";
                is_question || (message["id"] == id && message.get("method").is_none())
            });
            if message.get("method").is_none() {
                self.read_again();
                return message;
            }
            if message["method"] == "workspace/applyEdit" {
                let applied = self.apply(&message["params"]["edit"]["documentChanges"]);
                self.client()
                    .respond(&message, json!({ "applied": applied }));
                continue;
            }
            let title = message["params"]["toolCall"]["title"].as_str().unwrap();
            let is_no = !apply && title.starts_with("Apply the changes");
            let answer = if is_no { "reject_once" } else { "allow_once" };
            choose(self.client(), &message, answer);
        }
    }

    fn apply(&mut self, changes: &Value) -> bool {
        let changes = changes.as_array().unwrap();
        for change in changes {
            let uri = &change["textDocument"]["uri"];
            let is_it = |name: &Name| *uri == self.world.uri(NAMES[*name]);
            let name = (0..NAMES.len()).find(is_it).unwrap();
            let Some(document) = self.documents.get_mut(&name) else {
                return false;
            };
            if change["textDocument"]["version"] != document.version {
                return false;
            }
            let mut edits: Vec<_> = change["edits"].as_array().unwrap().iter().collect();
            edits.sort_by_key(|edit| place(&document.text, &edit["range"]["start"]));
            let mut text = document.text.clone();
            for edit in edits.into_iter().rev() {
                let place = |end: &str| place(&document.text, &edit["range"][end]);
                text.replace_range(
                    place("start")..place("end"),
                    edit["newText"].as_str().unwrap(),
                );
            }
            self.shows(name, text);
        }
        true
    }

    /// A document has this text from now on.
    fn shows(&mut self, name: Name, text: String) {
        let uri = self.world.uri(NAMES[name]);
        let document = self.documents.get_mut(&name).unwrap();
        document.version += 1;
        document.text.clone_from(&text);
        let version = document.version;
        change_document(self.client(), &uri, version, &text);
    }

    /// The editor reads files again that changed on disk, where nothing was typed; what is no text is closed.
    fn read_again(&mut self) {
        for name in 0..NAMES.len() {
            let path = self.path(name);
            let Some(document) = self.documents.get_mut(&name) else {
                continue;
            };
            if path.symlink_metadata().is_err() {
                continue;
            }
            let on_disk = std::fs::read_to_string(path).ok();
            if on_disk.as_ref() == Some(&document.text) {
                document.saved.clone_from(&document.text);
            }
            if document.text != document.saved {
                continue;
            }
            match on_disk {
                Some(text) if text == document.saved => {}
                Some(text) => {
                    document.saved.clone_from(&text);
                    self.shows(name, text);
                }
                None => self.close(name),
            }
        }
    }

    fn close(&mut self, name: Name) {
        self.documents.remove(&name);
        let document = json!({ "textDocument": { "uri": self.world.uri(NAMES[name]) } });
        self.client().notify("textDocument/didClose", document);
    }

    fn open(&mut self, name: Name) {
        let Ok(text) = std::fs::read_to_string(self.path(name)) else {
            return;
        };
        if self.documents.contains_key(&name) {
            return;
        }
        let document = Document {
            text: text.clone(),
            saved: text.clone(),
            version: 1,
        };
        self.documents.insert(name, document);
        let uri = self.world.uri(NAMES[name]);
        self.client().open(&uri, &text);
    }

    fn save(&mut self, name: Name, close: bool) {
        let path = self.path(name);
        let Some(document) = self.documents.get_mut(&name) else {
            return;
        };
        let is_there = path.symlink_metadata().is_ok();
        if !is_there && document.text == document.saved {
            return;
        }
        // An editor asks before it overwrites what somebody else wrote; here the person says no.
        let is_newer = std::fs::read_to_string(&path).is_ok_and(|now| now != document.saved);
        if is_newer || std::fs::write(&path, &document.text).is_err() {
            return;
        }
        document.saved.clone_from(&document.text);
        let document = json!({ "textDocument": { "uri": self.world.uri(NAMES[name]) } });
        self.client().notify("textDocument/didSave", document);
        if close {
            self.close(name);
        }
    }

    fn automatic(&mut self) {
        let params = json!({ "sessionId": self.session, "modeId": "auto" });
        self.client().call("session/set_mode", params);
    }

    fn again(&mut self, kill: bool) {
        let (mut program, client) = self.server.take().unwrap();
        if kill {
            program.signal(rustix::process::Signal::KILL);
        }
        drop(client);
        program.ends();
        self.start();
        for (name, document) in &mut self.documents {
            document.version = 1;
            let uri = self.world.uri(NAMES[*name]);
            self.server.as_mut().unwrap().1.open(&uri, &document.text);
        }
        self.undone.clear();
        if self.count == 0 {
            // A session without a prompt is not stored.
            self.new_session();
            return;
        }
        let params =
            json!({ "sessionId": self.session, "cwd": self.world.path(), "mcpServers": [] });
        let answer = self.client().call("session/load", params);
        assert!(answer["result"].is_object(), "{answer}");
        self.automatic();
    }

    fn new_session(&mut self) {
        let client = &mut self.server.as_mut().unwrap().1;
        self.session = client.session(&self.world);
        self.automatic();
    }

    /// What a person sees: the workspace, with the text of what is open.
    fn tree(&self) -> Tree {
        let mut tree = tree(&self.world.path());
        for (name, document) in &self.documents {
            let path = PathBuf::from(NAMES[*name]);
            // What is left in the editor of a removed file is not unsaved.
            let file = tree.get(&path).map(|(mode, _)| *mode);
            if file.is_some() || document.text != document.saved {
                let mode = file.unwrap_or(0o100_644);
                tree.insert(path, (mode, document.text.clone().into_bytes()));
            }
        }
        tree
    }

    /// The call of a tool for an act, in a workspace as it is now.
    fn call(&mut self, act: &Act) -> Value {
        self.count += 1;
        let new = format!("new {}", self.count);
        let line = match *act {
            Act::Edit(name, line) => {
                let name = NAMES[name];
                let tree = self.tree();
                let bytes = tree.get(Path::new(name)).map(|(_, bytes)| &**bytes);
                let text = String::from_utf8_lossy(bytes.unwrap_or_default());
                let old = text.lines().nth(line).unwrap_or("none");
                return edit(name, &[(old, &new)]);
            }
            Act::Write(name) => return write(NAMES[name], &format!("{new}\nwritten\n")),
            Act::Append(name) => format!("echo {new} >> {}", NAMES[name]),
            Act::Overwrite(name) => format!("printf 'top\\n{new}\\nend' > {}", NAMES[name]),
            Act::Binary(name) => format!("printf '\\0\\377{new}' > {}", NAMES[name]),
            Act::Remove(name) => format!("rm -rf {}", NAMES[name]),
            Act::Move(from, to) => format!("mv -f {} {}", NAMES[from], NAMES[to]),
            Act::Copy(from, to) => format!("cp -r {} {}", NAMES[from], NAMES[to]),
            Act::Link(from, to) => format!("ln -s {} {}", NAMES[from], NAMES[to]),
            Act::Mode(name) => format!("chmod 7{}0 {}", self.count % 8, NAMES[name]),
        };
        call("run_command", json!({ "command": line }))
    }

    /// A turn of these acts, one call after the other; `apply`: whether the changes of a private copy are applied.
    fn turn(&mut self, acts: &[Act], apply: Option<bool>) {
        let before = self.tree();
        let calls: Vec<Value> = acts.iter().map(|act| json!([self.call(act)])).collect();
        let script: Value = calls
            .into_iter()
            .chain([json!([{ "text": "Done." }])])
            .collect();
        self.world
            .rehearsal()
            .add(serde_json::from_value(script).unwrap());
        let text = if apply.is_some() {
            "/try change it"
        } else {
            "change it"
        };
        let session = self.session.clone();
        let prompt = self.client().prompt(&session, text);
        let answer = self.answer(prompt, apply != Some(false));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let after = self.tree();
        if apply == Some(false) {
            assert_eq!(before, after, "a discarded trial changes nothing");
        }
        if before != after {
            self.undone.clear();
            self.done.push(Turn {
                before,
                after,
                untouched: true,
            });
        }
    }

    fn types(&mut self, name: Name) {
        let path = self.path(name);
        let line = format!("mine {}", self.mine.len());
        if let Some(document) = self.documents.get(&name) {
            let text = format!("{line}\n{}", document.text);
            self.shows(name, text);
        } else {
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(_) => return,
            };
            if std::fs::write(&path, format!("{line}\n{text}")).is_err() {
                return;
            }
            // By a link, it may be a file that is open.
            self.read_again();
        }
        self.mine.push((path, line));
        for turn in self.done.iter_mut().chain(&mut self.undone) {
            turn.untouched = false;
        }
    }

    fn review(&mut self, action: &str, more: Value) -> Value {
        let session = self.session.clone();
        let id = ask_review(self.client(), &session, action, more);
        let answer = self.answer(id, true);
        let left = answer["result"]["left"].as_array().into_iter().flatten();
        let paths = left.map(|left| PathBuf::from(left["path"].as_str().unwrap()));
        self.left.extend(paths);
        answer
    }

    fn undo(&mut self) {
        if let Some(turn) = self.done.pop() {
            self.revert("undo", &turn, &turn.before);
            self.undone.push(turn);
        }
    }

    fn redo(&mut self) {
        if let Some(turn) = self.undone.pop() {
            self.revert("redo", &turn, &turn.after);
            self.done.push(turn);
        }
    }

    fn revert(&mut self, action: &str, turn: &Turn, expected: &Tree) {
        let answer = self.review(action, json!({}));
        if turn.untouched {
            assert_eq!(answer["result"]["left"], json!([]), "{action}: {answer}");
            assert_eq!(self.tree(), *expected, "{action}: {answer}");
        }
    }

    fn reject(&mut self, name: Option<Name>) {
        let before = self.tree();
        let path = name.map(|name| self.path(name));
        let rejected = self.review("reject", json!({ "path": path }));
        if rejected.get("error").is_some() {
            assert_eq!(self.tree(), before, "{rejected}");
            return;
        }
        if path.is_none() && self.done.iter().all(|turn| turn.untouched) {
            assert_eq!(rejected["result"]["left"], json!([]), "{rejected}");
            assert_eq!(&self.tree(), &self.done[0].before, "{rejected}");
        }
        let undone = self.review("undo", json!({}));
        assert_eq!(self.tree(), before, "{rejected} {undone}");
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Turn(acts) => self.turn(acts, None),
            Event::Trial(acts, apply) => self.turn(acts, Some(*apply)),
            Event::Type(name) => self.types(*name),
            Event::Open(name) => self.open(*name),
            Event::Save(name, close) => self.save(*name, *close),
            Event::Undo => self.undo(),
            Event::Redo => self.redo(),
            Event::Reject(name) => self.reject(*name),
            Event::Restart => self.again(false),
            Event::Kill => self.again(true),
        }
    }

    /// After everything was undone, each line of the person's is in some file, unless undo said that it stays away.
    fn ends(&mut self, first: &Tree) {
        while !self.done.is_empty() {
            self.undo();
        }
        let last = self.tree();
        let text: Vec<_> = last
            .values()
            .map(|(_, bytes)| String::from_utf8_lossy(bytes))
            .collect();
        for (path, line) in &self.mine {
            let is_there = text.iter().any(|text| text.lines().any(|one| one == line));
            let is_told = self
                .left
                .iter()
                .any(|left| left.starts_with(path) || path.starts_with(left));
            assert!(is_there || is_told, "{line} is lost: {last:?}");
        }
        if self.mine.is_empty() {
            assert_eq!(&last, first);
        }
    }
}

#[test]
fn whatever_happens_undo_takes_back_what_the_model_did_and_nothing_else() {
    let more = std::env::var("TANDEM_HISTORIES").ok();
    let config = Config {
        cases: more
            .as_ref()
            .map_or(HISTORIES, |more| more.parse().unwrap()),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let mut runner = match more {
        None => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config, rng)
        }
        Some(_) => TestRunner::new(config),
    };
    let played = runner.run(&history(), |history| {
        let mut player = Player::new();
        let first = player.tree();
        for event in &history {
            player.play(event);
        }
        player.ends(&first);
        Ok(())
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(why, history)) => panic!("{why}\n{history:?}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}
