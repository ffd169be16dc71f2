//! The options as they are written: the same shape in `config.toml` and in the editor's settings.
//!
//! The documentation of the fields is what `tandem config schema` shows.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

/// All options.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    /// `provider/model`, or the bare name of a model with `base-url`.
    pub model: Option<String>,
    /// The mode new sessions start in.
    pub mode: Option<Mode>,
    /// Where the model is reached; ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: Option<BaseUrl>,
    /// The dialect of `base-url`.
    pub api: Option<Api>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Providers: changes to the built-in ones, and more.
    pub providers: BTreeMap<String, ProviderOptions>,
    /// How far a turn and a session may go.
    pub limits: LimitOptions,
    /// Which calls run without asking, ask, or never run.
    pub permissions: Permissions,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpOptions>,
    /// What is logged, such as `info` or `tandem=debug`.
    pub log: Option<String>,
    /// The folder for what is kept between runs.
    pub state_dir: Option<PathBuf>,
}

/// One provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProviderOptions {
    /// Its dialect.
    pub api: Option<Api>,
    /// Ends before `/chat/completions`, `/responses` or `/messages`.
    pub base_url: Option<BaseUrl>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// A program that prints the key, with its arguments.
    pub api_key_command: Option<CommandLine>,
    /// The service the key is kept under in the system's keyring (Linux: Secret Service, macOS: Keychain, Windows: Credential Manager).
    pub api_key_keyring: Option<String>,
    /// More HTTP headers.
    pub headers: BTreeMap<String, String>,
    /// A PEM file of further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Fields merged into every request body.
    pub body: Map<String, Value>,
    /// Its models by the name on the wire.
    pub models: BTreeMap<String, ModelOptions>,
}

/// One model of a provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelOptions {
    /// How many tokens the model reads at once.
    pub context_window: Option<NonZeroU64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<NonZeroU64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// How long the model thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or the provider's own word.
    pub reasoning_effort: Option<String>,
    /// Fields merged into every request body, after the provider's.
    pub body: Map<String, Value>,
    /// What its tokens cost.
    pub prices: Option<Prices>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prices {
    /// Tokens read.
    pub input: f64,
    /// Tokens read from the provider's cache; as `input` when left out.
    pub cached: Option<f64>,
    /// Tokens read and written into the provider's cache; as `input` when left out.
    pub cache_write: Option<f64>,
    /// Tokens written.
    pub output: f64,
}

/// How far a turn and a session may go, and how long they wait.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitOptions {
    /// Requests to the model in one turn.
    pub iterations: Option<NonZeroU32>,
    /// Tokens of one turn.
    pub tokens: Option<NonZeroU64>,
    /// US dollars of one turn.
    pub cost: Option<f64>,
    /// Requests to the model in all turns of a session.
    pub session_iterations: Option<NonZeroU64>,
    /// Tokens of all turns of a session.
    pub session_tokens: Option<NonZeroU64>,
    /// US dollars of all turns of a session.
    pub session_cost: Option<f64>,
    /// Tools that run side by side.
    pub parallel: Option<NonZeroU32>,
    /// Seconds a command may run when the model asks for no other time, and a tool of an MCP server without a sign of
    /// progress.
    pub command_timeout: Option<NonZeroU64>,
    /// Seconds until a connection must stand; the first prompt waits as long for MCP servers that start.
    pub connect_timeout: Option<NonZeroU64>,
    /// Seconds until an answer must begin; a local server has no limit unless this sets one.
    pub first_byte_timeout: Option<NonZeroU64>,
    /// Seconds an answer may pause.
    pub idle_timeout: Option<NonZeroU64>,
}

/// Permission rules such as `run_command(cargo test *)`. Deny beats ask beats allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Permissions {
    /// Runs without a question.
    pub allow: Vec<String>,
    /// Asks.
    pub ask: Vec<String>,
    /// Never runs.
    pub deny: Vec<String>,
}

/// An MCP server: a program or a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct McpOptions {
    /// The program with its arguments.
    pub command: Option<CommandLine>,
    /// Environment variables for it. It gets no others but harmless ones such as `PATH`.
    pub env: BTreeMap<String, String>,
    /// The folder it runs in, your home folder when left out. A relative one is inside the workspace: what such a program
    /// finds there (`npx` a package, `python -m` a module) is then the repository's before it is yours.
    pub cwd: Option<PathBuf>,
    /// Where it is reached.
    pub url: Option<BaseUrl>,
    /// HTTP headers for `url`.
    pub headers: BTreeMap<String, String>,
}

/// What runs without asking, from narrow to wide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Reads only.
    Plan,
    /// Edits and commands ask.
    #[default]
    Ask,
    /// Edits in the workspace run, commands ask.
    Edit,
    /// Sandboxed commands run too.
    Auto,
}

/// The dialects of model endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI chat completions and everything compatible.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
}

/// An `http` or `https` URL without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct BaseUrl(String);

impl BaseUrl {
    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = Url::parse(&text).map_err(|error| format!("not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("a URL begins with http:// or https://, not {}:", url.scheme()));
        }
        let mut rest = text.trim_end_matches('/');
        // The endpoint itself is what many documentations show.
        for endpoint in ["/chat/completions", "/responses", "/messages"] {
            rest = rest.strip_suffix(endpoint).unwrap_or(rest);
        }
        Ok(Self(rest.to_owned()))
    }
}

/// A URL as it may be shown; any other text as it is.
pub(super) fn without_password(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) if url.password().is_some() => {
            url.set_password(Some("***")).map_or_else(|()| "***".into(), |()| url.into())
        }
        _ => text.to_owned(),
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// A program and its arguments, known to be one.
    pub(super) fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The words; the first one is the program.
    #[must_use]
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
            return Err("a command needs the name of a program");
        }
        Ok(Self(words))
    }
}

/// The JSON Schema of `config.toml`.
#[must_use]
pub fn schema() -> Schema {
    schemars::schema_for!(Options)
}
