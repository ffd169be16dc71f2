//! `tandem login` and `tandem logout`: choose a provider, enter its key, choose a model, test it, and save all that.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};

use super::{Failure, Outcome};
use crate::config::{Environment, Provider as Row, ProviderEntry, Settings};
use crate::domain::{Key, Verdict};
use crate::model::{ErrorCode, Failure as ModelFailure, ModelInfo, Provider};
use crate::session::check;
use crate::session::{self, Candidate, LoggedIn};
use crate::text::display;

/// How often a key or an address may be wrong.
const TRIES: usize = 3;
/// The models that are listed; any other can be named.
const LISTED: usize = 20;

/// Arguments of `tandem login`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// The provider, such as `openai`; asked for if left out
    provider: Option<String>,
}

/// Arguments of `tandem logout`.
#[derive(Debug, clap::Args)]
pub(super) struct OutArgs {
    /// The provider whose key to remove; all stored keys if left out
    provider: Option<String>,
}

pub(super) async fn log_in(args: Args, environment: &Environment) -> Outcome {
    let settings = Settings::of(environment, &[]);
    let providers = session::by_readiness(session::providers(&settings).await);
    let entry = match args.provider {
        Some(name) => named(&providers, &name).ok_or_else(|| {
            Failure::usage(format!(
                "unknown provider `{name}`; `tandem login` lists those it knows"
            ))
        }),
        None => choose_provider(&providers),
    }?;
    let (candidate, models) = reach(&settings, &entry).await?;
    let model = choose_model(&models)?;
    let provider = candidate.chosen(&settings, &model).await?;
    if !test(&provider).await? && !ask("Save it anyway? [y/N] ")?.eq_ignore_ascii_case("y") {
        return Err(anyhow!("nothing was saved").into());
    }
    let saved = candidate.save(&settings, &provider).await;
    let LoggedIn { file, key } = saved.map_err(|why| anyhow!(why))?;
    say(&format!("saved {} in {}", provider.name(), file.display()))?;
    if let Some(place) = key {
        say(&format!("saved the key in {place}"))?;
        if let Key::Variable { name, .. } = &entry.key {
            say(&format!(
                "{name} is set in the environment and takes precedence over that key; unset it"
            ))?;
        }
    }
    let now = Settings::of(environment, &[]);
    if now
        .model
        .as_ref()
        .is_ok_and(|model| model.name() != provider.name())
    {
        say(
            "another model is set in the environment (TANDEM_MODEL, TANDEM_BASE_URL) and takes precedence",
        )?;
    }
    for (other, _) in session::stored_keys(&now) {
        if other != entry.name {
            say(&format!(
                "the key of {other} is still stored; `tandem logout {other}` removes it"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn log_out(args: OutArgs, environment: &Environment) -> Outcome {
    let settings = Settings::of(environment, &[]);
    let removed = session::log_out(&settings, args.provider.as_deref()).await;
    let removed = removed.map_err(|why| anyhow!(why))?;
    say(&format!("removed the key of {}", removed.join(", ")))?;
    Ok(ExitCode::SUCCESS)
}

fn named(providers: &[ProviderEntry], name: &str) -> Option<ProviderEntry> {
    let found = providers.iter().find(|entry| entry.name == name);
    found.cloned()
}

fn choose_provider(providers: &[ProviderEntry]) -> Result<ProviderEntry, Failure> {
    for (number, entry) in (1..).zip(providers) {
        let ready = match &entry.key {
            _ if entry.is_running => " (running)".to_owned(),
            Key::Variable { name, .. } => format!(" ({name} is set)"),
            Key::Command(_) => " (its key is configured)".to_owned(),
            _ => String::new(),
        };
        let ProviderEntry { name, title, .. } = entry;
        say(&format!("{number:>3}  {name:<14} {title}{ready}"))?;
    }
    let names: Vec<_> = providers.iter().map(|entry| entry.name.as_str()).collect();
    let name = choose("Provider", &names, false)?;
    named(providers, &name).ok_or_else(|| anyhow!("no provider can be used").into())
}

/// The provider with a key and an address that work, and its models.
async fn reach(
    settings: &Settings,
    entry: &ProviderEntry,
) -> Result<(Candidate, Vec<ModelInfo>), Failure> {
    let mut why = String::new();
    for _ in 0..TRIES {
        let mut url = None;
        if entry.base_url.is_none() {
            let example = Row::named(&entry.name).map_or("", |row| row.example_url);
            url = Some(ask(&format!("Base URL (such as {example}): "))?);
        }
        let key = if entry.is_local {
            None
        } else {
            Some(ask_for_key(entry)?)
        };
        let candidate = Candidate::new(&entry.name, key, url);
        match candidate.models(settings).await {
            Ok(models) => return Ok((candidate, models)),
            // Not every endpoint has a list; the test says whether the rest works.
            Err(ModelFailure {
                code: ErrorCode::InvalidRequest,
                ..
            }) => {
                return Ok((candidate, Vec::new()));
            }
            Err(problem) => why = problem.message,
        }
        say(&why)?;
    }
    Err(anyhow!(why).into())
}

fn ask_for_key(entry: &ProviderEntry) -> Result<String, Failure> {
    let configured = match &entry.key {
        Key::Variable { name, .. } => format!(" (Enter uses {name})"),
        Key::Command(_) => " (Enter uses the configured one)".to_owned(),
        _ => String::new(),
    };
    let _hidden = Hidden::begin();
    let key = ask(&format!("API key{configured}: "))?;
    if io::stdin().is_terminal() {
        say("")?;
    }
    Ok(key)
}

fn choose_model(models: &[ModelInfo]) -> Result<String, Failure> {
    let names: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    for (number, model) in (1..=LISTED).zip(models) {
        let window = model
            .context_window
            .map(|window| format!("  {window} tokens"));
        say(&format!(
            "{number:>3}  {}{}",
            model.id,
            window.unwrap_or_default()
        ))?;
    }
    if let Some(more) = models.len().checked_sub(LISTED).filter(|more| *more > 0) {
        say(&format!("     … and {more} more, by name"))?;
    }
    choose("Model", &names, true)
}

/// One of these names, chosen by name or number; the first if the person presses Enter.
fn choose(what: &str, names: &[&str], others: bool) -> Result<String, Failure> {
    loop {
        let default = names
            .first()
            .map_or(String::new(), |name| format!(" [{name}]"));
        let answer = ask(&format!("{what}{default}: "))?;
        let index = answer
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let chosen = match index.and_then(|index| names.get(index)) {
            None if answer.is_empty() => names.first().copied(),
            None => Some(answer.as_str()).filter(|name| others || names.contains(name)),
            chosen => chosen.copied(),
        };
        if let Some(chosen) = chosen {
            return Ok(chosen.to_owned());
        }
        say("enter a number or a name from the list")?;
    }
}

/// Whether the model does what an agent needs.
async fn test(provider: &Provider) -> io::Result<bool> {
    let mut findings = Vec::new();
    check::check(provider, |finding| findings.push(finding)).await;
    for finding in &findings {
        say(&format!("{}: {}", finding.check, finding.found))?;
        if let Some(advice) = &finding.advice {
            say(&format!("  → {advice}"))?;
        }
    }
    Ok(findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Bad))
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{}", display::escape_line(line))
}

/// The next line of standard input.
fn ask(question: &str) -> Result<String, Failure> {
    let mut out = io::stdout();
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .context("standard input")?;
    if read == 0 {
        return Err(anyhow!("the input ended; nothing was saved").into());
    }
    Ok(line.trim().to_owned())
}

/// Turns the terminal's echo off until it is dropped.
struct Hidden {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Hidden {
    #[cfg(unix)]
    fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = before.clone() {
            modes.local_modes -= LocalModes::ECHO;
            let _stays_visible = tcsetattr(io::stdin(), OptionalActions::Flush, &modes);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    fn begin() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            use rustix::termios::{OptionalActions, tcsetattr};
            let _gone = tcsetattr(io::stdin(), OptionalActions::Flush, before);
        }
    }
}
