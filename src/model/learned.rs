//! What a server revealed in this session: the API it wants, the fields it refuses, the window it really has.
//!
//! Shared by the clones of a [`super::Provider`], so that nothing is discovered twice in one session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::{Api, ModelInfo, body};
use crate::domain::lock;

/// What a server refused, as a journal keeps it: a resumed session does not ask for it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taught {
    /// The API it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The fields it refuses, as paths from the top level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<Lessons>);

#[derive(Debug, Default, Clone)]
pub(super) struct Lessons {
    /// What it refused, in this process and earlier ones.
    pub taught: Taught,
    /// The endpoint's information about its model, if it was asked.
    pub info: Option<ModelInfo>,
    /// The window that a silently truncated request gave away.
    pub cut: Option<u64>,
    /// Whether the person was warned about a small window.
    warned: bool,
    /// How many messages of a conversation go back without their thoughts, which the server refused.
    forgotten: HashMap<Arc<str>, usize>,
}

impl Learned {
    /// Records the API the server wants; `false` if it has already changed.
    pub fn switch(&self, api: Api) -> bool {
        let mut lessons = self.lock();
        let first = lessons.taught.api.is_none();
        lessons.taught.api.get_or_insert(api);
        first
    }

    /// Records that the server refuses the field at `path`; `false` if that was known.
    pub fn refuse(&self, path: &str) -> bool {
        let mut lessons = self.lock();
        let new = !lessons.taught.refused.iter().any(|known| known == path);
        if new {
            lessons.taught.refused.push(path.to_owned());
        }
        new
    }

    /// Omits the thoughts in all messages of this body from now on; `false` if that is the case already.
    pub fn forget(&self, conversation: &Arc<str>, body: &[u8]) -> bool {
        let messages = body::length(body);
        let forgotten = &mut self.lock().forgotten;
        let before = forgotten.insert(Arc::clone(conversation), messages);
        before.is_none_or(|before| before < messages)
    }

    /// How many messages of a conversation go back without their thoughts. Where fewer are left, they were rewritten, and
    /// what is added to them keeps its thoughts.
    pub fn forgotten(&self, conversation: &str, body: &[u8]) -> Option<usize> {
        let forgotten = &mut self.lock().forgotten;
        let first = forgotten.get_mut(conversation)?;
        *first = body::length(body).min(*first);
        Some(*first)
    }

    /// What the endpoint reports about its model, if it was asked.
    pub fn info(&self) -> Option<ModelInfo> {
        self.lock().info.clone()
    }

    /// Whether a warning about the window is the first.
    pub fn warn(&self) -> bool {
        !std::mem::replace(&mut self.lock().warned, true)
    }

    /// Takes over what was learned about the same model before.
    pub fn take_over(&self, before: &Self) {
        let lessons = before.lock().clone();
        *self.lock() = lessons;
    }

    /// All of it; not held across an await.
    pub fn lock(&self) -> MutexGuard<'_, Lessons> {
        lock(&self.0)
    }
}
