//! The task that streams an answer into a chat file.
//!
//! The answer begins after the last word of the file (some clients cannot edit at its end, after the last line),
//! together with the heading of the next prompt; from then on it grows above that heading, so that what is typed below
//! is the next prompt. An edit overtaken by typing is refused and made again. The client's answer is not trusted:
//! Neovim skips such an edit and claims to have made it. One edit is in flight at a time, and a pause lies between two,
//! so that undo does not go word by word.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use super::chat::{TANDEM, YOU, growing};
use crate::domain::lock;
use crate::rpc::Peer;
use crate::server::capabilities::{Capabilities, TAKES_NO_EDITS};
use crate::text::Fences;
use crate::workspace::native::file_of;
use crate::workspace::{Document, Documents, StateFolder};

/// The shortest time between two edits of the stream.
const PAUSE: Duration = Duration::from_millis(150);
/// How long a file that was just shown may take to be opened, and a client to report the change that an edit made.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to answer an edit before it counts as lost; an edit to a version can be applied only once.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a client may take to draw what it was sent.
const DRAWING: Duration = Duration::from_millis(100);
/// How long to wait for our change after one that was typed.
const SETTLE: Duration = Duration::from_millis(500);
/// How often an edit that typing overtook is repeated: a minute of typing without a pause.
const TRIES: usize = 400;

/// What is still to be written into a chat file.
#[derive(Debug, Clone)]
pub(super) struct ChatFile {
    pub uri: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
    /// Everything that was added is in the file.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    text: String,
    /// Replacements for text that is in the file.
    replaced: Vec<(String, String)>,
    done: bool,
    /// Whether something of it is on its way into the file.
    writing: bool,
    /// The kind of the last part written.
    last: Part,
    /// The line breaks that follow it, held back.
    breaks: usize,
    /// Code fences in the model's text.
    fences: Fences,
    /// The unfinished line of it.
    line: String,
    /// The prompt, if it got no turn: it stands below the answer again.
    unsent: String,
}

/// The parts of an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A paragraph of its own.
    #[default]
    Block,
    /// An item of a list.
    Item,
    /// The model's text, in pieces that belong together.
    Prose,
}

impl Pending {
    fn is_settled(&self) -> bool {
        self.text.is_empty() && self.replaced.is_empty() && !self.writing
    }

    /// Adds `text`, after the empty line that Markdown needs between different parts.
    fn add(&mut self, part: Part, text: &str) {
        let (breaks, text) = match (self.last, part) {
            (Part::Prose, Part::Prose) => (0_usize, text),
            (Part::Item, Part::Item) => (1, text),
            (_, Part::Prose) => (2, text.trim_start_matches('\n')),
            _ => (2, text),
        };
        if text.is_empty() {
            return;
        }
        if part == Part::Prose {
            self.read(text);
        } else {
            self.close_code();
        }
        // Line breaks at the end wait for what follows them: there may be nothing.
        let body = text.trim_end_matches('\n');
        let trailing = text.len() - body.len();
        self.last = part;
        if body.is_empty() {
            self.breaks += trailing;
            return;
        }
        self.text.push_str(&"\n".repeat(breaks.max(self.breaks)));
        self.text.push_str(body);
        self.breaks = trailing;
    }

    /// Has `new` take the place of `old`, which was added before.
    fn replace(&mut self, old: String, new: String) {
        if let Some(at) = self.text.rfind(&old) {
            self.text.replace_range(at..at + old.len(), &new);
        } else {
            self.replaced.push((old, new));
        }
    }

    /// Tracks code fences in the model's text.
    fn read(&mut self, prose: &str) {
        self.line.push_str(prose);
        if let Some((lines, rest)) = self.line.rsplit_once('\n') {
            for line in lines.lines() {
                self.fences.take(line);
            }
            self.line = rest.to_owned();
        }
    }

    /// An answer may end inside a code block; whatever follows, above all the person's heading, must not become part of
    /// it.
    fn close_code(&mut self) {
        let mut fences = std::mem::take(&mut self.fences);
        fences.take(&std::mem::take(&mut self.line));
        if let Some(closing) = fences.closing() {
            self.text.push_str(&"\n".repeat(self.breaks.max(1)));
            self.text.push_str(&closing);
            self.breaks = 0;
        }
    }
}

impl ChatFile {
    /// A chat file at `uri`.
    pub fn new(uri: String) -> Self {
        Self {
            uri,
            shared: Arc::default(),
        }
    }

    /// Appends to the model's text.
    pub fn prose(&self, text: &str) {
        self.add(Part::Prose, text);
    }

    /// Adds an item to a list.
    pub fn item(&self, text: &str) {
        self.add(Part::Item, &format!("- {text}"));
    }

    /// Adds a separate paragraph.
    pub fn block(&self, text: &str) {
        self.add(Part::Block, text);
    }

    /// Adds a notice that is nobody's words.
    pub fn quote(&self, text: &str) {
        self.block(&quoted(text));
    }

    /// Has the prompt stand below the answer, to be sent again.
    pub fn give_back(&self, prompt: String) {
        self.lock().unsent = prompt;
    }

    fn add(&self, part: Part, text: &str) {
        self.lock().add(part, text);
        self.shared.wake.notify_one();
    }

    /// Replaces a paragraph that was added before; one that the person changed stays.
    pub fn replace(&self, old: String, new: String) {
        self.lock().replace(old, new);
        self.shared.wake.notify_one();
    }

    /// Ends the stream.
    pub fn finish(&self) {
        self.lock().done = true;
        self.shared.wake.notify_one();
    }

    /// Waits until the text added so far is visible: it is in the file, and the client had a moment to draw it.
    pub async fn seen(&self) {
        let settled = async {
            loop {
                let settled = self.shared.settled.notified();
                if self.lock().is_settled() {
                    break;
                }
                settled.await;
            }
        };
        let _in_vain = timeout(TIMEOUT, settled).await;
        tokio::time::sleep(DRAWING).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        lock(&self.shared.pending)
    }

    /// What is to be written next, and whether that is all.
    fn take(&self) -> (String, Vec<(String, String)>, bool) {
        let mut pending = self.lock();
        pending.writing = false;
        let is_settled = pending.is_settled();
        pending.writing = !is_settled;
        if is_settled {
            self.shared.settled.notify_waiters();
        }
        (
            std::mem::take(&mut pending.text),
            std::mem::take(&mut pending.replaced),
            pending.done,
        )
    }

    /// Streams into the buffer until the end; reports what could not be written. `placed` is called when the next
    /// prompt has its place. An editor may not open the file, or close it: then what is left of the answer is written to
    /// disk, and its path is returned.
    pub async fn stream(
        self,
        peer: Peer,
        documents: Documents,
        can: Capabilities,
        placed: impl FnOnce(&Document),
    ) -> Result<Option<PathBuf>, String> {
        let buffer = Buffer {
            uri: &self.uri,
            peer,
            documents,
            can,
        };
        let mut placed = Some(placed);
        let mut prompts = 0;
        loop {
            tokio::select! {
                biased;
                () = buffer.documents.opened(&self.uri) => {}
                () = self.ended_unseen() => return self.write(prompts).await.map(Some),
            }
            if !can.applies_edits {
                return Err(TAKES_NO_EDITS.to_owned());
            }
            let (text, replaced, done) = self.take();
            let is_idle = text.is_empty() && replaced.is_empty();
            let before = buffer.documents.get(&self.uri);
            let there = before.map_or(0, |document| headings(&document.text));
            let written = async {
                for (old, new) in replaced {
                    buffer
                        .edit(|text| Some(Edit::replace(text.rfind(&old)?, &old, &new)))
                        .await?;
                }
                if !text.is_empty() {
                    let unsent = self.lock().unsent.clone();
                    buffer
                        .edit(|file| Some(Edit::more(file, &text, prompts).below(&unsent)))
                        .await?;
                }
                if is_idle && done {
                    buffer
                        .edit(|file| growing(file).is_none().then(|| Edit::begin(file, "")))
                        .await?;
                }
                Ok::<_, String>(())
            };
            let written = written.await;
            if written.is_ok() && !text.is_empty() {
                prompts = there + usize::from(prompts == 0 || there < prompts);
            }
            let Some(document) = buffer.documents.get(&self.uri) else {
                if is_idle && done {
                    return Ok(None);
                }
                // It was closed; what is not in it goes to the disk.
                if written.is_err() {
                    self.lock().text.insert_str(0, &text);
                }
                continue;
            };
            written?;
            if prompts > 0
                && let Some(placed) = placed.take()
            {
                placed(&document);
            }
            if is_idle && done {
                return Ok(None);
            }
            if is_idle {
                self.shared.wake.notified().await;
            } else if !done {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl ChatFile {
    /// Resolves when the answer is complete and an editor had time to open the file.
    async fn ended_unseen(&self) {
        self.ended().await;
        tokio::time::sleep(TIMEOUT).await;
    }

    /// Waits for the end of the answer.
    async fn ended(&self) {
        while !self.lock().done {
            self.shared.wake.notified().await;
        }
    }

    /// Waits for the end of the answer and adds what is left of it to the file, which nobody has open. See [`Edit::more`].
    pub async fn write(&self, prompts: usize) -> Result<PathBuf, String> {
        self.ended().await;
        let answer = std::mem::take(&mut self.lock().text);
        self.shared.settled.notify_waiters();
        let path =
            file_of(&self.uri).ok_or_else(|| format!("the editor did not open {}", self.uri))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let written = async {
            let folder = StateFolder::existing(folder).await?;
            let before = folder.read(name).await?.unwrap_or_default();
            let mut file = String::from_utf8(before).map_err(io::Error::other)?;
            let Edit { bytes, new_text } = Edit::more(&file, &answer, prompts);
            file.replace_range(bytes, &new_text);
            folder.write(name, file.into_bytes()).await
        };
        written
            .await
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// A notice as it stands in the file.
pub(super) fn quoted(text: &str) -> String {
    format!("> {}", text.replace('\n', "\n> "))
}

/// A change of the file.
struct Edit {
    /// What is replaced.
    bytes: Range<usize>,
    new_text: String,
}

/// An answer with the place of the next prompt below it.
fn ended(answer: &str) -> String {
    format!("{answer}\n\n{YOU}\n")
}

impl Edit {
    fn replace(at: usize, old: &str, new: &str) -> Self {
        Self {
            bytes: at..at + old.len(),
            new_text: new.to_owned(),
        }
    }

    fn insert(at: usize, new_text: String) -> Self {
        Self {
            bytes: at..at,
            new_text,
        }
    }

    /// Begins an answer after the last word of a file. What follows is an empty line to type in.
    fn begin(file: &str, answer: &str) -> Self {
        let at = file.trim_end_matches(['\r', '\n']).len();
        let missing = if at == file.len() { "\n" } else { "" };
        Self::insert(at, ended(answer) + missing)
    }

    /// Adds to an answer. `prompts`: how many headings of prompts the file has since the answer began, 0 before it does.
    /// If there are fewer, what was there of it was not saved, and it begins anew.
    fn more(file: &str, text: &str, prompts: usize) -> Self {
        match growing(file).filter(|_| prompts > 0 && headings(file) >= prompts) {
            Some(at) => Self::insert(at, text.to_owned()),
            None if prompts == 0 => Self::begin(file, text),
            None => Self::begin(file, &format!("\n\n{TANDEM}\n\n{}", text.trim_start())),
        }
    }

    /// Adds a prompt at the end.
    fn below(mut self, prompt: &str) -> Self {
        if !prompt.is_empty() {
            self.new_text.push('\n');
            self.new_text.push_str(prompt);
        }
        self
    }

    /// Whether `now`, which somebody may have typed in as well, is `before` with this edit.
    fn is_in(&self, before: &str, now: &str) -> bool {
        let old = before.get(self.bytes.clone()).unwrap_or_default();
        if headings(&self.new_text) > 0 {
            headings(now) > headings(before)
        } else if old.is_empty() {
            growing(now) >= growing(before).map(|at| at + self.new_text.len())
        } else {
            now.matches(old).count() < before.matches(old).count()
        }
    }
}

/// How many headings of prompts there are.
fn headings(text: &str) -> usize {
    text.lines().filter(|line| line.trim_end() == YOU).count()
}

/// The file as the editor has it.
struct Buffer<'a> {
    uri: &'a str,
    peer: Peer,
    documents: Documents,
    can: Capabilities,
}

impl Buffer<'_> {
    /// Makes the edit that the newest text calls for, if it does, and waits until the client has reported it. One that
    /// typing overtook is made again.
    async fn edit(&self, wanted: impl Fn(&str) -> Option<Edit>) -> Result<(), String> {
        let mut refused = String::new();
        for _ in 0..TRIES {
            let document = self
                .documents
                .get(self.uri)
                .ok_or_else(|| format!("{} was closed", self.uri))?;
            let Some(edit) = wanted(&document.text) else {
                return Ok(());
            };
            match self.apply(&document, &edit).await {
                Ok(()) if self.shows(&document, &edit).await => return Ok(()),
                Ok(()) => "the editor reported success, but the text did not change"
                    .clone_into(&mut refused),
                Err(why) => refused = why,
            }
            let _nothing_typed =
                timeout(PAUSE, self.documents.changed(self.uri, document.version)).await;
        }
        Err(refused)
    }

    /// Whether the file comes to show an edit that the editor says it made. One that reports no change is trusted.
    async fn shows(&self, before: &Document, edit: &Edit) -> bool {
        let (mut version, mut end) = (before.version, Instant::now() + TIMEOUT);
        while let Ok(Some(now)) = timeout_at(end, self.documents.changed(self.uri, version)).await {
            if edit.is_in(&before.text, &now.text) {
                return true;
            }
            (version, end) = (now.version, end.min(Instant::now() + SETTLE));
        }
        version == before.version
    }

    /// Makes one edit; the reason when the editor refused it.
    async fn apply(
        &self,
        document: &Document,
        Edit { bytes, new_text }: &Edit,
    ) -> Result<(), String> {
        let range = document
            .lines
            .range(&document.text, bytes, self.documents.encoding());
        let edit = json!({ "range": range, "newText": new_text });
        let change = self
            .can
            .workspace_edit(self.uri, Some(document.version), &[edit]);
        let answer = self
            .peer
            .request("workspace/applyEdit", &json!({ "edit": change }));
        let limit = if self.can.versions_edits {
            ANSWER
        } else {
            Duration::MAX
        };
        let Ok(answer) = timeout(limit, answer).await else {
            return Err("the editor did not answer".to_owned());
        };
        match answer {
            Ok(answer) if answer["applied"] == true => Ok(()),
            Ok(answer) => Err(answer["failureReason"]
                .as_str()
                .unwrap_or("the editor refused the edit")
                .to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Framing, connect};
    use crate::text::Encoding;

    #[tokio::test(start_paused = true)]
    async fn an_edit_that_the_client_loses_is_repeated() {
        let (output, server_output) = std::io::pipe().unwrap();
        let (peer, _inbox, writer) =
            connect(Framing::Line, std::io::empty(), server_output).unwrap();
        let documents = Documents::new(Encoding::Utf16);
        documents.open("file:///a.tandem.md", 1, "markdown", "## You\n\nHello\n");
        let can = Capabilities {
            versions_edits: true,
            ..Capabilities::default()
        };
        let buffer = Buffer {
            uri: "file:///a.tandem.md",
            peer,
            documents,
            can,
        };
        let edit = buffer.edit(|file| Some(Edit::begin(file, "An answer")));
        assert!(timeout(ANSWER * 2, edit).await.is_err());
        drop(buffer);
        // This test's clock does not wait for the thread, but its output ends only when the thread does.
        let _timed_out = writer.finish().await;
        let edits = std::io::read_to_string(output).unwrap();
        assert_eq!(edits.matches("workspace/applyEdit").count(), 2, "{edits}");
    }

    #[test]
    fn an_answer_that_ends_inside_code_closes_it() {
        let mut pending = Pending::default();
        for (part, text) in [
            (Part::Prose, "Look:\n``"),
            (Part::Prose, "`rust\nfn main"),
            (Part::Item, "- one"),
            (Part::Prose, "~~~~\n## tandem\n"),
            (Part::Block, "> noted\n\n"),
            (Part::Prose, "```\nwhole\n```"),
            (Part::Block, "> stopped"),
        ] {
            pending.add(part, text);
        }
        assert_eq!(
            pending.text,
            "\n\nLook:\n```rust\nfn main\n```\n\n- one\n\n~~~~\n## tandem\n~~~~\n\n> noted\n\n```\nwhole\n```\n\n> stopped"
        );
    }

    #[test]
    fn different_parts_are_separated_and_deltas_are_not() {
        let mut pending = Pending::default();
        for (part, text) in [
            (Part::Block, "## tandem"),
            (Part::Item, "- one"),
            (Part::Item, "- two"),
            (Part::Prose, "\n\n"),
            (Part::Prose, "\nHel"),
            (Part::Prose, "lo.\n"),
            (Part::Prose, "\n"),
            (Part::Block, "> stopped"),
            (Part::Prose, "\n\n"),
        ] {
            pending.add(part, text);
        }
        assert_eq!(
            pending.text,
            "\n\n## tandem\n\n- one\n- two\n\nHello.\n\n> stopped"
        );
    }

    #[test]
    fn requests_decided_early_are_written_as_decided() {
        let mut pending = Pending::default();
        pending.add(Part::Block, "> asks: a");
        pending.replace("> asks: a".to_owned(), "> allowed: a".to_owned());
        pending.replace("> asks: b".to_owned(), "> rejected: b".to_owned());
        assert_eq!(pending.text, "\n\n> allowed: a");
        assert_eq!(
            pending.replaced,
            [("> asks: b".to_owned(), "> rejected: b".to_owned())]
        );
    }
}
