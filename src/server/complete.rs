//! `_tandem/complete`: completes mentions while the person types.

use super::Server;
use super::dispatch::{Later, later};
use crate::protocol::ext;

impl Server {
    pub fn complete(
        &mut self,
        ext::Complete { session_id, query }: ext::Complete,
    ) -> Later<ext::Completions> {
        let completer = self.conversation(&session_id)?.session.completer();
        let focus = self.focus.clone();
        later(async move {
            let items = completer.complete(&query, focus.as_ref()).await;
            Ok(ext::Completions { items })
        })
    }
}
