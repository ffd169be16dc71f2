//! Calls in the arguments of a call to a pseudo-tool (`multi_tool_use.parallel`): each runs by itself.

use std::sync::Arc;

use crate::calls::text::{TextCall, inner};
use crate::model::{Arguments, ToolCall};
use crate::text::repair::Repair;
use crate::tools::{self, Tool};

/// The calls that a call consists of.
pub(super) fn calls(tools: &[Arc<dyn Tool>], call: &ToolCall) -> Option<Vec<TextCall>> {
    match &call.arguments {
        Arguments::Object(arguments) if tools::tool(tools, &call.name).is_none() => {
            inner(arguments)
        }
        _ => None,
    }
}

/// Replaces the call around them by such calls. Returns for each call how it was repaired.
pub(super) fn spread(
    tools: &[Arc<dyn Tool>],
    list: &mut Vec<ToolCall>,
    repairs: &[Repair],
) -> Vec<Repair> {
    let mut spread = Vec::new();
    for (call, repair) in std::mem::take(list).into_iter().zip(repairs) {
        match calls(tools, &call) {
            None => list.push(call),
            Some(inner) => list.extend((0..).zip(inner).map(|(number, inner)| {
                let id = match number {
                    0 => call.id.clone(),
                    number => format!("{}_{number}", call.id),
                };
                ToolCall {
                    id,
                    name: inner.name,
                    arguments: Arguments::Object(inner.arguments),
                }
            })),
        }
        spread.resize(list.len(), *repair);
    }
    spread
}
