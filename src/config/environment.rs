//! The process environment and the platform's folders, as a value: read once, passed on, made up in tests.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;

use super::options::without_password;

/// The variables that say where things are and how to show text, on all systems.
const HARMLESS: [&str; 38] = [
    "APPDATA",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "SystemRoot",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "windir",
];

/// What the process was started with. Cheap to clone.
#[derive(Clone, Default)]
pub struct Environment(Arc<Inner>);

#[derive(Default)]
struct Inner {
    variables: HashMap<String, String>,
    /// The platform's folder for configuration.
    platform: Option<PathBuf>,
    /// Our own folder for configuration.
    config: Option<PathBuf>,
    /// Our own folder for what is kept between runs.
    state: Option<PathBuf>,
}

impl Environment {
    /// That of this process. Variables that are not Unicode count as unset.
    #[must_use]
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let folders = etcetera::choose_base_strategy().ok();
        let platform = folders.as_ref().map(etcetera::BaseStrategy::config_dir);
        let config = platform.as_ref().map(|folder| folder.join("tandem"));
        let state = folders.map(|folders| folders.state_dir().unwrap_or_else(|| folders.data_dir()).join("tandem"));
        Self(Arc::new(Inner { variables, platform, config, state }))
    }

    /// One that is made up: these variables, and the folders `config`, `state` and `platform` inside `home`.
    #[must_use]
    pub fn made_up(home: &Path, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Self(Arc::new(Inner {
            variables: variables.collect(),
            platform: Some(home.join("platform")),
            config: Some(home.join("config")),
            state: Some(home.join("state")),
        }))
    }

    /// A variable; an empty one counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The proxy for a URL of this scheme, by the names that programs have agreed on.
    pub(super) fn proxy(&self, scheme: &str) -> Option<Proxy> {
        let of_scheme = if scheme == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
        let mut variables = of_scheme.into_iter().chain(["ALL_PROXY", "all_proxy"]);
        let (variable, url) = variables.find_map(|name| Some((name, self.get(name)?)))?;
        let except = self.get("NO_PROXY").or_else(|| self.get("no_proxy")).unwrap_or_default();
        Some(Proxy { variable, url: url.to_owned(), except: except.to_owned() })
    }

    /// What a program that works for the model gets to know: where things are and how to show text. Keys are not in it,
    /// nor is anything whose meaning is not known.
    pub(super) fn harmless(&self) -> BTreeMap<String, String> {
        let harmless = |name: &str| HARMLESS.contains(&name) || name.starts_with("LC_");
        let variables = self.0.variables.iter().filter(|(name, _)| harmless(name));
        variables.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The user's configuration file, whether it exists or not; `None` where there is no home folder.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        match self.get("TANDEM_CONFIG") {
            Some(path) => Some(PathBuf::from(path)),
            None => self.0.config.as_ref().map(|folder| folder.join("config.toml")),
        }
    }

    /// The platform's folder for configuration, where other programs keep theirs.
    #[must_use]
    pub fn config_home(&self) -> Option<&Path> {
        self.0.platform.as_deref()
    }

    /// The platform's folder for what is kept between runs.
    pub(super) fn state_folder(&self) -> Option<&Path> {
        self.0.state.as_deref()
    }
}

/// A proxy the environment names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The variable that names it.
    pub variable: &'static str,
    /// Where it is.
    pub url: String,
    /// The hosts that are reached without it, as in `NO_PROXY`.
    pub except: String,
}

/// Without a password.
impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}", without_password(&self.url), self.variable)?;
        if !self.except.is_empty() {
            write!(formatter, ", but not for {}", self.except)?;
        }
        formatter.write_str(")")
    }
}

/// Values may be keys: they are not shown.
impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Environment").field("config", &self.0.config).finish_non_exhaustive()
    }
}
