//! The way into a session beside its bounded mailbox: what must never be lost because a queue is full.
//!
//! A cancel is a token: every prompt carries a child of the token that was current when it was sent, so a cancel reaches
//! it wherever it is (in the mailbox, in the queue, running), and no prompt that was sent later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Effort, State};
use crate::config::Mode;

/// A choice of the person, for the next prompt or at once.
#[derive(Debug, Clone)]
pub enum Change {
    /// The mode, also of the running turn.
    Mode(Mode),
    /// Another model answers from the next prompt on.
    Model(String),
    /// How hard the model thinks from the next prompt on; `None`: as configured.
    Effort(Option<Effort>),
}

/// Why a session did not take a change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChangeError {
    /// The model cannot be used.
    #[error("{0}")]
    Model(String),
    /// The administrator allows no mode as wide.
    #[error("mode `{}` is wider than `{}`, the widest your administrator allows", wanted.name(), widest.name())]
    Mode {
        /// The one that was wanted.
        wanted: Mode,
        /// The widest one.
        widest: Mode,
    },
    /// The session has ended.
    #[error("the session has ended; begin or load another one")]
    Ended,
}

/// Where the answer to a change goes.
pub(super) type Taken = oneshot::Sender<Result<State, ChangeError>>;

/// Shared by the handle and the actor of one session.
#[derive(Debug)]
pub(super) struct Control {
    waiting: Mutex<Waiting>,
    changed: Notify,
    end: CancellationToken,
}

#[derive(Debug)]
struct Waiting {
    changes: Vec<(Change, Taken)>,
    /// The prompts that wait were returned to whoever sent them.
    returned: bool,
    /// Cancelled with everything that was sent so far.
    sent: CancellationToken,
}

impl Control {
    pub fn new(end: &CancellationToken) -> Self {
        let waiting = Waiting { changes: Vec::new(), returned: false, sent: end.child_token() };
        Self { waiting: Mutex::new(waiting), changed: Notify::new(), end: end.clone() }
    }

    /// Hands a change over. The receiver fails when the session ends first.
    pub fn change(&self, change: Change) -> oneshot::Receiver<Result<State, ChangeError>> {
        let (taken, answer) = oneshot::channel();
        self.lock().changes.push((change, taken));
        self.changed.notify_one();
        answer
    }

    /// A token for something that is sent now.
    pub fn token(&self) -> CancellationToken {
        self.lock().sent.child_token()
    }

    /// Cancels everything that was sent so far.
    pub fn cancel(&self) {
        let sent = std::mem::replace(&mut self.lock().sent, self.end.child_token());
        sent.cancel();
        self.wake();
    }

    /// The prompts that wait were returned, because the session is closed.
    pub fn returned(&self) {
        self.lock().returned = true;
    }

    /// Whether they were.
    pub fn has_returned(&self) -> bool {
        self.lock().returned
    }

    /// Something that was sent was cancelled alone.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Resolves when there is something to take, or something was cancelled.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the changes, in the order they were made.
    pub fn take(&self) -> Vec<(Change, Taken)> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Every change of it is complete before anything can panic, so poison means nothing here.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
