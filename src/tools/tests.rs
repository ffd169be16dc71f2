//! The tools as the agent calls them: by name, with JSON, on a real folder and open documents.

mod editing;
#[cfg(unix)]
mod generated;
mod notebooks;
mod reading;
mod searching;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Editing, PlanStatus, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput, all, find,
};
use crate::text::Encoding;
use crate::workspace::{Documents, NoEditor, Root, Workspace};

/// A workspace in a temporary folder.
struct Place {
    folder: tempfile::TempDir,
    context: ToolContext,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let workspace = Workspace::new(
            vec![root],
            Documents::new(Encoding::Utf16),
            Arc::new(NoEditor),
        );
        let place = Self {
            folder,
            context: ToolContext::new(workspace, CancellationToken::new()),
        };
        for (name, text) in files {
            place.write(name, text.as_bytes());
        }
        place
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let dir = Dir::open_ambient_dir(self.folder.path(), ambient_authority()).unwrap();
        dir.create_dir_all(Path::new(name).parent().unwrap())
            .unwrap();
        dir.write(name, bytes).unwrap();
    }

    fn on_disk(&self, name: &str) -> String {
        Dir::open_ambient_dir(self.folder.path(), ambient_authority())
            .unwrap()
            .read_to_string(name)
            .unwrap()
    }

    fn open(&self, name: &str, text: &str) {
        let uri = url::Url::from_file_path(self.folder.path().canonicalize().unwrap().join(name))
            .unwrap();
        self.context
            .workspace
            .documents()
            .open(uri.as_str(), 1, "text", text);
    }

    fn tool(name: &str) -> Arc<dyn Tool> {
        let editing = if name == "apply_patch" {
            Editing::Patches
        } else {
            Editing::Replacements
        };
        find(&all(editing), name).unwrap().clone()
    }

    async fn run(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        Self::tool(name).run(&self.context, &arguments).await
    }

    /// What the model reads, result or error.
    async fn answer(&self, name: &str, arguments: Value) -> String {
        match self.run(name, arguments).await {
            Ok(output) => output.content,
            Err(error) => format!("error: {error}"),
        }
    }

    async fn preview(&self, name: &str, arguments: Value) -> Result<Preview, ToolError> {
        Self::tool(name).preview(&self.context, &arguments).await
    }

    async fn check(&self, name: &str, arguments: Value, expected: &str) {
        let answer = self.answer(name, arguments.clone()).await;
        assert_eq!(answer, expected, "{name} {arguments}");
    }
}

#[test]
fn the_list_is_small_and_in_fixed_order() {
    let names = |editing| {
        all(editing)
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = [
        "read_file",
        "list_files",
        "glob",
        "grep",
        "edit_file",
        "write_file",
        "run_command",
        "update_plan",
        "ask_user",
        "explore",
    ];
    assert_eq!(names(Editing::Replacements), expected);
    assert_eq!(
        names(Editing::Patches),
        expected.map(|name| if name == "edit_file" {
            "apply_patch"
        } else {
            name
        })
    );
    let tools = all(Editing::Replacements);
    let described: Vec<_> = tools
        .iter()
        .map(|tool| json!({"name": tool.name(), "description": tool.description(), "parameters": tool.parameters()}))
        .collect();
    let size = serde_json::to_string(&described).unwrap().len();
    assert!(size < 5500, "{size} bytes");
    assert!(find(&tools, "nothing").is_none());
}

#[test]
fn examples_are_correct_calls() {
    let both = [all(Editing::Replacements), all(Editing::Patches)].concat();
    let diagnostics: Arc<dyn Tool> = Arc::new(super::diagnostics::Diagnostics);
    for tool in both.iter().chain([&diagnostics]) {
        let schema = tool.parameters();
        assert!(jsonschema::meta::is_valid(&schema), "{schema}");
        let error =
            futures_util::FutureExt::now_or_never(tool.run(&Place::new(&[]).context, &Value::Null));
        let error = error.unwrap().unwrap_err().0;
        let example: Value =
            serde_json::from_str(error.split_once("Example: ").unwrap().1).unwrap();
        assert!(jsonschema::is_valid(&schema, &example), "{example}");
    }
}

#[tokio::test]
async fn update_plan_passes_the_plan_on() {
    let place = Place::new(&[]);
    let entries =
        json!([{"content": "a", "status": "completed"}, {"step": "b", "status": "in-progress"}]);
    let output = place
        .run("update_plan", json!({"entries": entries}))
        .await
        .unwrap();
    assert_eq!(output.content, "Plan updated: 1 of 2 steps done.");
    let plan = output.plan.unwrap();
    assert_eq!(
        (plan[1].content.as_str(), plan[1].status),
        ("b", PlanStatus::InProgress)
    );
    let empty = place
        .answer(
            "update_plan",
            json!({"entries": [{"content": " ", "status": "pending"}]}),
        )
        .await;
    assert_eq!(
        empty,
        "error: `entries[0].content` is empty; say what is to be done"
    );
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let place = Place::new(&[("a", "x\n")]);
    place.context.cancel.cancel();
    for (name, arguments) in [
        ("read_file", json!({"path": "a"})),
        ("list_files", json!({})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
        (
            "edit_file",
            json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]}),
        ),
        ("write_file", json!({"path": "a", "content": "y"})),
    ] {
        place.check(name, arguments, "error: cancelled").await;
    }
    assert_eq!(place.on_disk("a"), "x\n");
}

#[test]
fn kinds_distinguish_reading_from_writing() {
    let writing = |tool: &Arc<dyn Tool>| !tool.kind().is_read_only();
    let names: Vec<_> = all(Editing::Replacements)
        .iter()
        .filter(|tool| writing(tool))
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["edit_file", "write_file", "run_command"]);
    assert!(!ToolKind::Execute.is_read_only());
}
