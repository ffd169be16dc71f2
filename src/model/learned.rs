//! What a server revealed in this session: the dialect it wants, the fields it refuses, the window it really has.
//!
//! Shared by the clones of a [`super::Provider`], so that nothing is discovered twice in one session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Api, ModelInfo};

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<Lessons>);

#[derive(Debug, Default, Clone)]
struct Lessons {
    api: Option<Api>,
    refused: Vec<String>,
    /// The endpoint's information about its model.
    info: Option<ModelInfo>,
    /// The window inferred from a silently truncated request.
    cut: Option<u64>,
    /// Whether the person was warned about a small window.
    warned: bool,
}

impl Learned {
    /// The dialect the server asked for.
    pub(super) fn api(&self) -> Option<Api> {
        self.lock().api
    }

    /// Records the dialect the server wants; `false` if it has already changed.
    pub(super) fn switch(&self, api: Api) -> bool {
        let mut lessons = self.lock();
        let first = lessons.api.is_none();
        lessons.api.get_or_insert(api);
        first
    }

    /// The fields the server refuses, as paths from the top level.
    pub(super) fn refused(&self) -> Vec<String> {
        self.lock().refused.clone()
    }

    /// Records that the server refuses the field at `path`; `false` if that was known.
    pub(super) fn refuse(&self, path: &str) -> bool {
        let mut lessons = self.lock();
        let new = !lessons.refused.iter().any(|known| known == path);
        if new {
            lessons.refused.push(path.to_owned());
        }
        new
    }

    /// What the endpoint says of its model, as far as it was asked.
    pub(super) fn info(&self) -> Option<ModelInfo> {
        self.lock().info.clone()
    }

    /// The endpoint said this of its model.
    pub(super) fn set_info(&self, info: ModelInfo) {
        self.lock().info = Some(info);
    }

    /// The window that a silent cut gave away.
    pub(super) fn cut(&self) -> Option<u64> {
        self.lock().cut
    }

    /// The server read only this many tokens of a request.
    pub(super) fn cut_at(&self, tokens: u64) {
        self.lock().cut = Some(tokens);
    }

    /// Whether a warning about the window is the first.
    pub(super) fn warn(&self) -> bool {
        !std::mem::replace(&mut self.lock().warned, true)
    }

    /// Takes over what was learned about the same model before.
    pub(super) fn take_over(&self, before: &Self) {
        let lessons = before.lock().clone();
        *self.lock() = lessons;
    }

    fn lock(&self) -> MutexGuard<'_, Lessons> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
