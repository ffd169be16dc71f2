//! A conversation for which no model was configured takes the configuration that was written since.
//!
//! It has run no turn, so the rules, limits, secrets and MCP servers in it count as well, not the model alone. What its
//! folders and files were made from stays: the state folder, and the environment of commands.

use super::{Actor, NoProvider, Setup, Start, connect, search};
use crate::config::Settings;
use crate::model::ErrorCode;

impl Actor {
    /// Takes these settings if there is no model for want of a configuration; the checks at the end of a turn in any case.
    pub(super) async fn configure(&mut self, settings: Settings) {
        self.settings.finish.clone_from(&settings.finish);
        let is_unconfigured =
            |why: &NoProvider| matches!(why.code, ErrorCode::NoModel | ErrorCode::Auth);
        if !self.model.as_ref().is_err_and(is_unconfigured) {
            return;
        }
        // A mode that the person chose, or that the conversation was saved with, stays.
        if self.start == Start::New && self.mode == self.settings.mode {
            self.mode = settings.mode;
        }
        self.mode = self.mode.min(settings.widest_mode);
        let setup = connect::setup(
            self.id.clone(),
            self.start,
            &settings,
            self.workspace.clone(),
        );
        self.better = search(&setup);
        let Setup {
            provider,
            servers,
            server_timeout,
            policy,
            secrets,
            limits,
            ..
        } = setup;
        (self.servers, self.server_timeout) = (servers, server_timeout);
        (self.policy, self.secrets, self.limits) = (policy, secrets, limits);
        self.settings = settings;
        self.take_offers();
        self.load_rules().await;
        match provider {
            Ok(provider) => self.set_model(provider, self.effort),
            Err(why) => {
                self.model = Err(why);
                self.choices = self.choose_from();
            }
        }
    }
}
