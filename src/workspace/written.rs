//! What people save and tools write while a command runs: none of it is the command's.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use crate::domain::lock;

/// How many files are recorded; neither a person nor a tool writes more while a command runs.
const FILES: usize = 10_000;

/// The texts that files were given last; `None`: removed.
pub type Texts = HashMap<PathBuf, Option<Arc<str>>>;

/// Notes what is written as long as it lives.
#[derive(Debug, Default)]
pub struct Written(Arc<Mutex<Texts>>);

impl Written {
    /// What was written since the last call.
    pub fn take(&self) -> Texts {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// Those who want to know what is written.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<Weak<Mutex<Texts>>>>);

impl Listeners {
    pub fn listen(&self) -> Written {
        let written = Written::default();
        lock(&self.0).push(Arc::downgrade(&written.0));
        written
    }

    /// The file at `real` now has this text; `None`: it was removed.
    pub fn note(&self, real: &Path, text: Option<&Arc<str>>) {
        lock(&self.0).retain(|listener| {
            let Some(texts) = listener.upgrade() else {
                return false;
            };
            let mut texts = lock(&texts);
            if texts.len() < FILES || texts.contains_key(real) {
                texts.insert(real.to_owned(), text.cloned());
            }
            true
        });
    }
}
