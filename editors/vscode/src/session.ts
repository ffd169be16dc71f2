/**
 * One conversation: the transcript, the session on the server, its turns and questions. Invariants: no question outlives its turn; a lost server
 * ends the turn but not the conversation.
 */
import { type CancellationToken, type Disposable, EventEmitter } from "vscode";
import { type Failure, failure, isAnswer, StartError } from "./failure";
import type { ChatState, Phase, Picker } from "./messages";
import * as protocol from "./protocol";
import { cancelled, Questions } from "./questions";
import { folder, type Server } from "./server";
import { Transcript } from "./transcript";
import { type Message, type Outcome, Turns } from "./turns";
import { wire } from "./wire";

const endings: Partial<Record<protocol.StopReason, string>> = {
  cancelled: "Stopped.",
  max_tokens: "The answer was cut at the model's output limit. Ask it to go on.",
  max_turn_requests: "Stopped after many steps. Ask it to go on if that is right.",
  refusal: "The model declined to answer.",
};

interface Coming {
  readonly sessionId: string;
  readonly updates: protocol.SessionUpdate[];
  status?: protocol.StatusParams;
}

export class Session implements Disposable {
  transcript = new Transcript();
  private id: Promise<string> | undefined;
  /** What `id` resolved to: updates of any other session are late ones of one that was closed. */
  private current: string | undefined;
  /** The session that lost its server: it goes on with the next one. */
  private kept: string | undefined;
  /** What comes was said before. */
  private isLoading = false;
  /** The conversation that is about to take this one's place, and what was said in it. */
  private coming: Coming | undefined;
  /** What is said meanwhile is said to the one that is there then. */
  private loading: Promise<void> | undefined;
  private turns: Turns;
  private lastMessage: Message | undefined;
  readonly questions = new Questions((id) => this.questionClosed(id));
  private modes: protocol.SessionModes | undefined;
  private configOptions: readonly protocol.ConfigOption[] = [];
  private commands: readonly protocol.AvailableCommand[] = [];
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
  private readonly takenUp = new EventEmitter<void>();
  private readonly returned = new EventEmitter<Message>();
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
  /** A session that was kept is there again, and with it what can be undone. */
  readonly onTakeUp = this.takenUp.event;
  /** A message was not sent on: it is the person's again. */
  readonly onReturn = this.returned.event;
  private readonly subscriptions: Disposable[];

  constructor(private readonly server: Server) {
    this.turns = this.newTurns();
    server.askPermission = (params, token) => this.ask(params, token);
    this.subscriptions = [
      server.onUpdate((params) => this.hear(params)),
      server.onStatus((status) => this.hearStatus(status)),
      server.onEnd(() => this.lost()),
    ];
  }

  get isRunning(): boolean {
    return this.turns.isRunning;
  }

  get state(): Omit<ChatState, "attachments"> {
    return {
      phase: this.phase(),
      message: this.problem?.text ?? this.status?.message ?? "",
      remedies: this.problem?.remedies ?? [],
      waiting: this.turns.waiting.map(({ message, joins }) => ({ text: message.text, context: labels(message), joins })),
      pickers: this.pickers(),
      commands: this.commands.map(({ name, description, input }) => ({ name, description, takesMore: input != null })),
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

  /** Runs a turn to its end, behind the one that runs; failures end up in the transcript. */
  async prompt(message: Message): Promise<void> {
    await this.loading;
    await this.turns.prompt(message);
  }

  /** Says something to the turn that runs. */
  async steer(message: Message): Promise<void> {
    await this.loading;
    await this.turns.steer(message);
  }

  /** Sends the last prompt once more, in place of its error; before the first prompt it starts the server again. */
  async retry(): Promise<void> {
    if (this.isRunning) {
      return;
    }
    if (this.lastMessage === undefined) {
      return this.open();
    }
    this.transcript.dropError();
    await this.turns.prompt(this.lastMessage);
  }

  /** Takes a message back that waits for its turn. */
  takeBack(index: number): void {
    this.turns.takeBack(index);
  }

  async stop(): Promise<void> {
    this.questions.withdraw();
    await this.turns.stop();
  }

  /** Looks at what turns changed, keeps it or takes it back; `undefined` before the first turn. */
  async review(params: protocol.ReviewParams): Promise<protocol.Reviewed | undefined> {
    const sessionId = this.current;
    const reviewed = sessionId === undefined ? undefined : await this.server.request(protocol.review, { sessionId, ...params });
    return sessionId === this.current ? reviewed : undefined; // another conversation's by now
  }

  /** What can stand for the query behind an `@`; nothing while there is no server, and for none is one started. */
  async complete(query: string): Promise<readonly protocol.Completion[]> {
    const sessionId = this.current;
    if (sessionId === undefined) {
      return [];
    }
    const { items } = await this.server.request(protocol.complete, { sessionId, query }).catch(() => ({ items: [] }));
    return items;
  }

  /** The conversation goes on as it was held; with another model or mode configured a new one does. */
  async restart(goesOn = true): Promise<void> {
    await this.server.stop();
    if (!goesOn && this.kept !== undefined) {
      this.kept = undefined;
      this.transcript.notice("For the new settings a new session was begun: what stands above is not in the model's memory.");
    }
    await this.open();
  }

  /** A fresh conversation; the old one ends. */
  async renew(): Promise<void> {
    await this.loading;
    await this.leave();
    await this.open();
  }

  /** The other conversations of this folder that were kept, the last used first. */
  async earlier(): Promise<readonly protocol.KeptSession[]> {
    const current = await this.sessionId();
    const { sessions } = await this.server.request(protocol.listSessions, { cwd: folder() });
    return sessions.filter(({ sessionId }) => sessionId !== current);
  }

  /** Shows a conversation that was kept and goes on with it, in place of this one; which stays where the other cannot be had. */
  async load(sessionId: string): Promise<void> {
    this.loading = Promise.resolve(this.loading).then(() => this.replace(sessionId));
    await this.loading;
  }

  /** Sets the mode or another option of the session, by its id. */
  async pick(id: string, value: string): Promise<void> {
    try {
      await (id === "mode" ? this.pickMode(value) : this.pickOption(id, value));
    } catch (error) {
      this.transcript.notice(failure(error).text);
    }
    this.changed.fire();
  }

  dispose(): void {
    this.questions.withdraw();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
    this.changed.dispose();
    this.grew.dispose();
    this.asked.dispose();
    this.replaced.dispose();
    this.ended.dispose();
    this.forgotten.dispose();
    this.takenUp.dispose();
    this.returned.dispose();
  }

  private newTurns(): Turns {
    return new Turns(
      wire(this.server, () => this.sessionId()),
      {
        began: (message) => this.began(message),
        joined: (message) => this.transcript.ask(message.text, labels(message)),
        ended: (message, outcome) => this.turnEnded(message, outcome),
        returned: (message, error) => this.giveBack(message, error),
        changed: () => this.changed.fire(),
      },
    );
  }

  private began(message: Message): void {
    this.problem = undefined;
    if (message !== this.lastMessage) {
      this.transcript.ask(message.text, labels(message)); // tried once more, it stands there already
    }
    this.lastMessage = message;
  }

  private turnEnded({ text }: Message, outcome: Outcome): void {
    const { transcript } = this;
    transcript.finish();
    if ("error" in outcome) {
      const failed = failure(outcome.error);
      this.problem = outcome.error instanceof StartError ? failed : undefined;
      transcript.fail(failed.text, failed.remedies);
    } else {
      const ending = endings[outcome.stopReason];
      if (ending !== undefined) {
        transcript.notice(ending);
      }
    }
    this.questions.withdraw();
    this.ended.fire(text);
  }

  private giveBack(message: Message, error: unknown): void {
    const why = error === undefined ? "" : ` (${failure(error).text})`;
    this.transcript.notice(`Not sent, and back in the input${why}: ${message.text}`);
    this.returned.fire(message);
  }

  private async pickMode(modeId: string): Promise<void> {
    const sessionId = await this.sessionId();
    await this.server.request(protocol.setMode, { sessionId, modeId });
    this.setMode(modeId);
  }

  private async pickOption(configId: string, value: string): Promise<void> {
    const sessionId = await this.sessionId();
    const { configOptions } = await this.server.request(protocol.setConfigOption, { sessionId, configId, value });
    this.configOptions = configOptions;
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
    const place = { cwd: folder(), mcpServers: [] };
    const { kept } = this;
    if (kept !== undefined) {
      try {
        const resumed = await this.server.request(protocol.resumeSession, { sessionId: kept, ...place });
        this.adopt(kept, resumed);
        this.takenUp.fire();
        return kept;
      } catch (error) {
        if (!isAnswer(error)) {
          throw error; // there is no server, and another one may go on
        }
        this.transcript.notice(`${error.message}: what stands above is no longer in the model's memory.`);
      }
    }
    const created = await this.server.request(protocol.newSession, place);
    this.adopt(created.sessionId, created);
    return created.sessionId;
  }

  private async replace(sessionId: string): Promise<void> {
    const coming: Coming = { sessionId, updates: [] };
    this.coming = coming; // what was said comes before the answer
    try {
      const opened = await this.server.request(protocol.loadSession, { sessionId, cwd: folder(), mcpServers: [] });
      await this.leave(() => this.replay(coming, opened));
      this.takenUp.fire();
    } catch (error) {
      this.transcript.fail(`That session was not opened: ${failure(error).text}`, []);
    } finally {
      this.coming = undefined;
    }
    this.changed.fire();
  }

  private replay({ sessionId, updates, status }: Coming, opened: protocol.OpenedSession): void {
    this.coming = undefined;
    this.id = Promise.resolve(sessionId);
    this.adopt(sessionId, opened);
    this.isLoading = true;
    updates.forEach((update) => this.update(update));
    this.isLoading = false;
    this.transcript.finish();
    if (status !== undefined) {
      this.setStatus(status);
    }
  }

  private adopt(sessionId: string, { modes, configOptions }: protocol.OpenedSession): void {
    this.kept = undefined;
    this.current = sessionId;
    this.modes = modes ?? undefined;
    this.configOptions = configOptions ?? [];
    this.changed.fire();
  }

  /** Ends what runs and clears the view for the next conversation, then closes the session. */
  private async leave(begin: () => void = () => undefined): Promise<void> {
    await this.stop();
    const old = this.id;
    this.forgetSession();
    this.kept = undefined;
    this.turns.abandon();
    this.turns = this.newTurns();
    this.transcript = this.transcript.successor();
    this.lastMessage = undefined;
    begin();
    this.replaced.fire();
    const sessionId = await old?.catch(() => undefined);
    if (sessionId !== undefined) {
      await this.server.request(protocol.closeSession, { sessionId }).catch(() => undefined);
    }
  }

  private async ask({ sessionId, toolCall, options }: protocol.PermissionParams, token: CancellationToken) {
    if (sessionId !== this.current) {
      return cancelled;
    }
    const id = this.transcript.openQuestion(toolCall, options);
    const answer = this.questions.ask(id, options, token);
    this.changed.fire();
    this.asked.fire(toolCall.title ?? "");
    return answer;
  }

  private questionClosed(id: number): void {
    this.transcript.closeQuestion(id);
    this.changed.fire();
  }

  private hear({ sessionId, update }: protocol.UpdateParams): void {
    if (sessionId === this.current) {
      this.update(update);
    } else if (sessionId === this.coming?.sessionId) {
      this.coming.updates.push(update);
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
      case "available_commands_update":
        this.commands = update.availableCommands;
        break;
      case "usage_update":
        this.usage = { used: update.used, size: update.size };
        break;
      case "user_message_chunk":
        if (this.isLoading) {
          this.transcript.ask(update.content.text ?? `(${update.content.type})`, []);
        } else if (update.content.type === "text") {
          this.turns.repeated(update.content.text ?? "");
        }
        return this.grew.fire();
      default:
        this.transcript.apply(update);
        return this.grew.fire();
    }
    this.changed.fire();
  }

  /** Of a session that was left nothing is told any more; one that begins may be told of before its id is known. */
  private hearStatus(status: protocol.StatusParams): void {
    const { sessionId } = status;
    if (sessionId != null && sessionId === this.coming?.sessionId) {
      this.coming.status = status;
    } else if (sessionId == null || this.current === undefined || sessionId === this.current) {
      this.setStatus(status);
    }
  }

  private setStatus(status: protocol.StatusParams): void {
    const isCount = /^queued \d+$/.test(status.message ?? ""); // what waits is shown itself
    this.status = isCount ? { ...status, message: null } : status;
    this.changed.fire();
  }

  private setMode(currentModeId: string): void {
    if (this.modes !== undefined) {
      this.modes = { ...this.modes, currentModeId };
    }
  }

  private lost(): void {
    this.kept = this.transcript.isEmpty ? undefined : (this.current ?? this.kept);
    this.forgetSession();
    this.questions.withdraw();
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

  /** The mode, which says what each choice means, and the other options. */
  private pickers(): Picker[] {
    const { modes } = this;
    const choices = modes?.availableModes.map(({ id, name, description }) => ({ value: id, name, ...(description && { description }) }));
    const others = this.configOptions.filter(({ id, type }) => id !== "mode" && type === "select");
    return [
      ...(modes && choices ? [{ id: "mode", name: "Mode", current: modes.currentModeId, choices }] : []),
      ...others.map(({ id, name, currentValue, options }) => ({ id, name, current: currentValue, choices: options })),
    ];
  }
}

function labels({ attachments }: Message): string[] {
  return attachments.map(({ label }) => label);
}
