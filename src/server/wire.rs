//! Between the words of the protocol and ours: prompts, modes, options, ends and failures of turns.

use std::path::PathBuf;

use super::conversation::Conversation;
use super::dispatch::{Answer, error};
use super::documents::path_of;
use crate::agent::event::{ErrorCode as Failure, Termination};
use crate::config::{CommandLine, McpServer, Mode};
use crate::protocol::{acp, ext};
use crate::rpc::{ErrorCode, ResponseError};
use crate::session::Attachment;
use crate::session::Effort;
use crate::text::display;

pub(super) fn attachment(block: acp::ContentBlock) -> Option<Attachment> {
    match block {
        acp::ContentBlock::Text(text) => Some(Attachment::Text(text.text)),
        acp::ContentBlock::Image(image) => Some(Attachment::Image { mime_type: image.mime_type, data: image.data }),
        acp::ContentBlock::ResourceLink(link) => Some(Attachment::Mention { name: name_of(&link.uri).0 }),
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                let (name, lines) = name_of(&text.uri);
                Some(Attachment::Excerpt { name, lines, text: text.text })
            }
            _ => None,
        },
        _ => None,
    }
}

/// `file:///a/b.rs#L3-L7` is `/a/b.rs`, lines 3 to 7.
fn name_of(uri: &str) -> (String, Option<(u32, u32)>) {
    let (base, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let name = path_of(base).map_or_else(|| base.to_owned(), |path| path.display().to_string());
    let mut numbers = fragment.split(['-', ':']).map(|part| part.trim_start_matches('L').parse::<u32>().ok());
    let first = numbers.next().flatten();
    let last = numbers.next().flatten().or(first);
    (name, first.zip(last))
}

/// An MCP server of the client, under its name.
pub(super) fn mcp_server(server: acp::McpServer) -> Answer<(String, McpServer)> {
    let refused = |name: &str, why: &str| error(ErrorCode::InvalidParams, format!("MCP server `{name}`: {why}"));
    match server {
        acp::McpServer::Stdio(server) => {
            let program = server.command.into_os_string().into_string();
            let words = program.into_iter().chain(server.args).collect::<Vec<_>>();
            let command = CommandLine::try_from(words).map_err(|why| refused(&server.name, why))?;
            let env = server.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
            // The editor has agreed to the folder together with the program.
            Ok((server.name, McpServer::Command { command, env, cwd: Some(PathBuf::new()) }))
        }
        acp::McpServer::Http(server) => {
            let headers = server.headers.into_iter().map(|header| (header.name, header.value)).collect();
            Ok((server.name, McpServer::Url { url: server.url, headers }))
        }
        acp::McpServer::Sse(server) => Err(refused(&server.name, "SSE is out of use; tandem takes `http` and stdio")),
        _ => Err(error(ErrorCode::InvalidParams, "MCP servers are reached by `http` or stdio")),
    }
}

pub(super) fn parse_mode(id: &str) -> Answer<Mode> {
    id.parse().map_err(|problem: String| error(ErrorCode::InvalidParams, problem))
}

pub(super) fn modes(current: Mode) -> acp::SessionModeState {
    let available = Mode::ALL
        .iter()
        .map(|mode| acp::SessionMode::new(mode.name(), mode.title()).description(mode.description().to_owned()));
    acp::SessionModeState::new(current.name(), available.collect())
}

/// The options, always whole.
pub(super) fn config_options(conversation: &Conversation) -> Vec<acp::SessionConfigOption> {
    let all = Mode::ALL.iter().map(|mode| acp::SessionConfigSelectOption::new(mode.name(), mode.title()));
    let mode = acp::SessionConfigOption::select("mode", "Mode", conversation.mode.name(), all.collect::<Vec<_>>())
        .category(acp::SessionConfigOptionCategory::Mode);
    let current = conversation.model.as_ref();
    let model = current.map(|name| {
        let models = conversation.models().into_iter();
        let all: Vec<_> = models.map(|name| acp::SessionConfigSelectOption::new(name.clone(), name)).collect();
        acp::SessionConfigOption::select("model", "Model", name.clone(), all)
            .category(acp::SessionConfigOptionCategory::Model)
    });
    // What was found on this machine is in no configuration, so it cannot be asked to think otherwise.
    let effort = current.filter(|_| conversation.settings.model.is_ok()).map(|_| {
        let all = std::iter::once((AS_CONFIGURED, "As configured"));
        let offered = Effort::offered(current.map_or("", String::as_str)).iter();
        let all = all.chain(offered.map(|effort| (effort.name(), effort.title())));
        let all: Vec<_> = all.map(|(id, name)| acp::SessionConfigSelectOption::new(id, name)).collect();
        let now = conversation.effort.map_or(AS_CONFIGURED, Effort::name);
        acp::SessionConfigOption::select("effort", "Reasoning effort", now, all)
            .category(acp::SessionConfigOptionCategory::ThoughtLevel)
    });
    std::iter::once(mode).chain(model).chain(effort).collect()
}

/// The effort nobody chose.
const AS_CONFIGURED: &str = "default";

pub(super) fn parse_effort(id: &str) -> Answer<Option<Effort>> {
    if id == AS_CONFIGURED {
        return Ok(None);
    }
    Effort::named(id).map(Some).ok_or_else(|| {
        let known = Effort::ALL.map(Effort::name).join(", ");
        error(ErrorCode::InvalidParams, format!("unknown effort `{id}`; expected default, {known}"))
    })
}

pub(super) fn stop_reason(reason: Termination) -> Option<acp::StopReason> {
    Some(match reason {
        Termination::EndTurn => acp::StopReason::EndTurn,
        Termination::MaxTokens => acp::StopReason::MaxTokens,
        Termination::Refusal => acp::StopReason::Refusal,
        Termination::MaxTurnRequests => acp::StopReason::MaxTurnRequests,
        Termination::Cancelled => acp::StopReason::Cancelled,
        Termination::Error => return None,
    })
}

pub(super) fn failure(message: &str, code: Failure, status: Option<u16>, retryable: bool) -> ResponseError {
    let number = match code {
        Failure::NoModel | Failure::Auth => ErrorCode::ServerErrorEnd,
        _ => ErrorCode::InternalError,
    };
    let word = serde_json::to_value(code).ok().and_then(|word| word.as_str().map(str::to_owned));
    let data = ext::Failure { code: word.unwrap_or_default(), status, retryable };
    ResponseError {
        code: number as i32,
        message: display::escape(message).into_owned(),
        data: serde_json::to_value(data).ok(),
    }
}

pub(super) fn broken() -> ResponseError {
    failure("the turn failed without a word (a bug of tandem)", Failure::Internal, None, false)
}
