/**
 * The open conversations of this window, which are restored after a reload.
 * Invariant: exactly one is shown; others may run in the background.
 */
import { isDeepStrictEqual } from "node:util";
import { type Disposable, EventEmitter, l10n, window, workspace } from "vscode";
import { Draft } from "./draft";
import { failure } from "./failure";
import type { Memory } from "./memory";
import type { ConversationLabel } from "./messages";
import * as protocol from "./protocol";
import { cancelled } from "./questions";
import { folder, type Server } from "./server";
import { Session, type SessionEvent } from "./session";
import { type Ids, START_ELSEWHERE } from "./transcript";
import { withoutTry } from "./trial";
import type { Message } from "./turns";

const OPEN = "tandem.conversations";
const NAMES = "tandem.names";
/** At most this many stay open; beyond that, the oldest idle one is closed and stays saved. */
const MAX_OPEN = 8;

/** How long a server that is restarted may take to end its turns, in milliseconds. */
const STOP_MS = 2000;
/** How long after the last keystroke a draft is saved, in milliseconds. */
const REST_MS = 200;

/** The prompts of the turns that have something to review: a turn that was cut off is no longer in the saved conversation. */
type Pending = Readonly<Record<number, string | undefined>>;

interface Remembered {
  readonly current?: string;
  /** The draft of a new conversation that was shown. */
  readonly unsent?: Message;
  readonly open: readonly { readonly id: string; readonly title: string; readonly pending?: Pending; readonly unsent?: Message }[];
}

/** An open conversation; one restored after a reload has no session until it is shown. */
interface Open {
  session?: Session;
  readonly id?: string;
  readonly title: string;
  /** Its turn ended while another one was shown. */
  isNews: boolean;
  /** It has something to review. */
  pending?: Pending | undefined;
  /** The draft before the window was reloaded. */
  readonly unsent?: Message;
}

export class Conversations implements Disposable {
  current: Session;
  /** In the order in which they were opened. */
  private open: Open[];
  private readonly ids: Ids = { next: 1 };
  private readonly happened = new EventEmitter<SessionEvent>();
  private readonly any = new EventEmitter<{ readonly session: Session; readonly event: SessionEvent }>();
  private readonly elsewhere = new EventEmitter<void>();
  private readonly switched = new EventEmitter<void>();
  /** Of the conversation that is shown. */
  readonly onEvent = this.happened.event;
  /** Of all conversations. */
  readonly onAny = this.any.event;
  /** A conversation that is not shown changed its state. */
  readonly onElsewhere = this.elsewhere.event;
  /** Another conversation is shown. */
  readonly onSwitch = this.switched.event;
  private restored: Promise<void> | undefined;
  private restoring = false;
  private switching: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: Server,
    private readonly memory: Memory,
  ) {
    this.current = this.begin();
    restoreDraft(this.current, this.remembered().unsent);
    this.open = [{ session: this.current, title: "", isNews: false }];
    server.askPermission = async (params, token) => {
      const session = this.find(params.sessionId);
      const answer = (await session?.askPermission(params, token)) ?? cancelled;
      if (answer.outcome.outcome === "selected" && answer.outcome.optionId === START_ELSEWHERE) {
        this.startPlan(params.toolCall.locations?.[0]?.path ?? "").catch((error: unknown) => session?.notice(failure(error).text));
      }
      return answer;
    };
  }

  get sessions(): Session[] {
    return this.open.flatMap(({ session }) => session ?? []);
  }

  /** How many wait for an answer. */
  get asking(): number {
    return this.sessions.filter(({ questions }) => questions.areOpen).length;
  }

  get isRunning(): boolean {
    return this.sessions.some((session) => session.isRunning);
  }

  /** Whether changes were pending review when the window was closed. */
  get arePending(): boolean {
    return this.remembered().open.some(({ pending }) => pending);
  }

  get labels(): ConversationLabel[] {
    return this.open.map(({ session, title, isNews }) => ({
      title: this.nameOf(session?.current) ?? withoutTry(session?.title || title),
      isCurrent: session === this.current,
      state: stateOf(session, isNews),
    }));
  }

  /** Restores what was open, the first time, and starts the server and the session. */
  async start(): Promise<void> {
    await this.restoredOnce();
    await this.current.open();
  }

  /** The session that is shown once the open ones are restored; the previous one is no longer shown then. */
  async shown(): Promise<Session> {
    await this.restoredOnce();
    return this.current;
  }

  /** Opens a new conversation with the current configuration; the others continue. It replaces one without prompts. */
  async renew(): Promise<void> {
    await (await this.showNew()).open();
  }

  /** Its session at the server is not open yet. */
  private async showNew(): Promise<Session> {
    if (this.current.transcript.isEmpty) {
      await this.restoredOnce(); // else what is restored later would take its place
    }
    await this.switching;
    const before = this.current;
    const session = this.begin();
    this.open.push({ session, title: "", isNews: false });
    if (before.transcript.isEmpty) {
      [session.draft, before.draft] = [before.draft, session.draft];
      void before.close();
    }
    this.show(session);
    return session;
  }

  /** Opens a conversation that carries out the plan in a file, as it is in its editor. An empty one would be closed when another is shown. */
  private async startPlan(path: string): Promise<void> {
    const plan = (await workspace.openTextDocument(path)).getText();
    const session = await this.showNew();
    await session.prompt({ text: `Carry out this plan:\n\n${plan}`, attachments: [] });
  }

  /** Shows a conversation, if it is still open. */
  reveal(session: Session): void {
    const one = this.open.find((other) => other.session === session);
    if (one !== undefined) {
      one.isNews = false;
      this.show(session);
    }
  }

  /** Shows an open conversation, by its place. */
  async select(index: number): Promise<void> {
    const one = this.open[index];
    if (one?.session !== undefined) {
      this.reveal(one.session);
    } else if (one?.id !== undefined) {
      await this.load(one.id);
    }
  }

  /** Shows and continues a saved conversation; if it cannot be loaded, the current one stays. */
  async load(sessionId: string): Promise<void> {
    this.switching = this.switching.then(() => this.replace(sessionId));
    await this.switching;
  }

  /** Asks first where something would end, or leave the list of changes. */
  async close(index: number): Promise<void> {
    const one = this.open[index];
    const hasDraft = one?.session === undefined ? one?.unsent !== undefined : !one.session.draft.isEmpty;
    const words = [
      one?.session?.isRunning === true && l10n.t("Closing this session stops its turn."),
      one?.pending !== undefined && l10n.t("This session has changes to review."),
      hasDraft && l10n.t("Closing this session discards its unsent prompt."),
    ]
      .filter(Boolean)
      .join(" ");
    const yes = l10n.t("Close Session");
    const detail = l10n.t("The changes stay in the files. “Open Session” opens it again.");
    if (one !== undefined && (words === "" || (await window.showWarningMessage(words, { modal: true, detail }, yes)) === yes)) {
      await this.closeOne(one);
    }
  }

  private async closeOne(one: Open): Promise<void> {
    this.open = this.open.filter((other) => other !== one);
    if (one.session === this.current) {
      const session = this.sessions.at(-1) ?? this.begin();
      if (!this.sessions.includes(session)) {
        this.open.push({ session, title: "", isNews: false });
      }
      this.show(session);
      void session.open();
    }
    await one.session?.close();
    this.remember();
    this.elsewhere.fire();
  }

  /** The other conversations of this folder that were saved, the last used first. */
  async saved(): Promise<readonly protocol.SavedSession[]> {
    const { sessions } = await this.server.request(protocol.listSessions, { cwd: folder() });
    return sessions.map((one) => ({ ...one, title: this.nameOf(one.sessionId) ?? (one.title == null ? null : withoutTry(one.title)) }));
  }

  /** Removes a saved conversation for good. */
  async delete(sessionId: string): Promise<void> {
    const one = this.open.find(({ session, id }) => (session?.current ?? id) === sessionId);
    if (one !== undefined) {
      await this.closeOne(one);
    }
    await this.server.request(protocol.deleteSession, { sessionId });
    this.rename(sessionId, "");
  }

  /** Names a conversation; an empty name restores its title. */
  rename(sessionId: string, name: string): void {
    const { [sessionId]: _, ...others } = this.memory.get<Record<string, string>>(NAMES, {});
    this.memory.update(NAMES, name === "" ? others : { ...others, [sessionId]: name });
    this.elsewhere.fire();
  }

  /** Restarts the server with the current settings. */
  async restart(goesOn = true): Promise<void> {
    const running = this.sessions.filter((session) => session.isRunning && session.current !== undefined);
    const ended = Promise.all(running.map((session) => session.stopped()));
    const late = new Promise((resolve) => setTimeout(resolve, STOP_MS));
    await Promise.race([ended, late]); // otherwise, their turns would fail as if the server had crashed
    await this.server.stop();
    await Promise.all(
      this.sessions.map((session) => (session === this.current || !session.transcript.isEmpty ? session.reopen(goesOn) : undefined)),
    );
  }

  /** Whether a conversation has something to review. */
  setPending(session: Session, turns: readonly number[]): void {
    const prompts = turns.map((turn) => [turn, session.transcript.asked(turn)?.slice(0, 200)]);
    const pending: Pending | undefined = turns.length > 0 ? Object.fromEntries(prompts) : undefined;
    const one = this.open.find((other) => other.session === session);
    if (one !== undefined && !isDeepStrictEqual(one.pending, pending)) {
      one.pending = pending;
      this.remember();
    }
  }

  /** A draft was changed. */
  rememberSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.remember(), REST_MS);
  }

  /** Saves which conversations are open, their drafts, and which have something to review. */
  remember(): void {
    clearTimeout(this.timer);
    if (this.restored === undefined) {
      return; // it would overwrite the state to be restored
    }
    const open = this.open.flatMap(({ session, id, title, pending, unsent: before }) => {
      const known = session === undefined ? id : session.isBegun ? session.savedId : undefined;
      const unsent = session === undefined ? before : session.draft.unsent;
      return known === undefined
        ? []
        : [{ id: known, title: (session?.title || title).slice(0, 200), ...(pending && { pending }), ...(unsent && { unsent }) }];
    });
    const { isBegun, savedId, unsent } = this.current;
    const current = isBegun && savedId !== undefined ? { current: savedId } : { ...(unsent && { unsent }) };
    this.memory.update(OPEN, { open, ...current } satisfies Remembered);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.sessions.forEach((session) => session.dispose());
    this.happened.dispose();
    this.any.dispose();
    this.elsewhere.dispose();
    this.switched.dispose();
  }

  private restoredOnce(): Promise<void> {
    this.restored ??= this.restore().finally(() => (this.restoring = false));
    return this.restored;
  }

  private async restore(): Promise<void> {
    const { current, open } = this.remembered();
    this.restoring = true;
    this.open.unshift(...open.map((one) => ({ ...one, isNews: false })));
    if (current !== undefined) {
      await this.load(current);
    }
    const waiting = this.open.filter(({ session, id, pending }) => session === undefined && pending && id !== current);
    await Promise.allSettled(waiting.map((one) => this.bringIn(one)));
  }

  private async replace(sessionId: string): Promise<void> {
    const known = this.open.find(({ session, id }) => (session?.savedId ?? id) === sessionId);
    if (known?.session !== undefined) {
      this.show(known.session);
      return;
    }
    try {
      const session = await this.bringIn(known ?? { id: sessionId, title: "", isNews: false });
      if (this.restoring && session.draft.isEmpty) {
        session.draft = this.current.draft; // what was typed since the window was loaded
        this.current.draft = new Draft();
      }
      this.show(session);
    } catch (error) {
      this.current.notice(failure(error).text);
    }
  }

  /** Loads a saved conversation. One that cannot be loaded keeps its tab: another window may have it, and then it is that window's, too. */
  private async bringIn(one: Open): Promise<Session> {
    const session = this.begin();
    restoreDraft(session, one.unsent);
    for (const [turn, prompt] of Object.entries(one.pending ?? {})) {
      session.transcript.prompts.set(Number(turn), prompt);
    }
    try {
      await session.load(one.id ?? "");
    } catch (error) {
      session.dispose();
      throw error;
    }
    one.session = session;
    if (!this.open.includes(one)) {
      this.open.push(one);
    }
    return session;
  }

  private begin(): Session {
    const session = new Session(this.server, this.ids);
    session.onEvent((event) => this.receive(session, event));
    return session;
  }

  private receive(session: Session, event: SessionEvent): void {
    this.any.fire({ session, event });
    if (event.type === "began" || event.type === "ended" || event.type === "takenUp" || event.type === "returned") {
      this.remember();
    }
    if (session === this.current) {
      this.happened.fire(event);
      return;
    }
    const one = this.open.find((other) => other.session === session);
    if (event.type === "ended" && one !== undefined) {
      one.isNews = true;
    }
    if (event.type === "asked") {
      this.happened.fire(event); // a request of any conversation is announced
    }
    if (event.type !== "grew") {
      this.elsewhere.fire();
    }
  }

  private show(session: Session): void {
    const before = this.current;
    this.current = session;
    const isWanted = before.isBegun || !before.draft.isEmpty;
    this.open = this.open.filter(({ session: other }) => other === session || other !== before || isWanted);
    this.closeOldest();
    this.remember();
    this.switched.fire();
  }

  private closeOldest(): void {
    const isIdle = ({ isRunning, draft }: Session) => !isRunning && draft.isEmpty;
    const idle = this.open.find(
      ({ session, pending, unsent }) => session !== this.current && !pending && (session === undefined ? !unsent : isIdle(session)),
    );
    if (this.open.length > MAX_OPEN && idle !== undefined) {
      this.open = this.open.filter((one) => one !== idle);
      void idle.session?.close();
    }
  }

  private find(sessionId: string): Session | undefined {
    return this.sessions.find(({ current }) => current === sessionId);
  }

  private nameOf(sessionId: string | undefined): string | undefined {
    return sessionId === undefined ? undefined : this.memory.get<Record<string, string>>(NAMES, {})[sessionId];
  }

  private remembered(): Remembered {
    return this.memory.get<Remembered>(OPEN, { open: [] });
  }
}

function restoreDraft({ draft }: Session, unsent: Message | undefined): void {
  if (unsent !== undefined) {
    draft.add(unsent);
  }
}

function stateOf(session: Session | undefined, isNews: boolean): ConversationLabel["state"] {
  if (session?.questions.areOpen === true) {
    return "asks";
  }
  return session?.isRunning === true ? "running" : isNews ? "done" : "idle";
}
