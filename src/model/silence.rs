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
    use futures_util::stream;

    #[tokio::test(start_paused = true)]
    async fn silence_is_reported_until_it_ends() {
        let hello = ModelEvent::Text("Hello".into());
        let late = async {
            tokio::time::sleep(Duration::from_secs(90)).await;
            Ok(ModelEvent::Text("Hello".into()))
        };
        let answer = stream::iter([Ok(hello.clone())]).chain(stream::once(late));
        let mut events = with_notices(answer.boxed(), "rehearsal".into());
        assert_eq!(events.next().await, Some(Ok(hello.clone())));
        for seconds in [15, 30, 60] {
            let notice = format!("no data from rehearsal for {seconds} s; still waiting");
            assert_eq!(events.next().await, Some(Ok(ModelEvent::Notice(notice))));
        }
        assert_eq!(events.next().await, Some(Ok(hello)));
        assert_eq!(events.next().await, None);
    }
}
