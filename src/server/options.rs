//! What can be chosen in a conversation: mode, model, and how hard the model thinks.

use super::Server;
use super::conversation::{Reader, send};
use super::dispatch::{Answer, error};
use super::wire::{config_options, parse_effort, parse_mode};
use crate::config::Mode;
use crate::protocol::acp;
use crate::rpc::ErrorCode;
use crate::session::{self, Command, Effort};

impl Server {
    pub(super) fn set_mode(&mut self, params: &acp::SetSessionModeRequest) -> Answer<acp::SetSessionModeResponse> {
        let mode = parse_mode(&params.mode_id.0)?;
        self.change_mode(&params.session_id.0, mode)?;
        Ok(acp::SetSessionModeResponse::new())
    }

    pub(super) fn set_config_option(
        &mut self,
        params: &acp::SetSessionConfigOptionRequest,
    ) -> Answer<acp::SetSessionConfigOptionResponse> {
        let id = &params.session_id.0;
        let value = match &params.value {
            acp::SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
            _ => String::new(),
        };
        match &*params.config_id.0 {
            "mode" => self.change_mode(id, parse_mode(&value)?)?,
            "model" if self.conversation(id)?.models().contains(&value) => {
                let effort = self.conversation(id)?.effort;
                self.change_model(id, &value, effort)?;
            }
            "model" => return Err(error(ErrorCode::InvalidParams, format!("no model `{value}` is configured"))),
            "effort" => {
                let effort = parse_effort(&value)?;
                let model = self.conversation(id)?.model.clone().unwrap_or_default();
                self.change_model(id, &model, effort)?;
            }
            other => return Err(error(ErrorCode::InvalidParams, format!("there is no option `{other}`"))),
        }
        let options = config_options(self.conversation(id)?);
        Ok(acp::SetSessionConfigOptionResponse::new(options))
    }

    pub(super) fn change_mode(&mut self, id: &str, mode: Mode) -> Answer<()> {
        let conversation = self.conversation(id)?;
        conversation.mode = mode;
        conversation.send(Command::SetMode(mode));
        if conversation.reader == Reader::Client {
            let mode = acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(mode.name()));
            let options = acp::ConfigOptionUpdate::new(config_options(conversation));
            send(&self.peer, id, mode);
            send(&self.peer, id, acp::SessionUpdate::ConfigOptionUpdate(options));
        }
        self.status(id, None);
        Ok(())
    }

    /// Another model, or the same thinking harder or less.
    pub(super) fn change_model(&mut self, id: &str, name: &str, effort: Option<Effort>) -> Answer<()> {
        let conversation = self.conversation(id)?;
        let provider = session::provider_named(&conversation.settings, name, effort)
            .map_err(|why| error(ErrorCode::InvalidParams, why.message))?;
        conversation.model = Some(provider.name());
        conversation.effort = effort;
        conversation.no_model = None;
        conversation.send(Command::SetModel(provider, effort));
        if conversation.reader == Reader::Client {
            let options = acp::ConfigOptionUpdate::new(config_options(conversation));
            send(&self.peer, id, acp::SessionUpdate::ConfigOptionUpdate(options));
        }
        self.status(id, None);
        Ok(())
    }
}
