/**
 * Previews an edit that waits for permission below the lines it would change, with buttons to answer. It takes no focus and disappears with
 * the request.
 */
import {
  CommentMode,
  comments,
  type CommentThread,
  CommentThreadCollapsibleState,
  commands,
  Disposable,
  l10n,
  MarkdownString,
  Range,
  Uri,
} from "vscode";
import type { Conversations } from "./conversations";
import { isNotebook } from "./notebooks";
import type { DiffContent } from "./protocol";
import { asDiff, type Piece, piecesOf, withoutLastLineEnd } from "./rewrite";

/** How many hunks of a request, and lines of a hunk, are shown at most; the diff editor has all. */
const MAX_HUNKS = 20;
const MAX_LINES = 30;

export class Proposed implements Disposable {
  private readonly controller = comments.createCommentController("tandem.proposed", l10n.t("Edits that require approval"));
  /** By the id of the request. */
  private readonly threads = new Map<number, CommentThread[]>();
  private readonly subscriptions: Disposable;

  constructor(private readonly conversations: Conversations) {
    const answer = (kind: "allow_once" | "reject_once") => (thread: CommentThread) => this.answer(thread, kind);
    this.subscriptions = Disposable.from(
      this.controller,
      conversations.onEvent(({ type }) => (type === "asked" || type === "changed") && this.refresh()),
      conversations.onSwitch(() => this.refresh()),
      commands.registerCommand("tandem.proposedAllow", answer("allow_once")),
      commands.registerCommand("tandem.proposedReject", answer("reject_once")),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private refresh(): void {
    const { questions, transcript } = this.conversations.current;
    const open = new Set(questions.ids);
    for (const [id, threads] of this.threads) {
      if (!open.has(id)) {
        threads.forEach((thread) => thread.dispose());
        this.threads.delete(id);
      }
    }
    for (const id of open) {
      if (!this.threads.has(id)) {
        this.threads.set(id, this.threadsOf(transcript.diffs(id)));
      }
    }
  }

  /** A new file has no lines yet to show them at, and neither does a notebook. */
  private threadsOf(diffs: readonly DiffContent[]): CommentThread[] {
    const hunks = diffs.flatMap(({ path, oldText, newText, _meta }) => {
      const uri = Uri.file(path);
      const pieces =
        oldText == null || oldText === "" || isNotebook(uri) ? [] : piecesOf(withoutLastLineEnd(oldText), withoutLastLineEnd(newText));
      const skipped = _meta?.["tandem/skippedLines"] ?? 0;
      return pieces.map((piece) => ({ uri, piece: { ...piece, line: piece.line + skipped } }));
    });
    return hunks.slice(0, MAX_HUNKS).map(({ uri, piece }) => this.thread(uri, piece, hunks.length));
  }

  private thread(uri: Uri, piece: Piece, count: number): CommentThread {
    const body = new MarkdownString(asDiff(shown(piece)));
    const last = Math.max(0, piece.line + piece.before.length - 1);
    const comment = { author: { name: "tandem" }, mode: CommentMode.Preview, body };
    const thread = this.controller.createCommentThread(uri, new Range(Math.min(piece.line, last), 0, last, 0), [comment]);
    thread.canReply = false;
    thread.contextValue = "proposed";
    thread.label = count === 1 ? l10n.t("Allow tandem to make this change?") : l10n.t("Allow tandem to make all {0} changes?", count);
    thread.collapsibleState = CommentThreadCollapsibleState.Expanded;
    return thread;
  }

  private answer(thread: CommentThread, kind: "allow_once" | "reject_once"): void {
    const asked = [...this.threads].find(([, threads]) => threads.includes(thread));
    if (asked !== undefined) {
      this.conversations.current.questions.answerKind(asked[0], kind);
    }
  }
}

function shown({ line, before, after }: Piece): Piece {
  return { line, before: shortened(before), after: shortened(after) };
}

function shortened(lines: readonly string[]): string[] {
  const more = lines.length - MAX_LINES;
  const first = lines.slice(0, MAX_LINES);
  return more > 0 ? [...first, l10n.t("… {0} more lines: open the diff to see them", more)] : first;
}
