//! An MCP server over HTTP that answers as events, forgets its session when told to, and writes down who asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What was asked: the method of HTTP or of the message, the session and the key it came with.
pub type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

/// Serves until the test is over; gives the address.
pub fn serve() -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let asked = Asked::default();
    let mut server = Server { session: 0, asked: Arc::clone(&asked) };
    std::thread::spawn(move || listener.incoming().for_each(|stream| server.answer(stream.unwrap())));
    (url, asked)
}

struct Server {
    /// The number of the session that is known.
    session: u32,
    asked: Asked,
}

impl Server {
    fn answer(&mut self, mut stream: TcpStream) {
        let Some((method, headers, body)) = read(&stream) else { return };
        let header = |name: &str| headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let name = message["method"].as_str().unwrap_or(&method).to_owned();
        let session = header("mcp-session-id").to_owned();
        self.asked.lock().unwrap().push((name.clone(), session.clone(), header("authorization").to_owned()));
        let (status, content) = match name.as_str() {
            "initialize" => {
                self.session += 1;
                let info = json!({ "name": "Web", "version": "3" });
                let version = &message["params"]["protocolVersion"];
                (200, Some(json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": info })))
            }
            _ if session != format!("s{}", self.session) => (404, None),
            "tools/list" => (200, Some(json!({ "tools": [{ "name": "forget" }, { "name": "whoami" }] }))),
            "tools/call" if message["params"]["name"] == "forget" => {
                self.session += 1;
                (404, None)
            }
            "tools/call" => (200, Some(json!({ "content": [{ "type": "text", "text": session }] }))),
            "GET" => (405, None),
            _ => (202, None),
        };
        let body = content.map_or_else(String::new, |result| {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            format!(": hello\n\nevent: message\ndata: {answer}\n\n")
        });
        let session = self.session;
        let _gone = write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s{session}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
    }
}

type Request = (String, Vec<(String, String)>, String);

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((method, headers, String::from_utf8(body).ok()?))
}
