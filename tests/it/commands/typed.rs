//! Whatever a command does to a file with unsaved text, at each level of sandbox and in editors that save on request or
//! not: typed text is never lost, the command's output reaches the document, and undo restores both.
//!
//! The cases are generated: each thing a command can do, with each state of the buffers. `TANDEM_UNSAVED=all` runs all of
//! them, which takes minutes; otherwise every [`SHARE`]th is run, from the one of that number on.

use std::collections::BTreeMap;

use super::changes::automatic;
use super::shadow::without_times;
use super::*;
use crate::driver::side_by_side;
use crate::git::shell;

/// One case in this many is run each time.
const SHARE: usize = 23;

const LEVELS: [Level; 3] = [Level::Best, Level::Landlock, Level::None];

/// The saved text of every file; in git it is `FIRST`, and on the branch `other` `OTHER`.
const SAVED: &str = "fn one() {}\nfn two() {}\nfn three() {}\nfn four() {}\nfn five() {}\nfn six() {}\nfn seven() {}\n";
const FIRST: &str = "fn one() {}\nfn two() {}\nfn three() {}\nfn four() {}\nfn five() {}\nfn sechs() {}\nfn seven() {}\n";
const OTHER: &str = "fn eins() {}\nfn two() {}\nfn three() {}\nfn four() {}\nfn five() {}\nfn sechs() {}\nfn seven() {}\n";

/// What commands do to `IT`, and text the file contains only afterwards, if any.
const WAYS: [(&str, Option<&str>); 26] = [
    ("sed -i s/six/drawn/ IT", Some("drawn")),
    (
        "sed s/six/drawn/ IT > new && cat new > IT && rm new",
        Some("drawn"),
    ),
    ("sed s/six/drawn/ IT > new && mv new IT", Some("drawn")),
    ("printf 'fn drawn() {}\\n' >> IT", Some("drawn")),
    ("printf 'fn drawn() {}\\n' > IT", Some("drawn")),
    ("sed -i s/five/drawn/ IT", Some("drawn")),
    ("sed -i '1i // drawn' IT", Some("drawn")),
    ("sed -i 3,6d IT", None),
    ("truncate -s 0 IT", None),
    ("rm IT", None),
    ("rm IT; printf 'fn drawn() {}\\n' > IT", Some("drawn")),
    ("mv IT moved", None),
    ("mkdir -p sub; mv IT sub", None),
    ("cp other.rs IT", Some("elsewhere")),
    ("mv other.rs IT", Some("elsewhere")),
    ("ln -sf other.rs IT", None),
    ("rm IT; mkdir IT; echo x > IT/x", None),
    ("git checkout -q -- IT", Some("sechs")),
    ("git checkout -qf other", Some("eins")),
    ("git stash -q", Some("sechs")),
    ("git reset -q --hard", Some("sechs")),
    ("git clean -fdq", None),
    ("find . -name .git -prune -o -type f -exec rm {} +", None),
    ("sed -i 's/{}/{\\n    drawn();\\n}/' IT", Some("drawn")),
    ("sed -i 's/$/\\r/' IT", None),
    ("iconv -f utf-8 -t utf-16 IT > new && mv new IT", None),
];

/// Documents with unsaved text: the file names, and where it was typed.
const BUFFERS: [&[(&str, Typed)]; 7] = [
    &[("a.rs", Typed::Above)],
    &[("a.rs", Typed::Below)],
    &[("a.rs", Typed::Within)],
    &[("a.rs", Typed::All)],
    &[("new.rs", Typed::All)],
    &[("build/i.rs", Typed::Above)],
    &[("b.rs", Typed::Below), ("a.rs", Typed::Above)],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    Above,
    Below,
    Within,
    All,
}

impl Typed {
    fn text(self) -> String {
        match self {
            Self::Above => format!("// typed\n{SAVED}"),
            Self::Below => format!("{SAVED}// typed\n"),
            Self::Within => SAVED.replace("five() {}", "five() { typed() }"),
            Self::All => "// typed\n".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    level: Level,
    /// Whether the editor saves on request.
    saves: bool,
    buffers: &'static [(&'static str, Typed)],
    way: (&'static str, Option<&'static str>),
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for way in WAYS {
        for buffers in BUFFERS {
            for level in LEVELS {
                cases.extend([false, true].map(|saves| Case {
                    level,
                    saves,
                    buffers,
                    way,
                }));
            }
        }
    }
    cases
}

/// An open document as an editor has it.
struct Buffer {
    text: String,
    version: i32,
    /// The text the editor last read or wrote; `None` if the file never existed.
    known: Option<String>,
}

impl Buffer {
    fn is_unsaved(&self) -> bool {
        self.known.as_deref() != Some(&self.text)
    }
}

/// An editor that saves if asked to, and reloads files without unsaved text.
struct Editor<'a> {
    client: Client,
    stage: &'a Stage,
    session: String,
    buffers: BTreeMap<String, Buffer>,
}

impl Editor<'_> {
    fn disk(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.stage.world.path().join(name)).ok()
    }

    /// Serves the server's requests until the client's request is answered.
    fn until(&mut self, request: i64) -> Value {
        loop {
            let message = self.client.find(|message| {
                message["id"] == request && message.get("method").is_none()
                    || [
                        "session/request_permission",
                        "workspace/applyEdit",
                        "_tandem/save",
                    ]
                    .contains(&message["method"].as_str().unwrap_or_default())
            });
            match message["method"].as_str() {
                Some("session/request_permission") => allow(&mut self.client, &message),
                Some("workspace/applyEdit") => self.apply(&message),
                Some(_) => self.save(&message),
                None => {
                    self.client.seen.push_front(message);
                    let answer = self.client.answer(request);
                    self.read_again();
                    return answer;
                }
            }
        }
    }

    fn name(&self, uri: &Value) -> String {
        let uri = uri.as_str().unwrap();
        uri.strip_prefix(&self.stage.world.uri(""))
            .unwrap()
            .to_owned()
    }

    fn apply(&mut self, request: &Value) {
        let change = &request["params"]["edit"]["documentChanges"][0];
        let name = self.name(&change["textDocument"]["uri"]);
        let buffer = &self.buffers[&name];
        let lines: Vec<usize> = std::iter::once(0)
            .chain(buffer.text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let at = |place: &Value| {
            let line = usize::try_from(place["line"].as_u64().unwrap()).unwrap();
            let character = usize::try_from(place["character"].as_u64().unwrap()).unwrap();
            lines
                .get(line)
                .map_or(buffer.text.len(), |start| start + character)
        };
        let mut text = buffer.text.clone();
        for edit in change["edits"].as_array().unwrap().iter().rev() {
            let range = at(&edit["range"]["start"])..at(&edit["range"]["end"]);
            text.replace_range(range, edit["newText"].as_str().unwrap());
        }
        self.show(&name, text);
        self.client.respond(request, json!({ "applied": true }));
    }

    fn show(&mut self, name: &str, text: String) {
        let buffer = self.buffers.get_mut(name).unwrap();
        buffer.version += 1;
        buffer.text.clone_from(&text);
        let document = json!({ "uri": self.stage.world.uri(name), "version": buffer.version });
        let change = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.client.notify("textDocument/didChange", change);
    }

    fn save(&mut self, request: &Value) {
        for uri in request["params"]["uris"].as_array().unwrap() {
            let name = self.name(uri);
            self.write(&name);
        }
        self.client.respond(request, Value::Null);
    }

    fn write(&mut self, name: &str) {
        let buffer = self.buffers.get_mut(name).unwrap();
        self.stage.world.write(name, &buffer.text);
        buffer.known = Some(buffer.text.clone());
        let document = json!({ "textDocument": { "uri": self.stage.world.uri(name) } });
        self.client.notify("textDocument/didSave", document);
    }

    /// Reloads files that changed on disk and have no unsaved text. A removed file stays open.
    fn read_again(&mut self) {
        let names: Vec<String> = self.buffers.keys().cloned().collect();
        for name in names {
            let (now, buffer) = (self.disk(&name), &self.buffers[&name]);
            if let Some(now) = now.filter(|now| !buffer.is_unsaved() && *now != buffer.text) {
                self.buffers.get_mut(&name).unwrap().known = Some(now.clone());
                self.show(&name, now);
            }
        }
    }

    fn review(&mut self, action: &str) -> Value {
        let params = json!({ "sessionId": self.session, "action": action });
        let request = self.client.ask("_tandem/review", params);
        self.until(request)
    }

    /// The texts of the buffers, and of the files that belong neither to git nor to ignored directories.
    fn state(&self) -> (Vec<String>, BTreeMap<PathBuf, (String, u32)>) {
        let texts = self.buffers.values().map(|buffer| buffer.text.clone());
        let root = self.stage.world.path();
        let files = without_times(&root)
            .into_iter()
            .filter_map(|(path, content)| {
                let path = path.strip_prefix(&root).unwrap().to_owned();
                (!path.starts_with(".git") && !path.starts_with("build")).then_some((path, content))
            });
        (texts.collect(), files.collect())
    }
}

impl Case {
    /// A repository with files saved since the last commit.
    fn stage(self, line: &str) -> Stage {
        let stage = Stage::new(self.level, &[run(line)]);
        let root = stage.world.path();
        stage.world.write(".gitignore", "build\n.home\n");
        stage.world.write("a.rs", OTHER);
        shell(
            &root,
            "git init -qb main; cp a.rs b.rs; git add .; git commit -qm other; git branch other",
        );
        stage.world.write("a.rs", FIRST);
        shell(&root, "cp a.rs b.rs; git commit -qam first");
        for file in ["a.rs", "b.rs", "build/i.rs"] {
            stage.world.write(file, SAVED);
        }
        stage.world.write("other.rs", "fn elsewhere() {}\n");
        stage
    }

    /// The lost text, if any.
    fn play(self) -> Result<(), String> {
        let (name, _) = *self.buffers.last().unwrap();
        let line = self.way.0.replace("IT", name);
        let stage = self.stage(&line);
        let root = stage.world.path();
        let mut capabilities = json!({ "experimental": { "tandem": {} } });
        if self.saves {
            capabilities["experimental"]["tandem"] = json!({ "_meta": { "tandem.save": true } });
        }
        let mut client = stage.client_with(capabilities);
        let mut buffers = BTreeMap::new();
        for (name, typed) in self.buffers {
            let (text, known) = (typed.text(), std::fs::read_to_string(root.join(name)).ok());
            client.open(&stage.world.uri(name), &text);
            let buffer = Buffer {
                text,
                version: 1,
                known,
            };
            buffers.insert((*name).to_owned(), buffer);
        }
        let session = automatic(&mut client, &stage);
        let mut editor = Editor {
            client,
            stage: &stage,
            session,
            buffers,
        };
        let (texts, files) = editor.state();
        let request = editor.client.prompt(&editor.session, "go");
        editor.until(request);
        let told = stage.told().remove(0);
        let after = editor.state();
        let mut lost = Vec::new();
        for (name, _) in self.buffers {
            if !self.saves
                && self.level != Level::Best
                && !editor.buffers[*name].text.contains("typed")
            {
                lost.push(format!("typed text of {name}"));
            }
        }
        if let Some(drawn) = self.way.1
            && editor.disk(name).is_some_and(|text| text.contains(drawn))
            && !editor.buffers[name].text.contains(drawn)
            && !told.contains("is on disk")
        {
            lost.push("what the command wrote".to_owned());
        }
        let undone = editor.review("undo");
        let before = editor.state();
        if before.0 != texts || (!self.saves && before.1 != files) {
            lost.push(format!("undo: {undone}"));
        }
        let redone = editor.review("redo");
        let is_whole = redone["result"]["left"] == json!([]);
        if is_whole && editor.state() != after {
            lost.push(format!("redo: {redone}"));
        }
        let redone = editor.state();
        let again = editor.review("undo");
        if editor.state() != before {
            lost.push(format!("a second undo: {again}"));
        }
        if lost.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{self:?}\n{line}: {told}\nbefore: {:?}\nafter: {after:?}\nundone: {before:?}\nredone: {redone:?}\n- {}",
            (texts, files),
            lost.join("\n- ")
        ))
    }
}

#[test]
fn unsaved_text_survives_every_command_and_its_undo() {
    let all = cases();
    let which = std::env::var("TANDEM_UNSAVED").unwrap_or_default();
    let some: Vec<_> = if which == "all" {
        all
    } else {
        let first = which.parse().unwrap_or(0);
        all.into_iter().skip(first).step_by(SHARE).collect()
    };
    let count = some.len();
    let failed: Vec<_> = side_by_side(4, some, Case::play)
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {count}:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}
