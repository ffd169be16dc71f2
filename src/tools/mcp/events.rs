//! The messages in the body of a response: one document, or the data of
//! [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html).

use std::collections::VecDeque;

/// Splits a body into messages, however it arrives.
pub(super) struct Events {
    /// Whether the body is a stream of events; otherwise it is a single message.
    stream: bool,
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
    /// The data of the current event.
    data: Vec<u8>,
    complete: VecDeque<Vec<u8>>,
}

impl Events {
    pub fn new(stream: bool) -> Self {
        Self {
            stream,
            rest: Vec::new(),
            data: Vec::new(),
            complete: VecDeque::new(),
        }
    }

    /// Adds a piece of the body.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut pieces = piece
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|_| self.stream)
            .peekable();
        if pieces.peek().is_none() {
            self.rest.extend_from_slice(piece);
        }
        for piece in pieces {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                read(line.trim_ascii_end(), &mut self.data, &mut self.complete);
            }
        }
    }

    /// Ends the body.
    pub fn end(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if !self.stream && !rest.is_empty() {
            self.complete.push_back(rest);
        }
    }

    /// The next complete message.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        self.complete.pop_front()
    }

    /// The number of bytes of incomplete messages.
    pub fn pending(&self) -> usize {
        self.rest.len() + self.data.len()
    }
}

/// An empty line ends an event; of the other lines only data matters here.
fn read(line: &[u8], data: &mut Vec<u8>, complete: &mut VecDeque<Vec<u8>>) {
    if line.is_empty() && !data.is_empty() {
        complete.push_back(std::mem::take(data));
    } else if let Some(value) = line.strip_prefix(b"data:") {
        if !data.is_empty() {
            data.push(b'\n');
        }
        data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stream: bool, body: &str, expected: &[&str]) {
        for size in 1..=body.len() {
            let mut events = Events::new(stream);
            body.as_bytes()
                .chunks(size)
                .for_each(|piece| events.feed(piece));
            events.end();
            let messages: Vec<_> = std::iter::from_fn(|| events.next()).collect();
            let messages: Vec<_> = messages
                .iter()
                .map(|message| std::str::from_utf8(message).unwrap())
                .collect();
            assert_eq!(messages, expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn messages_are_decoded_from_any_chunks() {
        check(false, "{\"a\":\n1}", &["{\"a\":\n1}"]);
        check(
            true,
            "event: message\nid: 1\ndata: {}\n\ndata:1\r\n\r\n",
            &["{}", "1"],
        );
        check(
            true,
            ": hello\n\ndata: [\ndata: ]\n\ndata: cut off",
            &["[\n]"],
        );
    }
}
