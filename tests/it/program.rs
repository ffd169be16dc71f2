//! The real program, in its own home and with an otherwise empty environment.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use tandem::server::Transport;

use crate::driver::{Client, PATIENCE, World, until};

/// A running process. Dropping it kills it.
pub struct Program {
    pid: Pid,
    exit: Receiver<ExitStatus>,
    stderr: Option<JoinHandle<String>>,
    ended: bool,
}

/// The outcome of a process.
#[derive(Debug)]
pub struct Output {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    /// `tandem` with these arguments and the scripted model, without anything from the user who runs the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let home = self.home();
        std::fs::create_dir_all(home.join("tmp")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &home)
            .env("TMPDIR", home.join("tmp"))
            .env("TANDEM_CONFIG", home.join("config.toml"))
            .env("TANDEM_STATE_DIR", home.join("state"))
            .env("TANDEM_MODEL", "scripted")
            .env("TANDEM_BASE_URL", self.model.base_url())
            .stdin(Stdio::null());
        command
    }

    /// The home of this world's programs; it is in the workspace and is removed with it.
    pub fn home(&self) -> std::path::PathBuf {
        self.path().join(".home")
    }

    /// Runs `tandem` to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        finish(&mut self.command(arguments))
    }

    /// A server process and a client that has sent nothing yet.
    pub fn serve(&self, transport: Transport) -> (Program, Client) {
        self.serve_with(transport, |_| ())
    }

    /// The same with the command as `change` makes it.
    pub fn serve_with(
        &self,
        transport: Transport,
        change: impl FnOnce(&mut Command),
    ) -> (Program, Client) {
        let (program, to_server, from_server) = self.serve_changed(transport, change);
        (program, Client::new(transport, to_server, from_server))
    }

    /// A server process and an initialized ACP client.
    pub fn serve_editor(&self) -> (Program, Client) {
        let (program, mut client) = self.serve(Transport::Lsp);
        client.shake_hands(self.handshake(serde_json::json!({ "experimental": { "tandem": {} } })));
        (program, client)
    }

    /// A server process and the bare ends of its pipes.
    pub fn serve_raw(&self, transport: Transport) -> (Program, PipeWriter, PipeReader) {
        self.serve_changed(transport, |_| ())
    }

    fn serve_changed(
        &self,
        transport: Transport,
        change: impl FnOnce(&mut Command),
    ) -> (Program, PipeWriter, PipeReader) {
        let (input, to_server) = std::io::pipe().unwrap();
        let (from_server, output) = std::io::pipe().unwrap();
        let name = if transport == Transport::Lsp {
            "lsp"
        } else {
            "acp"
        };
        let mut command = self.command(&[name]);
        command.env("TANDEM_LOG", "debug");
        change(&mut command);
        command.stdin(input).stdout(output);
        let program = Program::start(&mut command);
        (program, to_server, from_server)
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Output {
    let (mut stdout, output) = std::io::pipe().unwrap();
    let mut program = Program::start(command.stdout(output));
    // The command holds a copy of the pipe's other end.
    command.stdout(Stdio::null());
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    let code = program.ends().code();
    Output {
        code,
        stdout: text,
        stderr: program.stderr(),
    }
}

/// Makes a command that root runs subject to the permissions of other users.
#[cfg(target_os = "linux")]
pub fn without_override(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        let own = std::mem::replace(command, Command::new("setpriv"));
        command
            .arg("--bounding-set=-dac_override,-dac_read_search")
            .arg(own.get_program())
            .args(own.get_args());
        command
            .current_dir(own.get_current_dir().unwrap())
            .env_clear();
        command.envs(
            own.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    }
}

/// Runs a command with `input` as its standard input.
pub fn finish_with(command: &mut Command, input: &str) -> Output {
    let (stdin, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    finish(command.stdin(stdin))
}

impl Program {
    /// Starts a command; its standard error is captured.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let pid = Pid::from_child(&child);
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        let (sender, exit) = sync_channel(1);
        std::thread::spawn(move || sender.send(child.wait().unwrap()));
        Self {
            pid,
            exit,
            stderr: Some(stderr),
            ended: false,
        }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> ExitStatus {
        let status = self
            .exit
            .recv_timeout(PATIENCE)
            .expect("the program ends at all");
        self.ended = true;
        status
    }

    /// Everything it wrote to standard error.
    pub fn stderr(&mut self) -> String {
        self.stderr.take().expect("asked once").join().unwrap()
    }

    /// Its peak resident memory so far, in bytes.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> usize {
        let path = format!("/proc/{}/status", self.pid.as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim()
            .trim_end_matches(" kB")
            .parse::<usize>()
            .unwrap()
            << 10
    }

    /// Waits until its memory has reached this many bytes.
    #[cfg(target_os = "linux")]
    pub fn grows_to(&self, bytes: usize) {
        until("the program's memory grows", || self.peak_memory() >= bytes);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.ended {
            // It may have ended by itself at this moment.
            let _gone = kill_process(self.pid, Signal::KILL);
        }
    }
}
