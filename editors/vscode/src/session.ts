/**
 * One conversation: its transcript, server session, turns and permission requests. Invariants: no permission request outlives its turn; a lost
 * server ends the turn but not the conversation.
 */
import { type CancellationToken, Disposable, EventEmitter, l10n, workspace } from "vscode";
import { chips } from "./context";
import { Draft } from "./draft";
import { type Failure, failure, isAnswer, sentence, StartError } from "./failure";
import { Jobs } from "./jobs";
import type { ChatState, Phase, Remedy } from "./messages";
import { Options } from "./options";
import * as protocol from "./protocol";
import { Questions } from "./questions";
import { translated } from "./served";
import { folder, type Server } from "./server";
import { toolServers } from "./tools";
import { type Ids, Transcript } from "./transcript";
import { triedText } from "./trial";
import { attachments, type Message, type Outcome, Turns } from "./turns";
import { wire } from "./wire";

export type SessionEvent =
  /** `state` changed, and perhaps the transcript. */
  | { readonly type: "changed" }
  /** The transcript changed; often. */
  | { readonly type: "grew" }
  /** A permission request was opened. */
  | { readonly type: "asked"; readonly title: string; readonly session: Session }
  /** A turn began. */
  | { readonly type: "began" }
  /** A turn ended. */
  | { readonly type: "ended"; readonly message: Message }
  /** The server's session is gone, and with it what could be undone. */
  | { readonly type: "forgotten" }
  /** There is more to undo: a saved session was loaded, or an edit in place was kept. */
  | { readonly type: "takenUp" }
  /** A message was not sent and returned to the draft. */
  | { readonly type: "returned" };

export class Session implements Disposable {
  readonly transcript: Transcript;
  /** The draft. */
  draft = new Draft();
  /** Its background commands. */
  readonly jobs: Jobs;
  readonly questions = new Questions((id, result) => this.questionClosed(id, result));
  /** Its title: the first message, or the server's title for it. */
  title = "";
  private id: Promise<string> | undefined;
  /** What `id` resolved to. */
  current: string | undefined;
  /** The session that lost its server and continues with the next one. */
  private lostId: string | undefined;
  /** Updates repeat a saved conversation. */
  private isLoading = false;
  /** Updates of sessions whose id is not known yet, while this one begins. */
  private early: (() => void)[] | undefined;
  readonly turns: Turns;
  private lastMessage: Message | undefined;
  /** The instructions of edits in place that were kept and are not shown yet. */
  private readonly kept: Message[] = [];
  /** What was sent, by the id of its item. */
  private readonly messages = new Map<number, Message>();
  private readonly options = new Options();
  private commands: readonly protocol.AvailableCommand[] = [];
  private status: protocol.StatusParams | undefined;
  /** Of the session, when the latest turn began. */
  private costBefore: number | undefined;
  /** Why there is no server. */
  private problem: Failure | undefined;
  private readonly happened = new EventEmitter<SessionEvent>();
  readonly onEvent = this.happened.event;
  private readonly subscriptions: Disposable;

  constructor(
    private readonly server: Server,
    ids: Ids,
  ) {
    this.transcript = new Transcript(ids, (path) => workspace.asRelativePath(path));
    this.turns = this.newTurns();
    this.jobs = new Jobs({ list: () => this.listJobs(), output: (id, offset) => this.jobOutput(id, offset) }, (jobs) => {
      this.transcript.setJobs(jobs);
      this.changed();
    });
    this.subscriptions = Disposable.from(
      server.onUpdate((params) => this.receive(params.sessionId, () => this.update(params.update))),
      server.onStatus((status) => this.receive(status.sessionId ?? undefined, () => this.setStatus(status))),
      server.onTurn((turn) => this.receive(turn.sessionId, () => this.turnChanged(turn))),
      server.onJobs(({ sessionId, jobs }) => this.receive(sessionId, () => this.jobs.take(jobs))),
      server.onEnd(() => this.lost()),
    );
  }

  /** The id to load it with. */
  get savedId(): string | undefined {
    return this.current ?? this.lostId;
  }

  /** What no server has: the draft and, before there is a session, the message that was sent. */
  get unsent(): Message | undefined {
    const { lastMessage, savedId } = this;
    const all = new Draft();
    [savedId === undefined ? lastMessage : undefined, this.draft.unsent].forEach((one) => one && all.add(one));
    return all.unsent;
  }

  /** Whether it has had a prompt. */
  get isBegun(): boolean {
    return this.title !== "";
  }

  get isRunning(): boolean {
    return this.turns.isRunning;
  }

  get state(): Omit<ChatState, "attachments" | "isEditing" | "conversations" | "looking"> {
    const { costBefore, status: { usage } = {} } = this;
    return {
      phase: this.phase(),
      message: this.problem?.text ?? (this.status?.message || this.runningWords()),
      remedies: this.problem?.remedies ?? [],
      waiting: this.turns.waiting.map(({ message, joins }) => ({ text: message.text, context: chips(message.attachments), joins })),
      jobs: this.jobs.shown,
      pickers: this.options.pickers,
      commands: this.commands.map(({ name, description, input }) => ({ name, description, takesMore: input != null })),
      ...(usage && { usage: { ...usage, ...(costBefore !== undefined && { turnCost: (usage.cost ?? 0) - costBefore }) } }),
    };
  }

  /** Starts the server and the session ahead of the first prompt, so that the mode and the model are known. */
  async open(): Promise<void> {
    try {
      await this.sessionId();
      this.problem = undefined;
    } catch (error) {
      this.problem = failure(error);
    }
    this.changed();
  }

  /** Restores a saved conversation and continues it. */
  async load(sessionId: string): Promise<void> {
    this.current = sessionId;
    this.isLoading = true;
    try {
      const opened = await this.server.request(protocol.loadSession, { sessionId, ...place() });
      this.id = Promise.resolve(sessionId);
      this.adopt(sessionId, opened);
      this.transcript.finish();
      this.transcript.forgetJobs();
    } catch (error) {
      this.current = undefined;
      throw error;
    } finally {
      this.isLoading = false;
    }
    this.happened.fire({ type: "takenUp" });
  }

  /** Runs a turn after those already queued; failures are shown in the transcript. */
  async prompt(message: Message): Promise<void> {
    await this.turns.prompt(message);
  }

  /** Runs a card's action if the card still offers it. */
  async remedy(id: number, remedy: "retry" | "continue"): Promise<void> {
    if (this.isRunning || !this.transcript.offers(id, remedy)) {
      return;
    }
    if (remedy === "continue") {
      return this.prompt({ text: l10n.t("Continue."), attachments: [] });
    }
    this.transcript.drop(id);
    if (this.lastMessage !== undefined) {
      await this.turns.prompt(this.lastMessage);
    }
  }

  /** The first character of a prompt was typed: a local server can start to process what precedes it. */
  async typingBegan(): Promise<void> {
    const sessionId = this.current;
    if (sessionId !== undefined) {
      await this.server.notify(protocol.didStartTyping, { sessionId });
    }
  }

  async stop(): Promise<void> {
    this.questions.withdraw();
    await this.turns.stop();
  }

  /** Stops, and resolves when no turn runs any more. */
  async stopped(): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      const subscription = this.onEvent(() => {
        if (!this.isRunning) {
          subscription.dispose();
          resolve();
        }
      });
    });
    await this.stop();
    await ended;
  }

  /** Reviews what turns changed, keeps or undoes it; `undefined` before the first turn. */
  async review(params: protocol.ReviewParams): Promise<protocol.Reviewed | undefined> {
    const sessionId = this.current;
    const reviewed = sessionId === undefined ? undefined : await this.server.request(protocol.review, { sessionId, ...params });
    if (sessionId !== this.current) {
      return undefined; // another session's by now
    }
    this.transcript.cut(reviewed?.cutFrom ?? undefined);
    if ((params.action === "undo" || params.action === "redo") && reviewed?.message != null) {
      const back = params.action === "redo" ? "undo" : reviewed.canRedo ? "redo" : undefined;
      this.transcript.reverted(sentence(reviewed.message), back);
    }
    this.happened.fire({ type: "grew" });
    return reviewed;
  }

  /** Makes an edit in place, which was kept, a turn of this conversation. */
  async keepEdit(message: Message, edit: Omit<protocol.KeepInline, "sessionId" | "instruction">): Promise<void> {
    const sessionId = await this.sessionId();
    this.kept.push(message);
    try {
      await this.server.request(protocol.keepInline, { sessionId, instruction: message.text, ...edit });
    } finally {
      this.kept.splice(0, this.kept.indexOf(message) + 1);
    }
    if (!this.isRunning) {
      this.transcript.finish();
    }
    this.happened.fire({ type: "takenUp" });
    this.changed();
  }

  /** A message that can be edited or sent again, and its turn. */
  sent(id: number): { message: Message; turn: number } | undefined {
    const [message, turn] = [this.messages.get(id), this.transcript.turnOf(id)];
    return message === undefined || turn === undefined ? undefined : { message, turn };
  }

  /** What a background command printed, from an offset on; `colors` with the sequences that select them. */
  jobOutput(id: number, offset: number, colors = false): Promise<protocol.JobOutput> {
    return this.server.request(protocol.jobOutput, { sessionId: this.current ?? "", id, offset, colors });
  }

  async stopJob(id: number): Promise<void> {
    await this.server.request(protocol.stopJob, { sessionId: this.current ?? "", id });
  }

  /** The address of a port of a background command, once the user has agreed to open it. */
  async openPort(id: number, port: number): Promise<string | undefined> {
    const { url } = await this.server.request(protocol.openPort, { sessionId: this.current ?? "", id, port });
    return url ?? undefined;
  }

  /** Moves an item's command to the background. */
  async runInBackground(item: number): Promise<void> {
    await this.server.request(protocol.runInBackground, { sessionId: this.current ?? "", toolCallId: this.transcript.callOf(item) ?? "" });
  }

  /** Completions of the query after an `@`; does not start a server. */
  async complete(query: string): Promise<readonly protocol.Completion[]> {
    const sessionId = this.current;
    if (sessionId === undefined) {
      return [];
    }
    const { items } = await this.server.request(protocol.complete, { sessionId, query }).catch(() => ({ items: [] }));
    return items;
  }

  /** Restarts the server. If the configured model or mode changed, a new session begins; otherwise this one continues. */
  async reopen(goesOn: boolean): Promise<void> {
    if (!goesOn && this.lostId !== undefined) {
      this.lostId = undefined;
      if (this.transcript.isAnswered) {
        this.transcript.notice(l10n.t("Settings changed: a new session has started. The model no longer sees the messages above."));
      }
    }
    await this.open();
    if (this.problem === undefined && this.options.haveModel) {
      this.transcript.settleSetup(l10n.t("tandem is set up now."));
      this.changed();
    }
  }

  /** Sets the mode or another option of the session, by its id. */
  async pick(id: string, value: string): Promise<void> {
    try {
      await (id === "mode" ? this.pickMode(value) : this.pickOption(id, value));
      this.changed();
    } catch (error) {
      this.notice(failure(error).text);
    }
  }

  /** Adds a notice to the chat. */
  notice(text: string): void {
    this.transcript.notice(text);
    this.changed();
  }

  /** Stops the turn, returns unsent messages and closes the session, which stays saved. */
  async close(): Promise<void> {
    await this.stop();
    this.turns.abandon();
    const sessionId = this.current;
    this.dispose();
    if (sessionId !== undefined) {
      await this.server.request(protocol.closeSession, { sessionId }).catch(() => undefined);
    }
  }

  dispose(): void {
    this.questions.withdraw();
    this.jobs.dispose();
    this.subscriptions.dispose();
    this.happened.dispose();
  }

  async askPermission(params: protocol.PermissionParams, token: CancellationToken): Promise<protocol.PermissionResult> {
    const { toolCall } = params;
    const options = params.options.map((option) => ({ ...option, name: translated(option.name) }));
    const id = this.transcript.openQuestion(toolCall, options);
    const answer = this.questions.ask(id, options, token);
    this.changed();
    this.happened.fire({ type: "asked", title: toolCall.title ?? "", session: this });
    return answer;
  }

  private newTurns(): Turns {
    return new Turns(
      wire(this.server, () => this.sessionId()),
      {
        began: (message) => this.began(message),
        joined: (message) => this.show(message),
        ended: (message, outcome) => this.turnEnded(message, outcome),
        returned: (message, error) => this.giveBack(message, error),
        changed: () => this.changed(),
      },
    );
  }

  private changed(): void {
    this.happened.fire({ type: "changed" });
  }

  private began(message: Message): void {
    this.problem = undefined;
    this.title ||= message.text;
    if (message !== this.lastMessage) {
      this.show(message); // on a retry, it is already there
    }
    this.lastMessage = message;
    this.costBefore = this.status?.usage?.cost ?? 0;
    this.jobs.settle();
    this.happened.fire({ type: "began" });
  }

  private show(message: Message): void {
    this.messages.set(this.transcript.ask(message.text, chips(message.attachments)), message);
  }

  private turnChanged(turn: protocol.Turn): void {
    this.turns.receive(turn);
    if (turn.state === "running" && typeof turn.turn === "number") {
      this.transcript.number(turn.turn);
      this.happened.fire({ type: "grew" });
    }
  }

  private turnEnded(message: Message, outcome: Outcome): void {
    const { transcript } = this;
    transcript.finish();
    if ("error" in outcome) {
      const failed = failure(outcome.error);
      this.problem = outcome.error instanceof StartError ? failed : undefined;
      transcript.fail(failed.text, failed.remedies, failed.details);
    } else {
      const { text, remedies } = ending(outcome.stopReason) ?? {};
      if (text !== undefined) {
        transcript.notice(text, remedies);
      }
    }
    this.questions.withdraw();
    this.happened.fire({ type: "ended", message });
  }

  private giveBack(message: Message, error: unknown): void {
    const why = error === undefined ? undefined : l10n.t("Not sent; moved back to the input: {0}", failure(error).text);
    if (why !== undefined && why !== this.transcript.lastNotice) {
      this.transcript.notice(why); // once for all that waited
    }
    this.draft.add(message);
    this.happened.fire({ type: "returned" });
  }

  private async pickMode(modeId: string): Promise<void> {
    const sessionId = await this.sessionId();
    await this.server.request(protocol.setMode, { sessionId, modeId });
    this.options.mode = modeId;
  }

  private async pickOption(configId: string, value: string): Promise<void> {
    const sessionId = await this.sessionId();
    const { configOptions } = await this.server.request(protocol.setConfigOption, { sessionId, configId, value });
    this.options.configured = configOptions;
  }

  private async listJobs(): Promise<readonly protocol.Job[]> {
    const { jobs } = await this.server.request(protocol.jobs, { sessionId: this.current ?? "" });
    return jobs;
  }

  private sessionId(): Promise<string> {
    this.id ??= this.create().catch((error: unknown) => {
      this.id = undefined;
      throw error;
    });
    return this.id;
  }

  /** The session that lost its server, else a new one. */
  private async create(): Promise<string> {
    const { lostId } = this;
    if (lostId !== undefined) {
      try {
        const resumed = await this.server.request(protocol.resumeSession, { sessionId: lostId, ...place() });
        this.adopt(lostId, resumed);
        this.happened.fire({ type: "takenUp" });
        return lostId;
      } catch (error) {
        if (!isAnswer(error)) {
          throw error; // there is no server, and another one may continue
        }
        this.transcript.notice(
          l10n.t("This session could not be resumed: {0} The model no longer sees the messages above.", sentence(error.message)),
        );
      }
    }
    this.early = [];
    try {
      const created = await this.server.request(protocol.newSession, place());
      this.adopt(created.sessionId, created);
      this.early.forEach((say) => say());
      return created.sessionId;
    } finally {
      this.early = undefined;
    }
  }

  private adopt(sessionId: string, opened: protocol.OpenedSession): void {
    this.lostId = undefined;
    this.current = sessionId;
    this.options.take(opened);
    this.changed();
    if (!this.transcript.isEmpty) {
      this.happened.fire({ type: "began" }); // its message came before its id
    }
  }

  private questionClosed(id: number, { outcome }: protocol.PermissionResult): void {
    this.transcript.closeQuestion(id, outcome.outcome === "selected" ? outcome.optionId : undefined);
    this.changed();
  }

  /** Handles updates of this session only; those that arrive before its id is known wait for it. */
  private receive(sessionId: string | undefined, take: () => void): void {
    if (sessionId === undefined || sessionId === this.current) {
      take();
    } else {
      this.early?.push(() => sessionId === this.current && take());
    }
  }

  private update(update: protocol.SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "current_mode_update":
        this.options.mode = update.currentModeId;
        break;
      case "config_option_update":
        this.options.configured = update.configOptions;
        break;
      case "available_commands_update":
        this.commands = update.availableCommands;
        break;
      case "session_info_update":
        this.title = update.title || this.title;
        this.markCut(update._meta?.["tandem/stopped"]);
        break;
      case "user_message_chunk":
        this.repeated(update.content.text ?? "", update._meta);
        return this.happened.fire({ type: "grew" });
      default:
        this.transcript.apply(update);
        return this.happened.fire({ type: "grew" });
    }
    this.changed();
  }

  /** A turn of a saved conversation that did not end by itself. */
  private markCut(reason: string | undefined): void {
    const { text, remedies } = (reason !== undefined && ending(reason)) || {};
    if (text !== undefined) {
      this.transcript.finish();
      this.transcript.notice(text, remedies);
    }
  }

  /** Prompts of a saved conversation, and the instruction of an edit in place; other prompts come from the turns. */
  private repeated(text: string, meta: protocol.MessageMeta): void {
    const turn = meta?.["tandem/turn"];
    const kept = turn === undefined ? undefined : this.kept.shift();
    if (!this.isLoading && kept === undefined) {
      return;
    }
    this.title ||= text;
    this.show(kept ?? { text, attachments: attachments(meta?.["tandem/attached"] ?? []) });
    if (turn !== undefined) {
      this.transcript.number(turn);
    }
  }

  /** Notices about a turn or the session stay in the chat; waiting or a missing model is shown elsewhere. */
  private setStatus(status: protocol.StatusParams): void {
    const { state, message } = status;
    const isNotice = state === "running" || state === "ready";
    this.status = isNotice ? { ...status, message: null } : status;
    if (isNotice && message) {
      this.transcript.notice(sentence(message), [], status.passing);
    }
    this.changed();
  }

  private lost(): void {
    this.lostId = this.transcript.isEmpty ? undefined : (this.current ?? this.lostId);
    this.id = undefined;
    this.current = undefined;
    this.status = undefined;
    this.jobs.forget();
    this.transcript.forgetJobs();
    this.questions.withdraw();
    this.happened.fire({ type: "forgotten" });
    this.changed();
  }

  private runningWords(): string {
    const isTrial = this.isRunning && triedText(this.lastMessage?.text ?? "") !== undefined;
    return isTrial ? l10n.t("Working on a private copy…") : "";
  }

  private phase(): Phase {
    if (this.questions.areOpen) {
      return "waiting";
    }
    if (this.isRunning) {
      return "running";
    }
    if (this.problem !== undefined) {
      return "stopped";
    }
    if (this.current === undefined) {
      return "starting";
    }
    return this.status?.state === "no_model" ? "no_model" : "ready";
  }
}

function place() {
  return { cwd: folder(), mcpServers: toolServers() };
}

/** The notice for a turn that did not end normally. */
function ending(reason: string): { text: string; remedies: readonly Remedy[] } | undefined {
  switch (reason) {
    case "cancelled":
      return { text: l10n.t("Stopped."), remedies: ["continue"] };
    case "interrupted":
      return { text: l10n.t("Interrupted: tandem ended before the answer was complete."), remedies: ["continue"] };
    case "error":
      return { text: l10n.t("This turn failed."), remedies: ["continue"] };
    case "max_tokens":
      return { text: l10n.t("The answer was cut off at the model's output limit."), remedies: ["continue"] };
    case "max_turn_requests":
      return { text: l10n.t("Stopped: too many steps."), remedies: ["continue"] };
    case "refusal":
      return { text: l10n.t("The model declined to answer."), remedies: [] };
    default:
      return undefined;
  }
}
