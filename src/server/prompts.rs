//! `session/prompt`, steering, cancelling and withdrawing: passed to the session, and answered when the session reports
//! what happened.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::dispatch::{Answer, Later, error, invalid, later};
use super::front_end::FrontEnd;
use super::wire::{attachment, failure, stop_reason};
use crate::agent::event::Termination;
use crate::domain::{Failure, Focus, Prompt};
use crate::protocol::{acp, ext};
use crate::rpc::{ErrorCode, RequestId, Responder};
use crate::session::event::{PromptId, PromptState, ReturnReason};
use crate::session::{Session, SessionId};

/// The prompts of a session that have not ended.
#[derive(Default)]
pub(super) struct Prompts {
    open: HashMap<PromptId, Open>,
    /// How many prompts the server has named.
    named: u64,
}

struct Open {
    /// Who waits for it; `None` for a prompt of a chat file.
    waits: Option<Waits>,
    said: Arc<Value>,
    cancel: CancellationToken,
    /// Whether its turn runs.
    runs: bool,
}

/// The request that sent a prompt.
pub(super) struct Waits {
    responder: Responder,
    /// Whether it waits only until the prompt has joined a turn (`_tandem/session/steer`), not for the end of its turn.
    steers: bool,
}

impl Waits {
    fn answer(self, state: &PromptState) {
        let Self { responder, steers } = self;
        let stopped = acp::PromptResponse::new;
        match state {
            PromptState::Joined if steers => responder.ok(&json!({})),
            PromptState::Returned {
                reason: ReturnReason::QueueFull,
                ..
            } => responder.error(
                ErrorCode::InvalidRequest,
                "too many prompts are queued; wait for the running turn to end, or send session/cancel",
            ),
            PromptState::Returned { .. } if !steers => {
                responder.ok(&stopped(acp::StopReason::Cancelled));
            }
            PromptState::Returned {
                reason: ReturnReason::Withdrawn | ReturnReason::Cancelled,
                ..
            } => responder.error(
                ErrorCode::RequestCanceled,
                "the message was withdrawn before it joined the turn",
            ),
            PromptState::Returned { .. } => responder.error(
                ErrorCode::InvalidRequest,
                "no turn is running; send the message with session/prompt",
            ),
            PromptState::Ended(Err(why)) => responder.refuse(&failure(why)),
            PromptState::Ended(Ok(reason)) => responder.ok(&stopped(stop_reason(*reason))),
            _ => responder.ok(&stopped(acp::StopReason::EndTurn)),
        }
    }
}

impl Prompts {
    /// Passes a prompt to its session, and keeps the waiting request if it was accepted.
    pub fn send(
        &mut self,
        session: &Session,
        prompt: Prompt,
        said: Value,
        waits: &mut Option<Waits>,
        name: Option<&str>,
    ) -> Answer<()> {
        if prompt.is_blank() {
            return Err(invalid("the prompt is empty"));
        }
        let id = self.name(name)?;
        let said = Arc::new(said);
        let (name, copy) = (Arc::clone(&id), Arc::clone(&said));
        let cancel = match waits {
            Some(waits) if waits.steers => session.steer(name, prompt, copy),
            _ => session.prompt(name, prompt, copy),
        }?;
        let open = Open {
            waits: waits.take(),
            said,
            cancel,
            runs: false,
        };
        self.open.insert(id, open);
        Ok(())
    }

    /// The session is gone: ends every prompt.
    pub fn end(&mut self, front: &mut dyn FrontEnd, end: &Result<Termination, Failure>) {
        for (id, open) in self.open.drain() {
            let state = if open.runs {
                PromptState::Ended(end.clone())
            } else {
                PromptState::Returned {
                    said: open.said,
                    reason: ReturnReason::Closed,
                }
            };
            front.prompt(&id, &state);
            if let Some(waits) = open.waits {
                waits.answer(&state);
            }
        }
    }

    /// Whether any prompt has not ended.
    pub fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// The client's id for a prompt, or a new one.
    fn name(&mut self, given: Option<&str>) -> Answer<PromptId> {
        let id: PromptId = if let Some(name) = given {
            name.into()
        } else {
            self.named += 1;
            format!("tandem-{}", self.named).into()
        };
        if self.open.contains_key(&id) {
            let message = format!("prompt id `{id}` is in use; each prompt needs its own");
            return Err(invalid(message));
        }
        Ok(id)
    }

    /// The prompt of a request.
    fn of_request(&self, id: &RequestId) -> Option<&Open> {
        self.open
            .values()
            .find(|open| matches!(&open.waits, Some(waits) if waits.responder.id() == id))
    }

    /// Records a prompt's state and answers the request that waits for it.
    fn note(&mut self, prompt: &PromptId, state: &PromptState) {
        match state {
            PromptState::Queued(_) => {}
            PromptState::Running { .. } => {
                if let Some(open) = self.open.get_mut(prompt) {
                    open.runs = true;
                }
            }
            PromptState::Joined | PromptState::Returned { .. } | PromptState::Ended(_) => {
                if let Some(waits) = self.open.remove(prompt).and_then(|open| open.waits) {
                    waits.answer(state);
                }
            }
        }
    }
}

impl Server {
    pub fn prompt(&mut self, request: acp::PromptRequest, responder: Responder) {
        let acp::PromptRequest {
            session_id,
            prompt,
            meta,
            ..
        } = request;
        let focus = self.focus.clone();
        let waits = Waits {
            responder,
            steers: false,
        };
        self.send_blocks(&session_id.0, prompt, focus, meta.as_ref(), waits);
    }

    /// `_tandem/session/steer`.
    pub fn steer(&mut self, request: ext::Steer, responder: Responder) {
        let ext::Steer {
            session_id,
            prompt,
            meta,
        } = request;
        let waits = Waits {
            responder,
            steers: true,
        };
        self.send_blocks(&session_id, prompt, None, meta.as_ref(), waits);
    }

    fn send_blocks(
        &mut self,
        id: &str,
        blocks: Vec<acp::ContentBlock>,
        focus: Option<Focus>,
        meta: Option<&Map<String, Value>>,
        waits: Waits,
    ) {
        self.reconfigure(id);
        let said = serde_json::to_value(&blocks).unwrap_or_default();
        let prompt = Prompt {
            parts: blocks.into_iter().filter_map(attachment).collect(),
            focus,
        };
        let name = meta
            .and_then(|meta| meta.get(ext::PROMPT_ID))
            .and_then(Value::as_str);
        let mut waits = Some(waits);
        let sent = self.conversation(id).and_then(|conversation| {
            let session = &conversation.session;
            let prompts = &mut conversation.prompts;
            prompts.send(session, prompt, said, &mut waits, name)
        });
        if let (Err(problem), Some(waits)) = (sent, waits) {
            waits.responder.refuse(&problem);
        }
    }

    /// `_tandem/turn/withdraw`.
    pub fn withdraw(&mut self, request: ext::Withdraw) -> Later<Value> {
        let session = &self.conversation(&request.session_id)?.session;
        let withdrawn = session.withdraw(request.prompt_id.into())?;
        later(async move {
            if withdrawn.await.unwrap_or_default() {
                return Ok(json!({}));
            }
            let message =
                "no queued prompt with that id; if it is already running, session/cancel stops it";
            Err(error(ErrorCode::InvalidRequest, message))
        })
    }

    pub fn cancel(&mut self, params: acp::CancelNotification) {
        if let Some(conversation) = self.conversations.get(&params.session_id.0) {
            conversation.session.cancel();
        }
    }

    pub fn did_start_typing(&mut self, params: ext::DidStartTyping) {
        if let Some(conversation) = self.conversations.get(params.session_id.as_str()) {
            conversation.session.typing_began();
        }
    }

    /// `$/cancelRequest` on a prompt: stops its turn, or returns only the prompt if it is queued.
    pub fn cancel_request(&mut self, params: Value) {
        let id = params.get("id").unwrap_or(&params["requestId"]);
        self.cancel_inline(id);
        for conversation in self.conversations.values() {
            if let Some(open) = conversation.prompts.of_request(id) {
                open.cancel.cancel();
                conversation.session.wake();
            }
        }
    }

    /// The session reports a prompt's state. Every update of its turn has been queued by then.
    pub fn prompt_changed(&mut self, id: &SessionId, prompt: &PromptId, state: &PromptState) {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        conversation.front.prompt(prompt, state);
        conversation.prompts.note(prompt, state);
        if matches!(state, PromptState::Ended(_)) {
            self.show_hunks();
        }
    }
}
