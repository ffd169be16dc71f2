//! Faults of the system and deaths of the process, made by `strace`: it is attached when the server is ready, and told
//! of the paths of the workspace and the state folder, so that no other call counts.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::case::{Case, Done, Trouble, unknown};
use super::inputs::Run;
use super::scene::{Scene, run};
use super::server::{PATIENCE, Server};

/// A `strace` that meddles. Dropping it lets go of the process.
pub struct Tracer(Child);

/// How many temporary files the server may have made and still be told of.
const TEMPORARIES: usize = 96;

impl Tracer {
    /// Does `action` (in `strace`'s words) to the calls of these names that touch the scene.
    pub fn attach(pid: Pid, scene: &Scene, calls: &str, action: &str) -> Done<Self> {
        let pid = pid.as_raw_nonzero().get();
        let names = variants(calls);
        let mut command = Command::new("strace");
        command.args(["-f", "-p", &pid.to_string(), "-o", "/dev/null", "-e", &format!("trace={names}")]);
        command.args(["-e", "signal=none", "-e", &format!("inject={names}:{action}")]);
        for path in places(scene, pid) {
            command.arg("-P").arg(path);
        }
        // It must outlive a Ctrl-C no longer than the tests do.
        let spawned = command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn();
        let mut child = spawned.map_err(|error| Trouble::NotBuilt(format!("strace: {error}")))?;
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            if words.read_line(&mut line).unwrap_or(0) == 0 {
                return Err(Trouble::NotBuilt("strace may not attach".to_owned()));
            }
            if line.contains("invalid") {
                return unknown("strace_inject", action);
            }
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

/// All calls of the families that `calls` names; those a machine does not have are skipped.
fn variants(calls: &str) -> String {
    let family = |call: &str| match call {
        "openat" | "open" => "?open,?openat,?openat2,?creat".to_owned(),
        "write" => "?write,?writev,?pwrite64,?pwritev,?pwritev2".to_owned(),
        "fsync" | "fdatasync" => "?fsync,?fdatasync".to_owned(),
        "rename" => "?rename,?renameat,?renameat2".to_owned(),
        "unlink" => "?unlink,?unlinkat".to_owned(),
        "ftruncate" => "?truncate,?ftruncate".to_owned(),
        other => format!("?{other}"),
    };
    calls.split(',').map(family).collect::<Vec<_>>().join(",")
}

/// The folders and files of the scene: what is there, and the temporary files to come.
fn places(scene: &Scene, pid: i32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for top in [scene.place("WS"), scene.place("STATE")] {
        for path in everything(&top) {
            if path.is_dir() {
                found.extend((0..TEMPORARIES).map(|number| path.join(format!(".tandem-{pid}-{number}.tmp"))));
            }
            found.push(path);
        }
    }
    found
}

/// A folder and all in it. Links are not followed.
pub fn everything(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.is_symlink() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        found.push(path);
    }
    found
}

/// The fault a case asks for, if it asks for one.
pub fn inject(run: &Run, case: &Case) -> Done<Option<Tracer>> {
    let Some(spec) = case.input["strace_inject"].as_str().filter(|spec| !spec.contains("retval")) else {
        return Ok(None);
    };
    let Some((calls, action)) = spec.split_once(':') else { return unknown("strace_inject", spec) };
    Tracer::attach(run.server.pid, &run.scene, calls, action).map(Some)
}

/// Writes one byte at a time, for real, where the file is one of the workspace.
const SHORT_WRITES: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t length) {
    const char *folder = getenv("TANDEM_TEST_SHORT_WRITES");
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (length > 1 && readlink(link, path, sizeof path - 1) > 0 && !strncmp(path, folder, strlen(folder))) length = 1;
    return syscall(SYS_write, fd, bytes, length);
}
"#;

/// `strace` only pretends that a write was short. A library in front of the system's makes it so.
pub fn preload(command: &mut Command, scene: &Scene, case: &Case) -> Done {
    let Some(spec) = case.input["strace_inject"].as_str().filter(|spec| spec.contains("retval")) else { return Ok(()) };
    if !spec.starts_with("write:retval=1") {
        return unknown("strace_inject", spec);
    }
    let (source, library) = (scene.base().join("short.c"), scene.base().join("short.so"));
    std::fs::write(&source, SHORT_WRITES).unwrap();
    run("cc", &["-shared", "-fPIC", "-o", &library.display().to_string(), &source.display().to_string()])?;
    command.env("LD_PRELOAD", library).env("TANDEM_TEST_SHORT_WRITES", scene.place("WS"));
    Ok(())
}

impl Run {
    /// A turn under a tracer that kills; whether it did.
    pub fn converse_to_death(&mut self, tracer: Tracer) -> bool {
        self.converse("go", |_, _| {});
        // A process is not gone as long as somebody traces it.
        drop(tracer);
        let is_cut = self.notes.turns.last().is_none_or(|turn| turn.answered.is_none());
        is_cut && self.server.was_killed()
    }

    /// Starts the server again after its death.
    pub fn restart(&mut self, case: &Case) -> Done {
        self.note();
        self.server.kill();
        let case = Case { input: json!({ "wire": case.input["wire"], "kind": case.input["kind"] }), ..case.clone() };
        let transport = if case.input["carrier"] == "ndjson" { "ndjson" } else { "lsp" };
        self.server = Server::start(&self.scene, transport, self.notes.port, &case)?;
        // Whether it did shows in the oracles.
        self.server.initialize(None);
        Ok(())
    }
}

/// Kills the server at its n-th such call during a turn.
pub fn kill_at_syscall(run: &mut Run, case: &Case) -> Done {
    let n = case.input["n"].as_u64().unwrap_or(1);
    let calls = case.input["syscall"].as_str().unwrap_or_default();
    let tracer = Tracer::attach(run.server.pid, &run.scene, calls, &format!("signal=KILL:when={n}"))?;
    run.notes.struck = run.converse_to_death(tracer);
    run.model.forget();
    run.restart(case)
}

/// Kills the server after so many updates of an answer.
pub fn kill_after_events(run: &mut Run, case: &Case) -> Done {
    let n = usize::try_from(case.input["n"].as_u64().unwrap_or(1)).unwrap();
    run.model.add(json!({ "reply": "ok_text", "text": "word ".repeat(n + 50), "delay_ms": 5 }));
    run.converse("go", |run, turn| {
        let from = turn.from;
        run.server.wait(PATIENCE, |heard| {
            let of_answer = |update: &Value| update["sessionUpdate"] == "agent_message_chunk";
            let updates = heard.iter().skip(from).filter(|heard| of_answer(&heard.message["params"]["update"]));
            (updates.count() >= n).then_some(())
        });
        run.server.kill();
    });
    run.notes.struck = true;
    run.restart(case)
}

/// Spoils what a finished session has left in the state folder, and starts again.
pub fn corrupt(run: &mut Run, case: &Case) -> Done {
    run.converse("remember this", |_, _| {});
    run.server.kill();
    let logs: Vec<PathBuf> = everything(&run.scene.place("STATE")).into_iter().filter(|path| path.is_file()).collect();
    if logs.is_empty() {
        return Err(Trouble::NotBuilt("the server has left no session log".to_owned()));
    }
    for log in logs {
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.iter_mut().skip(7).step_by(97).for_each(|byte| *byte ^= 0x41);
        bytes.extend([0, 0, 0xff, 0xfe, b'\n', b'{', b'"', 0]);
        std::fs::write(&log, bytes).unwrap();
    }
    run.restart(case)
}

/// Two servers with the same folders, at the same time.
pub fn two_servers(run: &mut Run, case: &Case) -> Done {
    let mut second = Server::start(&run.scene, "lsp", run.notes.port, case)?;
    second.initialize(None);
    let session = second.session();
    run.converse("one", |_, _| {
        if let Some(session) = &session {
            let mut turn = second.prompt(session, "two");
            second.end(&mut turn, PATIENCE);
        }
    });
    second.kill();
    run.more_sessions.extend(session);
    run.restart(case)
}

/// Stops the process in the middle of an answer, as a laptop that sleeps.
pub fn stop_and_continue(run: &mut Run, case: &Case) {
    let time = Duration::from_millis(case.input["ms"].as_u64().unwrap_or(1000));
    run.model.add(json!({ "reply": "ok_text", "text": "word ".repeat(100), "delay_ms": 10 }));
    run.converse("go", |run, turn| {
        let from = turn.from;
        run.server.wait(PATIENCE, |heard| {
            heard.iter().skip(from).any(|heard| heard.update("agent_message_chunk").is_some()).then_some(())
        });
        run.server.signal(Signal::STOP);
        // The case is that time passes: there is no event to wait for in a process that is stopped.
        std::thread::sleep(time);
        run.server.signal(Signal::CONT);
    });
}

/// The files of the scene that are left of writing, by their names.
pub fn litter(scene: &Scene) -> Vec<String> {
    let all = [scene.place("WS"), scene.place("STATE")].map(|top| everything(&top)).concat();
    let is_litter = |path: &&PathBuf| {
        let begins = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".tandem-"));
        begins || path.extension().is_some_and(|extension| extension == "tmp")
    };
    all.iter().filter(is_litter).map(|path| path.display().to_string()).collect()
}
