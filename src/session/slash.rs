//! Slash commands: a prompt that starts with a known one is handled here, without a model if none is needed. Every
//! other prompt goes to the model unchanged.

use std::sync::Arc;

use super::event::Offered;
use super::{Attachment, Prompt, Review, mcp, shadow};
use crate::config::UserCommand;
use crate::text::display;
use crate::workspace::Skill;

/// The built-in commands, their descriptions and arguments.
const BUILT_IN: [(&str, &str, Option<&str>); 8] = [
    ("compact", "Summarize the session to free up context", None),
    ("undo", "Undo the last turn that changed something", None),
    ("redo", "Redo the last undone turn", None),
    (
        "review",
        "Have the model review the changes",
        Some("what to focus on"),
    ),
    (
        "try",
        "Run a prompt on a private copy of the workspace, then apply or discard its changes",
        Some("prompt"),
    ),
    (
        "jobs",
        "List the background commands, show the output of one, stop it, or open its port",
        Some("number, stop number, or open number"),
    ),
    (
        "model",
        "Show the models, or switch to another one",
        Some("provider/model"),
    ),
    ("help", "Show the commands", None),
];

const REVIEW: &str = "Review the changes in this workspace: those made in this session and all other uncommitted changes. Read the surrounding code. Report only problems, most severe first, each with file, line and reason; say so if there are none. Don't change anything.";

/// What a turn works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// The workspace.
    Workspace,
    /// A private copy, whose changes are applied at the end or discarded.
    Copy,
}

/// What a prompt asks for.
#[derive(Debug)]
pub(super) enum Work {
    /// An answer of the model.
    Prompt(Prompt, Ground),
    /// Compaction.
    Compact,
    /// Something that needs no model.
    Local(Local),
}

/// A command that is answered without a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// Undo or redo.
    Review(Review),
    Model(String),
    /// The background commands, or what to do with one.
    Jobs(String),
    Help,
    /// Only a message to the person.
    Say(String),
}

/// The commands of a session besides the built-in ones.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The person's own prompts.
    pub own: Vec<UserCommand>,
    /// Skills are commands by their name.
    pub skills: Arc<[Skill]>,
    /// What the commands of MCP servers begin with.
    pub servers: Vec<String>,
    /// The prompts they have listed.
    pub prompts: Vec<mcp::ServerPrompt>,
}

/// Parses a prompt: a command if it starts with a known one.
pub(super) fn understand(mut prompt: Prompt, commands: &Commands) -> Work {
    let line = match prompt.parts.first() {
        Some(Attachment::Text(text)) => text.trim().strip_prefix('/'),
        _ => None,
    };
    let Some(line) = line else {
        return Work::Prompt(prompt, Ground::Workspace);
    };
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arguments = arguments.trim();
    // Added when the prompt is sent: its text is not part of the person's own words.
    let mut added = None;
    let using = |what: &str| {
        let words = format!("Use the {what} {name}.\n\n{arguments}");
        words.trim_end().to_owned()
    };
    let words = match (name, arguments) {
        ("compact", "") => return Work::Compact,
        ("undo", "") => return Work::Local(Local::Review(Review::Undo(None))),
        ("redo", "") => return Work::Local(Local::Review(Review::Redo(None))),
        ("jobs", which) => return Work::Local(Local::Jobs(which.to_owned())),
        ("help", "") => return Work::Local(Local::Help),
        ("try", "") => return Work::Local(Local::Say(shadow::USAGE.to_owned())),
        ("try", words) => return tried(words.to_owned(), prompt, commands),
        ("model", name) => return Work::Local(Local::Model(name.to_owned())),
        ("review", "") => REVIEW.to_owned(),
        ("review", what) => format!("{REVIEW}\n\nLook at this: {what}"),
        _ => {
            if let Some(command) = commands.own.iter().find(|command| command.name == name) {
                command.prompt(arguments)
            } else if let Some(found) = commands.skills.iter().find(|skill| skill.name == name) {
                added = Some(Attachment::Skill(found.name.clone()));
                using("skill")
            } else if commands
                .servers
                .iter()
                .any(|prefix| name.starts_with(prefix))
            {
                added = Some(Attachment::Command {
                    name: name.to_owned(),
                    words: arguments.to_owned(),
                });
                using("prompt")
            } else {
                return Work::Prompt(prompt, Ground::Workspace);
            }
        }
    };
    prompt.parts[0] = Attachment::Text(words);
    prompt.parts.extend(added);
    Work::Prompt(prompt, Ground::Workspace)
}

/// The work of a prompt on a copy of the workspace, which may itself be a command for the model.
fn tried(words: String, mut prompt: Prompt, commands: &Commands) -> Work {
    // It may repeat the word a million times.
    if words.split_whitespace().next() != Some("/try") {
        prompt.parts[0] = Attachment::Text(words);
        if let Work::Prompt(prompt, _) = understand(prompt, commands) {
            return Work::Prompt(prompt, Ground::Copy);
        }
    }
    Work::Local(Local::Say(shadow::USAGE.to_owned()))
}

impl Commands {
    /// All commands: built-in ones, the person's own, skills, prompts of MCP servers; if several have the same name, the
    /// first.
    pub fn available(&self) -> Vec<Offered> {
        let offered = |name: &str, description: String, hint: Option<&str>| Offered {
            name: name.to_owned(),
            description,
            hint: hint.map(str::to_owned),
        };
        let prompts = self.prompts.iter().map(|prompt| {
            let hint = prompt.hint();
            offered(&prompt.command, prompt.description.clone(), hint.as_deref())
        });
        let built_in = BUILT_IN
            .iter()
            .map(|(name, description, hint)| offered(name, (*description).to_owned(), *hint));
        let own = self.own.iter().map(|command| {
            offered(
                &command.name,
                command.description().to_owned(),
                command.takes_arguments().then_some("arguments"),
            )
        });
        let skills = self.skills.iter().map(|skill| {
            let description = display::escape_line(&skill.description).into_owned();
            offered(&skill.name, description, Some("task for the skill"))
        });
        let mut all: Vec<Offered> = Vec::new();
        for command in built_in.chain(own).chain(skills).chain(prompts) {
            if all.iter().all(|other| other.name != command.name) {
                all.push(command);
            }
        }
        all
    }

    pub fn help(&self) -> String {
        let all = self.available();
        let lines: Vec<_> = all
            .iter()
            .map(|command| format!("- `/{}`: {}", command.name, command.description))
            .collect();
        format!(
            "{}\n\nAdd your own as `commands/NAME.md`, and skills as `skills/NAME/`, next to `config.toml`.",
            lines.join("\n")
        )
    }
}
