//! The paths of programs and their dependencies that a command may see. All others are invisible to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The system.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/sys",
    "/run/current-system",
];
/// Resolver files, if `/etc/resolv.conf` links elsewhere.
const RESOLVERS: [&str; 3] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
];
/// The system's secrets, which a command running as root (in a container) could read.
const SYSTEM_SECRETS: [&str; 6] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/ssl/private",
];

/// Toolchains in the home directory. Besides these and [`FETCHED`] nothing is visible: no key, no token, no history.
const TOOLS: [&str; 36] = [
    ".asdf",
    ".bun/bin",
    ".cabal/bin",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".dotnet",
    ".fnm",
    ".gem",
    ".ghcup",
    ".gitconfig",
    ".gradle/wrapper",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".stack",
    ".swiftly",
    ".volta",
];

/// Caches of toolchains. A command with network access downloads into a folder of its own: no command can change what
/// later builds use from here.
const FETCHED: [&str; 10] = [
    ".bun/install/cache",
    ".cabal/packages",
    ".cargo/git",
    ".cargo/registry",
    ".gradle/caches",
    ".m2/repository",
    ".npm/_cacache",
    ".nuget/packages",
    ".yarn/cache",
    "go",
];

/// Variables that name a toolchain's folder, and which parts of it are shown; none means all of it.
const NAMED: [(&str, &[&str]); 12] = [
    (
        "CARGO_HOME",
        &["bin", "config", "config.toml", "env", "git", "registry"],
    ),
    ("CONDA_PREFIX", &[]),
    ("DOTNET_ROOT", &[]),
    ("GOMODCACHE", &[]),
    ("GOPATH", &["bin", "pkg"]),
    ("GOROOT", &[]),
    ("JAVA_HOME", &[]),
    ("NVM_DIR", &[]),
    ("PNPM_HOME", &[]),
    ("PYENV_ROOT", &[]),
    ("RUSTUP_HOME", &[]),
    ("VIRTUAL_ENV", &[]),
];

/// Readable paths, without symlinks.
#[derive(Debug, Default)]
pub(in crate::process) struct Places {
    /// The system, and other folders in the search path.
    pub system: BTreeSet<PathBuf>,
    /// Parts of the home folder, relative to it.
    pub home: BTreeSet<PathBuf>,
    /// Paths in the above that must not be read.
    pub secrets: Vec<PathBuf>,
}

impl Places {
    /// The paths on this machine for a command with these `variables` that may change the folders `write`.
    pub fn find(
        variables: &BTreeMap<String, String>,
        home: Option<&Path>,
        write: &[PathBuf],
        network: bool,
    ) -> Self {
        let resolvers = RESOLVERS.iter().filter(|_| network);
        let system = SYSTEM
            .iter()
            .chain(resolvers)
            .map(PathBuf::from)
            .filter(|place| place.exists());
        let mut places = Self {
            system: system.collect(),
            home: BTreeSet::new(),
            secrets: SYSTEM_SECRETS
                .iter()
                .map(PathBuf::from)
                .filter(|place| may_be_read(place))
                .collect(),
        };
        if let Some(home) = home {
            places.home = TOOLS
                .iter()
                .chain(FETCHED.iter().filter(|_| !network))
                .map(PathBuf::from)
                .filter(|place| home.join(place).exists())
                .collect();
        }
        for (name, parts) in NAMED {
            let Some(folder) = variables
                .get(name)
                .map(Path::new)
                .filter(|folder| folder.is_absolute())
            else {
                continue;
            };
            let whole = parts.is_empty().then(|| folder.to_owned());
            for place in whole
                .into_iter()
                .chain(parts.iter().map(|part| folder.join(part)))
            {
                // A path this close to the root holds more than a toolchain.
                if place
                    .canonicalize()
                    .is_ok_and(|real| real.components().count() > 2)
                {
                    places.add(&place, home, write);
                }
            }
        }
        for folder in std::env::split_paths(super::super::path_of(variables)) {
            let Ok(folder) = folder.canonicalize() else {
                continue;
            };
            // For the `bin` of an installation, the whole installation.
            if let Some(whole) = folder.parent()
                && folder.ends_with("bin")
                && !places.has(&folder)
                && whole.components().count() > 2
                && !home.is_some_and(|home| whole.starts_with(home))
            {
                places.add(whole, home, write);
            }
            places.add(&folder, home, write);
        }
        if let Some(home) = home {
            let tools = TOOLS.iter().map(|tool| home.join(tool));
            places
                .secrets
                .extend(tools.flat_map(|tool| credentials(&tool)));
        }
        without_nested(&mut places.system);
        without_nested(&mut places.home);
        places
    }

    /// A file or folder of a toolchain. One that contains more than that (the home directory, the workspace) is not shown.
    fn add(&mut self, place: &Path, home: Option<&Path>, write: &[PathBuf]) {
        let Ok(real) = place.canonicalize() else {
            return;
        };
        let holds_more = home
            .into_iter()
            .chain(write.iter().map(PathBuf::as_path))
            .any(|inner| inner.starts_with(&real));
        let is_written = write.iter().any(|root| real.starts_with(root));
        // The person's secrets are not a toolchain, whatever a variable says.
        let is_secret = crate::workspace::protect::is_secret(&real.join("any"));
        if holds_more || is_written || is_secret || self.has(&real) {
            return;
        }
        match home.and_then(|home| real.strip_prefix(home).ok()) {
            Some(relative) if self.home.iter().any(|place| relative.starts_with(place)) => {}
            Some(relative) => _ = self.home.insert(relative.to_owned()),
            None => _ = self.system.insert(real),
        }
    }

    fn has(&self, folder: &Path) -> bool {
        self.system.iter().any(|place| folder.starts_with(place))
    }
}

/// A tool's tokens for the services it uploads to, in its folder and the folders directly in that. Links are left out:
/// nothing can be mounted on one, and its target is visible only if it is in a tool's folder itself.
fn credentials(tool: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<DirEntry> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.flatten().collect()
    };
    let is_folder = |entry: &&DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let is_token = |entry: &DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(b"credentials")
            && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
    };
    let outer = entries(tool);
    let folders = outer.iter().filter(is_folder);
    let inner: Vec<_> = folders.flat_map(|folder| entries(&folder.path())).collect();
    let tokens = outer.into_iter().chain(inner).filter(is_token);
    tokens.map(|token| token.path()).collect()
}

/// Whether a command could read something at `place`: what is denied to the person is denied to it.
fn may_be_read(place: &Path) -> bool {
    place.is_dir() || std::fs::File::open(place).is_ok()
}

/// Removes what is in another one of the paths, which shows it already.
fn without_nested(paths: &mut BTreeSet<PathBuf>) {
    let all = paths.clone();
    paths.retain(|path| !path.ancestors().skip(1).any(|above| all.contains(above)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_on_the_search_path_are_readable_and_nothing_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "home/bin",
            "home/.ssh",
            "home/.cargo/registry",
            "node/bin",
            "node/lib",
            "work/bin",
            "shared/tools",
        ] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let path = [
            "home/bin",
            "node/lib",
            "node/bin",
            "work/bin",
            "shared/tools",
            "gone",
        ]
        .map(|name| root.join(name));
        let path = std::env::join_paths(path).unwrap().into_string().unwrap();
        let home = root.join("home");
        let named = [
            ("CARGO_HOME", "cargo"),
            ("GOROOT", "work/go"),
            ("JAVA_HOME", "home"),
            ("NVM_DIR", "home/.ssh"),
            ("PYENV_ROOT", ""),
            ("RUSTUP_HOME", "home/rust"),
        ];
        for name in ["cargo/registry", "home/rust", "work/go"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("cargo/credentials.toml"), "secret").unwrap();
        let mut variables: BTreeMap<_, _> = named
            .map(|(name, folder)| {
                (
                    name.to_owned(),
                    root.join(folder).to_str().unwrap().to_owned(),
                )
            })
            .into();
        variables.insert("PATH".to_owned(), path);
        let places = Places::find(&variables, Some(&home), &[root.join("work")], false);
        let ours: Vec<_> = places
            .system
            .iter()
            .filter(|place| place.starts_with(&root))
            .cloned()
            .collect();
        assert_eq!(
            ours,
            [
                root.join("cargo/registry"),
                root.join("node"),
                root.join("shared/tools")
            ]
        );
        let in_home: Vec<_> = places.home.iter().collect();
        assert_eq!(
            in_home,
            [
                Path::new(".cargo/registry"),
                Path::new("bin"),
                Path::new("rust")
            ]
        );
    }

    #[test]
    fn the_tokens_of_tools_are_secrets() {
        let home = tempfile::tempdir().unwrap();
        let secret = [
            ".gem/credentials",
            ".local/share/uv/credentials/credentials.toml",
            ".stack/upload/credentials.json",
        ];
        for name in secret
            .iter()
            .chain(&[".gem/ruby/credentials/lib", ".ssh/credentials"])
        {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/hosts", home.path().join(".gem/credentials-link"))
            .unwrap();
        let found = Places::find(&BTreeMap::new(), Some(home.path()), &[], false).secrets;
        let found: Vec<_> = found
            .iter()
            .filter_map(|path| path.strip_prefix(home.path()).ok())
            .collect();
        for name in secret {
            assert!(
                found.iter().any(|place| Path::new(name).starts_with(place)),
                "{name}: {found:?}"
            );
        }
        for name in [".ssh/credentials", ".gem/credentials-link"] {
            assert!(!found.contains(&Path::new(name)), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_folder_on_the_search_path_that_holds_the_workspace_or_secrets_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let work = home.join("projects/app");
        for place in [&work, &home.join(".ssh"), &home.join("tools")] {
            std::fs::create_dir_all(place).unwrap();
        }
        let path = std::env::join_paths(["projects", ".ssh", "tools"].map(|it| home.join(it)));
        let path = path.unwrap().into_string().unwrap();
        let variables = BTreeMap::from([("PATH".to_owned(), path)]);
        let places = Places::find(&variables, Some(&home), &[work], false);
        assert_eq!(places.home.iter().collect::<Vec<_>>(), [Path::new("tools")]);
    }
}
