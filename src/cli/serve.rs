//! `tandem lsp` and `tandem acp`: nothing but protocol on standard output.

use std::process::ExitCode;

use super::{Failure, Outcome, settings_loader};
use crate::config::Environment;
use crate::rpc;
use crate::server::{self, Ended, Transport};

/// Arguments of `tandem lsp`.
#[derive(Debug, clap::Args)]
pub(super) struct LspArgs {
    /// Accepted because clients add it; standard input and output are the only transport
    #[arg(long)]
    stdio: bool,
}

/// Arguments of `tandem acp`.
#[derive(Debug, clap::Args)]
pub(super) struct AcpArgs {
    /// Run `tandem login`, for editors that log in by running their agent in a terminal
    #[arg(long)]
    pub login: bool,
}

pub(super) async fn serve(transport: Transport, environment: Environment) -> Outcome {
    let (input, output) = rpc::stdio()?;
    match server::serve(transport, input, output, settings_loader(environment)).await? {
        Ended::Well => Ok(ExitCode::SUCCESS),
        Ended::Abruptly => Ok(ExitCode::FAILURE),
        Ended::Fatally(reason) => Err(Failure::from(anyhow::anyhow!(
            "cannot continue reading the input: {reason}"
        ))),
    }
}
