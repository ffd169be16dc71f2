//! Inline edits: one request to the model to rewrite a range of a document, without tools and without a conversation.

use std::ops::Range;

use futures_util::StreamExt as _;

use super::connect::provider_or_local;
use crate::config::Settings;
use crate::model::{ErrorCode, Failure, Instructions, ModelEvent};
use crate::text::unfenced;

/// How much of the document is sent on each side of the range, in bytes.
const AROUND: usize = 16 * 1024;

const SYSTEM: &str = "You edit code in an editor. Given a document in which <selection> and </selection> mark a range, and \
    an instruction, return only the replacement for the marked text: no explanation, no markers, no Markdown fence. \
    Keep the document's indentation and style. If the selection is empty, return the text to insert there.";

/// An inline edit.
#[derive(Debug, Clone)]
pub struct Rewrite {
    /// The document's name for the model.
    pub name: String,
    /// The document.
    pub text: std::sync::Arc<str>,
    /// The range, in bytes of `text`, at character boundaries.
    pub range: Range<usize>,
    /// The person's instruction.
    pub instruction: String,
    /// The replacement to improve on.
    pub previous: Option<String>,
}

impl Rewrite {
    /// Asks the configured model; `progress` is called with the replacement so far. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    /// There is no model, it fails, or its answer is empty or not complete.
    pub async fn ask(
        self,
        settings: &Settings,
        mut progress: impl FnMut(&str),
    ) -> Result<String, Failure> {
        let provider = provider_or_local(settings).await?;
        let instructions = Instructions {
            system: SYSTEM.to_owned(),
            tools: [].into(),
            conversation: "inline".into(),
        };
        let mut stream = provider.ask(&instructions, self.prompt());
        let (mut answer, mut refusal) = (String::new(), String::new());
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::Text(text) => {
                    answer.push_str(&text);
                    progress(unfenced(&answer));
                }
                ModelEvent::TextWasReasoning => answer.clear(),
                ModelEvent::Refusal(text) => refusal.push_str(&text),
                // Half an answer would take the place of the whole selection.
                ModelEvent::Finish(finish) if !finish.is_whole() => {
                    return Err(Failure::new(
                        ErrorCode::Truncated,
                        "the model's answer was cut off; select less, or rephrase the instruction",
                    ));
                }
                _ => {}
            }
        }
        if !refusal.is_empty() {
            let message = format!("the model refused: {refusal}");
            return Err(Failure::new(ErrorCode::InvalidRequest, message));
        }
        match unfenced(&answer) {
            "" => Err(Failure::passing(
                ErrorCode::Truncated,
                "the model's answer was empty; try again or rephrase the instruction",
            )),
            replacement => Ok(self.with_line_end(replacement)),
        }
    }

    fn prompt(&self) -> String {
        let Range { start, end } = self.range;
        let begin = self.text.ceil_char_boundary(start.saturating_sub(AROUND));
        let stop = self.text.floor_char_boundary(end.saturating_add(AROUND));
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let (before, selected, after) = (part(begin..start), part(start..end), part(end..stop));
        let mut prompt = format!("<document name=\"{}\">\n{before}", self.name);
        prompt += &format!("<selection>{selected}</selection>{after}\n</document>\n\n");
        if let Some(previous) = &self.previous {
            prompt += &format!(
                "You proposed this replacement before:\n<previous>\n{previous}\n</previous>\n\n"
            );
        }
        prompt += &format!("Instruction: {}", self.instruction);
        prompt
    }

    /// If the range is whole lines, so is the replacement.
    fn with_line_end(&self, replacement: &str) -> String {
        let selected = self.text.get(self.range.clone()).unwrap_or_default();
        let end = if selected.ends_with("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let lacks_end = selected.ends_with('\n') && !replacement.ends_with('\n');
        if lacks_end {
            format!("{replacement}{end}")
        } else {
            replacement.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rewrite;

    fn rewrite(text: &str, selected: &str) -> Rewrite {
        let start = text.find(selected).expect("the selection is in the text");
        Rewrite {
            name: "a.rs".to_owned(),
            text: text.into(),
            range: start..start + selected.len(),
            instruction: "shorter".to_owned(),
            previous: None,
        }
    }

    #[test]
    fn the_prompt_marks_the_range_and_is_cut_at_characters() {
        let long = format!("{}{}", "é".repeat(20_000), "here");
        let prompt = rewrite(&long, "here").prompt();
        assert!(
            prompt.contains("<selection>here</selection>") && prompt.len() < 18_000,
            "{}",
            prompt.len()
        );
        let mut again = rewrite("let x = 1;\n", "x");
        again.previous = Some("y".to_owned());
        let prompt = again.prompt();
        assert!(
            prompt.contains("<document name=\"a.rs\">\nlet <selection>x</selection> = 1;\n"),
            "{prompt}"
        );
        assert!(
            prompt.ends_with("<previous>\ny\n</previous>\n\nInstruction: shorter"),
            "{prompt}"
        );
    }

    #[test]
    fn whole_lines_replace_whole_lines() {
        assert_eq!(rewrite("a\r\nb\r\n", "a\r\n").with_line_end("x"), "x\r\n");
        assert_eq!(rewrite("a\nb\n", "a\n").with_line_end("x\n"), "x\n");
        assert_eq!(rewrite("a\nb\n", "a").with_line_end("x"), "x");
    }
}
