//! A turn's changes, in place: code actions to keep or reject the hunk at the cursor, and hints.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::actions::action;
use crate::changes::hunks::PendingHunk;
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::dispatch::{Later, later};
use crate::session::{Review, ReviewedTurn, SessionId};
use crate::text::Range;
use crate::workspace::native::file_of;

/// A hunk under review, and what names it.
pub(super) struct Reviewed {
    session: SessionId,
    pub turn: u64,
    path: PathBuf,
    pub hunk: PendingHunk,
}

impl Server {
    /// The actions on the hunks that `range` of a document touches; none while a turn runs.
    pub(super) fn hunk_actions(
        &self,
        uri: &str,
        range: Range,
    ) -> impl Future<Output = Vec<Value>> + use<> {
        let hunks = self.hunks_at(uri, range);
        async move { hunks.await.iter().flat_map(both).collect() }
    }

    /// Answers `textDocument/codeLens`: *Keep* and *Reject* above each hunk under review.
    pub fn code_lenses(
        &mut self,
        lsp::CodeLensParams { text_document, .. }: lsp::CodeLensParams,
    ) -> Later<Vec<Value>> {
        let hunks = self.hunks_at(&text_document.uri.0, Range::of_lines(0..usize::MAX));
        later(async move { Ok(hunks.await.iter().flat_map(lenses).collect()) })
    }

    /// The hunks under review that `range` of a document touches. While a turn runs there are none.
    pub(super) fn hunks_at(
        &self,
        uri: &str,
        range: Range,
    ) -> impl Future<Output = Vec<Reviewed>> + use<> {
        let path = file_of(uri).filter(|_| !self.is_busy());
        let changed = self
            .conversations
            .iter()
            .filter(|(_, conversation)| conversation.session.undoable().undo.is_some());
        let asked: Vec<_> = changed
            .filter(|_| path.is_some())
            .filter_map(|(id, conversation)| {
                Some((id.clone(), conversation.session.review(Review::List).ok()?))
            })
            .collect();
        async move {
            let mut hunks = Vec::new();
            for (session, answer) in asked {
                if let (Ok(Ok(reviewed)), Some(path)) = (answer.await, &path) {
                    hunks.extend(
                        reviewed
                            .turns
                            .into_iter()
                            .flat_map(|turn| in_turn(&session, turn, path, range)),
                    );
                }
            }
            hunks
        }
    }

    /// Shows changes under review as hints in their documents. During a turn, this waits for its end.
    pub fn show_hunks(&mut self) {
        if self.client.speaks_acp || self.is_busy() {
            return;
        }
        let can = self.client.can;
        for (id, conversation) in &self.conversations {
            let Ok(answer) = conversation.session.review(Review::List) else {
                continue;
            };
            let (id, peer, hints) = (id.clone(), self.peer.clone(), self.chats.hints());
            self.tasks.spawn(async move {
                if let Ok(Ok(reviewed)) = answer.await {
                    hints.show_hunks(&peer, can, &id, &reviewed.turns);
                }
            });
        }
    }
}

fn in_turn(session: &SessionId, turn: ReviewedTurn, path: &Path, range: Range) -> Vec<Reviewed> {
    let ReviewedTurn { turn, files } = turn;
    let files = files
        .into_iter()
        .filter(|file| is_same_file(&file.path, path));
    let hunks = files.flat_map(|file| {
        file.hunks
            .into_iter()
            .map(move |hunk| (file.path.clone(), hunk))
    });
    let touched = hunks.filter(|(_, hunk)| touches(range, hunk));
    touched
        .map(|(path, hunk)| Reviewed {
            session: session.clone(),
            turn,
            path,
            hunk,
        })
        .collect()
}

/// The commands that settle a hunk.
const SETTLING: [(&str, &str); 2] = [("Keep", "tandem.keep"), ("Reject", "tandem.undo")];

/// The argument that names a hunk in a command.
fn which(reviewed: &Reviewed) -> Value {
    let Reviewed {
        session,
        turn,
        path,
        hunk,
    } = reviewed;
    json!([{ "sessionId": session, "turn": turn, "path": path, "hunk": hunk.id }])
}

fn both(reviewed: &Reviewed) -> [Value; 2] {
    SETTLING.map(|(word, command)| {
        let title = format!("tandem: {word} this change");
        action(&title, "quickfix", command, &which(reviewed))
    })
}

fn lenses(reviewed: &Reviewed) -> [Value; 2] {
    let line = reviewed.hunk.new_lines.start;
    SETTLING.map(|(word, command)| {
        json!({
            "range": Range::of_lines(line..line),
            "command": { "title": word, "command": command, "arguments": which(reviewed) },
        })
    })
}

/// Compares paths: an editor may know the file under another name.
fn is_same_file(ours: &Path, theirs: &Path) -> bool {
    ours == theirs
        || matches!((ours.canonicalize(), theirs.canonicalize()), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// Whether a range touches the lines of a hunk; if the hunk only removed lines, the line before or after it.
fn touches(range: Range, hunk: &PendingHunk) -> bool {
    let (first, last) = (range.start.line as usize, range.end.line as usize);
    let lines = &hunk.new_lines;
    if lines.is_empty() {
        first <= lines.start && lines.start <= last + 1
    } else {
        first < lines.end && lines.start <= last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Position;

    #[test]
    fn hunks_match_their_lines_and_removals_match_adjacent_lines() {
        let check = |lines: std::ops::Range<usize>, first: u32, last: u32, expected: bool| {
            let range = Range {
                start: Position {
                    line: first,
                    character: 0,
                },
                end: Position {
                    line: last,
                    character: 0,
                },
            };
            let hunk = PendingHunk {
                id: 1,
                old_lines: 0..1,
                new_lines: lines.clone(),
                old_text: String::new(),
                diff: String::new(),
                rejected: "".into(),
                settled: "".into(),
            };
            assert_eq!(touches(range, &hunk), expected, "{lines:?} {first} {last}");
        };
        check(3..5, 2, 2, false);
        check(3..5, 3, 3, true);
        check(3..5, 4, 9, true);
        check(3..5, 5, 5, false);
        check(3..3, 1, 1, false);
        check(3..3, 2, 2, true);
        check(3..3, 3, 3, true);
        check(3..3, 4, 4, false);
        check(0..0, 0, 0, true);
    }
}
