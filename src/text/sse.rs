//! Decodes server-sent events by the WHATWG rules, but leniently at the end of a stream.
//!
//! Invariants: events do not depend on how the bytes are split; every byte is examined once, so one-byte reads cost no
//! more than one large read; a line or event longer than [`MAX_EVENT`] is an error.
//!
//! `id` and `retry` say where a stream can be continued ([`Resume`]).

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};
use tokio_util::codec::Decoder;

/// The maximum length of a line, and of an event's data, in bytes.
pub const MAX_EVENT: usize = 8 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; empty stands for `message`.
    pub name: Bytes,
    /// The `data` lines, joined by line feeds.
    pub data: Bytes,
}

impl Event {
    /// The data as text; invalid UTF-8 becomes U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        // The lossy conversion alone would be twice as slow.
        std::str::from_utf8(&self.data)
            .map_or_else(|_| String::from_utf8_lossy(&self.data), Cow::Borrowed)
    }
}

/// Why a stream cannot be decoded any further.
#[derive(Debug, thiserror::Error)]
pub enum SseError {
    /// One line or one event exceeds [`MAX_EVENT`].
    #[error("the stream has an event of more than {} MiB", MAX_EVENT >> 20)]
    TooLong,
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Where and when a stream that ended can be continued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// The id of the last event; `None` if the stream cannot be continued.
    pub id: Option<String>,
    /// The pause before.
    pub pause: Option<Duration>,
}

/// The decoder; one for each stream.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// Where the stream can be continued.
    pub resume: Resume,
    /// Where the search for a line end continues.
    scanned: usize,
    /// Whether the position of a byte order mark was passed.
    begun: bool,
    /// Whether the last line ended with CR: a following LF belongs to it.
    skip_lf: bool,
    name: Bytes,
    data: Data,
}

/// The data of the current event; a single line, the usual case, is not copied.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Bytes),
    Lines(BytesMut),
}

impl Decoder for SseDecoder {
    type Item = Event;
    type Error = SseError;

    fn decode(&mut self, src: &mut BytesMut) -> Result<Option<Event>, SseError> {
        if !self.begun {
            if src.len() < BOM.len() && BOM.starts_with(src) {
                return Ok(None);
            }
            self.strip_bom(src);
        }
        while let Some(end) = self.line_end(src)? {
            let event = self.field(src, end)?;
            self.skip_lf = src.first() == Some(&b'\r');
            src.advance(1);
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Gateways drop the last blank line, the last line ending, or both: an incomplete event counts.
    fn decode_eof(&mut self, src: &mut BytesMut) -> Result<Option<Event>, SseError> {
        if let Some(event) = self.decode(src)? {
            return Ok(Some(event));
        }
        if !src.is_empty() {
            self.begun = true;
            self.scanned = 0;
            self.field(src, src.len())?;
        }
        Ok(self.dispatch())
    }
}

impl SseDecoder {
    fn strip_bom(&mut self, src: &mut BytesMut) {
        self.begun = true;
        if src.starts_with(BOM) {
            src.advance(BOM.len());
        }
    }

    /// Finds the end of the next line.
    fn line_end(&mut self, src: &mut BytesMut) -> Result<Option<usize>, SseError> {
        if self.skip_lf && !src.is_empty() {
            self.skip_lf = false;
            if src.first() == Some(&b'\n') {
                src.advance(1);
            }
        }
        let found = src
            .get(self.scanned..)
            .and_then(|rest| memchr2(b'\n', b'\r', rest));
        let end = found.map(|at| self.scanned + at);
        self.scanned = if end.is_some() { 0 } else { src.len() };
        if end.unwrap_or(src.len()) > MAX_EVENT {
            return Err(SseError::TooLong);
        }
        Ok(end)
    }

    /// Adds the line that ends at `end` to the event; a blank line ends the event.
    fn field(&mut self, src: &mut BytesMut, end: usize) -> Result<Option<Event>, SseError> {
        let line = &src[..end];
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let colon = memchr(b':', line).unwrap_or(end);
        let space = usize::from(line.get(colon + 1) == Some(&b' '));
        let value = (colon + 1 + space).min(end);
        match &line[..colon] {
            b"data" => {
                src.advance(value);
                self.data.push(src.split_to(end - value).freeze())?;
            }
            b"event" => {
                src.advance(value);
                self.name = src.split_to(end - value).freeze();
            }
            b"id" => {
                let id = String::from_utf8_lossy(line.get(value..).unwrap_or_default());
                self.resume.id = Some(id.into_owned()).filter(|id| !id.is_empty());
                src.advance(end);
            }
            b"retry" => {
                let text = std::str::from_utf8(line.get(value..).unwrap_or_default());
                let pause = text.ok().and_then(|text| text.parse().ok());
                self.resume.pause = pause.map(Duration::from_millis).or(self.resume.pause);
                src.advance(end);
            }
            _ => src.advance(end),
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        match std::mem::take(&mut self.data) {
            Data::None => None,
            Data::Line(data) => Some(Event { name, data }),
            Data::Lines(data) => Some(Event {
                name,
                data: data.freeze(),
            }),
        }
    }
}

impl Data {
    fn push(&mut self, line: Bytes) -> Result<(), SseError> {
        match self {
            Self::None => *self = Self::Line(line),
            Self::Line(first) => {
                let mut lines = BytesMut::from(&first[..]);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
                *self = Self::Lines(lines);
            }
            Self::Lines(lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&line);
                if lines.len() > MAX_EVENT {
                    return Err(SseError::TooLong);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(input: &[u8], chunk: usize) -> Vec<(String, String)> {
        let (mut decoder, mut buf, mut events) =
            (SseDecoder::default(), BytesMut::new(), Vec::new());
        let mut keep = |event: Event| {
            events.push((
                String::from_utf8_lossy(&event.name).into_owned(),
                event.text().into_owned(),
            ));
        };
        for piece in input.chunks(chunk.max(1)) {
            buf.extend_from_slice(piece);
            while let Some(event) = decoder.decode(&mut buf).unwrap() {
                keep(event);
            }
        }
        while let Some(event) = decoder.decode_eof(&mut buf).unwrap() {
            keep(event);
        }
        events
    }

    #[track_caller]
    fn check(input: &str, expected: &[(&str, &str)]) {
        for chunk in [1, 2, 3, 7, input.len()] {
            let events = decode(input.as_bytes(), chunk);
            let events: Vec<_> = events
                .iter()
                .map(|(name, data)| (name.as_str(), data.as_str()))
                .collect();
            assert_eq!(events, expected, "{input:?} in chunks of {chunk}");
        }
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r\n", "\r"] {
            check(
                &"event: x\n: note\ndata: a\ndata:b\n\ndata: c\n\n".replace('\n', end),
                &[("x", "a\nb"), ("", "c")],
            );
        }
        check(
            "data: a\r\n\ndata: b\n\rdata: c\r\r\n",
            &[("", "a"), ("", "b"), ("", "c")],
        );
    }

    #[test]
    fn a_stream_says_where_it_can_be_continued() {
        let mut decoder = SseDecoder::default();
        let mut buf = BytesMut::from("id: 7\nretry: 500\ndata:\n\nretry: soon\ndata: {}\n\n");
        while decoder.decode(&mut buf).unwrap().is_some() {}
        let (id, pause) = (Some("7".to_owned()), Some(Duration::from_millis(500)));
        assert_eq!(decoder.resume, Resume { id, pause });
    }

    #[test]
    fn the_end_of_the_stream_ends_the_event() {
        check("data: a", &[("", "a")]);
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
        check("data: a\r", &[("", "a")]);
        check("event: x\n", &[]);
    }

    #[test]
    fn only_a_leading_byte_order_mark_is_removed() {
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &[("", "b")]);
    }

    #[test]
    fn an_endless_line_is_an_error_and_uses_bounded_memory() {
        let (mut decoder, mut buf) = (SseDecoder::default(), BytesMut::from(&b"data: "[..]));
        buf.resize(MAX_EVENT + 1, b'x');
        assert!(matches!(decoder.decode(&mut buf), Err(SseError::TooLong)));
    }
}
