//! `code`: what the editor's language servers know, asked by a symbol's name or by a place.
//!
//! Operations that only look run like any search. Those that change files are carried out by [`edits`]: an edit like any
//! other, shown and decided on first.

mod edits;
mod fixes;
mod places;
mod question;

use std::sync::Arc;

use serde_json::Value;

use self::edits::CodeEdits;
pub use self::fixes::QuickFixes;
use self::question::{Arguments, EXAMPLE, NAME, answer};
use super::files::preview;
use super::{Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput, TypedTool};
use crate::calls::arguments::{self, Unknown};
use crate::workspace::language::{Answer, Operation};

/// How much of a symbol's documentation is shown, in bytes.
const WORDS: usize = 8000;

pub(super) struct Code {
    operations: Vec<Operation>,
}

impl Code {
    pub fn new(operations: &[Operation]) -> Self {
        Self {
            operations: operations.to_vec(),
        }
    }
}

impl TypedTool for Code {
    type Arguments = Arguments;
    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "Query the editor's language servers by symbol name or position: definitions, \
        references, callers, documentation. Prefer it to grep for code. rename, quick_fixes and format change files.";
    const KIND: ToolKind = ToolKind::Search;
    const EXAMPLE: &'static str = EXAMPLE;

    /// Only what the editor answers.
    fn offered(&self, mut schema: Value) -> Value {
        if let Some(operations) = schema.pointer_mut("/properties/op/enum") {
            *operations = serde_json::to_value(&self.operations).unwrap_or_default();
        }
        schema
    }

    fn meant(&self, arguments: &Value) -> Option<Arc<dyn Tool>> {
        let (arguments, _): (Arguments, _) =
            arguments::read(arguments, EXAMPLE, Unknown::LeftOut).ok()?;
        arguments
            .op
            .edits()
            .then(|| Arc::new(CodeEdits) as Arc<dyn Tool>)
    }

    async fn preview(context: &ToolContext, arguments: Arguments) -> Result<Preview, ToolError> {
        let title = format!("Look up {} of", arguments.op.title());
        let Some(path) = &arguments.path else {
            let title = format!("{title} {}", arguments.named());
            return Ok(Preview::titled(title));
        };
        let path = context.resolve(path)?;
        let place = context.shown(&path);
        let of = if arguments.symbol.is_some() {
            format!("{} in {place}", arguments.named())
        } else {
            place
        };
        Ok(preview(format!("{title} {of}"), &path, arguments.line))
    }

    async fn run(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let content = match answer(context, &arguments).await? {
            Answer::Places(places) if places.is_empty() => nothing(&arguments),
            Answer::Places(places) if arguments.op == Operation::DocumentSymbols => {
                places::outline(context, &places).await
            }
            Answer::Places(places) => places::list(context, &places).await,
            Answer::Words(words) if words.trim().is_empty() => nothing(&arguments),
            Answer::Words(words) => cut(&words),
            Answer::Edits(_) => {
                return Err(ToolError(
                    "the editor returned edits instead of an answer".to_owned(),
                ));
            }
        };
        Ok(content.into())
    }
}

fn nothing(arguments: &Arguments) -> String {
    format!(
        "The language servers found no {} for {}.\n",
        arguments.op.title(),
        arguments.named()
    )
}

fn cut(words: &str) -> String {
    let (shown, rest) = words.split_at(words.floor_char_boundary(WORDS));
    let more = if rest.is_empty() {
        String::new()
    } else {
        format!("\n[{} more bytes]", rest.len())
    };
    format!("{}{more}\n", shown.trim_end())
}
