//! A front end shows one session and asks its person for permission.
//!
//! There are three: a client with a tandem plugin, any other client of the Agent Client Protocol, and a chat file in an
//! LSP-only client.

mod acp;
mod plugin;
mod updates;

use futures_util::future::BoxFuture;
use serde_json::Value;

pub(super) use self::acp::{AcpClient, Offers};
pub(super) use self::plugin::PluginClient;
use super::permission::Request;
use crate::agent::event::{AgentEvent, Permission};
use crate::domain::JobStatus;
use crate::session::Offered;
use crate::session::event::{PromptId, PromptState, State};

/// The person's answer to a permission request; `None` if they decided nothing here.
pub(super) type Answering = BoxFuture<'static, Option<Permission>>;

/// Shows one session. Every method returns at once.
pub(super) trait FrontEnd: Send {
    /// Shows an event of a turn.
    fn event(&mut self, event: AgentEvent);

    /// Shows a new state of a prompt.
    fn prompt(&mut self, id: &PromptId, state: &PromptState);

    /// Shows the session's state, for the first time or because it changed.
    fn state(&mut self, state: &State);

    /// Offers these slash commands.
    fn commands(&mut self, commands: &[Offered]);

    /// Shows what runs in the background, where there is a place for it.
    fn jobs(&mut self, _jobs: Vec<JobStatus>) {}

    /// Asks the person; if this front end receives the answer itself, the future resolves to it.
    fn ask(&mut self, request: &Request) -> Answering;

    /// Removes a permission request that was decided, wherever the answer came from.
    fn resolved(&mut self, call_id: &str, decision: &Permission);

    /// The output of the tool call in a line of the chat file, given how many lines like it stand below.
    fn output(&self, _call: &str, _below: usize) -> Option<String> {
        None
    }

    /// Whether the progress with this token belongs to the running turn.
    fn owns_progress(&self, _token: &Value) -> bool {
        false
    }
}
