//! Decodes the bytes of one answer to events, for every API. No network, no clock: tests feed
//! it files.

use bytes::BytesMut;
use tokio_util::codec::Decoder as _;

use super::batch::Batch;
use super::think::Thoughts;
use super::{Api, Failure, chat, fault, messages, responses};
use crate::text::sse::{Event, SseDecoder, SseError};

/// Decodes the stream of one answer.
#[derive(Debug)]
pub struct StreamDecoder {
    sse: SseDecoder,
    buf: BytesMut,
    dialect: Dialect,
    thoughts: Thoughts,
    /// What was decoded and not yet looked through for thoughts; kept for its memory.
    events: Batch,
    begun: bool,
    failed: bool,
}

#[derive(Debug)]
enum Dialect {
    Chat(Box<chat::Decoder>),
    Responses(responses::Decoder),
    Messages(messages::Decoder),
}

impl StreamDecoder {
    /// A decoder for an answer in this API.
    pub fn new(api: Api) -> Self {
        let dialect = match api {
            Api::Chat => Dialect::Chat(Box::default()),
            Api::Responses => Dialect::Responses(responses::Decoder::default()),
            Api::Messages => Dialect::Messages(messages::Decoder::default()),
        };
        Self {
            sse: SseDecoder::default(),
            buf: BytesMut::new(),
            dialect,
            thoughts: Thoughts::new(),
            events: Batch::default(),
            begun: false,
            failed: false,
        }
    }

    /// Decodes the bytes of one read.
    ///
    /// # Errors
    /// An error that the provider reports inside the stream; the events before it are in `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Batch) -> Result<(), Failure> {
        self.begun |= !bytes.trim_ascii().is_empty();
        self.buf.extend_from_slice(bytes);
        if !self.thoughts.is_watching() {
            return self.decode(out);
        }
        let mut events = std::mem::take(&mut self.events);
        let decoded = self.decode(&mut events);
        self.thoughts.pass(&mut events, out);
        self.events = events;
        decoded
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// [`super::ErrorCode::Truncated`] if the API's terminator is missing.
    pub fn end(&mut self, out: &mut Batch) -> Result<(), Failure> {
        let mut events = Batch::default();
        let ended = self.decode_end(&mut events);
        self.thoughts.pass(&mut events, out);
        self.thoughts.flush(out);
        ended
    }

    fn decode(&mut self, out: &mut Batch) -> Result<(), Failure> {
        while !self.done()
            && let Some(event) = self.sse.decode(&mut self.buf).map_err(too_long)?
        {
            self.event(&event, out)?;
        }
        Ok(())
    }

    fn decode_end(&mut self, out: &mut Batch) -> Result<(), Failure> {
        while !self.done()
            && let Some(event) = self.sse.decode_eof(&mut self.buf).map_err(too_long)?
        {
            self.event(&event, out)?;
        }
        self.dialect.end(out)
    }

    fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), Failure> {
        let decoded = self.dialect.event(event, out);
        self.failed |= decoded.is_err();
        decoded
    }

    /// Whether only white space has arrived so far.
    pub(super) fn fresh(&self) -> bool {
        !self.begun
    }

    /// Whether the API's terminal marker or an error arrived: nothing that follows is part of the answer.
    pub fn done(&self) -> bool {
        self.failed
            || match &self.dialect {
                Dialect::Chat(decoder) => decoder.done,
                Dialect::Responses(decoder) => decoder.done,
                Dialect::Messages(decoder) => decoder.done,
            }
    }
}

impl Dialect {
    fn event(&mut self, event: &Event, out: &mut Batch) -> Result<(), Failure> {
        match self {
            Self::Chat(decoder) => decoder.event(event, out),
            Self::Responses(decoder) => decoder.event(event, out),
            Self::Messages(decoder) => decoder.event(event, out),
        }
    }

    fn end(&mut self, out: &mut Batch) -> Result<(), Failure> {
        match self {
            Self::Chat(decoder) => decoder.end(out),
            Self::Responses(decoder) => decoder.end(),
            Self::Messages(decoder) => decoder.end(out),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn too_long(error: SseError) -> Failure {
    fault::invalid(&error)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{Collected, Collector};

    fn decode(api: Api, cuts: &[&[u8]]) -> Collected {
        let taken = HashSet::new();
        let (mut decoder, mut batch) = (StreamDecoder::new(api), Batch::default());
        let mut result = Ok(());
        for cut in cuts {
            result = result.and_then(|()| decoder.feed(cut, &mut batch));
        }
        let result = result.and(decoder.end(&mut batch));
        let mut collector = Collector::new(&taken);
        while let Some(event) = batch.pop() {
            collector.push(&event);
        }
        collector.finish(result)
    }

    /// Pieces of streams in any order, split anywhere; the result may be nonsense.
    const PIECES: &[&str] = &[
        "data: ",
        "\n\n",
        "\r",
        "event: error\n",
        ": note\n",
        r#"{"choices":[{"delta":{"content":"é🦀"}}]}"#,
        r#"{"choices":[{"delta":{"content":"<think>a</thi"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":4294967295,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":-1,"function":{"arguments":null}},{"id":"a"},{}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a"},1]},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"delta":null,"error":{"message":"no"}}],"usage":{"prompt_tokens":-1}}"#,
        r#"{"type":"message_start","message":{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","input":{"x":1}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"partial_json":"}","text":"t","signature":"s"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call"}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{}]}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        r#"{"type":"response.completed","response":{"output":[{"type":"message"}]}}"#,
        r#"{"type":"response.completed","response":["no object"]}"#,
        "[DONE]",
        "{",
    ];

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            8 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
            4 => prop::sample::select(PIECES).prop_map(|piece| format!("data: {piece}\n\n").into_bytes()),
            1 => prop::collection::vec(any::<u8>(), 0..8),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn decoding_is_independent_of_chunking(bytes in stream(), size in 1_usize..9) {
            for api in [Api::Chat, Api::Responses, Api::Messages] {
                let whole = decode(api, &[&bytes]);
                prop_assert_eq!(&decode(api, &bytes.chunks(size).collect::<Vec<_>>()), &whole);
            }
        }
    }
}
