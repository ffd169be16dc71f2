//! bubblewrap: gives a command its own file system, network and process ids.
//!
//! The file system is built from nothing: what is not mounted does not exist. Parents are mounted first, so that deeper
//! mounts take precedence.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::MemfdFlags;

use super::places::Places;
use super::seccomp::{self, Sockets};
use super::{Confined, Start, cover};

/// Namespaces, no capabilities, no terminal, and no life after the server's.
const ALONE: [&str; 9] = [
    "--die-with-parent",
    "--new-session",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// The program `bwrap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    program: PathBuf,
    /// tandem itself, if a command can replace files whose unsaved text it sees (see [`cover`]).
    covers: Option<PathBuf>,
}

impl Bubblewrap {
    /// The `program`, if it works here.
    ///
    /// # Errors
    /// It does not, with its own message.
    pub async fn find(program: PathBuf, own: Option<&Path>) -> Result<Self, String> {
        probe(&program, &[], &["/bin/sh", "-c", ":"].map(OsString::from)).await?;
        // Within bubblewrap, `/proc/self/exe` would be bubblewrap.
        let Some(own) = own.and_then(|own| own.canonicalize().ok()) else { return Ok(Self { program, covers: None }) };
        let mounts = cover::mounts(&own, Path::new("/dev/null"));
        let mut options = capabilities();
        options.extend(mounts.into_iter().take(1).flat_map(|(how, from, to)| [how.into(), from.into(), to.into()]));
        options.extend(["--dir", cover::TEXTS].map(OsString::from));
        let entered = cover::entered(std::iter::empty(), Path::new("/"), &["true".into()]);
        let probed = probe(&program, &options, &entered).await;
        let covers = probed.inspect_err(|why| tracing::info!("commands cannot replace unsaved files: {why}"));
        Ok(Self { program, covers: covers.ok().map(|()| own) })
    }

    /// Whether commands can replace, move and remove files whose unsaved text they see.
    pub fn covers(&self) -> bool {
        // An upgrade may have removed it.
        self.covers.as_ref().is_some_and(|own| own.exists())
    }
}

/// Whether bubblewrap starts `argv` with these options.
async fn probe(program: &Path, options: &[OsString], argv: &[OsString]) -> Result<(), String> {
    let mut command = super::command(program);
    command.args(ALONE).args(["--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    let output = command.args(options).arg("--").args(argv).stdin(std::process::Stdio::null()).output().await;
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn capabilities() -> Vec<OsString> {
    cover::CAPABILITIES.iter().flat_map(|capability| ["--cap-add", capability]).map(OsString::from).collect()
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
        let mut covered = confined.stand_ins.iter().filter(|stand_in| !stand_in.is_fixed()).peekable();
        let Some(own) = self.covers.as_ref().filter(|_| covered.peek().is_some()) else {
            let mut arguments: Vec<OsString> = vec![self.program.clone().into()];
            arguments.extend(options(confined, mounts));
            arguments.push("--".into());
            arguments.extend_from_slice(argv);
            return (Start::Filtered, arguments);
        };
        let more = cover::mounts(own, &confined.scratch.unsaved());
        mounts.extend(more.map(|(how, from, to)| Mount { how, from: Some(from), to }));
        let mut arguments: Vec<OsString> = vec![self.program.clone().into()];
        arguments.extend(options(confined, mounts));
        arguments.extend(capabilities());
        arguments.push("--".into());
        arguments.extend(cover::entered(covered, confined.cwd, argv));
        (Start::Plainly, arguments)
    }
}

/// bubblewrap's options.
fn options(confined: &Confined<'_>, mounts: Vec<Mount>) -> Vec<OsString> {
    let mut options = ALONE.map(OsString::from).to_vec();
    if !confined.network {
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

/// The system call filter, in memory.
///
/// # Errors
/// The system cannot create it.
pub(super) fn filter() -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("filter", MemfdFlags::CLOEXEC)?);
    file.write_all(&seccomp::bytes(&seccomp::whole(Sockets::Own)?))?;
    file.rewind()?;
    Ok(file)
}

/// The target of `place` if it is a link into another of the `places`: a link takes less time than a mount.
fn link_within(place: &Path, places: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let target = place.read_link().ok()?;
    let real = place.canonicalize().ok()?;
    let is_shown = real.ancestors().any(|above| places.contains(above) && !above.is_symlink());
    is_shown.then_some(target)
}

fn mounts(confined: &Confined<'_>) -> Vec<Mount> {
    let mut mounts = Vec::new();
    let mut add = |how, from: Option<&Path>, to: &Path| {
        mounts.push(Mount { how, from: from.map(Path::to_owned), to: to.to_owned() });
    };
    add("--dev", None, Path::new("/dev"));
    add("--proc", None, Path::new("/proc"));
    let scratch = confined.scratch.temporary();
    add("--bind", Some(&scratch), Path::new("/tmp"));
    add("--bind", Some(&scratch), Path::new("/var/tmp"));
    let Places { system, home, secrets } = confined.places;
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
        if root.path() != root.real() {
            add("--bind", Some(root.place()), root.path());
        }
    }
    for place in &confined.pins.fixed {
        add("--bind", Some(&confined.place(place)), place);
    }
    for place in confined.lent {
        add("--ro-bind", Some(place), place);
    }
    for stand_in in confined.stand_ins.iter().filter(|stand_in| stand_in.is_fixed()) {
        let how = if stand_in.is_protected() { "--ro-bind" } else { "--bind" };
        add(how, Some(stand_in.source()), &stand_in.target());
    }
    // A link cannot be a mount point; it is checked after the command.
    let is_shown = |place: &PathBuf| confined.stand_ins.iter().any(|stand_in| stand_in.target() == *place);
    for path in confined.pins.read_only.iter().filter(|path| !is_shown(path)) {
        let place = confined.place(path);
        if !place.is_symlink() {
            add("--ro-bind", Some(&place), path);
        }
    }
    for place in secrets.iter().chain(confined.hidden).chain(&confined.pins.sockets).filter(|place| place.exists()) {
        if place.is_dir() {
            add("--tmpfs", None, place);
        } else {
            add("--ro-bind", Some(Path::new("/dev/null")), place);
        }
    }
    mounts.sort_by_key(|mount| mount.to.components().count());
    mounts
}
