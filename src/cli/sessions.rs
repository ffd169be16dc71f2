//! `tandem sessions`: saved sessions.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use serde_json::json;

use super::root;
use crate::config::{Environment, Settings};
use crate::session::transcript::markdown;
use crate::session::{Listed, Sessions};
use crate::text::display;
use crate::workspace::Root;

/// How many are listed by default.
const SHORT: usize = 20;

/// What `tandem sessions` does.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Action {
    /// List sessions, last used first
    List {
        /// Only sessions of this directory
        #[arg(short = 'C', long = "directory", value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Show all sessions instead of the last 20
        #[arg(long)]
        all: bool,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a session
    Show {
        /// The session's ID or a prefix of it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Write a session to a file or to standard output
    Export {
        /// The session's ID or a prefix of it
        #[arg(value_name = "ID")]
        id: String,
        /// md (Markdown) or json (its events)
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        /// The file to write; standard output by default
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove sessions permanently
    Rm {
        /// The sessions' IDs or prefixes of them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(super) enum Format {
    #[default]
    Md,
    Json,
}

pub(super) async fn run(action: Action, environment: &Environment) -> anyhow::Result<()> {
    let sessions = saved(environment)?;
    match action {
        Action::List {
            directory,
            all,
            json,
        } => {
            let root = directory.as_deref().map(root).transpose()?;
            let folder = root.as_ref().map(Root::path);
            let size = if all { usize::MAX } else { SHORT };
            let (page, more) = sessions.page(folder, None, size).await?;
            let mut out = io::BufWriter::new(io::stdout().lock());
            list(&page, json, &mut out)?;
            if more && !json {
                writeln!(out, "… `tandem sessions list --all` shows more")?;
            }
            out.flush()?;
        }
        Action::Show { id } => {
            let events = sessions.read(&sessions.find(&id).await?).await?;
            io::stdout().write_all(display::escape(&markdown(&events)).as_bytes())?;
        }
        Action::Export { id, format, output } => {
            let events = sessions.read(&sessions.find(&id).await?).await?;
            let text = match format {
                Format::Md => markdown(&events),
                Format::Json => serde_json::to_string_pretty(&events)? + "\n",
            };
            match output {
                None => {
                    io::stdout()
                        .write_all(printed(&text, io::stdout().is_terminal()).as_bytes())?;
                }
                Some(file) => {
                    write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
                }
            }
        }
        Action::Rm { ids } => {
            for id in ids {
                sessions.remove(&sessions.find(&id).await?).await?;
            }
        }
    }
    Ok(())
}

/// A terminal would interpret control codes from a model; a file or program gets the text unchanged.
fn printed(text: &str, to_terminal: bool) -> Cow<'_, str> {
    if to_terminal {
        display::escape(text)
    } else {
        text.into()
    }
}

/// Where sessions are saved.
pub(super) fn saved(environment: &Environment) -> anyhow::Result<Sessions> {
    kept(&Settings::of(environment, &[]))
}

/// Where the sessions of these settings are saved.
pub(super) fn kept(settings: &Settings) -> anyhow::Result<Sessions> {
    let state = settings
        .state_dir
        .as_deref()
        .context("there is no state directory; set TANDEM_STATE_DIR")?;
    Ok(Sessions::new(state))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person names the file, as with any program's output"
)]
fn write(file: &Path, text: &str) -> io::Result<()> {
    std::fs::write(file, text)
}

fn list(page: &[Listed], json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let now = SystemTime::now();
    for Listed {
        id,
        folders,
        title,
        updated,
        chat: _,
    } in page
    {
        if json {
            let updated = humantime::format_rfc3339_seconds(*updated).to_string();
            let line = json!({ "id": id, "title": title, "folders": folders, "updated": updated });
            writeln!(out, "{line}")?;
            continue;
        }
        let folder = folders
            .first()
            .map(|folder| folder.display().to_string())
            .unwrap_or_default();
        let (age, title) = (
            age(now.duration_since(*updated).unwrap_or_default()),
            display::escape_line(title),
        );
        writeln!(
            out,
            "{id}  {age:>4}  {}  {title}",
            display::escape_line(&folder)
        )?;
    }
    if page.is_empty() && !json {
        writeln!(out, "no saved sessions yet")?;
    }
    Ok(())
}

/// The largest unit is precise enough.
fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "m"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_for_terminals_only() {
        let text = "red: \u{1b}[31m, right to left: \u{202e}\n";
        assert_eq!(printed(text, false), text);
        let shown = printed(text, true);
        assert!(
            !shown.contains(['\u{1b}', '\u{202e}']) && shown.ends_with('\n'),
            "{shown}"
        );
    }
}
