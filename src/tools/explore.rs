//! `explore`: a question about the code for an explorer, a sub-agent that only reads. The model gets its answer, and
//! nothing of what it read.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Preview, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};

/// The longest question in a title, in characters: what it cost comes after it.
const TITLE: usize = 80;

pub(super) struct Explore;

/// What to find out.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    question: String,
    #[serde(default)]
    places: Vec<String>,
}

/// The question in one line.
fn shortened(question: &str) -> String {
    let words: Vec<_> = question.split_whitespace().collect();
    let words = words.join(" ");
    match words.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", words.split_at(end).0),
        None => words,
    }
}

impl TypedTool for Explore {
    type Arguments = Arguments;
    const NAME: &'static str = "explore";
    const DESCRIPTION: &'static str = "Have a read-only sub-agent answer a question about the code that takes many \
        reads. It sees only the question, you only the answer.";
    const KIND: ToolKind = ToolKind::Think;
    const EXAMPLE: &'static str =
        r#"{"question": "Where is a permission rule matched?", "places": ["src"]}"#;

    async fn preview(_context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        if arguments.question.trim().is_empty() {
            return Err(ToolError(format!(
                "`question` is empty\nExample: {}",
                Self::EXAMPLE
            )));
        }
        Ok(Preview::titled(format!(
            "Explore: {}",
            shortened(&arguments.question)
        )))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let Arguments {
            mut question,
            places,
        } = arguments;
        let Some(explorer) = &context.explorer else {
            return Err(ToolError(
                "there is no sub-agent here; read the files yourself".to_owned(),
            ));
        };
        let line = shortened(&question);
        if !places.is_empty() {
            question = format!("{question}\n\nStart from: {}", places.join(", "));
        }
        explorer.explore(context, line, question).await
    }
}
