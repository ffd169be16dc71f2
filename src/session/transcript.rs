//! A session as Markdown.

use crate::agent::event::AgentEvent;
use crate::domain::{PlanEntry, PlanStatus};
use crate::text::fence;
use crate::tools::ToolOutput;

/// The speaker of the current part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Nobody,
    Person,
    Model,
}

struct Transcript {
    text: String,
    voice: Voice,
    /// The title of the running call.
    title: Option<String>,
}

/// The events of a session as Markdown.
pub fn markdown(events: &[AgentEvent]) -> String {
    markdown_at(events, 0).0
}

/// The same, and the line, counted from 0, in which a turn begins; 0 if it is not there.
pub fn markdown_at(events: &[AgentEvent], number: u64) -> (String, usize) {
    let mut transcript = Transcript {
        text: String::new(),
        voice: Voice::Nobody,
        title: None,
    };
    let mut line = 0;
    for event in events {
        if matches!(event, AgentEvent::UserMessage { turn: Some(turn), .. } if *turn == number) {
            line = transcript.text.lines().count();
        }
        transcript.event(event);
    }
    (transcript.text, line)
}

impl Transcript {
    fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::UserMessage { content, .. } => {
                self.voice = Voice::Nobody;
                self.block(Voice::Person, content.trim());
            }
            AgentEvent::ReasoningDelta { content } => {
                let quoted = content
                    .trim()
                    .lines()
                    .map(|line| format!("> {line}"))
                    .collect::<Vec<_>>()
                    .join("\n");
                self.block(Voice::Model, &quoted);
            }
            AgentEvent::TextDelta { content } if !content.trim().is_empty() => {
                self.block(Voice::Model, content.trim());
            }
            AgentEvent::ToolPreview { preview, .. } => self.title = Some(preview.title.clone()),
            AgentEvent::ToolExecutionEnd { name, result, .. } => {
                let title = self.title.take().unwrap_or_else(|| name.clone());
                self.block(Voice::Model, &call(&title, result));
            }
            AgentEvent::Finish { message, .. } => self.block(Voice::Model, message),
            AgentEvent::Plan { entries } => {
                let steps: Vec<_> = entries.iter().map(step).collect();
                self.block(Voice::Model, &steps.join("\n"));
            }
            _ => {}
        }
    }

    fn block(&mut self, voice: Voice, block: &str) {
        if self.voice != voice {
            let name = if voice == Voice::Person {
                "You"
            } else {
                "tandem"
            };
            self.text += &format!("## {name}\n\n");
            self.voice = voice;
        }
        self.text += &format!("{block}\n\n");
    }
}

fn call(title: &str, result: &ToolOutput) -> String {
    let (sign, how) = result.outcome();
    let mut text = format!("* {sign} {title}");
    if let Some(how) = how {
        text += &format!(": {how}");
    }
    for diff in &result.diffs {
        let change = diff.unified();
        // The title of a call names one file.
        if result.diffs.len() > 1 {
            text += &format!("\n\n`{}`:", diff.path.display());
        }
        let fence = fence(&change);
        text += &format!("\n\n{fence}diff\n{}\n{fence}", change.trim_end());
    }
    text
}

fn step(entry: &PlanEntry) -> String {
    let mark = if entry.status == PlanStatus::Completed {
        'x'
    } else {
        ' '
    };
    format!("* [{mark}] {}", entry.content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FileDiff, Preview, ToolKind};

    fn changed(title: &str, diffs: Vec<FileDiff>) -> [AgentEvent; 2] {
        let (call_id, name) = ("c".to_owned(), "edit_file".to_owned());
        let preview = Preview::titled(title.to_owned());
        let result = ToolOutput {
            diffs,
            ..ToolOutput::default()
        };
        [
            AgentEvent::ToolPreview {
                call_id: call_id.clone(),
                kind: ToolKind::Edit,
                preview,
            },
            AgentEvent::ToolExecutionEnd {
                call_id,
                name,
                result,
                wait_ms: 0.0,
                execute_duration_ms: 0.0,
            },
        ]
    }

    fn diff(path: &str, old: Option<&str>, new: &str) -> FileDiff {
        FileDiff::new(path.into(), old.map(Into::into), new.into())
    }

    #[test]
    fn transcripts_read_like_a_conversation() {
        let mut events = vec![
            AgentEvent::UserMessage {
                content: "change it\n".to_owned(),
                prompt: None,
                turn: None,
                attached: Vec::new(),
            },
            AgentEvent::TextDelta {
                content: "I will.".to_owned(),
            },
        ];
        events.extend(changed(
            "Edit a.rs",
            vec![diff("/w/a.rs", Some("one\n"), "two\n")],
        ));
        assert_eq!(
            markdown(&events),
            "## You\n\nchange it\n\n## tandem\n\nI will.\n\n* ✓ Edit a.rs\n\n```diff\n@@ -1 +1 @@\n-one\n+two\n```\n\n"
        );
    }

    #[test]
    fn multiple_files_are_all_named() {
        let diffs = vec![
            diff("/w/a", Some("one\n"), "two\n"),
            diff("/w/b", None, "new\n"),
        ];
        assert_eq!(
            markdown(&changed("Patch 2 files", diffs)),
            "## tandem\n\n* ✓ Patch 2 files\n\n`/w/a`:\n\n```diff\n@@ -1 +1 @@\n-one\n+two\n```\n\n\
             `/w/b`:\n\n```diff\n@@ -0,0 +1 @@\n+new\n```\n\n"
        );
    }
}
