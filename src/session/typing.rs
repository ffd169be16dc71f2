//! While the person types, a local server evaluates what the next request begins with. It costs nothing there, and the
//! first word comes sooner: a laptop needs seconds, or minutes, to read the instructions, the tools and the conversation.

use tokio::task::JoinSet;

use super::{Actor, Model};
use crate::model::{Message, Part};

impl Actor {
    /// The person began to type. Once for each prompt, which ends it.
    pub(super) async fn typing_began(&mut self) {
        if self.running.is_some() || !self.queue.is_empty() || !self.evaluating.is_empty() {
            return;
        }
        self.look_for_a_server().await;
        self.ask_for_the_window().await;
        if !self.provider().is_ok_and(|provider| provider.is_free()) {
            return;
        }
        self.look_around().await;
        let Ok(Model { provider, preamble }) = &self.model else {
            return;
        };
        // Some templates refuse a conversation in which the person says nothing.
        let words = Message::User {
            parts: vec![Part::Text {
                text: "…".to_owned(),
            }],
        };
        let mut messages: Vec<_> = self
            .history
            .iter()
            .map(|entry| entry.encoded().clone())
            .collect();
        messages.push(provider.encode(&words));
        let (provider, instructions) = (provider.clone(), preamble.instructions.clone());
        self.evaluating
            .spawn(async move { provider.evaluate(&instructions, messages).await });
    }

    /// A prompt begins: the server is free for it.
    pub(super) fn typing_ended(&mut self) {
        self.evaluating = JoinSet::new();
    }
}
