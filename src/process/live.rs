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
    waiting: Mutex<String>,
    news: Notify,
}

impl Live {
    /// Appends output, whether anybody follows or not.
    pub fn say(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut waiting = lock(&self.0.waiting);
        if waiting.len() + text.len() > WAITING {
            let newest = text
                .split_at(text.ceil_char_boundary(text.len().saturating_sub(WAITING / 2)))
                .1;
            let room = WAITING / 2 - newest.len().min(WAITING / 2);
            let cut = waiting.ceil_char_boundary(waiting.len().saturating_sub(room));
            waiting.replace_range(..cut, "[…]\n");
            waiting.push_str(newest);
        } else {
            waiting.push_str(text);
        }
        drop(waiting);
        self.0.news.notify_one();
    }

    /// Waits for output and takes all of it.
    pub async fn next(&self) -> String {
        loop {
            let said = std::mem::take(&mut *lock(&self.0.waiting));
            if !said.is_empty() {
                return said;
            }
            self.0.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn live_output_is_bounded_and_its_end_is_shown() {
        let live = Live::default();
        for line in 0..10_000 {
            live.say(&format!("line {line}\n"));
        }
        let said = live.next().await;
        assert!(said.len() <= WAITING + 8, "{}", said.len());
        assert!(
            said.starts_with("[…]\n") && said.ends_with("line 9999\n"),
            "{said}"
        );
        live.say(&"é".repeat(1_000_000));
        assert!(live.next().await.len() <= WAITING + 8);
    }
}
