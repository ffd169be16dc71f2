//! `tandem doctor --paths`: where tandem's files are, and how to get rid of them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::super::init;
use crate::config::Settings;

/// A file or directory that tandem has created or may create.
#[derive(Debug, Serialize)]
struct Place {
    what: &'static str,
    path: PathBuf,
    exists: bool,
    /// How it is removed.
    removal: &'static str,
}

/// Prints the list.
pub(super) fn show(settings: &Settings, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    let places = find(settings);
    if as_json {
        serde_json::to_writer_pretty(&mut *out, &json!({ "paths": places }))?;
        return writeln!(out);
    }
    for Place {
        what,
        path,
        exists,
        removal,
    } in &places
    {
        let absent = if *exists { "" } else { " (does not exist)" };
        writeln!(out, "{what:<16} {}{absent}", path.display())?;
        if *exists {
            writeln!(out, "{:16} → {removal}", "")?;
        }
    }
    writeln!(
        out,
        "\nRemove keyring entries and lines added to your editor's configuration yourself."
    )
}

fn find(settings: &Settings) -> Vec<Place> {
    let environment = settings.environment();
    let program = environment
        .program()
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let places = [
        (
            "executable",
            program,
            "uninstall it the way you installed it",
        ),
        (
            "configuration",
            settings.config_file(),
            "remove its directory, which also contains rules, commands and AGENTS.md",
        ),
        (
            "administrator's",
            environment.managed_file().map(Path::to_owned),
            "managed by your administrator",
        ),
        (
            "state",
            settings.state_dir.clone(),
            "remove it: sessions, undo data, permission rules, the log",
        ),
        (
            "Neovim plugin",
            init::plugin_folder(environment),
            "tandem init --editor neovim --remove",
        ),
    ];
    let place = |(what, path, removal): (_, Option<PathBuf>, _)| {
        let path = path?;
        Some(Place {
            what,
            exists: path.exists(),
            path,
            removal,
        })
    };
    places.into_iter().filter_map(place).collect()
}
