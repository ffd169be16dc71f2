//! A model that says nothing is not a program that hangs: long silence is told.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::{ModelError, ModelEvent, ModelStream};

/// After so much silence comes the first word; each further one after twice the time.
const FIRST: Duration = Duration::from_secs(15);

/// The same stream with a notice wherever it is silent for long. Pings and comments are silence.
pub(super) fn told(stream: ModelStream, provider: String) -> ModelStream {
    let told = Told { stream, provider, since: Instant::now(), patience: FIRST };
    stream::unfold(told, |mut told| async move { Some((told.next().await?, told)) }).boxed()
}

struct Told {
    stream: ModelStream,
    provider: String,
    since: Instant,
    patience: Duration,
}

impl Told {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let Ok(item) = timeout_at(self.since + self.patience, self.stream.next()).await else {
            let notice = format!("{} has been silent for {} s; still waiting", self.provider, self.patience.as_secs());
            self.patience *= 2;
            return Some(Ok(ModelEvent::Notice(notice)));
        };
        self.since = Instant::now();
        self.patience = match &item {
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
    async fn silence_is_told_until_it_ends_with_the_limit() {
        let provider = Provider::scripted(vec![vec![Step::Text { text: "a".into() }, Step::Hang { hang: true }]]);
        let preamble = provider.preamble(&Instructions::default());
        let mut events = provider.stream(ModelRequest { preamble, messages: vec![], may_call: true });
        assert_eq!(events.next().await, Some(Ok(ModelEvent::Text("a".into()))));
        for seconds in [15, 30, 60] {
            let notice = format!("rehearsal has been silent for {seconds} s; still waiting");
            assert_eq!(events.next().await, Some(Ok(ModelEvent::Notice(notice))));
        }
        assert_eq!(events.next().await.unwrap().unwrap_err().code, ErrorCode::Timeout);
        assert_eq!(events.next().await, None);
    }
}
