//! The process environment and the platform's folders, as a value: read once, passed on, made up in tests.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;

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

/// Values may be keys: they are not shown.
impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Environment").field("config", &self.0.config).finish_non_exhaustive()
    }
}
