//! Splits a stream of bytes into message bodies, and writes bodies as frames.
//!
//! The reader is a state machine over the bytes available: the same input gives the same frames however it is split. It
//! never buffers more than [`MAX_BODY`] bytes. A longer body is reported as [`Frame::TooLong`] and skipped, up to
//! [`MAX_SKIP`].

use std::io::{self, Write as _};
use std::mem;

/// The longest body that is accepted.
pub(crate) const MAX_BODY: u64 = 64 << 20;
/// The longest body that is skipped; a client that announces more is broken or hostile.
pub(crate) const MAX_SKIP: u64 = 1 << 30;
/// The longest header section of one message.
const MAX_HEADER: usize = 8 << 10;

/// How messages are delimited on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length` headers (LSP base protocol).
    Header,
    /// One message per line (ACP).
    Line,
}

impl Framing {
    /// Appends `body`, which must not contain a raw line feed, as one frame.
    pub(crate) fn write(self, out: &mut Vec<u8>, body: &[u8]) {
        match self {
            Self::Header => {
                write!(out, "Content-Length: {}\r\n\r\n", body.len())
                    .expect("a Vec takes every write");
                out.extend_from_slice(body);
            }
            Self::Line => {
                out.extend_from_slice(body);
                out.push(b'\n');
            }
        }
    }
}

/// One frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A body, not yet parsed as JSON.
    Body(Vec<u8>),
    /// A body above the limit starts here; it is skipped.
    TooLong,
}

/// An error after which the start of the next message is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// A header section without a length.
    #[error("message header without Content-Length")]
    MissingLength,
    /// The length is not a decimal number.
    #[error("Content-Length is not a number: {0:?}")]
    BadLength(String),
    /// Two headers of one message contradict each other.
    #[error("message header with two different lengths")]
    TwoLengths,
    /// The body is longer than `MAX_SKIP`.
    #[error("message longer than 1 GiB")]
    HugeBody,
    /// The header section is longer than its limit.
    #[error("message header longer than 8 KiB")]
    LongHeader,
    /// Reading failed.
    #[error("input cannot be read: {0}")]
    Unreadable(io::ErrorKind),
}

/// The reading half of a [`Framing`].
#[derive(Debug)]
pub struct FrameReader {
    framing: Framing,
    state: State,
}

#[derive(Debug)]
enum State {
    /// In a header section.
    Header(HeaderSection),
    /// In a body of known length.
    Body { left: u64, body: Vec<u8> },
    /// In a body that is too long.
    Skip { left: u64 },
    /// In a line.
    Line(Vec<u8>),
    /// In a line that is too long.
    SkipLine { skipped: u64 },
}

#[derive(Debug, Default)]
struct HeaderSection {
    /// The current line.
    line: Vec<u8>,
    /// Bytes of the section so far.
    size: usize,
    /// Whether a non-empty line was seen; empty lines before it are ignored.
    begun: bool,
    length: Option<u64>,
}

impl FrameReader {
    /// A reader at the start of a stream.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            state: State::start(framing),
        }
    }

    /// Consumes bytes from the front of `input` until a frame is complete (and returns it) or `input` is empty.
    ///
    /// # Errors
    /// [`Fatal`] if the next message cannot be found; the reader must not be used afterwards.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, Fatal> {
        while !input.is_empty() {
            if let Some(frame) = self.step(input)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The last line of a stream that ended without a line feed.
    pub fn finish(self) -> Option<Frame> {
        match self.state {
            State::Line(line) => line_frame(line),
            _ => None,
        }
    }

    /// Consumes at least one byte.
    fn step(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, Fatal> {
        match &mut self.state {
            State::Header(section) => {
                let Some(length) = section.read(input)? else {
                    return Ok(None);
                };
                self.begin_body(length)
            }
            State::Body { left, body } => {
                let taken = take(input, *left);
                *left -= taken.len() as u64;
                body.extend_from_slice(taken);
                let done = (*left == 0).then(|| Frame::Body(mem::take(body)));
                self.restart_if(done.is_some());
                Ok(done)
            }
            State::Skip { left } => {
                *left -= take(input, *left).len() as u64;
                let done = *left == 0;
                self.restart_if(done);
                Ok(None)
            }
            State::Line(line) => {
                let (taken, ended) = take_line(input);
                line.extend_from_slice(taken);
                if line.len() as u64 > MAX_BODY {
                    let skipped = line.len() as u64;
                    self.state = State::SkipLine { skipped };
                    self.restart_if(ended);
                    return Ok(Some(Frame::TooLong));
                }
                let done = ended.then(|| mem::take(line));
                Ok(done.and_then(line_frame))
            }
            State::SkipLine { skipped } => {
                let (taken, ended) = take_line(input);
                *skipped += taken.len() as u64;
                if *skipped > MAX_SKIP {
                    return Err(Fatal::HugeBody);
                }
                self.restart_if(ended);
                Ok(None)
            }
        }
    }

    fn begin_body(&mut self, length: u64) -> Result<Option<Frame>, Fatal> {
        match length {
            0 => {
                self.restart_if(true);
                Ok(Some(Frame::Body(Vec::new())))
            }
            // The announced length is not allocated: the body grows as bytes arrive.
            1..=MAX_BODY => {
                self.state = State::Body {
                    left: length,
                    body: Vec::new(),
                };
                Ok(None)
            }
            _ if length <= MAX_SKIP => {
                self.state = State::Skip { left: length };
                Ok(Some(Frame::TooLong))
            }
            _ => Err(Fatal::HugeBody),
        }
    }

    fn restart_if(&mut self, done: bool) {
        if done {
            self.state = State::start(self.framing);
        }
    }
}

impl State {
    fn start(framing: Framing) -> Self {
        match framing {
            Framing::Header => Self::Header(HeaderSection::default()),
            Framing::Line => Self::Line(Vec::new()),
        }
    }
}

impl HeaderSection {
    /// Continues to read; returns the body's length once the section is complete.
    fn read(&mut self, input: &mut &[u8]) -> Result<Option<u64>, Fatal> {
        let (taken, ended) = take_line(input);
        self.size += taken.len() + usize::from(ended);
        if self.size > MAX_HEADER {
            return Err(Fatal::LongHeader);
        }
        self.line.extend_from_slice(taken);
        if !ended {
            return Ok(None);
        }
        let line = mem::take(&mut self.line);
        let line = line.trim_ascii();
        if line.is_empty() {
            if !self.begun {
                return Ok(None);
            }
            return self.length.map(Some).ok_or(Fatal::MissingLength);
        }
        self.begun = true;
        self.field(line)?;
        Ok(None)
    }

    /// Parses one header field; all but the length are ignored.
    fn field(&mut self, line: &[u8]) -> Result<(), Fatal> {
        let mut halves = line.splitn(2, |&byte| byte == b':');
        let name = halves.next().unwrap_or_default().trim_ascii();
        let Some(value) = halves.next() else {
            return Ok(());
        };
        if !name.eq_ignore_ascii_case(b"Content-Length") {
            return Ok(());
        }
        let length = parse_length(value.trim_ascii())?;
        if self
            .length
            .replace(length)
            .is_some_and(|before| before != length)
        {
            return Err(Fatal::TwoLengths);
        }
        Ok(())
    }
}

fn parse_length(value: &[u8]) -> Result<u64, Fatal> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Fatal::BadLength(
            String::from_utf8_lossy(value).into_owned(),
        ));
    }
    // Only digits are left, so the number can only be too large.
    str::from_utf8(value)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(Fatal::HugeBody)
}

/// A blank line is not a message.
fn line_frame(line: Vec<u8>) -> Option<Frame> {
    (!line.trim_ascii().is_empty()).then_some(Frame::Body(line))
}

/// Takes up to `limit` bytes.
fn take<'a>(input: &mut &'a [u8], limit: u64) -> &'a [u8] {
    let length = usize::try_from(limit).map_or(input.len(), |limit| limit.min(input.len()));
    let (taken, rest) = input.split_at(length);
    *input = rest;
    taken
}

/// Takes up to the next line feed, which is consumed but not returned; the flag says whether there was one.
fn take_line<'a>(input: &mut &'a [u8]) -> (&'a [u8], bool) {
    match memchr::memchr(b'\n', input) {
        Some(at) => {
            let (line, rest) = input.split_at(at);
            *input = rest.split_at(1).1;
            (line, true)
        }
        None => (mem::take(input), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads `input` in pieces of the given sizes (then the rest); stops at the first fatal error.
    fn frames(framing: Framing, input: &[u8], pieces: &[usize]) -> (Vec<Frame>, Option<Fatal>) {
        let mut reader = FrameReader::new(framing);
        let mut frames = Vec::new();
        let mut rest = input;
        for &size in pieces.iter().chain([&input.len()]) {
            let mut piece = take(&mut rest, size as u64);
            loop {
                match reader.read(&mut piece) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(fatal) => return (frames, Some(fatal)),
                }
            }
        }
        frames.extend(reader.finish());
        (frames, None)
    }

    fn check(framing: Framing, input: &str, bodies: &[&str], fatal: Option<&Fatal>) {
        let bodies: Vec<_> = bodies
            .iter()
            .map(|body| Frame::Body(body.as_bytes().to_vec()))
            .collect();
        let ones = vec![1; input.len()];
        for pieces in [&[][..], &ones] {
            assert_eq!(
                frames(framing, input.as_bytes(), pieces),
                (bodies.clone(), fatal.cloned()),
                "{input:?}"
            );
        }
    }

    #[test]
    fn headers_are_read_tolerantly() {
        for input in [
            "Content-Length: 2\r\n\r\n{}",
            "content-length:2\r\nX-Foo: bar\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n{}",
            "Content-Length: 2\n\n{}",
            "\r\n\r\nCONTENT-LENGTH :  2 \r\n\r\n{}",
            "noise\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        ] {
            check(Framing::Header, input, &["{}"], None);
        }
        check(
            Framing::Header,
            "Content-Length: 1\r\n\r\n1\r\nContent-Length: 0\r\n\r\n",
            &["1", ""],
            None,
        );
        check(Framing::Header, "Content-Length: 9\r\n\r\ncut", &[], None);
    }

    #[test]
    fn an_unusable_content_length_is_fatal() {
        for (input, fatal) in [
            ("Content-Type: x\r\n\r\n", Fatal::MissingLength),
            ("Content-Length: -5\r\n\r\n", Fatal::BadLength("-5".into())),
            ("Content-Length: +5\r\n\r\n", Fatal::BadLength("+5".into())),
            (
                "Content-Length: five\r\n\r\n",
                Fatal::BadLength("five".into()),
            ),
            ("Content-Length:\r\n\r\n", Fatal::BadLength(String::new())),
            (
                "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Fatal::TwoLengths,
            ),
            ("Content-Length: 1073741825\r\n\r\n", Fatal::HugeBody),
            (
                "Content-Length: 99999999999999999999999\r\n\r\n",
                Fatal::HugeBody,
            ),
            (&"A".repeat(8193), Fatal::LongHeader),
            (&"\n".repeat(8193), Fatal::LongHeader),
        ] {
            check(Framing::Header, input, &[], Some(&fatal));
        }
    }

    #[test]
    fn a_body_above_the_limit_is_skipped_and_the_next_one_read() {
        let length = usize::try_from(MAX_BODY).unwrap() + 1;
        let mut input = format!("Content-Length: {length}\r\n\r\n").into_bytes();
        input.resize(input.len() + length, b'A');
        input.extend_from_slice(b"Content-Length: 2\r\n\r\n{}");
        let expected = (vec![Frame::TooLong, Frame::Body(b"{}".to_vec())], None);
        assert_eq!(frames(Framing::Header, &input, &[1000]), expected);

        let mut line = vec![b'A'; length];
        line.extend_from_slice(b"\n{}\n");
        assert_eq!(frames(Framing::Line, &line, &[1000]), expected);
        assert_eq!(frames(Framing::Line, &line, &[length, 1]), expected);
    }

    #[test]
    fn lines_are_bodies_and_blank_ones_are_not() {
        check(
            Framing::Line,
            "{}\r\n\n  \n[]\nlast",
            &["{}\r", "[]", "last"],
            None,
        );
    }

    proptest! {
        #[test]
        fn frames_survive_any_chunking(
            bodies in prop::collection::vec("[ -~é€😀]{1,40}", 1..6),
            pieces in prop::collection::vec(0usize..9, 0..60),
        ) {
            for framing in [Framing::Header, Framing::Line] {
                let bodies: Vec<_> = bodies.iter().filter(|body| !body.trim().is_empty()).collect();
                let mut wire = Vec::new();
                for body in &bodies {
                    framing.write(&mut wire, body.as_bytes());
                }
                let expected: Vec<_> = bodies.iter().map(|body| Frame::Body(body.as_bytes().to_vec())).collect();
                prop_assert_eq!(frames(framing, &wire, &pieces), (expected, None));
            }
        }

        #[test]
        fn parsing_is_independent_of_chunking(
            input in prop::collection::vec(prop::sample::select(&b"Content-Length: 3\r\n:x{}"[..]), 0..120),
            pieces in prop::collection::vec(0usize..9, 0..60),
        ) {
            for framing in [Framing::Header, Framing::Line] {
                prop_assert_eq!(frames(framing, &input, &pieces), frames(framing, &input, &[]));
            }
        }
    }
}
