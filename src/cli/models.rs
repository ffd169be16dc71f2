//! `tandem models`: lists the models of the configured endpoint and of local servers.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::Outcome;
use crate::config::{Environment, Settings};
use crate::domain::Prices;
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
    let settings = Settings::of(environment, &[]);
    let mut offers: Vec<(String, ModelInfo)> = Vec::new();
    let chosen = match session::chosen(&settings).await {
        Ok((provider, why)) => {
            let name = provider.endpoint().provider.clone();
            let own_server = provider.endpoint().is_own_server();
            let named = |model: ModelInfo| (name.clone(), model.with_known(own_server));
            offers.extend(provider.models().await?.into_iter().map(named));
            Some((provider.name(), why))
        }
        Err(_) if settings.names_no_model() => None,
        Err(why) => return Err(why.into()),
    };
    for server in detect().await {
        let new = offers.iter().all(|(name, _)| name != server.name);
        offers.extend(
            server
                .models
                .into_iter()
                .filter(|_| new)
                .map(|model| (server.name.to_owned(), model)),
        );
    }
    let mut out = io::stdout().lock();
    let is_chosen = |name: &str| chosen.as_ref().is_some_and(|(chosen, _)| chosen == name);
    if args.json {
        let list: Vec<_> = offers
            .iter()
            .map(|(provider, model)| as_json(provider, model, is_chosen))
            .collect();
        serde_json::to_writer_pretty(&mut out, &list)?;
        writeln!(out)?;
    } else {
        for (provider, model) in &offers {
            let name = format!("{provider}/{}", model.id);
            writeln!(out, "{}{}", display::escape_line(&name), facts(model))?;
        }
        if let Some((name, why)) = &chosen {
            writeln!(out, "\n{} answers: {why}", display::escape_line(name))?;
        }
    }
    if offers.is_empty() {
        let why = session::provider(&settings).err().map_or_else(
            || "the endpoint offers no models".to_owned(),
            |why| why.message,
        );
        return Err(anyhow::anyhow!(why).into());
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(provider: &str, model: &ModelInfo, is_chosen: impl Fn(&str) -> bool) -> Value {
    let name = format!("{provider}/{}", model.id);
    let mut fields = json!({ "context_window": model.context_window });
    if let Some(prices) = model.prices {
        let Prices {
            input,
            cached,
            cache_write,
            output,
            ..
        } = prices;
        fields["prices"] = json!({
            "input": input,
            "cached": cached.unwrap_or(input),
            "cache_write": cache_write.unwrap_or(input),
            "output": output,
        });
    }
    if is_chosen(&name) {
        fields["chosen"] = true.into();
    }
    fields["model"] = name.into();
    fields
}

/// The known facts about a model.
fn facts(model: &ModelInfo) -> String {
    let window = model
        .context_window
        .map(|window| format!("{window} tokens"));
    let price = model
        .prices
        .map(|prices| format!("${} in, ${} out", prices.input, prices.output));
    let other = model.is_other.then(|| "not for chat".to_owned());
    let facts: Vec<_> = other.into_iter().chain(window).chain(price).collect();
    if facts.is_empty() {
        String::new()
    } else {
        format!("  ({})", facts.join(", "))
    }
}
