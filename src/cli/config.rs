//! `tandem config path|show|schema`: where the configuration is, what it contains, and what it can contain.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;

use crate::config::{self, Environment, Settings};
use crate::domain::{Endpoint, Key};
use crate::session::rule_problems;
use crate::text::display;

/// What `tandem config` does.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Print the path of your configuration file, whether it exists or not
    Path,
    /// Print every setting with its origin; keys are not shown
    Show {
        /// The workspace directory
        #[arg(
            short = 'C',
            long = "directory",
            value_name = "DIR",
            default_value = "."
        )]
        directory: PathBuf,
    },
    /// Print the JSON Schema of the configuration file
    Schema,
}

pub(super) fn run(
    action: &Action,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    match action {
        Action::Path => {
            let file = environment
                .config_file()
                .context("there is no home directory; set TANDEM_CONFIG to a file")?;
            writeln!(out, "{}", file.display())?;
        }
        Action::Show { directory } => {
            let workspaces = [directory.clone()];
            show(&Settings::of(environment, &workspaces), out)?;
        }
        Action::Schema => writeln!(out, "{:#}", config::schema().to_value())?,
    }
    Ok(())
}

/// The settings as TOML, with everything else in comments.
fn show(settings: &Settings, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(file) = settings.config_file() {
        let there = if file.exists() {
            ""
        } else {
            " (does not exist)"
        };
        writeln!(out, "# configuration file: {}{there}", file.display())?;
    }
    if let Some(state) = &settings.state_dir {
        writeln!(out, "# state: {}", state.display())?;
    }
    match &settings.model {
        Ok(model) => show_model(model, out)?,
        Err(no_model) => no_model
            .message
            .lines()
            .try_for_each(|line| writeln!(out, "# {line}"))?,
    }
    for problem in settings.problems.iter().chain(&rule_problems(settings)) {
        writeln!(out, "# problem: {problem}")?;
    }
    writeln!(out)?;
    let secrets = settings.redactor();
    for entry in settings.entries() {
        let origins: Vec<_> = entry.origins.iter().map(ToString::to_string).collect();
        let line = format!("{} = {} # {}", entry.key, entry.value, origins.join(", "));
        writeln!(out, "{}", display::escape_line(&secrets.redact(&line)))?;
    }
    Ok(())
}

fn show_model(model: &Endpoint, out: &mut dyn Write) -> anyhow::Result<()> {
    let api = model.api;
    writeln!(
        out,
        "# model: {} at {} ({api})",
        model.name(),
        model.address()
    )?;
    match &model.key {
        Key::Variable { .. } => writeln!(out, "# key: *** ({})", model.key)?,
        _ => writeln!(out, "# key: {}", model.key)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(action: &Action, variables: &[(&str, &str)]) -> String {
        let environment = Environment::made_up("/home/x".as_ref(), variables);
        let mut out = Vec::new();
        run(action, &environment, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn path_is_one_line() {
        assert_eq!(
            print(&Action::Path, &[]).trim_end(),
            "/home/x/config/config.toml"
        );
        assert_eq!(
            print(&Action::Path, &[("TANDEM_CONFIG", "/c.toml")]),
            "/c.toml\n"
        );
    }

    #[cfg(unix)]
    #[test]
    fn show_names_each_source_and_no_secret() {
        let show = || Action::Show {
            directory: "/nonexistent".into(),
        };
        let text = print(
            &show(),
            &[
                ("OPENAI_API_KEY", "sk-secret"),
                ("TANDEM_MODEL", "openai/gpt"),
                ("TANDEM_API", "chta"),
                ("TANDEM_BASE_URL", "https://me:hunter2@models.example/v1"),
            ],
        );
        for line in [
            "# configuration file: /home/x/config/config.toml (does not exist)",
            "# key: *** (environment variable OPENAI_API_KEY)",
            "# problem: environment variable TANDEM_API: `api`: unknown value `chta`; did you mean `chat`?",
            "mode = \"ask\" # built in",
            "model = \"openai/gpt\" # environment variable TANDEM_MODEL",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nin\n{text}"
            );
        }
        assert!(
            !text.contains("sk-secret") && !text.contains("hunter2"),
            "{text}"
        );
        toml::from_str::<toml::Table>(&text).unwrap();
        assert!(print(&show(), &[]).contains("# no model configured"));
    }

    #[test]
    fn schema_is_json() {
        let schema: serde_json::Value = serde_json::from_str(&print(&Action::Schema, &[])).unwrap();
        assert_eq!(schema["title"], "Options");
    }
}
