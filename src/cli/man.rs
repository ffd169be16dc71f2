//! `tandem man [COMMAND]`: the manual pages, for packagers and for `man -l -`.

use std::io::Write;

use anyhow::Context as _;
use clap_mangen::Man;

/// Arguments of `tandem man`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The command whose page to print; by default, tandem's own
    command: Option<String>,
}

pub(super) fn run(
    args: &Args,
    mut command: clap::Command,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // Sets the subcommands' full names.
    command.build();
    let page = match &args.command {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.with_context(|| {
                format!("unknown command `{name}`; `tandem help` lists all commands")
            })?
        }
    };
    let source = concat!("tandem ", env!("CARGO_PKG_VERSION"));
    Ok(Man::new(page).source(source).render(out)?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn page(command: Option<&str>) -> anyhow::Result<String> {
        let mut page = Vec::new();
        run(
            &Args {
                command: command.map(str::to_owned),
            },
            Cli::command(),
            &mut page,
        )?;
        Ok(String::from_utf8(page)?)
    }

    #[test]
    fn every_command_has_a_page() {
        assert!(page(None).unwrap().contains(".TH tandem 1"));
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(
                page(Some(name))
                    .unwrap()
                    .contains(&format!(".TH tandem-{name} 1")),
                "{name}"
            );
        }
        assert_eq!(
            page(Some("x")).unwrap_err().to_string(),
            "unknown command `x`; `tandem help` lists all commands"
        );
    }
}
