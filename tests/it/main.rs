//! The server as its clients see it: the real server over its real framing, against a scripted model over real HTTP.

mod cancel;
mod driver;
mod editing;
mod house;
mod lifecycle;
mod plain;
mod prompt;
