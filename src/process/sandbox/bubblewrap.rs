//! bubblewrap: gives a command its own file system, network and process ids.
//!
//! The file system is built from nothing: what is not mounted does not exist. Parents are mounted first, so that deeper
//! mounts take precedence.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::MemfdFlags;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::places::Places;
use super::seccomp::{self, Sockets};
use super::{Confined, Network, Start, cover};
use crate::domain::lock;
use crate::workspace::blocking;

/// Namespaces, no capabilities, no terminal.
const ALONE: [&str; 8] = [
    "--new-session",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// A command that does nothing.
const NOTHING: [&str; 3] = ["/bin/sh", "-c", ":"];

/// What works, shared by the sessions of this process. What does not work is probed again by the next session, since its
/// cause may be gone.
static WORKING: Mutex<BTreeMap<Programs, Arc<Abilities>>> = Mutex::new(BTreeMap::new());

/// The paths of bubblewrap and of tandem, where it is known.
type Programs = (PathBuf, Option<PathBuf>);

/// What works besides a plain sandbox.
#[derive(Debug)]
struct Abilities {
    /// Whether commands can join a network.
    network: Result<(), String>,
    covers: OnceCell<bool>,
}

/// The program `bwrap`, which works here.
#[derive(Debug)]
pub(super) struct Bubblewrap {
    program: PathBuf,
    /// tandem itself, which replaces files inside a sandbox. Within bubblewrap, `/proc/self/exe` would be bubblewrap.
    own: Option<PathBuf>,
    abilities: Arc<Abilities>,
    /// The session's network, once a command has needed it or the probe has made one.
    network: OnceLock<Network>,
}

impl Bubblewrap {
    /// The `program`, if it works here.
    ///
    /// # Errors
    /// It does not, with its own message.
    pub async fn find(program: PathBuf, own: Option<&Path>) -> Result<Self, String> {
        let key = (program.clone(), own.map(Path::to_owned));
        let known = lock(&WORKING).get(&key).cloned();
        let (abilities, network) = if let Some(abilities) = known {
            (abilities, None)
        } else {
            let (abilities, network) = Abilities::find(&program, own).await?;
            let abilities = Arc::new(abilities);
            if own.is_none() || network.is_some() {
                lock(&WORKING).insert(key, Arc::clone(&abilities));
            }
            (abilities, network)
        };
        Ok(Self {
            program,
            own: own.and_then(|own| own.canonicalize().ok()),
            abilities,
            network: network.map_or_else(OnceLock::new, OnceLock::from),
        })
    }

    /// Whether commands can share a network.
    ///
    /// # Errors
    /// They cannot, with the reason.
    pub fn shares_network(&self) -> Result<(), &str> {
        self.abilities
            .network
            .as_ref()
            .copied()
            .map_err(String::as_str)
    }

    /// The network that commands join; `None` where they cannot. The first call makes it. Blocks.
    ///
    /// # Errors
    /// The system refuses to make one.
    pub fn network(&self) -> io::Result<Option<&Network>> {
        if self.abilities.network.is_err() || self.network.get().is_some() {
            return Ok(self.network.get());
        }
        let made = new_network(&self.program)?;
        Ok(Some(self.network.get_or_init(|| made)))
    }

    /// Whether commands can replace, move and remove files whose unsaved text they see (see [`cover`]). The first answer
    /// takes starting a sandbox, so it is asked for only when there is such a text.
    pub async fn covers(&self) -> bool {
        // An upgrade may have removed it.
        let Some(own) = self.own.as_ref().filter(|own| own.exists()) else {
            return false;
        };
        let probe = || self.probe_cover(own);
        *self.abilities.covers.get_or_init(probe).await
    }

    async fn probe_cover(&self, own: &Path) -> bool {
        let [(how, from, to), _] = cover::mounts(own, Path::new("/dev/null"));
        let mut options = capabilities();
        options.extend([how.into(), from.into(), to.into()]);
        options.extend(["--dir", cover::TEXTS].map(OsString::from));
        let entered = cover::entered(std::iter::empty(), Path::new("/"), false, &["true".into()]);
        probe(super::command(&self.program), &options, &entered)
            .await
            .inspect_err(|why| tracing::info!("commands cannot replace unsaved files: {why}"))
            .is_ok()
    }
}

impl Abilities {
    /// What works with bubblewrap's `program` and with `own`, tandem itself; and the network that was made to find out.
    ///
    /// # Errors
    /// bubblewrap does not work at all, with its own message.
    async fn find(program: &Path, own: Option<&Path>) -> Result<(Self, Option<Network>), String> {
        let made = match own {
            Some(own) => new_joined_network(program, own).await,
            None => Err("tandem cannot start itself here".to_owned()),
        };
        // A sandbox that started inside a network needs no further probe.
        if let Err(why) = &made {
            tracing::info!("commands do not share a network: {why}");
            probe(super::command(program), &[], &NOTHING.map(OsString::from)).await?;
        }
        let (made, network) = match made {
            Ok(made) => (Some(made), Ok(())),
            Err(why) => (None, Err(why)),
        };
        let covers = OnceCell::new();
        Ok((Self { network, covers }, made))
    }
}

/// A network that `own`, this program, has sandboxes join.
///
/// # Errors
/// The system refuses to make one, or to let a sandbox begin inside it.
async fn new_joined_network(program: &Path, own: &Path) -> Result<Network, String> {
    let bubblewrap = program.to_owned();
    let network = blocking(move || new_network(&bubblewrap))
        .await
        .map_err(|error| error.to_string())?;
    let mut joined = super::command(own);
    joined
        .arg("sandbox-exec")
        .arg("--join")
        .args(network.places());
    joined.arg("--").arg(program);
    probe(joined, &[], &NOTHING.map(OsString::from)).await?;
    Ok(network)
}

/// A network, which bubblewrap makes and sets up for a shell that lives until the network is open here. Blocks.
fn new_network(program: &Path) -> io::Result<Network> {
    const HOLD: &str = "echo $$; read end";
    let mut command = std::process::Command::new(program);
    command.args([
        "--unshare-user",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--",
    ]);
    command.args(["/bin/sh", "-c", HOLD]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut shell = command.spawn()?;
    let mut line = String::new();
    if let Some(output) = shell.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    let network = line
        .trim()
        .parse()
        .map_err(io::Error::other)
        .and_then(Network::of);
    // It ends with its input. Killed while it sets up, it would leave a process behind.
    shell.stdin.take();
    shell.wait()?;
    network
}

/// Whether bubblewrap, which `command` starts, starts `argv` with these options.
///
/// It ends by itself, even if the server ends first: one that is killed while it sets up its namespaces leaves a process
/// behind that waits for it for ever. (Commands have the supervisor, which ends such a process too.)
async fn probe(
    mut command: Command,
    options: &[OsString],
    argv: &[OsString],
) -> Result<(), String> {
    command
        .kill_on_drop(false)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    command.args(ALONE).args([
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]);
    command.args(options).arg("--").args(argv);
    // Not a pipe: that would stay open until the last process in the sandbox has ended.
    let mut said = tempfile::tempfile().map_err(|error| error.to_string())?;
    command.stderr(said.try_clone().map_err(|error| error.to_string())?);
    // Its input stays open meanwhile: the supervisor of a command ends with that.
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let input = child.stdin.take();
    let status = child.wait().await.map_err(|error| error.to_string())?;
    drop(input);
    if status.success() {
        return Ok(());
    }
    let mut why = Vec::new();
    said.rewind()
        .and_then(|()| said.read_to_end(&mut why))
        .map_err(|error| error.to_string())?;
    Err(String::from_utf8_lossy(&why).trim().to_owned())
}

fn capabilities() -> Vec<OsString> {
    cover::CAPABILITIES
        .iter()
        .flat_map(|capability| ["--cap-add", capability])
        .map(OsString::from)
        .collect()
}

/// One mount.
#[derive(Debug)]
struct Mount {
    how: &'static str,
    from: Option<PathBuf>,
    to: PathBuf,
}

impl Bubblewrap {
    /// How to start `argv` in its own file system.
    pub fn held(&self, confined: &Confined<'_>, argv: &[OsString]) -> (Start, Vec<OsString>) {
        let mut mounts = mounts(confined);
        let mut covered = confined
            .stand_ins
            .iter()
            .filter(|stand_in| !stand_in.is_fixed())
            .peekable();
        let own = self.own.as_ref().filter(|_| covered.peek().is_some());
        if let Some(own) = own {
            let more = cover::mounts(own, &confined.scratch.unsaved());
            mounts.extend(more.map(|(how, from, to)| Mount {
                how,
                from: Some(from),
                to,
            }));
        }
        let mut arguments: Vec<OsString> = vec![self.program.clone().into()];
        arguments.extend(options(confined, mounts));
        let network = confined.network;
        let (start, argv) = match own {
            Some(_) => {
                arguments.extend(capabilities());
                let argv = cover::entered(covered, confined.cwd, network, argv);
                (Start::Plainly, argv)
            }
            None => (Start::Filtered { network }, argv.to_vec()),
        };
        arguments.push("--".into());
        arguments.extend(argv);
        (start, arguments)
    }
}

/// bubblewrap's options.
fn options(confined: &Confined<'_>, mounts: Vec<Mount>) -> Vec<OsString> {
    let mut options: Vec<_> = ["--die-with-parent"]
        .into_iter()
        .chain(ALONE)
        .map(OsString::from)
        .collect();
    if !confined.network && confined.session.is_none() {
        options.push("--unshare-net".into());
    }
    for Mount { how, from, to } in mounts {
        options.push(how.into());
        options.extend(from.map(OsString::from));
        options.push(to.into());
    }
    options.extend([OsString::from("--chdir"), confined.cwd.into()]);
    options
}

/// The system call filter, in memory, for a command with or without the host's `network`.
///
/// # Errors
/// The system cannot create it.
pub(super) fn filter(network: bool) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("filter", MemfdFlags::CLOEXEC)?);
    file.write_all(&seccomp::bytes(&seccomp::whole(Sockets::inside(network))?))?;
    file.rewind()?;
    Ok(file)
}

/// The target of `place` if it is a link into another of the `places`: a link takes less time than a mount.
fn link_within(place: &Path, places: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let target = place.read_link().ok()?;
    let real = place.canonicalize().ok()?;
    let is_shown = real
        .ancestors()
        .any(|above| places.contains(above) && !above.is_symlink());
    is_shown.then_some(target)
}

fn mounts(confined: &Confined<'_>) -> Vec<Mount> {
    let mut mounts = Vec::new();
    let mut add = |how, from: Option<&Path>, to: &Path| {
        mounts.push(Mount {
            how,
            from: from.map(Path::to_owned),
            to: to.to_owned(),
        });
    };
    add("--dev", None, Path::new("/dev"));
    add("--proc", None, Path::new("/proc"));
    let scratch = confined.scratch.temporary();
    add("--bind", Some(&scratch), Path::new("/tmp"));
    add("--bind", Some(&scratch), Path::new("/var/tmp"));
    let Places {
        system,
        home,
        secrets,
    } = confined.places;
    for place in system {
        match link_within(place, system) {
            Some(target) => add("--symlink", Some(&target), place),
            None => add("--ro-bind", Some(place), place),
        }
    }
    if let Some(folder) = confined.home {
        add("--bind", Some(&confined.scratch.home()), folder);
        for place in home {
            // The target of a link in the home directory is mounted in place of the link.
            if let Ok(real) = folder.join(place).canonicalize() {
                add("--ro-bind", Some(&real), &folder.join(place));
            }
        }
    }
    for root in confined.roots {
        add("--bind", Some(root.place()), root.real());
    }
    for place in &confined.pins.fixed {
        add("--bind", Some(&confined.place(place)), place);
    }
    for place in confined.lent {
        add("--ro-bind", Some(place), place);
    }
    for stand_in in confined
        .stand_ins
        .iter()
        .filter(|stand_in| stand_in.is_fixed())
    {
        let how = if stand_in.is_protected() {
            "--ro-bind"
        } else {
            "--bind"
        };
        add(how, stand_in.source(), &stand_in.target());
    }
    for (how, from, to) in shut(confined, secrets) {
        add(how, from.as_deref(), &to);
    }
    let links = confined
        .roots
        .iter()
        .filter(|root| root.path() != root.real());
    for root in links {
        mounts.extend(again(&mounts, root.real(), root.path()));
    }
    mounts.sort_by_key(|mount| mount.to.components().count());
    mounts
}

/// The mounts in the folder `real` once more for its other name: what is protected or hidden has to be so under both.
fn again(mounts: &[Mount], real: &Path, name: &Path) -> Vec<Mount> {
    let renamed = |mount: &Mount| {
        let below = mount.to.strip_prefix(real).ok()?;
        Some(Mount {
            how: mount.how,
            from: mount.from.clone(),
            to: name.iter().chain(below).collect(),
        })
    };
    mounts.iter().filter_map(renamed).collect()
}

/// The mounts that make files read-only, and those that hide them.
fn shut(
    confined: &Confined<'_>,
    secrets: &[PathBuf],
) -> Vec<(&'static str, Option<PathBuf>, PathBuf)> {
    let mut shut = Vec::new();
    // A link cannot be a mount point; it is checked after the command.
    let is_shown = |place: &PathBuf| {
        confined
            .stand_ins
            .iter()
            .any(|stand_in| stand_in.target() == *place)
    };
    for path in confined
        .pins
        .read_only
        .iter()
        .filter(|path| !is_shown(path))
    {
        let place = confined.place(path);
        if !place.is_symlink() {
            shut.push(("--ro-bind", Some(place), path.clone()));
        }
    }
    for place in secrets
        .iter()
        .chain(confined.hidden)
        .chain(&confined.pins.sockets)
        .filter(|place| place.exists())
    {
        shut.push(if place.is_dir() {
            ("--tmpfs", None, place.clone())
        } else {
            ("--ro-bind", Some(PathBuf::from("/dev/null")), place.clone())
        });
    }
    shut
}
