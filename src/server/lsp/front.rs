//! A chat file as a front end: turns stream into the file.
//!
//! A permission request is a block in it, a hint diagnostic where the change will be, code actions, and a message with
//! buttons if the client supports them. The first answer counts.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::chat::{self, TANDEM};
use super::chat_file::{ChatFile, quoted};
use super::hints::Hints;
use super::progress::Progress;
use crate::agent::event::{AgentEvent, Grant, Permission, Scope, Termination};
use crate::domain::{Failure, FileDiff};
use crate::protocol::lsp::MessageType;
use crate::rpc::Peer;
use crate::server::capabilities::Capabilities;
use crate::server::front_end::{Answering, FrontEnd};
use crate::server::permission::{Choice, Request};
use crate::server::problems::show_message;
use crate::session::Offered;
use crate::session::event::{PromptId, PromptState, ReturnReason, State};
use crate::text::{Range, display, fence};
use crate::workspace::{Document, Documents};

/// How many outputs of tool calls are kept, and up to how many bytes each.
const OUTPUTS: usize = 200;
const OUTPUT: usize = 4096;
/// How many lines of the output of a failed command are shown, and how many of an edit in a menu.
const SHOWN_LINES: usize = 12;
/// How much of a changed line is shown in a menu, in characters.
const SHOWN_COLUMNS: usize = 100;

/// What a chat file needs from its connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub peer: Peer,
    pub documents: Documents,
    /// What the client can do.
    pub can: Capabilities,
    /// Whether the cursor can be sent to the empty lines at the end of a document.
    pub shows_last_line: bool,
    /// How many turns began.
    pub turns: Arc<AtomicU32>,
    pub hints: Arc<Hints>,
}

/// The front end of one chat file.
pub(super) struct ChatFront {
    connection: Connection,
    uri: String,
    turn: Option<Turn>,
    /// The documents that carry a hint, by the id of the call it is for.
    hints: HashMap<String, PathBuf>,
    /// The open permission requests as they are written in the file, by call.
    asked: HashMap<String, Asked>,
    /// What the last calls gave back, by their lines in the file.
    outputs: VecDeque<(String, String)>,
    /// Streams still being written into the file.
    streams: JoinSet<()>,
}

/// A turn that streams into the file.
struct Turn {
    chat: ChatFile,
    progress: Progress,
    /// Whether nobody sees the file: it is not open, and the client cannot show it.
    unseen: bool,
    /// The titles of its calls.
    titles: HashMap<String, String>,
}

impl Turn {
    /// The title of a call; a call that was never shown has only the model's name for it.
    fn title(&self, call_id: &str, name: &str) -> String {
        self.titles
            .get(call_id)
            .cloned()
            .unwrap_or_else(|| display::escape_line(name).into_owned())
    }
}

impl ChatFront {
    pub fn new(connection: Connection, uri: String) -> Self {
        Self {
            connection,
            uri,
            turn: None,
            hints: HashMap::new(),
            asked: HashMap::new(),
            outputs: VecDeque::new(),
            streams: JoinSet::new(),
        }
    }

    /// Writes the heading of an answer, whose text follows.
    fn begin(&mut self) -> &mut Turn {
        let Connection {
            peer,
            documents,
            can,
            turns,
            ..
        } = &self.connection;
        let unseen = documents.get(&self.uri).is_none() && !can.shows_documents;
        let chat = ChatFile::new(self.uri.clone());
        chat.block(TANDEM);
        let mut before = std::mem::take(&mut self.streams);
        let delivered = deliver(chat.clone(), self.connection.clone(), unseen);
        self.streams.spawn(async move {
            // An edit that typing overtakes may outlast its turn: two answers would be written into each other.
            while before.join_next().await.is_some() {}
            delivered.await;
        });
        let number = turns.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = Progress::begin(peer, can.shows_progress, number);
        self.turn.insert(Turn {
            chat,
            progress,
            unseen,
            titles: HashMap::new(),
        })
    }

    /// The prompt got no turn, such as without a model: the reason is written below it, and then the prompt again, unless
    /// that is there already. An editor that saves by itself would otherwise fill the file.
    fn refuse(&mut self, failure: &Failure) {
        let document = self.connection.documents.get(&self.uri);
        let text = document.as_ref().map_or("", |document| &*document.text);
        if chat::is_told(text, &quoted(&described(failure))) {
            let message = format!("tandem: {}", failure.message);
            return show_message(&self.connection.peer, MessageType::Error, &message);
        }
        let prompt = chat::prompt(text).unwrap_or_default().to_owned();
        self.begin().chat.give_back(prompt);
        self.end(&Err(failure.clone()));
    }

    /// Writes the end of the answer and the person's next heading.
    fn end(&mut self, end: &Result<Termination, Failure>) {
        if self.turn.is_none() {
            self.begin();
        }
        for call_id in self
            .hints
            .keys()
            .chain(self.asked.keys())
            .cloned()
            .collect::<Vec<_>>()
        {
            self.resolved(&call_id, &Permission::Cancelled);
        }
        let Some(Turn {
            chat,
            progress,
            unseen,
            ..
        }) = self.turn.take()
        else {
            return;
        };
        let message = match end {
            Err(failure) => {
                chat.quote(&described(failure));
                Some((MessageType::Error, format!("tandem: {}", failure.message)))
            }
            Ok(Termination::Cancelled) => {
                chat.quote("stopped");
                Some((MessageType::Info, "tandem: stopped".to_owned()))
            }
            // Reported together with the place of the answer, once that is known.
            Ok(_) if unseen => None,
            Ok(_) => Some((MessageType::Info, "tandem: done".to_owned())),
        };
        chat.finish();
        progress.end();
        if let Some((kind, message)) = message {
            self.say(chat, kind, message);
        }
    }

    /// Shows a message after the edit it is about: Eglot overwrites a message when it reports the next edit.
    fn say(&mut self, chat: ChatFile, kind: MessageType, message: String) {
        let peer = self.connection.peer.clone();
        self.streams.spawn(async move {
            chat.seen().await;
            show_message(&peer, kind, &message);
        });
    }

    /// Keeps what a call gave back, for whoever wants to see it.
    fn keep_output(&mut self, item: &str, output: &str) {
        let end = output.floor_char_boundary(OUTPUT);
        let mut kept = output.get(..end).unwrap_or_default().to_owned();
        if end < output.len() {
            kept += &format!("\n… {} bytes more", output.len() - end);
        }
        self.outputs.push_back((format!("- {item}"), kept));
        if self.outputs.len() > OUTPUTS {
            self.outputs.pop_front();
        }
    }
}

impl FrontEnd for ChatFront {
    fn event(&mut self, event: AgentEvent) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(notice) = event.notice() {
            return turn.chat.quote(&display::escape(notice));
        }
        match event {
            AgentEvent::TextDelta { content } => turn.chat.prose(&display::escape_piece(&content)),
            AgentEvent::ToolPreview {
                call_id, preview, ..
            } => {
                turn.titles
                    .insert(call_id, display::escape_line(&preview.title).into_owned());
            }
            AgentEvent::ToolExecutionStart { call_id, name, .. } => {
                turn.progress.report(&turn.title(&call_id, &name));
            }
            AgentEvent::ToolExecutionEnd {
                call_id,
                name,
                result,
                ..
            } => {
                let title = turn.title(&call_id, &name);
                let (sign, how) = result.outcome();
                let item = match &how {
                    Some(how) => format!("{sign} {title}: {}", display::escape_line(how)),
                    None => format!("{sign} {title}"),
                };
                turn.chat.item(&item);
                if result
                    .exit
                    .is_some_and(|exit| exit.code.unwrap_or_default() != 0)
                {
                    turn.chat.block(&last_lines(&result.content));
                }
                self.keep_output(&item, &result.content);
            }
            AgentEvent::Retry {
                reason, wait_ms, ..
            } => {
                let reason = display::escape_line(&reason);
                turn.progress.report(&format!(
                    "{reason}; retrying after {} s",
                    wait_ms.div_ceil(1000)
                ));
            }
            _ => {}
        }
    }

    fn prompt(&mut self, _id: &PromptId, state: &PromptState) {
        match state {
            PromptState::Running { .. } => drop(self.begin()),
            // What a restart returns stands in the file, without an answer.
            PromptState::Queued(_)
            | PromptState::Joined
            | PromptState::Returned {
                reason: ReturnReason::Restarted,
                ..
            } => {}
            PromptState::Returned { .. } => self.end(&Ok(Termination::Cancelled)),
            PromptState::Ended(Err(failure)) if self.turn.is_none() => self.refuse(failure),
            PromptState::Ended(end) => self.end(end),
        }
    }

    fn state(&mut self, _state: &State) {}

    fn commands(&mut self, _commands: &[Offered]) {}

    fn ask(&mut self, request: &Request) -> Answering {
        let title = request.title();
        let mut chat = None;
        if let Some(turn) = &self.turn {
            let reminder = turn.progress.remind(format!("needs approval: {title}"));
            let asked = Asked::new(request, reminder);
            turn.chat.block(&asked.request());
            self.asked.insert(request.call_id.clone(), asked);
            chat = Some(turn.chat.clone()).filter(|_| !turn.unseen);
        }
        if let Some(location) = request.preview.locations.first() {
            let (file, line) = (&location.path, location.line.unwrap_or(1).saturating_sub(1));
            self.connection
                .hints
                .show_request(&self.connection.peer, file, Some((line, request)));
            self.hints.insert(request.call_id.clone(), file.clone());
        }
        if self.connection.can.asks {
            return show_request(self.connection.peer.clone(), request, chat);
        }
        let mut message = vec![format!("tandem: needs approval: {title}")];
        if let Some(chat) = chat {
            self.say(chat, MessageType::Info, message.concat());
        } else {
            message.extend(request.preview.description());
            message.push("Answer with a code action.".to_owned());
            let peer = &self.connection.peer;
            show_message(peer, MessageType::Info, &message.join("\n"));
        }
        Box::pin(std::future::ready(None))
    }

    fn resolved(&mut self, call_id: &str, decision: &Permission) {
        if let (Some(asked), Some(turn)) = (self.asked.remove(call_id), &self.turn) {
            turn.chat.replace(asked.request(), asked.decided(decision));
        }
        if let Some(file) = self.hints.remove(call_id) {
            self.connection
                .hints
                .show_request(&self.connection.peer, &file, None);
        }
    }

    fn output(&self, call: &str, below: usize) -> Option<String> {
        let calls = self.outputs.iter().rev().filter(|(item, _)| item == call);
        calls.map(|(_, output)| output.clone()).nth(below)
    }

    fn owns_progress(&self, token: &Value) -> bool {
        self.turn
            .as_ref()
            .is_some_and(|turn| turn.progress.is(token))
    }
}

fn described(failure: &Failure) -> String {
    format!("**error:** {}", display::escape(&failure.message))
}

const ALLOW_OR_REJECT: &str = "> Answer with a code action: *Allow* or *Reject*.";

/// A permission request as a block of the chat file.
struct Asked {
    lead: &'static str,
    title: String,
    /// What would be done.
    details: String,
    /// How to answer.
    how: String,
    rule: Option<String>,
    /// Says in the status line that it waits.
    _reminder: JoinSet<()>,
}

impl Asked {
    fn new(request: &Request, reminder: JoinSet<()>) -> Self {
        let mut details = String::new();
        for line in request.preview.description() {
            details += &format!("\n> {}", line.replace('\n', "\n> "));
        }
        for answer in request.preview.answers.iter().flatten() {
            details += &format!("\n> - {}", display::escape_line(answer));
        }
        for diff in &request.preview.diffs {
            let change = diff.unified();
            let change = display::escape(&change);
            let fence = fence(&change);
            if request.preview.diffs.len() > 1 {
                details += &format!(
                    "\n\n`{}`",
                    display::escape_line(&diff.path.to_string_lossy())
                );
            }
            details += &format!("\n\n{fence}diff\n{change}{fence}");
        }
        let rule = request
            .offer
            .rule
            .as_ref()
            .map(|rule| display::escape_line(rule).into_owned());
        let how = match (&request.preview.answers, &rule) {
            (Some(_), _) => "> Answer with a code action.".to_owned(),
            (None, None) => ALLOW_OR_REJECT.to_owned(),
            (None, Some(rule)) => {
                let prefix = request.offer.prefix.as_deref().map(display::escape_line);
                let or = prefix.map_or_else(String::new, |prefix| format!(" or `{prefix}`"));
                format!("{ALLOW_OR_REJECT} *Always* adds the rule `{rule}`{or}.")
            }
        };
        Self {
            lead: request.lead(),
            title: request.title(),
            details,
            how,
            rule,
            _reminder: reminder,
        }
    }

    fn request(&self) -> String {
        let Self {
            lead,
            title,
            details,
            how,
            ..
        } = self;
        format!("> **{lead}** {title}{details}\n\n{how}")
    }

    fn decided(&self, decision: &Permission) -> String {
        let Self {
            title,
            details,
            rule,
            ..
        } = self;
        let rule = rule.as_deref().unwrap_or_default();
        let decision = match decision {
            Permission::AllowOnce => "allowed".to_owned(),
            Permission::AllowAlways(Grant {
                scope: Scope::Turn, ..
            }) => "allowed, and the rest of this turn".to_owned(),
            Permission::AllowAlways(Grant { scope, rule: own }) => format!(
                "allowed; rule `{}` added for this {}",
                own.as_deref().unwrap_or(rule),
                scope.name()
            ),
            Permission::Answered(answer) => format!("answered `{}`", display::escape_line(answer)),
            Permission::Filled(_) => "filled in".to_owned(),
            Permission::Reject | Permission::Forbidden(_) => "rejected".to_owned(),
            Permission::Cancelled => "not answered".to_owned(),
        };
        format!("> **{decision}:** {title}{details}")
    }
}

/// `window/showMessageRequest`, with the safe choice first; closing it decides nothing. Some clients show it in a menu that
/// stops everything else and covers the chat, so the request has to be in the chat before, and its edit in the menu, too.
fn show_request(peer: Peer, request: &Request, chat: Option<ChatFile>) -> Answering {
    let choices = safe_first(request.choices());
    let actions: Vec<Value> = choices
        .iter()
        .map(|choice| json!({ "title": choice.title }))
        .collect();
    let mut message = vec![format!("{} {}", request.lead(), request.title())];
    message.extend(request.preview.description());
    message.extend(changed_lines(&request.preview.diffs));
    message.extend(
        request
            .offer
            .rule
            .as_ref()
            .map(|rule| format!("Always adds the rule {}", display::escape_line(rule))),
    );
    let params = json!({ "type": 3, "message": message.join("\n"), "actions": actions });
    Box::pin(async move {
        if let Some(chat) = chat {
            chat.seen().await;
        }
        let answer = peer.request("window/showMessageRequest", &params);
        let answer = answer.await.ok()?;
        let chosen = choices
            .into_iter()
            .find(|choice| answer["title"] == choice.title.as_str());
        chosen.map(|choice| choice.permission)
    })
}

/// The lines that edits remove and add, as many as fit into a menu.
fn changed_lines(diffs: &[FileDiff]) -> Vec<String> {
    let mut lines = Vec::new();
    for diff in diffs {
        if lines.len() > SHOWN_LINES {
            break;
        }
        if diffs.len() > 1 {
            lines.push(diff.path.to_string_lossy().into_owned());
        }
        let unified = diff.unified();
        let changed = unified.lines().filter(|line| line.starts_with(['-', '+']));
        lines.extend(changed.map(str::to_owned));
    }
    if lines.len() > SHOWN_LINES {
        lines.truncate(SHOWN_LINES - 1);
        lines.push("…".to_owned());
    }
    let safe = |line: String| {
        let mut shown: String = line.chars().take(SHOWN_COLUMNS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        display::escape_line(&shown.replace('\t', "    ")).into_owned()
    };
    lines.into_iter().map(safe).collect()
}

/// The end of a command's output, as a block of code.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let skipped = lines.len().saturating_sub(SHOWN_LINES);
    let mut shown: Vec<&str> = lines.into_iter().skip(skipped).collect();
    if skipped > 0 {
        shown.insert(0, "…");
    }
    let text = display::escape(&shown.join("\n")).into_owned();
    let fence = fence(&text);
    format!("{fence}\n{text}\n{fence}")
}

/// The choices, the refusal first.
pub(super) fn safe_first(mut choices: Vec<Choice>) -> Vec<Choice> {
    choices.sort_by_key(|choice| choice.permission != Permission::Reject);
    choices
}

/// Streams into the chat file; reports what could not be written, and where an answer is that nobody sees.
async fn deliver(chat: ChatFile, connection: Connection, unseen: bool) {
    let Connection {
        peer,
        documents,
        can,
        shows_last_line,
        ..
    } = connection;
    // A person who works in another file by now is not called back to the chat.
    let follows = documents.newest() == chat.uri;
    let encoding = documents.encoding();
    let placed = |document: &Document| {
        if follows && can.moves_cursor {
            let text = &*document.text;
            let end = if shows_last_line {
                text
            } else {
                text.trim_end_matches(['\r', '\n'])
            };
            let end = document.lines.position(text, end.len(), encoding);
            let selection = Range { start: end, end };
            let params = json!({ "uri": document.uri, "external": false, "takeFocus": true, "selection": selection });
            // The cursor goes below the answer, where the next prompt is typed.
            peer.send("window/showDocument", &params);
        }
    };
    let streamed = if unseen {
        chat.write(0).await.map(Some)
    } else {
        chat.stream(peer.clone(), documents, can, placed).await
    };
    match streamed {
        Ok(None) => {}
        Ok(Some(path)) => {
            let message = format!("tandem: the answer is in {}", path.display());
            show_message(&peer, MessageType::Info, &message);
        }
        Err(problem) => {
            let message = format!("tandem cannot write its answer into the chat file: {problem}");
            show_message(&peer, MessageType::Error, &message);
        }
    }
}
