//! OpenAI chat completions, and everything that is compatible with them.

mod decode;
mod details;
mod encode;
mod slots;

pub(super) use decode::Decoder;
pub(super) use encode::{gap, message, preamble};
