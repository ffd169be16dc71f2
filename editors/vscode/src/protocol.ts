/**
 * What goes over the wire besides plain LSP: the session methods of the Agent Client Protocol v1, names and shapes unchanged, and tandem's own
 * `_tandem/…`. Mirrors `src/protocol` of the server; only what this extension uses is listed, and unknown updates are ignored.
 */
import { type Diagnostic, NotificationType, RequestType, type Range } from "vscode-languageclient/node";

import type * as wire from "./wire-types";

export interface SessionMode {
  readonly id: string;
  readonly name: string;
  readonly description?: string | null;
}

export interface SessionModes {
  readonly currentModeId: string;
  readonly availableModes: readonly SessionMode[];
}

export interface ConfigOption {
  readonly type: "select" | string;
  readonly id: string;
  readonly name: string;
  readonly category?: string | null;
  readonly currentValue: string;
  readonly options: readonly { readonly value: string; readonly name: string }[];
}

/** What can be typed after a `/`. */
export interface AvailableCommand {
  readonly name: string;
  readonly description: string;
  readonly input?: { readonly hint: string } | null;
}

/** A completion of the query after an `@`. */
export interface Completion {
  readonly insert: string;
  readonly label: string;
  readonly kind: "file" | "folder" | "symbol" | "diagnostics" | "selection" | "resource";
  readonly detail?: string;
}

export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other";

export interface DiffContent {
  readonly type: "diff";
  readonly path: string;
  readonly oldText?: string | null;
  readonly newText: string;
  /** Of a large file: how many lines before these are left out. */
  readonly _meta?: { readonly "tandem/skippedLines"?: number } | null;
}

export type ToolContent =
  | DiffContent
  | { readonly type: "content"; readonly content: { readonly type: string; readonly text?: string } }
  | { readonly type: "terminal" };

export interface ToolCall {
  readonly toolCallId: string;
  readonly title: string;
  readonly kind?: ToolKind;
  readonly status?: ToolStatus;
  readonly content?: readonly ToolContent[];
  readonly locations?: readonly { readonly path: string; readonly line?: number | null }[];
  readonly rawInput?: unknown;
  readonly _meta?: {
    readonly "tandem/exit"?: wire.Exit;
    readonly "tandem/styles"?: readonly wire.Styled[];
    readonly "tandem/job"?: number;
  } | null;
}

/** Only the fields that changed; `null` counts as unchanged. */
export type ToolCallUpdate = { readonly toolCallId: string } & { readonly [K in keyof Omit<ToolCall, "toolCallId">]?: ToolCall[K] | null };

export interface PlanEntry {
  readonly content: string;
  readonly status: "pending" | "in_progress" | "completed";
}

/** Of a prompt of a saved session: the turn that it began, and what was sent along. */
export type MessageMeta =
  | {
      readonly "tandem/turn"?: number;
      readonly "tandem/attached"?: readonly wire.ContentBlock[];
      /** The text says how the turn ended. */
      readonly "tandem/finish"?: wire.Finish;
    }
  | null
  | undefined;

interface Chunk {
  readonly content: { readonly type: string; readonly text?: string };
  readonly _meta?: MessageMeta;
}

export type SessionUpdate =
  | ({ readonly sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" } & Chunk)
  | ({ readonly sessionUpdate: "tool_call" } & ToolCall)
  | ({ readonly sessionUpdate: "tool_call_update" } & ToolCallUpdate)
  | { readonly sessionUpdate: "plan"; readonly entries: readonly PlanEntry[] }
  | { readonly sessionUpdate: "current_mode_update"; readonly currentModeId: string }
  | { readonly sessionUpdate: "config_option_update"; readonly configOptions: readonly ConfigOption[] }
  | { readonly sessionUpdate: "available_commands_update"; readonly availableCommands: readonly AvailableCommand[] }
  | {
      readonly sessionUpdate: "session_info_update";
      readonly title?: string | null;
      readonly _meta?: { readonly "tandem/stopped"?: string } | null;
    };

export interface UpdateParams {
  readonly sessionId: string;
  readonly update: SessionUpdate;
}

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  /** The rule that choosing it would add. */
  readonly _meta?: { readonly tandem?: { readonly rule?: string } };
}

export interface PermissionParams {
  readonly sessionId: string;
  readonly toolCall: ToolCallUpdate;
  readonly options: readonly PermissionOption[];
}

export interface PermissionResult {
  readonly outcome: { readonly outcome: "selected"; readonly optionId: string } | { readonly outcome: "cancelled" };
  /** The rule as the user edited it. */
  readonly _meta?: { readonly tandem: { readonly rule: string } };
}

export type StopReason = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled";

export type ContentBlock = wire.ContentBlock;
export type InlineParams = wire.InlineParams;
export type Job = wire.Job;
export type Jobs = wire.Jobs;
export type JobOutput = wire.JobOutput;
export type KeepInline = wire.KeepInline;
export type LanguageOp = wire.LanguageOp;
export type LanguageParams = wire.LanguageParams;
export type Reviewed = wire.Reviewed;
export type ReviewedFile = wire.ReviewedFile;
export type ReviewedHunk = wire.ReviewedHunk;
export type ReviewedTurn = wire.ReviewedTurn;
export type Turn = wire.Turn;
export type Origin = wire.Origin;
export type StatusParams = Partial<wire.Status> & Pick<wire.Status, "state">;
export type ReviewParams = Omit<wire.Review, "sessionId">;

export interface DiagnosticsParams {
  /** Empty: all the editor knows. */
  readonly uris: readonly string[];
  /** The documents have just changed. */
  readonly settled: boolean;
}

export interface DiagnosticsResult {
  readonly documents: readonly { readonly uri: string; readonly version?: number; readonly diagnostics: readonly Diagnostic[] }[];
}

/** What a failed prompt carries besides its message. */
export interface FailureData {
  readonly code?: string;
  readonly status?: number;
  readonly retryable?: boolean;
}

export interface OpenedSession {
  readonly modes?: SessionModes | null;
  readonly configOptions?: readonly ConfigOption[] | null;
}

interface Prompt {
  readonly prompt: readonly wire.ContentBlock[];
  /** Identifies it in the server's notifications. */
  readonly _meta: { readonly "tandem/promptId": string };
}

interface Place {
  readonly cwd: string;
  readonly mcpServers: readonly McpServer[];
}

/** An MCP server of this extension's own. */
export interface McpServer {
  readonly type: "acp";
  readonly name: string;
  readonly serverId: string;
}

/** A request to it. */
export interface McpMessage {
  readonly method: string;
  readonly params?: { readonly name?: unknown; readonly arguments?: object } | null;
}

export type McpOutcome = { readonly result: object } | { readonly error: { readonly code: number; readonly message: string } };

/** A saved conversation. */
export interface SavedSession {
  readonly sessionId: string;
  readonly title?: string | null;
  readonly updatedAt?: string | null;
}

interface OfSession {
  readonly sessionId: string;
}

export const mcpMessage = new RequestType<McpMessage, McpOutcome, void>("mcp/message");
export const newSession = new RequestType<Place, OfSession & OpenedSession, void>("session/new");
export const resumeSession = new RequestType<OfSession & Place, OpenedSession, void>("session/resume");
export const loadSession = new RequestType<OfSession & Place, OpenedSession, void>("session/load");
export const listSessions = new RequestType<{ cwd: string }, { sessions: readonly SavedSession[] }, void>("session/list");
export const deleteSession = new RequestType<OfSession, object, void>("session/delete");
export const closeSession = new RequestType<OfSession, object, void>("session/close");
export const prompt = new RequestType<OfSession & Prompt, { stopReason: StopReason }, FailureData>("session/prompt");
export const steer = new RequestType<OfSession & Prompt, object, void>("_tandem/session/steer");
export const withdraw = new RequestType<wire.Withdraw, object, void>("_tandem/turn/withdraw");
export const turn = new NotificationType<wire.Turn>("_tandem/turn");
export const complete = new RequestType<OfSession & { query: string }, { items: readonly Completion[] }, void>("_tandem/complete");
export const setMode = new RequestType<OfSession & { modeId: string }, object, void>("session/set_mode");
export const setConfigOption = new RequestType<
  OfSession & { configId: string; value: string },
  { configOptions: readonly ConfigOption[] },
  void
>("session/set_config_option");
export const requestPermission = new RequestType<PermissionParams, PermissionResult, void>("session/request_permission");

export const origins = new RequestType<wire.OriginsParams, readonly wire.Origin[], void>("_tandem/origins");
export const review = new RequestType<wire.Review, wire.Reviewed, void>("_tandem/review");
export const diagnostics = new RequestType<DiagnosticsParams, DiagnosticsResult, void>("_tandem/diagnostics");

export const providers = new RequestType<object, wire.Providers, void>("_tandem/providers");
export const models = new RequestType<wire.ModelsParams, wire.Models, void>("_tandem/models");
export const check = new RequestType<wire.CheckParams, wire.Checked, void>("_tandem/check");

export const editorModels = new RequestType<null, object, void>("_tandem/editorModels");
export const nextChunk = new RequestType<wire.NextChunk, { chunk?: object }, void>("_tandem/editorModels/next");
export const endAnswer = new NotificationType<wire.EndAnswer>("_tandem/editorModels/end");
export const language = new RequestType<wire.LanguageParams, unknown, void>("_tandem/language");
export const inline = new RequestType<wire.InlineParams, wire.InlineResult, FailureData>("_tandem/inline");
export const keepInline = new RequestType<wire.KeepInline, wire.KeptInline, void>("_tandem/inline/keep");
export const inlineUpdate = new NotificationType<wire.InlineUpdate>("_tandem/inline/update");

export const jobs = new RequestType<wire.JobsParams, wire.Jobs, void>("_tandem/jobs");
export const jobsChanged = new NotificationType<wire.Jobs>("_tandem/jobs/changed");
export const jobOutput = new RequestType<wire.JobOutputParams, wire.JobOutput, void>("_tandem/jobs/output");
export const openPort = new RequestType<wire.OpenPort, wire.OpenedPort, void>("_tandem/jobs/open");
export const runInBackground = new RequestType<wire.RunInBackground, wire.Job, void>("_tandem/jobs/background");
export const stopJob = new RequestType<wire.StopJob, wire.Job, void>("_tandem/jobs/stop");

export const cancel = new NotificationType<OfSession>("session/cancel");
export const update = new NotificationType<UpdateParams>("session/update");
export const save = new RequestType<{ uris: readonly string[] }, null, void>("_tandem/save");
export const saved = new NotificationType<{ uris: readonly string[] }>("_tandem/saved");
export const status = new NotificationType<StatusParams>("_tandem/status");
export const didStartTyping = new NotificationType<wire.DidStartTyping>("_tandem/didStartTyping");
export const didFocus = new NotificationType<{ textDocument: { uri: string }; selection: Range; visibleRange?: Range }>("_tandem/didFocus");
