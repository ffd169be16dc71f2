//! `tandem mcp import`: lists the servers that the workspace and other agents have configured, and copies the ones the
//! person names into `config.toml`.
//!
//! Invariant: nothing is started here, and a server that nobody named is not copied.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::Value;

use crate::cli::{Failure, Outcome};
use crate::config::{Importable, Settings, edit, importable};
use crate::session;
use crate::text::display;
use crate::text::redact::{Redactor, secrets_in};

/// Copies the servers of these names; without names, lists all.
pub(super) async fn run(names: &[String], settings: &Settings, workspace: &Path) -> Outcome {
    let found = importable(settings, workspace);
    let mut out = io::stdout();
    if names.is_empty() {
        for server in &found {
            writeln!(out, "{}", display::escape_line(&line(server, settings)))?;
        }
        writeln!(
            out,
            "{}",
            if found.is_empty() {
                "no servers in the configuration of other agents"
            } else {
                "`tandem mcp import NAME` copies a server into config.toml; it starts with the next session"
            }
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in names {
        let server = found.iter().find(|server| server.name == *name);
        let server =
            server.ok_or_else(|| Failure::usage(format!("no server `{name}` to import")))?;
        if settings.mcp.contains_key(name) {
            return Err(anyhow!("MCP server `{name}` is already configured").into());
        }
        let options = server
            .options
            .as_ref()
            .map_err(|why| anyhow!("`{name}` {why}"))?;
        let write = |text: String| {
            options.iter().try_fold(text, |text, (option, value)| {
                let value = toml::Value::try_from(value).ok()?;
                edit::with(&text, &["mcp", name, option], Some(&value))
            })
        };
        let file = session::change_configuration(settings, write).await;
        let file = file.map_err(|why| anyhow!(why))?;
        writeln!(
            out,
            "copied {} from {} into {}",
            display::escape_line(name),
            server.file.display(),
            file.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A server in one line, without what may be secret.
fn line(server: &Importable, settings: &Settings) -> String {
    let what = match &server.options {
        Err(why) => format!("cannot be imported: it {why}"),
        Ok(_) if settings.mcp.contains_key(&server.name) => "already configured".to_owned(),
        Ok(options) => match options.first() {
            Some((_, what)) => {
                let words = what
                    .as_array()
                    .map_or(std::slice::from_ref(what), Vec::as_slice);
                let words = words.iter().filter_map(Value::as_str).map(str::to_owned);
                let words: Vec<_> = words.collect();
                let secrets = Redactor::new(secrets_in(&words));
                secrets.redact(&words.join(" ")).into_owned()
            }
            None => String::new(),
        },
    };
    format!("{}  {what}  ({})", server.name, server.file.display())
}
