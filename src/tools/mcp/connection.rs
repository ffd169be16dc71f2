//! One connection to a server: opened, asked for its tools, closed.
//!
//! Answers are read leniently: a server that gets one tool wrong does not lose the others.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::child::Child;
use super::exchange::{Exchange, Fault};
use super::http::Http;
use super::line::Line;
use super::listing::Listed;
use super::{Server, Way};

/// The version of the protocol that is offered. Tools are the same in all that begin with `initialize`.
const VERSION: &str = "2025-11-25";
/// How long a server may take to say who it is: one that is fetched first takes its time.
const START: Duration = Duration::from_mins(1);
/// How long it may take to list its tools.
const LIST: Duration = Duration::from_secs(30);
/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// The most pages of a list that are asked for.
const PAGES: usize = 20;

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Broken {
    /// What the server did, as in `MCP server x …`.
    pub why: String,
    /// Whether another try may go better.
    pub again: bool,
}

impl Broken {
    pub fn again(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: true }
    }

    fn for_good(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: false }
    }
}

/// A server that answered.
pub(super) struct Connection {
    pub line: Line,
    pub exchange: Arc<Exchange>,
    /// Who it is, as it says.
    pub name: Option<String>,
    end: End,
    /// What reads and writes; aborted with the connection.
    tasks: JoinSet<()>,
}

/// What is at the other end.
enum End {
    Program(Box<Child>),
    Http(Arc<Http>),
}

impl Connection {
    /// Starts or reaches a server, and greets it.
    pub async fn open(server: &Server) -> Result<Self, Broken> {
        let mut connection = Self::reach(server)?;
        match timeout(START, connection.greet()).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(Fault::Over)) => Err(Broken::again(connection.ended().await)),
            Ok(Err(Fault::Refused(why))) => Err(Broken::again(format!("refused the connection: {why}"))),
            Ok(Err(Fault::Unreachable(why))) => Err(Broken::again(format!("cannot be reached: {why}"))),
            Err(_late) => Err(Broken::again("did not answer within 60 s")),
        }
    }

    fn reach(server: &Server) -> Result<Self, Broken> {
        let exchange = Exchange::new(&server.roots);
        let mut tasks = JoinSet::new();
        let (line, end) = match &server.way {
            Way::Command { words, environment, folder } => {
                let (child, output, input) = Child::start(words, environment, folder)
                    .map_err(|error| Broken::for_good(format!("cannot be started: {error}")))?;
                let (line, reading, writing) = Line::to_program(&exchange, output, input);
                tasks.spawn(reading);
                tasks.spawn(writing);
                (line, End::Program(Box::new(child)))
            }
            Way::Url { url, headers } => {
                let http = Arc::new(Http::new(url, headers).map_err(Broken::for_good)?);
                (Line::over_http(&exchange, Arc::clone(&http)), End::Http(http))
            }
        };
        Ok(Self { line, exchange, name: None, end, tasks })
    }

    async fn greet(&mut self) -> Result<(), Fault> {
        let tandem = json!({ "name": "tandem", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": VERSION, "capabilities": { "roots": {} }, "clientInfo": tandem });
        let answer = self.line.request(self.line.next_id(), "initialize", params).await?;
        if !answer["capabilities"].is_object() {
            return Err(Fault::Refused("its answer is no MCP".to_owned()));
        }
        let info = &answer["serverInfo"];
        self.name =
            info["name"].as_str().zip(info["version"].as_str()).map(|(name, version)| format!("{name} {version}"));
        if let End::Http(http) = &self.end {
            http.agree(answer["protocolVersion"].as_str().unwrap_or(VERSION));
        }
        self.line.notify("notifications/initialized", json!({})).await?;
        if let End::Http(http) = &self.end {
            let (http, exchange) = (Arc::clone(http), Arc::clone(&self.exchange));
            self.tasks.spawn(async move { http.listen(exchange).await });
        }
        Ok(())
    }

    /// Waits until it talks no longer, and says why.
    pub async fn ended(&mut self) -> String {
        self.exchange.over.cancelled().await;
        match &mut self.end {
            End::Program(child) => child.why().await,
            End::Http(_) => "forgot the session".to_owned(),
        }
    }

    /// Says goodbye; a program that does not end then is killed.
    pub async fn close(self) {
        self.exchange.close();
        match self.end {
            End::Program(child) => child.stop().await,
            End::Http(http) => {
                let _busy = timeout(GOODBYE, http.leave()).await;
            }
        }
    }
}

/// The tools of a server, as it lists them; `None` for one that cannot be called.
pub(super) async fn list(line: &Line) -> Result<Vec<Option<Listed>>, String> {
    let mut tools = Vec::new();
    let mut params = json!({});
    for _page in 0..PAGES {
        let asked = line.request(line.next_id(), "tools/list", params);
        let answer = timeout(LIST, asked).await.map_err(|_late| "did not list its tools within 30 s".to_owned())?;
        let mut answer = answer.map_err(|fault| format!("does not list its tools: {}", explain(fault)))?;
        match answer.get_mut("tools").map(Value::take) {
            Some(Value::Array(page)) => tools.extend(page.into_iter().map(Listed::read)),
            _ => return Err("does not list its tools: the answer has none".to_owned()),
        }
        match answer["nextCursor"].take() {
            Value::String(cursor) => params = json!({ "cursor": cursor }),
            _ => break,
        }
    }
    Ok(tools)
}

/// A fault in a few words.
fn explain(fault: Fault) -> String {
    match fault {
        Fault::Over => "the connection is over".to_owned(),
        Fault::Refused(why) | Fault::Unreachable(why) => why,
    }
}
