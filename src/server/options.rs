//! The person's choices in a session: mode, model and reasoning effort. Each request is answered once the choice is in
//! effect.

use tokio::sync::oneshot;

use super::Server;
use super::dispatch::{Answer, Later, invalid, later};
use super::wire::{config_options, parse_effort, parse_mode};
use crate::protocol::acp;
use crate::session::event::State;
use crate::session::{Change, ChangeError};

type Taken = oneshot::Receiver<Result<State, ChangeError>>;

impl Server {
    pub fn set_mode(
        &mut self,
        acp::SetSessionModeRequest {
            session_id,
            mode_id,
            ..
        }: acp::SetSessionModeRequest,
    ) -> Later<acp::SetSessionModeResponse> {
        let mode = parse_mode(&mode_id.0)?;
        let conversation = self.conversation(&session_id.0)?;
        let taken = conversation.session.change(Change::Mode(mode));
        later(async move {
            in_force(taken).await?;
            Ok(acp::SetSessionModeResponse::new())
        })
    }

    pub fn set_config_option(
        &mut self,
        acp::SetSessionConfigOptionRequest {
            session_id,
            config_id,
            value,
            ..
        }: acp::SetSessionConfigOptionRequest,
    ) -> Later<acp::SetSessionConfigOptionResponse> {
        let taken = self.set_option(&session_id.0, &config_id.0, &value)?;
        let toggles = self.client.offers.toggles;
        later(async move {
            let options = config_options(&in_force(taken).await?, toggles);
            Ok(acp::SetSessionConfigOptionResponse::new(options))
        })
    }

    fn set_option(
        &mut self,
        session: &str,
        option: &str,
        value: &acp::SessionConfigOptionValue,
    ) -> Answer<Taken> {
        self.reconfigure(session);
        let session = &self.conversation(session)?.session;
        let refused = |why: String| Err(invalid(why));
        let change = match (option, value) {
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
}

/// The state with the change in effect.
async fn in_force(taken: Taken) -> Answer<State> {
    let taken = taken.await.unwrap_or(Err(ChangeError::Ended));
    taken.map_err(|problem| invalid(problem.to_string()))
}
