/**
 * The displayed conversation, built from session updates. Pure. `takeChanges` returns what changed since the last call, so a burst of updates
 * costs the view one message and a long answer is never sent twice.
 */
import { createTwoFilesPatch } from "diff";
import { diffView } from "./diff";
import { duration, withoutExit } from "./exit";
import { capitalized } from "./failure";
import type { Change, Chip, Item, Question, Remedy } from "./messages";
import type { DiffContent, Job, PermissionOption, PlanEntry, SessionUpdate, ToolCall, ToolCallUpdate } from "./protocol";
import { mixedScripts } from "./safe";

type Entry =
  | { kind: "user"; id: number; text: string; context: readonly Chip[]; turn?: number }
  | { kind: "answer" | "thought"; id: number; text: string; done: boolean }
  | { kind: "tool"; id: number; call: ToolCall; options?: readonly PermissionOption[] }
  | { kind: "plan"; id: number; entries: readonly PlanEntry[] }
  | { kind: "notice"; id: number; text: string; remedies: readonly Remedy[]; isPassing?: true }
  | { kind: "error"; id: number; text: string; details?: string; remedies: readonly Remedy[] };
type TextEntry = Extract<Entry, { kind: "answer" | "thought" }>;
type ToolEntry = Extract<Entry, { kind: "tool" }>;
type UserEntry = Extract<Entry, { kind: "user" }>;
type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;

/** The source of item ids, shared by all conversations, so that a late click or an open diff never refers to another conversation. */
export interface Ids {
  next: number;
}

/** The answer that has a new session carry out a plan. */
export const START_ELSEWHERE = "answer_start_new";

/** Remedies that a working setup makes obsolete. */
const SETUP: readonly Remedy[] = ["setup", "build", "program", "settings", "folder"];

export class Transcript {
  private readonly entries = new Map<number, Entry>();
  private readonly tools = new Map<string, number>();
  private last: Entry | undefined;
  private plan: number | undefined;
  /** What was asked, by turn; also in turns that were cut off, whose changes can be under review again. */
  readonly prompts = new Map<number, string | undefined>();
  /** Ids that changed; for text that only grew, how much of it the view has. */
  private readonly changed = new Map<number, "whole" | { shown: number }>();
  private readonly removed: number[] = [];
  /** Items from this id on are no longer part of the conversation, which was restored to before it. */
  private cutFrom: number | undefined;
  /** Where the server saved plans for the person to edit. */
  private readonly plans = new Set<string>();
  /** The background commands of the session. */
  private jobs: readonly Job[] = [];
  /** Items with lower ids began commands of servers that have ended, whose ids later servers use again. */
  private firstOfServer = 0;

  /** `nameOf` shortens the path of a file. */
  constructor(
    private readonly ids: Ids = { next: 1 },
    private readonly nameOf = (path: string) => path,
  ) {}

  isPlan(path: string): boolean {
    return this.plans.has(path);
  }

  get isEmpty(): boolean {
    return this.entries.size === 0;
  }

  /** The model has answered something. */
  get isAnswered(): boolean {
    return [...this.entries.values()].some(({ kind }) => kind === "answer" || kind === "tool");
  }

  /** Adds the user's message, which begins a turn and disables the buttons of earlier ones. Returns its id. */
  ask(text: string, context: readonly Chip[]): number {
    this.removeCut();
    this.plan = undefined;
    this.withdraw(() => true);
    return this.push({ kind: "user", text, context }).id;
  }

  /** The server's number of the turn that begins with the last message; tried again, it keeps its first. */
  number(turn: number): void {
    const asked = this.messages().at(-1);
    if (asked !== undefined && asked.turn === undefined) {
      asked.turn = turn;
      this.prompts.set(turn, asked.text);
      this.touch(asked);
    }
  }

  /** The turn that begins with a message, where it is known. */
  turnOf(id: number): number | undefined {
    const entry = this.entries.get(id);
    return entry?.kind === "user" ? entry.turn : undefined;
  }

  /** What was asked in a turn; tried again, a message has several. */
  asked(turn: number): string | undefined {
    return this.prompts.get(turn) ?? [...this.prompts].findLast(([number]) => number <= turn)?.[1];
  }

  /** The conversation went back to before this turn, or returned from there. */
  cut(turn: number | undefined): void {
    const first = turn === undefined ? undefined : this.messages().find((asked) => (asked.turn ?? 0) >= turn)?.id;
    if (first !== this.cutFrom) {
      this.cutFrom = first;
      this.entries.forEach((entry) => this.touch(entry));
    }
  }

  /** The last item, if it is a notice. */
  get lastNotice(): string | undefined {
    return this.last?.kind === "notice" ? this.last.text : undefined;
  }

  /** A passing notice, such as that a request is retried, stays until something follows. */
  notice(text: string, remedies: readonly Remedy[] = [], isPassing = false): void {
    this.push({ kind: "notice", text, remedies, ...(isPassing && { isPassing }) });
  }

  /** A turn was undone or redone: only the last such notice offers to revert that. */
  reverted(text: string, back: "undo" | "redo" | undefined): void {
    this.withdraw((remedy) => remedy === "undo" || remedy === "redo");
    this.notice(text, back === undefined ? [] : [back]);
  }

  /** Returns the id of its card. */
  fail(text: string, remedies: readonly Remedy[], details?: string): number {
    return this.push({ kind: "error", text, remedies, ...(details !== undefined && { details }) }).id;
  }

  /** Whether a card still has this button. */
  offers(id: number, remedy: Remedy): boolean {
    const entry = this.entries.get(id);
    return entry !== undefined && "remedies" in entry && entry.remedies.includes(remedy);
  }

  drop(id: number): void {
    this.entries.delete(id);
    this.changed.delete(id);
    this.removed.push(id);
    this.last = [...this.entries.values()].at(-1);
  }

  /** Removes the cards that asked for a setup once a model works; what failed for want of one can be tried again. */
  settleSetup(text: string): void {
    const asksFor = (entry: Entry) => entry.kind === "error" && entry.remedies.some((remedy) => SETUP.includes(remedy));
    const cards = [...this.entries.values()].filter(asksFor);
    const canRetry = cards.some(({ id }) => this.offers(id, "retry"));
    cards.forEach(({ id }) => this.drop(id));
    if (canRetry) {
      this.notice(text, ["retry"]);
    }
  }

  /** Ends the turn: no item stays busy. */
  finish(): void {
    this.settle();
    for (const entry of this.entries.values()) {
      if (entry.kind !== "tool") {
        continue;
      }
      const { status } = entry.call;
      if (status === "pending" || status === "in_progress") {
        entry.call = { ...entry.call, status: "failed" };
        this.touch(entry);
      }
    }
  }

  apply(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        if (update._meta?.["tandem/finish"]) {
          return this.notice(update.content.text?.trim() ?? "");
        }
        return this.append("answer", update.content.text ?? "");
      case "agent_thought_chunk":
        return this.append("thought", update.content.text ?? "");
      case "tool_call":
      case "tool_call_update":
        this.merge(update);
        return;
      case "plan":
        return this.setPlan(update.entries);
      default:
        return;
    }
  }

  /** The cards of the calls that started them show their state. */
  setJobs(jobs: readonly Job[]): void {
    const before = this.jobs;
    this.jobs = jobs;
    for (const entry of this.entries.values()) {
      if (entry.kind === "tool" && this.jobOf(entry, before)?.state !== this.jobOf(entry)?.state) {
        this.touch(entry);
      }
    }
  }

  /** The server that ran the background commands has ended. */
  forgetJobs(): void {
    this.setJobs([]);
    this.firstOfServer = this.ids.next;
  }

  /** The background command that a call began. */
  private jobOf({ id, call }: ToolEntry, jobs = this.jobs): Job | undefined {
    const job = call._meta?.["tandem/job"];
    return id < this.firstOfServer ? undefined : jobs.find((one) => one.id === job);
  }

  /** The call that an item shows. */
  callOf(id: number): string | undefined {
    const entry = this.entries.get(id);
    return entry?.kind === "tool" ? entry.call.toolCallId : undefined;
  }

  /** Opens a permission question on its tool call and returns the id to answer it by. */
  openQuestion(call: ToolCallUpdate, options: readonly PermissionOption[]): number {
    const entry = this.merge(call);
    const refusal = (option: PermissionOption) => option.kind.startsWith("reject");
    if (options.some(({ optionId }) => optionId === START_ELSEWHERE)) {
      call.locations?.forEach(({ path }) => this.plans.add(path));
    }
    entry.options = [...options].sort((a, b) => Number(refusal(b)) - Number(refusal(a)));
    this.touch(entry);
    return entry.id;
  }

  /** A question that is not a call of the model has no result, so its answer stays. */
  closeQuestion(id: number, chosen?: string): void {
    const entry = this.entries.get(id);
    if (entry?.kind === "tool") {
      const text = entry.options?.find(({ optionId }) => optionId === chosen)?.name;
      if (text !== undefined && entry.call.kind === "think") {
        const answer = { type: "content" as const, content: { type: "text" as const, text } };
        entry.call = {
          ...entry.call,
          status: "completed",
          content: [answer],
          rawInput: { question: entry.call.title, ...inputOf(entry.call) },
        };
      }
      delete entry.options;
      this.touch(entry);
    }
  }

  /** The conversation as a text of its own. */
  markdown(): string {
    return [...this.entries.values()].map(asMarkdown).filter(Boolean).join("\n\n").concat("\n");
  }

  /** What a tool call changes. */
  diffs(id: number): readonly DiffContent[] {
    const entry = this.entries.get(id);
    return entry?.kind === "tool" ? diffs(entry.call) : [];
  }

  /** Everything, pending changes included, for a view that starts afresh. */
  all(): Item[] {
    this.changed.clear();
    this.removed.length = 0;
    return [...this.entries.values()].map((entry) => this.item(entry));
  }

  takeChanges(): Change[] {
    const changes: Change[] = this.removed.splice(0).map((id) => ({ op: "remove", id }));
    for (const [id, how] of this.changed) {
      const entry = this.entries.get(id);
      if (entry === undefined) {
        continue;
      }
      const grew = how !== "whole" && "text" in entry;
      changes.push(grew ? { op: "append", id, text: entry.text.slice(how.shown) } : { op: "put", item: this.item(entry) });
    }
    this.changed.clear();
    return changes;
  }

  private item(entry: Entry): Item {
    const isCut = this.cutFrom !== undefined && entry.id >= this.cutFrom;
    return { ...(entry.kind === "tool" ? toolItem(entry, this.nameOf, this.jobOf(entry)) : entry), ...(isCut && { isCut }) };
  }

  private messages(): UserEntry[] {
    return [...this.entries.values()].filter((entry) => entry.kind === "user");
  }

  /** Removes the items that were cut off. */
  private removeCut(): void {
    const { cutFrom } = this;
    this.cutFrom = undefined;
    if (cutFrom !== undefined) {
      [...this.entries.keys()].filter((id) => id >= cutFrom).forEach((id) => this.drop(id));
    }
  }

  /** Removes buttons from cards. */
  private withdraw(which: (remedy: Remedy) => boolean): void {
    for (const entry of this.entries.values()) {
      if ("remedies" in entry && entry.remedies.some(which)) {
        entry.remedies = entry.remedies.filter((remedy) => !which(remedy));
        this.touch(entry);
      }
    }
  }

  private append(kind: TextEntry["kind"], text: string): void {
    if (this.last?.kind === kind && !this.last.done) {
      if (!this.changed.has(this.last.id)) {
        this.changed.set(this.last.id, { shown: this.last.text.length });
      }
      this.last.text += text;
    } else if (text !== "") {
      this.push({ kind, text, done: false });
    }
  }

  private merge(update: ToolCallUpdate): ToolEntry {
    const known = this.entries.get(this.tools.get(update.toolCallId) ?? 0);
    if (known?.kind === "tool") {
      known.call = { ...known.call, ...present(update) };
      this.touch(known);
      return known;
    }
    const call: ToolCall = { title: "", ...present(update), toolCallId: update.toolCallId };
    const entry = this.push({ kind: "tool", call });
    this.tools.set(update.toolCallId, entry.id);
    return entry;
  }

  private setPlan(entries: readonly PlanEntry[]): void {
    const known = this.entries.get(this.plan ?? 0);
    if (known?.kind === "plan") {
      known.entries = entries;
      this.touch(known);
    } else {
      this.plan = this.push({ kind: "plan", entries }).id;
    }
  }

  private push<T extends WithoutId<Entry>>(fields: T): T & { id: number } {
    this.settle();
    if (this.last?.kind === "notice" && this.last.isPassing) {
      this.drop(this.last.id);
    }
    const entry = { ...fields, id: this.ids.next++ };
    this.entries.set(entry.id, entry as Entry);
    this.last = entry as Entry;
    this.touch(this.last);
    return entry;
  }

  /** Text that something else follows is complete. */
  private settle(): void {
    if (this.last !== undefined && "done" in this.last && !this.last.done) {
      this.last.done = true;
      this.touch(this.last);
    }
  }

  private touch(entry: Entry): void {
    this.changed.set(entry.id, "whole");
  }
}

function present(update: ToolCallUpdate): Partial<ToolCall> {
  return Object.fromEntries(Object.entries(update).filter(([, value]) => value !== null && value !== undefined));
}

function toolItem({ id, call, options }: ToolEntry, nameOf: (path: string) => string, job: Job | undefined): Item {
  const location = call.locations?.[0];
  const exit = call._meta?.["tandem/exit"];
  const styles = call._meta?.["tandem/styles"];
  const command = commandOf(call);
  const asks = call.kind === "think" && inputOf(call).question !== undefined;
  return {
    kind: "tool",
    id,
    toolKind: call.kind ?? "other",
    status: call.status ?? "pending",
    title: call.title,
    ...(location && { location: { path: location.path, ...(location.line != null && { line: location.line }) } }),
    diffs: diffs(call).map((diff) => ({ ...diffView(diff), path: nameOf(diff.path) })),
    output: shownOutput(call, asks, options !== undefined),
    ...(asks && { isAsked: true }),
    ...(styles && { styles }),
    ...(command !== undefined && { command }),
    ...(exit && { exit }),
    ...(isInBackground(call) && { background: job ?? {} }),
    ...(options && { question: question(call, options) }),
  };
}

function question(call: ToolCall, options: readonly PermissionOption[]): Question {
  const shown = [call.title, ...(call.locations ?? []).map(({ path }) => path)].join(" ");
  return { options, mixed: mixedScripts(shown) };
}

function commandOf(call: ToolCall): string | undefined {
  const { command } = inputOf(call);
  return call.kind === "execute" && typeof command === "string" ? command : undefined;
}

/** The arguments of the tools that look different here. */
function inputOf({ rawInput }: ToolCall): { command?: unknown; background?: unknown; question?: unknown } {
  return rawInput ?? {};
}

function isInBackground(call: ToolCall): boolean {
  return call._meta?.["tandem/job"] !== undefined || (call.kind === "execute" && inputOf(call).background === true);
}

function diffs(call: ToolCall): DiffContent[] {
  return (call.content ?? []).filter((content) => content.type === "diff");
}

function output(call: ToolCall): string {
  const texts = (call.content ?? []).map((content) => (content.type === "content" ? (content.content.text ?? "") : ""));
  return texts.filter((text) => text !== "").join("\n");
}

/** With a request for permission it is a command, or a note. */
function shownOutput(call: ToolCall, isAsked: boolean, isOpen: boolean): string {
  const text = output(call);
  const exit = call._meta?.["tandem/exit"];
  if (isAsked) {
    return text.replace(/^The user answers: /, "");
  }
  return exit ? withoutExit(text, exit) : isOpen && call.kind !== "execute" ? capitalized(text) : text;
}

function asMarkdown(entry: Entry): string {
  switch (entry.kind) {
    case "user":
      return `## You\n\n${[...entry.context.map(({ label }) => `*${label}*`), entry.text].join("\n\n")}`;
    case "answer":
      return `## tandem\n\n${entry.text}`;
    case "tool":
      return toolMarkdown(entry.call);
    case "plan":
      return entry.entries.map(({ content, status }) => `- [${status === "completed" ? "x" : " "}] ${content}`).join("\n");
    case "notice":
    case "error":
      return `> ${entry.text.replaceAll("\n", "\n> ")}`;
    case "thought":
      return "";
  }
}

function toolMarkdown(call: ToolCall): string {
  const changed = diffs(call).map(({ path, oldText, newText }) => fenced(createTwoFilesPatch(path, path, oldText ?? "", newText), "diff"));
  const said = output(call);
  const exit = call._meta?.["tandem/exit"];
  const how = exit == null ? (call.status ?? "pending") : `exit code ${exit.code ?? "unknown"}, ${duration(exit)}`;
  return [`**${call.title}** (${how})`, ...changed, ...(said === "" ? [] : [fenced(said, "")])].join("\n\n");
}

/** In a fence that is longer than any in the text. */
export function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}
