//! The `tandem` binary: parses, runs, and turns the end into an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use tandem::cli::{Cli, Failure};
use tandem::config::Environment;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let environment = Environment::of_process();
    tandem::cli::log(&environment);
    // One thread runs everything: the work is mostly waiting, and blocking work runs on threads of its own. The runtime
    // starts in microseconds and needs no memory for stacks.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Failure::from(anyhow::Error::from(error))),
    };
    let ended = runtime.block_on(cli.run(environment));
    // A read of a terminal cannot be cancelled; a thread blocked in one is abandoned.
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    let _nobody_reads = writeln!(std::io::stderr().lock(), "tandem: {failure}");
    failure.code()
}
