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

/// What the model is told after an answer that the full window cut off: the next one continues it.
pub const CUT_OFF: &str = "(Your last answer filled the context window and was cut off. Continue.)";
/// The same after a failure of the provider.
pub const BROKEN: &str =
    "Your last answer was cut off by a failure of the provider. Continue where it ended.";

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

pub(super) const PLAN: &str =
    "(mode plan: read only. Do not call tools that change files; present a plan)";
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
        Part::Note { text } if text == PLAN => Some(true),
        Part::Note { text } if text.starts_with(GO) => Some(false),
        // Other notes, such as that an answer was empty, leave it as it is.
        Part::Note { .. } | Part::Image(_) => None,
        // Earlier journals have it at the end of the person's words.
        Part::Text { text } => Some(text.ends_with(PLAN)),
    });
    only_plans == Some(true)
}

/// The parts of the user message for a prompt: only the person's own words are text, so that nothing else is ever taken for
/// what they said.
pub fn render(prompt: Prompt, stage: Stage) -> Vec<Part> {
    let mut parts = Vec::new();
    for part in prompt.parts {
        parts.push(match part {
            // An editor sends one before an image or a file, whether something was typed or not.
            Attachment::Text(text) if text.trim().is_empty() => continue,
            Attachment::Text(text) => Part::Text { text },
            Attachment::Image(image) => Part::Image(image),
            Attachment::Note(text) => note(text),
            Attachment::Shown { heading, text } => note(fenced(&heading, &text)),
            Attachment::Skill(name) => note(format!("(the skill {name} could not be read)")),
            Attachment::Command { name, .. } => {
                note(format!("(the prompt {name} could not be read)"))
            }
            Attachment::Mention { name, .. } => note(format!("(mentioned: {name})")),
            Attachment::Excerpt { name, lines, text } => note(quote(&name, lines, &text)),
        });
    }
    if let Some(Focus {
        path,
        lines: (first, last),
        ..
    }) = prompt.focus
    {
        let (path, lines) = (native::shown(&path), span(first, last));
        parts.push(note(format!("(the user is looking at {path}, {lines})")));
    }
    match stage {
        Stage::Plan => parts.push(note(PLAN)),
        Stage::Go => parts.push(note(GO)),
        Stage::Usual => {}
    }
    parts
}

pub(super) fn note(text: impl Into<String>) -> Part {
    Part::Note { text: text.into() }
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
    let results: Vec<ToolResult> = last
        .calls()
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
        let excerpt = "From a.md, lines 3-7 (as it is now):\n````\n```rust\nx\n```\n````";
        assert_eq!(
            parts,
            [
                Part::Text {
                    text: "why?".into()
                },
                note(excerpt),
                note("(the user is looking at /w/a.md, line 3)"),
            ]
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
