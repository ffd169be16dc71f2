//! Code actions of LSP-only clients on a turn's changes, in place: keep or reject the hunk at the cursor.

use std::path::Path;

use serde_json::{Value, json};

use super::actions::action;
use crate::protocol::lsp;
use crate::server::Server;
use crate::server::review::ask;
use crate::session::{Review, ReviewedTurn};
use crate::workspace::review::PendingHunk;

impl Server {
    /// The actions on the hunks that `range` of a document touches; none while a turn runs.
    pub(super) fn hunk_actions(&self, uri: &str, range: lsp::Range) -> impl Future<Output = Vec<Value>> + use<> {
        let path = crate::server::documents::path_of(uri).filter(|_| !self.is_busy());
        let changed =
            self.conversations.iter().filter(|(_, conversation)| conversation.session.undoable().undo.is_some());
        let asked: Vec<_> = changed
            .filter(|_| path.is_some())
            .filter_map(|(id, conversation)| Some((id.clone(), ask(conversation, Review::List).ok()?)))
            .collect();
        async move {
            let mut actions = Vec::new();
            for (session, answer) in asked {
                if let (Ok(Ok(reviewed)), Some(path)) = (answer.await, &path) {
                    actions.extend(reviewed.turns.iter().flat_map(|turn| in_turn(&session, turn, path, range)));
                }
            }
            actions
        }
    }
}

fn in_turn(session: &str, turn: &ReviewedTurn, path: &Path, range: lsp::Range) -> Vec<Value> {
    let files = turn.files.iter().filter(|file| is_same_file(&file.path, path));
    let hunks = files.flat_map(|file| file.hunks.iter().map(move |hunk| (file, hunk)));
    let touched = hunks.filter(|(_, hunk)| touches(range, hunk));
    let both = touched.flat_map(|(file, hunk)| {
        let which = json!([{ "sessionId": session, "turn": turn.turn, "path": file.path, "hunk": hunk.id }]);
        [
            action("tandem: Keep this change", "quickfix", "tandem.keep", &which),
            action("tandem: Reject this change", "quickfix", "tandem.undo", &which),
        ]
    });
    both.collect()
}

/// Compares paths: an editor may know the file under another name.
fn is_same_file(ours: &Path, theirs: &Path) -> bool {
    ours == theirs || matches!((ours.canonicalize(), theirs.canonicalize()), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// Whether a range touches the lines of a hunk; if the hunk only removed lines, the line before or after it.
fn touches(range: lsp::Range, hunk: &PendingHunk) -> bool {
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

    #[test]
    fn a_hunk_is_touched_in_its_lines_and_a_removal_beside_it() {
        let check = |lines: std::ops::Range<usize>, first: u32, last: u32, expected: bool| {
            let at = |line| lsp::Position { line, character: 0 };
            let range = lsp::Range { start: at(first), end: at(last) };
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
