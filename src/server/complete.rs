//! `_tandem/complete`: completes mentions while the person types.

use super::Server;
use super::dispatch::Answer;
use crate::protocol::ext;
use crate::session::{Completion, Mentionable};

impl Server {
    pub(super) fn complete(
        &mut self,
        ext::Complete { session_id, query }: ext::Complete,
    ) -> Answer<impl Future<Output = Answer<ext::Completions>> + use<>> {
        let completer = self.conversation(&session_id)?.session.completer();
        let focus = self.focus.clone();
        Ok(async move {
            let offered = completer.complete(&query, focus.as_ref()).await;
            let items = offered.into_iter().map(wire).collect();
            Ok(ext::Completions { items })
        })
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
