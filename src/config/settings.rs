//! All layers merged: valid settings, each with its origin.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::commands::{self, UserCommand};
use super::completion::Completion;
use super::edit::dotted;
use super::environment::Environment;
use super::layer::{KeyPath, Layer, overlay};
use super::managed;
use super::mode::Mode;
use super::model::{Choice, ProviderEntry};
use super::options::{
    CommandLine, ExploreOptions, FinishOptions, LimitOptions, LogLevel, McpOptions, Options,
    Permissions, QuickFixes,
};
use super::problem::{Place, Problem};
use super::restrict::restrict;
use super::sources::{
    MAX_FILE, MAX_OF_WORKSPACE, WORKSPACE_FILE, built_in, environment_layer, read_file,
};
use crate::domain::{
    Allowance, Bounds, EditorModels, Endpoint, Failure, Finish, Limits, without_password,
};
use crate::text::redact::{Redactor, is_secret, secrets_in};

/// Sources besides the user's file and the environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The workspace folders.
    pub workspaces: &'a [PathBuf],
    /// The editor's settings, as JSON.
    pub editor: Option<&'a Value>,
    /// The command-line flags.
    pub flags: Flags<'a>,
}

/// Options that can be set by flags.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags<'a> {
    /// `--model`.
    pub model: Option<&'a str>,
    /// `--mode`.
    pub mode: Option<Mode>,
}

/// The merged configuration: valid and complete.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model new sessions use.
    pub model: Result<Endpoint, Failure>,
    /// The mode new sessions start in.
    pub mode: Mode,
    /// The widest mode a session may be put in.
    pub widest_mode: Mode,
    /// Whether restrictions may be missing because of a mistake: until it is corrected, every call requires approval.
    pub lacks_restrictions: bool,
    /// Limits for a turn and a session.
    pub limits: Limits,
    /// The checks at the end of a turn.
    pub finish: Finish,
    /// How long a command may run unless the model requests another timeout, and an MCP call without an answer.
    pub command_timeout: Duration,
    /// How long the first prompt waits for MCP servers.
    pub connect_timeout: Duration,
    /// The permission rules of all sources.
    pub permissions: Permissions,
    /// The MCP servers by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Inline completion, if it is configured.
    pub completion: Option<Completion>,
    /// Settings of `explore`.
    pub explore: Explore,
    /// The state directory; `None` without a home directory.
    pub state_dir: Option<PathBuf>,
    /// How much is logged.
    pub log: LogLevel,
    /// All problems in the sources.
    pub problems: Vec<Problem>,
    /// The editor's own models, where it has some: set by the server.
    pub editor_models: Option<Arc<dyn EditorModels>>,
    options: Options,
    environment: Environment,
    merged: Merged,
}

/// Settings of the sub-agents of `explore`.
#[derive(Debug, Clone)]
pub struct Explore {
    /// `provider/model`; `None` for the session's own.
    pub model: Option<String>,
    /// The limits of each call.
    pub bounds: Bounds,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServer {
    /// A program that speaks MCP on standard input and output.
    Command {
        /// The program with its arguments.
        command: CommandLine,
        /// Environment variables for it.
        env: BTreeMap<String, String>,
        /// The working directory, relative to the workspace; `None` for the home directory.
        cwd: Option<PathBuf>,
    },
    /// A server reached over HTTP.
    Url {
        /// Its URL.
        url: String,
        /// HTTP headers for it.
        headers: BTreeMap<String, String>,
        /// The OAuth client ID to log in with.
        client_id: Option<String>,
        /// The secret that belongs to it.
        client_secret: Option<String>,
        /// Whether the editor supplied the server.
        is_supplied: bool,
    },
    /// A server that the editor has, reached over its own connection.
    Editor {
        /// What the editor calls it.
        id: String,
    },
}

/// An effective value, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, such as `limits.iterations`.
    pub key: String,
    /// The value as JSON; secrets are `***`.
    pub value: String,
    /// Where it was written; a list may be written in several places.
    pub origins: Vec<Place>,
}

/// All layers merged into one tree.
#[derive(Debug, Clone)]
struct Merged {
    tree: Value,
    origins: BTreeMap<KeyPath, Vec<Place>>,
}

impl Settings {
    /// Reads the files and the environment, for these workspace folders.
    pub fn of(environment: &Environment, workspaces: &[PathBuf]) -> Self {
        let sources = Sources {
            workspaces,
            ..Sources::default()
        };
        Self::load(environment, &sources)
    }

    /// Reads all sources. Never fails: mistakes are in [`Self::problems`].
    pub fn load(environment: &Environment, sources: &Sources<'_>) -> Self {
        let mut problems = Vec::new();
        let mut merged = Merged {
            tree: json!({}),
            origins: BTreeMap::new(),
        };
        merged.lay(&built_in());
        if let Some(file) = environment.config_file() {
            let layer = read_file(&file, MAX_FILE, &mut problems);
            merged.lay(&layer.checked(&mut problems));
        }
        for workspace in sources.workspaces {
            let file = workspace.join(WORKSPACE_FILE);
            let layer = read_file(&file, MAX_OF_WORKSPACE, &mut problems);
            let mut layer = layer.checked(&mut problems);
            restrict(&mut layer, &merged.tree, &mut problems);
            merged.lay(&layer);
        }
        let editor = sources.editor.cloned().unwrap_or_else(|| json!({}));
        let mut editor = Layer::new(editor, Place::Editor);
        if editor.tree.get("log").is_some() {
            let message = "the log begins before an editor sends its settings; set `log` in config.toml, or TANDEM_LOG";
            editor.reject(&["log".to_owned()], message.to_owned(), &mut problems);
        }
        let flags = json!({"model": sources.flags.model, "mode": sources.flags.mode});
        for layer in [
            environment_layer(environment),
            editor,
            Layer::new(flags, Place::Flag),
        ] {
            merged.lay(&layer.checked(&mut problems));
        }
        let managed = environment
            .managed_file()
            .map(|file| managed::read(file, &merged.tree, &mut problems));
        let managed = managed.unwrap_or_default();
        merged.lay(&managed.layer);
        let mut settings = Self::new(environment, merged, problems);
        settings.widest_mode = managed.widest;
        if managed.is_broken {
            settings.lacks_restrictions = true;
            settings.finish.command = None;
        }
        settings
    }

    /// The environment the process was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    fn new(environment: &Environment, merged: Merged, mut problems: Vec<Problem>) -> Self {
        let options: Options = serde_json::from_value(merged.tree.clone())
            .expect("layers that are valid alone are valid together");
        let choice = Choice {
            options: &options,
            environment,
        };
        let model = choice.default_model();
        let mut no_model = |section: &str, why: Failure| {
            let path = [section.to_owned(), "model".to_owned()];
            problems.push(Problem {
                place: merged.place(&path),
                key: dotted(&path),
                message: why.message,
                hides_restrictions: false,
            });
        };
        let completion = choice.completion().unwrap_or_else(|why| {
            no_model("completion", why);
            None
        });
        if let Some(Err(why)) = options
            .explore
            .model
            .as_deref()
            .map(|name| choice.model_named(name))
        {
            no_model("explore", why);
        }
        let mcp = options
            .mcp
            .iter()
            .filter_map(|(name, server)| match mcp_server(server) {
                Ok(server) => Some((name.clone(), server)),
                Err(message) => {
                    let path = ["mcp".to_owned(), name.clone()];
                    problems.push(Problem {
                        place: merged.place(&path),
                        key: dotted(&path),
                        message: message.to_owned(),
                        hides_restrictions: false,
                    });
                    None
                }
            });
        let mcp = mcp.collect();
        problems.sort_by(|one, other| one.place.cmp(&other.place));
        Self {
            mcp,
            model,
            completion,
            explore: explore(&options.explore),
            mode: options.mode.unwrap_or_default(),
            widest_mode: Mode::Auto,
            lacks_restrictions: problems.iter().any(|problem| problem.hides_restrictions),
            limits: limits(&options.limits),
            finish: finish(&options.finish),
            command_timeout: seconds(options.limits.command_timeout),
            connect_timeout: seconds(options.limits.connect_timeout),
            permissions: options.permissions.clone(),
            state_dir: options
                .state_dir
                .clone()
                .or_else(|| environment.state_folder().map(Path::to_owned)),
            log: options.log.unwrap_or_default(),
            problems,
            editor_models: None,
            environment: environment.clone(),
            options,
            merged,
        }
    }

    /// Whether every call requires approval until this problem is corrected. The administrator's file fails closed: there,
    /// this can be any mistake.
    pub fn lacks_restrictions_until_corrected(&self, problem: &Problem) -> bool {
        let managed = self.environment.managed_file();
        let is_managed =
            matches!(&problem.place, Place::File { file, .. } if Some(file.as_path()) == managed);
        problem.hides_restrictions || (is_managed && self.lacks_restrictions)
    }

    /// Whether no source names a model, so that one of a local server may be used.
    pub fn names_no_model(&self) -> bool {
        let Options {
            model, base_url, ..
        } = &self.options;
        self.model.is_err() && model.is_none() && base_url.is_none()
    }

    /// The model that was chosen because its provider's key is set.
    pub fn model_of_a_key(&self) -> Option<&Endpoint> {
        let chosen = self.options.model.is_none();
        self.model.as_ref().ok().filter(|_| chosen)
    }

    /// Another model than the configured one, by `provider/model`.
    ///
    /// # Errors
    /// The provider is unknown or has no base URL.
    pub fn model_named(&self, name: &str) -> Result<Endpoint, Failure> {
        self.choice().model_named(name)
    }

    /// A model by `provider/model`, at another base URL than the configured one if `base_url` is given.
    ///
    /// # Errors
    /// The provider is unknown, or its base URL is missing or invalid.
    pub fn model_at(&self, name: &str, base_url: Option<&str>) -> Result<Endpoint, Failure> {
        self.choice().model_at(name, base_url)
    }

    /// All known providers with their base URLs: the built-in ones, then the configured ones.
    pub fn providers(&self) -> Vec<ProviderEntry> {
        self.choice().providers()
    }

    /// The models known without asking a server, as `provider/model`, the configured one first.
    pub fn known_models(&self) -> Vec<String> {
        self.choice().known_models()
    }

    /// The user's configuration file, whether it exists or not.
    pub fn config_file(&self) -> Option<PathBuf> {
        self.environment.config_file()
    }

    /// The person's own slash commands, read from their files now.
    pub fn commands(&self) -> Vec<UserCommand> {
        let file = self.environment.config_file();
        let folder = file.as_deref().and_then(Path::parent);
        folder
            .map(|folder| commands::read(&folder.join("commands")))
            .unwrap_or_default()
    }

    /// Whether the person is in a session of a desktop, which has a keyring.
    pub fn has_keyring(&self) -> bool {
        ["DBUS_SESSION_BUS_ADDRESS", "SECURITYSESSIONID"]
            .iter()
            .any(|name| self.environment.get(name).is_some())
    }

    /// Every value that is set, with its origin.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        collect(
            &self.merged,
            &self.merged.tree,
            &mut Vec::new(),
            &mut entries,
        );
        entries
    }

    /// Where a permission rule was written: the one at `index` of the list `allow`, `ask` or `deny`.
    pub fn rule_place(&self, list: &str, index: usize) -> Place {
        self.merged
            .place(&["permissions".to_owned(), list.to_owned(), index.to_string()])
    }

    /// Replaces what must not be logged, stored, shown or sent. All redactors of a process share what they learn, such as the
    /// tokens of logins.
    pub fn redactor(&self) -> Redactor {
        let redactor = self.environment.redactor();
        redactor.add(self.secrets());
        redactor
    }

    /// The configured secrets: variables whose names look like keys or that the configuration names as keys, HTTP headers,
    /// and what MCP servers are given.
    fn secrets(&self) -> Vec<String> {
        let Options {
            providers,
            api_key_env,
            ..
        } = &self.options;
        let variables = providers
            .values()
            .filter_map(|provider| provider.api_key_env.as_ref())
            .chain(api_key_env);
        let keys = variables.filter_map(|variable| self.environment.get(variable));
        let headers = providers.values().map(|provider| &provider.headers);
        // Includes those of the editor.
        let servers = self.mcp.values().filter_map(|server| match server {
            McpServer::Command { env, .. } => Some(env),
            McpServer::Url { headers, .. } => Some(headers),
            McpServer::Editor { .. } => None,
        });
        let clients = self.mcp.values().filter_map(|server| match server {
            McpServer::Url { client_secret, .. } => client_secret.clone(),
            McpServer::Command { .. } | McpServer::Editor { .. } => None,
        });
        let written = headers
            .chain(servers)
            .flatten()
            .filter(|(name, _)| is_secret(name));
        let written = written.map(|(_, value)| value.as_str());
        let words = self.mcp.values().flat_map(|server| match server {
            McpServer::Command { command, .. } => secrets_in(command.words()),
            McpServer::Url { url, .. } => secrets_in([url]),
            McpServer::Editor { .. } => Vec::new(),
        });
        self.environment
            .secrets()
            .chain(keys)
            .chain(written)
            .chain(words)
            .map(str::to_owned)
            .chain(clients)
            .collect()
    }

    fn choice(&self) -> Choice<'_> {
        Choice {
            options: &self.options,
            environment: &self.environment,
        }
    }
}

impl Merged {
    /// Merges a layer on top.
    fn lay(&mut self, layer: &Layer) {
        self.place_rules(layer);
        overlay(
            &mut self.tree,
            &layer.tree,
            &mut Vec::new(),
            &mut |path, added| {
                let places = self.origins.entry(path.clone()).or_default();
                if !added {
                    places.clear();
                }
                places.push(layer.place(path).clone());
            },
        );
    }

    /// Rules are added to the lower layers' ones: each has its own location.
    fn place_rules(&mut self, layer: &Layer) {
        for (list, rules) in layer.tree["permissions"].as_object().into_iter().flatten() {
            let below = self.tree["permissions"][list]
                .as_array()
                .map_or(0, Vec::len);
            for index in 0..rules.as_array().map_or(0, Vec::len) {
                let path =
                    |index: usize| vec!["permissions".to_owned(), list.clone(), index.to_string()];
                self.origins
                    .insert(path(below + index), vec![layer.place(&path(index)).clone()]);
            }
        }
    }

    /// Where the first value under `path` was written.
    fn place(&self, path: &[String]) -> Place {
        let below = self.origins.range(path.to_vec()..);
        below
            .take_while(|(key, _)| key.starts_with(path))
            .flat_map(|(_, places)| places)
            .next()
            .cloned()
            .unwrap_or(Place::Default)
    }
}

fn limits(options: &LimitOptions) -> Limits {
    Limits {
        turn: Allowance {
            iterations: options.iterations.map(|limit| limit.get().into()),
            tokens: options.tokens.map(NonZeroU64::get),
            cost: options.cost,
        },
        session: Allowance {
            iterations: options.session_iterations.map(NonZeroU64::get),
            tokens: options.session_tokens.map(NonZeroU64::get),
            cost: options.session_cost,
        },
        parallel: options.parallel.map_or(1, NonZeroU32::get) as usize,
    }
}

fn finish(options: &FinishOptions) -> Finish {
    let command = options.command.as_ref();
    Finish {
        diagnostics: options.diagnostics.unwrap_or(true),
        quick_fixes: options.quick_fixes != Some(QuickFixes::Off),
        command: command
            .filter(|command| !command.trim().is_empty())
            .cloned(),
    }
}

fn explore(options: &ExploreOptions) -> Explore {
    let count = |limit: Option<NonZeroU64>| limit.map_or(u64::MAX, NonZeroU64::get);
    Explore {
        model: options.model.clone(),
        bounds: Bounds {
            tokens: count(options.tokens),
            calls: count(options.calls),
            time: seconds(options.seconds),
        },
    }
}

/// `None` is as good as no limit.
fn seconds(limit: Option<NonZeroU64>) -> Duration {
    Duration::from_secs(limit.map_or(u64::MAX, NonZeroU64::get))
}

fn mcp_server(options: &McpOptions) -> Result<McpServer, &'static str> {
    let McpOptions {
        command,
        env,
        cwd,
        url,
        headers,
        client_id,
        client_secret,
    } = options.clone();
    match (command, url) {
        (Some(command), None) => Ok(McpServer::Command { command, env, cwd }),
        (None, Some(url)) => Ok(McpServer::Url {
            url: url.written().to_owned(),
            headers,
            client_id,
            client_secret,
            is_supplied: false,
        }),
        _ => Err("an MCP server needs either `command` or `url`"),
    }
}

fn collect(merged: &Merged, node: &Value, path: &mut KeyPath, entries: &mut Vec<Entry>) {
    if let Value::Object(map) = node {
        for (key, value) in map {
            path.push(key.clone());
            collect(merged, value, path, entries);
            path.pop();
        }
        return;
    }
    let secret = path
        .iter()
        .any(|key| matches!(key.as_str(), "headers" | "env" | "client-secret"));
    entries.push(Entry {
        key: dotted(path),
        value: if secret {
            "\"***\"".to_owned()
        } else {
            shown(node).to_string()
        },
        origins: merged.origins.get(path).cloned().unwrap_or_default(),
    });
}

fn shown(value: &Value) -> Value {
    value
        .as_str()
        .map_or_else(|| value.clone(), |text| json!(without_password(text)))
}

#[cfg(test)]
mod tests;
