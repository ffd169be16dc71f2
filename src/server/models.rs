//! `_tandem/providers`, `_tandem/models`, `_tandem/check`: what a setup form needs before there is a session. They work
//! with nothing configured at all. `_tandem/editorModels`: the models of the editor itself.

use futures_util::FutureExt as _;
use serde::de::IgnoredAny;
use serde_json::{Value, from_value};

use super::Server;
use super::dispatch::{Later, later};
use super::wire::failure;
use crate::config::ProviderEntry;
use crate::domain::{EditorAnswer, EditorModels, ErrorCode, Failure, Key};
use crate::protocol::ext;
use crate::rpc::{Peer, PendingResponse, RequestError};
use crate::session::check;
use crate::session::{self, Candidate};

impl Server {
    pub fn providers(&mut self, _: IgnoredAny) -> Later<ext::Providers> {
        let settings = self.load_settings(&[]);
        later(async move {
            let mut providers: Vec<_> = session::providers(&settings)
                .await
                .into_iter()
                .map(provider)
                .collect();
            providers.sort_by_key(|provider| !provider.found_locally);
            Ok(ext::Providers { providers })
        })
    }

    pub fn models(&mut self, request: ext::ModelsParams) -> Later<ext::Models> {
        let settings = self.load_settings(&[]);
        later(async move {
            let candidate = Candidate::new(&request.provider, request.api_key, request.base_url);
            let models = candidate.models(&settings).await;
            let models = models.map_err(|why| failure(&why))?;
            let info = models.into_iter().map(|model| ext::ModelInfo {
                id: model.id,
                context_window: model.context_window,
                price: model.prices.map(|prices| ext::ModelPrice {
                    input: prices.input,
                    output: prices.output,
                }),
            });
            let models = info.collect();
            Ok(ext::Models { models })
        })
    }

    pub fn check(&mut self, request: ext::CheckParams) -> Later<ext::Checked> {
        let settings = self.load_settings(&[]);
        later(async move {
            let candidate = Candidate::new(&request.provider, request.api_key, request.base_url);
            let provider = candidate.chosen(&settings, &request.model).await;
            let provider = provider.map_err(|why| failure(&why))?;
            let mut findings = Vec::new();
            check::check(&provider, |finding| findings.push(finding)).await;
            let ok = findings
                .iter()
                .all(|finding| finding.verdict != ext::Verdict::Bad);
            Ok(ext::Checked { ok, findings })
        })
    }
}

fn provider(entry: ProviderEntry) -> ext::ProviderInfo {
    ext::ProviderInfo {
        needs_key: !matches!(entry.key, Key::None),
        name: entry.name,
        title: entry.title,
        base_url: entry.base_url,
        found_locally: entry.is_running,
    }
}

impl EditorModels for Peer {
    fn list(&self) -> EditorAnswer {
        answer(self.request("_tandem/editorModels", &Value::Null))
    }

    fn next(&self, id: u64, body: Option<Value>) -> EditorAnswer {
        answer(self.request("_tandem/editorModels/next", &ext::NextChunk { id, body }))
    }

    fn end(&self, id: u64) {
        self.notify("_tandem/editorModels/end", &ext::EndAnswer { id });
    }
}

fn answer(pending: PendingResponse) -> EditorAnswer {
    let failure = |error| match error {
        RequestError::Refused(error) => {
            let code = error
                .data
                .and_then(|data| from_value(data["code"].clone()).ok());
            Failure::new(code.unwrap_or(ErrorCode::InvalidRequest), error.message)
        }
        closed @ RequestError::Closed => Failure::new(ErrorCode::Network, closed.to_string()),
    };
    pending.map(move |answer| answer.map_err(failure)).boxed()
}
