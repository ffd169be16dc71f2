//! After a turn in mode `plan`: the plan becomes a file that the person can edit, and is carried out if they say so.

use std::io;
use std::path::{Path, PathBuf};

use super::{Message, State, said};
use crate::agent::event::{Permission, START, START_FRESH};
use crate::agent::prompt::{GO, plans_only};
use crate::agent::{Entry, ask, compact};
use crate::domain::{Location, Preview};
use crate::workspace::{StateFolder, native};

/// Where the plan of a turn is kept.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// Where it comes from, for people.
    pub origin: String,
}

impl State {
    /// Whether the prompt only asks for a plan.
    pub fn only_plans(&self) -> bool {
        plans_only(&self.messages)
    }

    /// Asks the person whether to carry out the plan that the turn ends with. Returns whether the turn does so.
    pub async fn start_plan(&mut self) -> bool {
        let Some(PlanFile { path, origin }) = self.turn.plan.clone() else {
            return false;
        };
        let answer = said(self.answer.as_deref()).trim();
        if !self.only_plans() || !(self.nudges.has_plan() || has_steps(answer)) {
            return false;
        }
        let facts = compact::facts(&self.messages, &self.turn.tools);
        let written = format!("{answer}{facts}\n\n{origin}\n");
        if let Err(error) = write(&path, &written).await {
            let message = format!("the plan cannot be saved in {}: {error}", path.display());
            self.steps.notice(message).await;
            return false;
        }
        let preview = Preview {
            title: "Start the plan?".to_owned(),
            note: Some(format!(
                "you can edit it before you start: {}",
                path.display()
            )),
            locations: vec![Location {
                path: path.clone(),
                line: None,
            }],
            answers: Some(vec![START.to_owned(), START_FRESH.to_owned()]),
            ..Preview::default()
        };
        let cancel = self.turn.context.cancel.clone();
        let outcome = ask::about_plan(&self.turn.id, preview, &cancel, &self.steps).await;
        let plan = self
            .read_plan(&path)
            .await
            .unwrap_or_else(|| written.clone());
        match outcome {
            Permission::Answered(answer) if answer == START => {
                let edited = if plan == written {
                    String::new()
                } else {
                    format!(" They edited it; follow this version:\n\n{plan}")
                };
                let text = format!("{GO}\n\nThe user approved the plan: carry it out now.{edited}");
                self.push(Message::note(text)).await;
                true
            }
            Permission::Answered(answer) if answer == START_FRESH => {
                let text = format!("The user approved this plan: carry it out now.\n\n{plan}");
                let plan = Entry::new(Message::text(text), &self.turn.provider);
                self.replace(vec![plan]).await;
                true
            }
            _ => false,
        }
    }

    /// The plan as it is now, in the editor if it is open there.
    async fn read_plan(&self, path: &Path) -> Option<String> {
        let uri = native::uri_of(path)?;
        match self.turn.context.workspace.documents().get(&uri) {
            Some(document) => Some(document.text.to_string()),
            None => tokio::fs::read_to_string(path).await.ok(),
        }
    }
}

/// Whether a text has a list of steps.
fn has_steps(text: &str) -> bool {
    let numbered = |line: &&str| {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
    };
    text.lines().filter(numbered).nth(1).is_some()
}

async fn write(path: &Path, text: &str) -> io::Result<()> {
    let (folder, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or(io::ErrorKind::InvalidInput)?;
    let folder = StateFolder::open(folder.to_owned()).await?;
    folder.write(&name.to_string_lossy(), text.into()).await
}
