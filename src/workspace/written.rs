//! What people save and tools write while a command runs: none of it is the command's.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use super::state::address;
use crate::domain::lock;

/// How many files are recorded; neither a person nor a tool writes more while a command runs.
const FILES: usize = 10_000;

/// The texts that files were given last; `None`: removed.
pub type Texts = HashMap<PathBuf, Option<Arc<str>>>;

/// Notes what is written as long as it lives.
#[derive(Debug, Default)]
pub struct Written(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    texts: Texts,
    /// Names these files for the process that resumes the session if this one is killed.
    log: Option<File>,
}

/// The files that a process noted before it was killed, by the hashes of their paths.
#[derive(Debug, Default)]
pub struct Logged(HashSet<String>);

impl Written {
    /// What was written since the last call.
    pub fn take(&self) -> Texts {
        std::mem::take(&mut lock(&self.0).texts)
    }

    /// Starts a new log at `path` of the files that are written, beginning with those since the last [`Self::take`].
    ///
    /// # Errors
    /// It cannot be written.
    pub fn log(&self, path: &Path) -> io::Result<()> {
        let mut noted = lock(&self.0);
        let mut log = File::create(path)?;
        for file in noted.texts.keys() {
            writeln!(log, "{}", hash(file))?;
        }
        noted.log = Some(log);
        Ok(())
    }
}

impl Logged {
    /// What is in such a log.
    pub fn of(log: &str) -> Self {
        Self(log.lines().map(str::to_owned).collect())
    }

    /// Whether the file at `real` was written.
    pub fn has(&self, real: &Path) -> bool {
        self.0.contains(&hash(real))
    }
}

/// One line for any path.
fn hash(path: &Path) -> String {
    address(path.as_os_str().as_encoded_bytes())
}

/// Those who want to know what is written.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<Weak<Mutex<Noted>>>>);

impl Listeners {
    pub fn listen(&self) -> Written {
        let written = Written::default();
        lock(&self.0).push(Arc::downgrade(&written.0));
        written
    }

    /// The file at `real` now has this text; `None`: it was removed.
    pub fn note(&self, real: &Path, text: Option<&Arc<str>>) {
        lock(&self.0).retain(|listener| {
            let Some(noted) = listener.upgrade() else {
                return false;
            };
            let Noted { texts, log } = &mut *lock(&noted);
            if texts.len() < FILES || texts.contains_key(real) {
                let is_new = texts.insert(real.to_owned(), text.cloned()).is_none();
                if let Some(log) = log.as_mut().filter(|_| is_new) {
                    let _matters_only_after_a_kill = writeln!(log, "{}", hash(real));
                }
            }
            true
        });
    }
}
