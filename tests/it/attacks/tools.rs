//! The tools of the cases, by the names of the contract, as ours.

use serde_json::{Value, json};

/// Our tool and arguments for those of a case. What is not of the contract is passed on as it is: a model may call
/// anything.
pub fn ours(name: &str, arguments: &Value) -> (String, Value) {
    let of = |key: &str| arguments.get(key).cloned().unwrap_or_default();
    let text = |key: &str| of(key).as_str().unwrap_or_default().to_owned();
    let ours = match name {
        "read" => "read_file",
        "write" => "write_file",
        "edit" => "edit_file",
        "list" => "list_files",
        "search" => "grep",
        "shell" => "run_command",
        "move" => "apply_patch",
        other => other,
    };
    let arguments = match name {
        "edit" => json!({ "path": of("path"), "edits": [{ "old_text": of("old"), "new_text": of("new") }] }),
        "list" => json!({ "path": of("path"), "depth": if of("recursive") == true { 10 } else { 1 } }),
        "move" => {
            let first = |keys: [&str; 3]| keys.iter().map(|key| text(key)).find(|text| !text.is_empty());
            let from = first(["from", "src", "path"]).unwrap_or_default();
            let to = first(["to", "dst", "dest"]).unwrap_or_default();
            json!({ "patch": format!("*** Begin Patch\n*** Update File: {from}\n*** Move to: {to}\n*** End Patch\n") })
        }
        _ => arguments.clone(),
    };
    (ours.to_owned(), arguments)
}
