//! Limits on the output of a server.
//!
//! An endless line would fill the memory, an endless stream use up the processor: both end the connection, with a
//! reason.

use std::time::{Duration, Instant};

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

    /// Counts bytes and lines; the error completes `it …`.
    pub fn count(&mut self, bytes: usize, lines: usize) -> Result<(), &'static str> {
        if self.window.elapsed() > WINDOW {
            *self = Self::new();
        }
        self.taken.0 += bytes;
        self.taken.1 += lines;
        if self.taken.0 > FLOOD.0 || self.taken.1 > FLOOD.1 {
            return Err("sent more than 32 MiB or 20,000 messages within 10 s");
        }
        Ok(())
    }
}
