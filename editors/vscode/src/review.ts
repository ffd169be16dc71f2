/**
 * The pending changes of all turns, as last listed by the server. Listed again when a turn ends, a change is kept or rejected, or a changed file
 * is edited.
 */
import { type Disposable, EventEmitter, l10n, Uri, window, workspace } from "vscode";
import { failure } from "./failure";
import type { Reviewed, ReviewedFile, ReviewedHunk, ReviewedTurn, ReviewParams } from "./protocol";
import type { Conversations } from "./conversations";
import type { SessionEvent } from "./session";
import { withoutTry } from "./trial";

/** How long after the last keystroke the hunks are requested again, in milliseconds. */
const REST_MS = 300;

/** What is to be kept or rejected: a turn, a file of it, or a hunk of that. */
export interface Part {
  readonly turn: ReviewedTurn;
  readonly file?: ReviewedFile;
  readonly hunk?: ReviewedHunk;
}

export interface Hunk extends Part {
  readonly file: ReviewedFile;
  readonly hunk: ReviewedHunk;
}

export class Review implements Disposable {
  turns: readonly ReviewedTurn[] = [];
  private readonly changed = new EventEmitter<void>();
  readonly onChange = this.changed.event;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: Disposable[];

  constructor(private readonly conversations: Conversations) {
    this.subscriptions = [
      conversations.onEvent((event) => this.happened(event)),
      conversations.onSwitch(() => void this.refresh()),
      workspace.onDidChangeTextDocument(({ document }) => this.of(document.uri).length > 0 && this.refreshSoon()),
    ];
  }

  get count(): number {
    return this.all().length;
  }

  /** By turn, file and line. */
  all(): Hunk[] {
    return this.turns.flatMap((turn) => turn.files.flatMap((file) => file.hunks.map((hunk) => ({ turn, file, hunk }))));
  }

  /** In a document, by line. */
  of(uri: Uri): Hunk[] {
    const hunks = this.all().filter(({ file }) => Uri.file(file.path).toString() === uri.toString());
    return hunks.sort((a, b) => a.hunk.new.start - b.hunk.new.start);
  }

  title(turn: ReviewedTurn): string {
    const asked = this.conversations.current.transcript.asked(turn.turn);
    return asked === undefined ? l10n.t("Turn {0}", turn.turn) : withoutTry(asked);
  }

  async refresh(): Promise<void> {
    const session = this.conversations.current;
    const reviewed = await session.review({ action: "list" }).catch(() => undefined);
    if (session === this.conversations.current) {
      this.take(reviewed ?? { turns: [] });
    }
  }

  async keep(part: Part): Promise<void> {
    await this.decide({ action: "keep", ...named(part) });
  }

  async reject(part: Part): Promise<void> {
    if (await mayReject(part.file === undefined ? part.turn.files : [part.file])) {
      await this.decide({ action: "reject", ...named(part) });
    }
  }

  async keepAll(): Promise<void> {
    await this.decide({ action: "keep" });
  }

  /** The last turn first: it may build on earlier ones, which can have more changes once it is rejected. */
  async rejectAll(): Promise<void> {
    await this.refresh();
    if (!(await mayReject(this.turns.flatMap(({ files }) => files)))) {
      return;
    }
    let before = Number.POSITIVE_INFINITY;
    for (let last = this.turns.at(-1); last !== undefined && last.turn < before; last = this.turns.at(-1)) {
      before = last.turn;
      if (!(await this.decide({ action: "reject", turn: last.turn }))) {
        return;
      }
    }
  }

  /** Undoes everything the last turn changed, except lines the user changed since. */
  async undo(): Promise<void> {
    await this.decide({ action: "undo" });
  }

  /** Reapplies what the last undo reverted. */
  async redo(): Promise<void> {
    await this.decide({ action: "redo" });
  }

  /** Takes files and conversation back to before a turn, which an undo reverts until the next message. */
  async restore(turn: number): Promise<boolean> {
    return this.decide({ action: "restore", turn });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }

  /** Reports the result; `false` if nothing was done. */
  private async decide(params: ReviewParams): Promise<boolean> {
    try {
      const reviewed = await this.conversations.current.review(params);
      if (reviewed === undefined) {
        void window.showInformationMessage(l10n.t("tandem has not changed anything yet."));
        return false;
      }
      this.take(reviewed);
      report(reviewed);
      return true;
    } catch (error) {
      void window.showWarningMessage(`tandem: ${failure(error).text}`);
      await this.refresh();
      return false;
    }
  }

  private happened(event: SessionEvent): void {
    switch (event.type) {
      case "ended":
      case "takenUp":
        return void this.refresh();
      case "forgotten":
        return this.take({ turns: [] });
    }
  }

  private take({ turns }: Pick<Reviewed, "turns">): void {
    this.turns = turns;
    this.changed.fire();
  }

  private refreshSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), REST_MS);
  }
}

/** Asks before several files are rejected: nothing restores those that are not open. */
async function mayReject(files: readonly ReviewedFile[]): Promise<boolean> {
  const count = new Set(files.map(({ path }) => path)).size;
  if (count < 2) {
    return true;
  }
  const yes = l10n.t("Reject {0} Files", count);
  const detail = l10n.t("This cannot be undone in files that are not open.");
  const words = l10n.t("Are you sure you want to reject the changes in {0} files?", count);
  return (await window.showWarningMessage(words, { modal: true, detail }, yes)) === yes;
}

/** Reports what was done, and prominently what was not. */
function report({ message, left }: Reviewed): void {
  const said = `tandem: ${message ?? ""}`;
  void (left.length === 0 ? window.setStatusBarMessage(said, 5000) : window.showInformationMessage(said));
}

function named({ turn, file, hunk }: Part): Pick<ReviewParams, "turn" | "path" | "hunk"> {
  return { turn: turn.turn, ...(file && { path: file.path }), ...(hunk && { hunk: hunk.id }) };
}
