//! The channel into a session beside its bounded mailbox, for requests that must not be lost when a queue is full.
//!
//! Every prompt carries a child of the cancellation token that was current when it was sent. A cancel therefore reaches
//! it wherever it is (in the mailbox, queued, running), and no prompt that is sent later.

use crate::domain::lock;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Effort, State};
use crate::config::{Mode, Settings};

/// A setting changed by the person.
#[derive(Debug, Clone)]
pub enum Change {
    /// The mode, effective at once, even in the running turn.
    Mode(Mode),
    /// The model, from the next prompt on.
    Model(String),
    /// The reasoning effort, from the next prompt on; `None` for the configured one.
    Effort(Option<Effort>),
    /// Whether prompts run on a copy of the workspace, from the next one on.
    OnCopy(bool),
    /// The configuration as it is now: `Actor::configure` says how much of it the session takes.
    Settings(Box<Settings>),
}

/// Why a session rejected a change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChangeError {
    /// The model cannot be used.
    #[error("{0}")]
    Model(String),
    /// The mode is wider than the administrator allows.
    #[error("mode `{}` is wider than `{}`, the widest your administrator allows", wanted.name(), widest.name())]
    Mode {
        /// The requested mode.
        wanted: Mode,
        /// The widest allowed mode.
        widest: Mode,
    },
    /// The session has ended.
    #[error("the session has ended; start or load another one")]
    Ended,
}

/// The sender for the answer to a change.
pub(super) type Taken = oneshot::Sender<Result<State, ChangeError>>;

/// State shared by the handle and the actor of one session.
#[derive(Debug)]
pub(super) struct Control {
    waiting: Mutex<Waiting>,
    changed: Notify,
    end: CancellationToken,
}

#[derive(Debug)]
struct Waiting {
    changes: Vec<(Change, Taken)>,
    /// Whether queued prompts were returned to their sender.
    returned: bool,
    /// Cancels everything sent so far.
    sent: CancellationToken,
}

impl Control {
    pub fn new(end: &CancellationToken) -> Self {
        let waiting = Waiting {
            changes: Vec::new(),
            returned: false,
            sent: end.child_token(),
        };
        Self {
            waiting: Mutex::new(waiting),
            changed: Notify::new(),
            end: end.clone(),
        }
    }

    /// Requests a change. The receiver fails if the session ends first.
    pub fn change(&self, change: Change) -> oneshot::Receiver<Result<State, ChangeError>> {
        let (taken, answer) = oneshot::channel();
        self.lock().changes.push((change, taken));
        self.changed.notify_one();
        answer
    }

    /// A token for something sent now.
    pub fn token(&self) -> CancellationToken {
        self.lock().sent.child_token()
    }

    /// Cancels everything that was sent so far.
    pub fn cancel(&self) {
        let sent = std::mem::replace(&mut self.lock().sent, self.end.child_token());
        sent.cancel();
        self.wake();
    }

    /// Records that queued prompts were returned because the session is being closed.
    pub fn returned(&self) {
        self.lock().returned = true;
    }

    /// Whether queued prompts were returned.
    pub fn has_returned(&self) -> bool {
        self.lock().returned
    }

    /// Reports that one message was cancelled on its own.
    pub fn wake(&self) {
        self.changed.notify_one();
    }

    /// Resolves when there is a change to take or something was cancelled.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the requested changes, in order.
    pub fn take(&self) -> Vec<(Change, Taken)> {
        std::mem::take(&mut self.lock().changes)
    }

    /// No operation on it can panic halfway, so a poisoned lock is still consistent.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }
}
