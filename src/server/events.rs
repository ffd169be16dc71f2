//! Routes a session's events: to the front end that shows them, and to the requests they answer.

use super::Server;
use crate::agent::event::AgentEvent;
use crate::domain::Failure;
use crate::session::SessionId;
use crate::session::event::SessionEvent;

impl Server {
    pub fn event(&mut self, id: &SessionId, event: SessionEvent) {
        match event {
            SessionEvent::Agent(event) => self.agent_event(id, event),
            SessionEvent::Prompt(prompt, state) => self.prompt_changed(id, &prompt, &state),
            SessionEvent::State(state) => {
                if let Some(conversation) = self.conversations.get_mut(id) {
                    conversation.front.state(&state);
                }
            }
            SessionEvent::Jobs(jobs) => {
                if let Some(conversation) = self.conversations.get_mut(id) {
                    conversation.front.jobs(jobs);
                }
            }
            SessionEvent::Opened(url) => self.open_in_browser(&url),
            SessionEvent::Edited(reply, answer) => drop(reply.send(answer)),
            SessionEvent::Panicked(failure) => self.session_panicked(id, &failure),
        }
    }

    fn agent_event(&mut self, id: &SessionId, event: AgentEvent) {
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        match event {
            AgentEvent::Resumed { title, .. } => self.opened(id, title),
            AgentEvent::Error(failure)
                if conversation
                    .opening
                    .as_ref()
                    .is_some_and(|opening| !opening.is_again) =>
            {
                self.not_opened(id, &failure.message);
            }
            AgentEvent::PermissionRequested(request) => self.ask_permission(id, request),
            AgentEvent::PermissionResolved { call_id, outcome } => {
                self.permission_resolved(id, &call_id, &outcome);
            }
            AgentEvent::SessionTitle { title } => conversation.entitle(title),
            event => conversation.front.event(event),
        }
    }

    /// A session panicked: waiting requests are answered.
    fn session_panicked(&mut self, id: &SessionId, failure: &Failure) {
        self.requests.forget(id);
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        if conversation.opening.is_some() {
            return self.not_opened(id, &failure.message);
        }
        conversation
            .prompts
            .end(&mut *conversation.front, &Err(failure.clone()));
    }
}
