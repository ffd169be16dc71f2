//! What people save and tools write while a command runs: none of it is the command's.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use crate::domain::{AnyPath, lock};

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
    /// The same for the process that resumes the session if this one is killed.
    log: Option<File>,
}

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
        for (real, text) in &noted.texts {
            append(&mut log, real, text.as_ref())?;
        }
        noted.log = Some(log);
        Ok(())
    }
}

/// The texts in such a log, whose end may be missing.
pub fn logged(log: &str) -> Texts {
    let line = |line: &str| serde_json::from_str::<(AnyPath, Option<String>)>(line).ok();
    let lines = log.lines().filter_map(line);
    lines
        .map(|(AnyPath(real), text)| (real, text.map(Arc::from)))
        .collect()
}

fn append(log: &mut File, real: &Path, text: Option<&Arc<str>>) -> io::Result<()> {
    let line = (AnyPath(real.to_owned()), text.map(|text| &**text));
    log.write_all(format!("{}\n", serde_json::to_string(&line)?).as_bytes())
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
                texts.insert(real.to_owned(), text.cloned());
                if let Some(log) = log {
                    let _matters_only_after_a_kill = append(log, real, text);
                }
            }
            true
        });
    }
}
