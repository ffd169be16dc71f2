//! `tandem permissions`: lists the rules of a workspace with their origins, and removes rules allowed for the project.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use crate::config::{Environment, Settings};
use crate::session::permission::remembered::Remembered;
use crate::session::rule_problems;
use crate::text::display;

/// Arguments of `tandem permissions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
    /// The workspace directory
    #[arg(
        short = 'C',
        long = "directory",
        value_name = "DIR",
        default_value = ".",
        global = true
    )]
    directory: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the rules of this workspace and where they come from
    List,
    /// Remove rules you allowed for this project
    Rm {
        /// The rule as `list` shows it, such as `run_command(cargo test)`
        #[arg(value_name = "RULE", required_unless_present = "all")]
        rule: Option<String>,
        /// Remove all of them
        #[arg(long, conflicts_with = "rule")]
        all: bool,
    },
}

pub(super) async fn run(args: Args, environment: &Environment) -> anyhow::Result<()> {
    let root = super::root(&args.directory)?;
    let workspaces = [root.path().to_owned()];
    let settings = Settings::of(environment, &workspaces);
    let state = settings
        .state_dir
        .clone()
        .context("there is no state directory; set TANDEM_STATE_DIR")?;
    let remembered = Remembered::of(&state, root.real());
    let rules = remembered
        .rules()
        .await
        .context("the rules allowed for this project")?;
    let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
    let mut out = io::stdout().lock();
    match args.action {
        Action::List => list(&settings, &rules, &mut out)?,
        Action::Rm { rule, all } => {
            let gone = if all {
                rules
            } else {
                rule.into_iter().collect()
            };
            for rule in gone {
                let was_there = remembered.remove(&rule).await?;
                ensure!(
                    was_there,
                    "`{rule}` is not a rule allowed for this project; see `tandem permissions list`"
                );
                writeln!(out, "removed {}", display::escape_line(&rule))?;
            }
        }
    }
    Ok(())
}

/// One rule per line: its effect, the rule, and its origin in a comment.
fn list(settings: &Settings, remembered: &[String], out: &mut dyn Write) -> io::Result<()> {
    let permissions = &settings.permissions;
    for (word, rules) in [
        ("deny", &permissions.deny),
        ("ask", &permissions.ask),
        ("allow", &permissions.allow),
    ] {
        for (index, rule) in rules.iter().enumerate() {
            let place = settings.rule_place(word, index);
            writeln!(out, "{word:<5} {}  # {place}", display::escape_line(rule))?;
        }
    }
    for rule in remembered {
        writeln!(
            out,
            "allow {}  # allowed for this project",
            display::escape_line(rule)
        )?;
    }
    let rules = [&permissions.deny, &permissions.ask, &permissions.allow].map(Vec::len);
    if rules.iter().sum::<usize>() + remembered.len() == 0 {
        writeln!(out, "# no rules: mode `{}` decides", settings.mode.name())?;
    }
    for problem in rule_problems(settings) {
        writeln!(
            out,
            "# problem: {}",
            display::escape_line(&problem.to_string())
        )?;
    }
    Ok(())
}
