//! `_tandem/complete`: completes mentions while the person types.

use super::Server;
use super::dispatch::read;
use crate::protocol::ext;
use crate::rpc::{Params, Responder};
use crate::session::{Completion, Mentionable};

impl Server {
    pub(super) fn complete(&mut self, responder: Responder, params: &Params) {
        let asked = read::<ext::Complete>(params).and_then(|request| {
            let completer = self.conversation(&request.session_id)?.session.completer();
            Ok((completer, request.query))
        });
        let (completer, query) = match asked {
            Ok(asked) => asked,
            Err(error) => return responder.respond(Err(error)),
        };
        let focus = self.focus.clone();
        self.tasks.spawn(async move {
            let offered = completer.complete(&query, focus.as_ref()).await;
            responder.ok(&ext::Completions {
                items: offered.into_iter().map(wire).collect(),
            });
        });
    }
}

fn wire(offered: Completion) -> ext::Completion {
    let Completion {
        insert,
        label,
        kind,
        detail,
    } = offered;
    let kind = match kind {
        Mentionable::File => ext::CompletionKind::File,
        Mentionable::Folder => ext::CompletionKind::Folder,
        Mentionable::Symbol => ext::CompletionKind::Symbol,
        Mentionable::Diagnostics => ext::CompletionKind::Diagnostics,
        Mentionable::Selection => ext::CompletionKind::Selection,
        Mentionable::Resource => ext::CompletionKind::Resource,
    };
    ext::Completion {
        insert,
        label,
        kind,
        detail,
    }
}
