//! Outgoing requests that have not been answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use lsp_server::ResponseError;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::domain::lock;

/// The other side's response.
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
    /// Registers a request under a new id; the receiver fails when no response can arrive any more.
    pub fn ask(&self) -> (i32, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let mut table = self.lock();
        table.last_id = table.last_id.wrapping_add(1);
        let id = table.last_id;
        if !table.closed {
            table.outgoing.insert(id, sender);
        }
        (id, receiver)
    }

    /// Removes and returns the waiter for this id, if there is one.
    pub fn claim(&self, id: i32) -> Option<oneshot::Sender<Answer>> {
        self.lock().outgoing.remove(&id)
    }

    /// Drops all waiters: no response can arrive any more.
    pub fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        table.outgoing.clear();
    }

    /// No operation on the table can panic halfway, so a poisoned lock is still consistent.
    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
    }
}
