//! Changes by others to files a session has read: a person typing, a formatter, another program.
//!
//! Each new text is reported once, and nothing depends on it: whoever changes a file reads its text again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::disk::blocking;
use super::{FileError, Workspace, WorkspacePath};

/// The precision of file systems' modification times.
const ROUGHLY: Duration = Duration::from_secs(2);

/// A file whose text differs from what the session read.
#[derive(Debug, Clone)]
pub struct News {
    /// The file.
    pub path: WorkspacePath,
    /// Whether it no longer exists.
    pub gone: bool,
}

impl Workspace {
    /// The files that others changed since the session read them. Each change is reported once.
    pub async fn news(&self) -> Vec<News> {
        let read = self.0.seen.readings();
        if read.is_empty() {
            return Vec::new();
        }
        let files = self.clone();
        let touched = move |(path, at): (PathBuf, SystemTime)| {
            let path = files.resolve_path(&path).ok()?;
            (files.document(&path).is_some() || may_have_changed(&path, at)).then_some(path)
        };
        let touched: Vec<_> =
            blocking(move || read.into_iter().filter_map(touched).collect()).await;
        let mut news = Vec::new();
        for path in touched {
            let text = match self.document(&path) {
                Some(document) => Some(Arc::clone(&document.text)),
                None => match self.peek(&path).await {
                    Ok(file) => Some(file.text),
                    Err(FileError::NotFound(_)) => None,
                    Err(_) => continue,
                },
            };
            if self.0.seen.is_news(&path, text.as_deref()) {
                news.push(News {
                    path,
                    gone: text.is_none(),
                });
            }
        }
        news
    }
}

fn may_have_changed(path: &WorkspacePath, since: SystemTime) -> bool {
    path.written()
        .and_then(|written| written.checked_add(ROUGHLY))
        .is_none_or(|written| written >= since)
}
