//! The tools of MCP servers: programs that speak on standard input and output, or servers at a URL.
//!
//! Nothing starts before [`Servers::join`], which a session calls with its first prompt.
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
mod exchange;
mod http;
mod keep;
mod line;
mod listing;

use crate::domain::lock;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Tool;
use call::McpTool;
use connection::{Broken, Connection, list};
use keep::{State, Status, keep};
use listing::{Listing, Names};

/// The maximum number of tools of all servers: some providers accept 128 per request.
const MOST_TOOLS: usize = 100;
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
}

impl Server {
    /// Identifies a server by its program or URL, whatever its name: with another command or URL it is a different
    /// server, and permissions for one do not apply to the other.
    fn fingerprint(&self) -> String {
        let identity = match &self.way {
            Way::Command { words, .. } => serde_json::json!(words),
            Way::Url { url, .. } => serde_json::json!(url),
        };
        let digest = ring::digest::digest(&ring::digest::SHA256, identity.to_string().as_bytes());
        let begin = digest.as_ref().first_chunk().copied().unwrap_or_default();
        format!("{:016x}", u64::from_be_bytes(begin))
    }
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
    Url {
        /// The URL.
        url: String,
        /// Headers sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// Without environment and headers, which may contain keys.
impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { words, .. } => formatter.debug_tuple("Command").field(words).finish(),
            Self::Url { url, .. } => formatter.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// The servers of a session. Dropping them kills their programs.
pub struct Servers {
    configured: Vec<Arc<Server>>,
    /// Timeout for a call without an answer.
    limit: Duration,
    kept: Vec<Kept>,
    notices: Arc<Notices>,
    tasks: JoinSet<()>,
    end: CancellationToken,
}

/// A server that was started.
#[derive(Clone)]
struct Kept {
    server: Arc<Server>,
    status: watch::Receiver<Status>,
}

impl Servers {
    /// Servers to start when they are needed; a call may take `limit` without an answer or a progress report.
    #[must_use]
    pub fn new(servers: Vec<Server>, limit: Duration) -> Self {
        Self {
            configured: servers.into_iter().map(Arc::new).collect(),
            limit,
            kept: Vec::new(),
            notices: Arc::default(),
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
        }
    }

    /// The tools for a turn; the first call starts the servers.
    pub fn join(&mut self) -> Joining {
        let first = self.kept.is_empty();
        if first {
            for server in &self.configured {
                let (sender, status) = watch::channel(Status::new());
                self.tasks.spawn(keep(
                    Arc::clone(server),
                    sender,
                    Arc::clone(&self.notices),
                    self.end.clone(),
                ));
                self.kept.push(Kept {
                    server: Arc::clone(server),
                    status,
                });
            }
        }
        Joining {
            kept: self.kept.clone(),
            limit: self.limit,
            notices: Arc::clone(&self.notices),
            first,
        }
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
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The servers worth waiting for: started for this turn, and neither running nor failed yet.
    #[must_use]
    pub fn starting(&self) -> Vec<&str> {
        let starting = |kept: &&Kept| matches!(kept.status.borrow().state, State::Starting);
        self.kept
            .iter()
            .filter(|_| self.first)
            .filter(starting)
            .map(|kept| kept.server.name.as_str())
            .collect()
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
    #[must_use]
    pub fn offer(&self) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
        let mut names = Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for Kept { server, status } in &self.kept {
            let listing = Arc::clone(&status.borrow().listing);
            let room = MOST_TOOLS - tools.len();
            if let Some(more) = listing
                .tools
                .len()
                .checked_sub(room)
                .filter(|more| *more > 0)
            {
                let name = &server.name;
                self.notices.say(format!(
                    "MCP servers offer more than {MOST_TOOLS} tools: {more} of `{name}` left out"
                ));
            }
            tools.extend(
                listing
                    .tools
                    .iter()
                    .take(room)
                    .map(|listed| -> Arc<dyn Tool> {
                        Arc::new(McpTool {
                            name: names.give(&server.name, &listed.name),
                            server: server.name.clone(),
                            origin: server.fingerprint(),
                            listed: listed.clone(),
                            status: status.clone(),
                            limit: self.limit,
                        })
                    }),
            );
        }
        (tools, self.notices.take())
    }
}

/// Notices about servers; each is reported once per session.
#[derive(Default)]
struct Notices(Mutex<Reported>);

#[derive(Default)]
struct Reported {
    all: HashSet<String>,
    fresh: Vec<String>,
}

impl Notices {
    fn say(&self, notice: String) {
        tracing::warn!("{notice}");
        let mut reported = lock(&self.0);
        if reported.all.len() < MOST_NOTICES && reported.all.insert(notice.clone()) {
            reported.fresh.push(notice);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0).fresh)
    }
}

/// The result of trying a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its name, as reported by itself.
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
    let listed = list(&connection.line).await;
    let name = connection.name.clone();
    connection.close().await;
    let Listing { tools, notices } = Listing::new(listed.map_err(why)?);
    Ok(Tried {
        name,
        tools: tools.len(),
        notices,
    })
}
