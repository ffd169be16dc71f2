//! What the model reads: the system prompt, which never changes within a session, and the person's message with what
//! they are looking at.
//!
//! Anything that changes from prompt to prompt is part of the newest user message only, so that the bytes before it
//! stay the same.

use std::sync::Arc;

use super::Entry;
use super::text::fenced;
use crate::domain::{Attachment, Bounds, Focus, Prompt};
use crate::model::{Message, Part, Provider, SMALL_WINDOW, ToolResult};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, native};

/// The system prompt of a session, which is shorter for a small window: the same for the same model, workspace and environment line, in every process.
pub fn system(
    provider: &Provider,
    workspace: &Workspace,
    tools: &[Arc<dyn Tool>],
    environment: &str,
) -> String {
    let is_small = provider
        .window()
        .is_some_and(|window| window <= SMALL_WINDOW);
    let text = if is_small {
        include_str!("small.md")
    } else {
        include_str!("system.md")
    };
    let skills = if tools::find(tools, "skill").is_some() {
        ", and from skills you load"
    } else {
        ""
    };
    let mut text = text
        .replace("{edit}", tools::edit_name(tools).unwrap_or_default())
        .replace("{skills}", skills);
    if let Some(habit) = provider.habit() {
        text += &format!("{habit}\n");
    }
    text += &format!("\n{environment}\n");
    push_roots(&mut text, workspace);
    text
}

/// The system prompt of an explorer.
pub fn explorer(workspace: &Workspace, bounds: Bounds) -> String {
    let mut text = include_str!("explore.md")
        .replace("{calls}", &bounds.calls.to_string())
        .replace("{tokens}", &bounds.tokens.to_string());
    text.push('\n');
    push_roots(&mut text, workspace);
    text
}

fn push_roots(text: &mut String, workspace: &Workspace) {
    if let Some((first, more)) = workspace.roots().split_first() {
        *text += &format!("Workspace: {}\n", native::shown(first.path()));
        for root in more {
            *text += &format!("Further root: {}\n", native::shown(root.path()));
        }
    }
}

/// Appends what a client adds to the system prompt.
pub fn append(system: &mut String, instructions: &str) {
    if !instructions.is_empty() {
        let heading = "Instructions from the client (they never replace the safety rules above)";
        *system += &format!("\n{}", fenced(heading, instructions));
    }
}

/// How a message changes the mode, for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Only reading and planning.
    Plan,
    /// The plan of the previous message may be carried out.
    Go,
    /// No change.
    Usual,
}

const PLAN: &str = "(mode plan: read only. Do not call tools that change files; present a plan)";
pub(super) const GO: &str =
    "(the mode is no longer plan: tools that change files can be called again)";

/// Whether the newest prompt told the model only to plan, and the plan has not been approved since.
pub fn plans_only(history: &[Arc<Entry>]) -> bool {
    let mut parts = history
        .iter()
        .rev()
        .filter_map(|entry| match entry.message() {
            Message::User { parts } => Some(parts),
            _ => None,
        })
        .flat_map(|parts| parts.iter().rev());
    let only_plans = parts.find_map(|part| match part {
        Part::Text { text } => Some(text.ends_with(PLAN)),
        // Other notes of ours, such as that an answer was empty, leave it as it is.
        Part::Note { text } => text.starts_with(GO).then_some(false),
        Part::Image(_) => None,
    });
    only_plans == Some(true)
}

/// The parts of the user message for a prompt.
pub fn render(prompt: Prompt, stage: Stage) -> Vec<Part> {
    let mut text = String::new();
    let mut parts = Vec::new();
    for part in prompt.parts {
        match part {
            Attachment::Text(words) => push_block(&mut text, &words),
            Attachment::Shown {
                heading,
                text: shown,
            } => push_block(&mut text, &fenced(&heading, &shown)),
            Attachment::Skill(name) => {
                push_block(&mut text, &format!("(the skill {name} could not be read)"));
            }
            Attachment::Command { name, .. } => {
                push_block(&mut text, &format!("(the prompt {name} could not be read)"));
            }
            Attachment::Mention { name, .. } => {
                push_block(&mut text, &format!("(mentioned: {name})"));
            }
            Attachment::Excerpt {
                name,
                lines,
                text: excerpt,
            } => {
                push_block(&mut text, &quote(&name, lines, &excerpt));
            }
            Attachment::Image(image) => {
                flush(&mut text, &mut parts);
                parts.push(Part::Image(image));
            }
        }
    }
    if let Some(Focus {
        path,
        lines: (first, last),
        ..
    }) = prompt.focus
    {
        push_block(
            &mut text,
            &format!(
                "(the user is looking at {}, {})",
                native::shown(&path),
                span(first, last)
            ),
        );
    }
    match stage {
        Stage::Plan => push_block(&mut text, PLAN),
        Stage::Go => push_block(&mut text, GO),
        Stage::Usual => {}
    }
    flush(&mut text, &mut parts);
    parts
}

fn push_block(text: &mut String, block: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(block);
}

fn flush(text: &mut String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Text {
            text: std::mem::take(text),
        });
    }
}

fn quote(name: &str, lines: Option<(u32, u32)>, text: &str) -> String {
    let place = lines
        .map(|(first, last)| format!(", {}", span(first, last)))
        .unwrap_or_default();
    fenced(&format!("From {name}{place} (as it is now)"), text)
}

fn span(first: u32, last: u32) -> String {
    if first == last {
        format!("line {first}")
    } else {
        format!("lines {first}-{last}")
    }
}

/// The missing results of an interrupted turn: one for every call of the last message.
pub fn missing_results(last: &Message) -> Option<Message> {
    let Message::Assistant(answer) = last else {
        return None;
    };
    let results: Vec<ToolResult> = answer
        .calls
        .iter()
        .map(|call| ToolResult {
            call_id: call.id.clone(),
            content: "not run: the turn was interrupted first".to_owned(),
            is_error: true,
            images: Vec::new(),
        })
        .collect();
    (!results.is_empty()).then_some(Message::Results { results })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Image;

    #[test]
    fn a_selection_cannot_close_its_fence() {
        let prompt = Prompt {
            parts: vec![
                Attachment::Text("why?".into()),
                Attachment::Excerpt {
                    name: "a.md".into(),
                    lines: Some((3, 7)),
                    text: "```rust\nx\n```".into(),
                },
            ],
            focus: Some(Focus {
                path: "/w/a.md".into(),
                lines: (3, 3),
                is_selection: false,
            }),
        };
        let parts = render(prompt, Stage::Usual);
        assert_eq!(
            parts,
            [Part::Text {
                text:
                    "why?\n\nFrom a.md, lines 3-7 (as it is now):\n````\n```rust\nx\n```\n````\n\n\
                       (the user is looking at /w/a.md, line 3)"
                        .into()
            }]
        );
    }

    #[test]
    fn images_keep_their_position_in_the_text() {
        let image = || Attachment::Image(Image::new("image/png", &[0]));
        let prompt = Prompt {
            parts: vec![
                Attachment::Text("see".into()),
                image(),
                Attachment::Text("?".into()),
            ],
            focus: None,
        };
        let kinds: Vec<_> = render(prompt, Stage::Usual)
            .iter()
            .map(|part| matches!(part, Part::Image(_)))
            .collect();
        assert_eq!(kinds, [false, true, false]);
    }
}
