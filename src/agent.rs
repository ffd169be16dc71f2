//! The loop: model → tools → model, until the model stops, the person cancels or a guard ends it.
//!
//! Nothing here depends on a wire format, an editor or a file format. All output goes through one bounded channel of
//! [`Step`]s, in the order it happened: events for people, entries for the message history.
//!
//! Invariants: the last step of a turn is [`event::AgentEvent::Done`]; every call of an answer gets exactly one result,
//! even if the turn is cancelled or fails; a call whose arguments do not parse never runs; messages already sent to the
//! model are rewritten only by compaction.

mod advice;
mod answer;
mod ask;
mod compact;
mod entry;
pub mod event;
mod guidance;
mod live;
mod loops;
pub mod prompt;
mod repetition;
mod schedule;
mod steps;
pub mod text;
mod turn;

pub use ask::{APPLY, person, whether_to_apply};
pub use entry::Entry;
pub use guidance::{FILE as INSTRUCTIONS_FILE, Guidance, Rules};
pub use steps::{Step, Steps};
pub use turn::{Explorers, Goal, PlanFile, Spent, Steer, Turn, run_turn};

#[cfg(test)]
mod tests;
