//! Hint diagnostics of editors without a plugin: where a permission request is about, and what is under review. They are
//! marks that every client shows and goes to; a document's are always sent together, as the protocol wants.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::domain::lock;
use crate::rpc::Peer;
use crate::server::capabilities::Capabilities;
use crate::server::permission::Request;
use crate::session::{ReviewedTurn, SessionId};
use crate::text;
use crate::workspace::native::{file_of, uri_of};

/// The source of our diagnostics.
pub(super) const SOURCE: &str = "tandem";

/// The hints of all sessions.
#[derive(Debug, Default)]
pub(in crate::server) struct Hints(Mutex<Shown>);

#[derive(Debug, Default)]
struct Shown {
    /// The open permission request, by file. Editors may write its URI in another way than we do.
    requests: HashMap<PathBuf, Value>,
    /// What is under review in each session: a file, and the hint.
    hunks: HashMap<SessionId, Vec<(PathBuf, Value)>>,
    /// Files that had such a hint: a change can come back after its undo.
    followed: HashSet<PathBuf>,
}

impl Hints {
    /// A permission request is about this line of a document, counted from 0; `None`: it is decided.
    pub fn show_request(&self, peer: &Peer, file: &Path, request: Option<(u32, &Request)>) {
        let mut shown = self.lock();
        match request {
            Some((line, request)) => {
                let message = format!(
                    "{} {} (answer with a code action)",
                    request.lead(),
                    request.title()
                );
                let hint = hint(line as usize..line as usize, &message);
                shown.requests.insert(file.to_owned(), hint);
            }
            None => drop(shown.requests.remove(file)),
        }
        shown.publish(peer, file);
    }

    /// This is under review in a session now.
    pub fn show_hunks(
        &self,
        peer: &Peer,
        can: Capabilities,
        session: &SessionId,
        turns: &[ReviewedTurn],
    ) {
        let hunks: Vec<_> = turns.iter().flat_map(hunks).collect();
        let mut shown = self.lock();
        shown
            .followed
            .extend(hunks.iter().map(|(file, _)| file.clone()));
        let before = shown
            .hunks
            .insert(session.clone(), hunks)
            .unwrap_or_default();
        let now = shown.hunks.get(session).map_or(&[][..], Vec::as_slice);
        let gone = before.iter().filter(|hint| !now.contains(hint));
        let new = now.iter().filter(|hint| !before.contains(hint));
        let files: BTreeSet<&PathBuf> = gone.chain(new).map(|(file, _)| file).collect();
        for file in &files {
            shown.publish(peer, file);
        }
        if !files.is_empty() && can.shows_lenses && can.refreshes_lenses {
            peer.send("workspace/codeLens/refresh", &Value::Null);
        }
    }

    /// Whether an edit of a document can change the hints about what is under review.
    pub fn follows(&self, uri: &str) -> bool {
        file_of(uri).is_some_and(|file| self.lock().followed.contains(&file))
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        lock(&self.0)
    }
}

impl Shown {
    fn publish(&self, peer: &Peer, file: &Path) {
        let Some(uri) = uri_of(file) else {
            return;
        };
        let hunks = self
            .hunks
            .values()
            .flatten()
            .filter(|(of, _)| of == file)
            .map(|(_, hint)| hint);
        let diagnostics: Vec<&Value> = self.requests.get(file).into_iter().chain(hunks).collect();
        peer.notify(
            "textDocument/publishDiagnostics",
            &json!({ "uri": uri, "diagnostics": diagnostics }),
        );
    }
}

fn hunks(turn: &ReviewedTurn) -> Vec<(PathBuf, Value)> {
    let hunks = turn
        .files
        .iter()
        .flat_map(|file| file.hunks.iter().map(|hunk| (file.path.clone(), hunk)));
    let hints = hunks.map(|(file, hunk)| {
        let (added, removed) = (hunk.new_lines.len(), hunk.old_lines.len());
        let message = format!("tandem: +{added} −{removed} (code actions: keep, reject)");
        (file, hint(hunk.new_lines.clone(), &message))
    });
    hints.collect()
}

fn hint(lines: Range<usize>, message: &str) -> Value {
    json!({ "range": text::Range::of_lines(lines), "severity": 4, "source": SOURCE, "message": message })
}
