//! What tandem adds to its two protocols: everything is prefixed `_tandem/`, nothing changes what a standard has.

use gen_lsp_types::{Range, TextDocumentIdentifier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `_tandem/didFocus`: what the person is looking at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DidFocus {
    /// The active file.
    pub text_document: TextDocumentIdentifier,
    /// The selection, or the cursor as an empty range.
    pub selection: Range,
}

/// `_tandem/session/steer`, a request: says something to the running turn. It joins the conversation once the calls of
/// the current answer have ended, and is answered then; an error when no turn took it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Steer {
    /// The session.
    pub session_id: String,
    /// As in `session/prompt`.
    pub prompt: Vec<super::acp::ContentBlock>,
}

/// `_tandem/complete`, a request: what can be mentioned in a prompt. Answered soon, with what is known by then; a newer one
/// overtakes the one before.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Complete {
    /// The session.
    pub session_id: String,
    /// What stands between the `@` and the cursor; with a `#` before it, the name of a definition.
    pub query: String,
}

/// The answer to [`Complete`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completions {
    /// The best first, 50 at most.
    pub items: Vec<Completion>,
}

/// Something that can be mentioned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// Takes the place of the query.
    pub insert: String,
    /// What is shown.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// What else is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What can be mentioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionKind {
    /// A file.
    File,
    /// A folder; its name ends with a slash.
    Folder,
    /// The lines of a definition.
    Symbol,
    /// The problems the editor shows.
    Diagnostics,
    /// What is selected in the editor.
    Selection,
}

/// `_tandem/status`: how the server is, for a status line.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The session it is about; none: the server as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What it is doing.
    pub state: State,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session's mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Something to read, such as why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for a prompt.
    Ready,
    /// A turn runs.
    Running,
    /// A turn waits for the person.
    Waiting,
    /// No model is configured.
    NoModel,
}

/// The `data` of the error a failed turn is answered with.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// The kind, in a word.
    pub code: String,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same prompt may work later.
    pub retryable: bool,
}

/// `_tandem/save`, a request of the server: these open documents are to be saved, because a command is about to read
/// files. Sent to a client that says
/// `"tandem.save": true` in `experimental.tandem._meta`; answered when it is done, with anything.
#[derive(Debug, Clone, Serialize)]
pub struct Save {
    /// The documents.
    pub uris: Vec<String>,
}

/// `_tandem/review`, a request: the changes that turns of a session made, one by one.
///
/// * `list` changes nothing.
/// * `keep` settles changes: they are no longer listed and cannot be undone. Without `turn` and `path` it settles all.
/// * `reject` takes changes back. Lines that somebody changed since are never touched: what cannot be taken back without
///   them is refused (`RequestFailed`) and nothing is changed. Without `turn` and `path` it takes back what was changed
///   last; when that was itself a `reject`, it is brought back. The model is told with the next prompt.
///
/// With `path` alone the last turn that changed that file is meant. `keep` and `reject` are refused while a turn runs.
/// Every action is answered with a [`Reviewed`].
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The session.
    pub session_id: String,
    /// What is to happen.
    pub action: ReviewAction,
    /// One turn, as listed.
    #[serde(default)]
    pub turn: Option<u64>,
    /// One file, as listed.
    #[serde(default)]
    pub path: Option<std::path::PathBuf>,
    /// One hunk of that file, as listed.
    #[serde(default)]
    pub hunk: Option<usize>,
}

/// What is to happen with changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAction {
    /// They are listed.
    List,
    /// They stay.
    Keep,
    /// They go.
    Reject,
}

/// The answer to every [`Review`]: what can be reviewed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reviewed {
    /// Turns of which something is still there, the oldest first.
    pub turns: Vec<ReviewedTurn>,
    /// What was done, to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What is still there of a turn's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewedTurn {
    /// Its number.
    pub turn: u64,
    /// The files.
    pub files: Vec<ReviewedFile>,
}

/// What is still there of a turn's changes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewedFile {
    /// Absolute.
    pub path: std::path::PathBuf,
    /// Whether the turn made the file: rejecting removes it.
    pub created: bool,
    /// The hunks, by line. One that was rewritten since is gone, typing around it moves it.
    pub hunks: Vec<ReviewedHunk>,
}

/// A hunk that can be kept or rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedHunk {
    /// Its name, which stays the same while other hunks of the file are kept, rejected or typed around.
    pub id: usize,
    /// Its lines in the text without it.
    pub old: Lines,
    /// Its lines in the text as it is now.
    pub new: Lines,
    /// The text of its `old` lines.
    pub old_text: String,
    /// A unified diff from the text without it to the text as it is now, with three lines of context.
    pub diff: String,
}

/// Some lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// The first, counted from 1; with a `count` of 0 the one before which nothing is there.
    pub start: usize,
    /// How many.
    pub count: usize,
}

/// `_tandem/diagnostics`, a request of the server: the problems the editor shows. Asked only of clients with
/// `{"tandem.diagnostics": true}` in the `_meta` of their `experimental.tandem`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiagnosticsParams {
    /// In these documents; empty: in all the editor knows.
    pub uris: Vec<String>,
    /// They were just changed: the answer comes when the problems of the new text are there and rest, and within 1.5 s
    /// in any case.
    pub settled: bool,
}

/// The answer to [`DiagnosticsParams`].
#[derive(Debug, Clone, Deserialize)]
pub struct DiagnosticsResult {
    /// Those with problems, at least.
    pub documents: Vec<DocumentDiagnostics>,
}

/// The problems of a document.
#[derive(Debug, Clone, Deserialize)]
pub struct DocumentDiagnostics {
    /// The document.
    pub uri: String,
    /// The problems.
    pub diagnostics: Vec<Problem>,
}

/// What is read of an LSP `Diagnostic`.
#[derive(Debug, Clone, Deserialize)]
pub struct Problem {
    /// Where.
    pub range: Range,
    /// How bad: 1 error, 2 warning, 3 information, 4 hint.
    #[serde(default)]
    pub severity: Option<u8>,
    /// Its name or number.
    #[serde(default)]
    pub code: Option<Value>,
    /// Who says so.
    #[serde(default)]
    pub source: Option<String>,
    /// What is wrong.
    pub message: Value,
}
