//! `tandem init --editor …`: prints or writes an editor's configuration, and installs or removes the Neovim plugin.
//! Without a name it lists the editors found.
//!
//! Existing text is never changed: missing parts are appended, a backup is kept beside the file, and what cannot be
//! appended is printed for the person to add.

#![expect(
    clippy::disallowed_methods,
    reason = "writes the configuration of editors, which is in no workspace"
)]

mod extension;
mod merge;
mod plugin;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;

pub(super) use self::extension::NAME as EXTENSION;
use self::merge::{Merged, merge};
pub(super) use self::plugin::folder as plugin_folder;
use crate::config::Environment;

/// Arguments of `tandem init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The editor; by default, list the editors found on PATH
    #[arg(long)]
    editor: Option<Editor>,
    /// Write the configuration files, or install the plugin, instead of printing
    #[arg(long, requires = "editor")]
    write: bool,
    /// Remove the plugin or extension that `--write` installed
    #[arg(long, requires = "editor", conflicts_with = "write")]
    remove: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Editor {
    #[value(name = "vscode")]
    VsCode,
    Neovim,
    Helix,
    Zed,
    #[value(name = "jetbrains")]
    JetBrains,
    Emacs,
}

/// The editors' programs, and the arguments of `tandem init` for each.
const PROGRAMS: [(Editor, &[&str], &str); 6] = [
    (
        Editor::VsCode,
        &["code", "codium", "code-insiders", "code-server"],
        "--editor vscode --write",
    ),
    (Editor::Neovim, &["nvim"], "--editor neovim --write"),
    (Editor::Helix, &["hx", "helix"], "--editor helix --write"),
    (Editor::Zed, &["zed", "zeditor"], "--editor zed"),
    (
        Editor::JetBrains,
        &[
            "idea",
            "pycharm",
            "webstorm",
            "rustrover",
            "goland",
            "clion",
        ],
        "--editor jetbrains",
    ),
    (Editor::Emacs, &["emacs"], "--editor emacs"),
];

/// A piece of configuration.
struct Template {
    /// What to do with it, as a comment in its language.
    title: &'static str,
    text: &'static str,
    target: Target,
}

/// Where a piece of configuration belongs.
enum Target {
    /// A TOML file below the platform's configuration directory that can be appended to.
    Toml(&'static str),
    /// A file that only the person can change, and why.
    ByHand(&'static str),
}

impl Editor {
    fn templates(self) -> &'static [Template] {
        match self {
            Self::VsCode => &[Template {
                title: "VS Code: install the extension",
                text: include_str!("init/vscode.txt"),
                target: Target::ByHand("VS Code installs extensions itself"),
            }],
            Self::Neovim => &[Template {
                title: "-- Neovim: add to ~/.config/nvim/init.lua",
                text: include_str!("init/neovim.lua"),
                target: Target::ByHand("init.lua is code; add this yourself"),
            }],
            Self::Helix => &[
                Template {
                    title: "# Helix: add to ~/.config/helix/languages.toml",
                    text: include_str!("../../editors/helix/languages.toml"),
                    target: Target::Toml("helix/languages.toml"),
                },
                Template {
                    title: "# Helix: add to ~/.config/helix/config.toml",
                    text: include_str!("../../editors/helix/config.toml"),
                    target: Target::Toml("helix/config.toml"),
                },
            ],
            Self::Zed => &[Template {
                title: "// Zed: add to settings.json (command palette: zed: open settings file)",
                text: include_str!("init/zed.json"),
                target: Target::ByHand("your comments in settings.json would be lost"),
            }],
            Self::JetBrains => &[Template {
                title: "// JetBrains: add to ~/.jetbrains/acp.json (AI Chat: Add Custom Agent), with the absolute path of tandem",
                text: include_str!("init/jetbrains.json"),
                target: Target::ByHand("acp.json may contain other agents"),
            }],
            Self::Emacs => &[Template {
                title: ";; Emacs: add to your init file; needs the package agent-shell",
                text: include_str!("init/emacs.el"),
                target: Target::ByHand("the init file is code"),
            }],
        }
    }
}

pub(super) fn run(
    args: &Args,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    match args.editor {
        None => list_editors(environment, out),
        Some(Editor::Neovim) if args.write => install_plugin(environment, out).map_err(|error| {
            anyhow!(
                "{error:#}; set {} to a directory you can write to, or install the plugin with a plugin manager",
                plugin::DATA_HOME
            )
        }),
        Some(Editor::Neovim) if args.remove => remove_plugin(environment, out),
        Some(Editor::VsCode) if args.write || args.remove => change_extension(args.write, environment, out),
        Some(_) if args.remove => {
            bail!(
                "tandem installs the Neovim plugin and the VS Code extension only; remove the configuration by hand"
            )
        }
        Some(editor) => configure(editor, args.write, environment, out),
    }
}

/// Lists the editors found and the command for each.
fn list_editors(environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut found = 0;
    for (editor, programs, arguments) in PROGRAMS {
        let name = editor
            .to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default();
        if let Some((program, _)) = find(programs, environment) {
            writeln!(out, "{name} (`{program}`): tandem init {arguments}")?;
            found += 1;
        }
    }
    if found == 0 {
        bail!(
            "no editor found on PATH; name one: tandem init --editor vscode|neovim|helix|zed|jetbrains|emacs"
        );
    }
    Ok(())
}

/// The first of these programs on the search path, and where it is.
fn find(programs: &[&'static str], environment: &Environment) -> Option<(&'static str, PathBuf)> {
    let folders: Vec<PathBuf> =
        std::env::split_paths(environment.get("PATH").unwrap_or_default()).collect();
    let place = |program: &str| {
        let names = [
            format!("{program}{}", std::env::consts::EXE_SUFFIX),
            format!("{program}.cmd"),
        ];
        folders
            .iter()
            .flat_map(|folder| names.iter().map(|name| folder.join(name)))
            .find(|path| path.is_file())
    };
    programs
        .iter()
        .find_map(|program| Some((*program, place(program)?)))
}

/// Installs the VS Code extension, or removes it.
fn change_extension(
    installs: bool,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let programs = PROGRAMS[0].1;
    let (name, editor) = find(programs, environment).with_context(|| {
        format!(
            "none of {} is on PATH; in VS Code run \"Shell Command: Install 'code' command in PATH\"",
            programs.join(", ")
        )
    })?;
    if installs {
        extension::install(&editor, extension::PACKAGE)?;
        writeln!(
            out,
            "{name}: installed the extension ({}); restart the editor",
            env!("CARGO_PKG_VERSION")
        )?;
    } else {
        extension::remove(&editor)?;
        writeln!(out, "{name}: removed the extension")?;
    }
    Ok(())
}

/// The Neovim plugin, if it was installed by another version.
pub(super) fn outdated_plugin(environment: &Environment) -> Option<PathBuf> {
    plugin::folder(environment).filter(|folder| plugin::is_outdated(folder))
}

fn install_plugin(environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let folder = plugin::folder(environment).context("there is no home directory to install to")?;
    let done = match plugin::install(&folder)? {
        plugin::Installed::New => "installed",
        plugin::Installed::Replaced => "replaced",
        plugin::Installed::Same => "already has this version",
    };
    writeln!(
        out,
        "{}: {done} ({}); Neovim loads it automatically, `:Tandem` opens the chat",
        folder.display(),
        env!("CARGO_PKG_VERSION")
    )?;
    Ok(())
}

fn remove_plugin(environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let folder =
        plugin::folder(environment).context("there is no home directory to remove it from")?;
    let done = if plugin::remove(&folder)? {
        "removed"
    } else {
        "nothing is installed there"
    };
    writeln!(out, "{}: {done}", folder.display())?;
    Ok(())
}

fn configure(
    editor: Editor,
    write: bool,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut by_hand = Vec::new();
    for template in editor.templates() {
        match template.target {
            Target::Toml(file) if write => {
                let folder = environment
                    .config_home()
                    .context("there is no home directory to write to")?;
                let added = add(&folder.join(file), template.text, out);
                by_hand.extend(added.map_err(|error| {
                    anyhow!("{error:#}; without --write, it is printed instead")
                })?);
            }
            _ => writeln!(out, "{}\n\n{}", template.title, template.text)?,
        }
        if let Target::ByHand(reason) = template.target
            && write
        {
            by_hand.push(reason.to_owned());
        }
    }
    if !by_hand.is_empty() {
        bail!(
            "add what is printed above to the file yourself: {}",
            by_hand.join("; ")
        );
    }
    Ok(())
}

/// Appends what is missing to a file; the rest is printed for the person.
fn add(file: &Path, template: &str, out: &mut dyn Write) -> anyhow::Result<Option<String>> {
    let before = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(file, template)?;
            writeln!(out, "wrote {}", file.display())?;
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
    };
    let Merged { text, by_hand } = merge(&before, template)
        .with_context(|| format!("{} is not valid TOML; nothing was changed", file.display()))?;
    if text == before {
        writeln!(out, "{}: nothing to add", file.display())?;
    } else {
        let kept = backup(file)?;
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
        writeln!(
            out,
            "added to {} (backup: {})",
            file.display(),
            kept.display()
        )?;
    }
    if by_hand.is_empty() {
        return Ok(None);
    }
    let file = file.display();
    writeln!(
        out,
        "\n# {file} already has these tables; merge the following by hand:\n\n{}",
        by_hand.join("\n\n")
    )?;
    Ok(Some(format!("{file} already has these tables")))
}

fn create(file: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Copies the file to the first free name beside it.
fn backup(file: &Path) -> anyhow::Result<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let names = std::iter::once(format!("{name}.bak"))
        .chain((1..).map(|count| format!("{name}.bak{count}")));
    let mut copies = names.map(|name| file.with_file_name(name));
    let copy = copies
        .find(|copy| !copy.exists())
        .context("cannot find an unused name for the backup")?;
    fs::copy(file, &copy).with_context(|| format!("keeping a copy at {}", copy.display()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests;
