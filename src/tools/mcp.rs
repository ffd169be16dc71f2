//! The tools of MCP servers: programs that speak on their standard streams, or servers at a URL.
//!
//! Nothing starts before [`Servers::join`], which a session calls with its first prompt. From then on one task keeps each
//! server (`mcp::keep`), and [`Joining`] gives a turn what is there. The tools of a turn are fixed when it begins: what joins
//! or changes later is there with the next prompt, so the requests of a session change their beginning only then.
//!
//! A server is trusted with what its tools are called with and nothing more: it inherits no environment, its descriptions
//! and results are capped (`mcp::listing`, `mcp::call`), its output is bounded, and each call is asked about like a change.

mod bounded;
mod call;
mod child;
mod connection;
mod events;
mod exchange;
mod http;
mod keep;
mod line;
mod listing;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Tool;
use call::McpTool;
use connection::{Broken, Connection, list};
use keep::{State, Status, keep};
use listing::{Listing, Names};

/// The most tools of all servers together: some providers take 128 in a request.
const MOST_TOOLS: usize = 100;
/// The most different remarks of a session.
const MOST_REMARKS: usize = 100;

/// A server, and how it is reached.
#[derive(Debug, Clone)]
pub struct Server {
    /// What its tools' names begin with.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// The folders of the workspace, for servers that ask.
    pub roots: Vec<PathBuf>,
}

impl Server {
    /// Tells servers apart by what runs or answers, whatever they are called: with another command or URL it is another
    /// server, and what was allowed to the one is not allowed to the other.
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

/// How a server is reached.
#[derive(Clone)]
pub enum Way {
    /// A program on its standard streams.
    Command {
        /// The program with its arguments.
        words: Vec<String>,
        /// The whole of its environment.
        environment: BTreeMap<String, String>,
        /// The folder it runs in.
        folder: PathBuf,
    },
    /// Streamable HTTP.
    Url {
        /// Where.
        url: String,
        /// What is sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// Without environment and headers: keys are in them.
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
    /// How long a call may go without an answer.
    limit: Duration,
    kept: Vec<Kept>,
    remarks: Arc<Remarks>,
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
    /// Servers to be started when they are needed, whose calls may take `limit` without an answer or a sign of progress.
    #[must_use]
    pub fn new(servers: Vec<Server>, limit: Duration) -> Self {
        Self {
            configured: servers.into_iter().map(Arc::new).collect(),
            limit,
            kept: Vec::new(),
            remarks: Arc::default(),
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
        }
    }

    /// What a turn joins; the first one starts the servers.
    pub fn join(&mut self) -> Joining {
        let first = self.kept.is_empty();
        if first {
            for server in &self.configured {
                let (sender, status) = watch::channel(Status::new());
                self.tasks.spawn(keep(Arc::clone(server), sender, Arc::clone(&self.remarks), self.end.clone()));
                self.kept.push(Kept { server: Arc::clone(server), status });
            }
        }
        Joining { kept: self.kept.clone(), limit: self.limit, remarks: Arc::clone(&self.remarks), first }
    }

    /// Ends all of them, and waits until they are gone.
    pub async fn close(mut self) {
        self.end.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!("the keeper of an MCP server broke: {error}");
            }
        }
    }
}

/// A turn's way to the tools.
pub struct Joining {
    kept: Vec<Kept>,
    limit: Duration,
    remarks: Arc<Remarks>,
    first: bool,
}

impl Joining {
    /// Whether there are no servers at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The servers worth waiting for: those that were started for this turn and neither answered nor failed yet.
    #[must_use]
    pub fn starting(&self) -> Vec<&str> {
        let starting = |kept: &&Kept| matches!(kept.status.borrow().state, State::Starting);
        self.kept.iter().filter(|_| self.first).filter(starting).map(|kept| kept.server.name.as_str()).collect()
    }

    /// Waits until [`Self::starting`] is empty.
    pub async fn settled(&mut self) {
        for kept in self.kept.iter_mut().filter(|_| self.first) {
            let _keeper_gone = kept.status.wait_for(|status| !matches!(status.state, State::Starting)).await;
        }
    }

    /// The tools that are there now, in an order that depends on nothing but them, and what the person should know and
    /// was not told yet.
    #[must_use]
    pub fn offer(&self) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
        let mut names = Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for Kept { server, status } in &self.kept {
            let listing = Arc::clone(&status.borrow().listing);
            let room = MOST_TOOLS - tools.len();
            if let Some(more) = listing.tools.len().checked_sub(room).filter(|more| *more > 0) {
                let name = &server.name;
                self.remarks
                    .say(format!("MCP servers offer more than {MOST_TOOLS} tools: {more} of `{name}` left out"));
            }
            tools.extend(listing.tools.iter().take(room).map(|listed| -> Arc<dyn Tool> {
                Arc::new(McpTool {
                    name: names.give(&server.name, &listed.name),
                    server: server.name.clone(),
                    origin: server.fingerprint(),
                    listed: listed.clone(),
                    status: status.clone(),
                    limit: self.limit,
                })
            }));
        }
        (tools, self.remarks.take())
    }
}

/// What the person should know of servers; each thing is told once in a session.
#[derive(Default)]
struct Remarks(Mutex<Told>);

#[derive(Default)]
struct Told {
    all: HashSet<String>,
    fresh: Vec<String>,
}

impl Remarks {
    fn say(&self, remark: String) {
        tracing::warn!("{remark}");
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.all.len() < MOST_REMARKS && told.all.insert(remark.clone()) {
            told.fresh.push(remark);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).fresh)
    }
}

/// What a server said when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Who it is, as it says.
    pub name: Option<String>,
    /// How many tools it offers.
    pub tools: usize,
    /// What is wrong with them.
    pub remarks: Vec<String>,
}

/// Starts a server, lists its tools and ends it.
///
/// # Errors
/// When it cannot be started or does not answer; what it did, as in `it …`.
pub async fn try_out(server: &Server) -> Result<Tried, String> {
    let connection = Connection::open(server).await.map_err(|Broken { why, .. }| why)?;
    let listed = list(&connection.line).await;
    let name = connection.name.clone();
    connection.close().await;
    let Listing { tools, remarks } = Listing::new(listed?);
    Ok(Tried { name, tools: tools.len(), remarks })
}
