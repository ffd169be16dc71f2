//! OpenAI responses.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::{message, preamble};

/// Marks the ids of calls that came as `custom_tool_call`: their results go back as `custom_tool_call_output`.
const CUSTOM: &str = "custom:";
