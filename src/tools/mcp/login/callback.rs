//! Where the browser brings the answer to a login: a port of this machine that is open only while the login waits
//! (RFC 8252), or the address pasted by the person.
//!
//! Invariants: an answer without the `state` of this login is ignored; one of another issuer is refused before anything
//! of it is used.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

/// The path the browser is sent to.
const PATH: &str = "/callback";
/// The longest request, in bytes.
const LONGEST: u64 = 16 << 10;
/// Timeout for one request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What an answer must fulfill.
#[derive(Debug)]
pub(super) struct Expected {
    /// The value only this login knows.
    pub state: String,
    pub issuer: String,
    /// Whether the issuer promised to name itself.
    pub names_issuer: bool,
}

impl Expected {
    /// The code in an answer; `None` if it is not an answer to this login.
    pub fn code(&self, address: &Url) -> Option<Result<String, String>> {
        let field = |name: &str| {
            let mut fields = address.query_pairs();
            fields.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
        };
        if field("state").as_deref() != Some(&*self.state) {
            return None;
        }
        let issuer = &self.issuer;
        match field("iss") {
            Some(named) if named != *issuer => {
                return Some(Err(format!("the response is not from {issuer}")));
            }
            None if self.names_issuer => {
                return Some(Err(format!(
                    "the response does not name its issuer, which should be {issuer}"
                )));
            }
            _ => {}
        }
        if let Some(error) = field("error") {
            let described = field("error_description").unwrap_or_default();
            return Some(Err(format!("{issuer} refused: {error} {described}")
                .trim_end()
                .to_owned()));
        }
        Some(field("code").ok_or_else(|| format!("the response from {issuer} has no code")))
    }

    /// The code in an address that was pasted.
    pub fn pasted(&self, address: &str) -> Option<Result<String, String>> {
        self.code(&Url::parse(address.trim()).ok()?)
    }
}

/// An open port of this machine.
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address the browser is sent to.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the answer; other visitors are sent away.
    pub async fn code(&self, expected: &Expected) -> Result<String, String> {
        loop {
            // A visitor who is gone again is not ours.
            let Ok((mut stream, _)) = self.listener.accept().await else {
                continue;
            };
            let Ok(Some(target)) = timeout(TIMEOUT, target(&mut stream)).await else {
                continue;
            };
            let address = Url::parse(&format!("http://127.0.0.1{target}")).ok();
            let answer = address
                .filter(|address| address.path() == PATH)
                .and_then(|address| expected.code(&address));
            let (status, words) = match &answer {
                Some(Ok(_)) => ("200 OK", "tandem is logged in. You can close this page."),
                Some(Err(_)) => (
                    "400 Bad Request",
                    "The login failed. tandem shows the reason.",
                ),
                None => ("404 Not Found", "This page is part of a tandem login."),
            };
            let _visitor_gone = timeout(TIMEOUT, say(&mut stream, status, words)).await;
            if let Some(answer) = answer {
                return answer;
            }
        }
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let request = lines.next_line().await.ok()??;
    while !lines.next_line().await.ok()??.is_empty() {}
    let mut words = request.split(' ');
    (words.next() == Some("GET")).then_some(())?;
    words.next().map(str::to_owned)
}

async fn say(stream: &mut TcpStream, status: &str, words: &str) -> io::Result<()> {
    let page = format!("<!doctype html><meta charset=utf-8><title>tandem</title><p>{words}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_another_login_or_issuer_are_refused() {
        let check = |names_issuer, query: &str, expected: Option<Result<&str, &str>>| {
            let expectation = Expected {
                state: "s".to_owned(),
                issuer: "https://a.example".to_owned(),
                names_issuer,
            };
            let code = expectation.pasted(&format!(" http://127.0.0.1:1/callback?{query}\n"));
            let code = code
                .as_ref()
                .map(|code| code.as_deref().map_err(String::as_str));
            assert_eq!(code, expected, "{query}");
        };
        let other = Some(Err("the response is not from https://a.example"));
        check(false, "code=c&state=s", Some(Ok("c")));
        check(
            true,
            "code=c&state=s&iss=https%3A%2F%2Fa.example",
            Some(Ok("c")),
        );
        let silent = Some(Err(
            "the response does not name its issuer, which should be https://a.example",
        ));
        check(true, "code=c&state=s", silent);
        for (names_issuer, issuer) in [
            (true, "https://b.example"),
            (false, "https://b.example"),
            (true, "https://a.example/"),
            (false, "https://A.example"),
            (true, "https://a.example:443"),
            (true, ""),
        ] {
            check(names_issuer, &format!("code=c&state=s&iss={issuer}"), other);
            check(
                names_issuer,
                &format!("error=lies&state=s&iss={issuer}"),
                other,
            );
        }
        check(
            false,
            "error=access_denied&error_description=no&state=s",
            Some(Err("https://a.example refused: access_denied no")),
        );
        check(
            false,
            "state=s",
            Some(Err("the response from https://a.example has no code")),
        );
        for query in [
            "code=c",
            "code=c&state=t",
            "code=c&state=",
            "code=c&state=S",
            "",
        ] {
            check(false, query, None);
        }
    }
}
