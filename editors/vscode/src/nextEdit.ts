/**
 * The next edit. With its final API, VS Code draws inline completions at the cursor only; an edit elsewhere in view is drawn here: the old lines as removed,
 * each followed by its new text. Invariants: one edit at a time, in the active editor; it is gone as soon as the document changes.
 */
import { commands, Disposable, Range, Selection, type TextEditor, ThemeColor, window, workspace } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { visible } from "./safe";

interface Edit {
  readonly editor: TextEditor;
  readonly range: Range;
  readonly text: string;
}

export class NextEdit implements Disposable {
  private readonly old = window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor("diffEditor.removedLineBackground"),
  });
  private readonly added = window.createTextEditorDecorationType({
    after: { margin: "0 0 0 2ch", backgroundColor: new ThemeColor("diffEditor.insertedLineBackground") },
  });
  private edit: Edit | undefined;
  private readonly subscriptions = Disposable.from(
    this.old,
    this.added,
    commands.registerCommand("tandem.nextEditAccept", () => this.accept()),
    commands.registerCommand("tandem.nextEditClose", () => this.show(undefined)),
    workspace.onDidChangeTextDocument(({ document }) => document === this.edit?.editor.document && this.show(undefined)),
    window.onDidChangeActiveTextEditor(() => this.show(undefined)),
    window.onDidChangeTextEditorVisibleRanges(
      ({ textEditor }) => textEditor === this.edit?.editor && !isSeen(textEditor, this.edit.range) && this.show(undefined),
    ),
  );

  /** Insertions at the cursor are left to VS Code. */
  readonly provide: NonNullable<Middleware["provideInlineCompletionItems"]> = async (document, position, context, token, next) => {
    const { version } = document;
    const result = await next(document, position, context, token);
    const [item] = Array.isArray(result) ? result : (result?.items ?? []);
    const editor = window.activeTextEditor;
    if (token.isCancellationRequested || document.version !== version || editor?.document !== document) {
      return [];
    }
    const { range, insertText: text } = item ?? {};
    const isElsewhere = range !== undefined && typeof text === "string" && !range.isEqual(new Range(position, position));
    const isInView = isElsewhere && isSeen(editor, range);
    this.show(isInView ? { editor, range, text } : undefined);
    return isElsewhere ? [] : result;
  };

  dispose(): void {
    this.subscriptions.dispose();
  }

  private show(edit: Edit | undefined): void {
    this.edit?.editor.setDecorations(this.old, []);
    this.edit?.editor.setDecorations(this.added, []);
    this.edit = edit;
    void commands.executeCommand("setContext", "tandem.nextEdit", edit !== undefined);
    if (edit === undefined) {
      return;
    }
    const { editor, range } = edit;
    const { start, end } = range;
    const count = end.line - start.line + (end.character > start.character ? 1 : 0);
    const lines = Array.from({ length: count }, (_, index) => editor.document.lineAt(start.line + index).range);
    const at = count > 0 ? lines : [editor.document.lineAt(Math.max(start.line - 1, 0)).range];
    const added = visible(edit.text)
      .trimEnd()
      .split("\n")
      .map((line) => line.trim());
    const behind = (index: number) => (index < at.length - 1 ? (added[index] ?? "") : `${added.slice(index).join(" ⏎ ")} ⇥`);
    editor.setDecorations(this.old, lines);
    editor.setDecorations(
      this.added,
      at.map((line, index) => ({ range: line, renderOptions: { after: { contentText: behind(index) } } })),
    );
  }

  private async accept(): Promise<void> {
    if (this.edit === undefined) {
      return;
    }
    const { editor, range, text } = this.edit;
    await editor.edit((builder) => builder.replace(range, text)); // closes it
    const last = range.start.line + text.trimEnd().split("\n").length - 1;
    const { end } = editor.document.lineAt(Math.min(last, editor.document.lineCount - 1)).range;
    editor.selection = new Selection(end, end);
  }
}

function isSeen({ visibleRanges }: TextEditor, range: Range): boolean {
  return visibleRanges.some((seen) => seen.contains(range));
}
