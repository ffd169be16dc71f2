//! The sandbox of commands: the workspace is writable, the system and toolchains are readable, and nothing else is
//! visible. This is the security boundary; how a command line looks is not.
//!
//! The first mechanism that works is used: bubblewrap with a system call filter; Landlock with a filter (it cannot mount
//! anything, so protected files are restored afterwards); on macOS `sandbox-exec`. Without any, commands are not
//! sandboxed, and the permission request shows that.

#![cfg_attr(
    windows,
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        unreachable_patterns,
        reason = "this system has no sandbox"
    )
)]
#![cfg_attr(
    target_os = "macos",
    allow(dead_code, reason = "bubblewrap and Landlock are Linux's")
)]

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cover;
#[cfg(target_os = "linux")]
mod landlock;
mod network;
mod places;
mod scratch;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::network::Network;
#[cfg(target_os = "linux")]
pub(super) use self::network::join;
pub(super) use self::places::Places;
pub(super) use self::scratch::{BEAT, Interrupted, Scratch};
#[cfg(target_os = "linux")]
use super::command;
use super::{StandIn, Surroundings};
use crate::changes::Pins;
use crate::workspace::Root;

/// The sandbox of this machine, and why the better ones do not work.
#[derive(Debug)]
pub struct Sandbox {
    level: Level,
    lacking: Vec<String>,
}

/// The kinds of sandbox.
#[derive(Debug)]
enum Level {
    #[cfg(target_os = "linux")]
    Bubblewrap(bubblewrap::Bubblewrap),
    #[cfg(target_os = "linux")]
    Landlock,
    #[cfg(target_os = "macos")]
    Seatbelt,
    None,
}

/// A command to run in the sandbox.
pub(super) struct Confined<'a> {
    /// Folders it may change.
    pub roots: &'a [Arc<Root>],
    /// Protected paths inside those.
    pub pins: &'a Pins,
    /// What it may only read in the folders that those are copies of.
    pub lent: &'a [PathBuf],
    /// tandem's own files, which it must not see.
    pub hidden: &'a [PathBuf],
    pub home: Option<&'a Path>,
    pub places: &'a Places,
    pub scratch: &'a Scratch,
    /// Unsaved texts, in place of their files.
    pub stand_ins: &'a [StandIn],
    /// Where it runs, without symlinks.
    pub cwd: &'a Path,
    /// Whether it has the network of the host.
    pub network: bool,
    /// The network that it shares with the other commands of its session, if they have one and it does not have the host's.
    pub session: Option<&'a Network>,
}

impl Confined<'_> {
    /// Where the file is on the disk that the command finds at `path`.
    #[cfg(target_os = "linux")]
    fn place(&self, path: &Path) -> PathBuf {
        let inside = |root: &&Arc<Root>| path.starts_with(root.real());
        let root = self
            .roots
            .iter()
            .filter(inside)
            .max_by_key(|root| root.real().components().count());
        let place =
            root.and_then(|root| Some(root.place().join(path.strip_prefix(root.real()).ok()?)));
        place.unwrap_or_else(|| path.to_owned())
    }
}

/// The program to start.
#[derive(Debug)]
pub(super) struct Invocation {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The program gets the arguments verbatim: `cmd` has its own quoting rules.
    #[cfg(windows)]
    pub verbatim: bool,
}

impl Invocation {
    /// Gives the arguments to a command.
    pub fn add_arguments(&self, command: &mut tokio::process::Command) {
        #[cfg(windows)]
        if self.verbatim {
            for argument in &self.arguments {
                command.raw_arg(argument);
            }
            return;
        }
        command.args(&self.arguments);
    }
}

impl Invocation {
    /// Has the supervisor write the file `ended` when it ends the command because tandem is gone.
    #[cfg(unix)]
    pub fn marked(mut self, ended: PathBuf) -> Self {
        self.arguments
            .splice(1..1, ["--ended".into(), ended.into()])
            .for_each(drop);
        self
    }

    /// Has the supervisor join this network first.
    #[cfg(target_os = "linux")]
    fn inside(mut self, network: &Network) -> Self {
        let [user, network] = network.places().map(OsString::from);
        self.arguments
            .splice(1..1, ["--join".into(), user, network])
            .for_each(drop);
        self
    }

    /// There is no supervisor there.
    #[cfg(not(unix))]
    pub fn marked(self, _ended: PathBuf) -> Self {
        self
    }
}

/// How the supervisor starts its command.
#[derive(Debug)]
pub(super) enum Start {
    /// Directly.
    Plainly,
    /// It is bubblewrap, which gets a system call filter.
    Filtered {
        /// Whether the command has the host's network.
        network: bool,
    },
    /// From a restricted thread.
    Restricted(Restriction),
}

/// The system call filter for [`Start::Filtered`].
///
/// # Errors
/// This system has none.
pub(super) fn filter(network: bool) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    return bubblewrap::filter(network);
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Becomes the command `argv` in `cwd`, with bubblewrap's system call filter. Returns only why not.
pub(super) fn enter(cwd: &Path, network: bool, argv: &[OsString]) -> io::Error {
    #[cfg(target_os = "linux")]
    return cover::filter(cwd, network, argv);
    #[cfg(not(target_os = "linux"))]
    io::Error::other(format!(
        "there is no filter for {argv:?} in {}",
        cwd.display()
    ))
}

/// The rules for Landlock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Restriction {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: bool,
}

impl Restriction {
    /// Restricts this thread and everything it starts.
    ///
    /// # Errors
    /// The system refuses; nothing may be started then.
    pub fn apply(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return landlock::restrict(self);
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::other("this system has no Landlock"))
    }
}

impl Sandbox {
    /// The best level that works here.
    #[cfg(target_os = "linux")]
    pub async fn find(surroundings: &Surroundings) -> Self {
        let mut lacking = Vec::new();
        match surroundings.which("bwrap") {
            None => {
                lacking.push("bubblewrap (`bwrap`) is not installed".to_owned());
            }
            Some(program) => {
                match bubblewrap::Bubblewrap::find(program, surroundings.program.as_deref()).await {
                    Ok(found) => {
                        return Self {
                            level: Level::Bubblewrap(found),
                            lacking,
                        };
                    }
                    Err(why) => lacking.push(format!("bubblewrap does not work here: {why}")),
                }
            }
        }
        match landlock::probe() {
            Ok(()) => Self {
                level: Level::Landlock,
                lacking,
            },
            Err(why) => {
                lacking.push(format!("Landlock does not work here: {why}"));
                Self {
                    level: Level::None,
                    lacking,
                }
            }
        }
    }

    /// The best level that works here.
    #[cfg(not(target_os = "linux"))]
    pub async fn find(_surroundings: &Surroundings) -> Self {
        #[cfg(target_os = "macos")]
        if Path::new(seatbelt::PROGRAM).exists() {
            return Self {
                level: Level::Seatbelt,
                lacking: Vec::new(),
            };
        }
        let lacking = vec!["tandem has no sandbox for this system".to_owned()];
        std::future::ready(Self {
            level: Level::None,
            lacking,
        })
        .await
    }

    /// Whether sandboxed commands share a network.
    ///
    /// # Errors
    /// They do not, with the reason: then each command has a network of its own, or no sockets at all.
    pub fn shares_network(&self) -> Result<(), &str> {
        match &self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(bubblewrap) => bubblewrap.shares_network(),
            _ => Err("it requires bubblewrap"),
        }
    }

    /// The network that sandboxed commands share, if they can. The first call makes it. Blocks.
    ///
    /// # Errors
    /// The system refuses to make one.
    pub fn network(&self) -> io::Result<Option<&Network>> {
        match &self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(bubblewrap) => bubblewrap.network(),
            _ => Ok(None),
        }
    }

    /// Its name; `None` without a sandbox.
    pub fn name(&self) -> Option<&'static str> {
        match self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(_) => Some("bubblewrap and seccomp"),
            #[cfg(target_os = "linux")]
            Level::Landlock => Some("Landlock and seccomp"),
            #[cfg(target_os = "macos")]
            Level::Seatbelt => Some("sandbox-exec"),
            Level::None => None,
        }
    }

    /// Why no better sandbox is used.
    pub fn lacking(&self) -> &[String] {
        &self.lacking
    }

    /// Whether nothing in the sandbox can change protected files, which are looked at afterwards otherwise.
    pub(super) fn pins(&self) -> bool {
        match self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(_) => true,
            #[cfg(target_os = "linux")]
            Level::Landlock => false,
            // Its rules are about paths, which a hard link has several of.
            #[cfg(target_os = "macos")]
            Level::Seatbelt => false,
            Level::None => false,
        }
    }

    /// Whether commands can read the unsaved text of a document in place of its file.
    pub fn shows_unsaved(&self) -> bool {
        #[cfg(target_os = "linux")]
        return matches!(self.level, Level::Bubblewrap(_));
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Whether they can replace, move and remove such a file, rather than only write to it.
    pub async fn covers(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Level::Bubblewrap(bubblewrap) = &self.level {
            return bubblewrap.covers().await;
        }
        std::future::ready(false).await
    }

    /// Whether a command that may change these folders can be sandboxed: the home folder and tandem's own `hidden` files
    /// must not be in them where nothing can be excluded.
    pub(super) fn holds(
        &self,
        roots: &[Arc<Root>],
        home: Option<&Path>,
        hidden: &[PathBuf],
    ) -> bool {
        let within = |inner: &Path, root: &Arc<Root>| {
            inner
                .canonicalize()
                .is_ok_and(|inner| inner.starts_with(root.real()))
        };
        let is_home = |root: &Arc<Root>| {
            home.is_some_and(|home| home.canonicalize().is_ok_and(|home| home == root.real()))
        };
        let too_wide = |root: &Arc<Root>| is_home(root) || within(Path::new("/usr"), root);
        match self.level {
            Level::None => false,
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(_) => !roots.iter().any(too_wide),
            // Only allowed paths can be listed, so nothing inside them can be excluded.
            _ => !roots.iter().any(|root| {
                too_wide(root)
                    || home.is_some_and(|home| within(home, root))
                    || hidden.iter().any(|own| own.starts_with(root.real()))
            }),
        }
    }

    /// The invocation that starts `argv` in the sandbox.
    ///
    /// # Errors
    /// It cannot be prepared; the command must not run then.
    pub(super) fn invocation(
        &self,
        confined: &Confined<'_>,
        surroundings: &Surroundings,
        argv: Vec<OsString>,
    ) -> io::Result<Invocation> {
        if !self.shows_unsaved() && confined.roots.iter().any(|root| root.original().is_some()) {
            return Err(io::Error::other(
                "this sandbox can't confine it to the copy of the workspace",
            ));
        }
        match &self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(bubblewrap) => {
                let (start, argv) = bubblewrap.held(confined, &argv);
                let invocation = surroundings.supervised(&start, argv)?;
                Ok(match confined.session {
                    Some(network) => invocation.inside(network),
                    None => invocation,
                })
            }
            #[cfg(target_os = "linux")]
            Level::Landlock => {
                surroundings.supervised(&Start::Restricted(restriction(confined)?), argv)
            }
            #[cfg(target_os = "macos")]
            Level::Seatbelt => {
                surroundings.supervised(&Start::Plainly, seatbelt::held(confined, argv))
            }
            Level::None => Err(io::Error::other(format!(
                "there is no sandbox for a command in {}",
                confined.cwd.display()
            ))),
        }
    }

    /// Variables that the sandbox requires.
    pub(super) fn variables(&self, scratch: &Scratch) -> Vec<(&'static str, PathBuf)> {
        let temporary = match self.level {
            #[cfg(target_os = "linux")]
            Level::Bubblewrap(_) => "/tmp".into(),
            _ => scratch.temporary(),
        };
        let mut variables = vec![Scratch::git_trace(&temporary), ("TMPDIR", temporary)];
        if !self.shows_unsaved() {
            variables.push(("HOME", scratch.home()));
        }
        variables
    }
}

/// The paths for Landlock, which cannot exclude anything from what it allows.
#[cfg(target_os = "linux")]
fn restriction(confined: &Confined<'_>) -> io::Result<Restriction> {
    // No terminals: the user's are among them, and a command could read what is typed there.
    const DEVICES: [&str; 6] = [
        "/dev/full",
        "/dev/null",
        "/dev/random",
        "/dev/shm",
        "/dev/urandom",
        "/dev/zero",
    ];
    let Places {
        system,
        home,
        secrets,
    } = confined.places;
    let real = |path: PathBuf| path.canonicalize().ok();
    let secrets: Vec<PathBuf> = secrets.iter().cloned().filter_map(real).collect();
    let mut read: Vec<PathBuf> = vec!["/proc".into()];
    for place in system {
        without(&secrets, place.clone(), &mut read);
    }
    if let Some(folder) = confined.home {
        for place in home.iter().filter_map(|place| real(folder.join(place))) {
            without(&secrets, place, &mut read);
        }
        confined.scratch.link(folder, home)?;
    }
    let mut write: Vec<PathBuf> = confined
        .roots
        .iter()
        .map(|root| root.real().to_owned())
        .collect();
    write.extend([confined.scratch.temporary(), confined.scratch.home()]);
    write.extend(DEVICES.map(PathBuf::from));
    Ok(Restriction {
        read,
        write,
        network: confined.network,
    })
}

/// Adds `place` to what may be `read`, or, if it is a folder that contains secrets, everything in it but those.
#[cfg(target_os = "linux")]
fn without(secrets: &[PathBuf], place: PathBuf, read: &mut Vec<PathBuf>) {
    if !secrets.iter().any(|secret| secret.starts_with(&place)) {
        read.push(place);
    } else if !secrets.contains(&place) {
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        for entry in entries {
            without(secrets, entry.path(), read);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn landlock_takes_no_workspace_with_tandems_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let sandbox = Sandbox {
            level: Level::Landlock,
            lacking: Vec::new(),
        };
        let own = root.real().join("state/tandem");
        let beside = root.real().with_extension("beside");
        let holds = |hidden| sandbox.holds(&[Arc::clone(&root)], None, &[hidden]);
        assert!(!holds(own) && holds(beside));
    }
}
