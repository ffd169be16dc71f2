//! Logging in and out: writes the model to use into the person's `config.toml`, and keeps its key where only they can
//! read it.
//!
//! Invariants: a key is in no file that anyone else can read, and never in `config.toml`; logging out removes what
//! logging in has stored and nothing else.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::Candidate;
use crate::config::{ProviderEntry, Settings, edit};
use crate::model::{Key, Provider};
use crate::process::keyring;
use crate::workspace::{StateFolder, lock_file};

/// The account of all keys in the keyring; their service is the provider.
const ACCOUNT: &str = "tandem";
/// The options that name a key.
const IN_KEYRING: &str = "api-key-keyring";
const BY_COMMAND: &str = "api-key-command";

/// Where a login has stored its parts.
#[derive(Debug)]
pub struct LoggedIn {
    /// The configuration file.
    pub file: PathBuf,
    /// Where the key is, for the person; `None` if there is none to store.
    pub key: Option<String>,
}

impl Candidate {
    /// Uses `chosen`, a model of this provider, in new sessions.
    ///
    /// # Errors
    /// Something cannot be stored; the text says what to do.
    pub async fn save(&self, settings: &Settings, chosen: &Provider) -> Result<LoggedIn, String> {
        let table = |option| ["providers", self.provider.as_str(), option];
        let model = toml::Value::from(chosen.name());
        let with_model = |text: &str| edit::with(text, &["model"], Some(&model));
        let mut changes = Vec::new();
        let mut place = None;
        if let Some(key) = &self.key {
            // No key is stored that the configuration could not name.
            let trial = |text: String| {
                edit::with(&with_model(&text)?, &table(BY_COMMAND), Some(&"".into())).map(|_| text)
            };
            change_configuration(settings, trial).await?;
            let (option, value, stored) =
                store(settings, &self.provider, key.expose_secret()).await?;
            changes.extend([
                (table(IN_KEYRING), None),
                (table(BY_COMMAND), None),
                (table(option), Some(value)),
            ]);
            place = Some(stored);
        }
        if let Some(url) = &self.base_url {
            changes.push((table("base-url"), Some(url.as_str().into())));
        }
        let write = |text: String| {
            let text = with_model(&text)?;
            let set = |text: String, (key, value): &([&str; 3], Option<toml::Value>)| {
                edit::with(&text, key, value.as_ref())
            };
            changes.iter().try_fold(text, set)
        };
        let file = change_configuration(settings, write).await?;
        // An earlier login may have stored the key elsewhere.
        for (name, option) in stored_keys(settings) {
            // The last change of an option is the one that stays.
            let last = changes.iter().rfind(|(key, _)| *key == table(option));
            if name == self.provider && last.is_some_and(|(_, value)| value.is_none()) {
                forget(settings, &name, option).await?;
            }
        }
        Ok(LoggedIn { file, key: place })
    }
}

/// Removes the key of a provider that a login has stored, or all such keys; returns the providers' names.
///
/// # Errors
/// There is none, or it cannot be removed; the text says what to do.
pub async fn log_out(settings: &Settings, provider: Option<&str>) -> Result<Vec<String>, String> {
    let mut stored = stored_keys(settings);
    stored.retain(|(name, _)| provider.is_none_or(|provider| provider == name));
    if stored.is_empty() {
        let key = match (provider, &settings.model) {
            (Some(name), _) => format!("the key of {name}"),
            (None, Ok(model)) => format!("the key of {} ({})", model.provider, model.key),
            (None, Err(_)) => "a key".to_owned(),
        };
        return Err(format!(
            "`tandem login` has not stored {key}; if it is set elsewhere, remove it there"
        ));
    }
    for (name, option) in &stored {
        forget(settings, name, option).await?;
    }
    let unset = |text: String, (name, option): &(String, &str)| {
        edit::with(&text, &["providers", name, option], None)
    };
    change_configuration(settings, |text| stored.iter().try_fold(text, unset)).await?;
    Ok(stored.into_iter().map(|(name, _)| name).collect())
}

/// The providers whose keys logins have stored, each with the option that names the key.
pub fn stored_keys(settings: &Settings) -> Vec<(String, &'static str)> {
    let entries = settings.entries();
    let names = settings.providers().into_iter().map(|entry| entry.name);
    let stored = names.filter_map(|name| {
        let in_keyring = serde_json::Value::from(service(&name)).to_string();
        let file = key_file(settings, &name);
        let by_command = file.and_then(|file| serde_json::to_string(&print(&file)).ok());
        let values = [(IN_KEYRING, Some(in_keyring)), (BY_COMMAND, by_command)];
        let (option, _) = values.into_iter().find(|(option, value)| {
            let key = edit::dotted(&["providers", name.as_str(), option]);
            entries
                .iter()
                .any(|entry| entry.key == key && Some(&entry.value) == value.as_ref())
        })?;
        Some((name, option))
    });
    stored.collect()
}

/// The providers that can be logged in to, the ones that are ready first.
pub fn by_readiness(mut providers: Vec<ProviderEntry>) -> Vec<ProviderEntry> {
    providers.retain(|provider| !provider.is_local || provider.is_running);
    providers.sort_by_key(|provider| {
        !(provider.is_running || matches!(provider.key, Key::Variable { .. } | Key::Command(_)))
    });
    providers
}

/// Stores a key; gives the option that names it, its value, and the place for the person.
async fn store(
    settings: &Settings,
    provider: &str,
    key: &str,
) -> Result<(&'static str, toml::Value, String), String> {
    let service = service(provider);
    if cfg!(unix) && settings.has_keyring() && keyring::keep(&service, ACCOUNT, key).await {
        let place = "the system's keyring".to_owned();
        return Ok((IN_KEYRING, service.into(), place));
    }
    let file = key_file(settings, provider)
        .ok_or("there is no state directory for the key; set TANDEM_STATE_DIR")?;
    let written = async {
        let (folder, name) = parts(&file)?;
        let folder = StateFolder::open(folder.to_owned()).await?;
        folder.write(name, key.as_bytes().to_vec()).await
    };
    written
        .await
        .map_err(|error: io::Error| format!("the key cannot be stored: {error}"))?;
    let place = format!("{}, which only you can read", file.display());
    Ok((BY_COMMAND, print(&file).into(), place))
}

/// Removes a stored key, from where an option says that it is.
async fn forget(settings: &Settings, provider: &str, option: &str) -> Result<(), String> {
    match key_file(settings, provider) {
        Some(file) if option == BY_COMMAND => remove(&file)
            .await
            .map_err(|error| format!("cannot remove the key of {provider}: {error}")),
        _ if keyring::forget(&service(provider), ACCOUNT).await => Ok(()),
        _ => Err(format!(
            "cannot remove the key of {provider} from the system's keyring; try again"
        )),
    }
}

fn service(provider: &str) -> String {
    format!("tandem-{provider}")
}

/// The file for a key, where there is no keyring. Commands of the model cannot see the state directory.
fn key_file(settings: &Settings, provider: &str) -> Option<PathBuf> {
    // Two providers never share a file.
    let safe = |byte: u8| match char::from(byte) {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => c.to_string(),
        _ => format!("%{byte:02x}"),
    };
    let name: String = provider.bytes().map(safe).collect();
    Some(settings.state_dir.as_ref()?.join("keys").join(name))
}

/// The program that prints a file.
fn print(file: &Path) -> Vec<String> {
    let program: &[&str] = if cfg!(windows) {
        &["cmd", "/d", "/c", "type"]
    } else {
        &["cat"]
    };
    let file = file.to_string_lossy();
    let words = program.iter().copied().chain([&*file]);
    words.map(str::to_owned).collect()
}

fn parts(file: &Path) -> io::Result<(&Path, &str)> {
    let name = file.file_name().and_then(|name| name.to_str());
    file.parent()
        .zip(name)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

async fn remove(file: &Path) -> io::Result<()> {
    let (folder, name) = parts(file)?;
    let folder = StateFolder::existing(folder.to_owned()).await?;
    match folder.remove(name).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Changes the person's configuration file; returns it. A link to it stays a link.
///
/// # Errors
/// `change` gives no text, or the file cannot be read or written.
pub async fn change_configuration(
    settings: &Settings,
    change: impl FnOnce(String) -> Option<String>,
) -> Result<PathBuf, String> {
    let file = settings
        .config_file()
        .ok_or("there is no configuration directory")?;
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    let target = std::fs::canonicalize(&file).unwrap_or_else(|_missing| file.clone());
    let (folder, name) = parts(&target).map_err(failed)?;
    let folder = StateFolder::open(folder.to_owned()).await.map_err(failed)?;
    // Without a state directory, nothing keeps another process from a change at the same time.
    let lock = settings
        .state_dir
        .as_ref()
        .map(|state| state.join("config.lock"));
    let _alone = match lock {
        Some(lock) => lock_file(lock).await.ok(),
        None => None,
    };
    let text = match folder.beginning(name, u64::MAX).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(failed)?,
    };
    // Bytes that are not text must not be replaced.
    let is_text = !text.contains(char::REPLACEMENT_CHARACTER);
    let changed = is_text.then(|| change(text.clone())).flatten();
    let changed = changed.ok_or_else(|| {
        format!(
            "{} cannot be changed by a program; see docs/models.md for what to write",
            file.display()
        )
    })?;
    if changed != text {
        folder
            .write(name, changed.into_bytes())
            .await
            .map_err(failed)?;
    }
    Ok(file)
}
