//! `_tandem/origins`: which turns wrote the lines of a document; and showing such a turn.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::dispatch::{Answer, Later, error, invalid, later};
use super::problems::show_message;
use crate::protocol::ext::{Lines, Origin, OriginsParams};
use crate::protocol::lsp::MessageType;
use crate::rpc::ErrorCode;
use crate::session::transcript::markdown_at;
use crate::session::{LineOrigin, Sessions};
use crate::text::{Range, display};
use crate::workspace::native::{file_of, uri_of};

/// The argument of `tandem.openTurn`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfTurn {
    session_id: String,
    turn: u64,
}

impl Server {
    /// Answers `_tandem/origins`.
    pub fn origins(
        &mut self,
        OriginsParams {
            text_document,
            range,
        }: OriginsParams,
    ) -> Later<Vec<Origin>> {
        let origins = self.origins_of(&text_document.uri.0, range);
        later(async move { Ok(origins.await) })
    }

    /// The origins of lines of an open document.
    pub fn origins_of(
        &self,
        uri: &str,
        range: Option<Range>,
    ) -> impl Future<Output = Vec<Origin>> + use<> {
        let document = self.documents.get(uri);
        let (path, sessions) = (file_of(uri), self.sessions());
        async move {
            let (Some(document), Some(path), Some(sessions)) = (document, path, sessions) else {
                return Vec::new();
            };
            let found = sessions.origins(&path, document.text.clone()).await;
            let lines = found.unwrap_or_else(|error| {
                tracing::warn!("origins cannot be read: {error}");
                Vec::new()
            });
            let (first, last) =
                range.map_or((0, u32::MAX), |range| (range.start.line, range.last_line()));
            runs(&lines, first as usize, last as usize)
        }
    }

    /// `tandem.openTurn`: shows a session as a file, at a turn.
    pub fn open_turn(&mut self, argument: Value) -> Answer<()> {
        let usage = |_| invalid("expected {sessionId, turn}");
        let OfTurn { session_id, turn } = serde_json::from_value(argument).map_err(usage)?;
        let state = self.load_settings(&[]).state_dir;
        let none = || error(ErrorCode::RequestFailed, "no sessions are saved");
        let state = state.ok_or_else(none)?;
        let (peer, can) = (self.peer.clone(), self.client.can);
        self.tasks.spawn(async move {
            let shown = async {
                let sessions = Sessions::new(&state);
                let id = sessions.find(&session_id).await?;
                let (text, line) = markdown_at(&sessions.read(&id).await?, turn);
                let text = display::escape(&text).into_owned();
                anyhow::Ok((sessions.write_transcript(&id, text).await?, line))
            };
            let message = match shown.await {
                Ok((path, line)) if can.shows_documents => {
                    let params = json!({
                        "uri": uri_of(&path),
                        "external": false,
                        "takeFocus": true,
                        "selection": Range::of_lines(line..line),
                    });
                    peer.send("window/showDocument", &params);
                    return;
                }
                Ok((path, line)) => format!("{}:{}", path.display(), line + 1),
                Err(error) => error.to_string(),
            };
            show_message(&peer, MessageType::Info, &format!("tandem: {message}"));
        });
        Ok(())
    }
}

/// Runs of neighboring lines with one origin, between two lines.
fn runs(lines: &[Option<LineOrigin>], first: usize, last: usize) -> Vec<Origin> {
    let mut runs: Vec<Origin> = Vec::new();
    let mut before: Option<&LineOrigin> = None;
    for (at, line) in lines.iter().enumerate().skip(first) {
        if at > last {
            break;
        }
        let goes_on = matches!((before, line), (Some(before), Some(line)) if before.is_same(line));
        match runs.last_mut() {
            Some(run) if goes_on => run.lines.count += 1,
            _ => runs.extend(line.as_ref().map(|line| origin(line, at))),
        }
        before = line.as_ref();
    }
    runs
}

fn origin(line: &LineOrigin, at: usize) -> Origin {
    let wrote = &line.wrote;
    Origin {
        lines: Lines {
            start: at + 1,
            count: 1,
        },
        session_id: wrote.session.clone(),
        turn: wrote.turn,
        prompt: display::escape_line(&wrote.prompt).into_owned(),
        model: display::escape_line(&wrote.model).into_owned(),
        by: display::escape_line(&wrote.by).into_owned(),
        edited: line.is_edited,
    }
}
