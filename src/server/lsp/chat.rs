//! The chat file: a Markdown file whose last heading says whose turn it is, and the task that streams an answer into
//! it.
//!
//! The answer is appended past the end of the buffer without a version, so it cannot conflict with the person's typing.
//!
//! One edit is in flight at a time, with a pause between two, so that not every word is an undo step.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::rpc::Peer;
use crate::server::documents::path_of;
use crate::text::Fences;
use crate::workspace::{CHAT_FILE, StateFolder};

/// The shortest time between two edits of the stream.
const PAUSE: Duration = Duration::from_millis(150);
/// How long the editor may take to open a file it was asked to show.
const OPENING: Duration = Duration::from_secs(5);
/// Past the end of any document: clients clamp it to the end.
const PAST_THE_END: u32 = i32::MAX.cast_unsigned();

/// How many bytes of an existing chat file are given to a conversation that begins in the middle of it.
const EARLIER: usize = 65_536;

/// The heading above the person's messages.
pub(super) const YOU: &str = "## You";
/// The heading above an answer.
pub(super) const TANDEM: &str = "## tandem";

/// Whether a file is a chat file, by its name.
pub(super) fn is_chat(uri: &str) -> bool {
    uri.ends_with(CHAT_FILE)
}

/// The unanswered question in a chat file.
pub(super) fn question(text: &str) -> Option<&str> {
    let question = text.get(asked(text)?..)?.trim();
    (!question.is_empty()).then_some(question)
}

/// Where the question begins: below the last heading, if that is the person's (or if there is no heading yet).
pub(super) fn asked(text: &str) -> Option<usize> {
    let mut fences = Fences::default();
    let mut at = 0;
    let mut under = Some(0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if fences.take(line) {
        } else if line.eq_ignore_ascii_case(YOU) || line.starts_with("# ") {
            under = Some(at);
        } else if line.eq_ignore_ascii_case(TANDEM) {
            under = None;
        }
    }
    under
}

/// The conversation in a chat file before its question, if there was an answer; only the end of it if it is long.
pub(super) fn earlier(text: &str) -> Option<&str> {
    let before = text.get(..asked(text)?)?;
    let before = before.trim_end().strip_suffix(YOU).unwrap_or(before).trim();
    let start = before.ceil_char_boundary(before.len().saturating_sub(EARLIER));
    let was_answered = before.lines().any(|line| line.trim_end().eq_ignore_ascii_case(TANDEM));
    before.get(start..).filter(|_| was_answered)
}

/// What is still to be written into a chat file.
#[derive(Debug, Clone)]
pub(super) struct ChatFile {
    pub uri: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    text: String,
    done: bool,
    /// The kind of the last part written.
    last: Part,
    /// The line breaks it ends with.
    breaks: usize,
    /// Code fences in the model's text.
    fences: Fences,
    /// The unfinished line of it.
    line: String,
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
        self.text.push_str(&"\n".repeat(breaks.saturating_sub(self.breaks)));
        self.text.push_str(text);
        let trailing = text.len() - text.trim_end_matches('\n').len();
        self.breaks = if trailing == text.len() { self.breaks + trailing } else { trailing };
        self.last = part;
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
            self.text.push_str(if self.breaks == 0 { "\n" } else { "" });
            self.text.push_str(&closing);
            self.breaks = 0;
        }
    }
}

impl ChatFile {
    /// A chat file at `uri`, which ends with this many line breaks.
    pub fn new(uri: String, breaks: usize) -> Self {
        let pending = Mutex::new(Pending { breaks, ..Pending::default() });
        Self { uri, shared: Arc::new(Shared { pending, wake: Notify::new() }) }
    }

    /// Appends to the model's text.
    pub fn prose(&self, text: &str) {
        self.add(Part::Prose, text);
    }

    /// Adds an item to a list.
    pub fn item(&self, text: &str) {
        self.add(Part::Item, &format!("- {text}"));
    }

    /// Adds a paragraph of its own.
    pub fn block(&self, text: &str) {
        self.add(Part::Block, text);
    }

    /// Adds a notice, as a quote.
    pub fn quote(&self, text: &str) {
        self.block(&format!("> {}", text.replace('\n', "\n> ")));
    }

    fn add(&self, part: Part, text: &str) {
        self.lock().add(part, text);
        self.shared.wake.notify_one();
    }

    /// Ends the stream.
    pub fn finish(&self) {
        self.lock().done = true;
        self.shared.wake.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Streams into the buffer until the end; tells what could not be written. An editor may not open the file: then the
    /// whole answer is written to the disk, and where that is is returned.
    pub async fn stream(self, peer: Peer, documents: crate::workspace::Documents) -> Result<Option<PathBuf>, String> {
        let opened = tokio::time::timeout(OPENING, documents.opened(&self.uri)).await;
        if opened.is_err() {
            return self.write().await.map(Some);
        }
        loop {
            let (text, done) = {
                let mut pending = self.lock();
                (std::mem::take(&mut pending.text), pending.done)
            };
            if !text.is_empty() {
                append(&peer, &self.uri, &text).await?;
                if !done {
                    tokio::time::sleep(PAUSE).await;
                }
            } else if done {
                return Ok(None);
            } else {
                self.shared.wake.notified().await;
            }
        }
    }
}

impl ChatFile {
    /// Waits for the end of the answer and adds it to the file, which nobody has open.
    async fn write(&self) -> Result<PathBuf, String> {
        while !self.lock().done {
            self.shared.wake.notified().await;
        }
        let answer = std::mem::take(&mut self.lock().text);
        let path = path_of(&self.uri).ok_or_else(|| format!("the editor did not open {}", self.uri))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let written = async {
            let folder = StateFolder::existing(folder).await?;
            let mut text = folder.read(name).await?.unwrap_or_default();
            text.extend_from_slice(answer.as_bytes());
            folder.write(name, text).await
        };
        written.await.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

async fn append(peer: &Peer, uri: &str, text: &str) -> Result<(), String> {
    let end = json!({ "line": PAST_THE_END, "character": 0 });
    let edit = json!({ "range": { "start": end, "end": end }, "newText": text });
    let change = json!({ "textDocument": { "uri": uri, "version": null }, "edits": [edit] });
    let answer = peer.request("workspace/applyEdit", &json!({ "edit": { "documentChanges": [change] } })).await;
    match answer {
        Ok(answer) if answer["applied"] == true => Ok(()),
        Ok(answer) => Err(answer["failureReason"].as_str().unwrap_or("the editor refused the edit").to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(question(text), expected, "{text:?}");
    }

    #[test]
    fn the_question_is_what_stands_under_the_persons_last_heading() {
        check("## You\n\nwhy?\n", Some("why?"));
        check("why?\n", Some("why?"));
        check("# Notes\nwhy?", Some("why?"));
        check("## You\n\none\n\n## tandem\n\nbecause\n\n## You\n\ntwo\n", Some("two"));
        check("## You\r\n\r\nwhy?\r\n", Some("why?"));
    }

    #[test]
    fn a_file_with_nothing_new_asks_nothing() {
        check("", None);
        check("## You\n\n  \n", None);
        check("## You\n\none\n\n## tandem\n\nbecause\n", None);
        check("## You\n\none\n\n## tandem\n\nbecause\n\n## You\n\n", None);
    }

    #[test]
    fn the_conversation_before_the_question_is_sent_with_its_answers() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(earlier(text), expected, "{text:?}");
        check("## You\n\none\n\n## tandem\n\ntwo\n\n## You\n\nthree\n", Some("## You\n\none\n\n## tandem\n\ntwo"));
        check("# Notes\n\n## You\n\none\n", None);
        check("one", None);
        let long = format!("## tandem\n\n{}x\n\n## You\n\nx", "ü".repeat(EARLIER));
        let end = earlier(&long).unwrap();
        assert!(end.ends_with("üx") && end.len() <= EARLIER, "its end: {} bytes", end.len());
    }

    #[test]
    fn headings_in_code_are_code() {
        check("## You\n\nwhat is\n```md\n## tandem\n```\n?", Some("what is\n```md\n## tandem\n```\n?"));
    }

    #[test]
    fn an_answer_that_ends_in_code_leaves_it() {
        let mut pending = Pending::default();
        for (part, text) in [
            (Part::Prose, "Look:\n``"),
            (Part::Prose, "`rust\nfn main"),
            (Part::Item, "- one"),
            (Part::Prose, "~~~~\n## tandem\n"),
            (Part::Block, "## You\n\n"),
            (Part::Prose, "```\nwhole\n```"),
            (Part::Block, "> stopped"),
        ] {
            pending.add(part, text);
        }
        assert_eq!(
            pending.text,
            "\n\nLook:\n```rust\nfn main\n```\n\n- one\n\n~~~~\n## tandem\n~~~~\n\n## You\n\n```\nwhole\n```\n\n> stopped"
        );
    }

    #[test]
    fn different_parts_are_separated_and_pieces_are_not() {
        let mut pending = Pending { breaks: 1, ..Pending::default() };
        for (part, text) in [
            (Part::Block, TANDEM),
            (Part::Item, "- one"),
            (Part::Item, "- two"),
            (Part::Prose, "\n\n"),
            (Part::Prose, "\nHel"),
            (Part::Prose, "lo.\n"),
            (Part::Prose, "\n"),
            (Part::Block, "> stopped"),
            (Part::Block, "## You\n\n"),
        ] {
            pending.add(part, text);
        }
        assert_eq!(pending.text, "\n## tandem\n\n- one\n- two\n\nHello.\n\n> stopped\n\n## You\n\n");
    }

    #[test]
    fn a_smaller_heading_is_part_of_the_question() {
        check("## You\n\n### Context\nx", Some("### Context\nx"));
    }
}
