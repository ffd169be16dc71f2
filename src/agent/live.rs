//! The diff of an edit while its arguments stream.
//!
//! A preview costs a read of the file and its full text on the wire.
//!
//! So there is at most one in progress per call, and the pause after each grows with its cost: however many fragments
//! arrive, previews stay a small part of the work.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::event::AgentEvent;
use super::schedule::Work;
use super::steps::Steps;
use crate::calls::partial;
use crate::tools::ToolContext;

/// The shortest pause between two previews: short enough to see a change grow.
const PAUSE: Duration = Duration::from_millis(120);
/// Longer arguments are not previewed while they stream.
const LONGEST: usize = 256 * 1024;

/// The previews of one call.
#[derive(Debug)]
pub(super) struct StreamedDiff {
    next: Instant,
    running: Option<JoinHandle<Duration>>,
    shown: usize,
}

impl StreamedDiff {
    /// Starts with the first fragment.
    pub fn new() -> Self {
        Self {
            next: Instant::now(),
            running: None,
            shown: 0,
        }
    }

    /// Takes the arguments so far and shows a preview when one is due.
    pub async fn grow(
        &mut self,
        call_id: &str,
        work: &Work,
        json: &str,
        context: &ToolContext,
        steps: &Steps,
    ) {
        if let Some(running) = self.running.take_if(|running| running.is_finished()) {
            let cost = running.await.unwrap_or_default();
            self.next = Instant::now() + PAUSE.max(cost * 10);
        }
        let due = self.running.is_none() && Instant::now() >= self.next && json.len() > self.shown;
        if !due || json.len() > LONGEST {
            return;
        }
        let Some(arguments) = partial::complete(json) else {
            return;
        };
        self.shown = json.len();
        let work = Work {
            arguments,
            ..work.clone()
        };
        self.running = Some(tokio::spawn(show(
            call_id.to_owned(),
            work,
            context.clone(),
            steps.clone(),
        )));
    }

    /// Waits for the preview in progress, so that none arrives after the final one.
    pub async fn settle(mut self) {
        if let Some(running) = self.running.take() {
            let _cost = running.await;
        }
    }
}

async fn show(call_id: String, work: Work, context: ToolContext, steps: Steps) -> Duration {
    let begun = Instant::now();
    let kind = work.tool.kind();
    if let Some(preview) = work.tool.sketch(&context, &work.arguments).await {
        steps
            .event(AgentEvent::preview(&call_id, kind, preview))
            .await;
    }
    begun.elapsed()
}
