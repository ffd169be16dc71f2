//! Prompts and the turns they start: one runs, the others wait for it in their order.
//!
//! Invariants: every prompt is answered exactly once, and in the order they came; the updates of a turn precede its
//! answer; a cancel stops the running turn and everything that waits behind it at that moment.

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Server;
use super::conversation::{Conversation, Reader, send};
use super::dispatch::{Answer, read};
use super::slash::{self, Local};
use super::wire::{attachment, broken, stop_reason};
use crate::agent::event::Termination;
use crate::protocol::{acp, ext};
use crate::rpc::{ErrorCode, Params, RequestId, Responder};
use crate::session::{Command, Prompt, SessionId};

/// Prompts that may wait in a session.
const WAITING: usize = 8;

/// A prompt that waits for the turns before it.
pub(super) struct Waiting {
    responder: Responder,
    /// `None` once it was cancelled: it is answered in its place.
    prompt: Option<(Work, Vec<acp::ContentBlock>)>,
}

/// What a prompt wants.
pub(super) enum Work {
    /// An answer of the model.
    Prompt(Prompt),
    /// A shorter conversation.
    Compact,
    /// Something that needs no model.
    Local(Local),
}

impl Waiting {
    /// Answers a prompt that will not be started any more.
    pub fn cancelled(self) {
        self.responder.ok(&acp::PromptResponse::new(acp::StopReason::Cancelled));
    }
}

impl Conversation {
    /// Stops the turn, and what waits behind it.
    pub fn cancel(&mut self) {
        for waiting in &mut self.waiting {
            waiting.prompt = None;
        }
        self.send(Command::Cancel);
    }

    fn start(&mut self, responder: Responder, command: Command) {
        if let Err(busy) = self.try_send(command) {
            return responder.error(ErrorCode::RequestFailed, busy.to_string());
        }
        self.prompt = Some(responder);
        self.failure = None;
    }

    /// How many prompts wait, in words.
    fn queued(&self) -> Option<String> {
        let queued = self.waiting.iter().filter(|waiting| waiting.prompt.is_some()).count();
        (queued > 0).then(|| format!("queued {queued}"))
    }
}

impl Server {
    pub(super) fn prompt(&mut self, responder: Responder, params: &Params) {
        let request = match read::<acp::PromptRequest>(params) {
            Ok(request) => request,
            Err(error) => return responder.respond(Err(error)),
        };
        let (id, blocks) = (&*request.session_id.0, request.prompt);
        let focus = self.focus.clone();
        let conversation = match self.conversation(id) {
            Ok(conversation) => conversation,
            Err(error) => return responder.respond(Err(error)),
        };
        let prompt = Prompt { parts: blocks.iter().cloned().filter_map(attachment).collect(), focus };
        if prompt.is_blank() {
            return responder.error(ErrorCode::InvalidParams, "the prompt is empty; say what you want");
        }
        let work = slash::understand(prompt, &conversation.commands);
        if conversation.prompt.is_none() {
            self.start(id, work, responder);
            return self.status(id, None);
        }
        if conversation.waiting.len() >= WAITING {
            let message = format!(
                "a turn is running and {WAITING} prompts wait already; wait for its end or send session/cancel"
            );
            return responder.error(ErrorCode::InvalidRequest, message);
        }
        conversation.waiting.push_back(Waiting { responder, prompt: Some((work, blocks)) });
        let queued = conversation.queued();
        self.status(id, queued);
    }

    /// `_tandem/session/steer`: answered when the message has joined the turn, or cannot any more.
    pub(super) fn steer(&mut self, responder: Responder, params: &Params) {
        let steered = read::<ext::Steer>(params).and_then(|request| self.say(request));
        let joined = match steered {
            Ok(joined) => joined,
            Err(error) => return responder.respond(Err(error)),
        };
        self.tasks.spawn(async move {
            match joined.await {
                Ok(()) => responder.ok(&json!({})),
                Err(_dropped) => {
                    let message = "no turn is running that could take the message; send it with session/prompt";
                    responder.error(ErrorCode::InvalidRequest, message);
                }
            }
        });
    }

    fn say(&mut self, request: ext::Steer) -> Answer<oneshot::Receiver<()>> {
        let conversation = self.conversation(&request.session_id)?;
        let prompt = Prompt { parts: request.prompt.into_iter().filter_map(attachment).collect(), focus: None };
        if prompt.is_blank() {
            return Err(super::dispatch::error(ErrorCode::InvalidParams, "the message is empty; say what you want"));
        }
        let (joined, answer) = oneshot::channel();
        conversation.send(Command::Steer(prompt, joined));
        Ok(answer)
    }

    pub(super) fn cancel(&mut self, params: &acp::CancelNotification) {
        if let Some(conversation) = self.conversations.get_mut(&params.session_id.0) {
            conversation.cancel();
        }
    }

    /// Cancelling the request of a prompt is cancelling its turn; one that waits is taken out alone.
    pub(super) fn cancel_request(&mut self, params: &Value) {
        let id = params.get("id").or_else(|| params.get("requestId")).cloned().unwrap_or_default();
        let Ok(id) = serde_json::from_value::<RequestId>(id) else { return };
        self.cancel_inline(&id);
        for conversation in self.conversations.values_mut() {
            if conversation.prompt.as_ref().is_some_and(|prompt| *prompt.id() == id) {
                conversation.send(Command::Cancel);
            }
            let waits = conversation.waiting.iter().position(|waiting| *waiting.responder.id() == id);
            if let Some(waiting) = waits.and_then(|index| conversation.waiting.remove(index)) {
                waiting.cancelled();
            }
        }
    }

    /// Every update is on its way: now the prompt is answered, and the next one starts.
    pub(super) fn turn_ended(&mut self, id: &SessionId, reason: Termination) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let failure = conversation.failure.take();
        let prompt = conversation.prompt.take();
        conversation.shown.end_turn();
        if conversation.reader == Reader::ChatFile {
            let problem = failure.map(|failure| failure.message);
            self.plain_done(id, reason, problem.as_deref());
        } else if let Some(prompt) = prompt {
            match (stop_reason(reason), failure) {
                (Some(stop), _) => prompt.ok(&acp::PromptResponse::new(stop)),
                (None, failure) => prompt.respond(Err(failure.unwrap_or_else(broken))),
            }
        }
        self.start_next(id);
    }

    fn start(&mut self, id: &str, work: Work, responder: Responder) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        match work {
            Work::Prompt(prompt) => conversation.start(responder, Command::Prompt(prompt)),
            Work::Compact => conversation.start(responder, Command::Compact),
            Work::Local(local) => self.run_local(id, &local, responder),
        }
    }

    fn start_next(&mut self, id: &SessionId) {
        while let Some(conversation) = self.conversations.get_mut(id)
            && conversation.prompt.is_none()
            && let Some(mut waiting) = conversation.waiting.pop_front()
        {
            let Some((work, blocks)) = waiting.prompt.take() else {
                waiting.cancelled();
                continue;
            };
            for block in blocks {
                send(&self.peer, id, acp::SessionUpdate::UserMessageChunk(acp::ContentChunk::new(block)));
            }
            self.start(id, work, waiting.responder);
        }
        let queued = self.conversations.get(id).and_then(Conversation::queued);
        self.status(id, queued);
    }
}
