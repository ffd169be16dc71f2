//! The rules of the house that no compiler checks: which room may use which, and how large one may grow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What each room may import of ours.
const MAY_IMPORT: [(&str, &[&str]); 12] = [
    ("text", &[]),
    ("rpc", &[]),
    ("config", &[]),
    ("protocol", &[]),
    ("model", &[]),
    ("workspace", &["text"]),
    ("tools", &["workspace", "text"]),
    ("agent", &["model", "tools", "workspace"]),
    ("session", &["agent", "model", "tools", "workspace", "config"]),
    ("server", &["session", "agent::event", "workspace", "rpc", "protocol", "config", "text"]),
    ("cli", &["server", "session", "agent", "model", "tools", "workspace", "rpc", "protocol", "config", "text"]),
    ("main", &["cli"]),
];

#[test]
fn imports_go_one_way() {
    let rooms: BTreeMap<_, _> = MAY_IMPORT.into_iter().collect();
    let mut wrong = Vec::new();
    for file in sources() {
        let room = room_of(&file);
        if room == "lib" {
            continue;
        }
        let allowed = rooms.get(room.as_str()).unwrap_or_else(|| panic!("{room} is no room of the house"));
        let text = std::fs::read_to_string(&file).unwrap();
        let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
        for import in text.split_at(tests).0.split("crate::").skip(1) {
            let target: String = import.chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
            let within = |name: &str| target == name || target.starts_with(&format!("{name}::"));
            if !within(&room) && !allowed.iter().any(|name| within(name)) {
                wrong.push(format!("{}: crate::{target}", file.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "imports that go the wrong way");
}

#[test]
fn every_file_says_its_job() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//!") || first.starts_with("#!["), "{}: no module documentation", file.display());
    }
}

#[test]
fn no_file_outgrows_its_story() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines().count();
        assert!(code <= 500, "{} has {code} lines: split it by meaning", file.display());
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.retain(|path| !path.ends_with("tests.rs") && !path.components().any(|part| part.as_os_str() == "tests"));
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn room_of(file: &Path) -> String {
    let relative = file.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}
