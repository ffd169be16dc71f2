//! Plays tasks with a real model and reports how it did in numbers, so that a change of a prompt or a tool is judged by
//! them.

mod behave;
mod buffers;
mod play;
mod report;
mod task;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use tandem::config::Environment;

use self::report::{Outcome, Report};
use self::task::Task;

/// Plays benchmark tasks with a model and reports the results
#[derive(Debug, clap::Parser)]
#[command(name = "eval")]
pub struct Args {
    /// The model, as provider/model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: String,
    /// Suite to run: smoke (12 tasks), behave (the same, scored by 15 checks on how the model worked) or polyglot (with --exercises)
    #[arg(long, value_enum, default_value_t = Suite::Smoke)]
    suite: Suite,
    /// Directory of exercises for polyglot, such as a checkout of Aider-AI/polyglot-benchmark
    #[arg(long, value_name = "DIR", required_if_eq("suite", "polyglot"))]
    exercises: Option<PathBuf>,
    /// Run only tasks whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    task: String,
    /// Number of runs per task
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    n: u32,
    /// Start no further task once this much has been spent, in US dollars
    #[arg(long, value_name = "USD")]
    budget: Option<f64>,
    /// Write results.json and events to this directory
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Accepted because cargo adds it
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

/// A set of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    Smoke,
    Behave,
    Polyglot,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Behave => "behave",
            Self::Polyglot => "polyglot",
        }
    }
}

/// Plays the tasks; whether all of them passed.
pub async fn run(
    args: &Args,
    environment: &Environment,
    out: &mut dyn Write,
    progress: &mut dyn Write,
) -> anyhow::Result<bool> {
    let mut tasks = match (args.suite, &args.exercises) {
        (Suite::Polyglot, Some(folder)) => task::exercises(folder)?,
        _ => task::smoke()?,
    };
    tasks.retain(|task| task.id.contains(&args.task));
    let suite = args.suite.name();
    let wanted = &args.task;
    ensure!(
        !tasks.is_empty(),
        "no task of {suite} has `{wanted}` in its name"
    );
    let mut report = Report::new(&args.model, suite);
    for task in &tasks {
        for _ in 0..args.n {
            if let Some(budget) = args.budget.filter(|budget| report.cost() >= *budget) {
                let id = &task.id;
                writeln!(progress, "{id}: skipped: budget of ${budget} exhausted")?;
                report.add(Outcome::unplayed(id, "the budget was spent"));
                continue;
            }
            let outcome = score(task, args, environment).await?;
            writeln!(progress, "{}", outcome.line())?;
            report.add(outcome);
        }
    }
    write!(out, "\n{}", report.table(args.suite == Suite::Behave))?;
    if let Some(folder) = &args.json {
        report
            .save(folder)
            .with_context(|| format!("writing to {}", folder.display()))?;
    }
    Ok(report.all_passed())
}

/// Runs a task once. If it cannot be run, that is reported and counted, and the others still run.
async fn score(task: &Task, args: &Args, environment: &Environment) -> anyhow::Result<Outcome> {
    if let Some(program) = task.lacks(environment).await {
        return Ok(Outcome::unplayed(&task.id, &format!("it needs {program}")));
    }
    let play = match play::play(task, &args.model, environment).await {
        Ok(play) => play,
        Err(error) => return Ok(Outcome::unplayed(&task.id, &format!("{error:#}"))),
    };
    if let Some(folder) = &args.json {
        let lines = play
            .events
            .iter()
            .fold(String::new(), |lines, event| lines + &format!("{event}\n"));
        task::write(
            &folder
                .join("events")
                .join(format!("{}.jsonl", task.id.replace('/', "-"))),
            &lines,
        )?;
    }
    Ok(Outcome::of(&task.id, &play))
}
