//! Runs one server: starts it, asks for its lists, asks again when they change, restarts it when it crashes.
//!
//! Invariant: a server that keeps crashing is given up after [`TRIES`] starts, with growing pauses, and then started once for
//! each prompt. Its last list stays valid meanwhile, so that the beginning of requests does not change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connection::{Broken, Connection, List};
use super::line::Line;
use super::listing::Listing;
use super::login::Challenge;
use super::offers::Offers;
use super::{Notices, Server};

/// Starts in a row before a server is given up.
const TRIES: u32 = 5;
/// The first pause; each one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// After running this long, the count starts over.
const STEADY: Duration = Duration::from_mins(1);
/// The pause between two lists of a server whose tools keep changing.
const BETWEEN_LISTS: Duration = Duration::from_millis(500);

/// The state of a server.
#[derive(Clone, Default)]
pub(super) enum State {
    /// Starting for the first time.
    #[default]
    Starting,
    /// Running.
    Running(Line),
    /// Crashed and restarting.
    Broken,
    /// Not restarted before the next prompt, and why.
    GivenUp(Arc<str>),
    /// Waiting for a login with these permissions.
    Login(Arc<Challenge>),
}

/// The state of a server and its lists.
#[derive(Clone, Default)]
pub(super) struct Status {
    pub state: State,
    pub listing: Arc<Listing>,
    /// What it offers the person, once it has listed that.
    pub offers: Option<Arc<Offers>>,
    /// When the list of tools expires, if the server said so.
    pub stale: Option<Instant>,
}

impl Status {
    /// Waits until a server runs; else why it does not, to complete `MCP server x …`.
    pub async fn running(status: &mut watch::Receiver<Self>) -> Result<Line, String> {
        let settled = status.wait_for(|status| match &status.state {
            // It crashed, and its task is about to notice.
            State::Running(line) => !line.is_over(),
            State::GivenUp(_) | State::Login(_) => true,
            State::Starting | State::Broken => false,
        });
        match settled.await.map(|status| status.state.clone()) {
            Ok(State::Running(line)) => Ok(line),
            Ok(State::GivenUp(why)) => Err(why.to_string()),
            Ok(_) => Err(
                "requires a login: send a prompt to log in, or run `tandem mcp login`".to_owned(),
            ),
            Err(_keeper_gone) => Err("has ended".to_owned()),
        }
    }
}

/// Runs a server until `end` is cancelled.
pub(super) async fn keep(
    server: Arc<Server>,
    status: watch::Sender<Status>,
    nudge: Arc<Notify>,
    notices: Arc<Notices>,
    end: CancellationToken,
) {
    let mut starts = 0;
    loop {
        let begun = Instant::now();
        let alive = Box::pin(live(&server, &status, &nudge, &notices, &end));
        let Some(Broken { why, again, login }) = alive.await else {
            return;
        };
        let set = |state| status.send_modify(|status| status.state = state);
        if let Some(challenge) = login {
            set(State::Login(challenge.into()));
        } else {
            let is_steady = begun.elapsed() >= STEADY;
            starts = if is_steady { 1 } else { starts + 1 };
            let then = match (again, starts < TRIES) {
                (true, true) => "restarting it",
                (true, false) => "it will not be tried again before the next prompt",
                (false, _) => "it will not be tried again in this session",
            };
            notices.say(format!("MCP server `{}` {why}; {then}", server.name));
            if again && starts < TRIES {
                set(State::Broken);
                let pause = sleep(FIRST_PAUSE * 2_u32.pow(starts - 1));
                if end.run_until_cancelled(pause).await.is_none() {
                    return;
                }
                continue;
            }
            set(State::GivenUp(why.into()));
            if !again {
                return;
            }
            starts = TRIES - 1;
        }
        if end.run_until_cancelled(nudge.notified()).await.is_none() {
            return;
        }
        set(State::Starting);
    }
}

/// One run of a server; `None` if we stopped it.
async fn live(
    server: &Server,
    status: &watch::Sender<Status>,
    nudge: &Notify,
    notices: &Notices,
    end: &CancellationToken,
) -> Option<Broken> {
    let mut connection = match end
        .run_until_cancelled(Box::pin(Connection::open(server)))
        .await?
    {
        Ok(connection) => connection,
        Err(broken) => return Some(broken),
    };
    let why = end
        .run_until_cancelled(serve(&mut connection, server, status, nudge, notices))
        .await;
    connection.close().await;
    why
}

/// Refreshes the tool list until the connection closes; returns the reason.
async fn serve(
    connection: &mut Connection,
    server: &Server,
    status: &watch::Sender<Status>,
    nudge: &Notify,
    notices: &Notices,
) -> Broken {
    loop {
        let line = connection.line.clone();
        let List {
            tools,
            fresh,
            notices: omitted,
        } = match connection.tools().await {
            Ok(listed) => listed,
            Err(_closed) if line.is_over() => return Broken::again(connection.ended().await),
            Err(broken) => return broken,
        };
        let listing = Listing::new(tools, line.mirrors());
        for notice in omitted.iter().chain(&listing.notices) {
            notices.say(format!("MCP server `{}` {notice}", server.name));
        }
        status.send_modify(|status| {
            status.state = State::Running(line);
            status.listing = Arc::new(listing);
            status.stale = fresh.and_then(|fresh| Instant::now().checked_add(fresh));
        });
        // A turn does not wait for these.
        let (offers, omitted) = Offers::list(connection, &server.name).await;
        for notice in omitted {
            notices.say(format!("MCP server `{}` {notice}", server.name));
        }
        status.send_modify(|status| status.offers = Some(Arc::new(offers)));
        notices.offers_changed.notify_one();
        let exchange = Arc::clone(&connection.line.exchange);
        tokio::select! {
            why = connection.ended() => return Broken::again(why),
            // The list is stale, and a prompt waits for a new one.
            () = nudge.notified() => {}
            () = async {
                exchange.changes.notified().await;
                sleep(BETWEEN_LISTS).await;
            } => {}
        }
    }
}
