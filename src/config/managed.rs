//! The administrator's configuration, `/etc/tandem/config.toml` or `%ProgramData%\tandem\config.toml`. It is read last and
//! only restricts: `mode` is the widest one a session may have, limits are the highest, and `ask` and `deny` are added.
//!
//! It fails closed: while anything in it cannot be read, every call requires approval.

use std::path::Path;

use serde_json::Value;

use super::layer::{Layer, remove};
use super::mode::Mode;
use super::problem::{Place, Problem};
use super::restrict::{mode, written};
use super::sources::{MAX_FILE, read_file};

/// What of the file remains to be merged over everything else.
pub(super) struct Managed {
    pub layer: Layer,
    /// The widest mode of any session.
    pub widest: Mode,
    /// Whether a restriction may be missing.
    pub is_broken: bool,
}

/// Reads the file, as far as it restricts what the sources `below` say.
pub(super) fn read(file: &Path, below: &Value, problems: &mut Vec<Problem>) -> Managed {
    let mut mistakes = Vec::new();
    let mut layer = read_file(file, MAX_FILE, &mut mistakes).checked(&mut mistakes);
    let is_broken = !mistakes.is_empty();
    problems.append(&mut mistakes);
    for path in written(&layer.tree) {
        let names: Vec<_> = path.iter().map(String::as_str).collect();
        match names[..] {
            ["mode"] | ["permissions", "ask" | "deny"] => {}
            ["limits", limit] => {
                let (highest, given) = (
                    layer.tree["limits"][limit].as_f64(),
                    below["limits"][limit].as_f64(),
                );
                if given.is_some_and(|given| highest.is_some_and(|highest| given <= highest)) {
                    remove(&mut layer.tree, &path);
                }
            }
            _ => {
                let message = "the administrator's file can only restrict (`mode`, `limits`, `permissions.ask`, \
                    `permissions.deny`); ignored";
                layer.reject(&path, message.to_owned(), problems);
            }
        }
    }
    let named = if layer.tree["mode"].is_string() {
        mode(&layer.tree)
    } else {
        Mode::Auto
    };
    let widest = if is_broken {
        named.min(Mode::Ask)
    } else {
        named
    };
    if mode(below) > widest {
        let place = layer.place(&["mode".to_owned()]).clone();
        layer.set("mode", widest.name(), place);
    } else if layer.tree["mode"].is_string() {
        remove(&mut layer.tree, &["mode".to_owned()]);
    }
    Managed {
        layer,
        widest,
        is_broken,
    }
}

/// If nothing is managed.
impl Default for Managed {
    fn default() -> Self {
        let layer = Layer::new(serde_json::json!({}), Place::Default);
        Self {
            layer,
            widest: Mode::Auto,
            is_broken: false,
        }
    }
}
