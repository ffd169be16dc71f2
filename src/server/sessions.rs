//! Saved sessions: listing, loading with or without showing them, closing, deleting.
//!
//! Invariant: a request to load one is answered once it is loaded, after its history was shown.

use serde::Deserialize;

use super::Server;
use super::conversation::{Conversation, Opening, Sources, unknown};
use super::dispatch::{Answer, Later, error, later, read};
use super::wire::{config_options, modes};
use crate::agent::event::AgentEvent;
use crate::protocol::acp;
use crate::rpc::{ErrorCode, Params, Responder, ResponseError};
use crate::session::{self, Listed, SessionId, Sessions, Start, StoreError};

/// Sessions per answer to `session/list`.
const PAGE: usize = 100;

/// Which session a request is about.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: SessionId,
}

impl Server {
    /// `session/load` and `session/resume`.
    pub(super) fn open_session(&mut self, responder: Responder, params: &Params, start: Start) {
        let opened = self.require_acp().and_then(|()| {
            let id = read::<Named>(params)?.session_id;
            let sources = Sources::read(params)?;
            if self.conversations.contains_key(&id) {
                return self.open_again(&id, &sources, start);
            }
            let front = self.front_end(&id);
            self.start_session((id, start), sources, front)
        });
        match opened {
            Ok(conversation) => conversation.opening = Some(Opening { responder, start }),
            Err(error) => responder.refuse(&error),
        }
    }

    /// `session/fork`: opens a copy of a session, which may be open itself.
    pub(super) fn fork_session(&mut self, responder: Responder, params: &Params) {
        let opened = self.require_acp().and_then(|()| {
            let sources = Sources {
                original: Some(read::<Named>(params)?.session_id),
                ..Sources::read(params)?
            };
            let id = session::new_id();
            let front = self.front_end(&id);
            self.start_session((id, Start::Fork), sources, front)
        });
        let start = Start::Fork;
        match opened {
            Ok(conversation) => conversation.opening = Some(Opening { responder, start }),
            Err(error) => responder.refuse(&error),
        }
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

    /// The session is loaded: answers its request and sends its title.
    pub(super) fn opened(&mut self, id: &SessionId, title: String) {
        let toggles = self.client.offers.toggles;
        let Some(conversation) = self.conversations.get_mut(id) else {
            return;
        };
        let Some(Opening { responder, start }) = conversation.opening.take() else {
            return;
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
        conversation.show();
    }

    /// The session cannot be loaded: answers its request with the error.
    pub(super) fn not_opened(&mut self, id: &SessionId, why: &str) {
        let Some(mut conversation) = self.conversations.remove(id) else {
            return;
        };
        if let Some(Opening { responder, .. }) = conversation.opening.take() {
            responder.error(ErrorCode::InvalidParams, why);
        }
        self.closing.spawn(conversation.close());
    }

    pub(super) fn list_sessions(
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
                let message = format!("the sessions cannot be listed: {problem}");
                error(ErrorCode::RequestFailed, message)
            })?;
            let next = page.last().filter(|_| more).map(|listed| listed.id.clone());
            let page = page.into_iter().map(info).collect();
            Ok(acp::ListSessionsResponse::new(page).next_cursor(next))
        })
    }

    /// `session/close`: answered once the session is closed, so that it can be opened again or deleted.
    pub(super) fn close_session(&mut self, responder: Responder, params: &Params) {
        let closed = read::<acp::CloseSessionRequest>(params).and_then(|request| {
            let id = &request.session_id.0;
            self.requests.forget(id);
            self.conversations.remove(id).ok_or_else(|| unknown(id))
        });
        let conversation = match closed {
            Ok(conversation) => conversation,
            Err(error) => return responder.refuse(&error),
        };
        conversation.session.returned();
        self.closing.spawn(async move {
            conversation.close().await;
            responder.ok(&acp::CloseSessionResponse::new());
        });
    }

    pub(super) fn delete_session(&mut self, responder: Responder, params: &Params) {
        let id = match read::<acp::DeleteSessionRequest>(params) {
            Ok(request) => request.session_id.0,
            Err(error) => return responder.refuse(&error),
        };
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
                Err(problem) => responder.refuse(&refused(&problem)),
            }
        });
    }

    /// Where sessions are saved, if they are.
    pub(super) fn sessions(&self) -> Option<Sessions> {
        let state = self.load_settings(&[]).state_dir?;
        Some(Sessions::new(&state))
    }
}

fn refused(problem: &StoreError) -> ResponseError {
    error(ErrorCode::RequestFailed, problem.to_string())
}

fn info(listed: Listed) -> acp::SessionInfo {
    let Listed {
        id,
        mut folders,
        title,
        updated,
    } = listed;
    let more = folders.split_off(folders.len().min(1));
    acp::SessionInfo::new(id, folders.pop().unwrap_or_default())
        .additional_directories(more)
        .title(title)
        .updated_at(humantime::format_rfc3339_seconds(updated).to_string())
}
