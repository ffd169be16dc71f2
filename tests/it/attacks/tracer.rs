//! System faults and kills of the process, injected by `strace`. It is attached when the server is ready, and limited
//! to the paths of the workspace and the state folder, so that no other call counts.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::checks::everything;
use super::scene::Play;

/// A `strace` that meddles. Dropping it lets go of the process.
pub struct Tracer(Child);

/// How many temporary files the server may have made and still be told of.
const TEMPORARIES: usize = 96;

impl Tracer {
    /// Does `action` (in `strace`'s words) to the calls of this family that touch the scene.
    ///
    /// # Errors
    /// Why it cannot be done here.
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
        // It must outlive a Ctrl-C no longer than the tests do.
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
        // What else it says must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        Ok(Self(child))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // One that is asked to end may wait for a zombie for ever. Killed it lets go too; it may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All calls of a family; those a machine does not have are skipped.
fn variants(call: &str) -> &'static str {
    match call {
        "openat" => "?open,?openat,?openat2,?creat",
        "write" => "?write,?writev,?pwrite64,?pwritev,?pwritev2",
        "fsync" => "?fsync,?fdatasync",
        "rename" => "?rename,?renameat,?renameat2",
        "unlink" => "?unlink,?unlinkat",
        "ftruncate" => "?truncate,?ftruncate",
        other => panic!("no family is called {other}"),
    }
}
