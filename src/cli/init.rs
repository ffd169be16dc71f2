//! `tandem init --editor …`: an editor's configuration, printed or written.
//!
//! Nothing that a person wrote is ever changed: what is missing is appended, the file as it was is kept beside it, and
//! what cannot be added without touching something is printed, to be added by hand.

#![expect(clippy::disallowed_methods, reason = "writes the configuration of editors, which is in no workspace")]

mod merge;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use self::merge::{Merged, merge};
use crate::config::Environment;

/// Arguments of `tandem init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The editor
    #[arg(long)]
    editor: Editor,
    /// Add it to the editor's configuration files instead of printing it
    #[arg(long)]
    write: bool,
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

/// A piece of configuration.
struct Template {
    /// What is to be done with it, in words and as a comment of its language.
    title: &'static str,
    text: &'static str,
    target: Target,
}

/// Where a piece of configuration belongs.
enum Target {
    /// A TOML file below the platform's configuration folder, to which can be added.
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
                target: Target::ByHand("init.lua is a program"),
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
                target: Target::ByHand("settings.json has comments of yours that would be lost"),
            }],
            Self::JetBrains => &[Template {
                title: "// JetBrains: add to ~/.jetbrains/acp.json (AI Chat: Add Custom Agent), with the absolute path of tandem",
                text: include_str!("init/jetbrains.json"),
                target: Target::ByHand("acp.json may have agents of yours"),
            }],
            Self::Emacs => &[Template {
                title: ";; Emacs: add to your init file; needs the package agent-shell",
                text: include_str!("init/emacs.el"),
                target: Target::ByHand("the init file is a program"),
            }],
        }
    }
}

pub(super) fn run(args: &Args, environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut by_hand = Vec::new();
    for template in args.editor.templates() {
        match template.target {
            Target::Toml(file) if args.write => {
                let folder = environment.config_home().context("there is no home folder to write to")?;
                by_hand.extend(add(&folder.join(file), template.text, out)?);
            }
            _ => writeln!(out, "{}\n\n{}", template.title, template.text)?,
        }
        if let Target::ByHand(reason) = template.target
            && args.write
        {
            by_hand.push(reason.to_owned());
        }
    }
    if !by_hand.is_empty() {
        bail!("the rest is for you to add: {}", by_hand.join("; "));
    }
    Ok(())
}

/// Adds what is missing to a file; what is left for the person is printed and named.
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
        writeln!(out, "added to {} (as it was: {})", file.display(), kept.display())?;
    }
    if by_hand.is_empty() {
        return Ok(None);
    }
    let file = file.display();
    writeln!(out, "\n# {file} has tables of its own for these; bring the two together:\n\n{}", by_hand.join("\n\n"))?;
    Ok(Some(format!("{file} has tables of its own")))
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
    let names = std::iter::once(format!("{name}.bak")).chain((1..).map(|count| format!("{name}.bak{count}")));
    let mut copies = names.map(|name| file.with_file_name(name));
    let copy = copies.find(|copy| !copy.exists()).context("no free name for a copy")?;
    fs::copy(file, &copy).with_context(|| format!("keeping a copy at {}", copy.display()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests;
