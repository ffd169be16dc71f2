//! `session/prompt`, steering, cancelling and withdrawing: passed to the session, and answered when the session reports
//! what happened.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::dispatch::{Answer, Later, error, later, read};
use super::front_end::FrontEnd;
use super::wire::{attachment, failure, stop_reason};
use crate::agent::event::Termination;
use crate::domain::{Failure, Focus, Prompt};
use crate::protocol::{acp, ext};
use crate::rpc::{ErrorCode, Params, RequestId, Responder, ResponseError};
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
    turn: Option<String>,
}

/// The request that sent a prompt.
pub(super) enum Waits {
    /// `session/prompt`: waits for the end of its turn.
    Prompt(Responder),
    /// `_tandem/session/steer`: waits until it has joined.
    Steer(Responder),
}

impl Waits {
    fn id(&self) -> &RequestId {
        match self {
            Self::Prompt(responder) | Self::Steer(responder) => responder.id(),
        }
    }

    fn responder(self) -> Responder {
        match self {
            Self::Prompt(responder) | Self::Steer(responder) => responder,
        }
    }

    fn answer(self, state: &PromptState) {
        match (self, state) {
            (Self::Steer(responder), PromptState::Joined { .. }) => responder.ok(&json!({})),
            (waits, PromptState::Returned { reason, .. }) => waits.answer_returned(*reason),
            (waits, PromptState::Ended { end: Err(why), .. }) => {
                waits.responder().refuse(&failure(why));
            }
            (
                waits,
                PromptState::Ended {
                    end: Ok(reason), ..
                },
            ) => {
                waits
                    .responder()
                    .ok(&acp::PromptResponse::new(stop_reason(*reason)));
            }
            (waits, _) => waits
                .responder()
                .ok(&acp::PromptResponse::new(acp::StopReason::EndTurn)),
        }
    }

    fn answer_returned(self, reason: ReturnReason) {
        match (self, reason) {
            (waits, ReturnReason::QueueFull) => waits.responder().error(
                ErrorCode::InvalidRequest,
                "too many prompts are queued; wait for the running turn to end, or send session/cancel",
            ),
            (Self::Prompt(responder), _) => responder.ok(&acp::PromptResponse::new(acp::StopReason::Cancelled)),
            (Self::Steer(responder), ReturnReason::Withdrawn | ReturnReason::Cancelled) => {
                responder.error(ErrorCode::RequestCanceled, "the message was withdrawn before it joined the turn");
            }
            (Self::Steer(responder), _) => {
                let message = "no turn is running; send the message with session/prompt";
                responder.error(ErrorCode::InvalidRequest, message);
            }
        }
    }
}

impl Prompts {
    /// Passes a prompt to its session; returns the waiting request if it was not accepted.
    pub fn send(
        &mut self,
        session: &Session,
        prompt: Prompt,
        said: Value,
        waits: Option<Waits>,
        name: Option<&str>,
    ) -> Result<(), Box<(ResponseError, Option<Waits>)>> {
        if prompt.is_blank() {
            return Err(Box::new((
                error(ErrorCode::InvalidParams, "the prompt is empty"),
                waits,
            )));
        }
        let id = match self.name(name) {
            Ok(id) => id,
            Err(problem) => return Err(Box::new((problem, waits))),
        };
        let said = Arc::new(said);
        let (name, copy) = (Arc::clone(&id), Arc::clone(&said));
        let sent = match &waits {
            Some(Waits::Steer(_)) => session.steer(name, prompt, copy),
            _ => session.prompt(name, prompt, copy),
        };
        match sent {
            Ok(cancel) => {
                self.open.insert(
                    id,
                    Open {
                        waits,
                        said,
                        cancel,
                        turn: None,
                    },
                );
                Ok(())
            }
            Err(busy) => Err(Box::new((
                error(ErrorCode::RequestFailed, busy.to_string()),
                waits,
            ))),
        }
    }

    /// The session is gone: ends every prompt.
    pub fn end(&mut self, front: &mut dyn FrontEnd, end: &Result<Termination, Failure>) {
        for (
            id,
            Open {
                waits, said, turn, ..
            },
        ) in self.open.drain()
        {
            let state = match turn {
                Some(turn) => PromptState::Ended {
                    turn,
                    end: end.clone(),
                },
                None => PromptState::Returned {
                    said,
                    reason: ReturnReason::Closed,
                },
            };
            front.prompt(&id, &state);
            if let Some(waits) = waits {
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
            return Err(error(
                ErrorCode::InvalidParams,
                format!("prompt id `{id}` is in use; each prompt needs its own"),
            ));
        }
        Ok(id)
    }

    /// The prompt of a request.
    fn of_request(&self, id: &RequestId) -> Option<&Open> {
        self.open
            .values()
            .find(|open| open.waits.as_ref().is_some_and(|waits| waits.id() == id))
    }

    /// Records a prompt's state and answers the request that waits for it.
    fn note(&mut self, prompt: &PromptId, state: &PromptState) {
        match state {
            PromptState::Queued(_) => {}
            PromptState::Running { turn, .. } => {
                if let Some(open) = self.open.get_mut(prompt) {
                    open.turn = Some(turn.clone());
                }
            }
            PromptState::Joined { .. }
            | PromptState::Returned { .. }
            | PromptState::Ended { .. } => {
                if let Some(waits) = self.open.remove(prompt).and_then(|open| open.waits) {
                    waits.answer(state);
                }
            }
        }
    }
}

impl Server {
    pub(super) fn prompt(&mut self, responder: Responder, params: &Params) {
        match read::<acp::PromptRequest>(params) {
            Ok(request) => {
                let focus = self.focus.clone();
                self.send_blocks(
                    &request.session_id.0,
                    request.prompt,
                    focus,
                    request.meta.as_ref(),
                    Waits::Prompt(responder),
                );
            }
            Err(error) => responder.refuse(&error),
        }
    }

    /// `_tandem/session/steer`.
    pub(super) fn steer(&mut self, responder: Responder, params: &Params) {
        match read::<ext::Steer>(params) {
            Ok(request) => {
                self.send_blocks(
                    &request.session_id,
                    request.prompt,
                    None,
                    request.meta.as_ref(),
                    Waits::Steer(responder),
                );
            }
            Err(error) => responder.refuse(&error),
        }
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
        let conversation = match self.conversation(id) {
            Ok(conversation) => conversation,
            Err(problem) => return waits.responder().refuse(&problem),
        };
        let said = serde_json::to_value(&blocks).unwrap_or_default();
        let prompt = Prompt {
            parts: blocks.into_iter().filter_map(attachment).collect(),
            focus,
        };
        let name = meta
            .and_then(|meta| meta.get(ext::PROMPT_ID))
            .and_then(Value::as_str);
        let sent =
            conversation
                .prompts
                .send(&conversation.session, prompt, said, Some(waits), name);
        if let Err((problem, Some(waits))) = sent.map_err(|refused| *refused) {
            waits.responder().refuse(&problem);
        }
    }

    /// `_tandem/turn/withdraw`.
    pub(super) fn withdraw(&mut self, request: ext::Withdraw) -> Later<Value> {
        let session = &self.conversation(&request.session_id)?.session;
        let withdrawn = session
            .withdraw(request.prompt_id.into())
            .map_err(|busy| error(ErrorCode::RequestFailed, busy.to_string()))?;
        later(async move {
            if withdrawn.await.unwrap_or_default() {
                return Ok(json!({}));
            }
            let message =
                "no queued prompt with that id; if it is already running, session/cancel stops it";
            Err(error(ErrorCode::InvalidRequest, message))
        })
    }

    pub(super) fn cancel(&mut self, params: &acp::CancelNotification) {
        if let Some(conversation) = self.conversations.get(&params.session_id.0) {
            conversation.session.cancel();
        }
    }

    pub(super) fn did_start_typing(&self, params: &ext::DidStartTyping) {
        if let Some(conversation) = self.conversations.get(params.session_id.as_str()) {
            conversation.session.typing_began();
        }
    }

    /// `$/cancelRequest` on a prompt: stops its turn, or returns only the prompt if it is queued.
    pub(super) fn cancel_request(&mut self, params: &Value) {
        let id = params
            .get("id")
            .or_else(|| params.get("requestId"))
            .cloned()
            .unwrap_or_default();
        let Ok(id) = serde_json::from_value::<RequestId>(id) else {
            return;
        };
        self.cancel_inline(&id);
        for conversation in self.conversations.values() {
            if let Some(open) = conversation.prompts.of_request(&id) {
                open.cancel.cancel();
                conversation.session.wake();
            }
        }
    }

    /// The session reports a prompt's state. Every update of its turn has been queued by then.
    pub(super) fn prompt_changed(
        &mut self,
        id: &SessionId,
        prompt: &PromptId,
        state: &PromptState,
    ) {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        conversation.front.prompt(prompt, state);
        conversation.prompts.note(prompt, state);
        if matches!(state, PromptState::Ended { .. }) {
            self.show_hunks();
        }
    }
}
