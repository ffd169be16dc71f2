//! bubblewrap: gives a command its own file system, network and process ids.
//!
//! The file system is built from nothing: what is not mounted does not exist. Parents are mounted first, so that deeper
//! mounts take precedence.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::MemfdFlags;

use super::Confined;
use super::places::Places;
use super::seccomp::{self, Sockets};

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
/// bubblewrap reads its filter from a descriptor, and only standard input can be passed safely.
const WITH_FILTER: &str = "exec 3<&0 </dev/null; exec \"$@\"";

/// Whether bubblewrap works here.
///
/// # Errors
/// It does not, with its own message.
pub(super) async fn probe(program: &Path) -> Result<(), String> {
    let mut command = super::command(program);
    command.args(ALONE).args(["--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    let output = command.args(["--", "/bin/sh", "-c", ":"]).stdin(std::process::Stdio::null()).output().await;
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// One mount.
#[derive(Debug)]
struct Mount {
    how: &'static str,
    from: Option<PathBuf>,
    to: PathBuf,
}

/// `argv` in its own file system. It has to be started with the [`filter`] as standard input.
pub(super) fn held(program: &Path, confined: &Confined<'_>, argv: &[OsString]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["/bin/sh", "-c", WITH_FILTER, "sh"].map(OsString::from).to_vec();
    arguments.push(program.into());
    arguments.extend(["--seccomp", "3"].map(OsString::from));
    arguments.extend(ALONE.map(OsString::from));
    if !confined.network {
        arguments.push("--unshare-net".into());
    }
    for Mount { how, from, to } in mounts(confined) {
        arguments.push(how.into());
        arguments.extend(from.map(OsString::from));
        arguments.push(to.into());
    }
    arguments.extend([OsString::from("--chdir"), confined.cwd.into(), OsString::from("--")]);
    arguments.extend_from_slice(argv);
    arguments
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
        add("--ro-bind", Some(place), place);
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
        add("--bind", Some(root.real()), root.real());
        if root.path() != root.real() {
            add("--bind", Some(root.real()), root.path());
        }
    }
    for place in &confined.pins.fixed {
        add("--bind", Some(place), place);
    }
    for stand_in in confined.stand_ins {
        let how = if stand_in.is_protected() { "--ro-bind" } else { "--bind" };
        add(how, Some(stand_in.source()), &stand_in.target());
    }
    // A link cannot be a mount point; it is checked after the command.
    let is_shown = |place: &PathBuf| confined.stand_ins.iter().any(|stand_in| stand_in.target() == *place);
    for place in confined.pins.read_only.iter().filter(|place| !place.is_symlink() && !is_shown(place)) {
        add("--ro-bind", Some(place), place);
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
