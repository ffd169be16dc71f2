//! Inline completion with a fill-in-the-middle model.
//!
//! A request names a position in an open document. If a recent suggestion still fits there, it is returned at once;
//! otherwise one request goes to the model after a pause in typing. A newer request replaces the previous one.
//!
//! Invariants: nothing is sent unless a model is configured; files with secrets and known secrets are never sent, and
//! other files only if they are open in the workspace; one request runs at a time, and dropping or replacing it closes
//! its connection; a failure is reported once and followed by a pause.

mod cache;
mod clean;
mod context;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Settings};
use crate::domain::{CompletionApi, Effort, Failure, lock};
use crate::model::{Gap, Provider};
use crate::session::provider_named;
use crate::text::{Position, Redactor};
use crate::workspace::{Documents, Excerpt};
use cache::Cache;

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// How many reported failures are remembered.
const REPORTED: usize = 16;

/// Completes in the documents of one connection.
pub struct Completer {
    shared: Arc<Shared>,
    /// Ends the request that is under way.
    newest: CancellationToken,
}

/// A position to complete at.
#[derive(Debug, Clone)]
pub struct Place {
    /// The document.
    pub uri: String,
    /// The place in it.
    pub at: Position,
    /// Whether the person asked for a suggestion; otherwise the editor does so while they type.
    pub invoked: bool,
    /// The URIs of the workspace folders.
    pub folders: Vec<String>,
}

/// The result of [`Completer::ask`].
pub enum Asked {
    /// Something, or nothing, without a request.
    Known(Option<String>),
    /// What the model says.
    Request(Request),
}

/// A request to the model; nothing is sent before [`Request::answer`].
pub struct Request {
    shared: Arc<Shared>,
    documents: Documents,
    place: Place,
    excerpt: Excerpt,
    superseded: CancellationToken,
}

/// The end of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What to insert, if there is anything.
    pub text: Option<String>,
    /// What went wrong, if it was not reported before.
    pub notice: Option<String>,
}

struct Shared {
    provider: Provider,
    settings: config::Completion,
    secrets: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    /// Nothing is sent before.
    paused: Option<Instant>,
    /// The failures that were reported last, the newest at the end.
    reported: VecDeque<String>,
}

impl Completer {
    /// A completer as configured; `None` if completion is off.
    ///
    /// # Errors
    /// The key of its provider is missing.
    pub fn new(settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(completion) = settings.completion.clone() else {
            return Ok(None);
        };
        // A chat model that thinks first is too late.
        let effort = (completion.api == CompletionApi::Chat).then_some(Effort::None);
        let shared = Shared {
            provider: provider_named(settings, &completion.model, effort)?,
            settings: completion,
            secrets: Redactor::new(settings.secrets()),
            state: Mutex::default(),
        };
        Ok(Some(Self {
            shared: Arc::new(shared),
            newest: CancellationToken::new(),
        }))
    }

    /// Completes at a place, or returns the request to send. Cancels the previous request.
    pub fn ask(&mut self, documents: &Documents, place: Place) -> Asked {
        self.newest.cancel();
        let excerpt = documents.excerpt(&place.uri, place.at, context::BEFORE, context::AFTER);
        let Some(excerpt) = excerpt.filter(context::is_allowed) else {
            return Asked::Known(None);
        };
        if let Some(known) = self.shared.state().cache.get(&place.uri, &excerpt) {
            return Asked::Known(Some(known).filter(|text| !text.is_empty()));
        }
        if !place.invoked && (self.shared.is_paused() || context::is_inside_word(&excerpt)) {
            return Asked::Known(None);
        }
        self.newest = CancellationToken::new();
        let (shared, superseded) = (Arc::clone(&self.shared), self.newest.clone());
        Asked::Request(Request {
            shared,
            documents: documents.clone(),
            place,
            excerpt,
            superseded,
        })
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.newest.cancel();
    }
}

impl Request {
    /// Asks the model. Dropping the future closes the connection, as does a newer request.
    pub async fn answer(self) -> Answer {
        let superseded = self.superseded.clone();
        tokio::select! {
            biased;
            () = superseded.cancelled() => Answer::default(),
            answer = self.ask() => answer,
        }
    }

    async fn ask(self) -> Answer {
        let Self {
            shared,
            documents,
            place,
            excerpt,
            ..
        } = self;
        let config::Completion {
            api,
            debounce,
            max_tokens,
            ..
        } = shared.settings;
        if !place.invoked {
            tokio::time::sleep(debounce).await;
        }
        let gap = context::gap(&documents, &place, &excerpt, max_tokens);
        match shared
            .provider
            .fill(api, &shared.without_secrets(gap))
            .await
        {
            Ok(text) => {
                let text = clean::suggestion(&text, &excerpt);
                shared.state().cache.put(&place.uri, excerpt, text.clone());
                Answer {
                    text: Some(text).filter(|text| !text.is_empty()),
                    notice: None,
                }
            }
            Err(error) => Answer {
                text: None,
                notice: shared.failed(error.message),
            },
        }
    }
}

impl State {
    /// Returns what to report: nothing if it was reported before.
    fn report(&mut self, message: String) -> Option<String> {
        if self.reported.contains(&message) {
            return None;
        }
        if self.reported.len() == REPORTED {
            self.reported.pop_front();
        }
        self.reported.push_back(message.clone());
        Some(message)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn is_paused(&self) -> bool {
        self.state()
            .paused
            .is_some_and(|until| Instant::now() < until)
    }

    /// Notes a failure; returns what to report.
    fn failed(&self, message: String) -> Option<String> {
        tracing::warn!("inline completion: {message}");
        let mut state = self.state();
        state.paused = Some(Instant::now() + PAUSE);
        state.report(message)
    }

    fn without_secrets(&self, mut gap: Gap) -> Gap {
        let texts = gap
            .others
            .iter_mut()
            .map(|other| &mut other.text)
            .chain([&mut gap.before, &mut gap.after]);
        for text in texts {
            *text = self.secrets.redact(text).into_owned();
        }
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_reported_once_and_few_are_remembered() {
        let mut state = State::default();
        for number in 0..REPORTED {
            assert!(state.report(number.to_string()).is_some());
            assert!(state.report("0".to_owned()).is_none());
        }
        assert!(state.report("another".to_owned()).is_some());
        assert_eq!(state.reported.len(), REPORTED);
    }
}
