//! Inline completion with a fill-in-the-middle model.
//!
//! A request names a position in an open document. If a recent suggestion still fits there, it is returned at once;
//! otherwise one request goes to the model after a pause in typing. A newer request replaces the previous one. With a
//! model of the next edit, the request is to rewrite the lines around the position.
//!
//! Invariants: nothing is sent unless a model is configured; files with secrets and known secrets are never sent, and
//! other files only if they are open in the workspace; one request runs at a time, and dropping or replacing it closes
//! its connection; a failure is reported once and followed by a pause.

mod cache;
mod clean;
mod context;
mod next_edit;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Settings};
use crate::domain::{CompletionApi, EditFormat, Effort, Failure, lock};
use crate::model::{Gap, Provider, edit_format};
use crate::session::provider_named;
use crate::text::{Position, Range, Redactor};
use crate::workspace::{ContentChange, Documents, Excerpt};
use cache::Cache;
use next_edit::{History, Window};

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
    Known(Option<Suggestion>),
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

/// A text for a range: an insertion at the place, or an edit near it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// What is replaced.
    pub range: Range,
    /// The new text.
    pub text: String,
}

/// The end of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What to suggest, if there is anything.
    pub suggestion: Option<Suggestion>,
    /// What went wrong, if it was not reported before.
    pub notice: Option<String>,
}

struct Shared {
    provider: Provider,
    settings: config::Completion,
    /// How the model is asked for the next edit, if it is.
    edits: Option<EditFormat>,
    secrets: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    history: History,
    /// The last edit that was suggested, and for which lines.
    edit: Option<(Window, Suggestion)>,
    /// Nothing is sent before.
    paused: Option<Instant>,
    /// The failures that were reported last, the newest at the end.
    reported: VecDeque<String>,
}

impl Completer {
    /// A completer as configured; `None` if completion is off.
    ///
    /// # Errors
    /// The key of its provider is missing, or its model is not known for edits.
    pub fn new(settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(completion) = settings.completion.clone() else {
            return Ok(None);
        };
        // A chat model that thinks first would be too late.
        let effort = (completion.api == CompletionApi::Chat).then_some(Effort::None);
        let named = || edit_format(&completion.model);
        let edits = completion
            .next_edit
            .then(|| completion.edit_format.map_or_else(named, Ok));
        let shared = Shared {
            provider: provider_named(settings, &completion.model, effort)?,
            edits: edits.transpose()?,
            settings: completion,
            secrets: settings.redactor(),
            state: Mutex::default(),
        };
        Ok(Some(Self {
            shared: Arc::new(shared),
            newest: CancellationToken::new(),
        }))
    }

    /// Notes that a document is about to change.
    pub fn note_change(&self, documents: &Documents, uri: &str, changes: &[ContentChange]) {
        if self.shared.edits.is_some() {
            self.shared.state().history.note(documents, uri, changes);
        }
    }

    /// Completes at a place, or returns the request to send. Cancels the previous request.
    pub fn ask(&mut self, documents: &Documents, place: Place) -> Asked {
        self.newest.cancel();
        let excerpt = documents.excerpt(&place.uri, place.at, context::BEFORE, context::AFTER);
        let Some(excerpt) = excerpt.filter(|excerpt| context::is_allowed(excerpt, &place.uri))
        else {
            return Asked::Known(None);
        };
        if let Some(known) = self.shared.known(documents, &place, &excerpt) {
            return known;
        }
        let is_split = self.shared.edits.is_none() && context::is_inside_word(&excerpt);
        if !place.invoked && (self.shared.is_paused() || is_split) {
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
        if !self.place.invoked {
            tokio::time::sleep(self.shared.settings.debounce).await;
        }
        let suggestion = match self.shared.edits {
            None => self.fill().await,
            Some(format) => self.edit(format).await,
        };
        match suggestion {
            Ok(suggestion) => Answer {
                suggestion,
                notice: None,
            },
            Err(error) => Answer {
                suggestion: None,
                notice: self.shared.failed(error.message),
            },
        }
    }

    async fn fill(&self) -> Result<Option<Suggestion>, Failure> {
        let config::Completion {
            api, max_tokens, ..
        } = self.shared.settings;
        let gap = context::gap(&self.documents, &self.place, &self.excerpt, max_tokens);
        let gap = self.shared.without_secrets(gap);
        let text = self.shared.provider.fill(api, &gap).await?;
        let text = clean::suggestion(&text, &self.excerpt);
        self.remember(&text);
        Ok(self.place.insertion(text))
    }

    /// Asks for the next edit, if there was one before, and the lines around the place hold no secret.
    async fn edit(&self, format: EditFormat) -> Result<Option<Suggestion>, Failure> {
        let Self {
            shared,
            documents,
            place,
            ..
        } = self;
        let config::Completion {
            api, max_tokens, ..
        } = shared.settings;
        let window = Window::new(&shared.state().history, documents, place);
        let window = window.filter(|Window { rewrite, .. }| {
            let is_secret = shared.secrets.redact(&rewrite.window) != rewrite.window;
            !is_secret && (place.invoked || !rewrite.edits.is_empty())
        });
        let Some(window) = window else {
            return Ok(None);
        };
        let gap = shared.without_secrets(window.rewrite.prompt(format, max_tokens));
        let answer = shared.provider.fill(api, &gap).await?;
        let suggestion = window.suggestion(&answer, place, documents.encoding());
        let suggestion = suggestion.filter(|_| window.is_current(documents, place));
        match &suggestion {
            Some(edit) if edit.range != place.range() => {
                shared.state().edit = Some((window, edit.clone()));
            }
            insertion => self.remember(insertion.as_ref().map_or("", |insertion| &insertion.text)),
        }
        Ok(suggestion)
    }

    fn remember(&self, text: &str) {
        let Self { place, excerpt, .. } = self;
        let mut state = self.shared.state();
        state
            .cache
            .put(&place.uri, excerpt.clone(), text.to_owned());
    }
}

impl Place {
    fn range(&self) -> Range {
        Range {
            start: self.at,
            end: self.at,
        }
    }

    /// A text for the place, if there is any.
    fn insertion(&self, text: String) -> Option<Suggestion> {
        let range = self.range();
        (!text.is_empty()).then_some(Suggestion { range, text })
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

    /// What earlier answers say about a place.
    fn known(&self, documents: &Documents, place: &Place, excerpt: &Excerpt) -> Option<Asked> {
        let state = self.state();
        if let Some(text) = state.cache.get(&place.uri, excerpt) {
            return Some(Asked::Known(place.insertion(text)));
        }
        let (window, edit) = state.edit.as_ref()?;
        let is_current = window.is_current(documents, place);
        is_current.then(|| Asked::Known(Some(edit.clone())))
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
