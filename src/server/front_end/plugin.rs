//! A client with a tandem plugin: in addition to the Agent Client Protocol, it is sent the states of each prompt
//! (`_tandem/turn`) and of the session (`_tandem/status`).

use super::acp::request_permission;
use super::updates::{Updates, blocks};
use super::{Answering, FrontEnd};
use crate::agent::event::{AgentEvent, Permission};
use crate::domain::{JobStatus, ToolKind};
use crate::protocol::ext;
use crate::rpc::Peer;
use crate::server::permission::Request;
use crate::server::wire::{stop_reason, word};
use crate::session::event::{Activity, PromptId, PromptState, State};
use crate::session::{Offered, SessionId};
use crate::text::display;

/// A client that announced tandem's extensions.
pub(in crate::server) struct PluginClient {
    updates: Updates,
    id: SessionId,
    state: Option<State>,
}

impl PluginClient {
    pub fn new(peer: Peer, id: &SessionId) -> Self {
        Self {
            updates: Updates::new(peer, id, false),
            id: SessionId::clone(id),
            state: None,
        }
    }

    fn status(&self, message: Option<String>, passing: bool) {
        let Some(state) = &self.state else { return };
        let status = ext::Status {
            session_id: self.id.to_string(),
            state: match (state.activity, &state.model) {
                (Activity::Waiting(_), _) => ext::State::Waiting,
                (Activity::Running, _) => ext::State::Running,
                (Activity::Idle, Ok(_)) => ext::State::Ready,
                (Activity::Idle, Err(_)) => ext::State::NoModel,
            },
            queued: state.queued,
            mode: state.mode.name().to_owned(),
            model: state.model.clone().ok(),
            effort: state.effort.map(|effort| effort.name().to_owned()),
            usage: state.usage.map(|used| ext::Usage {
                used: used.tokens,
                size: used.window,
                cost: used.cost,
            }),
            message,
            passing,
        };
        self.updates.peer().notify("_tandem/status", &status);
    }

    fn turn(&self, id: &PromptId, state: &PromptState) -> ext::Turn {
        let mut turn = ext::Turn {
            session_id: self.id.to_string(),
            prompt_id: id.to_string(),
            ..ext::Turn::default()
        };
        match state {
            PromptState::Queued(position) => turn.position = Some(*position),
            PromptState::Running { number, .. } => {
                (turn.state, turn.turn) = (ext::PromptState::Running, *number);
            }
            PromptState::Joined => turn.state = ext::PromptState::Joined,
            PromptState::Returned { said, reason } => {
                turn.state = ext::PromptState::Returned;
                turn.reason = Some(word(reason));
                turn.prompt = Some(blocks(said));
            }
            PromptState::Ended(end) => {
                turn.state = ext::PromptState::Ended;
                match end {
                    Ok(reason) => turn.reason = Some(word(&stop_reason(*reason))),
                    Err(failure) => {
                        turn.reason = Some(word(&failure.code));
                        turn.message = Some(display::escape(&failure.message).into_owned());
                    }
                }
            }
        }
        turn
    }
}

impl FrontEnd for PluginClient {
    fn event(&mut self, event: AgentEvent) {
        let passing = matches!(event, AgentEvent::Retry { .. });
        if let Some(notice) = self.updates.event(event) {
            self.status(Some(notice), passing);
        }
    }

    fn prompt(&mut self, id: &PromptId, state: &PromptState) {
        self.updates
            .peer()
            .notify("_tandem/turn", &self.turn(id, state));
        self.updates.prompt(state);
    }

    fn state(&mut self, state: &State) {
        self.updates.state(state);
        self.state = Some(state.clone());
        self.status(message(state), false);
    }

    fn commands(&mut self, commands: &[Offered]) {
        self.updates.commands(commands);
    }

    fn jobs(&mut self, jobs: Vec<JobStatus>) {
        let session_id = self.id.to_string();
        let jobs = ext::Jobs { session_id, jobs };
        self.updates.peer().notify("_tandem/jobs/changed", &jobs);
    }

    fn ask(&mut self, request: &Request) -> Answering {
        request_permission(&mut self.updates, request)
    }

    fn resolved(&mut self, call_id: &str, _decision: &Permission) {
        self.updates.resolved(call_id);
    }
}

/// What a person reads of a state, where its fields do not say it.
fn message(state: &State) -> Option<String> {
    match (state.activity, &state.model) {
        (Activity::Waiting(kind), _) => Some(waiting(kind).to_owned()),
        (Activity::Idle, Err(why)) => Some(why.clone()),
        _ => None,
    }
}

/// What a turn waits for, in a few words.
fn waiting(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Edit => "wants to edit",
        ToolKind::Execute => "wants to run a command",
        ToolKind::Think => "has a question",
        _ => "needs your approval",
    }
}
