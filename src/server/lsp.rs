//! Everything specific to language clients: edits by `workspace/applyEdit`, and what an editor without a plugin (Helix)
//! can do with standard LSP alone: the chat file, selection actions, commands, and permission requests as code actions.

mod actions;
mod chat;
mod chat_file;
mod chats;
mod complete;
mod front;
mod hints;
mod hover;
mod hunks;
pub(super) mod language;
mod outline;
mod places;
mod progress;

pub(super) use actions::{ACTION_KINDS, COMMANDS};
pub(super) use chats::Chats;
pub(super) use complete::TRIGGERS;
