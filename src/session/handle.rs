//! The handle of a session: its interface for the rest of the program.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::control::Control;
use super::event::{PromptId, Recorded, SessionEvent, State};
use super::{
    Actor, Change, ChangeError, Completer, EditInPlace, Prompt, Review, ReviewError, Reviewed,
    SessionId, Setup, Undoable,
};
use crate::domain::{ErrorCode, Failure};
use crate::process::Shell;

/// How many commands may be queued for a session; more are refused.
const MAILBOX: usize = 32;

/// Commands in the mailbox.
#[derive(Debug)]
pub(super) enum Command {
    /// Queue a prompt.
    Prompt(Sent),
    /// Add a message to the running turn.
    Steer(Sent),
    /// Withdraw a prompt the model has not seen; the reply says if that was possible.
    Withdraw(PromptId, oneshot::Sender<bool>),
    /// Review changes. Only listing works while a turn runs.
    Review(Review, oneshot::Sender<Result<Reviewed, ReviewError>>),
    /// The editor renamed files or folders, each from the first path to the second.
    Renamed(Vec<(PathBuf, PathBuf)>),
    /// The person began to type a prompt.
    Typing,
    /// Record an edit in place as a turn of its own.
    Edited(EditInPlace, Recorded),
}

/// A prompt that was sent.
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
    undoable: watch::Receiver<Undoable>,
    completer: Completer,
    shell: Shell,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Session {
    /// Starts a session that sends its events to `events`.
    pub fn start(
        setup: Setup,
        events: mpsc::Sender<(SessionId, SessionEvent)>,
        parent: &CancellationToken,
    ) -> Self {
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let end = parent.child_token();
        let (changed, undoable) = watch::channel(Undoable::default());
        let (name, id, broken) = (Arc::clone(&setup.id), Arc::clone(&setup.id), events.clone());
        let workspace = setup.workspace.clone();
        let control = Arc::new(Control::new(&end));
        let actor = Actor::new(setup, events, changed, Arc::clone(&control), end.clone());
        let shell = actor.shell.clone();
        let state = actor.outbox.subscribe();
        let completer = Completer::new(
            workspace,
            actor.extensions.resources.subscribe(),
            end.clone(),
        );
        let task = tokio::spawn(async move {
            if AssertUnwindSafe(Box::pin(actor.run(commands)))
                .catch_unwind()
                .await
                .is_err()
            {
                on_panic(id, &broken).await;
            }
        });
        Self {
            id: name,
            mailbox,
            control,
            state,
            undoable,
            completer,
            shell,
            end,
            task,
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends a prompt; its turn follows those of earlier prompts. The token cancels only this prompt; call
    /// [`Session::wake`] after cancelling it.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn prompt(
        &self,
        id: PromptId,
        prompt: Prompt,
        said: Arc<Value>,
    ) -> Result<CancellationToken, SessionBusy> {
        self.completer.forget();
        self.post(id, prompt, said, Command::Prompt)
    }

    /// Sends a message that joins the running turn.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn steer(
        &self,
        id: PromptId,
        prompt: Prompt,
        said: Arc<Value>,
    ) -> Result<CancellationToken, SessionBusy> {
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
        self.send(command(Sent {
            id,
            prompt,
            said,
            cancel: cancel.clone(),
        }))?;
        Ok(cancel)
    }

    /// Withdraws a prompt. The reply is true if the model had not seen it.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn withdraw(&self, id: PromptId) -> Result<oneshot::Receiver<bool>, SessionBusy> {
        self.request(|reply| Command::Withdraw(id, reply))
    }

    /// Reviews changes.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn review(
        &self,
        review: Review,
    ) -> Result<oneshot::Receiver<Result<Reviewed, ReviewError>>, SessionBusy> {
        self.request(|reply| Command::Review(review, reply))
    }

    /// Moves the changes under review along with files or folders that the editor renamed, from the first path to the second.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn renamed(&self, names: Vec<(PathBuf, PathBuf)>) -> Result<(), SessionBusy> {
        self.send(Command::Renamed(names))
    }

    /// Records an edit in place as a turn of its own, after the running one; the answer is its number.
    ///
    /// # Errors
    /// The session is gone or overloaded.
    pub fn edited(
        &self,
        edit: EditInPlace,
    ) -> Result<oneshot::Receiver<Result<u64, ReviewError>>, SessionBusy> {
        self.request(|reply| Command::Edited(edit, reply))
    }

    /// Reports that the person has begun to type a prompt, so that a local model can preload. A busy session ignores it.
    pub fn typing_began(&self) {
        let _busy = self.send(Command::Typing);
    }

    fn request<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<oneshot::Receiver<T>, SessionBusy> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply))?;
        Ok(answer)
    }

    fn send(&self, command: Command) -> Result<(), SessionBusy> {
        self.mailbox.try_send(command).map_err(|_full| SessionBusy)
    }

    /// Changes the mode, the model or the effort. A change is never lost; the reply is the state with the change in
    /// effect.
    pub fn change(&self, change: Change) -> oneshot::Receiver<Result<State, ChangeError>> {
        self.control.change(change)
    }

    /// Stops the running turn and returns every prompt sent so far. This is never lost, even if the mailbox is full.
    pub fn cancel(&self) {
        self.control.cancel();
    }

    /// Records that queued prompts were returned to the client, so that loading the session does not return them again.
    pub fn returned(&self) {
        self.control.returned();
    }

    /// Makes the session check for prompts that were cancelled on their own.
    pub fn wake(&self) {
        self.control.wake();
    }

    /// The last published state.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Whether there is something to undo and to redo.
    pub fn undoable(&self) -> Undoable {
        *self.undoable.borrow()
    }

    /// Completes mentions.
    pub fn completer(&self) -> Completer {
        self.completer.clone()
    }

    /// Its commands and jobs.
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Stops the running turn and waits until the session has ended.
    pub async fn close(self) {
        self.end.cancel();
        drop(self.mailbox);
        if let Err(error) = self.task.await {
            tracing::error!("a session panicked: {error}");
        }
    }
}

/// Ends a session that panicked; waiting requests are answered.
async fn on_panic(id: SessionId, events: &mpsc::Sender<(SessionId, SessionEvent)>) {
    tracing::error!("session {id} panicked");
    let failure = Failure::new(
        ErrorCode::Internal,
        "internal error: the session ended (its log has the cause); start or load a session",
    );
    let _nobody_listens = events.send((id, SessionEvent::Panicked(failure))).await;
}

/// The session is gone or overloaded.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the session has ended or is overloaded; try again, or start another one")]
pub struct SessionBusy;
