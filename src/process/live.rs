//! Output of a running call for its followers: merged while nobody takes it, and bounded. The newest counts.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::domain::lock;

/// How much may wait, in bytes.
const WAITING: usize = 4000;

/// The output of a running call. Cheap to clone; clones share state.
#[derive(Debug, Clone, Default)]
pub struct Live(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    line: String,
    is_new: bool,
}

impl Live {
    /// Appends output, whether anybody follows or not. The `line` after it may still change.
    pub fn say(&self, text: &str, line: String) {
        let mut waiting = lock(&self.0.waiting);
        if text.is_empty() && waiting.line == line {
            return;
        }
        let Waiting { text: before, .. } = &mut *waiting;
        if before.len() + text.len() > WAITING {
            let newest = text
                .split_at(text.ceil_char_boundary(text.len().saturating_sub(WAITING / 2)))
                .1;
            let room = WAITING / 2 - newest.len().min(WAITING / 2);
            let cut = before.ceil_char_boundary(before.len().saturating_sub(room));
            before.replace_range(..cut, "[…]\n");
            before.push_str(newest);
        } else {
            before.push_str(text);
        }
        (waiting.line, waiting.is_new) = (line, true);
        drop(waiting);
        self.0.news.notify_one();
    }

    /// Waits for output and takes all of it: the text, and the unfinished line after it.
    pub async fn next(&self) -> (String, String) {
        loop {
            if let Some(said) = self.take() {
                return said;
            }
            self.0.news.notified().await;
        }
    }

    fn take(&self) -> Option<(String, String)> {
        let mut waiting = lock(&self.0.waiting);
        let is_new = std::mem::take(&mut waiting.is_new);
        is_new.then(|| (std::mem::take(&mut waiting.text), waiting.line.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn live_output_is_bounded_and_its_end_is_shown() {
        let live = Live::default();
        for line in 0..10_000 {
            live.say(&format!("line {line}\n"), String::new());
        }
        let (said, _) = live.next().await;
        assert!(said.len() <= WAITING + 8, "{}", said.len());
        assert!(
            said.starts_with("[…]\n") && said.ends_with("line 9999\n"),
            "{said}"
        );
        live.say(&"é".repeat(1_000_000), "50%".to_owned());
        let (said, line) = live.next().await;
        assert!(said.len() <= WAITING + 8);
        assert_eq!(line, "50%");
    }
}
