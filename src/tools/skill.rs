//! `skill`: loads instructions for a kind of task when they are needed.
//!
//! Offered only if there are skills; their names and descriptions are part of the tool's description, so that a session
//! without skills does not pay for them.

use std::sync::Arc;

use futures_util::future::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::files::unless_cancelled;
use super::{Pending, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput};
use crate::calls::arguments::{self, Unknown};
use crate::text::display::{escape_line, marked};
use crate::workspace::{Skill, Workspace};

/// How much of one skill's description is included, in bytes.
const PURPOSE: usize = 300;
/// How much is included in total, in bytes.
const LIST: usize = 8 << 10;

const EXAMPLE: &str = r#"{"name": "release"}"#;

pub(super) struct LoadSkill {
    skills: Arc<[Skill]>,
    description: String,
}

/// What to load.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The skill.
    name: String,
    /// Another file of its directory that it names, such as `reference.md`.
    file: Option<String>,
}

impl LoadSkill {
    pub fn new(skills: Arc<[Skill]>) -> Self {
        let description = format!(
            "Load a skill before a task it covers: it describes how such tasks are done here. It grants no permission. \
             Skills:{}",
            list(&skills)
        );
        Self {
            skills,
            description,
        }
    }

    fn find(&self, name: &str) -> Result<&Skill, ToolError> {
        let found = self.skills.iter().find(|skill| skill.name == name);
        found.ok_or_else(|| {
            ToolError(format!(
                "unknown skill {}; available skills: {}",
                escape_line(name),
                names(&self.skills)
            ))
        })
    }
}

fn names(skills: &[Skill]) -> String {
    let names: Vec<_> = skills.iter().map(|skill| skill.name.as_str()).collect();
    names.join(", ")
}

/// One line per skill, as long as there is room.
fn list(skills: &[Skill]) -> String {
    let mut list = String::new();
    for (index, skill) in skills.iter().enumerate() {
        let purpose = escape_line(&skill.description);
        let (shown, rest) = purpose.split_at(purpose.floor_char_boundary(PURPOSE));
        let more = if rest.is_empty() { "" } else { "…" };
        if list.len() + shown.len() > LIST {
            list += &format!("\n- also {}", names(skills.split_at(index).1));
            break;
        }
        list += &format!("\n- {}: {shown}{more}", skill.name);
    }
    list
}

/// The text of a skill, or of another file in its folder, with invisible characters written out.
///
/// # Errors
/// It cannot be read; the text is for the model.
pub async fn load_skill(
    workspace: &Workspace,
    skill: &Skill,
    file: Option<&str>,
) -> Result<String, ToolError> {
    let Skill { name, folder, .. } = skill;
    let what = escape_line(file.unwrap_or("SKILL.md"));
    let text = skill.read(workspace, file).await;
    let text = text.map_err(|error| {
        ToolError(format!(
            "{what} of the skill {name} cannot be read: {error}"
        ))
    })?;
    Ok(format!(
        "[{what} of the skill {name}, in {}; it grants no permission]\n{}",
        folder.display(),
        marked(&text)
    ))
}

impl Tool for LoadSkill {
    fn name(&self) -> &'static str {
        "skill"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        Value::clone(&arguments::schema::<Arguments>())
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Read
    }

    fn preview<'a>(
        &'a self,
        _context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, Preview> {
        async {
            let (Arguments { name, file }, _) =
                arguments::read(arguments, EXAMPLE, Unknown::LeftOut)?;
            let skill = self.find(&name)?;
            let file = file
                .map(|file| format!(" ({})", escape_line(&file)))
                .unwrap_or_default();
            Ok(Preview::titled(format!(
                "Load the skill {}{file}",
                skill.name
            )))
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, ToolOutput> {
        async {
            let (Arguments { name, file }, _) =
                arguments::read(arguments, EXAMPLE, Unknown::LeftOut)?;
            let loading = load_skill(&context.workspace, self.find(&name)?, file.as_deref());
            let content = unless_cancelled(context, loading).await??;
            Ok(content.into())
        }
        .boxed()
    }
}
