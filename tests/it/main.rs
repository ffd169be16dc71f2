//! The server as its clients see it: the real server over its real framing, against a scripted model over real HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, plays the person whose files these are, and writes its JSON in place"
)]

mod acp;
mod ask_user;
#[cfg(target_os = "linux")]
mod attacks;
mod cancel;
#[cfg(unix)]
mod cli;
#[cfg(unix)]
mod commands;
mod compaction;
#[cfg(unix)]
mod complete;
mod context;
mod diagnostics;
mod dialects;
#[cfg(unix)]
mod disorder;
mod docs;
mod driver;
mod editing;
mod editor_models;
mod endings;
#[cfg(unix)]
mod eval;
mod explore;
mod faults;
mod finish;
#[cfg(unix)]
mod git;
mod house;
mod inline;
mod inline_completion;
mod language;
mod lifecycle;
mod limits;
#[cfg(unix)]
mod links;
#[cfg(unix)]
mod login;
mod loopback;
#[cfg(unix)]
mod mcp;
mod network;
mod offered;
#[cfg(unix)]
mod origins;
mod owner;
#[cfg(unix)]
mod patches;
mod permission;
mod places;
mod plain;
mod plan;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod program;
mod prompt;
mod reading;
mod registry;
mod schema;
mod sessions;
mod setup;
mod skills;
mod slash;
#[cfg(target_os = "linux")]
mod slips;
mod streaming;
mod strict;
#[cfg(unix)]
mod survival;
mod turns;
mod typing;
mod undo;
mod variants;
mod windows;
mod wire_types;
