//! The process environment and the platform's folders as a value: read once, passed on, replaced in tests.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;

use crate::domain::Proxy;
use crate::text::lists;
use crate::text::redact::{Redactor, is_secret, password_in};

/// Additional variables for programs that the person configured: more locations, on all systems.
const HARMLESS: &str = "
HOMEDRIVE HOMEPATH NODE_EXTRA_CA_CERTS PROGRAMFILES(X86) TERM TMPDIR USERNAME XDG_CACHE_HOME XDG_CONFIG_DIRS
XDG_CONFIG_HOME XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME
";

/// Hardly any program starts on Windows without these.
const FOR_COMMANDS_ON_WINDOWS: &str = "
APPDATA COMSPEC LOCALAPPDATA PATHEXT PROGRAMDATA PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERPROFILE
WINDIR
";

/// The variables that the model's commands get: where programs are and how a person reads. None of these names can hold
/// a secret.
const FOR_COMMANDS: &str = "
CARGO_HOME CARGO_TARGET_DIR CC CFLAGS CONDA_PREFIX CXX CXXFLAGS DOTNET_ROOT GOCACHE GOMODCACHE GOPATH GOROOT
HOME JAVA_HOME LANG LANGUAGE LD_LIBRARY_PATH LIBRARY_PATH LOGNAME NODE_PATH NVM_DIR PATH PKG_CONFIG_PATH
PNPM_HOME PYENV_ROOT PYTHONPATH RUSTFLAGS RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE SHELL SSL_CERT_DIR
SSL_CERT_FILE TZ USER VIRTUAL_ENV
";

/// The environment the process was started with. Cheap to clone.
#[derive(Clone, Default)]
pub struct Environment(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    variables: HashMap<String, String>,
    /// The platform's folder for configuration.
    platform: Option<PathBuf>,
    /// tandem's own configuration folder.
    config: Option<PathBuf>,
    /// tandem's own state folder.
    state: Option<PathBuf>,
    /// The file of the administrator.
    managed: Option<PathBuf>,
    /// This program.
    program: Option<PathBuf>,
    /// All secrets that become known in this process.
    secrets: Redactor,
}

impl Environment {
    /// The environment of this process. Variables that are not Unicode count as unset.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables = spelled(variables, cfg!(windows));
        let folders = etcetera::choose_base_strategy().ok();
        let platform = folders.as_ref().map(etcetera::BaseStrategy::config_dir);
        let config = platform.as_ref().map(|folder| folder.join("tandem"));
        let state = folders.map(|folders| {
            folders
                .state_dir()
                .unwrap_or_else(|| folders.data_dir())
                .join("tandem")
        });
        let managed = Some(managed_file(&variables));
        Self(Arc::new(Inner {
            variables,
            platform,
            config,
            state,
            managed,
            program: this_program(),
            secrets: Redactor::default(),
        }))
    }

    /// A made-up environment: these variables, and the folders `config`, `state` and `platform` inside `home`.
    pub fn made_up(home: &Path, variables: &[(&str, &str)]) -> Self {
        let variables = variables
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Self(Arc::new(Inner {
            variables: spelled(variables, cfg!(windows)),
            platform: Some(home.join("platform")),
            config: Some(home.join("config")),
            state: Some(home.join("state")),
            managed: Some(home.join("managed/config.toml")),
            program: None,
            secrets: Redactor::default(),
        }))
    }

    /// The same with `program` as this program.
    #[must_use]
    pub fn with_program(self, program: &Path) -> Self {
        Self(Arc::new(Inner {
            program: Some(program.to_owned()),
            ..Inner::clone(&self.0)
        }))
    }

    /// The path of this program, to start it again.
    pub fn program(&self) -> Option<&Path> {
        self.0.program.as_deref()
    }

    /// The variables for the model's commands.
    pub fn for_commands(&self) -> BTreeMap<String, String> {
        self.those(|name| {
            lists(FOR_COMMANDS, name)
                || name.starts_with("LC_")
                || (cfg!(windows) && lists(FOR_COMMANDS_ON_WINDOWS, name))
        })
    }

    fn those(&self, given: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let variables = self.0.variables.iter().filter(|(name, _)| given(name));
        variables
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// A variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        let upper = if cfg!(windows) {
            name.to_ascii_uppercase()
        } else {
            String::new()
        };
        let name = if cfg!(windows) { &upper } else { name };
        self.0
            .variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Knows all secrets that become known in this process.
    pub(super) fn redactor(&self) -> Redactor {
        self.0.secrets.clone()
    }

    /// The values of variables whose names look like secrets, and the passwords in URLs.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let variables = self.0.variables.iter();
        variables.filter_map(|(name, value)| {
            let secret = is_secret(name).then_some(value.as_str());
            secret.or_else(|| password_in(value))
        })
    }

    /// The proxy for a URL of this scheme, from the conventional variables.
    pub(super) fn proxy(&self, scheme: &str) -> Option<Proxy> {
        let of_scheme = if scheme == "https" {
            ["HTTPS_PROXY", "https_proxy"]
        } else {
            ["HTTP_PROXY", "http_proxy"]
        };
        let mut variables = of_scheme.into_iter().chain(["ALL_PROXY", "all_proxy"]);
        let (variable, url) = variables.find_map(|name| Some((name, self.get(name)?)))?;
        let except = self
            .get("NO_PROXY")
            .or_else(|| self.get("no_proxy"))
            .unwrap_or_default();
        Some(Proxy {
            variable,
            url: url.to_owned(),
            except: except.to_owned(),
        })
    }

    /// The variables for programs configured by the person: locations and how to display text. No keys, and nothing of
    /// unknown meaning.
    pub fn harmless(&self) -> BTreeMap<String, String> {
        let mut variables = self.for_commands();
        variables.extend(
            self.those(|name| lists(FOR_COMMANDS_ON_WINDOWS, name) || lists(HARMLESS, name)),
        );
        variables
    }

    /// The person's home folder.
    pub fn home(&self) -> Option<&Path> {
        let home = self.get("HOME").or_else(|| self.get("USERPROFILE"))?;
        Some(Path::new(home))
    }

    /// The user's configuration file, whether it exists or not; `None` without a home directory.
    pub fn config_file(&self) -> Option<PathBuf> {
        match self.get("TANDEM_CONFIG") {
            Some(path) => Some(PathBuf::from(path)),
            None => self
                .0
                .config
                .as_ref()
                .map(|folder| folder.join("config.toml")),
        }
    }

    /// The administrator's file, whether it exists or not.
    pub fn managed_file(&self) -> Option<&Path> {
        self.0.managed.as_deref()
    }

    /// The platform's folder for configuration, where other programs keep theirs.
    pub fn config_home(&self) -> Option<&Path> {
        self.0.platform.as_deref()
    }

    /// The platform's state folder.
    pub fn state_folder(&self) -> Option<&Path> {
        self.0.state.as_deref()
    }
}

/// The variables by name. Windows treats `Path` and `PATH` as the same, so there all names are upper-cased.
fn spelled(
    variables: impl Iterator<Item = (String, String)>,
    ignores_case: bool,
) -> HashMap<String, String> {
    variables
        .map(|(name, value)| {
            (
                if ignores_case {
                    name.to_ascii_uppercase()
                } else {
                    name
                },
                value,
            )
        })
        .collect()
}

fn managed_file(variables: &HashMap<String, String>) -> PathBuf {
    if cfg!(windows) {
        let folder = variables
            .get("PROGRAMDATA")
            .map_or("C:\\ProgramData", String::as_str);
        return Path::new(folder).join("tandem\\config.toml");
    }
    PathBuf::from("/etc/tandem/config.toml")
}

/// This program's path, even after another version has been installed over it.
fn this_program() -> Option<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() {
        Some(running.to_owned())
    } else {
        std::env::current_exe().ok()
    }
}

/// Values may be keys, so they are not shown.
impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_names_ignore_case_on_windows() {
        let given = || [("Path".to_owned(), "C:\\bin".to_owned())].into_iter();
        assert_eq!(
            spelled(given(), true).get("PATH").map(String::as_str),
            Some("C:\\bin")
        );
        assert!(spelled(given(), false).contains_key("Path"));
    }
}
