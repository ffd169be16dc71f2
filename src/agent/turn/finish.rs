//! The end of a turn that changed something: what got worse is fixed by the editor's language servers or returned to
//! the model, and one line says what is left.
//!
//! Only reports of the text as it is count. The files compared are those that were open when the turn began and those it
//! created: of others it is unknown which of their problems are old.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::State;
use crate::agent::Step;
use crate::agent::event::AgentEvent;
use crate::agent::schedule::{Call, Outcome, Work};
use crate::domain::{Counts, Finish};
use crate::model::Message;
use crate::text::display::counted;
use crate::text::{Upkeep, display};
use crate::tools::{self, QuickFixes, Tool, ToolOutput};
use crate::workspace::diagnostics::{Diagnostic, Report, Scope, Severity, new_ones};
use crate::workspace::{CHAT_FILE, Workspace, native};

/// How often what is left goes back to the model.
const RETURNS: u32 = 2;
/// How often quick fixes are applied before it does: a fix may show the next problem.
const ROUNDS: u32 = 3;
/// How long the editor has to answer. It answers within 2 s.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How many problems the model reads.
const LISTED: usize = 20;
/// How much of a failed command's output it reads, in bytes.
const OUTPUT: usize = 8000;

/// What a turn changed, and what was found at its end.
#[derive(Default)]
pub(super) struct Ending {
    finish: Finish,
    /// What the editor showed before, and for which documents; empty if it cannot tell.
    before: JoinSet<(Vec<String>, Vec<Diagnostic>)>,
    asked: Option<(Vec<String>, Vec<Diagnostic>)>,
    /// The files that were changed, and whether they are new.
    changed: BTreeMap<PathBuf, bool>,
    /// Whether something changed since the last look.
    is_due: bool,
    found: Option<Found>,
    returns: u32,
    /// What went back to the model.
    returned: Vec<Diagnostic>,
    /// How many problems were fixed, by kind and source.
    fixed: BTreeMap<(bool, String), usize>,
    /// The reports of fixes that the model has not read.
    unread: String,
    calls: u32,
}

/// What is left at the end.
#[derive(Default)]
struct Found {
    new: Vec<Diagnostic>,
    checked: usize,
    unknown: usize,
    /// Whether the command succeeded, if it ran, and its output.
    command: Option<(bool, String)>,
}

impl Ending {
    /// Asks the editor what it shows before the turn changes anything.
    pub fn new(finish: Finish, workspace: &Workspace) -> Self {
        let mut before = JoinSet::new();
        if finish.diagnostics && workspace.editor().knows_diagnostics() {
            let workspace = workspace.clone();
            before.spawn(async move {
                let documents = workspace.documents().all().into_iter();
                let in_workspace = documents.filter(|document| {
                    let path = document.path.as_deref();
                    let is_chat = document.uri.ends_with(CHAT_FILE);
                    !is_chat && path.is_some_and(|path| workspace.resolve_path(path).is_ok())
                });
                let uris: Vec<_> = in_workspace.map(|document| document.uri.clone()).collect();
                if uris.is_empty() {
                    return (uris, Vec::new());
                }
                let scope = Scope {
                    uris,
                    settled: false,
                };
                let report = look(&workspace, &scope).await;
                // Without an answer it is unknown what is new in them.
                report.map_or_else(Default::default, |report| (scope.uris, report.found))
            });
        }
        Self {
            finish,
            before,
            ..Self::default()
        }
    }

    /// Takes note of what the calls of an answer changed.
    pub fn note(&mut self, outcomes: &[Outcome], workspace: &Workspace) {
        for ToolOutput { diffs, changes, .. } in outcomes.iter().map(|it| &it.result) {
            self.is_due |= changes.as_ref().is_some_and(|changes| !changes.is_empty());
            for diff in diffs {
                self.is_due = true;
                if let Some(path) = name(workspace, &diff.path) {
                    self.changed.entry(path).or_insert(diff.old_text.is_none());
                }
            }
        }
    }
}

async fn look(workspace: &Workspace, scope: &Scope) -> Option<Report> {
    let asked = tokio::time::timeout(TIMEOUT, workspace.diagnostics(scope));
    asked.await.ok().flatten()
}

/// One name for all names of a file.
fn name(workspace: &Workspace, path: &std::path::Path) -> Option<PathBuf> {
    Some(workspace.resolve_path(path).ok()?.real())
}

impl State {
    /// Checks what the turn has changed before it ends. Returns whether the model continues instead.
    pub async fn go_on_to_finish(&mut self) -> bool {
        if std::mem::take(&mut self.ending.is_due) {
            let found = self.examine().await;
            if self.turn.context.cancel.is_cancelled() {
                return false;
            }
            let goes_on = self.return_to_model(&found).await;
            self.ending.found = Some(found);
            if goes_on {
                return true;
            }
        }
        if let Some(found) = self.ending.found.take() {
            self.tell_end(&found).await;
        }
        let unread = std::mem::take(&mut self.ending.unread);
        if !unread.is_empty() {
            let note = format!(
                "(at the end of that turn, the editor's language servers fixed problems that its changes \
                caused; don't redo this)\n{unread}"
            );
            self.steps.send(Step::Note(note)).await;
        }
        false
    }

    async fn examine(&mut self) -> Found {
        let mut found = Found::default();
        for _ in 0..ROUNDS {
            let Some((new, checked, unknown)) = self.new_problems().await else {
                break;
            };
            (found.new, found.checked, found.unknown) = (new, checked, unknown);
            if !self.ending.finish.quick_fixes || !self.fix(&found.new).await {
                break;
            }
        }
        if let Some(command) = self.ending.finish.command.clone()
            && let Some(tool) = tools::find(&self.turn.tools, tools::COMMAND).cloned()
        {
            let result = self.call(tool, json!({ "command": command })).await;
            let succeeded = result.exit.and_then(|exit| exit.code) == Some(0);
            found.command = Some((succeeded && !result.is_error, result.content));
        }
        found
    }

    /// The errors and warnings that were not there before the turn, in how many of the changed files the editor looked
    /// for them, and of how many it could not tell.
    async fn new_problems(&mut self) -> Option<(Vec<Diagnostic>, usize, usize)> {
        if let Some(before) = self.ending.before.join_next().await {
            self.ending.asked = before.ok();
        }
        let workspace = &self.turn.context.workspace;
        let (open, before) = self.ending.asked.as_ref()?;
        let is_open = |uri: &String| workspace.documents().get(uri).is_some();
        let mut uris: Vec<_> = open.iter().filter(|uri| is_open(uri)).cloned().collect();
        let created = self.ending.changed.iter().filter(|(_, is_new)| **is_new);
        for (path, _) in created.filter(|(path, _)| path.is_file()) {
            let uri = native::uri_of(path)?;
            if !uris.contains(&uri) {
                uris.push(uri);
            }
        }
        if uris.is_empty() {
            return None;
        }
        let scope = Scope {
            uris,
            settled: true,
        };
        let asked = look(workspace, &scope);
        let cancel = &self.turn.context.cancel;
        let Report {
            known,
            unknown,
            found,
        } = cancel.run_until_cancelled(asked).await??;
        let is_changed = |path: &&PathBuf| {
            let name = name(workspace, path);
            name.is_some_and(|name| self.ending.changed.contains_key(&name))
        };
        let mut new = new_ones(before, found);
        new.retain(|one| one.severity <= Severity::Warning);
        let count = |paths: &[PathBuf]| paths.iter().filter(is_changed).count();
        Some((new, count(&known), count(&unknown)))
    }

    /// Applies the preferred fixes of these problems; returns whether there were any.
    async fn fix(&mut self, problems: &[Diagnostic]) -> bool {
        let Some(fixes) = QuickFixes::find(&self.turn.context, problems).await else {
            return false;
        };
        let fixed = fixes.fixed.clone();
        let result = self.call(Arc::new(fixes), Value::Null).await;
        if result.is_error {
            // The person rejected it, or is typing there.
            self.ending.finish.quick_fixes = false;
            return false;
        }
        for (upkeep, source) in fixed {
            let source = source.split(' ').next().unwrap_or_default().to_owned();
            let key = (upkeep == Upkeep::Import, source);
            *self.ending.fixed.entry(key).or_default() += 1;
        }
        self.ending.unread.push_str(&result.content);
        true
    }

    /// Runs a call of tandem's own: shown, decided on and recorded like one of the model's.
    async fn call(&mut self, tool: Arc<dyn Tool>, arguments: Value) -> ToolOutput {
        self.ending.calls += 1;
        let id = format!("finish-{}-{}", self.turn.id, self.ending.calls);
        let (name, kind) = (tool.name().to_owned(), tool.kind());
        self.steps
            .event(AgentEvent::ToolCallStart {
                index: 0,
                id: id.clone(),
                name: name.clone(),
                kind,
            })
            .await;
        let mut schedule = self.schedule();
        let work = Work {
            tool,
            arguments,
            note: None,
        };
        schedule.add(Call {
            slot: 0,
            id,
            name,
            work: Ok(work),
            in_prose: None,
        });
        let outcome = schedule.finish().await.pop();
        outcome.map(|outcome| outcome.result).unwrap_or_default()
    }

    /// Tells the model what is left, unless it knows that already or waits for an answer of the person's.
    async fn return_to_model(&mut self, found: &Found) -> bool {
        let unread = new_ones(&self.ending.returned, found.new.clone());
        let failed = found.command.as_ref().filter(|(succeeded, _)| !succeeded);
        if (unread.is_empty() && failed.is_none())
            || self.ending.returns >= RETURNS
            || self.asks_the_person()
        {
            return false;
        }
        self.ending.returns += 1;
        let mut text = String::new();
        if !unread.is_empty() {
            let message = format!(
                "{} left in the editor; asking the model to fix {}",
                counted(unread.len(), "new problem"),
                if unread.len() == 1 { "it" } else { "them" }
            );
            self.steps.notice(message).await;
            let list = tools::list_problems(&self.turn.context.workspace, unread.clone(), LISTED);
            text += &format!(
                "Before you finish: the editor shows problems that were not there before the user's message.\n{list}"
            );
            self.ending.returned.extend(unread);
        }
        if let Some((_, output)) = failed {
            let command = self.ending.finish.command.as_deref().unwrap_or_default();
            let output = tail(output);
            text += &format!(
                "`{command}`, which the user runs at the end of each turn, failed:\n{output}\n"
            );
        }
        let fixes = std::mem::take(&mut self.ending.unread);
        if !fixes.is_empty() {
            text += &format!("The language servers fixed this already:\n{fixes}");
        }
        text.push_str("Fix what your changes caused, then give your final answer again.");
        self.push(Message::note(text)).await;
        true
    }

    /// The last line of the turn, if there is something to say.
    async fn tell_end(&mut self, found: &Found) {
        let (new, files, unknown) = (found.new.len(), found.checked, found.unknown);
        let mut parts = Vec::new();
        if new > 0 {
            let place = counted(files, "file");
            parts.push(format!("{} in {place}", counted(new, "new problem")));
        }
        for ((is_import, source), count) in &self.ending.fixed {
            let what = counted(
                *count,
                if *is_import {
                    "import"
                } else {
                    "formatting problem"
                },
            );
            let by = match source.as_str() {
                "" => "the editor",
                source => source,
            };
            parts.push(format!("{what} fixed by {}", display::escape_line(by)));
        }
        if unknown > 0 {
            let what = if parts.is_empty() { "problems " } else { "" };
            parts.push(format!("{what}unknown in {}", counted(unknown, "file")));
        }
        if let (Some((succeeded, _)), Some(command)) = (&found.command, &self.ending.finish.command)
        {
            let how = if *succeeded { "succeeded" } else { "failed" };
            parts.push(format!("`{}` {how}", display::escape_line(command)));
        }
        if parts.is_empty() {
            return;
        }
        let event = AgentEvent::Finish {
            message: parts.join("; "),
            counts: Counts {
                new,
                fixed: self.ending.fixed.values().sum(),
                files,
                unknown,
            },
        };
        self.steps.event(event).await;
    }
}

/// The end of a command's output: what failed is said there.
fn tail(output: &str) -> &str {
    let from = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT));
    output.split_at(from).1.trim_end()
}
