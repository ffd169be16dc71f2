//! Resolves a call to a tool and its arguments, whatever agent the model learned its names from. Pure.
//!
//! Invariant: everything about a call is decided on the result of this. A call that is translated does no more than the
//! same call with our own names.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::apply_patch::ApplyPatch;
use super::edit_file::EditFile;
use super::run_command::RunCommand;
use super::{Tool, TypedTool as _};
use crate::calls::{Catalog, arguments, heredoc, names, text};
use crate::text::repair::PATCH;

/// A resolved call.
#[derive(Clone)]
pub struct Resolved {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Its arguments.
    pub arguments: Value,
    /// How it was interpreted, for the model.
    pub note: Option<String>,
}

impl Resolved {
    /// The arguments as the tool takes them: repaired if they don't match its schema.
    pub fn as_taken(&self) -> Value {
        arguments::coerced(&self.arguments, &self.tool.parameters())
    }
}

/// The tool with this name, ours or another agent's.
pub fn tool(tools: &[Arc<dyn Tool>], name: &str) -> Option<Arc<dyn Tool>> {
    if let Some(tool) = super::find(tools, name) {
        return Some(Arc::clone(tool));
    }
    let ways = ways_to_edit(tools);
    let others = ways
        .iter()
        .filter(|way| super::find(tools, way.name()).is_none());
    let all: Vec<&Arc<dyn Tool>> = tools.iter().chain(others).collect();
    let ours: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    let name = names::resolve(name, &ours)?;
    all.into_iter().find(|tool| tool.name() == name).cloned()
}

/// Resolves a call.
///
/// # Errors
/// No tool matches; the text is for the model.
pub fn resolve(
    tools: &[Arc<dyn Tool>],
    name: &str,
    mut arguments: Value,
) -> Result<Resolved, String> {
    let is_empty = arguments.as_object().is_none_or(Map::is_empty);
    if is_empty
        && super::find(tools, name).is_none()
        && let Some(call) = text::packed(name, &|name| tool(tools, name).is_some())
    {
        return resolve(tools, &call.name, Value::Object(call.arguments));
    }
    let mut meant = tool(tools, name);
    // The editors of Anthropic and Amazon are several tools in one; an argument names which.
    let takes_command =
        |tool: &Arc<dyn Tool>| tool.parameters()["properties"].get("command").is_some();
    if super::find(tools, name).is_none()
        && meant.as_ref().is_some_and(|tool| !takes_command(tool))
        && let Some(Value::String(command)) = arguments
            .as_object_mut()
            .and_then(|fields| fields.remove("command"))
    {
        meant = tool(tools, &command);
    } else {
        meant = meant.or_else(|| fitting(tools, name, &arguments));
    }
    let tool = meant.ok_or_else(|| unknown(tools, name))?;
    let (tool, arguments) = edited(tools, tool, arguments);
    let tool = tool.meant(&arguments).unwrap_or(tool);
    let note =
        (tool.name() != name).then(|| format!("[`{}` was run as `{}`]", shown(name), tool.name()));
    Ok(Resolved {
        tool,
        arguments,
        note,
    })
}

/// The tool that an unknown name hints at, if the arguments are its own: several required ones, or one if the tool only
/// reads and the unknown name ends with its name. Anything after our name asks for more.
fn fitting(tools: &[Arc<dyn Tool>], name: &str, arguments: &Value) -> Option<Arc<dyn Tool>> {
    let fits = |tool: &&Arc<dyn Tool>| {
        let schema = tool.parameters();
        let required = schema["required"].as_array().map_or(0, Vec::len);
        let behind = names::bare(name)
            .split_once(tool.name())
            .map(|(_, behind)| behind);
        let is_named = tool.name().contains('_') && behind.is_some();
        behind.is_none_or(str::is_empty)
            && required > usize::from(!(is_named && tool.kind().is_read_only()))
            && names::hints_at(name, tool.name())
            && arguments::fit(arguments, &schema).is_ok()
    };
    tools.iter().find(fits).cloned()
}

/// The tools of a session, as used to decide what a model meant.
impl Catalog for Arc<[Arc<dyn Tool>]> {
    fn names(&self) -> Vec<&str> {
        self.iter().map(|tool| tool.name()).collect()
    }

    fn resolve(&self, name: &str) -> Option<String> {
        tool(self, name).map(|tool| tool.name().to_owned())
    }

    fn parameters(&self, name: &str) -> Option<Value> {
        tool(self, name).map(|tool| tool.parameters())
    }

    fn only_reads(&self, name: &str) -> bool {
        tool(self, name).is_some_and(|tool| tool.kind().is_read_only())
    }

    fn accept(&self, name: &str, arguments: &Map<String, Value>) -> Result<(), String> {
        let Resolved {
            tool, arguments, ..
        } = resolve(self, name, Value::Object(arguments.clone()))?;
        arguments::fit(&arguments, &tool.parameters())
    }
}

/// A model is offered one way to edit, but may know another.
fn ways_to_edit(tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
    if super::edit_name(tools).is_some() {
        vec![Arc::new(EditFile), Arc::new(ApplyPatch)]
    } else {
        Vec::new()
    }
}

/// Patches and replacements are each passed to the tool that handles them, whatever tool was named.
fn edited(
    tools: &[Arc<dyn Tool>],
    tool: Arc<dyn Tool>,
    arguments: Value,
) -> (Arc<dyn Tool>, Value) {
    let ways = ways_to_edit(tools);
    let way = |name: &str| ways.iter().find(|way| way.name() == name).cloned();
    let patch = match tool.name() {
        RunCommand::NAME => of_command(tools, &arguments),
        ApplyPatch::NAME if arguments.get("command").is_some() => of_command(tools, &arguments),
        // An edit may quote a patch.
        EditFile::NAME if arguments::fit(&arguments, &tool.parameters()).is_err() => {
            let values = arguments.as_object().into_iter().flat_map(Map::values);
            let mut texts = values.filter_map(Value::as_str);
            let patch = texts.find(|text| text.trim_start().starts_with(PATCH.0));
            patch.map(str::to_owned)
        }
        _ => None,
    };
    if let Some(text) = patch
        && let Some(tool) = way(ApplyPatch::NAME)
    {
        return (tool, json!({ "patch": text }));
    }
    if tool.name() == ApplyPatch::NAME
        && let Some(edit) = way(EditFile::NAME)
        && arguments::fit(&arguments, &edit.parameters()).is_ok()
    {
        return (edit, arguments);
    }
    (tool, arguments)
}

/// The patch that a command applies.
fn of_command(tools: &[Arc<dyn Tool>], arguments: &Value) -> Option<String> {
    let run = super::find(tools, RunCommand::NAME)?;
    heredoc::patch(&arguments::coerced(arguments, &run.parameters()))
}

fn unknown(tools: &[Arc<dyn Tool>], name: &str) -> String {
    let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
    format!(
        "unknown tool `{}`; available tools: {}",
        shown(name),
        names.join(", ")
    )
}

/// The model's name for a tool, which may be very long.
fn shown(name: &str) -> &str {
    name.split_at(name.floor_char_boundary(80)).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{Editing, all};

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a case writes its JSON in place"
    )]
    fn check(name: &str, arguments: Value, expected: &str, passed: Value) {
        let tools = all(Editing::Replacements);
        let resolved = resolve(&tools, name, arguments).unwrap();
        assert_eq!(
            (resolved.tool.name(), &resolved.arguments),
            (expected, &passed)
        );
        assert_eq!(resolved.note.is_some(), name != expected);
    }

    #[test]
    fn calls_resolve_to_the_intended_tool() {
        check(
            "bash",
            json!({ "command": "ls" }),
            "run_command",
            json!({ "command": "ls" }),
        );
        check(
            "read_file",
            json!({ "path": "a" }),
            "read_file",
            json!({ "path": "a" }),
        );
        let edit = json!({ "path": "a", "old_str": "x", "new_str": "y" });
        let mut sent = edit.clone();
        sent["command"] = "str_replace".into();
        check("str_replace_editor", sent, "edit_file", edit.clone());
        check(
            "str_replace_based_edit_tool",
            json!({ "command": "view", "path": "a" }),
            "read_file",
            json!({ "path": "a" }),
        );
        check("edit_block", edit.clone(), "edit_file", edit.clone());
        let made = json!({ "path": "a", "content": "x" });
        let mut sent = made.clone();
        sent["command"] = "create".into();
        check("fs_write", sent, "write_file", made);
        check("apply_patch", edit.clone(), "edit_file", edit);
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        check(
            "apply_patch",
            json!({ "input": patch }),
            "apply_patch",
            json!({ "input": patch }),
        );
        check(
            "edit",
            json!({ "patch": patch }),
            "apply_patch",
            json!({ "patch": patch }),
        );
        check(
            "shell",
            json!({ "command": ["apply_patch", patch] }),
            "apply_patch",
            json!({ "patch": patch }),
        );
    }

    /// Spellings of any tool's own name, the offered editing tool's included.
    #[test]
    fn every_spelling_of_an_offered_tool_is_that_tool() {
        for editing in [Editing::Replacements, Editing::Patches] {
            let tools = all(editing);
            for name in tools.iter().map(|tool| tool.name()) {
                let title = |part: &str| {
                    part.chars()
                        .take(1)
                        .flat_map(char::to_uppercase)
                        .chain(part.chars().skip(1))
                        .collect()
                };
                let camel: String = name
                    .split('_')
                    .map(|part| -> String { title(part) })
                    .collect();
                let kebab = name.replace('_', "-");
                let spellings = [
                    "",
                    "functions.",
                    "default_api.",
                    "tools.",
                    "mcp__tandem__",
                    "developer__",
                ]
                .map(|prefix| format!("{prefix}{name}"));
                let leaks = [
                    ":0",
                    ":17",
                    "<|channel|>commentary",
                    "<|channel|>json",
                    "_2",
                    " ",
                    "()",
                ]
                .map(|suffix| format!("functions.{name}{suffix}"));
                for spelled in
                    spellings
                        .into_iter()
                        .chain(leaks)
                        .chain([camel, kebab, name.to_uppercase()])
                {
                    let resolved = tool(&tools, &spelled);
                    assert_eq!(
                        resolved.as_ref().map(|tool| tool.name()),
                        Some(name),
                        "{spelled}"
                    );
                }
            }
        }
    }

    #[test]
    fn unknown_tools_are_refused() {
        let tools = all(Editing::Replacements);
        for (name, arguments) in [
            ("nothing", json!({})),
            ("str_replace_editor", json!({ "command": "undo_edit" })),
            (
                "fs_write",
                json!({ "command": "append", "path": "a", "content": "x" }),
            ),
            ("delete_edit", json!({ "path": "a" })),
        ] {
            let why = resolve(&tools, name, arguments).err().unwrap();
            assert!(why.contains(name) && why.contains("read_file"), "{why}");
        }
        assert!(
            resolve(&[], "apply_patch", json!({})).is_err(),
            "a tool that is not offered is not there"
        );
    }

    #[test]
    fn text_calls_must_match_the_schema() {
        let tools = all(Editing::Replacements);
        let accepts = |name: &str, arguments: Value| {
            tools.accept(name, arguments.as_object().unwrap()).is_ok()
        };
        assert!(accepts("read_file", json!({ "path": "a" })));
        assert!(accepts("Bash", json!({ "cmd": "ls" })));
        assert!(!accepts("write_file", json!({ "content": "x" })));
        assert!(!accepts("read_file", json!({ "path": "a", "stuff": 1 })));
        assert!(!accepts("send_mail", json!({})));
    }
}
