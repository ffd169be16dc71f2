//! `$/progress` of a turn: that it works, on what, and a way to stop it.
//!
//! A token stands for one turn: the standard has it begin and end once.

use serde_json::{Value, json};

use crate::rpc::Peer;

/// The progress of one turn.
#[derive(Debug)]
pub(super) struct Progress {
    peer: Peer,
    /// `None` for a client that shows none. It has the turn's number, because some editors show it.
    token: Option<String>,
}

impl Progress {
    /// The turn of this number begins.
    pub fn begin(peer: &Peer, shows_progress: bool, number: u32) -> Self {
        let progress = Self { peer: peer.clone(), token: shows_progress.then(|| format!("tandem {number}")) };
        if let Some(token) = &progress.token {
            // Whatever the answer, there is nothing to be done about it.
            drop(peer.request("window/workDoneProgress/create", &json!({ "token": token })));
        }
        progress.tell(&json!({ "kind": "begin", "title": "working", "cancellable": true }));
        progress
    }

    /// What it does now.
    pub fn report(&self, message: &str) {
        self.tell(&json!({ "kind": "report", "message": message }));
    }

    /// It is over.
    pub fn end(self) {
        self.tell(&json!({ "kind": "end" }));
    }

    /// Whether the client means this one.
    pub fn is(&self, token: &Value) -> bool {
        self.token.as_deref().is_some_and(|ours| token == ours)
    }

    fn tell(&self, value: &Value) {
        if let Some(token) = &self.token {
            self.peer.notify("$/progress", &json!({ "token": token, "value": value }));
        }
    }
}
