//! `_tandem/complete`: completes mentions while the person types.

use super::Server;
use super::dispatch::Answer;
use crate::protocol::ext;

impl Server {
    pub(super) fn complete(
        &mut self,
        ext::Complete { session_id, query }: ext::Complete,
    ) -> Answer<impl Future<Output = Answer<ext::Completions>> + use<>> {
        let completer = self.conversation(&session_id)?.session.completer();
        let focus = self.focus.clone();
        Ok(async move {
            let items = completer.complete(&query, focus.as_ref()).await;
            Ok(ext::Completions { items })
        })
    }
}
