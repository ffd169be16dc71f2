//! Notices while a model is silent for long, so that waiting does not look like a hang.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::{Failure, ModelEvent, ModelStream};

/// The first notice comes after this long; the pauses before further ones double.
const FIRST: Duration = Duration::from_secs(15);

/// The same stream with a notice wherever it is silent for long. Pings and comments are silence.
pub(super) fn with_notices(stream: ModelStream, provider: String) -> ModelStream {
    let watched = Watched {
        stream,
        provider,
        since: Instant::now(),
        limit: FIRST,
    };
    stream::unfold(watched, |mut watched| async move {
        Some((watched.next().await?, watched))
    })
    .boxed()
}

struct Watched {
    stream: ModelStream,
    provider: String,
    since: Instant,
    limit: Duration,
}

impl Watched {
    async fn next(&mut self) -> Option<Result<ModelEvent, Failure>> {
        let Ok(item) = timeout_at(self.since + self.limit, self.stream.next()).await else {
            let notice = format!(
                "no data from {} for {} s; still waiting",
                self.provider,
                self.limit.as_secs()
            );
            self.limit *= 2;
            return Some(Ok(ModelEvent::Notice(notice)));
        };
        self.since = Instant::now();
        self.limit = match &item {
            Some(Ok(ModelEvent::Retry { wait, .. })) => FIRST + *wait,
            _ => FIRST,
        };
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rehearsal::Step;
    use crate::model::{ErrorCode, Instructions, ModelRequest, Provider};

    #[tokio::test(start_paused = true)]
    async fn silence_is_reported_until_the_timeout() {
        let provider = Provider::scripted(vec![vec![
            Step::Text {
                text: "Hello".into(),
            },
            Step::Hang { hang: true },
        ]]);
        let preamble = provider.preamble(&Instructions::default());
        let mut events = provider.stream(ModelRequest {
            preamble,
            messages: vec![],
            may_call: true,
        });
        assert_eq!(
            events.next().await,
            Some(Ok(ModelEvent::Text("Hello".into())))
        );
        for seconds in [15, 30, 60] {
            let notice = format!("no data from rehearsal for {seconds} s; still waiting");
            assert_eq!(events.next().await, Some(Ok(ModelEvent::Notice(notice))));
        }
        assert_eq!(
            events.next().await.unwrap().unwrap_err().code,
            ErrorCode::Timeout
        );
        assert_eq!(events.next().await, None);
    }
}
