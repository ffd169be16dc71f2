//! A front end: how one conversation is shown, and how its person is asked. Three exist: a client with a tandem plugin,
//! any other client of the Agent Client Protocol, and a chat file in an editor that has only LSP.

mod acp;
mod plugin;
mod updates;

use futures_util::future::BoxFuture;
use serde_json::Value;

pub(super) use self::acp::AcpClient;
pub(super) use self::plugin::PluginClient;
use super::permission::Request;
use crate::agent::event::{AgentEvent, Permission};
use crate::session::Offered;
use crate::session::event::{PromptId, PromptState, State};

/// The person's answer to a permission request; `None`: they decided nothing here.
pub(super) type Answering = BoxFuture<'static, Option<Permission>>;

/// Shows one conversation. Every method returns at once.
pub(super) trait FrontEnd: Send {
    /// A turn did something.
    fn event(&mut self, event: AgentEvent);

    /// Something became of a prompt.
    fn prompt(&mut self, id: &PromptId, state: &PromptState);

    /// The session's state changed, or is shown for the first time.
    fn state(&mut self, state: &State);

    /// These slash commands can be typed.
    fn commands(&mut self, commands: &[Offered]);

    /// The person is to decide; where this front end gets the answer itself, it comes from the future.
    fn ask(&mut self, request: &Request) -> Answering;

    /// A permission request is decided, wherever the answer came from.
    fn resolved(&mut self, call_id: &str, decision: &Permission);

    /// What the tool call in a line of the chat file gave back, when so many lines like it stand below.
    fn output(&self, _call: &str, _below: usize) -> Option<String> {
        None
    }

    /// Whether a progress of this token belongs to the running turn.
    fn owns_progress(&self, _token: &Value) -> bool {
        false
    }
}
