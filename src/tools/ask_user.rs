//! `ask_user`: a question to the person in the middle of a turn, with answers to choose from.
//!
//! It is shown like a permission request, and the turn waits for the answer. If nobody is there, the model is told so
//! and continues.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};

/// Nobody chooses among more answers than this.
const MAX_OPTIONS: usize = 8;

pub(super) struct AskUser;

/// What to ask.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    question: String,
    /// Answers to choose from.
    #[serde(default)]
    options: Vec<String>,
}

impl TypedTool for AskUser {
    type Arguments = Arguments;
    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str = "Ask the user for a fact or decision you can't find in the project when a wrong \
        guess would be costly. Returns the answer.";
    const KIND: ToolKind = ToolKind::Think;
    const EXAMPLE: &'static str =
        r#"{"question": "Which database?", "options": ["SQLite", "PostgreSQL"]}"#;

    async fn preview(_context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let Arguments {
            question,
            mut options,
        } = arguments;
        if question.trim().is_empty() {
            return Err(ToolError(format!(
                "`question` is empty\nExample: {}",
                Self::EXAMPLE
            )));
        }
        options.retain(|option| !option.trim().is_empty());
        if options.len() > MAX_OPTIONS {
            return Err(ToolError(format!(
                "{} options are too many; the maximum is {MAX_OPTIONS}",
                options.len()
            )));
        }
        Ok(Preview {
            title: question,
            answers: Some(options),
            ..Preview::default()
        })
    }

    async fn run(context: &ToolContext, _arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let content = match &context.answer {
            Some(answer) => format!("The user answers: {answer}\n"),
            None => "Nobody answered. Do not ask again: continue with what is most likely, and state your assumption at the end.\n"
                .to_owned(),
        };
        Ok(content.into())
    }
}
