//! What the files are like afterwards, and what is in them that must not be.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::{Found, must, short};
use crate::attacks::case::base64;
use crate::attacks::faults::everything;
use crate::attacks::inputs::Run;
use crate::attacks::scene::Scene;

pub const KINDS: &[&str] = &[
    "absent",
    "unchanged",
    "file_is",
    "file_is_one_of",
    "bytes_are",
    "bytes_one_of",
    "file_lines",
    "not_in",
    "not_clobbered_unsaved",
    "preview_hash_equals_written",
    "modes_private",
];

pub fn ask(run: &Run, kind: &str, oracle: &Value) -> Found {
    let path = Path::new(oracle["path"].as_str().unwrap_or_default());
    let bytes = std::fs::read(path).ok();
    let shown = || bytes.as_deref().map_or("nothing".to_owned(), |bytes| short(&String::from_utf8_lossy(bytes)));
    let text = |value: &Value| value.as_str().unwrap_or_default().as_bytes().to_vec();
    let list = |key: &str| oracle[key].as_array().cloned().unwrap_or_default();
    match kind {
        "absent" => must(!path.exists() && !path.is_symlink(), || format!("{} is there: {}", path.display(), shown())),
        "unchanged" => must(bytes == run.scene.snapshot(path), || format!("{} is now {}", path.display(), shown())),
        "file_is" => must(bytes == Some(text(&oracle["text"])), || format!("it is {}", shown())),
        "file_is_one_of" => {
            must(bytes.as_ref().is_some_and(|bytes| list("texts").iter().any(|one| text(one) == *bytes)), || {
                format!("it is {}", shown())
            })
        }
        "bytes_are" => must(bytes == oracle["b64"].as_str().map(base64), || format!("they are {bytes:?}")),
        "bytes_one_of" => must(
            bytes
                .as_ref()
                .is_some_and(|bytes| list("b64").iter().any(|one| one.as_str().map(base64).as_ref() == Some(bytes))),
            || format!("they are {bytes:?}"),
        ),
        "file_lines" => {
            let lines = bytes.as_deref().map_or(0, |bytes| String::from_utf8_lossy(bytes).lines().count() as u64);
            let (min, max) = (oracle["min"].as_u64().unwrap_or(0), oracle["max"].as_u64().unwrap_or(u64::MAX));
            must((min..=max).contains(&lines), || format!("{lines} lines"))
        }
        "not_in" => not_in(run, oracle),
        "not_clobbered_unsaved" => not_clobbered(run, oracle["path"].as_str().unwrap_or_default()),
        "preview_hash_equals_written" => preview_is_written(run),
        _ => modes_private(&run.scene),
    }
}

fn not_in(run: &Run, oracle: &Value) -> Found {
    let text = oracle["text"].as_str().unwrap_or_default();
    // Inside JSON a text may be written otherwise.
    let quoted = serde_json::to_string(text).unwrap();
    let quoted = quoted.trim_matches('"');
    let holds = |body: &str| body.contains(text) || body.contains(quoted);
    for place in oracle["where"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let found = match place {
            "model_requests" => run.notes.hits.iter().find(|hit| holds(&hit.body)).map(|hit| hit.body.clone()),
            "client_notifications" => {
                run.notes.heard.iter().map(|heard| heard.message.to_string()).find(|message| holds(message))
            }
            "log_files" => in_files(&[run.scene.stderr(), run.scene.place("STATE")], holds),
            "session_files" => in_files(&[run.scene.place("STATE")], holds),
            other => return Err(format!("no place is called `{other}`")),
        };
        if let Some(found) = found {
            return Err(format!("`{text}` in {place}: {}", short(&found)));
        }
    }
    Ok(())
}

fn in_files(tops: &[std::path::PathBuf], holds: impl Fn(&str) -> bool) -> Option<String> {
    let all = tops.iter().flat_map(|top| everything(top));
    all.filter_map(|path| Some((std::fs::read(&path).ok()?, path)))
        .find(|(bytes, _)| holds(&String::from_utf8_lossy(bytes)))
        .map(|(_, path)| path.display().to_string())
}

/// The file behind an unsaved document is not written, and the document is changed through the editor or not at all.
fn not_clobbered(run: &Run, name: &str) -> Found {
    let path = run.scene.place("WS").join(name);
    let disk = std::fs::read_to_string(&path).unwrap_or_default();
    let buffer = run.server.document(&format!("file://{}", path.display()));
    must(Some(disk.as_bytes().to_vec()) == run.scene.snapshot(&path), || {
        format!("the file was written behind the editor, which has {buffer:?}: {disk}")
    })
}

/// The last change that a question showed is what is in the file.
fn preview_is_written(run: &Run) -> Found {
    let questions = run.notes.heard.iter().filter(|heard| heard.message["method"] == "session/request_permission");
    let shown = questions.flat_map(|heard| {
        let content = heard.message["params"]["toolCall"]["content"].as_array().cloned().unwrap_or_default();
        content.into_iter().filter(|content| content["type"] == "diff")
    });
    let Some(diff) = shown.last() else { return Err("no question showed a change".to_owned()) };
    let written = std::fs::read(diff["path"].as_str().unwrap_or_default()).ok();
    must(written == diff["newText"].as_str().map(|text| text.as_bytes().to_vec()), || {
        format!("shown {:?}, written {written:?}", diff["newText"])
    })
}

/// Nobody but the person can read what is kept.
fn modes_private(scene: &Scene) -> Found {
    let all = everything(&scene.place("STATE"));
    for path in all.iter().filter(|path| path.exists()) {
        let mode = path.metadata().map_err(|error| error.to_string())?.permissions().mode();
        let of_others = mode & 0o077;
        must(of_others == 0, || format!("{} has mode {mode:o}", path.display()))?;
    }
    must(all.iter().any(|path| path.is_file()), || "nothing was kept, so that says nothing".to_owned())
}
