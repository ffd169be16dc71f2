//! Where a case plays: a workspace, its evil sibling, a home and a state folder of its own, and what the setup makes there.

use std::collections::HashMap;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::case::{Case, Done, Trouble, Vars, base64, unknown};

/// The scene of one run. Dropping it takes everything away.
pub struct Scene {
    folder: tempfile::TempDir,
    pub program: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    vars: Vars,
    environment: Vec<(String, String)>,
    config: String,
    base_url: Option<String>,
    roots: Vec<PathBuf>,
    contacts: HashMap<String, Arc<Mutex<Vec<String>>>>,
    snapshots: HashMap<PathBuf, Option<Vec<u8>>>,
    mounts: Vec<PathBuf>,
    locked: Vec<PathBuf>,
    swaps: Vec<Swap>,
}

/// A name that is by turns a folder and a link.
struct Swap {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Swap {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

impl Scene {
    /// Builds the scene of a case.
    pub fn build(case: &Case) -> Done<Arc<Self>> {
        let scene = Self::empty();
        for op in &case.setup {
            scene.apply(op)?;
        }
        for oracle in &case.expect.oracles {
            if let Some(path) = oracle["path"].as_str() {
                let path = scene.place("WS").join(scene.text(path));
                let bytes = std::fs::read(&path).ok();
                scene.state().snapshots.insert(path, bytes);
            }
        }
        Ok(scene)
    }

    pub fn empty() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let mut vars = Vars::default();
        for (name, place) in
            [("WS", "ws"), ("OUT", "ws-evil"), ("WS2", "ws2"), ("HOME", "home"), ("STATE", "state"), ("CONF", "config")]
        {
            vars.set(name, base.join(place).display().to_string());
        }
        for place in ["ws", "home", "home/tmp", "config"] {
            std::fs::create_dir_all(base.join(place)).unwrap();
        }
        let state = State { roots: vec![base.join("ws")], vars, ..State::default() };
        Arc::new(Self { folder, program: env!("CARGO_BIN_EXE_tandem").into(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn base(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(&self.state().vars.0[name])
    }

    /// What standard error of the servers goes to.
    pub fn stderr(&self) -> PathBuf {
        self.base().join("stderr.log")
    }

    pub fn vars(&self) -> Vars {
        self.state().vars.clone()
    }

    pub fn text(&self, text: &str) -> String {
        self.state().vars.text(text)
    }

    pub fn roots(&self) -> Vec<PathBuf> {
        self.state().roots.clone()
    }

    /// What was there when the setup was done.
    pub fn snapshot(&self, path: &Path) -> Option<Vec<u8>> {
        self.state().snapshots.get(path).cloned().flatten()
    }

    /// Who came to a listener: a word for each contact.
    pub fn contacts(&self, name: &str) -> Option<Vec<String>> {
        Some(self.state().contacts.get(name)?.lock().unwrap().clone())
    }

    /// The server's command line in this scene.
    pub fn command(&self, transport: &str, model: u16, wire: &str) -> Command {
        let state = self.state();
        let place = |name: &str| PathBuf::from(&state.vars.0[name]);
        let config = place("CONF").join("config.toml");
        std::fs::write(&config, &state.config).unwrap();
        let mut command = self.wrapped(&state);
        command
            .arg(transport)
            .current_dir(self.base())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", place("HOME"))
            .env("TMPDIR", place("HOME").join("tmp"))
            .env("TANDEM_CONFIG", config)
            .env("TANDEM_STATE_DIR", place("STATE"))
            .env("TANDEM_MODEL", "scripted")
            .env("TANDEM_LOG", "info")
            .env("TANDEM_API", if wire == "anthropic" { "messages" } else { "chat" })
            .env("TANDEM_BASE_URL", state.base_url.clone().unwrap_or(format!("http://127.0.0.1:{model}/v1")))
            .envs(state.environment.iter().map(|(name, value)| (name, value)));
        if !state.environment.iter().any(|(name, _)| name.ends_with("_API_KEY")) {
            command.env("TANDEM_API_KEY", "sk-of-the-runner");
        } else if let Some((_, key)) = state.environment.iter().find(|(name, _)| name.ends_with("_API_KEY")) {
            command.env("TANDEM_API_KEY", key);
        }
        command
    }

    /// The program; without the rights of the superuser over files where a file mode is the case.
    fn wrapped(&self, state: &State) -> Command {
        if state.locked.is_empty() || !rustix::process::geteuid().is_root() {
            return Command::new(&self.program);
        }
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-dac_override,-dac_read_search").arg(&self.program);
        command
    }

    /// Does one operation.
    pub fn apply(&self, op: &Value) -> Done {
        let op = self.vars().value(op);
        let name = op["op"].as_str().unwrap_or_default();
        let text = |key: &str| op[key].as_str().unwrap_or_default().to_owned();
        let path = PathBuf::from(text("path"));
        let number = |key: &str| op[key].as_u64().unwrap_or(0);
        match name {
            "write" => write(&path, &op),
            "mkdir" => built(name, std::fs::create_dir_all(&path)),
            "symlink" => built(name, symlink(text("target"), &path)),
            "hardlink" => built(name, std::fs::hard_link(text("target"), &path)),
            "rename" => built(name, std::fs::rename(text("src"), text("dst"))),
            "sparse" => {
                let file = std::fs::File::create(&path);
                built(name, file.and_then(|file| file.set_len(number("gb") << 30)))
            }
            "many_files" => self.many_files(number("n")),
            "fill" => self.fill(number("leave_kb")),
            "small_fs" => self.mount(&["-t", "tmpfs", "-o", &format!("size={}m", number("mb")), "tmpfs"]),
            "remount_ro" => {
                let ws = self.place("WS").display().to_string();
                self.mount(&["--bind", &ws])?;
                run("mount", &["-o", "remount,bind,ro", &ws])
            }
            "chmod" => self.chmod(path, &text("mode")),
            "git_init" => self.git_init(&path),
            "git_config" => run("git", &["-C", &self.text("${WS}"), "config", &text("key"), &text("value")]),
            "env" => {
                self.state().environment.push((text("name"), text("value")));
                Ok(())
            }
            "allow_rule" => {
                let (tool, _) = super::tools::ours(&text("tool"), &Value::Null);
                self.configure(&format!("[permissions]\nallow = [{:?}]\n", format!("{tool}({})", text("pattern"))));
                Ok(())
            }
            "provider" => {
                self.state().base_url = Some(text("base_url"));
                Ok(())
            }
            "tcp_listener" | "udp_listener" => {
                self.listen(name, &text("name"));
                Ok(())
            }
            "bg_swap" => self.swap(&text("a"), &text("b_symlink_to"), &text("name")),
            other => unknown("setup operation", other),
        }
    }

    /// Adds to the user's configuration.
    pub fn configure(&self, toml: &str) {
        self.state().config.push_str(toml);
    }

    fn many_files(&self, count: u64) -> Done {
        let ws = self.place("WS");
        for number in 0..count {
            let folder = ws.join(format!("many/{}", number / 1000));
            if number.is_multiple_of(1000) {
                built("many_files", std::fs::create_dir_all(&folder))?;
            }
            built("many_files", std::fs::write(folder.join(format!("{number}.txt")), "hay\n"))?;
        }
        Ok(())
    }

    fn fill(&self, leave_kb: u64) -> Done {
        let filler = self.place("WS").join("filler");
        let Err(error) = std::fs::write(&filler, vec![b'f'; 64 << 20]) else {
            return Err(Trouble::NotBuilt("fill: the file system is not small".to_owned()));
        };
        let size = filler.metadata().map_or(0, |found| found.len());
        let _shorter =
            std::fs::OpenOptions::new().write(true).open(&filler).map(|file| file.set_len(size - (leave_kb << 10)));
        if error.kind() == std::io::ErrorKind::StorageFull { Ok(()) } else { built("fill", Err(error)) }
    }

    fn mount(&self, what: &[&str]) -> Done {
        if !rustix::process::geteuid().is_root() {
            return Err(Trouble::NotBuilt("only the superuser may mount".to_owned()));
        }
        let ws = self.place("WS");
        run("mount", &[what, &[&ws.display().to_string()]].concat())?;
        self.state().mounts.push(ws);
        Ok(())
    }

    fn chmod(&self, path: PathBuf, mode: &str) -> Done {
        let mode = u32::from_str_radix(mode, 8).map_err(|_| Trouble::Unknown(format!("mode `{mode}`")))?;
        let changed = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
        self.state().locked.push(path);
        built("chmod", changed)
    }

    fn git_init(&self, path: &Path) -> Done {
        let folder = if path.as_os_str().is_empty() { self.place("WS") } else { path.to_owned() };
        run("git", &["init", "--quiet", "--template=", &folder.display().to_string()])?;
        built("git_init", std::fs::create_dir_all(folder.join(".git/hooks")))
    }

    /// Opens a port and notes who comes.
    fn listen(&self, kind: &str, name: &str) {
        let contacts = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&contacts);
        if kind == "tcp_listener" {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            self.state().vars.set("TCP_PORT", listener.local_addr().unwrap().port().to_string());
            // These threads end with the process: nobody closes a listener that hears nothing.
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    notes.lock().unwrap().push(request_head(stream));
                }
            });
        } else {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            self.state().vars.set("UDP_PORT", socket.local_addr().unwrap().port().to_string());
            std::thread::spawn(move || {
                let mut bytes = [0; 512];
                while let Ok(length) = socket.recv(&mut bytes) {
                    notes.lock().unwrap().push(String::from_utf8_lossy(&bytes[..length]).into_owned());
                }
            });
        }
        self.state().contacts.insert(name.to_owned(), contacts);
    }

    fn swap(&self, real: &str, target: &str, name: &str) -> Done {
        let link = self.base().join("swap-link");
        built("bg_swap", symlink(target, &link))?;
        let over = Arc::new(AtomicBool::new(false));
        let (real, name, done) = (PathBuf::from(real), PathBuf::from(name), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for from in [&real, &link] {
                    // Whoever meddles makes a round fail; the next one works again.
                    let _ = std::fs::rename(from, &name).and_then(|()| std::fs::rename(&name, from));
                }
            }
        });
        self.state().swaps.push(Swap { over, thread: Some(thread) });
        Ok(())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap();
        state.swaps.clear();
        for path in &state.locked {
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        }
        for path in state.mounts.iter().rev() {
            let _ = run("umount", &["-l", &path.display().to_string()]);
        }
    }
}

/// The first words of whoever comes, as far as they come soon.
fn request_head(mut stream: std::net::TcpStream) -> String {
    let mut bytes = [0; 8192];
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    let length = stream.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn write(path: &Path, op: &Value) -> Done {
    let bytes = match (op["b64"].as_str(), op["text"].as_str()) {
        (Some(text), _) => base64(text),
        (None, text) => text.unwrap_or_default().as_bytes().to_vec(),
    };
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, bytes));
    built("write", written)?;
    match op["mode"].as_str().and_then(|mode| u32::from_str_radix(mode, 8).ok()) {
        Some(mode) => built("write", std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))),
        None => Ok(()),
    }
}

fn built(what: &str, done: std::io::Result<()>) -> Done {
    done.map_err(|error| Trouble::NotBuilt(format!("{what}: {error}")))
}

/// Runs a program of the system to its end.
pub fn run(program: &str, arguments: &[&str]) -> Done {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    match done {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Trouble::NotBuilt(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))),
        Err(error) => Err(Trouble::NotBuilt(format!("{program}: {error}"))),
    }
}
