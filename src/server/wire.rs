//! Converts between the protocol's types and ours: prompts, modes, options, ends and failures of turns.

use std::path::PathBuf;

use super::dispatch::{Answer, invalid};
use crate::agent::event::Termination;
use crate::config::{CommandLine, McpServer, Mode};
use crate::domain::ErrorCode as FailureCode;
use crate::domain::{Attachment, Effort, Failure, Image};
use crate::protocol::{acp, ext};
use crate::rpc::{ErrorCode, ResponseError};
use crate::session::event::State;
use crate::text::display;
use crate::workspace::native;
use crate::workspace::native::file_of;

pub(super) fn attachment(block: acp::ContentBlock) -> Option<Attachment> {
    match block {
        acp::ContentBlock::Text(text) => Some(Attachment::Text(text.text)),
        acp::ContentBlock::Image(image) => Some(Attachment::Image(Image {
            mime_type: image.mime_type,
            data: image.data,
        })),
        acp::ContentBlock::ResourceLink(link) => Some(mention(&link.uri)),
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(resource) => {
                let (name, lines) = name_of(&resource.uri);
                let text = resource.text;
                let is_document = ["file:", "untitled:"]
                    .iter()
                    .any(|scheme| resource.uri.starts_with(scheme));
                // An excerpt of a terminal has a name, but no place in the editor.
                Some(if is_document {
                    Attachment::Excerpt { name, lines, text }
                } else {
                    let heading = format!("From {name}");
                    Attachment::Shown { heading, text }
                })
            }
            acp::EmbeddedResourceResource::BlobResourceContents(resource) => {
                Some(mention(&resource.uri))
            }
            _ => None,
        },
        _ => None,
    }
}

fn mention(uri: &str) -> Attachment {
    let (name, lines) = name_of(uri);
    Attachment::Mention { name, lines }
}

/// `file:///a/b.rs#L3-L7` is `/a/b.rs`, lines 3 to 7.
fn name_of(uri: &str) -> (String, Option<(u32, u32)>) {
    let (base, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let name = file_of(base).map_or_else(|| base.to_owned(), |path| native::shown(&path));
    let mut numbers = fragment
        .split(['-', ':'])
        .map(|part| part.trim_start_matches('L').parse::<u32>().ok());
    let first = numbers.next().flatten();
    let last = numbers.next().flatten().or(first);
    let lines = first.zip(last);
    let lines = lines.filter(|(first, last)| (1..=*last).contains(first));
    (name, lines)
}

/// The name and configuration of a client's MCP server.
pub(super) fn mcp_server(server: acp::McpServer) -> Answer<(String, McpServer)> {
    let refused = |name: &str, why: &str| invalid(format!("MCP server `{name}`: {why}"));
    match server {
        acp::McpServer::Stdio(server) => {
            let program = server.command.into_os_string().into_string();
            let words = program.into_iter().chain(server.args).collect::<Vec<_>>();
            let command = CommandLine::try_from(words).map_err(|why| refused(&server.name, why))?;
            let env = server
                .env
                .into_iter()
                .map(|variable| (variable.name, variable.value))
                .collect();
            // The editor has approved the folder along with the program.
            Ok((
                server.name,
                McpServer::Command {
                    command,
                    env,
                    cwd: Some(PathBuf::new()),
                },
            ))
        }
        acp::McpServer::Http(server) => {
            let headers = server
                .headers
                .into_iter()
                .map(|header| (header.name, header.value))
                .collect();
            Ok((
                server.name,
                McpServer::Url {
                    url: server.url,
                    headers,
                    client_id: None,
                    client_secret: None,
                    is_supplied: true,
                },
            ))
        }
        acp::McpServer::Acp(server) => Ok((
            server.name,
            McpServer::Editor {
                id: server.server_id.to_string(),
            },
        )),
        acp::McpServer::Sse(server) => Err(refused(
            &server.name,
            "SSE is not supported; use `http` or stdio",
        )),
        _ => Err(invalid(
            "unknown transport of an MCP server; use `http`, `acp` or stdio",
        )),
    }
}

pub(super) fn parse_mode(id: &str) -> Answer<Mode> {
    id.parse::<Mode>().map_err(invalid)
}

pub(super) fn modes(current: Mode) -> acp::SessionModeState {
    let available = Mode::ALL.iter().map(|mode| {
        acp::SessionMode::new(mode.name(), mode.title()).description(mode.description().to_owned())
    });
    acp::SessionModeState::new(current.name(), available.collect())
}

/// All config options: clients expect the full list each time. `toggles` says whether the client has options that are on
/// or off.
pub(super) fn config_options(state: &State, toggles: bool) -> Vec<acp::SessionConfigOption> {
    let all = Mode::ALL
        .iter()
        .map(|mode| acp::SessionConfigSelectOption::new(mode.name(), mode.title()));
    let mode = acp::SessionConfigOption::select(
        "mode",
        "Mode",
        state.mode.name(),
        all.collect::<Vec<_>>(),
    )
    .category(acp::SessionConfigOptionCategory::Mode);
    let current = state.model.as_ref().ok();
    let model = current.map(|name| {
        let models = state.models.iter();
        let all: Vec<_> = models
            .map(|name| acp::SessionConfigSelectOption::new(name.clone(), model_title(name)))
            .collect();
        acp::SessionConfigOption::select("model", "Model", name.clone(), all)
            .category(acp::SessionConfigOptionCategory::Model)
    });
    let named = current.filter(|_| state.has_effort);
    let effort = named
        .and_then(|name| name.split_once('/'))
        .map(|(provider, model)| Effort::taken(provider, model))
        .filter(|taken| !taken.is_empty())
        .map(|taken| {
            let all = std::iter::once((AS_CONFIGURED, "As configured"));
            let words = taken.iter().map(|effort| (effort.name(), effort.title()));
            let all = all.chain(words);
            let all: Vec<_> = all
                .map(|(id, name)| acp::SessionConfigSelectOption::new(id, name))
                .collect();
            let now = state.effort.and_then(|effort| effort.nearest(&taken));
            let now = now.map_or(AS_CONFIGURED, Effort::name);
            acp::SessionConfigOption::select("effort", "Reasoning effort", now, all)
                .category(acp::SessionConfigOptionCategory::ThoughtLevel)
        });
    let copy = toggles.then(|| {
        acp::SessionConfigOption::boolean("copy", "Work on a copy", state.on_copy)
            .description("Each prompt changes a copy of the workspace; apply or discard its changes when it ends")
    });
    [Some(mode), model, effort, copy]
        .into_iter()
        .flatten()
        .collect()
}

/// What people read of `provider/model`: a server that was started with a file names the model by its path.
fn model_title(name: &str) -> String {
    let of_file = || {
        let (provider, file) = name.split_once('/')?;
        let stem = file.strip_suffix(".gguf")?.rsplit(['/', '\\']).next()?;
        Some(format!("{provider}/{stem}"))
    };
    of_file().unwrap_or_else(|| name.to_owned())
}

/// Selects the configured effort.
const AS_CONFIGURED: &str = "default";

pub(super) fn parse_effort(id: &str) -> Answer<Option<Effort>> {
    if id == AS_CONFIGURED {
        return Ok(None);
    }
    Effort::named(id).map(Some).ok_or_else(|| {
        let known = Effort::ALL.map(Effort::name).join(", ");
        invalid(format!("unknown effort `{id}`; expected default, {known}"))
    })
}

pub(super) fn stop_reason(reason: Termination) -> acp::StopReason {
    match reason {
        Termination::MaxTokens => acp::StopReason::MaxTokens,
        Termination::Refusal => acp::StopReason::Refusal,
        Termination::MaxTurnRequests => acp::StopReason::MaxTurnRequests,
        Termination::Cancelled => acp::StopReason::Cancelled,
        // A failed turn is answered with its failure.
        Termination::EndTurn | Termination::Error => acp::StopReason::EndTurn,
    }
}

/// The name of a variant, as it is serialized.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.as_ref()
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The error response for a failed turn.
pub(super) fn failure(failure: &Failure) -> ResponseError {
    let number = match failure.code {
        FailureCode::NoModel | FailureCode::Auth => ErrorCode::ServerErrorEnd,
        _ => ErrorCode::InternalError,
    };
    let data = ext::Failure {
        code: word(&failure.code),
        status: failure.status,
        retryable: failure.retryable,
    };
    ResponseError {
        code: number as i32,
        message: display::escape(&failure.message).into_owned(),
        data: serde_json::to_value(data).ok(),
    }
}
