//! The MCP servers that the workspace and other agents have configured. They are offered to the person, and neither
//! started nor copied unasked.
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Settings;
use super::sources::{MAX_OF_WORKSPACE, read_text};

/// The files, relative to the workspace or to the home directory, and the field with the servers.
const OF_WORKSPACE: [(&str, &str); 3] = [
    (".mcp.json", "mcpServers"),
    (".vscode/mcp.json", "servers"),
    (".cursor/mcp.json", "mcpServers"),
];
/// The maximum size of the person's own files, in bytes: Claude Code's also has its history.
const MAX_OF_PERSON: u64 = 16 << 20;
const OF_PERSON: [(&str, &str); 6] = [
    (".claude.json", "mcpServers"),
    (".codex/config.toml", "mcp_servers"),
    (".copilot/mcp-config.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".gemini/settings.json", "mcpServers"),
];

/// A server in a file of another program.
#[derive(Debug)]
pub struct Importable {
    /// Its name there.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// Its options as `config.toml` has them, or why it cannot be copied.
    pub options: Result<Vec<(&'static str, Value)>, String>,
}

/// The servers of all files; of several with one name, the first, which is the person's own if they have one.
pub fn importable(settings: &Settings, workspace: &Path) -> Vec<Importable> {
    let home = settings.environment().home();
    let of_workspace =
        OF_WORKSPACE.map(|(file, field)| (workspace.join(file), field, MAX_OF_WORKSPACE));
    let of_person = home
        .into_iter()
        .flat_map(|home| OF_PERSON.map(|(file, field)| (home.join(file), field, MAX_OF_PERSON)));
    let mut found: Vec<Importable> = Vec::new();
    // A repository must not put its own server in the place of one that the person knows by that name.
    for (file, field, most) in of_person.chain(of_workspace) {
        let Some(servers) = read(&file, field, most) else {
            continue;
        };
        for (name, server) in servers {
            if found.iter().all(|other| other.name != name) {
                let options = options(&server);
                let file = file.clone();
                found.push(Importable {
                    name,
                    file,
                    options,
                });
            }
        }
    }
    found
}

/// The servers in a file; a file that is missing, damaged or too large has none.
fn read(file: &Path, field: &str, most: u64) -> Option<serde_json::Map<String, Value>> {
    let text = read_text(file, most).ok()?;
    let mut whole: Value = if file.extension().is_some_and(|ending| ending == "toml") {
        serde_json::to_value(toml::from_str::<toml::Table>(&text).ok()?).ok()?
    } else {
        serde_json::from_str(&text).ok()?
    };
    match whole[field].take() {
        Value::Object(servers) => Some(servers),
        _ => None,
    }
}

/// What another program configured, as tandem's options.
fn options(server: &Value) -> Result<Vec<(&'static str, Value)>, String> {
    if server.to_string().contains("${") {
        return Err("contains variables (`${…}`), which tandem does not expand".to_owned());
    }
    let maps = |fields: &[(&'static str, &str)]| {
        let filled = fields.iter().filter_map(|(option, field)| {
            let value = server[*field].as_object().filter(|map| !map.is_empty())?;
            Some((*option, Value::Object(value.clone())))
        });
        filled.collect::<Vec<_>>()
    };
    if let Some(command) = server["command"].as_str() {
        let mut words = vec![Value::from(command)];
        words.extend(server["args"].as_array().into_iter().flatten().cloned());
        let mut options = maps(&[("env", "env")]);
        options.insert(0, ("command", words.into()));
        return Ok(options);
    }
    let url = ["httpUrl", "url", "serverUrl"]
        .into_iter()
        .find_map(|field| server[field].as_str());
    match url {
        _ if server["type"] == "sse" => Err("uses SSE, which tandem does not support".to_owned()),
        Some(url) => {
            let mut options = maps(&[("headers", "headers"), ("headers", "http_headers")]);
            options.insert(0, ("url", url.into()));
            Ok(options)
        }
        None => Err("has neither a command nor a URL".to_owned()),
    }
}
