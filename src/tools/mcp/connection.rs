//! One connection to a server: opened, tools listed, closed.
//!
//! Answers are parsed leniently: if one tool is wrong, the others are still available.

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

/// The offered protocol version. Tools are the same in all versions with `initialize`.
const VERSION: &str = "2025-11-25";
/// Timeout for `initialize`; a server that has to be downloaded first takes a while.
const START: Duration = Duration::from_mins(1);
/// Timeout for listing its tools.
const LIST: Duration = Duration::from_secs(30);
/// Timeout for closing.
const GOODBYE: Duration = Duration::from_secs(1);
/// The maximum number of pages of a list.
const PAGES: usize = 20;

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Broken {
    /// The reason, to complete `MCP server x …`.
    pub why: String,
    /// Whether a retry may help.
    pub again: bool,
}

impl Broken {
    pub fn again(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            again: true,
        }
    }

    fn for_good(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            again: false,
        }
    }
}

/// A server that answered `initialize`.
pub(super) struct Connection {
    pub line: Line,
    pub exchange: Arc<Exchange>,
    /// Its name, as reported by itself.
    pub name: Option<String>,
    end: End,
    /// The reading and writing tasks, aborted with the connection.
    tasks: JoinSet<()>,
}

/// The other end.
enum End {
    Program(Box<Child>),
    Http(Arc<Http>),
}

impl Connection {
    /// Starts or contacts a server, and initializes the connection.
    pub async fn open(server: &Server) -> Result<Self, Broken> {
        let mut connection = Self::reach(server)?;
        match timeout(START, connection.greet()).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(Fault::Over | Fault::Expired)) => Err(Broken::again(connection.ended().await)),
            Ok(Err(Fault::Denied(why))) => Err(Broken::for_good(why)),
            Ok(Err(Fault::Refused(why))) => {
                Err(Broken::again(format!("refused the connection: {why}")))
            }
            Ok(Err(Fault::Unreachable(why))) => {
                Err(Broken::again(format!("cannot be reached: {why}")))
            }
            Err(_late) => Err(Broken::again("did not answer within 60 s")),
        }
    }

    fn reach(server: &Server) -> Result<Self, Broken> {
        let exchange = Exchange::new(&server.roots);
        let mut tasks = JoinSet::new();
        let (line, end) = match &server.way {
            Way::Command {
                words,
                environment,
                folder,
            } => {
                let (child, output, input) = Child::start(words, environment, folder)
                    .map_err(|error| Broken::for_good(format!("cannot be started: {error}")))?;
                let (line, reading, writing) = Line::to_program(&exchange, output, input);
                tasks.spawn(reading);
                tasks.spawn(writing);
                (line, End::Program(Box::new(child)))
            }
            Way::Url { url, headers } => {
                let http =
                    Arc::new(Http::new(&server.name, url, headers).map_err(Broken::for_good)?);
                (
                    Line::over_http(&exchange, Arc::clone(&http)),
                    End::Http(http),
                )
            }
        };
        Ok(Self {
            line,
            exchange,
            name: None,
            end,
            tasks,
        })
    }

    async fn greet(&mut self) -> Result<(), Fault> {
        let tandem = json!({ "name": "tandem", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": VERSION, "capabilities": { "roots": {} }, "clientInfo": tandem });
        let answer = self
            .line
            .request(self.line.next_id(), "initialize", params)
            .await?;
        if !answer["capabilities"].is_object() {
            return Err(Fault::Refused("its answer is not MCP".to_owned()));
        }
        let info = &answer["serverInfo"];
        self.name = info["name"]
            .as_str()
            .zip(info["version"].as_str())
            .map(|(name, version)| format!("{name} {version}"));
        if let End::Http(http) = &self.end {
            http.agree(answer["protocolVersion"].as_str().unwrap_or(VERSION));
        }
        self.line
            .notify("notifications/initialized", json!({}))
            .await?;
        if let End::Http(http) = &self.end {
            let (http, exchange) = (Arc::clone(http), Arc::clone(&self.exchange));
            self.tasks.spawn(async move { http.listen(exchange).await });
        }
        Ok(())
    }

    /// Waits until the connection ends, and returns why.
    pub async fn ended(&mut self) -> String {
        self.exchange.over.cancelled().await;
        match &mut self.end {
            End::Program(child) => child.why().await,
            End::Http(_) => "dropped the session".to_owned(),
        }
    }

    /// Closes the connection; a program that does not end is killed.
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

/// The tools a server lists; `None` for one that cannot be called.
pub(super) async fn list(line: &Line) -> Result<Vec<Option<Listed>>, Broken> {
    let mut tools = Vec::new();
    let mut params = json!({});
    for _page in 0..PAGES {
        let asked = line.request(line.next_id(), "tools/list", params);
        let late = |_late| Broken::again("did not list its tools within 30 s");
        let mut answer = timeout(LIST, asked)
            .await
            .map_err(late)?
            .map_err(listless)?;
        match answer.get_mut("tools").map(Value::take) {
            Some(Value::Array(page)) => tools.extend(page.into_iter().map(Listed::read)),
            _ => {
                return Err(Broken::again(
                    "does not list its tools: the answer has none",
                ));
            }
        }
        match answer["nextCursor"].take() {
            Value::String(cursor) => params = json!({ "cursor": cursor }),
            _ => break,
        }
    }
    Ok(tools)
}

/// Why there is no list.
fn listless(fault: Fault) -> Broken {
    let why = match fault {
        Fault::Denied(why) => return Broken::for_good(why),
        Fault::Over | Fault::Expired => "the connection was closed".to_owned(),
        Fault::Refused(why) | Fault::Unreachable(why) => why,
    };
    Broken::again(format!("does not list its tools: {why}"))
}
