//! What the turns of a session changed, and what a person does with it: undo, redo, keep, reject, and restoring files
//! and the session to the state before a turn in one step.

use std::path::PathBuf;

use futures_util::future::join_all;

use super::conversation::Conversation;
use super::outbox::Outbox;
use super::store::{Call, Journal, Record};
use super::{Review, ReviewError, Reviewed};
use crate::changes::change_set::EntryChange;
use crate::changes::checkpoint::{Checkpoints, Journaled, Settled};
use crate::changes::{ChangeSet, made};
use crate::domain::{FileDiff, Preview, ToolKind};
use crate::process::{Changed, Shell};
use crate::workspace::Workspace;

pub(super) struct Changes {
    pub checkpoints: Checkpoints,
    pub workspace: Workspace,
    pub shell: Shell,
    /// The edits that calls may make or have made although none has reported them.
    pub unconfirmed: Vec<Call>,
}

impl Changes {
    /// Records what a call changed.
    pub async fn record(
        &mut self,
        turn: u64,
        diffs: &[FileDiff],
        command: Option<&ChangeSet>,
        outbox: &mut Outbox,
    ) -> ChangeSet {
        let (recorded, problem) = self
            .checkpoints
            .record(&self.workspace, turn, diffs, command)
            .await;
        outbox.notices(problem);
        recorded
    }

    /// Records what a call is about to edit, which may be all that is known of it.
    pub async fn announce(
        &mut self,
        id: String,
        preview: &Preview,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) {
        self.take_up_unconfirmed(conversation).await;
        let mut diffs = preview.diffs.clone();
        diffs.retain(|diff| !diff.is_nothing());
        let (mut files, _told_when_it_is_made) =
            self.checkpoints.edits(&self.workspace, diffs).await;
        // A person may have made it before they allowed it.
        let images = self.checkpoints.images().await;
        let theirs = made(&self.workspace, &images, files.clone()).await.files;
        files.retain(|file| !theirs.contains(file));
        if !files.is_empty() {
            let mut call = Call {
                id,
                title: preview.title.clone(),
                kind: ToolKind::Edit,
                ..Call::default()
            };
            call.changed.files = files;
            conversation.journal.note(Record::Unconfirmed(call.clone()));
            self.unconfirmed.push(call);
            conversation.write(outbox).await;
        }
    }

    /// A call that ended has made the edits that it reports. If it failed, it may still make the others.
    pub fn confirm(&mut self, ended: &Call, has_failed: bool, journal: &mut Journal) {
        let is_of_it = |call: &Call| call.id == ended.id;
        let Some(index) = self.unconfirmed.iter().position(is_of_it) else {
            return;
        };
        let mut call = self.unconfirmed.remove(index);
        let files = &mut call.changed.files;
        files.retain(|file| {
            !ended
                .changed
                .files
                .iter()
                .any(|made| made.path == file.path)
        });
        if has_failed && !files.is_empty() {
            journal.note(Record::Unconfirmed(call.clone()));
            self.unconfirmed.push(call);
        }
    }

    /// What was edited without a report becomes part of the last turn; what was not may still be.
    pub async fn take_up_unconfirmed(&mut self, conversation: &mut Conversation) {
        let images = self.checkpoints.images().await;
        let calls = self.unconfirmed.clone();
        let looks = calls
            .iter()
            .map(|call| made(&self.workspace, &images, call.changed.files.clone()));
        let looked = join_all(looks).await;
        for (call, changed) in calls.into_iter().zip(looked) {
            if changed.files.iter().all(EntryChange::is_folder) {
                continue;
            }
            let recorded = Journaled::Changed(conversation.turns, changed.clone());
            self.checkpoints.restore(recorded).await;
            let made = Call { changed, ..call };
            conversation.journal.note(Record::Call(made.clone()));
            self.confirm(&made, true, &mut conversation.journal);
        }
    }

    /// A turn begins: from now on, the same edit would be somebody else's.
    pub async fn settle_unconfirmed(&mut self, conversation: &mut Conversation) {
        self.take_up_unconfirmed(conversation).await;
        self.unconfirmed.clear();
    }

    /// Adds what a command changed that was running when tandem was killed. Returns whether the previous contents are
    /// stored.
    pub async fn take_up_interrupted(
        &mut self,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) -> bool {
        self.take_up_unconfirmed(conversation).await;
        let mut is_stored = true;
        if let Some(changed) = self.shell.interrupted(&self.workspace).await {
            is_stored = !changed.is_unstored;
            let paths = changed.changes.files.len() + usize::from(!changed.changes.git.is_empty());
            outbox.notices([format!(
                "tandem was stopped while a command ran; undo covers what it changed ({paths} paths)"
            )]);
            self.take_up("An interrupted command", changed, conversation, outbox)
                .await;
        }
        is_stored
    }

    /// What a command changed that no call has reported becomes part of the last turn.
    async fn take_up(
        &mut self,
        title: &str,
        changed: Changed,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) {
        outbox.notices(changed.told);
        let (turn, command) = (conversation.turns, Some(&*changed.changes));
        let recorded = self.record(turn, &changed.diffs, command, outbox).await;
        if !recorded.is_empty() {
            conversation.journal.note(Record::Call(Call {
                title: title.to_owned(),
                kind: ToolKind::Execute,
                changed: recorded,
                ..Call::default()
            }));
        }
    }

    pub async fn review(
        &mut self,
        review: Review,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) -> Result<Reviewed, ReviewError> {
        if review == Review::List {
            return self.apply(review, None, conversation, outbox).await;
        }
        self.stop_undone_jobs(&review, conversation).await;
        self.take_up_unconfirmed(conversation).await;
        // What jobs in the background have changed so far becomes part of the last turn.
        if let Some(changed) = self.shell.changed_by_jobs(&self.workspace).await {
            self.take_up("Background job", changed, conversation, outbox)
                .await;
        }
        let before = self.checkpoints.under_review();
        // Recorded ahead: if tandem is killed while it applies changes again, they can be undone.
        let reverted = self.reverted(&review, conversation);
        let ahead = self.checkpoints.reviewed_ahead(reverted).await;
        note(ahead.clone(), conversation, outbox).await;
        let reviewed = self.apply(review, reverted, conversation, outbox).await;
        self.shell.look_past(&self.workspace).await;
        // What was done before a failure has to be recorded, too.
        let reviews = self.checkpoints.reviewed_since(&before);
        if reviews != ahead {
            note(reviews, conversation, outbox).await;
        }
        conversation.write(outbox).await;
        reviewed
    }

    /// Moves the changes under review along with files or folders that the editor renamed within the workspace.
    pub async fn follow(
        &mut self,
        names: Vec<(PathBuf, PathBuf)>,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) {
        let before = self.checkpoints.under_review();
        for (from, to) in names {
            let [from, to] = [from, to].map(|path| self.workspace.identity(&path));
            if self.workspace.resolve_path(&to).is_err() {
                continue;
            }
            for call in &mut self.unconfirmed {
                if call.changed.follow(&from, &to, |change| &change.after) {
                    conversation.journal.note(Record::Unconfirmed(call.clone()));
                }
            }
            if self.checkpoints.follow(&from, &to) {
                let [from, to] = [from, to].map(|path| self.workspace.shown(&path));
                conversation.tell(format!("(the user renamed {from} to {to})"));
            }
        }
        note(
            self.checkpoints.reviewed_since(&before),
            conversation,
            outbox,
        )
        .await;
    }

    /// Jobs end with the turn that began them: going back to before it leaves nothing running.
    async fn stop_undone_jobs(&self, review: &Review, conversation: &Conversation) {
        let turns = match review {
            Review::Restore(turn) => *turn..=u64::MAX,
            Review::Undo(Some(turn)) => *turn..=*turn,
            // Later turns changed nothing, but may have begun a job.
            Review::Undo(None) if conversation.cut_from().is_none() => {
                match self.checkpoints.next_undone() {
                    Some(turn) => turn..=u64::MAX,
                    None => return,
                }
            }
            _ => return,
        };
        self.shell.stop_jobs_of(turns).await;
    }

    /// The undo or rejection that a review reverts.
    fn reverted(&self, review: &Review, conversation: &Conversation) -> Option<usize> {
        match (review, conversation.last_restore()) {
            (Review::Redo(turn), _) => self.checkpoints.to_redo(*turn),
            (Review::Undo(None), None) => self.checkpoints.to_unreject(),
            (Review::Undo(None), Some(restore)) => self.checkpoints.rejection(restore.rejection?),
            _ => None,
        }
    }

    async fn apply(
        &mut self,
        review: Review,
        reverted: Option<usize>,
        conversation: &mut Conversation,
        outbox: &mut Outbox,
    ) -> Result<Reviewed, ReviewError> {
        let (checkpoints, workspace) = (&mut self.checkpoints, &self.workspace);
        let done = if let Review::Restore(turn) = review {
            let messages = conversation
                .journal
                .before(turn)
                .await
                .map_err(ReviewError)?;
            let (rejection, reviewed) = checkpoints.undo_from(workspace, turn).await;
            conversation.restore(turn, messages, rejection);
            Some(reviewed)
        } else if review == Review::Undo(None)
            && let Some(turn) = conversation.unrestore()
        {
            Some(checkpoints.undo_restore(workspace, turn, reverted).await)
        } else {
            None
        };
        let mut reviewed = match done {
            Some(done) => {
                conversation.write(outbox).await;
                let list = checkpoints.review(workspace, Review::List).await?;
                Reviewed {
                    turns: list.turns,
                    ..done
                }
            }
            None => {
                checkpoints
                    .review(workspace, review.with_identity(workspace))
                    .await?
            }
        };
        reviewed.cut_from = conversation.cut_from();
        if let Some(note) = reviewed.note.take() {
            conversation.tell(note);
        }
        reviewed.name_files(workspace);
        Ok(reviewed)
    }
}

async fn note(settled: Settled, conversation: &mut Conversation, outbox: &mut Outbox) {
    if !settled.is_nothing() {
        conversation.journal.note(Record::Review(settled));
    }
    conversation.write(outbox).await;
}
