/** The messages between the extension and its chat view. The extension owns all state, so the view can be discarded and redrawn. */
import type { DiffView } from "./diff";
import type { Completion, PermissionOption, PlanEntry, ToolKind, ToolStatus } from "./protocol";

import type * as wire from "./wire-types";

/** An attachment of a message. */
export interface Chip {
  /** Such as `price.rs:3-7`. */
  readonly label: string;
  /** The number of an image: the view asks for it once. */
  readonly image?: number;
}

export interface UserItem {
  readonly kind: "user";
  readonly id: number;
  readonly text: string;
  readonly context: readonly Chip[];
  /** Files and conversation can be restored to before it. */
  readonly turn?: number;
}

export interface TextItem {
  readonly kind: "answer" | "thought";
  readonly id: number;
  readonly text: string;
  /** Nothing more will be appended. */
  readonly done: boolean;
}

export interface ToolItem {
  readonly kind: "tool";
  readonly id: number;
  readonly toolKind: ToolKind;
  readonly status: ToolStatus;
  readonly title: string;
  readonly location?: Location;
  readonly diffs: readonly DiffView[];
  readonly output: string;
  /** How a terminal would show parts of the output. */
  readonly styles?: readonly wire.Styled[];
  /** The command line, of a call that runs one. */
  readonly command?: string;
  /** How its command ended. */
  readonly exit?: wire.Exit;
  /** A question of the model's; the output is the answer. */
  readonly isAsked?: boolean;
  /** Its command runs in the background: its state, as long as its server runs. */
  readonly background?: Partial<Pick<wire.Job, "state" | "exitCode">>;
  readonly question?: Question;
}

export interface Location {
  readonly path: string;
  readonly line?: number;
}

/** An open permission question of a tool call. */
export interface Question {
  /** Refusals first. */
  readonly options: readonly PermissionOption[];
  /** Words that mix look-alike letters of several scripts. */
  readonly mixed: readonly string[];
}

export interface PlanItem {
  readonly kind: "plan";
  readonly id: number;
  readonly entries: readonly PlanEntry[];
}

export interface NoticeItem {
  readonly kind: "notice";
  readonly id: number;
  readonly text: string;
  readonly remedies: readonly Remedy[];
}

/** What went wrong, and the actions that may help. */
export interface ErrorItem {
  readonly kind: "error";
  readonly id: number;
  readonly text: string;
  /** The server's words, where the text is not. */
  readonly details?: string;
  readonly remedies: readonly Remedy[];
}

export type Remedy = "retry" | "continue" | "undo" | "redo" | "folder" | "model" | "setup" | "build" | "program" | "settings" | "log";
export type Item = (UserItem | TextItem | ToolItem | PlanItem | NoticeItem | ErrorItem) & {
  /** It is no longer part of the conversation, until an undo. */
  readonly isCut?: boolean;
};

export type Change =
  | { readonly op: "put"; readonly item: Item }
  | { readonly op: "append"; readonly id: number; readonly text: string }
  | { readonly op: "remove"; readonly id: number };

export interface Choice {
  readonly value: string;
  readonly name: string;
  readonly description?: string;
}

/** The mode, the model or another option of the session. */
export interface Picker {
  readonly id: string;
  readonly name: string;
  readonly current: string;
  readonly choices: readonly Choice[];
}

export type Phase = "starting" | "ready" | "running" | "waiting" | "no_model" | "stopped";

export interface ChatState {
  readonly phase: Phase;
  /** Why there is no model, or what a turn does besides running. */
  readonly message: string;
  /** What helps when the phase is "stopped". */
  readonly remedies: readonly Remedy[];
  readonly pickers: readonly Picker[];
  readonly commands: readonly Command[];
  readonly usage?: wire.Usage & { readonly turnCost?: number };
  readonly attachments: readonly Chip[];
  /** The draft replaces an earlier message. */
  readonly isEditing: boolean;
  /** Context that is sent by default. */
  readonly looking: readonly Looking[];
  /** All that are open. */
  readonly conversations: readonly ConversationLabel[];
  /** Its background commands. */
  readonly jobs: readonly JobView[];
  /** Messages that the running turn has not reached. */
  readonly waiting: readonly WaitingMessage[];
}

/** The place in the editor or the problems of its file: sent with each message while it is shared. */
export interface Looking {
  readonly what: "place" | "problems";
  readonly label: string;
  readonly isShared: boolean;
}

/** An open conversation. */
export interface ConversationLabel {
  readonly title: string;
  readonly isCurrent: boolean;
  readonly state: "idle" | "running" | "asks" | "done";
}

/** A background command, with the end of its output. */
export type JobView = wire.Job & { readonly output: string };

export interface WaitingMessage {
  readonly text: string;
  readonly context: readonly Chip[];
  /** It joins the running turn; otherwise, it follows the turn. */
  readonly joins: boolean;
}

/** A slash command. */
export interface Command {
  readonly name: string;
  readonly description: string;
  /** It may take an argument. */
  readonly takesMore: boolean;
}

/** The values of the setup form; fields left out are empty. */
export interface Setup {
  readonly provider: string;
  readonly model: string;
  readonly apiKey: string;
  readonly baseUrl: string;
}

/** What can be done with a code block. */
export type CodeAction = "copy" | "insert" | "apply" | "run" | "diagram";

export type ToView =
  /** Includes the draft if it is not the one in the input. */
  | {
      readonly type: "reset";
      readonly items: readonly Item[];
      readonly state: ChatState;
      readonly draft?: { readonly number: number; readonly text: string };
    }
  /** Answered with "drawn", and nothing follows before. */
  | { readonly type: "changes"; readonly changes: readonly Change[] }
  | { readonly type: "state"; readonly state: ChatState }
  /** What the input shows now; what was typed into it since it was as in `was` stays. */
  | { readonly type: "draft"; readonly text: string; readonly was: string }
  | { readonly type: "setup"; readonly providers: readonly wire.ProviderInfo[]; readonly isAsked: boolean }
  | { readonly type: "setupModels"; readonly request: number; readonly models: readonly wire.ModelInfo[]; readonly problem?: string }
  | { readonly type: "setupChecked"; readonly request: number; readonly findings: readonly wire.Finding[]; readonly problem?: string }
  | { readonly type: "setupDone" }
  | { readonly type: "completions"; readonly request: number; readonly items: readonly Completion[] }
  | { readonly type: "focus" }
  /** Scrolls to the message that began a turn, once it is there. */
  | { readonly type: "showTurn"; readonly turn: number }
  /** Sends the draft as a trial. */
  | { readonly type: "try" }
  /** Those of the view's "files" that exist. */
  | { readonly type: "files"; readonly names: readonly string[] }
  /** The answer to the view's "picture". */
  | { readonly type: "picture"; readonly image: number; readonly url: string };

/** With the number of the draft in the input: while another conversation is about to be shown, what is done is meant for the one that is seen. */
export type FromView = Action & { readonly draft?: number | undefined };

export type Action =
  | { readonly type: "ready" }
  | { readonly type: "draft"; readonly text: string }
  | { readonly type: "drawn" }
  /** `now`: to the running turn. */
  | { readonly type: "send"; readonly text: string; readonly now: boolean }
  | { readonly type: "complete"; readonly request: number; readonly query: string }
  | { readonly type: "stop" }
  | { readonly type: "answer"; readonly id: number; readonly optionId: string }
  | { readonly type: "pick"; readonly what: string; readonly value: string }
  /** Edits a message, or restores files and conversation to before it and sends it again. */
  | { readonly type: "goBack"; readonly id: number; readonly how: "edit" | "again" }
  /** Edits no earlier message any more. */
  | { readonly type: "cancelEdit" }
  | { readonly type: "look"; readonly what: Looking["what"] }
  | { readonly type: "copy"; readonly text: string }
  | { readonly type: "attach" }
  | { readonly type: "picture"; readonly image: number }
  /** An image that was pasted or dropped; its bytes in base64. */
  | { readonly type: "image"; readonly name: string; readonly mimeType: string; readonly data: string }
  /** Files that were dropped. */
  | { readonly type: "attachFiles"; readonly uris: readonly string[] }
  | { readonly type: "detach"; readonly index: number }
  | { readonly type: "returnToInput"; readonly index: number }
  | { readonly type: "job"; readonly what: "stop" | "terminal"; readonly id: number }
  | { readonly type: "openPort"; readonly id: number; readonly port: number }
  /** The id is that of the item. */
  | { readonly type: "runInBackground"; readonly id: number }
  | { readonly type: "open"; readonly location: Location }
  | { readonly type: "showDiff"; readonly id: number; readonly index: number }
  | { readonly type: "link"; readonly href: string }
  /** Names in answers that may be those of files. */
  | { readonly type: "files"; readonly names: readonly string[] }
  /** The text of a code block. */
  | { readonly type: "code"; readonly action: CodeAction; readonly text: string; readonly language: string }
  /** For the card with this id; without one, for the view's own error. */
  | { readonly type: "remedy"; readonly remedy: Remedy; readonly id?: number }
  | { readonly type: "setup"; readonly what: "models" | "check" | "save"; readonly request: number; readonly values: Setup }
  | { readonly type: "select"; readonly index: number }
  | { readonly type: "close"; readonly index: number };
