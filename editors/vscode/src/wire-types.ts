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

/** Information about a command. */
export interface AvailableCommand {
  /** Command name (e.g., `create_plan`, `research_codebase`). */
  readonly name: string;
  /** Human-readable description of what the command does. */
  readonly description: string;
  /** Input for the command if required */
  readonly input?: AvailableCommandInput | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** The input specification for a command. */
export type AvailableCommandInput = UnstructuredCommandInput;

/** Available commands are ready or have changed */
export interface AvailableCommandsUpdate {
  /** Commands the agent can execute */
  readonly availableCommands: readonly AvailableCommand[];
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

/** Notification to cancel ongoing operations for a session. */
export interface CancelNotification {
  /** The ID of the session to cancel operations for. */
  readonly sessionId: SessionId;
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

/** Request parameters for closing an active session. */
export interface CloseSessionRequest {
  /** The ID of the session to close. */
  readonly sessionId: SessionId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Unique identifier for a context compaction within a session. */
export type CompactionId = string;

/** Lifecycle state of a context compaction. */
export type CompactionStatus = "in_progress" | "completed" | "failed" | "cancelled" | string;

/** A content block appended to a compaction's summary. */
export interface CompactionSummaryChunk {
  /** ID of the compaction whose summary receives this content. */
  readonly compactionId: CompactionId;
  /** One content block to append. */
  readonly content: ContentBlock;
  /** Metadata scoped to this chunk. */
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** A context compaction upsert. */
export interface CompactionUpdate {
  /** The Agent-owned ID of this compaction, unique within the session. */
  readonly compactionId: CompactionId;
  /** Current lifecycle status. */
  readonly status: CompactionStatus;
  /** Complete replacement user-displayable summary content for the compaction. */
  readonly summary?: readonly ContentBlock[] | null;
  /** Human-readable error details for the compaction. */
  readonly error?: string | null;
  /** Extensible metadata patch for this compaction. */
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/complete`, a request: what a prompt can mention. */
export interface Complete {
  /** The session. */
  readonly sessionId: string;
  /** The text between the `@` and the cursor; after a `#`, the name of a definition. */
  readonly query: string;
}

/** Something a prompt can mention. */
export interface Completion {
  /** Replaces the query. */
  readonly insert: string;
  /** The text to show. */
  readonly label: string;
  /** What it is. */
  readonly kind: CompletionKind;
  /** Additional text to show. */
  readonly detail?: string | null;
}

/** Kinds of things a prompt can mention. */
export type CompletionKind = "file" | "folder" | "symbol" | "diagnostics" | "selection";

/** The answer to [`Complete`]. */
export interface Completions {
  /** Best match first, 50 at most. */
  readonly items: readonly Completion[];
}

/** Session configuration options have been updated. */
export interface ConfigOptionUpdate {
  /** The full set of configuration options and their current values. */
  readonly configOptions: readonly SessionConfigOption[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Standard content block (text, images, resources). */
export interface Content {
  /** The actual content block. */
  readonly content: ContentBlock;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Content blocks represent displayable information in the Agent Client Protocol. */
export type ContentBlock = TextContent & { readonly type: "text" } | ImageContent & { readonly type: "image" } | AudioContent & { readonly type: "audio" } | ResourceLink & { readonly type: "resource_link" } | EmbeddedResource & { readonly type: "resource" };

/** A streamed item of content */
export interface ContentChunk {
  /** A single item of content */
  readonly content: ContentBlock;
  /** A unique identifier for the message this chunk belongs to. */
  readonly messageId?: MessageId | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Cost information for a session. */
export interface Cost {
  /** Total cumulative cost for session. */
  readonly amount: number;
  /** Unit of `amount`: an ISO 4217 currency code (e.g., "USD", "EUR") for money, or another unit such as "credits". */
  readonly currency: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** The current mode of the session has changed */
export interface CurrentModeUpdate {
  /** The ID of the current mode */
  readonly currentModeId: SessionModeId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/diagnostics`, a request from the server: the diagnostics the editor shows. */
export interface DiagnosticsParams {
  /** Of these documents; if empty, of all documents the editor knows. */
  readonly uris: readonly string[];
  /** The documents have just changed: answer when the diagnostics of the new text have settled, and within 1.5 s in any case. */
  readonly settled: boolean;
}

/** The answer to [`DiagnosticsParams`]. */
export interface DiagnosticsResult {
  /** At least those with diagnostics. */
  readonly documents: readonly DocumentDiagnostics[];
}

/** `_tandem/didFocus`, a notification: what the person is looking at. */
export interface DidFocus {
  /** The active file. */
  readonly textDocument: lsp.TextDocumentIdentifier;
  /** The selection, or the cursor as an empty range. */
  readonly selection: lsp.Range;
}

/** A diff representing file modifications. */
export interface Diff {
  /** The absolute file path being modified. */
  readonly path: string;
  /** The original content (omitted or `null` for new files). */
  readonly oldText?: string | null;
  /** The new content after modification. */
  readonly newText: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** One document's diagnostics. */
export interface DocumentDiagnostics {
  /** The document. */
  readonly uri: string;
  /** Its diagnostics. */
  readonly diagnostics: readonly lsp.Diagnostic[];
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

/** An environment variable to set when launching an MCP server. */
export interface EnvVariable {
  /** The name of the environment variable. */
  readonly name: string;
  /** The value to set for the environment variable. */
  readonly value: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** How a command ended: `_meta["tandem/exit"]` of the `tool_call_update` that ends its call. */
export interface Exit {
  /** Its exit code as shells report it (128 plus the signal that ended it), if known. */
  readonly code?: number | null;
  /** How long it ran, in milliseconds. */
  readonly durationMs: number;
}

/** The `data` of the error response to a prompt whose turn failed. */
export interface Failure {
  /** The kind of failure. */
  readonly code: string;
  /** The HTTP status, if there was one. */
  readonly status?: number | null;
  /** Whether the same prompt may work later. */
  readonly retryable: boolean;
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

/** An HTTP header to set when making requests to the MCP server. */
export interface HttpHeader {
  /** The name of the HTTP header. */
  readonly name: string;
  /** The value to set for the HTTP header. */
  readonly value: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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
  /** Its exit code, if it ended by itself and the code is known. */
  readonly exitCode?: number | null;
  /** When it was started, in milliseconds since 1970 (UTC). */
  readonly startedAt: number;
  /** The TCP ports it listens on. */
  readonly ports: readonly number[];
}

/** The answer to [`JobOutputParams`]. */
export interface JobOutput {
  /** The text, without terminal sequences. */
  readonly text: string;
  /** Where the next piece begins, in bytes. */
  readonly offset: number;
  /** Whether output before this piece was left out. */
  readonly truncated: boolean;
}

/** `_tandem/jobs/output`, a request: a piece of a job's output, 64,000 bytes at most. */
export interface JobOutputParams {
  /** The session. */
  readonly sessionId: string;
  /** The job. */
  readonly id: number;
  /** Where the piece begins, in bytes; without it, the end of the output. */
  readonly offset?: number | null;
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
  /** The first line, counted from 1; with a `count` of 0, the line before which the range is. */
  readonly start: number;
  /** The number of lines. */
  readonly count: number;
}

/** Request parameters for listing existing sessions. */
export interface ListSessionsRequest {
  /** Filter sessions by working directory. */
  readonly cwd?: string | null;
  /** Opaque cursor token from a previous response's nextCursor field for cursor-based pagination */
  readonly cursor?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response from listing sessions. */
export interface ListSessionsResponse {
  /** Array of session information objects */
  readonly sessions: readonly SessionInfo[];
  /** Opaque cursor token. */
  readonly nextCursor?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Request parameters for loading an existing session. */
export interface LoadSessionRequest {
  /** List of MCP servers to connect to for this session. */
  readonly mcpServers: readonly McpServer[];
  /** The working directory for this session. */
  readonly cwd: string;
  /** Additional workspace roots to activate for this session. */
  readonly additionalDirectories?: readonly string[];
  /** The ID of the session to load. */
  readonly sessionId: SessionId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response from loading an existing session. */
export interface LoadSessionResponse {
  /** Initial mode state if supported by the Agent */
  readonly modes?: SessionModeState | null;
  /** Initial session configuration options if supported by the Agent. */
  readonly configOptions?: readonly SessionConfigOption[] | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Configuration for connecting to an MCP (Model Context Protocol) server. */
export type McpServer = McpServerHttp & { readonly type: "http" } | McpServerSse & { readonly type: "sse" } | McpServerStdio;

/** HTTP transport configuration for MCP. */
export interface McpServerHttp {
  /** Human-readable name identifying this MCP server. */
  readonly name: string;
  /** URL to the MCP server. */
  readonly url: string;
  /** HTTP headers to set when making requests to the MCP server. */
  readonly headers: readonly HttpHeader[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** SSE transport configuration for MCP. */
export interface McpServerSse {
  /** Human-readable name identifying this MCP server. */
  readonly name: string;
  /** URL to the MCP server. */
  readonly url: string;
  /** HTTP headers to set when making requests to the MCP server. */
  readonly headers: readonly HttpHeader[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Stdio transport configuration for MCP. */
export interface McpServerStdio {
  /** Human-readable name identifying this MCP server. */
  readonly name: string;
  /** Absolute path to the MCP server executable. */
  readonly command: string;
  /** Command-line arguments to pass to the MCP server. */
  readonly args: readonly string[];
  /** Environment variables to set when launching the MCP server. */
  readonly env: readonly EnvVariable[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Unique identifier for a message within a session. */
export type MessageId = string;

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

/** Request parameters for creating a new session. */
export interface NewSessionRequest {
  /** The working directory for this session. */
  readonly cwd: string;
  /** Additional workspace roots for this session. */
  readonly additionalDirectories?: readonly string[];
  /** List of MCP (Model Context Protocol) servers the agent should connect to. */
  readonly mcpServers: readonly McpServer[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response from creating a new session. */
export interface NewSessionResponse {
  /** Unique identifier for the created session. */
  readonly sessionId: SessionId;
  /** Initial mode state if supported by the Agent */
  readonly modes?: SessionModeState | null;
  /** Initial session configuration options if supported by the Agent. */
  readonly configOptions?: readonly SessionConfigOption[] | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Fire-and-forget information for the user. */
export interface Notice {
  /** Presentation severity hint. */
  readonly severity: NoticeSeverity;
  /** Required non-empty plain-text title that can stand alone. */
  readonly title: string;
  /** Optional plain-text detail or guidance. */
  readonly description?: string | null;
  /** Metadata scoped to this notice. */
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Severity hint for a session notice. */
export type NoticeSeverity = "info" | "warning" | "error" | string;

/** An option presented to the user when requesting permission. */
export interface PermissionOption {
  /** Unique identifier for this permission option. */
  readonly optionId: PermissionOptionId;
  /** Human-readable label to display to the user. */
  readonly name: string;
  /** Hint about the nature of this permission option. */
  readonly kind: PermissionOptionKind;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Unique identifier for a permission option. */
export type PermissionOptionId = string;

/** The type of permission option being presented to the user. */
export type PermissionOptionKind = "allow_once" | "allow_always" | "reject_once" | "reject_always";

/** An execution plan for accomplishing complex tasks. */
export interface Plan {
  /** The list of tasks to be accomplished. */
  readonly entries: readonly PlanEntry[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** A single entry in the execution plan. */
export interface PlanEntry {
  /** Human-readable description of what this task aims to accomplish. */
  readonly content: string;
  /** The relative importance of this task. */
  readonly priority: PlanEntryPriority;
  /** Current execution status of this task. */
  readonly status: PlanEntryStatus;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Priority levels for plan entries. */
export type PlanEntryPriority = "high" | "medium" | "low";

/** Status of a plan entry in the execution flow. */
export type PlanEntryStatus = "pending" | "in_progress" | "completed";

/** Request parameters for sending a user prompt to the agent. */
export interface PromptRequest {
  /** The ID of the session to send this user message to */
  readonly sessionId: SessionId;
  /** The blocks of content that compose the user's message. */
  readonly prompt: readonly ContentBlock[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response from processing a user prompt. */
export interface PromptResponse {
  /** Indicates why the agent stopped processing the turn. */
  readonly stopReason: StopReason;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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

/** The outcome of a permission request. */
export type RequestPermissionOutcome = { readonly outcome: "cancelled" } | SelectedPermissionOutcome & { readonly outcome: "selected" };

/** Request for user permission to execute a tool call. */
export interface RequestPermissionRequest {
  /** The session ID for this request. */
  readonly sessionId: SessionId;
  /** Details about the tool call requiring permission. */
  readonly toolCall: ToolCallUpdate;
  /** Available permission options for the user to choose from. */
  readonly options: readonly PermissionOption[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response to a permission request. */
export interface RequestPermissionResponse {
  /** The user's decision on the permission request. */
  readonly outcome: RequestPermissionOutcome;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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

/** Request parameters for resuming an existing session. */
export interface ResumeSessionRequest {
  /** The ID of the session to resume. */
  readonly sessionId: SessionId;
  /** The working directory for this session. */
  readonly cwd: string;
  /** Additional workspace roots to activate for this session. */
  readonly additionalDirectories?: readonly string[];
  /** List of MCP servers to connect to for this session. */
  readonly mcpServers?: readonly McpServer[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Response from resuming an existing session. */
export interface ResumeSessionResponse {
  /** Initial mode state if supported by the Agent */
  readonly modes?: SessionModeState | null;
  /** Initial session configuration options if supported by the Agent. */
  readonly configOptions?: readonly SessionConfigOption[] | null;
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

/** `_tandem/save`, a request from the server: save these documents, because a command that cannot see unsaved text is about to run. */
export interface Save {
  /** The documents. */
  readonly uris: readonly string[];
}

/** The user selected one of the provided options. */
export interface SelectedPermissionOutcome {
  /** The ID of the option the user selected. */
  readonly optionId: PermissionOptionId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** A boolean on/off toggle session configuration option payload. */
export interface SessionConfigBoolean {
  /** The current value of the boolean option. */
  readonly currentValue: boolean;
}

/** Unique identifier for a session configuration option value group. */
export type SessionConfigGroupId = string;

/** Unique identifier for a session configuration option. */
export type SessionConfigId = string;

/** A session configuration option selector and its current state. */
export type SessionConfigOption = (SessionConfigSelect & { readonly type: "select" } | SessionConfigBoolean & { readonly type: "boolean" }) & { readonly id: SessionConfigId; readonly name: string; readonly description?: string | null; readonly category?: SessionConfigOptionCategory | null; readonly _meta?: Readonly<Record<string, unknown>> | null };

/** Semantic category for a session configuration option. */
export type SessionConfigOptionCategory = "mode" | "model" | "model_config" | "thought_level" | string;

/** A single-value selector (dropdown) session configuration option payload. */
export interface SessionConfigSelect {
  /** The currently selected value. */
  readonly currentValue: SessionConfigValueId;
  /** The set of selectable options. */
  readonly options: SessionConfigSelectOptions;
}

/** A group of possible values for a session configuration option. */
export interface SessionConfigSelectGroup {
  /** Unique identifier for this group. */
  readonly group: SessionConfigGroupId;
  /** Human-readable label for this group. */
  readonly name: string;
  /** The set of option values in this group. */
  readonly options: readonly SessionConfigSelectOption[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** A possible value for a session configuration option. */
export interface SessionConfigSelectOption {
  /** Unique identifier for this option value. */
  readonly value: SessionConfigValueId;
  /** Human-readable label for this option value. */
  readonly name: string;
  /** Optional description for this option value. */
  readonly description?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Possible values for a session configuration option. */
export type SessionConfigSelectOptions = readonly SessionConfigSelectOption[] | readonly SessionConfigSelectGroup[];

/** Unique identifier for a session configuration option value. */
export type SessionConfigValueId = string;

/** A unique identifier for a conversation session between a client and agent. */
export type SessionId = string;

/** Information about a session returned by session/list */
export interface SessionInfo {
  /** Unique identifier for the session */
  readonly sessionId: SessionId;
  /** The working directory for this session. */
  readonly cwd: string;
  /** Additional workspace roots reported for this session. */
  readonly additionalDirectories?: readonly string[];
  /** Human-readable title for the session */
  readonly title?: string | null;
  /** ISO 8601 timestamp of last activity */
  readonly updatedAt?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Update to session metadata. */
export interface SessionInfoUpdate {
  /** Human-readable title for the session. */
  readonly title?: string | null;
  /** ISO 8601 timestamp of last activity. */
  readonly updatedAt?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** A mode the agent can operate in. */
export interface SessionMode {
  /** Stable identifier used to refer to this protocol object in later messages. */
  readonly id: SessionModeId;
  /** Human-readable name shown for this protocol object. */
  readonly name: string;
  /** Optional human-readable details shown with this protocol object. */
  readonly description?: string | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Unique identifier for a Session Mode. */
export type SessionModeId = string;

/** The set of modes and the one currently active. */
export interface SessionModeState {
  /** The current mode the Agent is in. */
  readonly currentModeId: SessionModeId;
  /** The set of modes that the Agent can operate in */
  readonly availableModes: readonly SessionMode[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Notification containing a session update from the agent. */
export interface SessionNotification {
  /** The ID of the session this update pertains to. */
  readonly sessionId: SessionId;
  /** The actual update content. */
  readonly update: SessionUpdate;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Different types of updates that can be sent during session processing. */
export type SessionUpdate = ContentChunk & { readonly sessionUpdate: "user_message_chunk" } | ContentChunk & { readonly sessionUpdate: "agent_message_chunk" } | ContentChunk & { readonly sessionUpdate: "agent_thought_chunk" } | ToolCall & { readonly sessionUpdate: "tool_call" } | ToolCallUpdate & { readonly sessionUpdate: "tool_call_update" } | Plan & { readonly sessionUpdate: "plan" } | AvailableCommandsUpdate & { readonly sessionUpdate: "available_commands_update" } | CurrentModeUpdate & { readonly sessionUpdate: "current_mode_update" } | ConfigOptionUpdate & { readonly sessionUpdate: "config_option_update" } | SessionInfoUpdate & { readonly sessionUpdate: "session_info_update" } | UsageUpdate & { readonly sessionUpdate: "usage_update" } | Notice & { readonly sessionUpdate: "notice" } | CompactionUpdate & { readonly sessionUpdate: "compaction_update" } | CompactionSummaryChunk & { readonly sessionUpdate: "compaction_summary_chunk" };

/** Request parameters for setting a session configuration option. */
export type SetSessionConfigOptionRequest = ({ readonly type: "boolean"; readonly value: boolean } | { readonly value: SessionConfigValueId }) & { readonly sessionId: SessionId; readonly configId: SessionConfigId; readonly _meta?: Readonly<Record<string, unknown>> | null };

/** Response to `session/set_config_option` method. */
export interface SetSessionConfigOptionResponse {
  /** The full set of configuration options and their current values. */
  readonly configOptions: readonly SessionConfigOption[];
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Request parameters for setting a session mode. */
export interface SetSessionModeRequest {
  /** The ID of the session to set the mode for. */
  readonly sessionId: SessionId;
  /** The ID of the mode to set. */
  readonly modeId: SessionModeId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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
}

/** `_tandem/session/steer`, a request: adds a message to the running turn. */
export interface Steer {
  /** The session. */
  readonly sessionId: string;
  /** As in `session/prompt`. */
  readonly prompt: readonly ContentBlock[];
  /** As in `session/prompt`; may carry the prompt's id (`tandem/promptId`). */
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** `_tandem/jobs/stop`, a request: stops a job and everything it started. */
export interface StopJob {
  /** The session. */
  readonly sessionId: string;
  /** The job. */
  readonly id: number;
}

/** Reasons why an agent stops processing a prompt turn. */
export type StopReason = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled";

/** A part of a text and its look. */
export interface Styled {
  /** Where it begins, in UTF-16 code units. */
  readonly start: number;
  /** Where it ends. */
  readonly end: number;
  /** One of the terminal's 16 colors, as its number, or `#rrggbb`. */
  readonly color?: string | null;
  /** The color behind it. */
  readonly background?: string | null;
  /** Any of `bold`, `dim`, `italic` and `underline`. */
  readonly font: readonly string[];
}

/** Embed a terminal created with `terminal/create` by its id. */
export interface Terminal {
  /** Identifier of the terminal instance to embed in the content stream. */
  readonly terminalId: TerminalId;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Typed identifier used for terminal values on the wire. */
export type TerminalId = string;

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

/** Represents a tool call that the language model has requested. */
export interface ToolCall {
  /** Unique identifier for this tool call within the session. */
  readonly toolCallId: ToolCallId;
  /** Human-readable title describing what the tool is doing. */
  readonly title: string;
  /** Programmatic name of the tool being invoked. */
  readonly name?: string | null;
  /** The category of tool being invoked. */
  readonly kind?: ToolKind;
  /** Current execution status of the tool call. */
  readonly status?: ToolCallStatus;
  /** Content produced by the tool call. */
  readonly content?: readonly ToolCallContent[];
  /** File locations affected by this tool call. */
  readonly locations?: readonly ToolCallLocation[];
  /** Raw input parameters sent to the tool. */
  readonly rawInput?: unknown;
  /** Raw output returned by the tool. */
  readonly rawOutput?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Content produced by a tool call. */
export type ToolCallContent = Content & { readonly type: "content" } | Diff & { readonly type: "diff" } | Terminal & { readonly type: "terminal" };

/** Unique identifier for a tool call within a session. */
export type ToolCallId = string;

/** A file location being accessed or modified by a tool. */
export interface ToolCallLocation {
  /** The absolute file path being accessed or modified. */
  readonly path: string;
  /** Optional 1-based line number within the file. */
  readonly line?: number | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Execution status of a tool call. */
export type ToolCallStatus = "pending" | "in_progress" | "completed" | "failed";

/** An update to an existing tool call. */
export interface ToolCallUpdate {
  /** The ID of the tool call being updated. */
  readonly toolCallId: ToolCallId;
  /** Update the tool kind. */
  readonly kind?: ToolKind | null;
  /** Update the execution status. */
  readonly status?: ToolCallStatus | null;
  /** Update the human-readable title. */
  readonly title?: string | null;
  /** Update the programmatic name of the tool being invoked. */
  readonly name?: string | null;
  /** Replace the content collection. */
  readonly content?: readonly ToolCallContent[] | null;
  /** Replace the locations collection. */
  readonly locations?: readonly ToolCallLocation[] | null;
  /** Update the raw input. */
  readonly rawInput?: unknown;
  /** Update the raw output. */
  readonly rawOutput?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
}

/** Categories of tools that can be invoked. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other";

/** `_tandem/turn`, a notification: the state of a prompt. */
export interface Turn {
  /** The session. */
  readonly sessionId: string;
  /** The prompt. */
  readonly promptId: string;
  /** Its state. */
  readonly state: PromptState;
  /** The turn that runs it, that it joined, or that ended (`running`, `joined`, `ended`). */
  readonly turnId?: string | null;
  /** The number of that turn, as in `_tandem/review` (`running`; missing if the prompt is a command). */
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

/** All text that was typed after the command name is provided as input. */
export interface UnstructuredCommandInput {
  /** A hint to display when the input hasn't been provided yet */
  readonly hint: string;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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

/** Context window and cost update for a session. */
export interface UsageUpdate {
  /** Tokens currently in context. */
  readonly used: number;
  /** Total context window size in tokens. */
  readonly size: number;
  /** Cumulative session cost (optional). */
  readonly cost?: Cost | null;
  readonly _meta?: Readonly<Record<string, unknown>> | null;
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
