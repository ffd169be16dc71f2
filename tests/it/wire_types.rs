//! The editor plugins' types, generated from the Rust types of the protocol.
//!
//! `TANDEM_WRITE_TYPES=1 cargo test --test it wire_types` writes the two files; without it, the test reports when one of
//! them is out of date.

mod lua;
mod typescript;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use tandem::protocol::{acp, ext};

/// A field of a definition: name, schema, whether it is required.
fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value, bool)> {
    let required = schema["required"].as_array();
    let is_required =
        move |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, schema)| (name, schema, is_required(name)))
}

/// The alternatives of an enum.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| schema[key].as_array())
}

/// An object's parts other than its own fields.
fn bases(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["allOf"].as_array().into_iter().flatten()
}

fn has_fields(schema: &Value) -> bool {
    schema["properties"].is_object()
}

/// The values of an enumeration, if a schema is one.
fn words(schema: &Value) -> Option<Vec<String>> {
    let word = |value: &Value| value.is_string().then(|| value.to_string());
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(word).collect();
    }
    word(&schema["const"]).map(|word| vec![word])
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// The first sentence of a description. The one of `_meta` is the same everywhere.
fn summary(schema: &Value) -> Option<String> {
    let text = schema["description"]
        .as_str()
        .filter(|text| !text.contains("The _meta property is reserved"))?;
    let paragraph = text.split("\n\n").next()?.replace('\n', " ");
    Some(
        paragraph
            .split_once(". ")
            .map_or(paragraph.clone(), |(first, _)| format!("{first}.")),
    )
}

/// The definitions of all messages that a plugin sends or reads, and of their parts.
fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    macro_rules! add {
        ($($message:ty),* $(,)?) => { $( generator.subschema_for::<$message>(); )* };
    }
    add!(
        acp::NewSessionRequest,
        acp::NewSessionResponse,
        acp::LoadSessionRequest,
        acp::LoadSessionResponse,
        acp::ResumeSessionRequest,
        acp::ResumeSessionResponse,
        acp::ListSessionsRequest,
        acp::ListSessionsResponse,
        acp::CloseSessionRequest,
        acp::PromptRequest,
        acp::PromptResponse,
        acp::CancelNotification,
        acp::SetSessionModeRequest,
        acp::SetSessionConfigOptionRequest,
        acp::SetSessionConfigOptionResponse,
        acp::SessionNotification,
        acp::RequestPermissionRequest,
        acp::RequestPermissionResponse,
    );
    add!(
        ext::Steer,
        ext::Turn,
        ext::Withdraw,
        ext::Complete,
        ext::Completions,
        ext::Status,
        ext::Failure,
        ext::Review,
        ext::Reviewed,
        ext::DidFocus,
        ext::DidStartTyping,
        ext::Save,
        ext::DiagnosticsParams,
        ext::DiagnosticsResult,
        ext::LanguageParams,
        ext::NextChunk,
        ext::EndAnswer,
        ext::Exit,
        ext::Counts,
        ext::Styled,
        ext::InlineParams,
        ext::InlineUpdate,
        ext::InlineResult,
        ext::KeepInline,
        ext::KeptInline,
        ext::OriginsParams,
        ext::Origin,
        ext::JobsParams,
        ext::Jobs,
        ext::JobOutputParams,
        ext::JobOutput,
        ext::StopJob,
        ext::OpenPort,
        ext::OpenedPort,
        ext::RunInBackground,
        ext::Providers,
        ext::ModelsParams,
        ext::Models,
        ext::CheckParams,
        ext::Checked,
    );
    let mut definitions = generator.take_definitions(true);
    definitions.sort_keys();
    definitions
}

/// The types that the plugin in these directories names as `wire.NAME`, and their parts.
fn used_by(directories: &[PathBuf], definitions: &Map<String, Value>) -> Map<String, Value> {
    let entries = directories.iter().flat_map(|path| path.read_dir().unwrap());
    let sources = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && !path.ends_with("wire_types.lua"));
    let mut names: Vec<String> = Vec::new();
    for source in sources {
        let text = std::fs::read_to_string(source).unwrap();
        names.extend(text.split("wire.").skip(1).map(|rest| {
            let name = rest.split(|letter: char| !letter.is_ascii_alphanumeric());
            name.take(1).collect()
        }));
    }
    let mut used = BTreeSet::new();
    while let Some(name) = names.pop() {
        let Some(schema) = definitions.get(&name) else {
            continue;
        };
        if used.insert(name) {
            let text = schema.to_string();
            let mentioned = text.split("\"#/$defs/").skip(1);
            names.extend(mentioned.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    let is_used = |(name, _): &(&String, &Value)| used.contains(*name);
    let pairs = definitions.iter().filter(is_used);
    pairs
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect()
}

#[test]
fn plugin_types_match_the_server() {
    let definitions = definitions();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let neovim = ["editors/neovim/lua/tandem"].map(|path| root.join(path));
    let vscode = ["editors/vscode/src", "editors/vscode/webview"].map(|path| root.join(path));
    for (path, text) in [
        (
            "editors/vscode/src/wire-types.ts",
            typescript::render(&used_by(&vscode, &definitions)),
        ),
        (
            "editors/neovim/lua/tandem/wire_types.lua",
            lua::render(&used_by(&neovim, &definitions)),
        ),
    ] {
        let file = root.join(path);
        if std::env::var_os("TANDEM_WRITE_TYPES").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let is_current = std::fs::read_to_string(&file).unwrap_or_default() == text;
        assert!(
            is_current,
            "{path} is out of date: run TANDEM_WRITE_TYPES=1 cargo test --test it wire_types"
        );
    }
}
