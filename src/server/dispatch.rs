//! The table of contents of the server: one line per method.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Ended, Phase, Server, Transport};
use crate::rpc::{ErrorCode, Notification, Params, Request, RequestId, Responder, ResponseError};
use crate::session::{SessionBusy, Start};

/// A handler's answer: a result, or an error that says what to do.
pub(super) type Answer<T> = Result<T, ResponseError>;
/// An answer that takes a while. Mistakes in the request are reported at once.
pub(super) type Later<T> = Answer<BoxFuture<'static, Answer<T>>>;

pub(super) fn later<T>(answer: impl Future<Output = Answer<T>> + Send + 'static) -> Later<T> {
    Ok(answer.boxed())
}

/// A request, and the obligation to answer it.
struct Call<'a> {
    server: &'a mut Server,
    responder: Responder,
    params: Params,
}

impl Call<'_> {
    /// Answers with what a handler returns.
    fn now<P: DeserializeOwned, R: Serialize>(
        self,
        handler: impl FnOnce(&mut Server, P) -> Answer<R>,
    ) {
        let answer = read(&self.params).and_then(|params| handler(self.server, params));
        self.responder.answer(answer);
    }

    /// Answers with the result of a handler's future, which runs in parallel to everything else.
    fn later<P: DeserializeOwned, R: Serialize + 'static>(
        self,
        handler: impl FnOnce(&mut Server, P) -> Later<R>,
    ) {
        let Self {
            server,
            responder,
            params,
        } = self;
        match read(&params).and_then(|params| handler(server, params)) {
            Ok(answer) => {
                server
                    .tasks
                    .spawn(async move { responder.answer(answer.await) });
            }
            Err(error) => responder.refuse(&error),
        }
    }

    /// The same, unless `$/cancelRequest` comes first.
    fn until_cancelled<P: DeserializeOwned, R: Serialize + Send + 'static>(
        self,
        handler: impl FnOnce(&mut Server, P, RequestId) -> Later<R>,
    ) {
        let id = self.responder.id().clone();
        let cancel = self.server.cancellable(&id);
        self.later(|server, params| {
            let over = cancel.clone().drop_guard();
            let answer = handler(server, params, id)?;
            later(async move {
                let _over = over;
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => {
                        Err(error(ErrorCode::RequestCanceled, "the request was cancelled"))
                    }
                    answer = answer => answer,
                }
            })
        });
    }

    /// Leaves the answer to a handler.
    fn pass<P: DeserializeOwned>(self, handler: impl FnOnce(&mut Server, P, Responder)) {
        match read(&self.params) {
            Ok(params) => handler(self.server, params, self.responder),
            Err(error) => self.responder.refuse(&error),
        }
    }
}

impl Server {
    /// Answers a request, at once or when its turn has ended.
    pub fn request(&mut self, request: Request, responder: Responder) {
        let Request { method, params, .. } = request;
        if let Err(error) = self.may_call(&method) {
            return responder.refuse(&error);
        }
        let transport = self.transport;
        let call = Call {
            server: self,
            responder,
            params,
        };
        match method.as_str() {
            "initialize" => match transport {
                Transport::Lsp => call.now(Self::initialize_lsp),
                Transport::Acp => call.now(Self::initialize_acp),
            },
            "shutdown" => call.now(Self::shutdown),
            "authenticate" => call.later(Self::authenticate),
            "logout" => call.later(Self::log_out),
            "session/new" => call.pass(Self::new_session),
            "session/prompt" => call.pass(Self::prompt),
            "session/set_mode" => call.later(Self::set_mode),
            "session/set_config_option" => call.later(Self::set_config_option),
            "session/load" => call.pass(Self::open_session(Start::Replay)),
            "session/resume" => call.pass(Self::open_session(Start::Resume)),
            "session/fork" => call.pass(Self::open_session(Start::Fork)),
            "session/list" => call.later(Self::list_sessions),
            "session/delete" => call.pass(Self::delete_session),
            "session/close" => call.pass(Self::close_session),
            "_tandem/session/steer" => call.pass(Self::steer),
            "_tandem/turn/withdraw" => call.later(Self::withdraw),
            "_tandem/complete" => call.later(Self::complete),
            "_tandem/review" => call.later(Self::review),
            "_tandem/origins" => call.later(Self::origins),
            "_tandem/jobs" => call.later(Self::jobs),
            "_tandem/jobs/output" => call.later(Self::job_output),
            "_tandem/jobs/stop" => call.later(Self::stop_job),
            "_tandem/jobs/open" => call.later(Self::open_port),
            "_tandem/jobs/background" => call.later(Self::run_in_background),
            "_tandem/providers" => call.later(Self::providers),
            "_tandem/models" => call.later(Self::models),
            "_tandem/check" => call.later(Self::check),
            "_tandem/inline" => call.until_cancelled(Self::inline),
            "_tandem/inline/keep" => call.later(Self::keep_inline),
            "textDocument/codeAction" => call.later(Self::code_actions),
            "textDocument/codeLens" => call.later(Self::code_lenses),
            "textDocument/completion" => call.later(Self::chat_completion),
            "textDocument/definition" => call.later(Self::chat_definition),
            "textDocument/documentLink" => call.later(Self::chat_links),
            "textDocument/documentSymbol" => call.now(Self::chat_symbols),
            "textDocument/foldingRange" => call.now(Self::chat_folds),
            "textDocument/inlineCompletion" => call.until_cancelled(Self::inline_completion),
            "textDocument/hover" => call.later(Self::hover),
            "workspace/executeCommand" => {
                let peer = call.server.peer.clone();
                call.now(Self::execute);
                // Eglot 1.9 and lsp-mode 8.0 wait for the response and lose an edit that follows it immediately.
                peer.pause();
            }
            _ => call.responder.error(
                ErrorCode::MethodNotFound,
                format!("unknown method `{method}`"),
            ),
        }
    }

    /// Handles a notification. Unknown ones are ignored.
    pub fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        if self.phase != Phase::Serving && method != "exit" {
            tracing::debug!(method, "notification before initialize or after shutdown");
            return;
        }
        let taken = match method.as_str() {
            "exit" => self.take(&params, Self::exit),
            "initialized" => self.take(&params, |server, _: IgnoredAny| {
                server.check_workspace();
                server.find_earlier(None);
            }),
            "session/cancel" => self.take(&params, Self::cancel),
            "$/cancelRequest" | "$/cancel_request" => self.take(&params, Self::cancel_request),
            "textDocument/didOpen" => self.take(&params, Self::did_open),
            "textDocument/didChange" => self.take(&params, Self::did_change),
            "textDocument/didSave" => self.take(&params, Self::did_save),
            "textDocument/didClose" => self.take(&params, Self::did_close),
            "workspace/didChangeConfiguration" => {
                self.take(&params, Self::did_change_configuration)
            }
            "workspace/didRenameFiles" => self.take(&params, Self::did_rename_files),
            "workspace/didChangeWorkspaceFolders" => self.take(&params, Self::did_change_folders),
            "window/workDoneProgress/cancel" => self.take(&params, Self::progress_cancelled),
            "mcp/message" => self.take(&params, |server, message| server.relay.notify(&message)),
            "_tandem/saved" => self.take(&params, Self::saved_documents),
            "_tandem/didFocus" => self.take(&params, Self::did_focus),
            "_tandem/didStartTyping" => self.take(&params, Self::did_start_typing),
            _ => return tracing::debug!(method, "unknown notification"),
        };
        if let Err(problem) = taken {
            tracing::warn!(method, "invalid notification: {}", problem.message);
        }
    }

    fn take<P: DeserializeOwned>(
        &mut self,
        params: &Params,
        handler: impl FnOnce(&mut Self, P),
    ) -> Answer<()> {
        handler(self, read(params)?);
        Ok(())
    }

    fn may_call(&self, method: &str) -> Answer<()> {
        match self.phase {
            Phase::Fresh if method != "initialize" => Err(error(
                ErrorCode::ServerNotInitialized,
                "send `initialize` first",
            )),
            Phase::Serving if method == "initialize" => Err(error(
                ErrorCode::InvalidRequest,
                "`initialize` was already called",
            )),
            Phase::ShutDown => Err(error(
                ErrorCode::InvalidRequest,
                "the server was shut down; only `exit` can follow",
            )),
            _ => Ok(()),
        }
    }

    /// The sessions go on until `exit`, or the end of input: what is queued in them comes back, as after a crash.
    fn shutdown(&mut self, _: IgnoredAny) -> Answer<()> {
        self.phase = Phase::ShutDown;
        Ok(())
    }

    fn exit(&mut self, _: IgnoredAny) {
        let well = self.phase == Phase::ShutDown;
        self.ended = Some(if well { Ended::Well } else { Ended::Abruptly });
    }
}

/// An error answer without data.
pub(super) fn error(code: ErrorCode, message: impl Into<String>) -> ResponseError {
    ResponseError {
        code: code as i32,
        message: message.into(),
        data: None,
    }
}

/// The error for params that mean nothing here.
pub(super) fn invalid(message: impl Into<String>) -> ResponseError {
    error(ErrorCode::InvalidParams, message)
}

impl From<SessionBusy> for ResponseError {
    fn from(busy: SessionBusy) -> Self {
        error(ErrorCode::RequestFailed, busy.to_string())
    }
}

/// Deserializes params; the error names what does not match.
fn read<P: DeserializeOwned>(params: &Params) -> Answer<P> {
    params
        .read()
        .map_err(|problem| invalid(format!("params: {problem}")))
}
