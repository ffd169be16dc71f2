//! Configuration: options as written in each source become [`Settings`], valid and complete.
//!
//! Sources from lowest to highest precedence: built-in, the user's `config.toml`, the workspace's
//! `.tandem/config.toml`, the environment, the editor (`initializationOptions`, `workspace/didChangeConfiguration`),
//! flags.
//!
//! Each is a `layer`: a tree of values with their origins. A layer is checked alone and loses its invalid values; then
//! all layers are merged.
//!
//! Invariants: an invalid value becomes a [`Problem`] with its location and affects nothing else; a workspace can only
//! restrict; no other module reads the environment; a layer never contains an API key, only the name of its variable.

mod address;
mod commands;
mod completion;
pub mod edit;
mod environment;
mod import;
mod keyring;
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
pub use completion::Completion;
pub use environment::Environment;
pub use import::{Importable, importable};
pub use layer::has_ours;
pub use mode::Mode;
pub use model::ProviderEntry;
pub use options::{CommandLine, LogLevel, Permissions};
pub use problem::Problem;
pub use providers::{EDITOR, PROVIDERS, Provider, best};
pub use settings::{Flags, McpServer, Settings, Sources};
pub use sources::schema;
