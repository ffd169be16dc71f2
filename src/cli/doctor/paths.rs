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
    let place = |what, path: &Path, removal| Place {
        what,
        path: path.to_owned(),
        exists: path.exists(),
        removal,
    };
    let program = environment
        .program()
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let mut places: Vec<_> = program
        .iter()
        .map(|path| place("executable", path, "uninstall it the way you installed it"))
        .collect();
    let file = settings.config_file();
    places.extend(file.iter().map(|path| {
        place(
            "configuration",
            path,
            "remove its directory, which also contains rules, commands and AGENTS.md",
        )
    }));
    let managed = environment.managed_file();
    places.extend(
        managed
            .iter()
            .map(|path| place("administrator's", path, "managed by your administrator")),
    );
    let state = settings.state_dir.as_deref();
    places.extend(state.iter().map(|path| {
        place(
            "state",
            path,
            "remove it: sessions, undo data, permission rules, the log",
        )
    }));
    let plugins = init::places(environment);
    places.extend(
        plugins
            .iter()
            .map(|(what, path)| place(what, path, "tandem init --editor neovim --remove")),
    );
    places
}
