//! Random histories: turns of two sessions that edit and run commands, on the workspace or on a private copy, files
//! that a person saves or types into in between, restarts and kills, undo, redo, rejections and restores in any order.
//! Whatever nobody else changed is restored byte for byte, and no line of the person's is ever lost.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use tandem::server::Transport;

use super::*;
use crate::driver::{choose, play_random};
use crate::plain::place;
use crate::program::Program;

/// The number of histories; set `TANDEM_HISTORIES` for more.
const HISTORIES: u32 = 12;

/// The names used in all events.
const NAMES: [&str; 6] = ["a", "b", "d/c", "d/e", "d", "bytes"];

type Name = usize;
/// One of the two sessions.
type Who = usize;

/// Something the model does in a turn.
#[derive(Debug, Clone)]
enum Act {
    /// Changes the line with this number with `edit_file`.
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
    Turn(Who, Vec<Act>),
    /// A turn whose server is killed before the turn ends.
    Killed(Who, Vec<Act>),
    /// A turn on a private copy; whether it is applied.
    Trial(Who, Vec<Act>, bool),
    /// The person inserts a line above all others: in the editor if the file is open there, otherwise on disk.
    Type(Name),
    Open(Name),
    /// An open file is saved, and possibly closed.
    Save(Name, bool),
    Undo(Who),
    Redo(Who),
    /// A file or everything is rejected, and the rejection undone, possibly after a restart.
    Reject(Who, Option<Name>, bool),
    /// The state before one of the last turns is restored, and the restore undone, possibly after a restart.
    Restore(Who, usize, bool),
    /// Everything is kept.
    Keep(Who),
    Restart,
    Kill,
}

/// Every second time the same one, so that several events affect one file.
fn name() -> impl Strategy<Value = Name> {
    prop_oneof![Just(0), 0..NAMES.len()]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
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
    // The second session makes changes that the first does not know of.
    let who = || prop_oneof![3 => Just(0), 1 => Just(1)];
    let event = prop_oneof![
        6 => (who(), acts()).prop_map(|(who, acts)| Event::Turn(who, acts)),
        1 => (who(), acts()).prop_map(|(who, acts)| Event::Killed(who, acts)),
        2 => (who(), acts(), any::<bool>())
            .prop_map(|(who, acts, apply)| Event::Trial(who, acts, apply)),
        3 => name().prop_map(Event::Type),
        2 => name().prop_map(Event::Open),
        1 => (name(), any::<bool>()).prop_map(|(name, close)| Event::Save(name, close)),
        4 => who().prop_map(Event::Undo),
        3 => who().prop_map(Event::Redo),
        2 => (who(), proptest::option::of(name()), any::<bool>())
            .prop_map(|(who, name, restart)| Event::Reject(who, name, restart)),
        1 => (who(), 0..3_usize, any::<bool>())
            .prop_map(|(who, back, restart)| Event::Restore(who, back, restart)),
        1 => who().prop_map(Event::Keep),
        1 => Just(Event::Restart),
        1 => Just(Event::Kill),
    ];
    vec(event, 4..16)
}

/// How a turn is run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Usual,
    /// The server is killed before the turn ends.
    Killed,
    /// On a private copy; whether it is applied.
    Trial(bool),
}

/// The entry at each path: its kind and mode, and its bytes.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// The workspace without the server's home folder.
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
    /// The file's text when it was last read or written.
    saved: String,
    version: i64,
}

/// A turn that changed something, and whether anyone else changed something since.
struct Turn {
    who: Who,
    number: u64,
    before: Tree,
    after: Tree,
    untouched: bool,
}

struct Player {
    world: World,
    server: Option<(Program, Client)>,
    /// The sessions, and how many prompts each has had.
    sessions: [(String, u64); 2],
    /// The state that undoing everything restores.
    first: Tree,
    documents: BTreeMap<Name, Document>,
    count: usize,
    done: Vec<Turn>,
    undone: Vec<Turn>,
    /// The person's lines, and where each was inserted.
    mine: Vec<(PathBuf, String)>,
    /// What an undo reported as left.
    left: Vec<PathBuf>,
    /// Whether undoing everything restores the beginning: no undo left something or was out of order, and nothing
    /// was kept that was mixed with other changes.
    is_whole: bool,
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
            sessions: Default::default(),
            first: Tree::new(),
            documents: BTreeMap::new(),
            count: 0,
            done: Vec::new(),
            undone: Vec::new(),
            mine: Vec::new(),
            left: Vec::new(),
            is_whole: true,
        };
        player.first = player.tree();
        player.start();
        for who in 0..2 {
            player.new_session(who);
        }
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

    /// The response to a request; in the meantime, the editor applies edits and answers requests with yes, except
    /// for applying a private copy, which `apply` decides.
    fn answer(&mut self, id: i64, apply: bool) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.until(is_it, apply)
    }

    /// The awaited message; see [`Self::answer`].
    fn until(&mut self, is_it: impl Fn(&Value) -> bool, apply: bool) -> Value {
        loop {
            let message = self.client().find(|message| {
                let is_question = message["method"] == "session/request_permission"
                    || message["method"] == "workspace/applyEdit";
                is_question || is_it(message)
            });
            if is_it(&message) {
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

    /// The editor reloads files without unsaved text that changed on disk, and closes files that are no longer text.
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
        // An editor asks before it overwrites another program's changes; here the person says no.
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

    fn automatic(&mut self, who: Who) {
        let params = json!({ "sessionId": self.sessions[who].0, "modeId": "auto" });
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
        for who in 0..2 {
            let (session, prompts) = self.sessions[who].clone();
            if prompts == 0 {
                // A session without a prompt is not stored.
                self.new_session(who);
                continue;
            }
            let params =
                json!({ "sessionId": session, "cwd": self.world.path(), "mcpServers": [] });
            let answer = self.client().call("session/load", params);
            assert!(answer["result"].is_object(), "{answer}");
            self.automatic(who);
        }
    }

    fn new_session(&mut self, who: Who) {
        let client = &mut self.server.as_mut().unwrap().1;
        self.sessions[who].0 = client.session(&self.world);
        self.automatic(who);
    }

    /// The state as a person sees it: the workspace, with the text of open files.
    fn tree(&self) -> Tree {
        let mut tree = tree(&self.world.path());
        for (name, document) in &self.documents {
            let path = PathBuf::from(NAMES[*name]);
            // Text left in the editor of a removed file is not unsaved.
            let file = tree.get(&path).map(|(mode, _)| *mode);
            if file.is_some() || document.text != document.saved {
                let mode = file.unwrap_or(0o100_644);
                tree.insert(path, (mode, document.text.clone().into_bytes()));
            }
        }
        tree
    }

    /// The tool call for an act, in the current workspace.
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

    /// A turn of these acts, one call after another.
    fn turn(&mut self, who: Who, acts: &[Act], how: How) {
        let before = self.tree();
        let calls: Vec<Value> = acts.iter().map(|act| json!([self.call(act)])).collect();
        let done = format!("Done {}.", self.count);
        let mut end = vec![json!({ "text": done })];
        if how == How::Killed {
            end.push(json!({ "gate": "killed" }));
        }
        let script: Value = calls.into_iter().chain([end.into()]).collect();
        self.world
            .rehearsal()
            .add(serde_json::from_value(script).unwrap());
        let text = match how {
            How::Trial(_) => "/try change it",
            _ => "change it",
        };
        let session = self.sessions[who].0.clone();
        self.sessions[who].1 += 1;
        let prompt = self.client().prompt(&session, text);
        if how == How::Killed {
            self.until(|message| message.to_string().contains(&done), true);
            self.again(true);
        } else {
            let answer = self.answer(prompt, how != How::Trial(false));
            assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        }
        let after = self.tree();
        if how == How::Trial(false) {
            assert_eq!(before, after, "a discarded trial changes nothing");
        }
        if before != after {
            self.undone.retain(|turn| turn.who != who);
            self.touched(|turn| turn.who != who);
            self.done.push(Turn {
                who,
                number: self.sessions[who].1,
                before,
                after,
                untouched: true,
            });
        }
    }

    /// Someone else has changed something since these turns.
    fn touched(&mut self, are: impl Fn(&Turn) -> bool) {
        let turns = self.done.iter_mut().chain(&mut self.undone);
        for turn in turns.filter(|turn| are(turn)) {
            turn.untouched = false;
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
            // Through a link, it may be an open file.
            self.read_again();
        }
        self.mine.push((path, line));
        self.touched(|_| true);
    }

    fn review(&mut self, who: Who, action: &str, more: Value) -> Value {
        let session = self.sessions[who].0.clone();
        let id = ask_review(self.client(), &session, action, more);
        let answer = self.answer(id, true);
        let left = answer["result"]["left"].as_array().into_iter().flatten();
        self.is_whole &= answer["result"]["left"] == json!([]) || action == "keep";
        let paths = left.map(|left| PathBuf::from(left["path"].as_str().unwrap()));
        self.left.extend(paths);
        // Nothing was undone: the message names what stays.
        let refused = answer["error"]["message"].as_str().unwrap_or_default();
        for name in NAMES {
            let is_named = |end| refused.contains(&format!(" {name}{end}"));
            if is_named(" (") || is_named(":") {
                self.left.push(self.world.path().join(name));
            }
        }
        answer
    }

    fn undo(&mut self, who: Who) {
        if let Some(turn) = last_of(&mut self.done, who) {
            self.revert(who, "undo", &turn.after, &turn.before);
            self.undone.push(turn);
        }
    }

    fn redo(&mut self, who: Who) {
        if let Some(turn) = last_of(&mut self.undone, who) {
            self.revert(who, "redo", &turn.before, &turn.after);
            self.done.push(turn);
        }
    }

    fn revert(&mut self, who: Who, action: &str, from: &Tree, to: &Tree) {
        let is_last = self.tree() == *from;
        self.is_whole &= is_last;
        let answer = self.review(who, action, json!({}));
        if is_last {
            assert_eq!(answer["result"]["left"], json!([]), "{action}: {answer}");
            assert_eq!(self.tree(), *to, "{action}: {answer}");
        }
        self.touched(|turn| turn.who != who);
    }

    fn reject(&mut self, who: Who, name: Option<Name>, restart: bool) {
        let before = self.tree();
        let path = name.map(|name| self.path(name));
        let rejected = self.review(who, "reject", json!({ "path": path }));
        if rejected.get("error").is_some() {
            assert_eq!(self.tree(), before, "{rejected}");
            return;
        }
        let mut turns = self.done.iter().filter(|turn| turn.who == who);
        if path.is_none() && turns.clone().all(|turn| turn.untouched) {
            assert_eq!(rejected["result"]["left"], json!([]), "{rejected}");
            assert_eq!(self.tree(), turns.next().unwrap().before, "{rejected}");
        }
        self.take_back(who, &before, restart, &rejected);
    }

    fn restore(&mut self, who: Who, back: usize, restart: bool) {
        let turns = self.done.iter().filter(|turn| turn.who == who).rev();
        let Some(first) = turns.take(back + 1).last() else {
            return;
        };
        let before = self.tree();
        let later = self.done.iter().filter(|turn| turn.who == who);
        let mut later = later.filter(|turn| turn.number >= first.number);
        let expected = later
            .all(|turn| turn.untouched)
            .then(|| first.before.clone());
        let restored = self.review(who, "restore", json!({ "turn": first.number }));
        if let Some(expected) = expected {
            assert_eq!(self.tree(), expected, "{restored}");
        }
        self.take_back(who, &before, restart, &restored);
    }

    /// A rejection or restore by the person is undone.
    fn take_back(&mut self, who: Who, before: &Tree, restart: bool, answer: &Value) {
        if restart {
            self.again(false);
        }
        let undone = self.review(who, "undo", json!({}));
        assert_eq!(self.tree(), *before, "{answer} {undone}");
    }

    fn keep(&mut self, who: Who) {
        let before = self.tree();
        self.review(who, "keep", json!({}));
        assert_eq!(self.tree(), before);
        self.done.retain(|turn| turn.who != who);
        self.is_whole &= self.done.is_empty();
        // The kept changes become the new initial state; lines of the person that they removed no longer count.
        self.first = before;
        let lines = std::mem::take(&mut self.mine);
        self.mine = lines
            .into_iter()
            .filter(|(_, line)| self.has(line))
            .collect();
        self.touched(|_| true);
    }

    fn has(&self, line: &str) -> bool {
        let tree = self.tree();
        let mut texts = tree
            .values()
            .map(|(_, bytes)| String::from_utf8_lossy(bytes));
        texts.any(|text| text.lines().any(|one| one == line))
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Turn(who, acts) => self.turn(*who, acts, How::Usual),
            Event::Killed(who, acts) => self.turn(*who, acts, How::Killed),
            Event::Trial(who, acts, apply) => self.turn(*who, acts, How::Trial(*apply)),
            Event::Type(name) => self.types(*name),
            Event::Open(name) => self.open(*name),
            Event::Save(name, close) => self.save(*name, *close),
            Event::Undo(who) => self.undo(*who),
            Event::Redo(who) => self.redo(*who),
            Event::Reject(who, name, restart) => self.reject(*who, *name, *restart),
            Event::Restore(who, back, restart) => self.restore(*who, *back, *restart),
            Event::Keep(who) => self.keep(*who),
            Event::Restart => self.again(false),
            Event::Kill => self.again(true),
        }
    }

    /// After everything was undone, each line of the person's is in some file, unless undo reported that it stays elsewhere.
    fn ends(&mut self) {
        while let Some(turn) = self.done.last() {
            self.undo(turn.who);
        }
        for (path, line) in &self.mine {
            let is_told = self
                .left
                .iter()
                .any(|left| left.starts_with(path) || path.starts_with(left));
            assert!(
                self.has(line) || is_told,
                "{line} is lost: {:?}",
                self.tree()
            );
        }
        if self.mine.is_empty() && self.is_whole {
            assert_eq!(self.tree(), self.first);
        }
    }
}

/// Removes and returns a session's last turn.
fn last_of(turns: &mut Vec<Turn>, who: Who) -> Option<Turn> {
    let index = turns.iter().rposition(|turn| turn.who == who)?;
    Some(turns.remove(index))
}

#[test]
fn whatever_happens_undo_reverts_what_the_model_did_and_nothing_else() {
    play_random(&history(), HISTORIES, "TANDEM_HISTORIES", |history| {
        let mut player = Player::new();
        for event in &history {
            player.play(event);
        }
        player.ends();
    });
}

#[test]
fn what_was_edited_before_a_file_was_removed_is_undone_in_the_editor() {
    let mut player = Player::new();
    for event in [
        Event::Open(0),
        Event::Turn(0, vec![Act::Edit(0, 1), Act::Remove(0)]),
        Event::Undo(0),
    ] {
        player.play(&event);
    }
    player.ends();
}
