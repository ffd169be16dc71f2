//! The chat file: a Markdown file whose last heading says whose turn it is, and the task that streams an answer into it.
//!
//! The answer is appended past the end of the buffer without a version, so it cannot race with the person's typing;
//! one edit is in flight at a time and a pause lies between two, so that undo is not one step a word.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::rpc::Peer;

/// The shortest time between two edits of the stream.
const PAUSE: Duration = Duration::from_millis(150);
/// How long a file that was just shown may take to be opened.
const OPENING: Duration = Duration::from_secs(5);
/// Past the end of any document: clients clamp it to the end.
const PAST_THE_END: u32 = i32::MAX.cast_unsigned();

/// The heading of what the person says.
pub(super) const YOU: &str = "## You";
/// The heading of an answer.
pub(super) const TANDEM: &str = "## tandem";

/// Whether a file is a chat file: its name says so.
pub(super) fn is_chat(uri: &str) -> bool {
    uri.ends_with(".tandem.md")
}

/// The question that waits in a chat file: the text under the last heading, when that heading is the person's (or when
/// there is none yet).
pub(super) fn question(text: &str) -> Option<&str> {
    let mut fenced = false;
    let mut at = 0;
    let mut under = Some(0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && (line.eq_ignore_ascii_case(YOU) || line.starts_with("# ")) {
            under = Some(at);
        } else if !fenced && line.eq_ignore_ascii_case(TANDEM) {
            under = None;
        }
    }
    let question = text.get(under?..)?.trim();
    (!question.is_empty()).then_some(question)
}

/// What is still to be written into one chat file.
#[derive(Debug, Clone)]
pub(super) struct ChatFile {
    pub uri: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    text: String,
    done: bool,
    /// The text ends in the middle of a line.
    mid_line: bool,
}

impl ChatFile {
    pub fn new(uri: String) -> Self {
        Self { uri, shared: Arc::default() }
    }

    /// Adds to the stream.
    pub fn write(&self, text: &str) {
        let mut pending = self.lock();
        pending.text.push_str(text);
        if let Some(last) = text.chars().next_back() {
            pending.mid_line = last != '\n';
        }
        drop(pending);
        self.shared.wake.notify_one();
    }

    /// Adds a paragraph of its own.
    pub fn block(&self, text: &str) {
        let lead = if self.lock().mid_line { "\n\n" } else { "\n" };
        self.write(&format!("{lead}{text}\n"));
    }

    /// Nothing more will come.
    pub fn finish(&self) {
        self.lock().done = true;
        self.shared.wake.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Streams into the buffer until the end; tells what could not be written.
    pub async fn stream(self, peer: Peer, documents: crate::workspace::Documents) -> Result<(), String> {
        let opened = tokio::time::timeout(OPENING, documents.opened(&self.uri)).await;
        if opened.is_err() {
            return Err(format!("the editor did not open {}", self.uri));
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
                return Ok(());
            } else {
                self.shared.wake.notified().await;
            }
        }
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
    fn headings_in_code_are_code() {
        check("## You\n\nwhat is\n```md\n## tandem\n```\n?", Some("what is\n```md\n## tandem\n```\n?"));
    }

    #[test]
    fn a_smaller_heading_is_part_of_the_question() {
        check("## You\n\n### Context\nx", Some("### Context\nx"));
    }
}
