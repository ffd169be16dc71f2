/**
 * The pending changes of all open conversations, as last listed by the server. Listed again when a turn ends, a change is kept or rejected, a changed file is
 * edited, or a file is opened, renamed or deleted.
 */
import { isDeepStrictEqual } from "node:util";
import { Disposable, EventEmitter, l10n, Uri, window, workspace } from "vscode";
import { failure } from "./failure";
import type { Reviewed, ReviewedFile, ReviewedHunk, ReviewedTurn, ReviewParams } from "./protocol";
import type { Conversations } from "./conversations";
import type { Session, SessionEvent } from "./session";
import { withoutTry } from "./trial";

/** How long after the last keystroke the hunks are requested again, in milliseconds. */
const REST_MS = 300;

/** What to keep or reject: a turn, a file of it, or a hunk of that. */
export interface Part {
  readonly session: Session;
  readonly turn: ReviewedTurn;
  readonly file?: ReviewedFile;
  readonly hunk?: ReviewedHunk;
}

export interface Hunk extends Part {
  readonly file: ReviewedFile;
  readonly hunk: ReviewedHunk;
}

export class Review implements Disposable {
  private readonly lists = new Map<Session, readonly ReviewedTurn[]>();
  /** All hunks ever listed, because the editor can redo what it undid. */
  private readonly files = new Set<string>();
  private readonly changed = new EventEmitter<void>();
  readonly onChange = this.changed.event;
  /** What an undo would revert, if it is a decision: a turn may have ended since. */
  private readonly latest = new Map<Session, Reviewed>();
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: Disposable;

  constructor(private readonly conversations: Conversations) {
    this.subscriptions = Disposable.from(
      conversations.onAny(({ session, event }) => this.happened(session, event)),
      conversations.onElsewhere(() => this.forgetClosed()),
      conversations.onSwitch(() => void this.refresh()),
      workspace.onDidOpenTextDocument(({ uri }) => uri.scheme === "file" && this.refreshSoon()), // after a reload, unsaved text comes late
      workspace.onDidRenameFiles(() => this.refreshSoon()), // by then, the server has been notified
      workspace.onDidDeleteFiles(() => this.refreshSoon()),
      workspace.onDidChangeTextDocument(({ document }) => this.files.has(document.uri.toString()) && this.refreshSoon()),
      workspace.onDidChangeNotebookDocument(({ notebook }) => this.files.has(notebook.uri.toString()) && this.refreshSoon()),
      this.changed,
    );
  }

  get count(): number {
    return this.all().length;
  }

  /** Those of the conversation that is shown last. */
  get turns(): Part[] {
    const { current } = this.conversations;
    const lists = [...this.lists].sort(([a], [b]) => Number(a === current) - Number(b === current));
    return lists.flatMap(([session, turns]) => turns.map((turn) => ({ session, turn })));
  }

  /** By turn, file and line. */
  all(): Hunk[] {
    return this.turns.flatMap(({ session, turn }) =>
      turn.files.flatMap((file) => file.hunks.map((hunk) => ({ session, turn, file, hunk }))),
    );
  }

  /** In a document, by line. */
  of(uri: Uri): Hunk[] {
    const hunks = this.all().filter(({ file }) => Uri.file(file.path).toString() === uri.toString());
    return hunks.sort((a, b) => a.hunk.new.start - b.hunk.new.start);
  }

  title({ session, turn }: Part): string {
    const asked = session.transcript.asked(turn.turn);
    return asked === undefined ? l10n.t("Turn {0}", turn.turn) : withoutTry(asked);
  }

  async refresh(session = this.conversations.current): Promise<void> {
    const reviewed = await session.review({ action: "list" }).catch(() => undefined);
    if (reviewed !== undefined) {
      this.listed(session, reviewed.turns);
    }
  }

  async keep(part: Part): Promise<void> {
    await this.decide(part.session, { action: "keep", ...named(part) });
  }

  async reject(part: Part): Promise<void> {
    if (part.file !== undefined || (await this.mayRevert((one) => one.session === part.session && one.turn.turn === part.turn.turn))) {
      await this.decide(part.session, { action: "reject", ...named(part) });
    }
  }

  async keepAll(): Promise<void> {
    await this.decideAll("keep");
  }

  async rejectAll(): Promise<void> {
    if (await this.mayRevert(() => true)) {
      await this.decideAll("reject");
    }
  }

  /** Restores what was rejected last, or undoes everything the last turn changed, except lines the user changed since. */
  async undo(): Promise<void> {
    await this.decide(await this.conversations.shown(), { action: "undo" });
  }

  /** Reapplies what the last undo reverted. */
  async redo(): Promise<void> {
    await this.decide(await this.conversations.shown(), { action: "redo" });
  }

  /** Restores files and conversation to before a turn, which an undo reverts until the next message. */
  async restore(session: Session, turn: number): Promise<boolean> {
    const isReverted = (one: Part) => one.session === session && one.turn.turn >= turn;
    return (await this.mayRevert(isReverted, restoring)) && this.decide(session, { action: "restore", turn });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.dispose();
  }

  /** Asks before changes in several files are reverted, and again if there are others by the time of the answer: a turn may have gone on. */
  private async mayRevert(isReverted: (part: Part) => boolean, ask = rejecting): Promise<boolean> {
    for (let named: ReadonlySet<string> = new Set(); ;) {
      await Promise.all([...this.lists.keys()].map((session) => this.refresh(session)));
      const files = this.all().filter(isReverted);
      const paths = new Set(files.map(({ session, turn, file }) => `${session.savedId} ${turn.turn} ${file.path}`));
      const count = new Set(files.map(({ file }) => file.path)).size;
      if (count < 2 || isDeepStrictEqual(paths, named)) {
        return true;
      }
      const [words, yes] = ask(count);
      const detail = l10n.t("Undo restores them.");
      if ((await window.showWarningMessage(words, { modal: true, detail }, yes)) !== yes) {
        return false;
      }
      named = paths;
    }
  }

  private async decideAll(action: "keep" | "reject"): Promise<void> {
    for (const [session, turns] of this.lists) {
      if (turns.length > 0) {
        await this.decide(session, { action });
      }
    }
  }

  /** Reports the result; `false` if nothing was done. */
  private async decide(session: Session, params: ReviewParams): Promise<boolean> {
    try {
      const reviewed = await session.review(params);
      if (reviewed === undefined) {
        void window.showInformationMessage(l10n.t("tandem has not changed anything yet."));
        return false;
      }
      this.listed(session, reviewed.turns);
      this.latest.set(session, reviewed);
      void this.report(session, params, reviewed);
      return true;
    } catch (error) {
      void window.showWarningMessage(`tandem: ${failure(error).text}`);
      await this.refresh(session);
      return false;
    }
  }

  /**
   * Reports what was done, and prominently what was not. Rejected changes may be in files that are not open, so it offers to undo the rejection. VS Code
   * keeps this offer, but once something followed an undo would revert that instead.
   */
  private async report(session: Session, { action, hunk }: ReviewParams, reviewed: Reviewed): Promise<void> {
    const { message, left } = reviewed;
    const words = `tandem: ${message ?? ""}`;
    if (action === "reject" && hunk == null) {
      const undo = l10n.t("Undo");
      if ((await window.showInformationMessage(words, undo)) !== undo) {
        return;
      }
      if (this.latest.get(session) === reviewed) {
        await this.decide(session, { action: "undo" });
      } else {
        void window.showWarningMessage(
          l10n.t("Not undone: this was not the latest step. Undo Last Turn or Rejection goes back one step at a time."),
        );
      }
    } else if (left.length > 0) {
      void window.showInformationMessage(words);
    } else {
      window.setStatusBarMessage(words, 5000);
    }
  }

  private happened(session: Session, event: SessionEvent): void {
    switch (event.type) {
      case "ended":
      case "takenUp":
        this.latest.delete(session);
        return void this.refresh(session);
      case "forgotten":
        return this.take(session, []);
    }
  }

  private forgetClosed(): void {
    const closed = [...this.lists.keys()].filter((session) => !this.conversations.sessions.includes(session));
    closed.forEach((session) => this.take(session, []));
  }

  private listed(session: Session, turns: readonly ReviewedTurn[]): void {
    this.conversations.setPending(
      session,
      turns.map(({ turn }) => turn),
    );
    this.take(session, turns);
  }

  /** An unchanged list is not redrawn, because redrawing it under the pointer closes its menu. */
  private take(session: Session, turns: readonly ReviewedTurn[]): void {
    if (isDeepStrictEqual(turns, this.lists.get(session) ?? [])) {
      return;
    }
    turns.forEach(({ files }) => files.forEach(({ path }) => this.files.add(Uri.file(path).toString())));
    if (turns.length > 0 && this.conversations.sessions.includes(session)) {
      this.lists.set(session, turns);
    } else {
      this.lists.delete(session);
    }
    this.changed.fire();
  }

  private refreshSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.conversations.sessions.forEach((session) => void this.refresh(session)), REST_MS);
  }
}

function rejecting(count: number): [words: string, yes: string] {
  return [l10n.t("Are you sure you want to reject the changes in {0} files?", count), l10n.t("Reject {0} Files", count)];
}

function restoring(count: number): [words: string, yes: string] {
  return [l10n.t("Rewinding to before this prompt reverts the changes in {0} files.", count), l10n.t("Revert {0} Files", count)];
}

function named({ turn, file, hunk }: Part): Pick<ReviewParams, "turn" | "path" | "hunk"> {
  return { turn: turn.turn, ...(file && { path: file.path }), ...(hunk && { hunk: hunk.id }) };
}
