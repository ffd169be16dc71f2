//! The handle of a session: what everybody else can ask of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::event::{Failure, PromptId, SessionEvent, State};
use super::{
    Actor, Change, ChangeError, Completer, Offered, Prompt, Review, ReviewError, Reviewed, SessionId, Setup, Undoable,
};
use crate::model::ErrorCode;

/// Commands that may wait for a session; more are refused.
const MAILBOX: usize = 32;

/// What goes through the mailbox.
#[derive(Debug)]
pub(super) enum Command {
    /// Queue a prompt.
    Prompt(Sent),
    /// Add a message to the running turn.
    Steer(Sent),
    /// Take a prompt back that the model has not seen; answered with whether it could be.
    Withdraw(PromptId, oneshot::Sender<bool>),
    /// List, keep, reject, undo or redo changes. Only listing works while a turn runs.
    Review(Review, oneshot::Sender<Result<Reviewed, ReviewError>>),
}

/// A prompt on its way to the model.
#[derive(Debug)]
pub(super) struct Sent {
    pub id: PromptId,
    pub prompt: Prompt,
    /// The prompt as the client sent it.
    pub said: Arc<Value>,
    /// Cancels it, wherever it is.
    pub cancel: CancellationToken,
}

/// The handle of a session. The session ends when the handle is dropped.
pub struct Session {
    id: SessionId,
    mailbox: mpsc::Sender<Command>,
    control: Arc<Control>,
    state: watch::Receiver<State>,
    commands: Arc<[Offered]>,
    undoable: watch::Receiver<Undoable>,
    completer: Completer,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Session {
    /// Starts a conversation whose events go to `events`.
    #[must_use]
    pub fn start(setup: Setup, events: mpsc::Sender<(SessionId, SessionEvent)>, parent: &CancellationToken) -> Self {
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let end = parent.child_token();
        let (changed, undoable) = watch::channel(Undoable::default());
        let (name, id, broken) = (Arc::clone(&setup.id), Arc::clone(&setup.id), events.clone());
        let completer = Completer::new(setup.workspace.clone(), end.clone());
        let control = Arc::new(Control::new(&end));
        let actor = Actor::new(setup, events, changed, Arc::clone(&control), end.clone());
        let (state, offered) = (actor.published.subscribe(), actor.commands.available().into());
        let task = tokio::spawn(async move {
            if AssertUnwindSafe(Box::pin(actor.run(commands))).catch_unwind().await.is_err() {
                on_panic(id, &broken).await;
            }
        });
        Self { id: name, mailbox, control, state, commands: offered, undoable, completer, end, task }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends a prompt, whose turn follows those of the prompts before it. The token cancels this prompt alone; call
    /// [`Session::wake`] after cancelling it.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn prompt(&self, id: PromptId, prompt: Prompt, said: Arc<Value>) -> Result<CancellationToken, SessionBusy> {
        self.completer.forget();
        self.post(id, prompt, said, Command::Prompt)
    }

    /// Sends a message that joins the running turn.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn steer(&self, id: PromptId, prompt: Prompt, said: Arc<Value>) -> Result<CancellationToken, SessionBusy> {
        self.post(id, prompt, said, Command::Steer)
    }

    fn post(
        &self,
        id: PromptId,
        prompt: Prompt,
        said: Arc<Value>,
        command: fn(Sent) -> Command,
    ) -> Result<CancellationToken, SessionBusy> {
        let cancel = self.control.token();
        self.send(command(Sent { id, prompt, said, cancel: cancel.clone() }))?;
        Ok(cancel)
    }

    /// Takes a prompt back; answered with whether the model had not seen it.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn withdraw(&self, id: PromptId) -> Result<oneshot::Receiver<bool>, SessionBusy> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Withdraw(id, reply))?;
        Ok(answer)
    }

    /// Lists, keeps, rejects, undoes or redoes changes.
    ///
    /// # Errors
    /// When the session is gone or does not keep up.
    pub fn review(&self, review: Review) -> Result<oneshot::Receiver<Result<Reviewed, ReviewError>>, SessionBusy> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Review(review, reply))?;
        Ok(answer)
    }

    fn send(&self, command: Command) -> Result<(), SessionBusy> {
        self.mailbox.try_send(command).map_err(|_full| SessionBusy)
    }

    /// Changes the mode, the model or the effort. It cannot be lost; the answer is the state that has it.
    #[must_use]
    pub fn change(&self, change: Change) -> oneshot::Receiver<Result<State, ChangeError>> {
        self.control.change(change)
    }

    /// Stops the running turn and returns every prompt that was sent so far. It cannot be lost.
    pub fn cancel(&self) {
        self.control.cancel();
    }

    /// The prompts that wait were returned to the client: loading the conversation does not return them again.
    pub fn returned(&self) {
        self.control.returned();
    }

    /// Has the session look for prompts that were cancelled alone.
    pub fn wake(&self) {
        self.control.wake();
    }

    /// The state as it was published last.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The slash commands.
    #[must_use]
    pub fn commands(&self) -> &[Offered] {
        &self.commands
    }

    /// What there is to undo and to redo.
    #[must_use]
    pub fn undoable(&self) -> Undoable {
        *self.undoable.borrow()
    }

    /// Offers what a prompt can mention.
    #[must_use]
    pub fn completer(&self) -> Completer {
        self.completer.clone()
    }

    /// Stops the running turn, if any, and waits until the session is gone.
    pub async fn close(self) {
        self.end.cancel();
        drop(self.mailbox);
        if let Err(error) = self.task.await {
            tracing::error!("a session panicked: {error}");
        }
    }
}

/// A session that panicked has ended; whoever waits for it is answered.
async fn on_panic(id: SessionId, events: &mpsc::Sender<(SessionId, SessionEvent)>) {
    tracing::error!("session {id} panicked");
    let message = "internal error: the session ended (its log has the cause); start or load a session".to_owned();
    let failure = Failure { message, code: ErrorCode::Internal, status: None, retryable: false };
    let _nobody_listens = events.send((id, SessionEvent::Broke(failure))).await;
}

/// The session is gone or does not keep up with its commands.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session is gone or does not keep up; try again, or begin another one")]
pub struct SessionBusy;
