//! What the person wants: options as written, per source, become [`Settings`], valid and complete.
//!
//! Sources from low to high: built in, the user's `config.toml`, the workspace's `.tandem/config.toml`, the
//! environment, the editor (`initializationOptions`, `workspace/didChangeConfiguration`), flags. Each is a `layer`: a
//! tree of values that know where they were written. A layer is checked alone and loses what is wrong in it, then all
//! are laid over each other.
//!
//! Invariants: a mistake is a [`Problem`] with its place and costs nothing but itself; a workspace can only restrict;
//! nobody else reads the environment; a key is never part of a tree, only the name of its variable is.

mod commands;
mod environment;
pub mod keyring;
mod layer;
mod managed;
mod mode;
mod model;
mod options;
mod problem;
mod providers;
mod restrict;
mod settings;
mod sources;

pub use commands::UserCommand;
pub use environment::{Environment, Proxy};
pub use model::{KeySource, ModelSettings, NoModel, ProviderEntry};
pub use options::{Api, BaseUrl, CommandLine, McpOptions, Mode, Options, Permissions, Prices, schema};
pub use problem::{Place, Problem};
pub use providers::{PROVIDERS, Provider, best};
pub use settings::{Entry, Flags, Limits, McpServer, Settings, Sources};
