//! Saved sessions: listing, loading with or without showing them, closing, deleting.
//!
//! Invariant: a request to load one is answered once it is loaded, after its history was shown.

use serde::Deserialize;

use super::Server;
use super::conversation::{Conversation, Opened, Opening, Sources, unknown};
use super::dispatch::{Answer, Later, error, later};
use super::wire::{config_options, modes};
use crate::agent::event::AgentEvent;
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Responder};
use crate::session::{self, Listed, SessionId, Sessions, Start, StoreError};

/// Sessions per answer to `session/list`.
const PAGE: usize = 100;

/// A request to open a saved session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Saved {
    session_id: SessionId,
    #[serde(flatten)]
    opened: Opened,
}

impl Server {
    /// `session/load`, `session/resume`, and `session/fork`, which opens a copy of a session that may be open itself.
    pub fn open_session(start: Start) -> impl FnOnce(&mut Self, Saved, Responder) {
        move |server, saved, responder| {
            let is_again =
                start != Start::Fork && server.conversations.contains_key(&saved.session_id);
            match server.open_saved(saved, start) {
                Ok(conversation) => {
                    conversation.opening = Some(Opening {
                        responder: Some(responder),
                        start,
                        is_again,
                    });
                }
                Err(error) => responder.refuse(&error),
            }
        }
    }

    fn open_saved(&mut self, saved: Saved, start: Start) -> Answer<&mut Conversation> {
        self.require_acp()?;
        let mut id = saved.session_id;
        let mut sources = saved.opened.sources()?;
        if start == Start::Fork {
            sources.original = Some(std::mem::replace(&mut id, session::new_id()));
        } else if self.conversations.contains_key(&id) {
            return self.open_again(&id, &sources, start);
        }
        let front = self.front_end(&id);
        self.start_session((id, start), sources, front)
    }

    /// Opens a session that is already open on this connection: clients do so after they lost their view of it. It
    /// continues as it is.
    fn open_again(
        &mut self,
        id: &SessionId,
        sources: &Sources,
        start: Start,
    ) -> Answer<&mut Conversation> {
        let refused = |why: &str| {
            let message = format!("session `{id}` is open on this connection {why}");
            error(ErrorCode::InvalidRequest, message)
        };
        if !self.is_open_with(id, sources)? {
            return Err(refused(
                "with other directories, MCP servers or instructions; send session/close first",
            ));
        }
        let (events, store) = (self.events.clone(), self.sessions());
        let conversation = self.conversation(id)?;
        if conversation.opening.is_some() {
            return Err(refused("and being loaded; wait for that answer"));
        }
        if start == Start::Replay && conversation.prompts.any() {
            return Err(refused(
                "and runs a turn; session/resume continues without a replay, session/cancel ends the turn",
            ));
        }
        let state = conversation.session.state();
        let resumed = AgentEvent::Resumed {
            title: conversation.title.clone(),
            mode: state.mode.name().to_owned(),
            model: state.model.ok(),
            effort: state.effort,
            cost: state.usage.and_then(|used| used.cost),
        };
        let id = SessionId::clone(id);
        let name = SessionId::clone(&id);
        self.tasks.spawn(async move {
            let shown = match (start, store) {
                (Start::Replay, Some(store)) => store.read(&id).await,
                _ => Ok(Vec::new()),
            };
            let shown = shown.unwrap_or_else(|problem| match problem {
                // Nothing was said in it yet.
                StoreError::Unknown(_) => Vec::new(),
                problem => vec![AgentEvent::Notice {
                    message: problem.to_string(),
                }],
            });
            for event in shown.into_iter().chain([resumed]) {
                if events.send((id.clone(), event.into())).await.is_err() {
                    return;
                }
            }
        });
        self.conversation(&name)
    }

    /// The session is loaded: answers its request and sends its title; that of a chat file has only hunks to show.
    pub fn opened(&mut self, id: &SessionId, title: String) {
        let toggles = self.client.offers.toggles;
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        let Some(Opening {
            responder, start, ..
        }) = conversation.opening.take()
        else {
            return;
        };
        let Some(responder) = responder else {
            return self.show_hunks();
        };
        let state = conversation.session.state();
        let (modes, options) = (modes(state.mode), config_options(&state, toggles));
        match start {
            Start::Replay => responder.ok(&acp::LoadSessionResponse::new()
                .modes(modes)
                .config_options(options)),
            Start::Fork => responder.ok(&acp::ForkSessionResponse::new(SessionId::clone(id))
                .modes(modes)
                .config_options(options)),
            Start::New | Start::Resume => responder.ok(&acp::ResumeSessionResponse::new()
                .modes(modes)
                .config_options(options)),
        }
        conversation.entitle(title);
        self.show(id);
    }

    /// The session cannot be loaded: answers its request with the error.
    pub fn not_opened(&mut self, id: &SessionId, why: &str) {
        let Some(mut conversation) = self.conversations.remove(id) else {
            return;
        };
        match conversation.opening.take() {
            Some(Opening {
                responder: Some(responder),
                ..
            }) => responder.error(ErrorCode::InvalidParams, why),
            _ => self.chats.forget(id, why),
        }
        self.closing.spawn(conversation.close());
    }

    pub fn list_sessions(
        &mut self,
        request: acp::ListSessionsRequest,
    ) -> Later<acp::ListSessionsResponse> {
        let sessions = self.sessions();
        later(async move {
            let Some(sessions) = sessions else {
                return Ok(acp::ListSessionsResponse::new(Vec::new()));
            };
            let page = sessions.page(request.cwd.as_deref(), request.cursor.as_deref(), PAGE);
            let (page, more) = page.await.map_err(|problem| {
                let message = format!("cannot list sessions: {problem}");
                error(ErrorCode::RequestFailed, message)
            })?;
            let next = page.last().filter(|_| more).map(|listed| listed.id.clone());
            let page = page.into_iter().map(info).collect();
            Ok(acp::ListSessionsResponse::new(page).next_cursor(next))
        })
    }

    /// `session/close`: answered once the session is closed, so that it can be opened again or deleted.
    pub fn close_session(&mut self, request: acp::CloseSessionRequest, responder: Responder) {
        let id = &request.session_id.0;
        self.requests.forget(id);
        let Some(conversation) = self.conversations.remove(id) else {
            return responder.refuse(&unknown(id));
        };
        conversation.session.returned();
        self.closing.spawn(async move {
            conversation.close().await;
            responder.ok(&acp::CloseSessionResponse::new());
        });
    }

    pub fn delete_session(&mut self, request: acp::DeleteSessionRequest, responder: Responder) {
        let id = request.session_id.0;
        self.requests.forget(&id);
        let open = self.conversations.remove(&id);
        let sessions = self.sessions();
        self.closing.spawn(async move {
            if let Some(conversation) = open {
                conversation.close().await;
            }
            let removed = match sessions {
                Some(sessions) => sessions.remove(&id).await,
                None => Ok(()),
            };
            match removed {
                // It is gone already, which is what the client wanted.
                Ok(()) | Err(StoreError::Unknown(_)) => {
                    responder.ok(&acp::DeleteSessionResponse::new());
                }
                Err(problem) => responder.error(ErrorCode::RequestFailed, problem.to_string()),
            }
        });
    }

    /// Where sessions are saved, if they are.
    pub fn sessions(&self) -> Option<Sessions> {
        let state = self.load_settings(&[]).state_dir?;
        Some(Sessions::new(&state))
    }
}

fn info(listed: Listed) -> acp::SessionInfo {
    let Listed {
        id,
        mut folders,
        title,
        updated,
        chat: _,
    } = listed;
    let more = folders.split_off(folders.len().min(1));
    acp::SessionInfo::new(id, folders.pop().unwrap_or_default())
        .additional_directories(more)
        .title(title)
        .updated_at(humantime::format_rfc3339_seconds(updated).to_string())
}
