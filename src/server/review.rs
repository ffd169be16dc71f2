//! `_tandem/review`, and its counterparts for LSP-only clients: `tandem.undo`, `tandem.redo` and `tandem.keep`.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::Server;
use super::conversation::Conversation;
use super::dispatch::{Answer, Later, error, invalid, later};
use super::problems::show_message;
use crate::changes::hunks::PendingHunk;
use crate::changes::revert::{Left, Reason};
use crate::protocol::ext::{self, ReviewAction};
use crate::protocol::lsp::MessageType;
use crate::rpc::ErrorCode;
use crate::session::{self, Review, ReviewError, Selection, SessionId};
use crate::text::display;

/// The argument of `tandem.undo`, `tandem.redo` and `tandem.keep`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Which {
    session_id: Option<String>,
    turn: Option<u64>,
    path: Option<PathBuf>,
    hunk: Option<usize>,
}

impl Server {
    pub fn review(&mut self, request: ext::Review) -> Later<ext::Reviewed> {
        let ext::Review {
            session_id,
            action,
            turn,
            path,
            hunk,
        } = request;
        let review = of(action, Selection { turn, path, hunk })?;
        let reviewed = self.conversation(&session_id)?.session.review(review)?;
        later(async move { Ok(wire(done(reviewed).await?)) })
    }

    /// Reviews what a session changed (the one that changed something last, unless one is named); shows the
    /// outcome as a message.
    pub fn review_by_command(&mut self, argument: Value, action: ReviewAction) -> Answer<()> {
        let usage = || invalid("expected no argument, or {sessionId?, turn?, path?, hunk?}");
        let which: Option<Which> = serde_json::from_value(argument).map_err(|_| usage())?;
        let Which {
            session_id,
            turn,
            path,
            hunk,
        } = which.unwrap_or_default();
        let named = session_id.map(SessionId::from);
        let Some(id) = named.or_else(|| self.last_changed(action).cloned()) else {
            let what = if action == ReviewAction::Redo {
                "redo"
            } else {
                "undo"
            };
            let why = self.chats.elsewhere.take();
            let why = why.map_or_else(String::new, |why| format!(" here: {why}"));
            let message = format!("tandem: there is nothing to {what}{why}");
            show_message(&self.peer, MessageType::Info, &message);
            // It may be closed there by the next time.
            self.find_earlier(None);
            return Ok(());
        };
        let action = match action {
            ReviewAction::Undo if path.is_some() => ReviewAction::Reject,
            action => action,
        };
        let review = of(action, Selection { turn, path, hunk })?;
        let answer = self.conversation(&id)?.session.review(review)?;
        let (peer, can, hints) = (self.peer.clone(), self.client.can, self.chats.hints());
        self.tasks.spawn(async move {
            let (kind, text) = match answer.await {
                Ok(Ok(reviewed)) => {
                    hints.show_hunks(&peer, can, &id, &reviewed.turns);
                    (MessageType::Info, reviewed.message.unwrap_or_default())
                }
                Ok(Err(ReviewError(why))) => (MessageType::Warning, why),
                Err(_session_gone) => return,
            };
            show_message(&peer, kind, &format!("tandem: {text}"));
        });
        Ok(())
    }

    /// The last session with something to undo, redo or keep.
    pub fn last_changed(&self, action: ReviewAction) -> Option<&SessionId> {
        let since = |conversation: &Conversation| {
            let undoable = conversation.session.undoable();
            if action == ReviewAction::Redo {
                undoable.redo
            } else {
                undoable.undo
            }
        };
        let changed = self
            .conversations
            .iter()
            .filter_map(|(id, conversation)| Some((id, since(conversation)?)));
        changed.max_by_key(|(_, since)| *since).map(|(id, _)| id)
    }
}

fn of(action: ReviewAction, selection: Selection) -> Answer<Review> {
    let none = || invalid("`restore` requires `turn`, the turn to rewind to");
    Ok(match action {
        ReviewAction::List => Review::List,
        ReviewAction::Keep => Review::Keep(selection),
        ReviewAction::Reject => Review::Reject(selection),
        ReviewAction::Undo => Review::Undo(selection.turn),
        ReviewAction::Redo => Review::Redo(selection.turn),
        ReviewAction::Restore => Review::Restore(selection.turn.ok_or_else(none)?),
    })
}

/// What a session says later.
pub(super) async fn done<T>(answer: oneshot::Receiver<Result<T, ReviewError>>) -> Answer<T> {
    let ended = |_| ReviewError("the session has ended".to_owned());
    let failed = |ReviewError(why)| error(ErrorCode::RequestFailed, display::escape(&why));
    answer.await.map_err(ended).flatten().map_err(failed)
}

fn wire(reviewed: session::Reviewed) -> ext::Reviewed {
    let file = |file: session::ReviewedFile| ext::ReviewedFile {
        path: file.path,
        created: file.created,
        hunks: file.hunks.into_iter().map(hunk).collect(),
    };
    let turn = |turn: session::ReviewedTurn| ext::ReviewedTurn {
        turn: turn.turn,
        files: turn.files.into_iter().map(file).collect(),
    };
    let message = reviewed
        .message
        .map(|message| display::escape(&message).into_owned());
    let left = |left: Left| ext::Left {
        path: left.path,
        reason: display::escape(&left.reason.to_string()).into_owned(),
        lines: match left.reason {
            Reason::Lines(range) => Some(lines(range)),
            _ => None,
        },
    };
    let (turns, left) = (
        reviewed.turns.into_iter().map(turn).collect(),
        reviewed.left.into_iter().map(left).collect(),
    );
    ext::Reviewed {
        turns,
        message,
        left,
        cut_from: reviewed.cut_from,
        can_redo: reviewed.can_redo,
    }
}

fn hunk(hunk: PendingHunk) -> ext::ReviewedHunk {
    ext::ReviewedHunk {
        id: hunk.id,
        old: lines(hunk.old_lines),
        new: lines(hunk.new_lines),
        old_text: hunk.old_text,
        diff: hunk.diff,
    }
}

fn lines(lines: std::ops::Range<usize>) -> ext::Lines {
    ext::Lines {
        start: lines.start + 1,
        count: lines.len(),
    }
}
