//! An MCP server over HTTP that responds with events in unusual framing, forgets its session when told to, and records who asked.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::loopback;

/// A request: the HTTP or message method, the session and the key it came with.
pub type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

/// Serves until the test is over; returns the address.
pub fn serve() -> (String, Asked) {
    let asked = Asked::default();
    let server = Arc::new(Mutex::new(Server {
        session: 0,
        asked: Arc::clone(&asked),
    }));
    let port =
        loopback::listen(move |request, stream| server.lock().unwrap().answer(&request, stream));
    (format!("http://127.0.0.1:{port}/mcp"), asked)
}

/// Serves an address that answers every request with this status, except a server's first requests; returns the address
/// and the requests.
pub fn serve_denying(
    status: u16,
    takes: &'static [&'static str],
) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let port = loopback::listen(move |request, stream| {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let name = message["method"]
            .as_str()
            .unwrap_or(&request.method)
            .to_owned();
        seen.lock().unwrap().push(name.clone());
        if !takes.contains(&name.as_str()) {
            return loopback::answer(stream, status, "", "");
        }
        let result =
            json!({ "protocolVersion": message["params"]["protocolVersion"], "capabilities": {} });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        loopback::answer(
            stream,
            200,
            "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n",
            &answer,
        )
    });
    (format!("http://127.0.0.1:{port}/mcp"), asked)
}

struct Server {
    /// The number of the current session.
    session: u32,
    asked: Asked,
}

impl Server {
    fn answer(&mut self, request: &loopback::Request, stream: &TcpStream) -> std::io::Result<()> {
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let name = message["method"]
            .as_str()
            .unwrap_or(&request.method)
            .to_owned();
        let session = header("mcp-session-id");
        self.asked
            .lock()
            .unwrap()
            .push((name.clone(), session.clone(), header("authorization")));
        let (status, content) = match name.as_str() {
            "initialize" => {
                self.session += 1;
                let info = json!({ "name": "Web", "version": "3" });
                let version = &message["params"]["protocolVersion"];
                (
                    200,
                    Some(
                        json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": info }),
                    ),
                )
            }
            _ if session != format!("s{}", self.session) => (404, None),
            "tools/list" => (
                200,
                Some(json!({ "tools": [{ "name": "forget" }, { "name": "whoami" }] })),
            ),
            "tools/call" if message["params"]["name"] == "forget" => {
                self.session += 1;
                if self.session > 2 {
                    // The second time in the way official servers do it.
                    let error = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
                    let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                    return loopback::document(stream, 400, &refusal);
                }
                (404, None)
            }
            "tools/call" => (
                200,
                Some(json!({ "content": [{ "type": "text", "text": session }] })),
            ),
            "GET" => (405, None),
            _ => (202, None),
        };
        let body = content.map_or_else(String::new, |result| {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            format!("\u{feff}: hello\r\revent: message\rdata: {answer}\r\r")
        });
        let headers = format!(
            "Content-Type: text/event-stream\r\nMcp-Session-Id: s{}\r\n",
            self.session
        );
        loopback::answer(stream, status, &headers, &body)
    }
}
