//! Requests that went out and are not answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lsp_server::{RequestId, ResponseError};
use serde_json::Value;
use tokio::sync::oneshot;

/// What the other side answers.
pub(super) type Answer = Result<Value, ResponseError>;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    outgoing: HashMap<i32, oneshot::Sender<Answer>>,
    last_id: i32,
    closed: bool,
}

impl Pending {
    /// A request goes out under a new id; the receiver fails when no answer can come any more.
    pub(super) fn ask(&self) -> (i32, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let mut table = self.lock();
        table.last_id = table.last_id.wrapping_add(1);
        let id = table.last_id;
        if !table.closed {
            table.outgoing.insert(id, sender);
        }
        (id, receiver)
    }

    pub(super) fn forget(&self, id: i32) {
        self.lock().outgoing.remove(&id);
    }

    /// Who waits for the answer with this id; nobody where there is no such request.
    pub(super) fn claim(&self, id: &RequestId) -> Option<oneshot::Sender<Answer>> {
        self.lock().outgoing.remove(&outgoing_id(id)?)
    }

    /// No answer can come any more.
    pub(super) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        table.outgoing.clear();
    }

    /// Every change of the table is complete before anything can panic, so poison means nothing here.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Our own ids are integers; `RequestId` shows them as they are and strings in quotes.
fn outgoing_id(id: &RequestId) -> Option<i32> {
    id.to_string().parse().ok()
}
