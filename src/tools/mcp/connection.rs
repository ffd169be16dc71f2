//! One connection to a server: opened, asked for its lists, closed.
//!
//! Answers are parsed leniently: if one tool is wrong, the others are still available.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::child::Child;
use super::era::{self, Era};
use super::exchange::{Exchange, Fault, Refusal};
use super::http::Http;
use super::line::{self, Line, OUTBOX, Transport};
use super::listing::Listed;
use super::login::Challenge;
use super::{Server, Way};

/// Timeout for `initialize`; a server that has to be downloaded first takes a while.
const START: Duration = Duration::from_mins(1);
/// How long a program may take to answer `server/discover` before it is taken for one that expects a handshake. One that
/// starts more slowly is still recognized by its answer.
const PROBE: Duration = Duration::from_secs(5);
/// The pause before changes are subscribed to again.
const BETWEEN_SUBSCRIPTIONS: Duration = Duration::from_secs(5);
/// How long a server may take to open its stream of events before it is used.
const STREAM: Duration = Duration::from_secs(1);
/// Timeout for a page of a list.
const LIST: Duration = Duration::from_secs(30);
/// Timeout for closing.
const GOODBYE: Duration = Duration::from_secs(1);
/// The maximum number of entries of a list, and of its pages.
const ENTRIES: usize = 500;
const PAGES: usize = 20;
/// What a server may list, as the protocol calls it.
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Broken {
    /// The reason, to complete `MCP server x …`.
    pub why: String,
    /// Whether a retry may help.
    pub again: bool,
    /// What a login requires, where one may help.
    pub login: Option<Box<Challenge>>,
}

impl Broken {
    pub fn again(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            again: true,
            login: None,
        }
    }

    fn for_good(why: impl Into<String>) -> Self {
        Self {
            again: false,
            ..Self::again(why)
        }
    }

    fn login(challenge: Box<Challenge>) -> Self {
        Self {
            login: Some(challenge),
            ..Self::for_good("requires a login")
        }
    }

    /// A request without an answer: what the server `does`, and why.
    pub fn of(fault: Fault, does: &str) -> Self {
        let why = match fault {
            Fault::Denied(why) => return Self::for_good(why),
            Fault::Login(challenge) => return Self::login(challenge),
            Fault::Over | Fault::Expired => "the connection was closed".to_owned(),
            Fault::Refused(Refusal { message, .. }) => message,
            Fault::Unreachable(why) => why,
        };
        Self::again(format!("{does}: {why}"))
    }
}

/// A server that is ready for requests.
pub(super) struct Connection {
    pub line: Line,
    /// Its name, as the server reports it.
    pub name: Option<String>,
    /// What it can do.
    capabilities: Value,
    /// The program at the other end, if it is one.
    child: Option<Box<Child>>,
    /// The reading and writing tasks, aborted with the connection.
    tasks: JoinSet<()>,
}

impl Connection {
    /// Starts or contacts a server, and initializes the connection.
    pub async fn open(server: &Server) -> Result<Self, Broken> {
        let mut connection = Self::reach(server)?;
        match timeout(START, connection.agree(server)).await {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(Fault::Over | Fault::Expired)) => Err(Broken::again(connection.ended().await)),
            Ok(Err(Fault::Refused(Refusal { message, .. }))) => Err(Broken::for_good(format!(
                "refused the connection: {message}"
            ))),
            Ok(Err(fault)) => Err(Broken::of(fault, "cannot be reached")),
            Err(_late) => Err(Broken::again("did not answer within 60 s")),
        }
    }

    fn reach(server: &Server) -> Result<Self, Broken> {
        let exchange = Exchange::new(&server.roots);
        let mut tasks = JoinSet::new();
        let mut program = None;
        let transport = match &server.way {
            Way::Command {
                words,
                environment,
                folder,
            } => {
                let (child, output, input) = Child::start(words, environment, folder)
                    .map_err(|error| Broken::for_good(format!("cannot be started: {error}")))?;
                program = Some(Box::new(child));
                let (sender, outbox) = mpsc::channel(OUTBOX);
                tasks.spawn(line::read(output, Arc::clone(&exchange), sender.clone()));
                tasks.spawn(line::write(input, outbox, Arc::clone(&exchange)));
                Transport::Program(sender)
            }
            Way::Url(address) => {
                let http = Http::new(&server.name, address).map_err(Broken::for_good)?;
                Transport::Http(Arc::new(http))
            }
            Way::Editor { id, editor } => Transport::Editor(Arc::clone(editor), id.clone()),
        };
        Ok(Self {
            line: Line::new(&exchange, transport),
            name: None,
            capabilities: Value::Null,
            child: program,
            tasks,
        })
    }

    /// Finds out which era the server speaks, and gets ready for requests.
    async fn agree(&mut self, server: &Server) -> Result<(), Fault> {
        let known = server.identity();
        if server.eras.is_legacy(&known) {
            match self.greet().await {
                // Such as a newer version at the same address.
                Err(Fault::Refused(_)) => server.eras.set_legacy(&known, false),
                greeted => return greeted,
            }
        }
        match self.probe().await {
            Ok(Era::Modern(found)) => {
                self.subscribe(found);
                return Ok(());
            }
            Ok(Era::Legacy) => {}
            Err(Fault::Over) if self.line.is_program() => {
                // The question may have been too much for it: it is not asked again.
                server.eras.set_legacy(&known, true);
                return Err(Fault::Over);
            }
            Err(fault) => return Err(fault),
        }
        server.eras.set_legacy(&known, true);
        Ok(())
    }

    /// Asks the server to describe itself. One that expects a handshake is greeted.
    async fn probe(&mut self) -> Result<Era, Fault> {
        let line = self.line.clone();
        let mut params = json!({});
        era::describe(&mut params);
        let asked = line.request("server/discover", params);
        tokio::pin!(asked);
        let answer = if line.is_program() {
            timeout(PROBE, asked.as_mut()).await
        } else {
            Ok(asked.as_mut().await)
        };
        let is_late = answer.is_err();
        let verdict = match answer {
            Ok(answer) => Era::of(answer)?,
            Err(_late) => Era::Legacy,
        };
        if let Era::Legacy = verdict {
            match self.greet().await {
                // It only started slowly.
                Err(Fault::Refused(refusal)) if is_late => match Era::of(asked.await)? {
                    Era::Legacy => return Err(Fault::Refused(refusal)),
                    modern @ Era::Modern(_) => return Ok(modern),
                },
                greeted => greeted?,
            }
        }
        Ok(verdict)
    }

    /// A server without a handshake: subscribes to changes of its lists, if it announces them.
    fn subscribe(&mut self, mut found: Value) {
        self.line.speak_modern();
        self.name = era::server_name(&found);
        self.capabilities = found["capabilities"].take();
        let told = LISTS
            .into_iter()
            .filter(|list| self.capabilities[list]["listChanged"] == true);
        let told: Map<_, _> = told
            .map(|list| (format!("{list}ListChanged"), true.into()))
            .collect();
        if told.is_empty() {
            return;
        }
        let line = self.line.clone();
        self.tasks.spawn(async move {
            let params = json!({ "notifications": told });
            loop {
                let listening = line.request("subscriptions/listen", params.clone());
                match listening.await {
                    Ok(_) | Err(Fault::Unreachable(_)) => sleep(BETWEEN_SUBSCRIPTIONS).await,
                    Err(fault) => {
                        tracing::debug!("no changes of an MCP server: {fault:?}");
                        return;
                    }
                }
            }
        });
    }

    async fn greet(&mut self) -> Result<(), Fault> {
        let mut capabilities = era::capabilities();
        capabilities["roots"] = json!({});
        let params = json!({ "protocolVersion": era::LEGACY, "capabilities": capabilities, "clientInfo": era::client() });
        let line = self.line.clone();
        let mut answer = line.request("initialize", params).await?;
        if !answer["capabilities"].is_object() {
            return Err(Fault::invalid("its response is not MCP"));
        }
        self.name = era::server_name(&answer);
        if let Transport::Http(http) = &line.transport {
            http.agree(answer["protocolVersion"].as_str().unwrap_or(era::LEGACY));
        }
        self.capabilities = answer["capabilities"].take();
        line.notify("notifications/initialized", json!({})).await?;
        if let Transport::Http(http) = line.transport {
            let (opening, opened) = oneshot::channel();
            self.tasks
                .spawn(async move { http.listen(line.exchange, opening).await });
            // A server forgets what it sends before its stream is open, such as a question during the first call.
            let _open_or_slow = timeout(STREAM, opened).await;
        }
        Ok(())
    }

    /// Whether the server has a list of this kind.
    pub fn has(&self, list: &str) -> bool {
        self.capabilities[list].is_object()
    }

    /// Its tools. A server that announces other lists alone is not asked for them.
    pub async fn tools(&self) -> Result<List, Broken> {
        let is_without = !self.has("tools") && LISTS.into_iter().any(|list| self.has(list));
        if is_without {
            return Ok(List::default());
        }
        list(&self.line).await
    }

    /// Waits until the connection ends, and returns why.
    pub async fn ended(&mut self) -> String {
        let exchange = &self.line.exchange;
        exchange.over.cancelled().await;
        match (exchange.cut.get(), &mut self.child) {
            (Some(cut), _) => format!("was stopped: it {cut}"),
            (None, Some(child)) => child.why().await,
            (None, None) => "dropped the session".to_owned(),
        }
    }

    /// Closes the connection; a program that does not end is killed.
    pub async fn close(self) {
        self.line.exchange.close();
        if let Some(child) = self.child {
            child.stop().await;
        } else if let Transport::Http(http) = &self.line.transport {
            let _busy = timeout(GOODBYE, http.leave()).await;
        }
    }
}

/// A server's tools.
#[derive(Default)]
pub(super) struct List {
    /// Its tools; `None` for one that cannot be called.
    pub tools: Vec<Option<Listed>>,
    /// How long the list is valid, if the server says so.
    pub fresh: Option<Duration>,
    /// What was omitted, to complete `MCP server x …`.
    pub notices: Vec<String>,
}

/// The tools a server lists.
pub(super) async fn list(line: &Line) -> Result<List, Broken> {
    let mut notices = Vec::new();
    let (tools, fresh) = pages(line, "tools", &mut notices).await?;
    let tools = tools.into_iter().map(Listed::read).collect();
    Ok(List {
        tools,
        fresh,
        notices,
    })
}

/// The pages of a list, and how long they are valid, if the server says so.
pub(super) async fn pages(
    line: &Line,
    kind: &str,
    notices: &mut Vec<String>,
) -> Result<(Vec<Value>, Option<Duration>), Broken> {
    let mut all = Vec::new();
    let mut fresh: Option<Duration> = None;
    let mut params = json!({});
    for _page in 0..PAGES {
        let method = format!("{kind}/list");
        let answer = timeout(LIST, line.request(&method, params)).await;
        let answer = answer
            .map_err(|_late| Broken::again(format!("did not list its {kind} within 30 s")))?;
        let does_not = format!("does not list its {kind}");
        let mut answer = answer.map_err(|fault| Broken::of(fault, &does_not))?;
        match answer.get_mut(kind).map(Value::take) {
            Some(Value::Array(page)) => all.extend(page),
            _ => return Err(Broken::again(format!("{does_not}: the answer has none"))),
        }
        if let Some(ttl) = answer["ttlMs"].as_i64() {
            let ttl = Duration::from_millis(ttl.try_into().unwrap_or_default());
            fresh = Some(fresh.map_or(ttl, |fresh| fresh.min(ttl)));
        }
        let cursor = answer["nextCursor"].take();
        match (all.len() <= ENTRIES, cursor.is_string()) {
            (true, false) => return Ok((all, fresh)),
            (true, true) => params = json!({ "cursor": cursor }),
            (false, _) => break,
        }
    }
    all.truncate(ENTRIES);
    notices.push(format!(
        "lists more than {ENTRIES} {kind} or {PAGES} pages of them; the others are left out"
    ));
    Ok((all, fresh))
}
