//! Minimal HTTP on loopback for tests' scripted servers: one thread and one request per connection.
//!
//! For servers other than models (MCP, logins), and for answers that violate HTTP itself. For models, use `rehearsal::Server`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde_json::{Value, json};

/// A request as received.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    /// The value of a header, named in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Serves each connection until the process ends; returns the port.
pub fn listen(
    serve: impl Fn(Request, &TcpStream) -> std::io::Result<()> + Clone + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    serve_on(listener, serve);
    port
}

/// The same for a model server whose list of models is empty.
pub fn listen_to_posts(
    serve: impl Fn(Request, &TcpStream) -> std::io::Result<()> + Clone + Send + 'static,
) -> u16 {
    listen(move |request, stream| match request.method.as_str() {
        "POST" => serve(request, stream),
        _ => document(stream, 404, &json!({ "error": { "message": "not found" } })),
    })
}

/// Serves each connection of a listener.
pub fn serve_on(
    listener: TcpListener,
    serve: impl Fn(Request, &TcpStream) -> std::io::Result<()> + Clone + Send + 'static,
) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            // A client that hangs up midway is part of the test.
            std::thread::spawn(move || read(&stream).map(|request| serve(request, &stream)));
        }
    });
}

/// The request on a connection; `None` if the client has disconnected.
fn read(stream: &TcpStream) -> Option<Request> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

/// Sends a response with this body; each of `headers` is a complete line.
pub fn answer(
    mut stream: &TcpStream,
    status: u16,
    headers: &str,
    body: &str,
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\n{headers}connection: close\r\ncontent-length: {}",
        body.len()
    );
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())
}

/// Responds with a stream of events.
pub fn events(stream: &TcpStream, events: &str) -> std::io::Result<()> {
    answer(stream, 200, "content-type: text/event-stream\r\n", events)
}

/// Responds with a document.
pub fn document(stream: &TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    answer(
        stream,
        status,
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}
