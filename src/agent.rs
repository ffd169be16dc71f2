//! The loop: model → tools → model, until the model stops, the person cancels or a guard ends it.
//!
//! Nothing here knows a wire, an editor or a file format: events go out through one bounded channel.

pub mod event;
