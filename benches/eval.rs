//! `cargo bench --bench eval -- --model P/M`: how well a model works with the tools. For maintainers, with a key.

#[path = "eval/mod.rs"]
mod eval;

use std::io::{stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use tandem::config::Environment;

fn main() -> anyhow::Result<ExitCode> {
    let args = eval::Args::parse();
    // Commands are started by the program.
    let environment =
        Environment::of_process().with_program(Path::new(env!("CARGO_BIN_EXE_tandem")));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let run = eval::run(&args, &environment, &mut stdout(), &mut stderr());
    Ok(if runtime.block_on(run)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
