//! Serves a script over a socket: as much of HTTP/1.1 as a model server needs, on loopback.

use std::io;
use std::net::Ipv4Addr;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::voice::Api;
use crate::{Answer, Rehearsal};

/// A model server on loopback that plays a script. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct Server {
    base_url: String,
    rehearsal: Rehearsal,
    task: JoinHandle<()>,
}

/// The maximum size of a request, in bytes.
const LARGEST: usize = 64 << 20;

impl Server {
    /// Starts on a free port, in the current runtime.
    ///
    /// # Errors
    /// No port can be opened.
    pub fn start(script: impl Into<Rehearsal>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let rehearsal = script.into();
        let task = tokio::spawn(accept(listener, rehearsal.clone()));
        Ok(Self {
            base_url,
            rehearsal,
            task,
        })
    }

    /// The base URL for an endpoint.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The script's player, to open gates and inspect requests.
    #[must_use]
    pub fn rehearsal(&self) -> &Rehearsal {
        &self.rehearsal
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The connections live in this task and end with it.
async fn accept(listener: TcpListener, rehearsal: Rehearsal) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        rehearsal.0.send_modify(|state| state.connections += 1);
        connections.spawn(serve(socket, rehearsal.clone()));
    }
}

/// Answers the requests of one connection; an error ends it.
async fn serve(socket: TcpStream, rehearsal: Rehearsal) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (read, mut write) = socket.into_split();
    let mut incoming = Incoming {
        read,
        buf: BytesMut::new(),
    };
    while let Some(request) = incoming.request().await? {
        let path = request.path();
        let found = rehearsal
            .0
            .borrow()
            .documents
            .get(path)
            .map(ToString::to_string);
        let dialect =
            dialect(path).filter(|_| request.head.starts_with("POST ") && found.is_none());
        if let Some(dialect) = dialect {
            rehearsal
                .0
                .send_modify(|state| state.paths.push(path.to_owned()));
            let answer = rehearsal.answer(&request, dialect);
            tokio::select! {
                sent = stream(&mut write, answer) => sent?,
                () = incoming.closed() => return Ok(()),
            }
        } else {
            document(&mut write, found).await?;
        }
    }
    Ok(())
}

/// The API of a request, determined by its path; `None` if there is no model at that path.
fn dialect(path: &str) -> Option<Api> {
    match path.rsplit('/').next()? {
        "messages" => Some(Api::Messages),
        "responses" => Some(Api::Responses),
        "completions" | "infill" | "generate" => Some(Api::Chat),
        _ => None,
    }
}

/// A request to a model.
#[derive(Debug)]
pub struct Request {
    /// The request line and the headers.
    head: String,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// The path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = headers.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

struct Incoming {
    read: OwnedReadHalf,
    buf: BytesMut,
}

impl Incoming {
    /// The next request; `None` if the client has closed the connection.
    async fn request(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = memmem::find(&self.buf, b"\r\n\r\n") {
                break at + 4;
            }
            if self.read.read_buf(&mut self.buf).await? == 0 {
                return Ok(None);
            }
        };
        let mut request = Request {
            head: String::from_utf8_lossy(&self.buf.split_to(end)).into_owned(),
            body: Bytes::new(),
        };
        let length = request.header("content-length");
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        if length > LARGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        while self.buf.len() < length {
            if self.read.read_buf(&mut self.buf).await? == 0 {
                return Ok(None);
            }
        }
        request.body = self.buf.split_to(length).freeze();
        Ok(Some(request))
    }

    /// Waits until the client closes its side; anything it sends is kept for the next request.
    async fn closed(&mut self) {
        while self
            .read
            .read_buf(&mut self.buf)
            .await
            .is_ok_and(|read| read > 0)
        {}
    }
}

/// Sends an answer in chunks; a cut in the script omits the last one.
async fn stream(write: &mut OwnedWriteHalf, mut answer: Answer) -> io::Result<()> {
    let mut first = answer.body.next().await;
    if let Some(Err(cut)) = first {
        return Err(cut);
    }
    let mut head = format!(
        "HTTP/1.1 {} Rehearsal\r\ntransfer-encoding: chunked\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    write.write_all(head.as_bytes()).await?;
    while let Some(piece) = first.take() {
        let piece = piece?;
        let size = format!("{:x}\r\n", piece.len());
        let mut chunk = Buf::chain(Buf::chain(size.as_bytes(), piece), &b"\r\n"[..]);
        write.write_all_buf(&mut chunk).await?;
        first = answer.body.next().await;
    }
    write.write_all(b"0\r\n\r\n").await
}

async fn document(write: &mut OwnedWriteHalf, found: Option<String>) -> io::Result<()> {
    let status = if found.is_some() {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let body = found.unwrap_or_else(|| "{}".to_owned());
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    write.write_all(head.as_bytes()).await
}
