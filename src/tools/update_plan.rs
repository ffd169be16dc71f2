//! `update_plan`: the model's list of steps, shown to the person.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    PlanEntry, PlanStatus, Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool,
};

pub(super) struct UpdatePlan;

/// The plan.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    entries: Vec<PlanEntry>,
}

impl TypedTool for UpdatePlan {
    type Arguments = Arguments;
    const NAME: &'static str = "update_plan";
    const DESCRIPTION: &'static str = "Show the user your plan for work of several steps. Send the whole list each \
        time; keep exactly one step in progress while you work.";
    const KIND: ToolKind = ToolKind::Think;
    const EXAMPLE: &'static str =
        r#"{"entries": [{"content": "Find the cause", "status": "in_progress"}]}"#;

    /// Without descriptions, since the names of a step's fields say enough. A priority is accepted; the default is
    /// medium.
    fn offered(&self, mut schema: Value) -> Value {
        let step = schema.pointer_mut("/properties/entries/items/properties");
        if let Some(Value::Object(fields)) = step {
            fields.shift_remove("priority");
            for field in fields.values_mut().filter_map(Value::as_object_mut) {
                field.shift_remove("description");
            }
        }
        schema
    }

    async fn preview(_context: &ToolContext, _arguments: Arguments) -> Result<Preview, ToolError> {
        Ok(Preview::titled("Update the plan"))
    }

    fn plan(arguments: Arguments) -> Option<Vec<PlanEntry>> {
        Some(arguments.entries)
    }

    async fn run(_context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let entries = arguments.entries;
        if let Some(index) = entries
            .iter()
            .position(|entry| entry.content.trim().is_empty())
        {
            return Err(ToolError(format!(
                "`entries[{index}].content` is empty; say what is to be done"
            )));
        }
        let done = entries
            .iter()
            .filter(|entry| entry.status == PlanStatus::Completed)
            .count();
        let content = format!("Plan updated: {done} of {} steps done.", entries.len());
        Ok(ToolOutput {
            content,
            plan: Some(entries),
            ..ToolOutput::default()
        })
    }
}
