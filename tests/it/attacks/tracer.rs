//! System errors and kills, injected into the process by `strace`. It is attached once the server is ready, and limited
//! to the paths of the workspace and the state folder, so that no other call counts.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::checks::everything;
use super::scene::Play;

/// A running `strace`. Dropping it detaches from the process.
pub struct Tracer(Child);

/// How many temporary files the server may have created and still have watched.
const TEMPORARIES: usize = 96;

impl Tracer {
    /// Applies `action` (in `strace`'s syntax) to this family's calls that touch the scene.
    ///
    /// # Errors
    /// Why this isn't possible here.
    pub fn attach(play: &Play<'_>, call: &str, action: &str) -> Result<Self, String> {
        let pid = play.program.pid().as_raw_nonzero();
        let names = variants(call);
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-p",
            &pid.to_string(),
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={names}"),
        ]);
        command.args([
            "-e",
            "signal=none",
            "-e",
            &format!("inject={names}:{action}"),
        ]);
        for path in [play.scene.ws(""), play.scene.home("state")]
            .iter()
            .flat_map(|top| everything(top))
        {
            if path.is_dir() {
                for number in 0..TEMPORARIES {
                    command
                        .arg("-P")
                        .arg(path.join(format!(".tandem-{pid}-{number}.tmp")));
                }
            }
            command.arg("-P").arg(path);
        }
        // It must not outlive the tests after a Ctrl-C.
        let spawned = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|error| format!("strace: {error}"))?;
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            if words.read_line(&mut line).unwrap_or(0) == 0 {
                return Err("strace may not attach".to_owned());
            }
            assert!(!line.contains("invalid"), "{line}");
        }
        // The rest of its output must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        Ok(Self(child))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // When asked to end, it may wait for a zombie forever. Killing it detaches, too; it may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All calls of a family; those this machine lacks are skipped.
fn variants(call: &str) -> &'static str {
    match call {
        "openat" => "?open,?openat,?openat2,?creat",
        "write" => "?write,?writev,?pwrite64,?pwritev,?pwritev2",
        "fsync" => "?fsync,?fdatasync",
        "rename" => "?rename,?renameat,?renameat2",
        "unlink" => "?unlink,?unlinkat",
        "symlink" => "?symlink,?symlinkat",
        "ftruncate" => "?truncate,?ftruncate",
        other => panic!("unknown family {other}"),
    }
}
