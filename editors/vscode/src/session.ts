/**
 * One conversation: the transcript, the session on the server and the turn in progress. Invariants: at most one prompt runs; every permission
 * question is answered exactly once, with "cancelled" when its turn ends first; a lost server ends the turn but not the transcript.
 */
import { type CancellationToken, type Disposable, EventEmitter } from "vscode";
import type { Attachment } from "./context";
import { type Failure, failure, StartError } from "./failure";
import type { ChatState, Phase, Picker } from "./messages";
import * as protocol from "./protocol";
import { folder, type Server } from "./server";
import { Transcript } from "./transcript";

interface Turn {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

type Answer = (result: protocol.PermissionResult) => void;

const cancelled: protocol.PermissionResult = { outcome: { outcome: "cancelled" } };
const endings: Partial<Record<protocol.StopReason, string>> = {
  cancelled: "Stopped.",
  max_tokens: "The answer was cut at the model's output limit. Ask it to go on.",
  max_turn_requests: "Stopped after many steps. Ask it to go on if that is right.",
  refusal: "The model declined to answer.",
};

export class Session implements Disposable {
  transcript = new Transcript();
  private id: Promise<string> | undefined;
  /** What `id` resolved to: updates of any other session are late ones of one that was closed. */
  private current: string | undefined;
  private running = false;
  private lastTurn: Turn | undefined;
  private queued: Turn[] = [];
  private readonly questions = new Map<number, { options: readonly protocol.PermissionOption[]; answer: Answer }>();
  private modes: protocol.SessionModes | undefined;
  private configOptions: readonly protocol.ConfigOption[] = [];
  private usage: { used: number; size: number } | undefined;
  private status: protocol.StatusParams | undefined;
  /** Why there is no server. */
  private problem: Failure | undefined;
  private readonly changed = new EventEmitter<void>();
  private readonly grew = new EventEmitter<void>();
  private readonly asked = new EventEmitter<string>();
  private readonly replaced = new EventEmitter<void>();
  private readonly ended = new EventEmitter<string>();
  private readonly forgotten = new EventEmitter<void>();
  /** `state` changed, and perhaps the transcript. */
  readonly onChange = this.changed.event;
  /** The transcript changed; often. */
  readonly onGrow = this.grew.event;
  /** A permission question was opened; its title. */
  readonly onQuestion = this.asked.event;
  /** The transcript is another one. */
  readonly onReplace = this.replaced.event;
  /** A turn ended; what was asked. */
  readonly onTurnEnd = this.ended.event;
  /** The server's session is gone, and with it what could be undone. */
  readonly onForget = this.forgotten.event;
  private readonly subscriptions: Disposable[];

  constructor(private readonly server: Server) {
    server.askPermission = (params, token) => this.ask(params, token);
    this.subscriptions = [
      server.onUpdate(({ sessionId, update }) => sessionId === this.current && this.update(update)),
      server.onStatus((status) => this.setStatus(status)),
      server.onEnd(() => this.lost()),
    ];
  }

  get isRunning(): boolean {
    return this.running;
  }

  get state(): Omit<ChatState, "attachments"> {
    const models = this.configOptions.find(({ id, category }) => category === "model" || id === "model");
    const modes = this.modePicker();
    return {
      phase: this.phase(),
      message: this.problem?.text ?? this.status?.message ?? "",
      remedies: this.problem?.remedies ?? [],
      queued: this.queued.map(({ text }) => text),
      ...(modes && { modes }),
      ...(models && { models: { current: models.currentValue, choices: models.options } }),
      ...(this.usage && { usage: this.usage }),
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
    this.changed.fire();
  }

  /** Runs a turn to its end, or lets it follow the one that runs; failures end up in the transcript. */
  async prompt(text: string, attachments: readonly Attachment[]): Promise<void> {
    if (this.running) {
      this.queued.push({ text, attachments });
      return this.changed.fire();
    }
    this.transcript.ask(
      text,
      attachments.map(({ label }) => label),
    );
    await this.run({ text, attachments });
  }

  /** Sends the last prompt once more, in place of its error; before the first prompt it starts the server again. */
  async retry(): Promise<void> {
    if (this.running) {
      return;
    }
    if (this.lastTurn === undefined) {
      return this.open();
    }
    this.transcript.dropError();
    await this.run(this.lastTurn);
  }

  unqueue(index: number): void {
    this.queued.splice(index, 1);
    this.changed.fire();
  }

  async stop(): Promise<void> {
    this.answerAll();
    const sessionId = await this.id?.catch(() => undefined);
    if (this.running && sessionId !== undefined) {
      await this.server.notify(protocol.cancel, { sessionId });
    }
  }

  /** Looks at what turns changed, keeps it or takes it back; `undefined` before the first turn. */
  async review(params: protocol.ReviewParams): Promise<protocol.Reviewed | undefined> {
    const sessionId = this.current;
    return sessionId === undefined ? undefined : this.server.request(protocol.review, { sessionId, ...params });
  }

  answer(id: number, optionId: string): void {
    this.close(id, { outcome: { outcome: "selected", optionId } });
  }

  /** Answers the oldest question that has such an option. */
  answerFirst(kind: "allow_once" | "reject_once"): void {
    for (const [id, { options }] of this.questions) {
      const option = options.find((candidate) => candidate.kind === kind);
      if (option !== undefined) {
        this.answer(id, option.optionId);
        return;
      }
    }
  }

  async restart(): Promise<void> {
    await this.server.stop();
    await this.open();
  }

  /** A fresh conversation; the old one ends. */
  async renew(): Promise<void> {
    await this.stop();
    const old = this.id;
    this.forgetSession();
    this.transcript = new Transcript();
    this.lastTurn = undefined;
    this.queued = [];
    this.replaced.fire();
    const sessionId = await old?.catch(() => undefined);
    if (sessionId !== undefined) {
      await this.server.request(protocol.closeSession, { sessionId }).catch(() => undefined);
    }
    await this.open();
  }

  async pick(what: "mode" | "model", value: string): Promise<void> {
    try {
      await (what === "mode" ? this.pickMode(value) : this.pickModel(value));
    } catch (error) {
      this.transcript.notice(failure(error).text);
    }
    this.changed.fire();
  }

  dispose(): void {
    this.answerAll();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
    this.changed.dispose();
    this.grew.dispose();
    this.asked.dispose();
    this.replaced.dispose();
    this.ended.dispose();
    this.forgotten.dispose();
  }

  private async run(turn: Turn): Promise<void> {
    const { transcript } = this;
    this.lastTurn = turn;
    this.running = true;
    this.problem = undefined;
    this.changed.fire();
    try {
      const sessionId = await this.sessionId();
      const { stopReason } = await this.server.request(protocol.prompt, { sessionId, prompt: blocks(turn) });
      const ending = endings[stopReason];
      transcript.finish();
      if (ending !== undefined) {
        transcript.notice(ending);
        this.dropQueue();
      }
    } catch (error) {
      const failed = failure(error);
      this.problem = error instanceof StartError ? failed : undefined;
      transcript.finish();
      transcript.fail(failed.text, failed.remedies);
      this.dropQueue();
    } finally {
      this.answerAll();
      this.running = false;
      this.changed.fire();
      this.ended.fire(turn.text);
    }
    const next = this.queued.shift();
    if (next !== undefined) {
      await this.prompt(next.text, next.attachments);
    }
  }

  /** What was meant to follow a turn that did not go well is not sent behind the person's back. */
  private dropQueue(): void {
    for (const { text } of this.queued.splice(0)) {
      this.transcript.notice(`Not sent: ${text}`);
    }
  }

  private async pickMode(modeId: string): Promise<void> {
    const sessionId = await this.sessionId();
    await this.server.request(protocol.setMode, { sessionId, modeId });
    this.setMode(modeId);
  }

  private async pickModel(value: string): Promise<void> {
    const sessionId = await this.sessionId();
    const { configOptions } = await this.server.request(protocol.setConfigOption, { sessionId, configId: "model", value });
    this.configOptions = configOptions;
  }

  private sessionId(): Promise<string> {
    this.id ??= this.create().catch((error: unknown) => {
      this.id = undefined;
      throw error;
    });
    return this.id;
  }

  private async create(): Promise<string> {
    const created = await this.server.request(protocol.newSession, { cwd: folder(), mcpServers: [] });
    this.modes = created.modes ?? undefined;
    this.configOptions = created.configOptions ?? [];
    this.current = created.sessionId;
    this.changed.fire();
    return created.sessionId;
  }

  private async ask({ sessionId, toolCall, options }: protocol.PermissionParams, token: CancellationToken) {
    if (sessionId !== this.current) {
      return cancelled;
    }
    const id = this.transcript.openQuestion(toolCall, options);
    return new Promise<protocol.PermissionResult>((answer) => {
      this.questions.set(id, { options, answer });
      token.onCancellationRequested(() => this.close(id, cancelled));
      this.changed.fire();
      this.asked.fire(toolCall.title ?? "");
    });
  }

  private close(id: number, result: protocol.PermissionResult): void {
    const question = this.questions.get(id);
    if (question !== undefined) {
      this.questions.delete(id);
      this.transcript.closeQuestion(id);
      question.answer(result);
      this.changed.fire();
    }
  }

  private answerAll(): void {
    for (const id of [...this.questions.keys()]) {
      this.close(id, cancelled);
    }
  }

  private update(update: protocol.SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "current_mode_update":
        this.setMode(update.currentModeId);
        break;
      case "config_option_update":
        this.configOptions = update.configOptions;
        break;
      case "usage_update":
        this.usage = { used: update.used, size: update.size };
        break;
      default:
        this.transcript.apply(update);
        return this.grew.fire();
    }
    this.changed.fire();
  }

  private setStatus(status: protocol.StatusParams): void {
    this.status = status;
    this.changed.fire();
  }

  private setMode(currentModeId: string): void {
    if (this.modes !== undefined) {
      this.modes = { ...this.modes, currentModeId };
    }
  }

  private lost(): void {
    this.forgetSession();
    this.answerAll();
    if (!this.transcript.isEmpty) {
      this.transcript.notice("The server was restarted or ended: what stands above is no longer in the model's memory.");
    }
    this.changed.fire();
  }

  private forgetSession(): void {
    this.id = undefined;
    this.current = undefined;
    this.status = undefined;
    this.usage = undefined;
    this.forgotten.fire();
  }

  private phase(): Phase {
    if (this.questions.size > 0) {
      return "waiting";
    }
    if (this.running) {
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

  private modePicker(): Picker | undefined {
    const choices = this.modes?.availableModes.map(({ id, name, description }) => ({
      value: id,
      name,
      ...(description && { description }),
    }));
    return this.modes && choices && { current: this.modes.currentModeId, choices };
  }
}

function blocks({ text, attachments }: Turn): protocol.ContentBlock[] {
  return [...attachments.map(({ block }) => block), { type: "text", text }];
}
