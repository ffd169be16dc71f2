//! A chat model that is shown the text around the gap.

use std::fmt::Write as _;

use futures_util::StreamExt as _;

use super::{Gap, Snippet, TOKEN};
use crate::model::{Failure, Instructions, ModelEvent, Provider};
use crate::text::unfenced;

/// Marks the gap.
const CURSOR: &str = "<cursor/>";

const SYSTEM: &str = "You complete code in an editor while the user types. Given a document in which <cursor/> marks the \
    cursor, return only the text to insert there: no explanation, no marker, no Markdown fence, and no text that is \
    already in the document. Keep it short: the rest of the line, or a few lines. If nothing is missing, return nothing.";

/// Asks the model; stops reading, which closes the connection, as soon as there is enough.
pub(super) async fn fill(provider: &Provider, gap: &Gap) -> Result<String, Failure> {
    let instructions = Instructions {
        system: SYSTEM.to_owned(),
        tools: [].into(),
        conversation: "completion".into(),
    };
    let mut stream = provider.ask(&instructions, prompt(gap));
    let mut answer = String::new();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Text(text) => answer.push_str(&text),
            ModelEvent::TextWasReasoning => answer.clear(),
            ModelEvent::Retry { reason, .. } => return Err(super::fault::invalid(&reason)),
            _ => {}
        }
        if is_enough(gap, unfenced(&answer)) {
            break;
        }
    }
    Ok(new_text(gap, unfenced(&answer)).to_owned())
}

fn prompt(gap: &Gap) -> String {
    let mut prompt = String::new();
    for Snippet { name, text } in &gap.others {
        let _ = write!(
            prompt,
            "<document name=\"{name}\">\n{text}\n</document>\n\n"
        );
    }
    let Gap {
        name,
        before,
        after,
        ..
    } = gap;
    let _ = write!(
        prompt,
        "<document name=\"{name}\">\n{before}{CURSOR}{after}\n</document>"
    );
    prompt
}

fn is_enough(gap: &Gap, answer: &str) -> bool {
    let lines = new_text(gap, answer);
    gap.stop.is_some() && lines.contains('\n') || answer.len() as u64 > gap.max_tokens * TOKEN
}

/// The answer without the beginning of the line, which chat models like to repeat.
fn new_text<'a>(gap: &Gap, answer: &'a str) -> &'a str {
    let line = gap
        .before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .trim_start();
    let repeated = answer.trim_start().strip_prefix(line);
    repeated
        .filter(|_| !line.trim().is_empty())
        .unwrap_or(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_line_is_not_repeated() {
        let check = |before: &str, answer: &str, expected: &str| {
            let gap = Gap {
                before: before.to_owned(),
                ..Gap::default()
            };
            assert_eq!(new_text(&gap, answer), expected);
        };
        check("a\n    let x = ", "let x = 1;", "1;");
        check("a\n    let x = ", "1;", "1;");
        check("a\n    ", "    b", "    b");
        check("a\n", "b", "b");
    }
}
