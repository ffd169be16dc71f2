//! The script of a rehearsal, and its bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::voice::{Api, Voice};

/// The replies, in the order of the requests.
pub type Script = Vec<Reply>;

/// One reply.
pub type Reply = Vec<Step>;

/// One step of a reply. The finish reason follows from the steps (calls or none) unless given; usage and the terminal
/// marker are added automatically.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// One delta of text.
    Text {
        /// The text.
        text: String,
    },
    /// A text, word by word.
    Words {
        /// The text.
        words: String,
        /// The pause after each word, in milliseconds.
        #[serde(default)]
        delay_ms: u64,
    },
    /// One delta of reasoning.
    Reasoning {
        /// The text.
        reasoning: String,
    },
    /// A tool call.
    Call {
        /// The call.
        call: Call,
        /// The number of pieces its arguments arrive in.
        #[serde(default = "one")]
        fragments: usize,
    },
    /// Pauses the answer until [`crate::Rehearsal::open`].
    Gate {
        /// The gate's name.
        gate: String,
    },
    /// An HTTP error (or any other answer that is not a stream) instead of a stream.
    Status {
        /// The status.
        status: u16,
        /// JSON, or a string that is sent verbatim.
        #[serde(default)]
        body: Value,
        /// Additional headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// An error inside the stream.
    Error {
        /// The error object or text.
        error: Value,
    },
    /// A different finish reason.
    Finish {
        /// As named by the chat API.
        finish: String,
    },
    /// Different token counts.
    Usage {
        /// The usage object.
        usage: Value,
    },
    /// Bytes of the stream, verbatim; nothing is appended.
    Raw {
        /// The bytes, as text.
        raw: String,
    },
    /// Closes the connection here.
    Cut {
        /// Whether to.
        cut: bool,
    },
    /// Stays silent from here on, with the connection open.
    Hang {
        /// Whether to.
        hang: bool,
    },
    /// A body that is not text, such as a compressed one. Not available in JSON.
    #[serde(skip)]
    Bytes(Bytes),
}

/// A call in a script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Call {
    /// The id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// An object, or a string that is sent verbatim (for arguments that do not parse).
    #[serde(default)]
    pub arguments: Value,
}

fn one() -> usize {
    1
}

/// A reply, ready to be sent.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(super) enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    Gate(String),
    Hang,
    Cut,
}

/// The reply when the script is exhausted; clients don't retry after it for seconds.
pub(super) fn exhausted() -> Reply {
    let body = json!({ "error": { "message": "the script has no reply left" } });
    vec![Step::Status {
        status: 400,
        body,
        headers: BTreeMap::new(),
    }]
}

/// The bytes of a reply to a request of this size, in bytes.
pub(super) fn play(reply: Reply, api: Api, request: usize) -> Played {
    let mut stage = Stage {
        voice: Voice::new(api, request),
        status: 200,
        headers: BTreeMap::new(),
        pieces: Vec::new(),
        finish: None,
        usage: None,
        open_end: false,
    };
    for step in reply {
        stage.step(step);
    }
    stage.end(api)
}

/// A reply being encoded.
struct Stage {
    voice: Voice,
    status: u16,
    headers: BTreeMap<String, String>,
    pieces: Vec<Piece>,
    finish: Option<String>,
    usage: Option<Value>,
    /// Whether the script determines the end itself.
    open_end: bool,
}

impl Stage {
    fn step(&mut self, step: Step) {
        match step {
            Step::Text { text } => self.text(&text),
            Step::Words { words, delay_ms } => self.words(&words, Duration::from_millis(delay_ms)),
            Step::Reasoning { reasoning } => {
                let events = self.voice.reasoning(&reasoning);
                self.say(&events);
            }
            Step::Call { call, fragments } => self.call(&call, fragments),
            Step::Gate { gate } => self.pieces.push(Piece::Gate(gate)),
            Step::Status {
                status,
                body,
                headers,
            } => self.document(status, &body, headers),
            Step::Error { error } => {
                self.say(&[json!({ "type": "error", "error": error })]);
                self.open_end = true;
            }
            Step::Finish { finish } => self.finish = Some(finish),
            Step::Usage { usage } => self.usage = Some(usage),
            Step::Raw { raw } => self.bytes(raw.into()),
            Step::Bytes(bytes) => self.bytes(bytes),
            Step::Cut { cut: true } => self.stop(Piece::Cut),
            Step::Hang { hang: true } => self.stop(Piece::Hang),
            Step::Cut { cut: false } | Step::Hang { hang: false } => {}
        }
    }

    fn end(mut self, api: Api) -> Played {
        if !self.open_end {
            let events = self.voice.end(self.finish.take(), self.usage.take());
            self.say(&events);
            if api == Api::Chat {
                self.pieces
                    .push(Piece::Bytes(Bytes::from_static(b"data: [DONE]\n\n")));
            }
        }
        self.headers
            .entry("content-type".to_owned())
            .or_insert_with(|| "text/event-stream".to_owned());
        Played {
            status: self.status,
            headers: self.headers.into_iter().collect(),
            pieces: self.pieces,
        }
    }

    fn say(&mut self, events: &[Value]) {
        self.pieces.extend(
            events
                .iter()
                .map(|event| Piece::Bytes(format!("data: {event}\n\n").into())),
        );
    }

    fn text(&mut self, text: &str) {
        let events = self.voice.text(text);
        self.say(&events);
    }

    fn words(&mut self, words: &str, delay: Duration) {
        for word in words.split_inclusive(' ') {
            self.text(word);
            if !delay.is_zero() {
                self.pieces.push(Piece::Pause(delay));
            }
        }
    }

    fn call(&mut self, call: &Call, fragments: usize) {
        let arguments: Vec<char> = match &call.arguments {
            Value::String(text) => text.chars().collect(),
            Value::Null => Vec::new(),
            other => other.to_string().chars().collect(),
        };
        let size = arguments.len().div_ceil(fragments.max(1)).max(1);
        let pieces: Vec<String> = arguments
            .chunks(size)
            .map(|piece| piece.iter().collect())
            .collect();
        let events = self.voice.call(&call.id, &call.name, &pieces);
        self.say(&events);
    }

    fn document(&mut self, status: u16, body: &Value, headers: BTreeMap<String, String>) {
        self.status = status;
        self.headers = headers;
        self.headers
            .entry("content-type".to_owned())
            .or_insert_with(|| "application/json".to_owned());
        match body {
            Value::Null => self.open_end = true,
            Value::String(text) => self.bytes(text.clone().into()),
            body => self.bytes(body.to_string().into()),
        }
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.pieces.push(Piece::Bytes(bytes));
        self.open_end = true;
    }

    fn stop(&mut self, piece: Piece) {
        self.pieces.push(piece);
        self.open_end = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_lists_of_lists_of_steps() {
        let script: Script = serde_json::from_value(json!([
            [{ "text": "a" }, { "words": "b c", "delay_ms": 5 }, { "gate": "g" }, { "hang": true }],
            [{ "call": { "id": "c1", "name": "f", "arguments": { "x": 1 } }, "fragments": 3 }],
            [{ "status": 401, "body": { "error": "no" } }],
        ]))
        .unwrap();
        assert_eq!(
            script[0][1],
            Step::Words {
                words: "b c".into(),
                delay_ms: 5
            }
        );
        assert_eq!(script[0][3], Step::Hang { hang: true });
        assert!(matches!(&script[1][0], Step::Call { fragments: 3, .. }));
        assert!(matches!(&script[2][0], Step::Status { status: 401, .. }));
    }
}
