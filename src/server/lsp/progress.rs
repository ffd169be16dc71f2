//! `$/progress` of a turn: shows that it works, on what, and offers a way to stop it.
//!
//! Each turn has its own token, because the standard lets one begin and end only once.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::rpc::Peer;

/// How often a report is repeated.
const REMINDER: Duration = Duration::from_secs(2);

/// The progress of one turn.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    peer: Peer,
    /// `None` for a client that shows no progress. Contains the turn's number, because some editors show the token.
    token: Option<String>,
}

impl Progress {
    /// Starts the progress of this turn.
    pub fn begin(peer: &Peer, shows_progress: bool, number: u32) -> Self {
        let progress = Self {
            peer: peer.clone(),
            token: shows_progress.then(|| format!("tandem {number}")),
        };
        if let Some(token) = &progress.token {
            // Nothing can be done about an error.
            peer.send("window/workDoneProgress/create", &json!({ "token": token }));
        }
        progress.tell(&json!({ "kind": "begin", "title": "working", "cancellable": true }));
        progress
    }

    /// Reports the current activity.
    pub fn report(&self, message: &str) {
        self.tell(&json!({ "kind": "report", "message": message }));
    }

    /// Repeats a report until the returned set is dropped: Helix shows a report only until the next key.
    pub fn remind(&self, message: String) -> JoinSet<()> {
        let mut reminder = JoinSet::new();
        if self.token.is_some() {
            let progress = self.clone();
            reminder.spawn(async move {
                let mut beat = tokio::time::interval(REMINDER);
                loop {
                    beat.tick().await;
                    progress.report(&message);
                }
            });
        }
        reminder
    }

    /// Ends the progress.
    pub fn end(self) {
        self.tell(&json!({ "kind": "end" }));
    }

    /// Whether this is the progress's token.
    pub fn is(&self, token: &Value) -> bool {
        self.token.as_deref().is_some_and(|ours| token == ours)
    }

    fn tell(&self, value: &Value) {
        if let Some(token) = &self.token {
            self.peer
                .notify("$/progress", &json!({ "token": token, "value": value }));
        }
    }
}
