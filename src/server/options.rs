//! The person's choices in a conversation: mode, model and reasoning effort. Each request is answered once the choice
//! is in force.

use serde::Serialize;
use tokio::sync::oneshot;

use super::Server;
use super::dispatch::{Answer, error, read};
use super::wire::{config_options, parse_effort, parse_mode};
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Params, Responder};
use crate::session::event::State;
use crate::session::{Change, ChangeError};

type Taken = oneshot::Receiver<Result<State, ChangeError>>;

impl Server {
    pub(super) fn set_mode(&mut self, responder: Responder, params: &Params) {
        let taken = read::<acp::SetSessionModeRequest>(params).and_then(|request| {
            let mode = parse_mode(&request.mode_id.0)?;
            Ok(self
                .conversation(&request.session_id.0)?
                .session
                .change(Change::Mode(mode)))
        });
        self.answer_change(responder, taken, |_| acp::SetSessionModeResponse::new());
    }

    pub(super) fn set_config_option(&mut self, responder: Responder, params: &Params) {
        let taken = read::<acp::SetSessionConfigOptionRequest>(params)
            .and_then(|request| self.set_option(&request));
        let toggles = self.client.offers.toggles;
        self.answer_change(responder, taken, move |state| {
            acp::SetSessionConfigOptionResponse::new(config_options(state, toggles))
        });
    }

    fn set_option(&mut self, request: &acp::SetSessionConfigOptionRequest) -> Answer<Taken> {
        self.reconfigure(&request.session_id.0);
        let session = &self.conversation(&request.session_id.0)?.session;
        let refused = |why: String| Err(error(ErrorCode::InvalidParams, why));
        let change = match (&*request.config_id.0, &request.value) {
            ("copy", acp::SessionConfigOptionValue::Boolean { value }) => Change::OnCopy(*value),
            ("copy", _) => return refused("option `copy`: expected a boolean".to_owned()),
            (option, acp::SessionConfigOptionValue::ValueId { value }) => match option {
                "mode" => Change::Mode(parse_mode(&value.0)?),
                "model" => Change::Model(value.0.to_string()),
                "effort" => Change::Effort(parse_effort(&value.0)?),
                _ => return refused(format!("unknown option `{option}`")),
            },
            (option, _) => {
                return refused(format!("option `{option}`: expected the id of a value"));
            }
        };
        Ok(session.change(change))
    }

    fn answer_change<R: Serialize>(
        &mut self,
        responder: Responder,
        taken: Answer<Taken>,
        response: impl FnOnce(&State) -> R + Send + 'static,
    ) {
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => return responder.respond(Err(error)),
        };
        self.tasks.spawn(async move {
            match taken.await.unwrap_or(Err(ChangeError::Ended)) {
                Ok(state) => responder.ok(&response(&state)),
                Err(problem) => responder.error(ErrorCode::InvalidParams, problem.to_string()),
            }
        });
    }
}
