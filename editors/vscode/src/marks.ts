/** Marks pending changes in place: colored lines, and a line above each hunk to keep or reject it. */
import {
  CodeLens,
  type CodeLensProvider,
  type DecorationOptions,
  Disposable,
  EventEmitter,
  l10n,
  languages,
  MarkdownString,
  OverviewRulerLane,
  Range,
  type TextDocument,
  type TextEditor,
  ThemeColor,
  window,
} from "vscode";
import type { Hunk, Review } from "./review";
import { visible } from "./safe";

export class Marks implements CodeLensProvider, Disposable {
  private readonly changed = new EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly written = window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor("diffEditor.insertedLineBackground"),
    borderStyle: "solid", // high contrast has no background for it
    borderWidth: "0 0 0 3px",
    borderColor: new ThemeColor("editorGutter.addedBackground"),
    overviewRulerColor: new ThemeColor("editorOverviewRuler.addedForeground"),
    overviewRulerLane: OverviewRulerLane.Left,
  });
  private readonly removed = window.createTextEditorDecorationType({
    isWholeLine: true,
    borderStyle: "solid",
    borderWidth: "2px 0 0 0",
    borderColor: new ThemeColor("editorGutter.deletedBackground"),
    overviewRulerColor: new ThemeColor("editorOverviewRuler.deletedForeground"),
    overviewRulerLane: OverviewRulerLane.Left,
  });
  private readonly subscriptions: Disposable;

  constructor(private readonly review: Review) {
    this.subscriptions = Disposable.from(
      languages.registerCodeLensProvider({ scheme: "file" }, this),
      review.onChange(() => this.redraw()),
      window.onDidChangeVisibleTextEditors(() => this.decorate()),
      this.written,
      this.removed,
      this.changed,
    );
  }

  provideCodeLenses(document: TextDocument): CodeLens[] {
    return this.review.of(document.uri).flatMap((hunk) => {
      const at = lines(document, hunk);
      const lens = (title: string, command: string) => new CodeLens(at, { title, command, arguments: [hunk] });
      return [
        lens(`$(check) ${l10n.t("Keep")}`, "tandem.keepChange"),
        lens(`$(discard) ${l10n.t("Reject")}`, "tandem.rejectChange"),
        lens(`$(diff) ${l10n.t("Show Original")}`, "tandem.openChange"),
        lens(`$(comment) ${l10n.t("Comment")}`, "tandem.comment"),
      ];
    });
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private redraw(): void {
    this.changed.fire();
    this.decorate();
  }

  private decorate(): void {
    for (const editor of window.visibleTextEditors) {
      const hunks = isInDiff(editor) ? [] : this.review.of(editor.document.uri);
      const isRemoved = ({ hunk }: Hunk) => hunk.new.count === 0;
      const mark = (hunk: Hunk) => decoration(editor.document, hunk);
      editor.setDecorations(this.written, hunks.filter((hunk) => !isRemoved(hunk)).map(mark));
      editor.setDecorations(this.removed, hunks.filter(isRemoved).map(mark));
    }
  }
}

/** The lines a hunk is in now; where lines were removed, the one after them. */
export function lines(document: TextDocument, { hunk }: Hunk): Range {
  const first = Math.min(hunk.new.start - 1, document.lineCount - 1);
  const last = Math.min(first + Math.max(hunk.new.count, 1), document.lineCount) - 1;
  return new Range(first, 0, last, document.lineAt(last).text.length);
}

function decoration(document: TextDocument, hunk: Hunk): DecorationOptions {
  const before = visible(hunk.hunk.oldText);
  const hoverMessage = new MarkdownString(l10n.t("Original:")).appendCodeblock(before, document.languageId);
  return { range: lines(document, hunk), ...(before !== "" && { hoverMessage }) };
}

/** One side of a diff, which is in no column of its own, has its own colors. */
function isInDiff({ viewColumn }: TextEditor): boolean {
  return viewColumn === undefined;
}
