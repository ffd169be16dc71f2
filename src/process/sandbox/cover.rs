//! Unsaved texts in the place of their files, where a command can also replace, move or remove them.
//!
//! A name that something is mounted on cannot be replaced: the kernel says "Device or resource busy". It asks only for
//! mounts in the mount namespace of the process. So the texts are mounted in another one, a copy of the sandbox's, and the
//! command gets the root of that while it stays in the sandbox's own. When it replaces a file, the mount there ends.
//! What the sandbox itself has mounted cannot be replaced, as before.
//!
//! The other namespace exists as long as a process in it, which sleeps and looks each second whether the command is still
//! there: bubblewrap ends only when nothing runs in the sandbox any more, unless it is killed in time. A command that kills
//! that process loses the texts and gains nothing: the mounts of a copy in another user namespace cannot be separated.
//!
//! All this takes capabilities in the sandbox's user namespace. They are dropped, and the system calls filtered, before
//! the command is started, and for the process that sleeps.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use super::StandIn;
use super::seccomp::{self, Sockets};

/// The capabilities that are needed before the command.
pub(super) const CAPABILITIES: [&str; 4] = [
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_SYS_ADMIN",
    "CAP_SYS_CHROOT",
];
/// This program in the sandbox.
const PROGRAM: &str = "/dev/.tandem/program";
/// The folder with the texts.
pub(super) const TEXTS: &str = "/dev/.tandem/texts";

/// Arguments: [`HOLD`], pairs of a text and its file, `--`, this program with what makes it the command.
const ENTER: &str = "\
path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
hold=$1
shift
pid=$(unshare --map-root-user --mount /bin/sh -c \"$hold\" sh $$ \"$@\" &)
[ -n \"$pid\" ] && cd \"/proc/$pid/root\" || exit 126
while [ \"$1\" != -- ]; do shift 2; done
shift
exec chroot . setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs \
  env PATH=\"$path\" \"$@\"";

/// Arguments: the process that becomes the command, and those of [`ENTER`] from the pairs on. Mounts the texts, prints
/// its own process id, and sleeps until the command has ended. The command may take control of that process, so its
/// filter is the stricter one.
const HOLD: &str = "\
command=$1
shift
while [ \"$1\" != -- ]; do
  mount --bind \"/dev/.tandem/texts/$1\" \"$2\" || exit
  shift 2
done
mount -t tmpfs tmpfs /dev/.tandem/texts || exit
echo $$
exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs \
  /dev/.tandem/program sandbox-exec --network --filter / -- \
  /bin/sh -c 'while [ -d \"/proc/$0\" ]; do sleep 1; done' $command >/dev/null 2>&1";

/// What the sandbox has to mount: this program, and the folder with the texts.
pub(super) fn mounts(program: &Path, texts: &Path) -> [(&'static str, PathBuf, PathBuf); 2] {
    [
        ("--ro-bind", program.to_owned(), PROGRAM.into()),
        ("--bind", texts.to_owned(), TEXTS.into()),
    ]
}

/// What starts `argv` in `cwd`, with the host's `network` or without, and with the texts of `stand_ins` in the place of
/// their files.
pub(super) fn entered<'a>(
    stand_ins: impl Iterator<Item = &'a StandIn>,
    cwd: &Path,
    network: bool,
    argv: &[OsString],
) -> Vec<OsString> {
    let pair = |stand_in: &StandIn| {
        let text = stand_in
            .source()
            .and_then(Path::file_name)
            .map_or_else(OsString::new, OsString::from);
        [text, stand_in.target().into_os_string()]
    };
    let mut arguments: Vec<OsString> = ["/bin/sh", "-c", ENTER, "sh", HOLD]
        .map(OsString::from)
        .to_vec();
    arguments.extend(stand_ins.flat_map(pair));
    arguments.extend(["--", PROGRAM, "sandbox-exec"].map(OsString::from));
    arguments.extend(network.then(|| "--network".into()));
    arguments.extend(["--filter".into(), cwd.into(), "--".into()]);
    arguments.extend_from_slice(argv);
    arguments
}

/// Becomes the command `argv` in `cwd`, with its system calls filtered. Returns only why not.
pub(super) fn filter(cwd: &Path, network: bool, argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    let filtered = seccomp::whole(Sockets::inside(network))
        .and_then(|filter| seccompiler::apply_filter(&filter).map_err(io::Error::other));
    match filtered {
        Ok(()) => std::process::Command::new(program)
            .args(arguments)
            .current_dir(cwd)
            .exec(),
        Err(error) => error,
    }
}
