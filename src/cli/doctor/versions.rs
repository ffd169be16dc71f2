//! What is installed in a version other than this program's: a `tandem` that editors start instead, and plugins.

#![expect(
    clippy::disallowed_methods,
    reason = "looks at what is installed, which is in no workspace"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::init;
use crate::config::Environment;
use crate::domain::Finding;

/// Where editors of the VS Code family keep extensions, below the home directory.
const EXTENSIONS: [&str; 4] = [
    ".vscode/extensions",
    ".vscode-insiders/extensions",
    ".vscode-oss/extensions",
    ".local/share/code-server/extensions",
];

/// A warning for each.
pub(super) fn find(environment: &Environment) -> Vec<Finding> {
    let program = other_program(environment).map(|path| {
        let found = format!(
            "{} is earlier on PATH and is a different build; editors will start that one",
            path.display()
        );
        Finding::warning(
            "executable",
            found,
            "remove one of the two, or set the executable in your editor's configuration",
        )
    });
    let differs = |folder: &Path| {
        format!(
            "{} is not version {}",
            folder.display(),
            env!("CARGO_PKG_VERSION")
        )
    };
    let plugin = init::outdated_plugin(environment).map(|folder| {
        Finding::warning(
            "Neovim plugin",
            differs(&folder),
            "tandem init --editor neovim --write",
        )
    });
    let extension = other_extension(environment).map(|folder| {
        Finding::warning(
            "VS Code",
            differs(&folder),
            "tandem init --editor vscode --write, or update the extension in the editor",
        )
    });
    program.into_iter().chain(plugin).chain(extension).collect()
}

/// The first `tandem` on the search path, unless it is this program or a copy of it.
fn other_program(environment: &Environment) -> Option<PathBuf> {
    let ours = environment.program()?.canonicalize().ok()?;
    let name = format!("tandem{}", std::env::consts::EXE_SUFFIX);
    let mut places =
        std::env::split_paths(environment.get("PATH")?).map(|folder| folder.join(&name));
    let first = places.find(|path| path.is_file())?.canonicalize().ok()?;
    let is_copy = first == ours || is_same(&first, &ours).unwrap_or(false);
    (!is_copy).then_some(first)
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(
        fs::metadata(one)?.len() == fs::metadata(other)?.len()
            && fs::read(one)? == fs::read(other)?,
    )
}

/// The directory of an extension of another version, unless this one is installed beside it.
fn other_extension(environment: &Environment) -> Option<PathBuf> {
    let home = environment.home()?;
    let ours = format!("{}-{}", init::EXTENSION, env!("CARGO_PKG_VERSION"));
    EXTENSIONS.iter().find_map(|below| {
        let folder = home.join(below);
        let names = fs::read_dir(&folder)
            .ok()?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        let installed: Vec<_> = names
            .filter(|name| {
                name.strip_prefix(init::EXTENSION)
                    .is_some_and(|rest| rest.starts_with('-'))
            })
            .collect();
        // The name of a package for one platform goes on after the version.
        let is_ours = |name: &String| {
            name.strip_prefix(&ours)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let last = installed
            .last()
            .filter(|_| !installed.iter().any(is_ours))?;
        Some(folder.join(last))
    })
}
