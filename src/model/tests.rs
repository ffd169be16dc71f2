//! What one API alone cannot show: recorded streams, requests and faults in all three APIs.

mod corpus;
mod encoding;
mod faults;
mod names;
mod servers;

/// Whether a call may run: it names a tool, and its arguments are complete.
fn runnable(call: &super::ToolCall) -> bool {
    !call.name.is_empty() && matches!(call.arguments, super::Arguments::Object(_))
}
