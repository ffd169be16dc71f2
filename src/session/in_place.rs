//! Edits in place that a person kept: turns of the conversation that its model did not run. The model learns of them, and
//! they are reviewed, undone and shown again like any other.

use std::path::PathBuf;
use std::sync::Arc;

use super::event::{Recorded, SessionEvent};
use super::store::Record;
use super::{Actor, Attachment, Prompt, ReviewError};
use crate::agent::Step;
use crate::agent::event::{AgentEvent, Termination};
use crate::domain::{FileDiff, Location, Preview, ToolKind};
use crate::text::diff::unified;
use crate::tools::ToolOutput;

/// How many edits may wait for the running turn; more are refused.
const WAITING: usize = 32;
/// How much of an edit the model sees, in bytes; it can read the file.
const SHOWN: usize = 4000;
/// The name of the call that stands for the edit.
const NAME: &str = "edit_in_place";
/// The answer of the turn: many chat templates reject a conversation in which the roles do not alternate.
const DONE: &str = "Edited in place.";

/// An edit in place.
#[derive(Debug)]
pub struct EditInPlace {
    /// The file.
    pub path: PathBuf,
    /// The person's instruction.
    pub instruction: String,
    /// The text before the edit.
    pub before: Arc<str>,
    /// The text afterwards.
    pub after: Arc<str>,
}

/// An edit that waits for the running turn to end, and where its turn's number goes.
pub(super) struct Waiting {
    edit: EditInPlace,
    reply: Recorded,
}

impl Actor {
    /// An edit was kept: it is recorded once no turn runs, because turns follow each other.
    pub fn edited(&mut self, edit: EditInPlace, reply: Recorded) {
        if self.queue.edits.len() < WAITING {
            self.queue.edits.push_back(Waiting { edit, reply });
        } else {
            let error = ReviewError(
                "too many edits are already waiting for the running turn to end".to_owned(),
            );
            reply.send(Err(error)).ok();
        }
    }

    /// Records the edits that waited.
    pub async fn record_edits(&mut self) {
        while let Some(Waiting { edit, reply }) = self.queue.edits.pop_front() {
            let recorded = self.record_edit(edit).await;
            self.conversation.write(&mut self.outbox).await;
            self.conversation.journal.sync().await;
            self.outbox.push(SessionEvent::Edited(reply, recorded));
        }
    }

    async fn record_edit(&mut self, edit: EditInPlace) -> Result<u64, ReviewError> {
        let EditInPlace {
            path,
            instruction,
            before,
            after,
        } = edit;
        let path = self
            .workspace
            .resolve_path(&path)
            .map_err(|error| ReviewError(error.to_string()))?;
        let provider = self.provider().map_err(|why| ReviewError(why.message))?;
        self.models.look_around().await;
        let diff = unified(&before, &after, 1);
        let (shown, _) = diff.split_at(diff.floor_char_boundary(SHOWN));
        let name = path.display();
        let done = format!("(the user applied this inline edit to {name}:\n{shown})");
        let mut message = Prompt::text(instruction.as_str());
        let notes = std::iter::once(done).chain(self.conversation.notes.drain(..));
        message.parts.extend(notes.map(Attachment::Note));
        self.changes
            .settle_unconfirmed(&mut self.conversation)
            .await;
        self.begin_turn(&instruction, Vec::new(), message, &provider);
        let turn = self.conversation.turns;
        self.outbox.push(AgentEvent::UserMessage {
            content: instruction,
            prompt: None,
            turn: Some(turn),
            attached: Vec::new(),
        });
        self.outbox.title(self.conversation.title.take());
        let diff = FileDiff::new(path.recorded(), Some(before), after);
        self.show_edit(
            &format!("{NAME}-{turn}"),
            format!("Edit {name} in place"),
            diff,
        )
        .await;
        self.conversation.answer(DONE, &provider);
        self.conversation.journal.note(Record::End {
            reason: Some(Termination::EndTurn),
            usage: None,
            filled: 0,
        });
        self.outbox.push(AgentEvent::IterationStart {
            iteration: 1,
            message_count: 0,
        });
        self.outbox.push(AgentEvent::TextDelta {
            content: DONE.to_owned(),
        });
        Ok(turn)
    }

    /// Shows and records the edit as a call that has ended.
    async fn show_edit(&mut self, call_id: &str, title: String, diff: FileDiff) {
        let locations = vec![Location {
            path: diff.path.clone(),
            line: None,
        }];
        let preview = Preview {
            title,
            locations: locations.clone(),
            ..Preview::default()
        };
        let result = ToolOutput {
            diffs: vec![diff],
            locations,
            ..ToolOutput::default()
        };
        let [start, shown] = AgentEvent::own_call(call_id, NAME, ToolKind::Edit, preview);
        for event in [start, shown, AgentEvent::ended(call_id, NAME, result)] {
            self.step(Step::Event(event)).await;
        }
    }
}
