//! The options as they are written: the same shape in `config.toml` and in the editor's settings.
//!
//! The fields' documentation appears in `tandem config schema` and in `docs/options.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::mode::Mode;
use crate::domain::{Api, CompletionApi, EditFormat, Prices};

/// All options.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    /// `provider/model`, or the bare name of a model with `base-url`.
    pub model: Option<String>,
    /// The mode new sessions start in.
    pub mode: Option<Mode>,
    /// The base URL of the model's API, without `/chat/completions`, `/responses` or `/messages`.
    pub base_url: Option<BaseUrl>,
    /// The API that `base-url` serves.
    pub api: Option<Api>,
    /// The environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// Changes to built-in providers, and additional providers.
    pub providers: BTreeMap<String, ProviderOptions>,
    /// Limits for a turn and a session.
    pub limits: LimitOptions,
    /// Rules for calls that run without asking, require approval, or never run.
    pub permissions: Permissions,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpOptions>,
    /// Checks at the end of a turn that changed files.
    pub finish: FinishOptions,
    /// Inline completion while you type. Off until you set its `model`.
    pub completion: CompletionOptions,
    /// The `explore` tool: a sub-agent that answers questions about the code.
    pub explore: ExploreOptions,
    /// The minimum severity to log.
    pub log: Option<LogLevel>,
    /// The directory for sessions, undo data and logs.
    pub state_dir: Option<PathBuf>,
}

/// One provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProviderOptions {
    /// The API it serves.
    pub api: Option<Api>,
    /// The base URL, without `/chat/completions`, `/responses` or `/messages`.
    pub base_url: Option<BaseUrl>,
    /// The environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// A command, as a list of words, that prints the API key.
    pub api_key_command: Option<CommandLine>,
    /// The service name of the API key in the system keyring (Linux: Secret Service, macOS: Keychain, Windows: Credential
    /// Manager).
    pub api_key_keyring: Option<String>,
    /// Additional HTTP headers.
    pub headers: BTreeMap<String, String>,
    /// A PEM file with additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Fields merged into every request body.
    pub body: Map<String, Value>,
    /// Its models, by the name the endpoint uses.
    pub models: BTreeMap<String, ModelOptions>,
}

/// One model of a provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelOptions {
    /// The context window in tokens.
    pub context_window: Option<NonZeroU64>,
    /// Maximum output tokens per response.
    pub max_tokens: Option<NonZeroU64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The reasoning effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or the provider's own value.
    pub reasoning_effort: Option<String>,
    /// Fields merged into every request body, after those of the provider.
    pub body: Map<String, Value>,
    /// The price of its tokens.
    pub prices: Option<Prices>,
}

/// Limits and timeouts for a turn and a session.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitOptions {
    /// Maximum requests to the model in one turn.
    pub iterations: Option<NonZeroU32>,
    /// Maximum tokens in one turn.
    pub tokens: Option<NonZeroU64>,
    /// Maximum cost of one turn in US dollars.
    pub cost: Option<f64>,
    /// Maximum requests to the model in a session.
    pub session_iterations: Option<NonZeroU64>,
    /// Maximum tokens in a session.
    pub session_tokens: Option<NonZeroU64>,
    /// Maximum cost of a session in US dollars.
    pub session_cost: Option<f64>,
    /// Maximum number of tool calls that run in parallel.
    pub parallel: Option<NonZeroU32>,
    /// Timeout in seconds for a command (the model can request a different one) and for an MCP call that reports no
    /// progress.
    pub command_timeout: Option<NonZeroU64>,
    /// Timeout in seconds for a connection to the model, and for MCP servers to start before the first prompt.
    pub connect_timeout: Option<NonZeroU64>,
    /// Timeout in seconds for the first byte of a response; by default 300, and no limit for a local server.
    pub first_byte_timeout: Option<NonZeroU64>,
    /// How long a response may stall before the request is aborted, in seconds; while the model thinks,
    /// `first-byte-timeout` if that is longer.
    pub idle_timeout: Option<NonZeroU64>,
}

/// Permission rules such as `run_command(cargo test *)`. Deny beats ask beats allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Permissions {
    /// Calls that run without asking.
    pub allow: Vec<String>,
    /// Calls that require approval.
    pub ask: Vec<String>,
    /// Calls that never run.
    pub deny: Vec<String>,
}

/// An MCP server: a program or a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct McpOptions {
    /// The program with its arguments.
    pub command: Option<CommandLine>,
    /// Environment variables to set. Otherwise the server inherits only a safe subset such as `PATH`.
    pub env: BTreeMap<String, String>,
    /// The working directory; your home directory by default. A relative path is resolved in the workspace. Careful:
    /// there, the repository can shadow packages (`npx`) and modules (`python -m`).
    pub cwd: Option<PathBuf>,
    /// The URL of a server over HTTP.
    pub url: Option<BaseUrl>,
    /// HTTP headers for `url`.
    pub headers: BTreeMap<String, String>,
    /// The OAuth client ID for `url`: the one you were given, or the URL of a client metadata document. Most servers
    /// need none.
    pub client_id: Option<String>,
    /// The secret that belongs to `client-id`, if there is one.
    pub client_secret: Option<String>,
}

/// Checks when the model wants to end a turn that changed files. What they find goes back to the model, at most twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct FinishOptions {
    /// Whether to look for errors and warnings in the editor that were not there before the turn.
    pub diagnostics: Option<bool>,
    /// Which quick fixes for them to apply.
    pub quick_fixes: Option<QuickFixes>,
    /// A shell command that has to succeed, such as `cargo check`. It runs in the sandbox, and needs no approval unless
    /// it uses variables, globs, redirections or `cd`. Without a sandbox, it always requires approval.
    pub command: Option<String>,
}

/// Which quick fixes are applied at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuickFixes {
    /// Those a language server marks as preferred, if they only import or format.
    Preferred,
    /// None.
    Off,
}

/// Inline completion.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CompletionOptions {
    /// The completion model, as `provider/model`; usually a small fill-in-the-middle model.
    pub model: Option<String>,
    /// Which completion API to use; detected from the provider by default.
    pub api: Option<CompletionApi>,
    /// Idle time in milliseconds before a request is sent, on top of the editor's own delay.
    pub debounce_ms: Option<u64>,
    /// Maximum tokens per suggestion.
    pub max_tokens: Option<NonZeroU64>,
    /// Whether to suggest the next edit near the cursor, from what was just edited. Needs a `model` trained for it.
    pub next_edit: Option<bool>,
    /// The prompt format for `next-edit`; detected from the model's name by default.
    pub edit_format: Option<EditFormat>,
}

/// The `explore` tool. At a limit, the sub-agent answers with what it has found.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExploreOptions {
    /// The sub-agent's model, as `provider/model`; the session's model by default.
    pub model: Option<String>,
    /// Maximum tokens per call, input and output.
    pub tokens: Option<NonZeroU64>,
    /// Maximum seconds per call.
    pub seconds: Option<NonZeroU64>,
    /// Maximum tool calls per call.
    pub calls: Option<NonZeroU64>,
}

/// How much is logged, from nothing to everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Failures.
    Error,
    /// And possible problems.
    #[default]
    Warn,
    /// And events.
    Info,
    /// And details for debugging.
    Debug,
    /// And every message.
    Trace,
}

/// An `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct BaseUrl {
    base: String,
    written: String,
}

impl BaseUrl {
    /// The URL without an endpoint and without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// The URL as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = Url::parse(&text);
        if !url.is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err("not a URL that begins with http:// or https://".to_owned());
        }
        // Azure's addresses end with a version.
        let (address, query) = text.split_at(text.find('?').unwrap_or(text.len()));
        let mut rest = address.trim_end_matches('/');
        // Many documentations show the full endpoint.
        for endpoint in ["/chat/completions", "/responses", "/messages"] {
            rest = rest.strip_suffix(endpoint).unwrap_or(rest);
        }
        let base = format!("{rest}{query}");
        Ok(Self {
            base,
            written: text,
        })
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// A command line of these words, which must not be empty.
    pub(super) fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The words; the first one is the program.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(" "))
    }
}

impl TryFrom<Vec<String>> for CommandLine {
    type Error = &'static str;

    fn try_from(words: Vec<String>) -> Result<Self, Self::Error> {
        if words.first().is_none_or(String::is_empty) {
            return Err("a command needs at least the name of a program");
        }
        Ok(Self(words))
    }
}
