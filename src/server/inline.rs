//! `_tandem/inline`: a range rewritten by one request to the model, outside of any conversation.
//! `_tandem/inline/keep`: what the person kept of it becomes part of one.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::dispatch::{Answer, Later, invalid, later};
use super::review::done;
use super::wire::failure;
use crate::protocol::ext;
use crate::rpc::{Peer, RequestId};
use crate::session::{EditInPlace, Rewrite};
use crate::workspace::native::file_of;

/// The shortest time between two updates: each contains all of the text so far.
const PACE: Duration = Duration::from_millis(50);

/// A running inline request, which `$/cancelRequest` can stop.
pub(super) struct Inline {
    id: RequestId,
    cancel: CancellationToken,
}

impl Server {
    pub fn inline(&mut self, params: ext::InlineParams, id: RequestId) -> Later<ext::InlineResult> {
        let rewrite = self.rewrite(params)?;
        let folders: Vec<_> = self.client.folders().collect();
        let settings = self.load_settings(&folders);
        let mut updates = Updates {
            peer: self.peer.clone(),
            id,
            reported: None,
        };
        later(async move {
            let answer = rewrite.ask(&settings, |text| updates.tell(text)).await;
            let text = answer.map_err(|why| failure(&why))?;
            Ok(ext::InlineResult { text })
        })
    }

    /// `_tandem/inline/keep`.
    pub fn keep_inline(&mut self, params: ext::KeepInline) -> Later<ext::KeptInline> {
        let ext::KeepInline {
            session_id,
            text_document,
            instruction,
            before,
            after,
        } = params;
        let uri = &text_document.uri.0;
        let path = file_of(uri).ok_or_else(|| invalid(format!("{uri} is not a file")))?;
        let edit = EditInPlace {
            path,
            instruction,
            before: before.into(),
            after: after.into(),
        };
        let turn = self.conversation(&session_id)?.session.edited(edit)?;
        later(async move {
            let turn = done(turn).await?;
            Ok(ext::KeptInline { turn })
        })
    }

    /// What `$/cancelRequest` cancels for this request; its task cancels it when it ends.
    pub fn cancellable(&mut self, id: &RequestId) -> CancellationToken {
        let cancel = self.end.child_token();
        self.inlines.retain(|inline| !inline.cancel.is_cancelled());
        self.inlines.push(Inline {
            id: id.clone(),
            cancel: cancel.clone(),
        });
        cancel
    }

    /// Stops the inline request with this id, if there is one.
    pub fn cancel_inline(&mut self, id: &RequestId) {
        if let Some(index) = self.inlines.iter().position(|inline| inline.id == *id) {
            self.inlines.swap_remove(index).cancel.cancel();
        }
    }

    fn rewrite(&self, params: ext::InlineParams) -> Answer<Rewrite> {
        let ext::InlineParams {
            text_document,
            range: at,
            instruction,
            previous,
        } = params;
        let uri = &text_document.uri.0;
        let document = self
            .documents
            .get(uri)
            .ok_or_else(|| invalid(format!("{uri} is not open")))?;
        if instruction.trim().is_empty() {
            return Err(invalid("`instruction` is empty: describe the change"));
        }
        let text = document.text.clone();
        let span = document.lines.span(&text, at, self.documents.encoding());
        let name =
            file_of(uri).and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Ok(Rewrite {
            name: name.unwrap_or_else(|| uri.clone()),
            text,
            range: span,
            instruction,
            previous,
        })
    }
}

/// What a client was sent of a replacement.
struct Updates {
    peer: Peer,
    id: RequestId,
    reported: Option<Instant>,
}

impl Updates {
    fn tell(&mut self, text: &str) {
        // Each update is longer than the one before: a client that does not read gets fewer.
        let is_early = |reported: Instant| reported.elapsed() < PACE;
        if self.reported.is_some_and(is_early) || !self.peer.accepts_updates() {
            return;
        }
        self.reported = Some(Instant::now());
        let update = ext::InlineUpdate {
            id: self.id.clone(),
            text: text.to_owned(),
        };
        self.peer.notify("_tandem/inline/update", &update);
    }
}
