//! Hint diagnostics of editors without a plugin: where a permission request is about, and what is under review. They are
//! marks that every client shows and goes to; a document's are always sent together, as the protocol wants.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::domain::lock;
use crate::rpc::Peer;
use crate::server::capabilities::Capabilities;
use crate::server::permission::Request;
use crate::session::{ReviewedTurn, SessionId};
use crate::text;
use crate::workspace::native::uri_of;

/// The source of our diagnostics.
pub(super) const SOURCE: &str = "tandem";

/// The hints of all sessions.
#[derive(Debug, Default)]
pub(in crate::server) struct Hints(Mutex<Shown>);

#[derive(Debug, Default)]
struct Shown {
    /// The open permission request, by document.
    requests: HashMap<String, Value>,
    /// What is under review in each session: a document, and the hint.
    hunks: HashMap<SessionId, Vec<(String, Value)>>,
    /// Documents that had such a hint: a change can come back after its undo.
    followed: HashSet<String>,
}

impl Hints {
    /// A permission request is about this line of a document, counted from 0; `None`: it is decided.
    pub fn show_request(&self, peer: &Peer, uri: &str, request: Option<(u32, &Request)>) {
        let mut shown = self.lock();
        match request {
            Some((line, request)) => {
                let message = format!(
                    "{} {} (answer with a code action)",
                    request.lead(),
                    request.title()
                );
                shown
                    .requests
                    .insert(uri.to_owned(), hint(line as usize..line as usize, &message));
            }
            None => drop(shown.requests.remove(uri)),
        }
        shown.publish(peer, uri);
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
            .extend(hunks.iter().map(|(uri, _)| uri.clone()));
        let before = shown
            .hunks
            .insert(session.clone(), hunks)
            .unwrap_or_default();
        let now = shown.hunks.get(session).map_or(&[][..], Vec::as_slice);
        let gone = before.iter().filter(|hint| !now.contains(hint));
        let new = now.iter().filter(|hint| !before.contains(hint));
        let uris: BTreeSet<&String> = gone.chain(new).map(|(uri, _)| uri).collect();
        for uri in &uris {
            shown.publish(peer, uri);
        }
        if !uris.is_empty() && can.shows_lenses && can.refreshes_lenses {
            peer.send("workspace/codeLens/refresh", &Value::Null);
        }
    }

    /// Whether an edit of a document can change the hints about what is under review.
    pub fn follows(&self, uri: &str) -> bool {
        self.lock().followed.contains(uri)
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        lock(&self.0)
    }
}

impl Shown {
    fn publish(&self, peer: &Peer, uri: &str) {
        let hunks = self
            .hunks
            .values()
            .flatten()
            .filter(|(of, _)| of == uri)
            .map(|(_, hint)| hint);
        let diagnostics: Vec<&Value> = self.requests.get(uri).into_iter().chain(hunks).collect();
        peer.notify(
            "textDocument/publishDiagnostics",
            &json!({ "uri": uri, "diagnostics": diagnostics }),
        );
    }
}

fn hunks(turn: &ReviewedTurn) -> Vec<(String, Value)> {
    let hunks = turn
        .files
        .iter()
        .flat_map(|file| file.hunks.iter().map(|hunk| (uri_of(&file.path), hunk)));
    let hints = hunks.filter_map(|(uri, hunk)| {
        let (added, removed) = (hunk.new_lines.len(), hunk.old_lines.len());
        let message = format!("tandem: +{added} −{removed} (code actions: keep, reject)");
        Some((uri?, hint(hunk.new_lines.clone(), &message)))
    });
    hints.collect()
}

fn hint(lines: Range<usize>, message: &str) -> Value {
    json!({ "range": text::Range::of_lines(lines), "severity": 4, "source": SOURCE, "message": message })
}
