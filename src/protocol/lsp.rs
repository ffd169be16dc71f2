//! The Language Server Protocol: the types of `gen-lsp-types`, and the part of `initialize` that tandem reads.
//!
//! `InitializeParams` itself is not used: one capability in a shape its type does not know would fail the whole
//! handshake, so only the fields that matter are read, each on its own.

pub use gen_lsp_types::*;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text;

/// The fields of `initialize` that tandem reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Handshake {
    /// The editor's process; tandem exits when it dies.
    #[serde(deserialize_with = "lenient")]
    pub process_id: Option<u32>,
    /// The client.
    #[serde(deserialize_with = "lenient")]
    pub client_info: Client,
    /// The root folder, in the older field for a single one.
    #[serde(deserialize_with = "lenient")]
    pub root_uri: Option<String>,
    /// The folders.
    #[serde(deserialize_with = "lenient")]
    pub workspace_folders: Vec<Folder>,
    /// tandem's settings, in the shape of `config.toml`.
    pub initialization_options: Value,
    /// The client's capabilities.
    pub capabilities: Value,
}

impl From<Position> for text::Position {
    fn from(Position { line, character }: Position) -> Self {
        Self { line, character }
    }
}

impl From<Range> for text::Range {
    fn from(Range { start, end }: Range) -> Self {
        Self {
            start: start.into(),
            end: end.into(),
        }
    }
}

/// A client.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Client {
    /// Its name; empty if it has not said.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
}

/// A workspace folder.
#[derive(Debug, Clone, Deserialize)]
pub struct Folder {
    /// Its location.
    pub uri: String,
}

impl Handshake {
    /// The capability at a path such as `window.workDoneProgress`.
    pub fn capability(&self, path: &str) -> Option<&Value> {
        path.split('.')
            .try_fold(&self.capabilities, |value, key| value.get(key))
            .filter(|value| !value.is_null())
    }

    /// Whether the client sets a capability to `true`.
    pub fn can(&self, path: &str) -> bool {
        self.capability(path)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// The URIs of all folders, the older field included.
    pub fn folders(&self) -> Vec<String> {
        if self.workspace_folders.is_empty() {
            return self.root_uri.iter().cloned().collect();
        }
        let folders = self.workspace_folders.iter();
        folders.map(|folder| folder.uri.clone()).collect()
    }
}

/// Treats a field of the wrong shape as absent.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_field_affects_nothing_else() {
        let handshake: Handshake = serde_json::from_value(serde_json::json!({
            "processId": "seven", "rootUri": "file:///w", "workspaceFolders": null,
            "capabilities": { "window": { "workDoneProgress": true, "showMessage": 3 } }
        }))
        .unwrap();
        assert_eq!(handshake.process_id, None);
        assert_eq!(handshake.folders(), ["file:///w"]);
        assert!(handshake.can("window.workDoneProgress"));
        assert!(!handshake.can("window.showMessage"));
        assert!(!handshake.can("nothing.here"));
    }
}
