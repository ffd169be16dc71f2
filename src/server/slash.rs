//! Slash commands: what begins with `/` and is known is done here, with no model where none is needed. Everything else
//! goes to the model as it is.

use std::sync::Arc;

use super::Server;
use super::conversation::{Conversation, send};
use super::review::ask;
use super::turns::Work;
use crate::agent::event::{AgentEvent, Termination, Usage};
use crate::config::UserCommand;
use crate::protocol::acp;
use crate::rpc::Responder;
use crate::session::{Attachment, Prompt, Review, ReviewError, SessionId};
use crate::text::display;
use crate::workspace::Skill;

/// Our own, what they do, and what may stand behind them.
const BUILT_IN: [(&str, &str, Option<&str>); 6] = [
    ("compact", "Make the conversation shorter: the model summarizes it", None),
    ("undo", "Undo the last turn that changed something", None),
    ("redo", "Redo the turn that was undone last", None),
    ("review", "Let the model look for mistakes in what was changed", Some("what to look at")),
    ("model", "Show the models, or go on with another one", Some("provider/model")),
    ("help", "Show the commands", None),
];

const REVIEW: &str = "Review the changes in this workspace: those of this conversation and what the version control shows \
    as not yet committed. Read the code around them. List mistakes only, the worst first, each with file, line and why \
    it is one; say so when you find none. Change nothing.";

/// A command that is answered without a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// Undo or redo.
    Review(Review),
    Model(String),
    Help,
}

/// The commands of a conversation besides ours.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The person's own prompts.
    pub own: Vec<UserCommand>,
    /// Skills are commands by their name.
    pub skills: Arc<[Skill]>,
}

/// What a prompt wants: a command where it begins with one that is known.
pub(super) fn understand(prompt: Prompt, commands: &Commands) -> Work {
    let Some(Attachment::Text(text)) = prompt.parts.first() else { return Work::Prompt(prompt) };
    let Some(line) = text.trim().strip_prefix('/') else { return Work::Prompt(prompt) };
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arguments = arguments.trim();
    // It comes along when the prompt is sent: what it says is no part of the person's words.
    let mut skill = None;
    let words = match (name, arguments) {
        ("compact", "") => return Work::Compact,
        ("undo", "") => return Work::Local(Local::Review(Review::Undo(None))),
        ("redo", "") => return Work::Local(Local::Review(Review::Redo(None))),
        ("help", "") => return Work::Local(Local::Help),
        ("model", name) => return Work::Local(Local::Model(name.to_owned())),
        ("review", "") => REVIEW.to_owned(),
        ("review", what) => format!("{REVIEW}\n\nLook at this: {what}"),
        _ => {
            if let Some(command) = commands.own.iter().find(|command| command.name == name) {
                command.prompt(arguments)
            } else if let Some(found) = commands.skills.iter().find(|skill| skill.name == name) {
                skill = Some(Attachment::Skill(found.clone()));
                format!("Use the skill {name}.\n\n{arguments}").trim_end().to_owned()
            } else {
                return Work::Prompt(prompt);
            }
        }
    };
    let Prompt { mut parts, focus } = prompt;
    parts[0] = Attachment::Text(words);
    parts.extend(skill);
    Work::Prompt(Prompt { parts, focus })
}

/// All commands: ours, the person's own, the skills; of several with one name the first.
pub(super) fn available(commands: &Commands) -> Vec<acp::AvailableCommand> {
    let input = |hint: &str| acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint));
    let built_in = BUILT_IN.iter().map(|(name, description, hint)| {
        let command = acp::AvailableCommand::new(*name, *description);
        hint.map_or(command.clone(), |hint| command.input(input(hint)))
    });
    let own = commands.own.iter().map(|command| {
        let offered = acp::AvailableCommand::new(command.name.clone(), command.description());
        if command.takes_arguments() { offered.input(input("arguments")) } else { offered }
    });
    let skills = commands.skills.iter().map(|skill| {
        let description = display::escape_line(&skill.description);
        acp::AvailableCommand::new(skill.name.clone(), description).input(input("what to use the skill for"))
    });
    let mut all: Vec<acp::AvailableCommand> = Vec::new();
    for command in built_in.chain(own).chain(skills) {
        if all.iter().all(|other| other.name != command.name) {
            all.push(command);
        }
    }
    all
}

impl Server {
    /// Tells the client what can be typed.
    pub(super) fn announce_commands(&self, id: &str, conversation: &Conversation) {
        let update = acp::AvailableCommandsUpdate::new(available(&conversation.commands));
        send(&self.peer, id, acp::SessionUpdate::AvailableCommandsUpdate(update));
    }

    /// Answers a command that needs no model, with a message and the end of its turn.
    pub(super) fn run_local(&mut self, id: &str, local: &Local, responder: Responder) {
        if let Local::Review(review) = local {
            return self.review_locally(id, review.clone(), responder);
        }
        let text = display::escape(&self.words_for(id, local)).into_owned();
        send(&self.peer, id, acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(text.into())));
        responder.ok(&acp::PromptResponse::new(acp::StopReason::EndTurn));
    }

    /// What a command is answered with.
    pub(super) fn words_for(&mut self, id: &str, local: &Local) -> String {
        match local {
            Local::Review(_) => "Use the code actions, or the commands `tandem.undo` and `tandem.redo`.".to_owned(),
            Local::Model(name) => self.model_locally(id, name),
            Local::Help => self.help(id),
        }
    }

    /// Undoing takes its time, so it is a turn, which what comes behind it waits for.
    fn review_locally(&mut self, id: &str, review: Review, responder: Responder) {
        let Some(conversation) = self.conversations.get_mut(id) else { return };
        let answer = ask(conversation, review);
        conversation.prompt = Some(responder);
        let (events, id) = (self.events.clone(), SessionId::from(id));
        self.tasks.spawn(async move {
            let content = match answer.await {
                Ok(Ok(reviewed)) => reviewed.message.unwrap_or_default(),
                Ok(Err(ReviewError(why))) => why,
                Err(_session_gone) => "The session has ended.".to_owned(),
            };
            let done = AgentEvent::Done {
                final_text: content.clone(),
                termination_reason: Termination::EndTurn,
                iterations: 0,
                usage: Usage::default(),
            };
            let begin = AgentEvent::IterationStart { iteration: 0, message_count: 0 };
            for event in [begin, AgentEvent::TextDelta { content }, done] {
                let _server_gone = events.send((SessionId::clone(&id), event)).await;
            }
        });
    }

    fn model_locally(&mut self, id: &str, name: &str) -> String {
        let Some(conversation) = self.conversations.get(id) else { return String::new() };
        let (effort, current) = (conversation.effort, conversation.model.clone());
        if name.is_empty() {
            let mark = |name: &String| if Some(name) == current.as_ref() { " (in use)" } else { "" };
            let models = conversation.models();
            let lines: Vec<_> = models.iter().map(|name| format!("- {name}{}", mark(name))).collect();
            return format!("Models that are configured:\n\n{}\n\n`/model NAME` takes another one.", lines.join("\n"));
        }
        match self.change_model(id, name, effort) {
            Ok(()) => format!("{name} answers from the next prompt on."),
            Err(problem) => problem.message,
        }
    }

    fn help(&self, id: &str) -> String {
        let commands = self.conversations.get(id).map(|conversation| available(&conversation.commands));
        let commands = commands.unwrap_or_default();
        let lines: Vec<_> =
            commands.iter().map(|command| format!("- `/{}`: {}", command.name, command.description)).collect();
        format!(
            "{}\n\nYour own are files `commands/NAME.md` and skills `skills/NAME/` beside `config.toml`.",
            lines.join("\n")
        )
    }
}
