// Generated from src/protocol by tests/it/wire_types.rs; do not edit.
import type * as lsp from "vscode-languageclient/node";

/** Optional annotations for the client. */
export interface Annotations {
  /** Intended recipients for this content, such as the user or assistant. */
  readonly audience?: readonly Role[] | null;
  /** Timestamp indicating when the underlying resource was last modified. */
  readonly lastModified?: string | null;
  /** Relative importance of this content when clients choose what to surface. */
  readonly priority?: number | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Audio provided to or from an LLM. */
export interface AudioContent {
  /** Optional annotations that help clients decide how to display or route this content. */
  readonly annotations?: Annotations | null;
  /** Base64-encoded media payload. */
  readonly data: string;
  /** MIME type describing the encoded media payload. */
  readonly mimeType: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Binary resource contents. */
export interface BlobResourceContents {
  /** Base64-encoded bytes for a binary resource payload. */
  readonly blob: string;
  /** MIME type describing the encoded media payload. */
  readonly mimeType?: string | null;
  /** URI associated with this resource or media payload. */
  readonly uri: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/check`, a request: the checks of `tandem doctor` for one model. */
export interface CheckParams {
  /** The provider's name. */
  readonly provider: string;
  /** The model's name at the endpoint. */
  readonly model: string;
  /** As in [`ModelsParams`]. */
  readonly apiKey?: string | null;
  /** As in [`ModelsParams`]. */
  readonly baseUrl?: string | null;
}

/** The answer to [`CheckParams`]. */
export interface Checked {
  /** Whether the model can be used. */
  readonly ok: boolean;
  /** What was checked, in order. */
  readonly findings: readonly Finding[];
}

/** Content blocks represent displayable information in the Agent Client Protocol. */
export type ContentBlock = TextContent & { readonly type: "text" } | ImageContent & { readonly type: "image" } | AudioContent & { readonly type: "audio" } | ResourceLink & { readonly type: "resource_link" } | EmbeddedResource & { readonly type: "resource" };

/** `_tandem/didStartTyping`, a notification: the person began to type a prompt. */
export interface DidStartTyping {
  /** The session. */
  readonly sessionId: string;
}

/** The contents of a resource, embedded into a prompt or tool call result. */
export interface EmbeddedResource {
  /** Optional annotations that help clients decide how to display or route this content. */
  readonly annotations?: Annotations | null;
  /** Embedded resource payload, either text or binary data. */
  readonly resource: EmbeddedResourceResource;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Resource content that can be embedded in a message. */
export type EmbeddedResourceResource = TextResourceContents | BlobResourceContents;

/** `_tandem/editorModels/end`, a notification: the server reads no further, and an answer that is not complete is cancelled. */
export interface EndAnswer {
  /** The server's number for the answer. */
  readonly id: number;
}

/** How a command ended: `_meta["tandem/exit"]` of the `tool_call_update` that ends its call. */
export interface Exit {
  /** Its exit code as shells report it (128 plus the signal that ended it), if known. */
  readonly code?: number | null;
  /** How long it ran, in milliseconds. */
  readonly durationMs: number;
}

/** One check, as `tandem doctor --json` prints it. */
export interface Finding {
  /** What was checked. */
  readonly check: string;
  /** The outcome. */
  readonly verdict: Verdict;
  /** What was found. */
  readonly found: string;
  /** What to do about it. */
  readonly advice?: string | null;
}

/** What the checks at the end of a turn found. */
export interface Finish {
  /** Errors and warnings that were not there before the turn. */
  readonly new: number;
  /** How many were fixed by quick fixes. */
  readonly fixed: number;
  /** In how many of the changed files the editor looked for them. */
  readonly files: number;
  /** How many of them changed since the editor's last report. */
  readonly unknown: number;
}

/** An image provided to or from an LLM. */
export interface ImageContent {
  /** Optional annotations that help clients decide how to display or route this content. */
  readonly annotations?: Annotations | null;
  /** Base64-encoded media payload. */
  readonly data: string;
  /** MIME type describing the encoded media payload. */
  readonly mimeType: string;
  /** URI associated with this resource or media payload. */
  readonly uri?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/inline`, a request: rewrites a range. */
export interface InlineParams {
  /** The document. */
  readonly textDocument: lsp.TextDocumentIdentifier;
  /** The range to rewrite; if empty, where to insert. */
  readonly range: lsp.Range;
  /** What the person wants. */
  readonly instruction: string;
  /** The replacement to improve on, if the person asked again. */
  readonly previous?: string | null;
}

/** The answer to [`InlineParams`]. */
export interface InlineResult {
  /** The replacement of the range. */
  readonly text: string;
}

/** `_tandem/inline/update`, a notification: more of a replacement. */
export interface InlineUpdate {
  /** The id of the `_tandem/inline` request. */
  readonly id: unknown;
  /** The replacement so far. */
  readonly text: string;
}

/** A background command. */
export interface Job {
  /** Its number in the session. */
  readonly id: number;
  /** The command line. */
  readonly command: string;
  /** Whether it runs. */
  readonly state: JobState;
  /** Its exit code, if it exited on its own and the code is known. */
  readonly exitCode?: number | null;
  /** When it was started, in milliseconds since 1970 (UTC). */
  readonly startedAt: number;
  /** The TCP ports it listens on. */
  readonly ports: readonly number[];
}

/** A piece of a job's output. */
export interface JobOutput {
  /** The text, without other terminal sequences. */
  readonly text: string;
  /** Where the next output begins. */
  readonly offset: number;
  /** The unfinished line after the text. */
  readonly line: string;
}

/** `_tandem/jobs/output`, a request: a job's output as a terminal shows it. */
export interface JobOutputParams {
  /** The session. */
  readonly sessionId: string;
  /** The job. */
  readonly id: number;
  /** Where it begins: the `offset` of an earlier answer; without it, at the beginning. */
  readonly offset?: number;
  /** Whether the text keeps the sequences that select colors (SGR), for a terminal. */
  readonly colors?: boolean;
}

/** Whether a background command runs. */
export type JobState = "running" | "exited" | "stopped";

/** The answer to [`JobsParams`], and `_tandem/jobs/changed`, a notification: one of them began or ended. */
export interface Jobs {
  /** The session. */
  readonly sessionId: string;
  /** The oldest first. */
  readonly jobs: readonly Job[];
}

/** `_tandem/jobs`, a request: the background commands of a session. */
export interface JobsParams {
  /** The session. */
  readonly sessionId: string;
}

/** `_tandem/inline/keep`, a request: the person kept a replacement, which the client has applied. */
export interface KeepInline {
  /** The session. */
  readonly sessionId: string;
  /** The document. */
  readonly textDocument: lsp.TextDocumentIdentifier;
  /** What the person wanted. */
  readonly instruction: string;
  /** The whole text of the document before. */
  readonly before: string;
  /** The whole text afterwards. */
  readonly after: string;
}

/** The answer to [`KeepInline`]. */
export interface KeptInline {
  /** The number of its turn. */
  readonly turn: number;
}

/** Operations of a language server. */
export type LanguageOp = "definition" | "declaration" | "implementation" | "type_definition" | "references" | "hover" | "document_symbols" | "workspace_symbols" | "incoming_calls" | "outgoing_calls" | "rename" | "quick_fixes" | "format";

/** `_tandem/language`, a request from the server to the editor's language servers. */
export interface LanguageParams {
  /** The operation. */
  readonly op: LanguageOp;
  /** The document; absent for `workspace_symbols`. */
  readonly uri?: string | null;
  /** The position in it. */
  readonly position?: lsp.Position;
  /** The name to look for (`workspace_symbols`). */
  readonly query?: string | null;
  /** Only a fix that the language server marks as preferred for the problem at the position (`quick_fixes`); null if there is none. */
  readonly preferred?: boolean;
  /** The new name (`rename`). */
  readonly newName?: string | null;
}

/** Lines that were left alone. */
export interface Left {
  /** Absolute path. */
  readonly path: string;
  /** The lines, if only part of the file was left. */
  readonly lines?: Lines | null;
  /** The reason, for people. */
  readonly reason: string;
}

/** A range of lines. */
export interface Lines {
  /** The first line, counted from 1; if `count` is 0, the range is before that line. */
  readonly start: number;
  /** The number of lines. */
  readonly count: number;
}

/** A model to choose from. */
export interface ModelInfo {
  /** Its name at the endpoint. */
  readonly id: string;
  /** The context window in tokens, if known. */
  readonly contextWindow?: number | null;
  /** The price, if known. */
  readonly price?: ModelPrice | null;
}

/** US dollars per million tokens. */
export interface ModelPrice {
  /** For tokens the model reads. */
  readonly input: number;
  /** For tokens the model writes. */
  readonly output: number;
}

/** The answer to [`ModelsParams`]. */
export interface Models {
  /** The models, the best for a coding agent first where tandem knows it, the others in the endpoint's order. */
  readonly models: readonly ModelInfo[];
}

/** `_tandem/models`, a request: the models an endpoint offers. */
export interface ModelsParams {
  /** The provider's name. */
  readonly provider: string;
  /** The key, unless it is configured. */
  readonly apiKey?: string | null;
  /** The base URL, unless it is configured. */
  readonly baseUrl?: string | null;
}

/** `_tandem/editorModels/next`, a request from the server: the next part of an answer of one of the editor's own models. */
export interface NextChunk {
  /** The server's number for the answer. */
  readonly id: number;
  /** In the first one, the request to the model, in the form of `OpenAI`'s chat completions. */
  readonly body?: unknown;
}

/** `_tandem/jobs/open`, a request: opens a port of a job on `127.0.0.1` of this machine, until the job ends. */
export interface OpenPort {
  /** The session. */
  readonly sessionId: string;
  /** The job. */
  readonly id: number;
  /** The port, one of the job's. */
  readonly port: number;
}

/** The answer to [`OpenPort`]. */
export interface OpenedPort {
  /** The address for a browser on this machine; absent if the person did not want it. */
  readonly url?: string | null;
}

/** Neighboring lines that one tool call wrote. */
export interface Origin {
  /** The lines. */
  readonly lines: Lines;
  /** The session, which may not be open. */
  readonly sessionId: string;
  /** The turn. */
  readonly turn: number;
  /** The beginning of its prompt. */
  readonly prompt: string;
  /** `provider/model`. */
  readonly model: string;
  /** The title of the tool call or command. */
  readonly by: string;
  /** Whether somebody has edited the lines since. */
  readonly edited: boolean;
}

/** `_tandem/origins`, a request: which turns wrote the uncommitted lines of an open document. */
export interface OriginsParams {
  /** The document. */
  readonly textDocument: lsp.TextDocumentIdentifier;
  /** Only these lines of it. */
  readonly range?: lsp.Range;
}

/** The states of a prompt. */
export type PromptState = "queued" | "running" | "joined" | "returned" | "ended";

/** A provider to choose from. */
export interface ProviderInfo {
  /** Its name in `config.toml`. */
  readonly name: string;
  /** Its name for people. */
  readonly title: string;
  /** Whether it needs an API key. */
  readonly needsKey: boolean;
  /** The base URL of its API, if known. */
  readonly baseUrl?: string | null;
  /** Whether it is a server running on this machine now. */
  readonly foundLocally: boolean;
}

/** The answer to `_tandem/providers`, a request without params. */
export interface Providers {
  /** The providers tandem knows, those found on this machine first. */
  readonly providers: readonly ProviderInfo[];
}

/** A resource that the server is capable of reading, included in a prompt or tool call result. */
export interface ResourceLink {
  /** Optional annotations that help clients decide how to display or route this content. */
  readonly annotations?: Annotations | null;
  /** Optional human-readable details shown with this protocol object. */
  readonly description?: string | null;
  /** MIME type describing the encoded media payload. */
  readonly mimeType?: string | null;
  /** Human-readable name shown for this protocol object. */
  readonly name: string;
  /** Optional size of the linked resource in bytes, if known. */
  readonly size?: number | null;
  /** Optional display title for end-user UI. */
  readonly title?: string | null;
  /** URI associated with this resource or media payload. */
  readonly uri: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/review`, a request: reviews the changes made by turns of a session. */
export interface Review {
  /** The session. */
  readonly sessionId: string;
  /** The action. */
  readonly action: ReviewAction;
  /** One turn, as listed. */
  readonly turn?: number | null;
  /** One file, as listed. */
  readonly path?: string | null;
  /** One hunk of that file, as listed. */
  readonly hunk?: number | null;
}

/** An action on changes. */
export type ReviewAction = "list" | "keep" | "reject" | "undo" | "redo" | "restore";

/** The answer to every [`Review`]: what can be reviewed now. */
export interface Reviewed {
  /** Turns with changes left, oldest first. */
  readonly turns: readonly ReviewedTurn[];
  /** What was done, for people. */
  readonly message?: string | null;
  /** What `undo`, `redo` or `restore` could not change. */
  readonly left: readonly Left[];
  /** The first turn that `restore` cut from the conversation: `undo` puts it back until the next prompt. */
  readonly cutFrom?: number | null;
  /** Whether `redo` reverts what was done. */
  readonly canRedo: boolean;
}

/** What is left of a turn's changes to a file. */
export interface ReviewedFile {
  /** Absolute path. */
  readonly path: string;
  /** Whether the turn created the file: rejecting removes it. */
  readonly created: boolean;
  /** The hunks, by line. */
  readonly hunks: readonly ReviewedHunk[];
}

/** A hunk that can be kept or rejected. */
export interface ReviewedHunk {
  /** Its id, which stays the same while other hunks of the file are kept, rejected or typed around. */
  readonly id: number;
  /** Its lines in the text without the hunk. */
  readonly old: Lines;
  /** Its lines in the current text. */
  readonly new: Lines;
  /** The text of its `old` lines. */
  readonly oldText: string;
  /** A unified diff from the text without the hunk to the current text, with three lines of context. */
  readonly diff: string;
}

/** What is left of a turn's changes. */
export interface ReviewedTurn {
  /** Its number. */
  readonly turn: number;
  /** The files. */
  readonly files: readonly ReviewedFile[];
}

/** The sender or recipient of messages and data in a conversation. */
export type Role = "assistant" | "user";

/** `_tandem/jobs/background`, a request: a running command becomes a job, and its call ends with the output so far. */
export interface RunInBackground {
  /** The session. */
  readonly sessionId: string;
  /** The call that runs the command. */
  readonly toolCallId: string;
}

/** What a session is doing. */
export type State = "ready" | "running" | "waiting" | "no_model";

/** `_tandem/status`, a notification: the state of a session, for a status line. */
export interface Status {
  /** The session. */
  readonly sessionId: string;
  /** What it is doing. */
  readonly state: State;
  /** How many prompts are queued. */
  readonly queued: number;
  /** Its mode. */
  readonly mode: string;
  /** `provider/model`. */
  readonly model?: string | null;
  /** The reasoning effort, unless it is the configured one. */
  readonly effort?: string | null;
  /** Its usage, once the first answer has arrived. */
  readonly usage?: Usage | null;
  /** A notice for people. */
  readonly message?: string | null;
  /** Whether the notice, such as "retrying after 2 s", applies only until the turn continues. */
  readonly passing: boolean;
}

/** `_tandem/jobs/stop`, a request: stops a job and everything it started. */
export interface StopJob {
  /** The session. */
  readonly sessionId: string;
  /** The job. */
  readonly id: number;
}

/** A part of a text and its look. */
export interface Styled {
  /** Where it begins, in UTF-16 code units. */
  readonly start: number;
  /** Where it ends. */
  readonly end: number;
  /** One of the terminal's 16 colors, by number, or `#rrggbb`. */
  readonly color?: string | null;
  /** The color behind it. */
  readonly background?: string | null;
  /** Any of `bold`, `dim`, `italic` and `underline`. */
  readonly font: readonly string[];
}

/** Text provided to or from an LLM. */
export interface TextContent {
  /** Optional annotations that help clients decide how to display or route this content. */
  readonly annotations?: Annotations | null;
  /** Text payload carried by this content block. */
  readonly text: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Text-based resource contents. */
export interface TextResourceContents {
  /** MIME type describing the encoded media payload. */
  readonly mimeType?: string | null;
  /** Text payload carried by this content block. */
  readonly text: string;
  /** URI associated with this resource or media payload. */
  readonly uri: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/turn`, a notification: the state of a prompt. */
export interface Turn {
  /** The session. */
  readonly sessionId: string;
  /** The prompt. */
  readonly promptId: string;
  /** Its state. */
  readonly state: PromptState;
  /** The number of its turn, as in `_tandem/review` (`running`; missing if the prompt is a command). */
  readonly turn?: number | null;
  /** Its position in the queue, counted from 1 (`queued`). */
  readonly position?: number | null;
  /** ACP's stop reason or the failure's code (`ended`), or why the model never saw it (`returned`). */
  readonly reason?: string | null;
  /** The failure, for people (`ended`). */
  readonly message?: string | null;
  /** The prompt itself (`returned`). */
  readonly prompt?: readonly ContentBlock[] | null;
}

/** The usage of a session. */
export interface Usage {
  /** Tokens in the context window. */
  readonly used: number;
  /** The size of the window, if known. */
  readonly size?: number | null;
  /** US dollars for the whole session, if prices are known. */
  readonly cost?: number | null;
}

/** The outcome of a check. */
export type Verdict = "good" | "warning" | "bad";

/** `_tandem/turn/withdraw`, a request: withdraws a prompt that is queued or has not joined yet. */
export interface Withdraw {
  /** The session. */
  readonly sessionId: string;
  /** The prompt. */
  readonly promptId: string;
}
