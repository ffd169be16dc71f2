//! MCP servers: programs that speak on standard input and output, or servers at a URL. Their tools are the model's; their
//! prompts and resources are the person's (`mcp::offers`).
//!
//! Nothing starts before [`Servers::start`], which a session calls when its first prompt is begun, or sent.
//!
//! From then on one task runs each server (`mcp::keep`), and [`Joining`] gives a turn the available tools. The tools of
//! a turn are fixed when it begins: later changes take effect with the next prompt, so the beginning of requests
//! changes only then.
//!
//! A server is trusted only with the arguments of its tools: it inherits no environment, its descriptions and results
//! are capped (`mcp::listing`, `mcp::call`), its output is bounded, and each call requires approval like a change.

mod bounded;
mod call;
mod child;
mod connection;
mod content;
mod era;
mod exchange;
mod headers;
mod http;
mod input;
mod keep;
mod line;
mod listing;
mod login;
mod named;
mod offers;
mod store;

use crate::domain::lock;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Person, Redactor, Tool};
use crate::workspace::Editor;
use call::McpTool;
use connection::{Broken, Connection, List};
use era::Eras;
use keep::{State, Status, keep};
use listing::{Listing, Names};
pub use login::{Challenge, Login, Registered, Vault};
pub use offers::{Resource, ServerPrompt};
use store::Store;

/// The maximum number of tools of all servers: some providers accept 128 per request.
const MOST_TOOLS: usize = 100;
/// The maximum number of logins at a server before a prompt: it may name another issuer, or want more permissions.
const MAX_LOGINS: usize = 3;
/// The maximum number of different notices in a session.
const MOST_NOTICES: usize = 100;

/// A server and its transport.
#[derive(Debug, Clone)]
pub struct Server {
    /// The prefix of its tools' names.
    pub name: String,
    /// Its transport.
    pub way: Way,
    /// The folders of the workspace, for servers that ask.
    pub roots: Vec<PathBuf>,
    eras: Eras,
}

impl Server {
    /// A server; what is remembered of it is in this state directory.
    pub fn new(name: &str, way: Way, roots: &[PathBuf], state: Option<&Path>) -> Self {
        Self {
            name: name.to_owned(),
            way,
            roots: roots.to_vec(),
            eras: Eras(Store::new(state, "eras.json")),
        }
    }

    /// The login at the server, if it has a URL.
    pub fn login(&self) -> Option<&Arc<Login>> {
        match &self.way {
            Way::Url(address) => address.login.as_ref(),
            Way::Command { .. } | Way::Editor { .. } => None,
        }
    }

    /// What its era is remembered by: itself, and the file of a program.
    fn identity(&self) -> String {
        let program = match &self.way {
            Way::Command { words, .. } => words.first(),
            Way::Url(_) | Way::Editor { .. } => None,
        };
        let file = program.and_then(|program| std::fs::metadata(program).ok());
        let file = file.map(|file| (file.len(), file.modified().ok()));
        digest(&format!("{} {file:?}", self.fingerprint()))
    }

    /// Identifies a server by its program or URL, whatever its name: with another command or URL it is a different
    /// server, and permissions for one do not apply to the other.
    fn fingerprint(&self) -> String {
        let identity = match &self.way {
            Way::Command { words, .. } => serde_json::json!(words),
            Way::Url(Address { url, .. }) => serde_json::json!(url),
            Way::Editor { id, .. } => serde_json::json!({ "editor": id }),
        };
        digest(&identity.to_string())
    }
}

fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let begin = digest.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(begin))
}

/// The transport of a server.
#[derive(Clone)]
pub enum Way {
    /// A program that speaks on standard input and output.
    Command {
        /// The program with its arguments.
        words: Vec<String>,
        /// Its complete environment.
        environment: BTreeMap<String, String>,
        /// The folder it runs in.
        folder: PathBuf,
    },
    /// Streamable HTTP.
    Url(Address),
    /// A server of the editor, over its own connection.
    Editor {
        /// What the editor calls it.
        id: String,
        /// The editor.
        editor: Arc<dyn Editor>,
    },
}

/// A server at a URL.
#[derive(Clone)]
pub struct Address {
    /// The URL.
    pub url: String,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, String>,
    /// The person's login there.
    pub login: Option<Arc<Login>>,
}

/// Without environment and headers, which may contain keys.
impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { words, .. } => formatter.debug_tuple("Command").field(words).finish(),
            Self::Url(address) => formatter.debug_tuple("Url").field(&address.url).finish(),
            Self::Editor { id, .. } => formatter.debug_tuple("Editor").field(id).finish(),
        }
    }
}

/// The servers of a session. Dropping them kills their programs.
pub struct Servers {
    configured: Vec<Arc<Server>>,
    /// Timeout for a call without an answer.
    limit: Duration,
    kept: Vec<Kept>,
    /// Whether no turn has had the servers' tools.
    is_fresh: bool,
    notices: Arc<Notices>,
    tasks: JoinSet<()>,
    end: CancellationToken,
}

/// A server that was started.
#[derive(Clone)]
struct Kept {
    server: Arc<Server>,
    status: watch::Receiver<Status>,
    /// Begins again after a login, or lists the tools again.
    nudge: Arc<Notify>,
    /// Whether the person did not log in when they were asked to.
    declined: Arc<AtomicBool>,
}

impl Kept {
    /// Waits until a server that waited for a login has started or failed to.
    async fn begun(&mut self) {
        let left = |status: &Status| !matches!(status.state, State::Login(_));
        if self.status.wait_for(left).await.is_ok() {
            let settled = |status: &Status| !matches!(status.state, State::Starting);
            let _keeper_gone = self.status.wait_for(settled).await;
        }
    }

    /// The login that the server waits for and what it requires, unless the person has declined it before.
    fn wanted(&self) -> Option<(Arc<Login>, Arc<Challenge>)> {
        let State::Login(challenge) = self.status.borrow().state.clone() else {
            return None;
        };
        let login = Arc::clone(self.server.login()?);
        (!self.declined.load(Ordering::Relaxed)).then_some((login, challenge))
    }
}

impl Servers {
    /// Servers to start when they are needed; a call may take `limit` without an answer or a progress report.
    pub fn new(servers: Vec<Server>, limit: Duration, secrets: Redactor) -> Self {
        Self {
            configured: servers.into_iter().map(Arc::new).collect(),
            limit,
            kept: Vec::new(),
            is_fresh: true,
            notices: Arc::new(Notices {
                secrets,
                reported: Mutex::default(),
                offers_changed: Notify::new(),
            }),
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
        }
    }

    /// Starts the servers, unless they were started.
    pub fn start(&mut self) {
        if self.kept.is_empty() {
            for server in &self.configured {
                let (sender, status) = watch::channel(Status::default());
                let nudge = Arc::new(Notify::new());
                self.tasks.spawn(keep(
                    Arc::clone(server),
                    sender,
                    Arc::clone(&nudge),
                    Arc::clone(&self.notices),
                    self.end.clone(),
                ));
                self.kept.push(Kept {
                    server: Arc::clone(server),
                    status,
                    nudge,
                    declined: Arc::default(),
                });
            }
        }
    }

    /// The tools for a turn. It starts the servers that do not run: they may have been unreachable for a while.
    pub fn join(&mut self) -> Joining {
        self.start();
        for kept in &self.kept {
            if matches!(kept.status.borrow().state, State::GivenUp(_)) {
                kept.nudge.notify_one();
            }
        }
        Joining {
            kept: self.kept.clone(),
            limit: self.limit,
            notices: Arc::clone(&self.notices),
            first: std::mem::take(&mut self.is_fresh),
        }
    }

    /// Completes when a server has listed what it offers the person.
    pub fn offers_changed(&self) -> impl Future<Output = ()> + use<> {
        let notices = Arc::clone(&self.notices);
        async move { notices.offers_changed.notified().await }
    }

    /// Stops all servers, and waits until they have ended.
    pub async fn close(mut self) {
        self.end.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!("the task of an MCP server panicked: {error}");
            }
        }
    }
}

/// A turn's access to the tools.
pub struct Joining {
    kept: Vec<Kept>,
    limit: Duration,
    notices: Arc<Notices>,
    first: bool,
}

impl Joining {
    /// Whether there are no servers at all.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The servers worth waiting for: started for this turn, and neither running nor failed yet.
    pub fn starting(&self) -> Vec<&str> {
        let starting = |kept: &&Kept| matches!(kept.status.borrow().state, State::Starting);
        self.kept
            .iter()
            .filter(|_| self.first)
            .filter(starting)
            .map(|kept| kept.server.name.as_str())
            .collect()
    }

    /// Lists the tools again of servers whose list has expired, and waits for that.
    pub async fn refresh(&mut self) {
        let now = Instant::now();
        for kept in &mut self.kept {
            let is_stale = |status: &Status| status.stale.is_some_and(|stale| stale <= now);
            let is_running = matches!(kept.status.borrow().state, State::Running(_));
            if is_running && is_stale(&kept.status.borrow()) {
                kept.nudge.notify_one();
                let listed = |status: &Status| {
                    !is_stale(status) || !matches!(status.state, State::Running(_))
                };
                let _keeper_gone = kept.status.wait_for(listed).await;
            }
        }
    }

    /// Asks the user to log in to servers that wait for it, and waits until they run. A user who declines is not asked again
    /// in this session.
    pub async fn log_in(&mut self, person: &Person) {
        for kept in &mut self.kept {
            for _attempt in 0..MAX_LOGINS {
                let Some((login, challenge)) = kept.wanted() else {
                    break;
                };
                if let Err(why) = login.log_in(&challenge, person).await {
                    kept.declined.store(true, Ordering::Relaxed);
                    let name = &kept.server.name;
                    self.notices.say(format!("MCP server `{name}` {why}"));
                    break;
                }
                kept.nudge.notify_one();
                kept.begun().await;
            }
        }
    }

    /// Waits until [`Self::starting`] is empty.
    pub async fn settled(&mut self) {
        for kept in self.kept.iter_mut().filter(|_| self.first) {
            let _keeper_gone = kept
                .status
                .wait_for(|status| !matches!(status.state, State::Starting))
                .await;
        }
    }

    /// The available tools, in a deterministic order, and new notices for the person.
    pub fn offer(&self) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
        let mut names = Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for kept in &self.kept {
            let listing = Arc::clone(&kept.status.borrow().listing);
            let name = &kept.server.name;
            let room = MOST_TOOLS - tools.len();
            if let Some(more @ 1..) = listing.tools.len().checked_sub(room) {
                self.notices.say(format!(
                    "MCP servers offer more than {MOST_TOOLS} tools: {more} of `{name}` left out"
                ));
            }
            for listed in listing.tools.iter().take(room) {
                tools.push(Arc::new(McpTool {
                    name: names.give(name, &listed.name),
                    kept: kept.clone(),
                    listed: listed.clone(),
                    limit: self.limit,
                }));
            }
        }
        (tools, self.notices.take())
    }
}

/// What the tasks of servers report: notices, each reported once per session, without the secrets a server may repeat.
struct Notices {
    secrets: Redactor,
    reported: Mutex<Reported>,
    /// Notified when a server has listed its prompts and resources.
    offers_changed: Notify,
}

#[derive(Default)]
struct Reported {
    all: HashSet<String>,
    fresh: Vec<String>,
}

impl Notices {
    fn say(&self, mut notice: String) {
        self.secrets.clean(&mut notice);
        tracing::warn!("{notice}");
        let mut reported = lock(&self.reported);
        if reported.all.len() < MOST_NOTICES && reported.all.insert(notice.clone()) {
            reported.fresh.push(notice);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.reported).fresh)
    }
}

/// The names that no person has been shown before; from now on they count as shown.
pub fn unseen(names: Vec<String>, state: Option<&Path>) -> Vec<String> {
    let store = Store::new(state, "offered.json");
    let mut seen: BTreeMap<String, bool> = store.read();
    let is_fresh = |name: &String| seen.insert(name.clone(), true).is_none();
    let fresh: Vec<_> = names.into_iter().filter(is_fresh).collect();
    // What cannot be remembered would be shown again in each session.
    let is_kept = fresh.is_empty() || store.write(&seen).is_ok();
    if is_kept { fresh } else { Vec::new() }
}

/// The result of trying a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its name, as the server reports it.
    pub name: Option<String>,
    /// How many tools it offers.
    pub tools: usize,
    /// Problems with them.
    pub notices: Vec<String>,
}

/// Starts a server, lists its tools and stops it.
///
/// # Errors
/// It cannot be started or does not answer; the text completes `it …`.
pub async fn try_out(server: &Server) -> Result<Tried, String> {
    let why = |Broken { why, .. }| why;
    let connection = Connection::open(server).await.map_err(why)?;
    let listed = connection.tools().await;
    let name = connection.name.clone();
    let mirrors = connection.line.mirrors();
    connection.close().await;
    let List {
        tools, mut notices, ..
    } = listed.map_err(why)?;
    let listing = Listing::new(tools, mirrors);
    notices.extend(listing.notices);
    Ok(Tried {
        name,
        tools: listing.tools.len(),
        notices,
    })
}
