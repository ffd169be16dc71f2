//! An answer of the editor's own models, as if it came over HTTP.
//!
//! Invariants: the editor reads no further than it is asked to; dropping an answer cancels it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::answer::Answer;
use crate::domain::EditorModels;

/// An answer that is being read.
struct Reading {
    editor: Arc<dyn EditorModels>,
    id: u64,
    body: Option<Value>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.editor.end(self.id);
    }
}

/// The answer to a request in the chat API.
pub(super) fn answer(editor: &Arc<dyn EditorModels>, body: &Bytes) -> Answer {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let reading = Reading {
        editor: Arc::clone(editor),
        id: COUNT.fetch_add(1, Ordering::Relaxed),
        body: serde_json::from_slice(body).ok(),
    };
    let events = stream::unfold(Some(reading), async |reading| {
        let mut reading = reading?;
        let next = reading.editor.next(reading.id, reading.body.take()).await;
        Some(match next {
            Ok(next) => match next.get("chunk") {
                Some(chunk) => (Ok(format!("data: {chunk}\n\n").into()), Some(reading)),
                None => (Ok("data: [DONE]\n\n".into()), None),
            },
            Err(failure) => (Err(failure), None),
        })
    });
    Answer {
        status: 200,
        key: None,
        retry_after: None,
        body: events.boxed(),
    }
}
