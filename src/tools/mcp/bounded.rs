//! Limits on the output of a server.
//!
//! An endless line would fill the memory, an endless stream use up the processor: both end the connection, with a
//! reason.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest line, in bytes. A screenshot in base64 fits.
pub(super) const LONGEST_LINE: usize = 4 << 20;
/// The reason for a longer line, to complete `it …`.
pub(super) const TOO_LONG: &str = "sent a message of more than 4 MiB";
/// The most that is taken within [`WINDOW`]: bytes, and lines.
const FLOOD: (usize, usize) = (32 << 20, 20_000);
const WINDOW: Duration = Duration::from_secs(10);

/// Measures a server's output.
pub(super) struct Meter {
    window: Instant,
    /// Bytes and lines of the window.
    taken: (usize, usize),
}

impl Meter {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            window: Instant::now(),
            taken: (0, 0),
        }
    }

    /// Counts bytes; the error completes `it …`.
    pub fn count(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.window.elapsed() > WINDOW {
            *self = Self::new();
        }
        self.taken.0 += bytes.len();
        self.taken.1 += memchr::memchr_iter(b'\n', bytes).count();
        if self.taken.0 > FLOOD.0 || self.taken.1 > FLOOD.1 {
            return Err("sent more than 32 MiB or 20,000 messages within 10 s");
        }
        Ok(())
    }
}

/// Why a stream was cut off, if it was.
pub(super) type Cut = Arc<OnceLock<&'static str>>;

/// A reader that fails when the limits are exceeded.
pub(super) struct Bounded<R> {
    inner: R,
    line: usize,
    meter: Meter,
    cut: Cut,
}

impl<R> Bounded<R> {
    /// `cut` is set to the reason when reading fails.
    pub fn new(inner: R, cut: Cut) -> Self {
        Self {
            inner,
            line: 0,
            meter: Meter::new(),
            cut,
        }
    }

    fn count(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.line = match memchr::memrchr(b'\n', bytes) {
            Some(end) => bytes.len() - end - 1,
            None => self.line + bytes.len(),
        };
        if self.line > LONGEST_LINE {
            return Err(TOO_LONG);
        }
        self.meter.count(bytes)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let counted = self.count(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(counted.map_err(|why| {
            let _already_cut = self.cut.set(why);
            io::Error::other(why)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    async fn check(input: impl AsyncRead + Unpin, expected: Option<&str>) {
        let cut = Cut::default();
        let copied = tokio::io::copy(
            &mut Bounded::new(input, Arc::clone(&cut)),
            &mut tokio::io::sink(),
        )
        .await;
        assert_eq!(copied.is_err(), expected.is_some());
        assert_eq!(cut.get().copied(), expected);
    }

    #[tokio::test]
    async fn lines_and_totals_are_bounded() {
        let lines = |size: usize| [vec![b'x'; size - 1], b"\n".to_vec()].concat();
        check(lines(LONGEST_LINE).as_slice(), None).await;
        check(lines(2 << 20).repeat(3).as_slice(), None).await;
        check(tokio::io::repeat(b'x'), Some(TOO_LONG)).await;
        let flood = Some("sent more than 32 MiB or 20,000 messages within 10 s");
        check(tokio::io::repeat(b'\n').take(20_000), None).await;
        check(tokio::io::repeat(b'\n'), flood).await;
        check(lines(4 << 20).repeat(9).as_slice(), flood).await;
    }
}
