//! Keeping one server: started, listed, listed again when its tools changed, started again when it breaks.
//!
//! Invariant: a server that breaks again and again is given up after [`TRIES`] starts, with growing pauses between them.
//! What it listed last stays listed while it is started again, so that the requests of a session begin as before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connection::{Broken, Connection, list};
use super::line::Line;
use super::listing::Listing;
use super::{Remarks, Server};

/// Starts in a row before a server is given up.
const TRIES: u32 = 5;
/// The pause after the first; each one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Who ran this long has not broken "again".
const STEADY: Duration = Duration::from_mins(1);
/// The pause between two lists of a server whose tools change all the time.
const BETWEEN_LISTS: Duration = Duration::from_millis(500);

/// How a server is.
#[derive(Clone)]
pub(super) enum State {
    /// It is started for the first time.
    Starting,
    /// It answers.
    Running(Line),
    /// It broke and is started again.
    Broken,
    /// It is not started again, and why.
    GivenUp(Arc<str>),
}

/// How a server is and what it offers.
#[derive(Clone)]
pub(super) struct Status {
    pub state: State,
    pub listing: Arc<Listing>,
}

impl Status {
    pub fn new() -> Self {
        Self { state: State::Starting, listing: Arc::default() }
    }
}

/// Keeps a server until `end`.
pub(super) async fn keep(
    server: Arc<Server>,
    status: watch::Sender<Status>,
    remarks: Arc<Remarks>,
    end: CancellationToken,
) {
    let mut starts = 0;
    loop {
        let begun = Instant::now();
        let Some(Broken { why, again }) = live(&server, &status, &remarks, &end).await else { return };
        starts = if begun.elapsed() >= STEADY { 1 } else { starts + 1 };
        let name = &server.name;
        if !again || starts >= TRIES {
            remarks.say(format!("MCP server `{name}` {why}; it is not started again in this session"));
            status.send_modify(|status| status.state = State::GivenUp(why.into()));
            return;
        }
        remarks.say(format!("MCP server `{name}` {why}; it is started again"));
        status.send_modify(|status| status.state = State::Broken);
        let pause = FIRST_PAUSE * 2_u32.pow(starts - 1);
        if end.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// One life of a server; `None` when it was ended by us.
async fn live(
    server: &Server,
    status: &watch::Sender<Status>,
    remarks: &Remarks,
    end: &CancellationToken,
) -> Option<Broken> {
    let mut connection = match end.run_until_cancelled(Connection::open(server)).await? {
        Ok(connection) => connection,
        Err(broken) => return Some(broken),
    };
    let why = end.run_until_cancelled(serve(&mut connection, server, status, remarks)).await;
    connection.close().await;
    why.map(Broken::again)
}

/// Keeps the list of tools true until the server talks no longer; gives why.
async fn serve(
    connection: &mut Connection,
    server: &Server,
    status: &watch::Sender<Status>,
    remarks: &Remarks,
) -> String {
    loop {
        let line = connection.line.clone();
        let listed = match list(&line).await {
            Ok(listed) => listed,
            Err(_closed) if line.is_over() => return connection.ended().await,
            Err(why) => return why,
        };
        let listing = Listing::new(listed);
        for remark in &listing.remarks {
            remarks.say(format!("MCP server `{}` {remark}", server.name));
        }
        status.send_replace(Status { state: State::Running(line), listing: Arc::new(listing) });
        let exchange = Arc::clone(&connection.exchange);
        tokio::select! {
            why = connection.ended() => return why,
            () = async {
                exchange.changes.notified().await;
                tokio::time::sleep(BETWEEN_LISTS).await;
            } => {}
        }
    }
}
