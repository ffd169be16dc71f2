//! `tandem replay`: decodes recorded streams with the real decoder and prints the events, one per line, like `run
//! --json`. For bug reports: a recording says more than a description.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;

use crate::agent::event::{AgentEvent, Termination};
use crate::domain::ToolKind;
use crate::model::{Api, Batch, Collector, Finish, ModelEvent, Outcome, StreamDecoder};

/// Arguments of `tandem replay`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The API: chat, responses or messages; detected by default
    #[arg(long, value_name = "API", value_parser = api)]
    api: Option<Api>,
    /// Chunk size in bytes, to simulate a network
    #[arg(long, value_name = "BYTES")]
    chunk: Option<std::num::NonZeroUsize>,
    /// Recorded response bodies
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn api(name: &str) -> Result<Api, String> {
    serde_json::from_value(json!(name)).map_err(|_| "one of chat, responses, messages".to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "recordings are named on the command line, not by a model"
)]
pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    for file in &args.files {
        let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
        if args.files.len() > 1 {
            print(out, &json!({ "type": "file", "path": file }))?;
        }
        let api = args.api.unwrap_or_else(|| guess(&bytes));
        let chunk = args
            .chunk
            .map_or(bytes.len().max(1), std::num::NonZeroUsize::get);
        replay(api, file, bytes.chunks(chunk), out)?;
    }
    Ok(out.flush()?)
}

/// Each API names its events differently.
fn guess(bytes: &[u8]) -> Api {
    let has = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
    if has("\"message_start\"") || has("\"content_block_delta\"") {
        Api::Messages
    } else if has("\"response.created\"") || has("\"response.output_text.delta\"") {
        Api::Responses
    } else {
        Api::Chat
    }
}

fn replay<'a>(
    api: Api,
    file: &Path,
    chunks: impl Iterator<Item = &'a [u8]>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let taken = HashSet::new();
    let mut collector = Collector::new(&taken);
    let mut decoder = StreamDecoder::new(api, &file.display().to_string());
    let mut batch = Batch::default();
    let mut printed = 0;
    let mut end = Ok(());
    for chunk in chunks {
        end = decoder.feed(chunk, &mut batch);
        drain(&mut batch, &mut collector, &mut printed, out)?;
        if end.is_err() || decoder.done() {
            break;
        }
    }
    if end.is_ok() {
        end = decoder.end(&mut batch);
        drain(&mut batch, &mut collector, &mut printed, out)?;
    }
    let problem = end.as_ref().err().cloned();
    let collected = collector.finish(end);
    for call in collected.message.calls.iter().skip(printed) {
        print(out, &AgentEvent::ToolCallComplete { call: call.into() })?;
    }
    if let Some(usage) = collected.usage {
        print(out, &AgentEvent::Usage(usage))?;
    }
    if let Some(problem) = problem {
        print(out, &AgentEvent::Error(problem))?;
    }
    let termination_reason = match (&collected.outcome, &collected.finish) {
        (Outcome::Error(_) | Outcome::Truncated, _) => Termination::Error,
        (Outcome::Ok, Some(Finish::Length)) => Termination::MaxTokens,
        (Outcome::Ok, Some(Finish::Refusal | Finish::ContentFilter(_))) => Termination::Refusal,
        (Outcome::Ok, _) => Termination::EndTurn,
    };
    let usage = collected.usage.unwrap_or_default();
    print(
        out,
        &AgentEvent::Done {
            final_text: collected.message.text,
            termination_reason,
            iterations: 1,
            usage,
        },
    )
}

/// Prints the events; `printed` counts the complete calls among them.
fn drain(
    batch: &mut Batch,
    collector: &mut Collector<'_>,
    printed: &mut usize,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    while let Some(event) = batch.pop() {
        let call = collector.push(&event);
        let event = match event {
            ModelEvent::Text(content) | ModelEvent::Refusal(content) => {
                AgentEvent::TextDelta { content }
            }
            ModelEvent::Reasoning(content) => AgentEvent::ReasoningDelta { content },
            ModelEvent::CallStart { slot, id, name } => AgentEvent::ToolCallStart {
                index: slot,
                id,
                name,
                kind: ToolKind::Other,
            },
            ModelEvent::CallDelta { slot, json } => AgentEvent::ToolCallDelta {
                index: slot,
                id: String::new(),
                json_chunk: json,
            },
            ModelEvent::CallEnd { .. } => {
                let Some(call) = call else { continue };
                *printed += 1;
                let call = (&call).into();
                AgentEvent::ToolCallComplete { call }
            }
            ModelEvent::Notice(message) => AgentEvent::Notice { message },
            _ => continue,
        };
        print(out, &event)?;
    }
    Ok(())
}

fn print(out: &mut dyn Write, event: &impl serde::Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    Ok(writeln!(out)?)
}
