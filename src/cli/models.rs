//! `tandem models`: what the configured endpoint and the model servers of this machine offer.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::json;

use super::Outcome;
use crate::config::{Environment, Settings, Sources};
use crate::model::{ModelInfo, detect};
use crate::session;
use crate::text::display;

/// Arguments of `tandem models`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, environment: &Environment) -> Outcome {
    let settings = Settings::load(environment, &Sources::default());
    let mut offers: Vec<(String, ModelInfo)> = Vec::new();
    match session::provider(&settings) {
        Ok(provider) => {
            let name = provider.endpoint().provider.clone();
            offers.extend(provider.models().await?.into_iter().map(|model| (name.clone(), model)));
        }
        Err(why) if why.unset => {}
        Err(why) => return Err(anyhow::anyhow!(why.message).into()),
    }
    for server in detect().await {
        let new = offers.iter().all(|(name, _)| name != server.name);
        offers.extend(server.models.into_iter().filter(|_| new).map(|model| (server.name.to_owned(), model)));
    }
    let mut out = io::stdout().lock();
    if args.json {
        let list: Vec<_> = offers
            .iter()
            .map(|(name, model)| json!({ "model": format!("{name}/{}", model.id), "context_window": model.context_window }))
            .collect();
        serde_json::to_writer_pretty(&mut out, &list)?;
        writeln!(out)?;
    } else {
        for (name, model) in &offers {
            let window = model.context_window.map(|window| format!("  ({window} tokens)")).unwrap_or_default();
            writeln!(out, "{}{window}", display::escape_line(&format!("{name}/{}", model.id)))?;
        }
    }
    if offers.is_empty() {
        let why = session::provider(&settings)
            .err()
            .map_or_else(|| "the endpoint offers no models".to_owned(), |why| why.message);
        return Err(anyhow::anyhow!(why).into());
    }
    Ok(ExitCode::SUCCESS)
}
