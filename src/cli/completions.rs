//! `tandem completions SHELL`: prints a completion script.

use std::io::Write;

use clap_complete::Shell;

/// Arguments of `tandem completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(
    args: &Args,
    command: &mut clap::Command,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // The generator panics when a write fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "tandem", &mut script);
    Ok(out.write_all(&script)?)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn completions_exist_for_each_shell() {
        for &shell in Shell::value_variants() {
            let mut script = Vec::new();
            run(&Args { shell }, &mut Cli::command(), &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for word in ["tandem", "completions", "init"] {
                assert!(script.contains(word), "{word} for {shell}");
            }
        }
    }
}
