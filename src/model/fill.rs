//! Filling a gap in a text, or rewriting the lines around the cursor: one short request, in the API of whoever serves
//! the model. No retries: while somebody types, a late answer is worth nothing.

mod chat;
mod edit;
mod tokens;

use std::time::Duration;

use serde_json::{Value, json};

use super::connection::Connection;
use super::http::Http;
use super::{Endpoint, Failure, Provider, fault};
use crate::domain::CompletionApi;
use crate::text::Fields;

pub use edit::{PastEdit, Rewrite, edit_format, rewritten};

/// No answer is waited for longer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// About this many bytes are a token.
const TOKEN: u64 = 4;

/// A gap in a text.
#[derive(Debug, Clone, Default)]
pub struct Gap {
    /// The file's name.
    pub name: String,
    /// The text before the gap.
    pub before: String,
    /// The text after it.
    pub after: String,
    /// Texts of other files that may help.
    pub others: Vec<Snippet>,
    /// What begins a comment in the file's language.
    pub comment: &'static str,
    /// What ends the answer: a line break if only the rest of a line is missing.
    pub stop: Option<&'static str>,
    /// Whether `before` is a prompt as the model was trained with, and all there is. An answer that is cut off is then
    /// dropped.
    pub is_prompt: bool,
    /// The most tokens of the answer.
    pub max_tokens: u64,
}

/// A part of another file.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// The file's name.
    pub name: String,
    /// The text.
    pub text: String,
}

impl Gap {
    /// The other files as comments, where an API has no field for them.
    fn prompt(&self) -> String {
        let mut prompt = String::new();
        for Snippet { name, text } in &self.others {
            for line in std::iter::once(name.as_str()).chain(text.lines()) {
                prompt.extend([self.comment, " ", line, "\n"]);
            }
        }
        prompt.push_str(&self.before);
        prompt
    }
}

impl Provider {
    /// The text that belongs in the gap. Dropping the future closes the connection.
    ///
    /// # Errors
    /// The endpoint cannot be reached, refuses the request, or does not answer in time.
    pub async fn fill(&self, api: CompletionApi, gap: &Gap) -> Result<String, Failure> {
        let Connection { endpoint, http, .. } = self.connection();
        let limit = endpoint
            .limits
            .first_byte
            .map_or(TIMEOUT, |limit| limit.min(TIMEOUT));
        let answer = async {
            if api == CompletionApi::Chat && !gap.is_prompt {
                chat::fill(self, gap).await
            } else {
                fill(http, endpoint, api, gap).await
            }
        };
        tokio::time::timeout(limit, answer)
            .await
            .unwrap_or_else(|_| {
                let why = "no completion";
                Err(fault::timeout(endpoint, why, limit))
            })
    }
}

/// Sends one document and reads the text of another.
async fn fill(
    http: &Http,
    endpoint: &Endpoint,
    api: CompletionApi,
    gap: &Gap,
) -> Result<String, Failure> {
    let (path, mut body, answer) = match api {
        CompletionApi::Ollama => ("/api/generate", ollama(endpoint, gap), "/response"),
        _ if gap.is_prompt => ("completions", completions(endpoint, gap), "/choices/0/text"),
        CompletionApi::Infill => ("/infill", infill(gap), "/content"),
        CompletionApi::Mistral => (
            "fim/completions",
            completions(endpoint, gap),
            "/choices/0/message/content",
        ),
        CompletionApi::Deepseek => (
            "/beta/completions",
            completions(endpoint, gap),
            "/choices/0/text",
        ),
        CompletionApi::Completions | CompletionApi::Chat => {
            ("completions", with_tokens(endpoint, gap), "/choices/0/text")
        }
    };
    body.extend(endpoint.body.clone());
    let body = Value::Object(body);
    let document = http.document(endpoint, path, Some(&body)).await?;
    let ends = ["/choices/0/finish_reason", "/done_reason"].map(|end| document.pointer(end));
    if gap.is_prompt && ends.contains(&Some(&json!("length"))) {
        return Ok(String::new());
    }
    let text = document.pointer(answer).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| {
        let provider = &endpoint.provider;
        fault::invalid(&format!(
            "{provider} answered without a completion — check `api` in the section [completion] of config.toml"
        ))
    })
}

fn infill(gap: &Gap) -> Fields {
    let others = gap
        .others
        .iter()
        .map(|Snippet { name, text }| json!({ "filename": name, "text": text }));
    object(json!({
        "input_extra": others.collect::<Vec<_>>(),
        "input_prefix": gap.before,
        "input_suffix": gap.after,
        "prompt": "",
        "n_predict": gap.max_tokens,
        "temperature": 0,
        "cache_prompt": true,
        "stop": gap.stop.as_slice(),
        "stream": false,
    }))
}

fn ollama(endpoint: &Endpoint, gap: &Gap) -> Fields {
    object(json!({
        "model": endpoint.model,
        "prompt": gap.prompt(),
        "suffix": gap.after,
        "options": { "num_predict": gap.max_tokens, "temperature": 0, "stop": gap.stop.as_slice() },
        "raw": gap.is_prompt,
        "stream": false,
    }))
}

fn completions(endpoint: &Endpoint, gap: &Gap) -> Fields {
    let mut body = object(json!({
        "model": endpoint.model,
        "prompt": gap.prompt(),
        "suffix": gap.after,
        "max_tokens": gap.max_tokens,
        "temperature": 0,
        "stream": false,
    }));
    if gap.is_prompt {
        body.remove("suffix"); // some servers refuse an empty one
    }
    if gap.stop.is_some() {
        body.insert("stop".to_owned(), json!(gap.stop.as_slice()));
    }
    body
}

/// With the tokens the model was trained with, if its name tells which: many servers ignore or refuse a suffix.
fn with_tokens(endpoint: &Endpoint, gap: &Gap) -> Fields {
    let mut body = completions(endpoint, gap);
    if let Some(prompt) = tokens::prompt(&endpoint.model, &gap.prompt(), &gap.after) {
        body.insert("prompt".to_owned(), prompt.into());
        body.remove("suffix");
    }
    body
}

fn object(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_files_become_comments_if_the_api_has_no_field() {
        let others = vec![Snippet {
            name: "b.py".to_owned(),
            text: "import c\nx = 1\n".to_owned(),
        }];
        let gap = Gap {
            before: "y = ".to_owned(),
            others,
            comment: "#",
            ..Gap::default()
        };
        assert_eq!(gap.prompt(), "# b.py\n# import c\n# x = 1\ny = ");
    }
}
