//! Where log lines go: standard error, which editors keep in a log of their own.

use std::io;

use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::Cli;
use crate::config::Environment;

/// Starts logging. `TANDEM_LOG` (or nothing: warnings) says how much; what it cannot say is told on the log itself.
pub fn log(_cli: &Cli, environment: &Environment) {
    let wanted = environment.get("TANDEM_LOG");
    let level = wanted.map_or(Ok(LevelFilter::WARN), str::parse::<LevelFilter>);
    let known = level.is_ok();
    tracing_subscriber::fmt()
        .with_max_level(level.unwrap_or(LevelFilter::WARN))
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .init();
    if !known {
        tracing::event!(
            Level::WARN,
            "TANDEM_LOG: `{}` is none of off, error, warn, info, debug, trace",
            wanted.unwrap_or_default()
        );
    }
}
