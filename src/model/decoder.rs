//! Bytes of one answer to events, whatever the dialect. No network, no clock: `tandem replay` and the tests feed it files.

use std::sync::Arc;

use bytes::BytesMut;
use tokio_util::codec::Decoder as _;

use super::batch::Batch;
use super::recover::Recovery;
use super::sse::{Event, SseDecoder, SseError};
use super::{Api, ModelError, chat, fault, messages, responses};

/// Decodes the stream of one answer.
#[derive(Debug)]
pub struct StreamDecoder {
    sse: SseDecoder,
    buf: BytesMut,
    dialect: Dialect,
    recovery: Recovery,
    begun: bool,
}

#[derive(Debug)]
enum Dialect {
    Chat(chat::Decoder),
    Responses(responses::Decoder),
    Messages(messages::Decoder),
}

impl StreamDecoder {
    /// A decoder for an answer of `model`, whose name marks the reasoning that may go back to it.
    #[must_use]
    pub fn new(api: Api, model: &str) -> Self {
        let dialect = match api {
            Api::Chat => Dialect::Chat(chat::Decoder::new(model)),
            Api::Responses => Dialect::Responses(responses::Decoder::new(model)),
            Api::Messages => Dialect::Messages(messages::Decoder::new(model)),
        };
        Self {
            sse: SseDecoder::default(),
            buf: BytesMut::new(),
            dialect,
            recovery: Recovery::new(Arc::default()),
            begun: false,
        }
    }

    /// Takes calls of these tools that a model wrote as text for calls.
    #[must_use]
    pub fn with_tools(mut self, tools: Arc<[String]>) -> Self {
        self.recovery = Recovery::new(tools);
        self
    }

    /// Takes what one read brought.
    ///
    /// # Errors
    /// What the provider reports inside the stream; the events before it are in `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Batch) -> Result<(), ModelError> {
        self.begun |= !bytes.trim_ascii().is_empty();
        self.buf.extend_from_slice(bytes);
        if !self.recovery.is_watching() {
            return self.decode(out);
        }
        let mut events = Batch::default();
        let decoded = self.decode(&mut events);
        self.recovery.pass(&mut events, out);
        decoded
    }

    /// Takes the end of the stream.
    ///
    /// # Errors
    /// [`super::ErrorCode::Truncated`] where the dialect's end is missing.
    pub fn end(&mut self, out: &mut Batch) -> Result<(), ModelError> {
        let mut events = Batch::default();
        let ended = self.decode_end(&mut events);
        self.recovery.pass(&mut events, out);
        if ended.is_ok() {
            self.recovery.settle(out);
        } else {
            self.recovery.release(out);
        }
        ended
    }

    fn decode(&mut self, out: &mut Batch) -> Result<(), ModelError> {
        while !self.done()
            && let Some(event) = self.sse.decode(&mut self.buf).map_err(too_long)?
        {
            self.dialect.event(&event, out)?;
        }
        Ok(())
    }

    fn decode_end(&mut self, out: &mut Batch) -> Result<(), ModelError> {
        while !self.done()
            && let Some(event) = self.sse.decode_eof(&mut self.buf).map_err(too_long)?
        {
            self.dialect.event(&event, out)?;
        }
        self.dialect.end(out)
    }

    /// Whether nothing but white space has come so far.
    pub(super) fn fresh(&self) -> bool {
        !self.begun
    }

    /// Whether the dialect's terminal marker came: nothing that follows is part of the answer.
    #[must_use]
    pub fn done(&self) -> bool {
        match &self.dialect {
            Dialect::Chat(decoder) => decoder.done,
            Dialect::Responses(decoder) => decoder.done,
            Dialect::Messages(decoder) => decoder.done,
        }
    }
}

impl Dialect {
    fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), ModelError> {
        match self {
            Self::Chat(decoder) => decoder.event(event, out),
            Self::Responses(decoder) => decoder.event(event, out),
            Self::Messages(decoder) => decoder.event(event, out),
        }
    }

    fn end(&mut self, out: &mut Batch) -> Result<(), ModelError> {
        match self {
            Self::Chat(decoder) => decoder.end(out),
            Self::Responses(decoder) => decoder.end(),
            Self::Messages(decoder) => decoder.end(out),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn too_long(error: SseError) -> ModelError {
    fault::unreadable(&error)
}
