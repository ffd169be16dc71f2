//! The table of contents of the server: one line a method.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Ended, Phase, Server, Transport};
use crate::rpc::{ErrorCode, Notification, Params, Request, Responder, ResponseError};
use crate::session::Start;

/// A handler's answer: a result, or an error that says what to do.
pub(super) type Answer<T> = Result<T, ResponseError>;
/// An answer that takes a while: what is wrong with the request is said at once.
pub(super) type Later<T> = Answer<BoxFuture<'static, Answer<T>>>;

pub(super) fn later<T>(answer: impl Future<Output = Answer<T>> + Send + 'static) -> Later<T> {
    Ok(answer.boxed())
}

impl Server {
    /// Answers a request, at once or when its turn has ended.
    pub(super) fn request(&mut self, request: Request, responder: Responder) {
        let Request { method, params, .. } = request;
        if let Err(error) = self.may_call(&method) {
            return responder.refuse(&error);
        }
        match (method.as_str(), self.transport) {
            ("initialize", Transport::Lsp) => {
                reply(responder, &params, |params| Ok(self.initialize_lsp(params)));
            }
            ("initialize", Transport::Acp) => {
                reply(responder, &params, |params| self.initialize_acp(&params));
            }
            ("shutdown", Transport::Lsp) => self.shutdown(responder),
            ("authenticate", _) => self.reply_later(responder, &params, Self::authenticate),
            ("logout", _) => self.log_out(responder),
            ("session/new", _) => self.new_session(responder, &params),
            ("session/prompt", _) => self.prompt(responder, &params),
            ("session/set_mode", _) => self.reply_later(responder, &params, Self::set_mode),
            ("session/set_config_option", _) => {
                self.reply_later(responder, &params, Self::set_config_option);
            }
            ("session/load", _) => self.open_session(responder, &params, Start::Replay),
            ("session/resume", _) => self.open_session(responder, &params, Start::Resume),
            ("session/fork", _) => self.fork_session(responder, &params),
            ("session/list", _) => self.reply_later(responder, &params, Self::list_sessions),
            ("session/delete", _) => self.delete_session(responder, &params),
            ("session/close", _) => self.close_session(responder, &params),
            ("_tandem/session/steer", _) => self.steer(responder, &params),
            ("_tandem/turn/withdraw", _) => self.reply_later(responder, &params, Self::withdraw),
            ("_tandem/complete", _) => self.reply_later(responder, &params, Self::complete),
            ("_tandem/review", _) => self.reply_later(responder, &params, Self::review),
            ("_tandem/origins", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::origins);
            }
            ("_tandem/jobs", _) => self.reply_later(responder, &params, Self::jobs),
            ("_tandem/jobs/output", _) => self.reply_later(responder, &params, Self::job_output),
            ("_tandem/jobs/stop", _) => self.reply_later(responder, &params, Self::stop_job),
            ("_tandem/jobs/open", _) => self.reply_later(responder, &params, Self::open_port),
            ("_tandem/jobs/background", _) => {
                self.reply_later(responder, &params, Self::run_in_background);
            }
            ("_tandem/providers", _) => self.providers(responder),
            ("_tandem/models", _) => self.reply_later(responder, &params, Self::models),
            ("_tandem/check", _) => self.reply_later(responder, &params, Self::check),
            ("_tandem/inline", _) => self.inline(responder, &params),
            ("_tandem/inline/keep", _) => self.reply_later(responder, &params, Self::keep_inline),
            ("textDocument/codeAction", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::code_actions);
            }
            ("textDocument/codeLens", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::code_lenses);
            }
            ("textDocument/completion", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::chat_completion);
            }
            ("textDocument/definition", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::chat_definition);
            }
            ("textDocument/documentLink", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::chat_links);
            }
            ("textDocument/documentSymbol", Transport::Lsp) => {
                reply(responder, &params, |params| Ok(self.chat_symbols(&params)));
            }
            ("textDocument/foldingRange", Transport::Lsp) => {
                reply(responder, &params, |params| Ok(self.chat_folds(&params)));
            }
            ("textDocument/inlineCompletion", Transport::Lsp) => {
                self.inline_completion(responder, &params);
            }
            ("textDocument/hover", Transport::Lsp) => {
                self.reply_later(responder, &params, Self::hover);
            }
            ("workspace/executeCommand", Transport::Lsp) => {
                reply(responder, &params, |params| self.execute(params));
            }
            _ => responder.error(
                ErrorCode::MethodNotFound,
                format!("unknown method `{method}`"),
            ),
        }
    }

    /// Handles a notification. Unknown ones are ignored.
    pub(super) fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        if self.phase != Phase::Serving && method != "exit" {
            tracing::debug!(method, "notification before initialize or after shutdown");
            return;
        }
        match (method.as_str(), self.transport) {
            ("exit", Transport::Lsp) => self.exit(),
            ("initialized", Transport::Lsp) => self.announce(),
            ("session/cancel", _) => {
                on_notification(&method, &params, |params| self.cancel(&params));
            }
            ("$/cancelRequest" | "$/cancel_request", _) => {
                on_notification(&method, &params, |params| self.cancel_request(&params));
            }
            ("textDocument/didOpen", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.did_open(params));
            }
            ("textDocument/didChange", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.did_change(params));
            }
            ("textDocument/didSave", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.did_save(&params));
            }
            ("textDocument/didClose", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.did_close(&params));
            }
            ("workspace/didChangeConfiguration", Transport::Lsp) => {
                on_notification(&method, &params, |params| {
                    self.did_change_configuration(&params);
                });
            }
            ("workspace/didChangeWorkspaceFolders", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.did_change_folders(params));
            }
            ("window/workDoneProgress/cancel", Transport::Lsp) => {
                on_notification(&method, &params, |params| self.progress_cancelled(&params));
            }
            ("mcp/message", _) => {
                on_notification(&method, &params, |params| self.relay.notify(&params));
            }
            ("_tandem/didFocus", _) => {
                on_notification(&method, &params, |params| self.did_focus(&params));
            }
            ("_tandem/didStartTyping", _) => {
                on_notification(&method, &params, |params| self.did_start_typing(&params));
            }
            _ => tracing::debug!(method, "unknown notification"),
        }
    }

    /// Answers with what a handler's future comes to, beside everything else.
    fn reply_later<P: DeserializeOwned, R: Serialize + 'static>(
        &mut self,
        responder: Responder,
        params: &Params,
        handler: impl FnOnce(&mut Self, P) -> Later<R>,
    ) {
        match read(params).and_then(|params| handler(self, params)) {
            Ok(answer) => {
                self.tasks
                    .spawn(async move { responder.answer(answer.await) });
            }
            Err(error) => responder.refuse(&error),
        }
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

    fn shutdown(&mut self, responder: Responder) {
        self.phase = Phase::ShutDown;
        for conversation in self.conversations.values() {
            conversation.session.cancel();
        }
        responder.ok(&Value::Null);
    }

    fn exit(&mut self) {
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

/// Deserializes params; the error names what does not match.
pub(super) fn read<P: DeserializeOwned>(params: &Params) -> Answer<P> {
    params
        .read()
        .map_err(|problem| error(ErrorCode::InvalidParams, format!("params: {problem}")))
}

fn reply<P: DeserializeOwned, R: Serialize>(
    responder: Responder,
    params: &Params,
    handler: impl FnOnce(P) -> Answer<R>,
) {
    responder.answer(read(params).and_then(handler));
}

fn on_notification<P: DeserializeOwned>(method: &str, params: &Params, handler: impl FnOnce(P)) {
    match read(params) {
        Ok(params) => handler(params),
        Err(problem) => tracing::warn!(method, "invalid notification: {}", problem.message),
    }
}
