/**
 * Handles keys typed between the command for an edit in place and its input: VS Code takes about a tenth of a second to show the input, and until then the keys
 * go into the document. Invariant: text is taken out of the document only if nothing else changed it.
 */
import { type Disposable, Range, type TextDocumentChangeEvent, type TextEditor, workspace } from "vscode";

interface Change {
  readonly rangeOffset: number;
  readonly rangeLength: number;
  readonly text: string;
}

export class EarlyTyping implements Disposable {
  readonly events: TextDocumentChangeEvent[] = [];
  private readonly from: number;
  private readonly text: string;
  private readonly subscription: Disposable;

  /** Keys go into `range`, which has the cursor. */
  constructor(
    private readonly editor: TextEditor,
    range: Range,
  ) {
    const { document } = editor;
    this.from = document.offsetAt(range.start);
    this.text = document.getText(range);
    this.subscription = workspace.onDidChangeTextDocument((event) => event.document === document && this.events.push(event));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  /** Takes the text out of the document, which is then as it was, and stops watching. */
  async take(): Promise<string | undefined> {
    const { document } = this.editor;
    const count = this.events.length;
    const changes = this.events.flatMap(({ contentChanges }) => contentChanges);
    const found = typedBy(changes, this.from, this.text.length);
    if (changes.length > 0 && found !== undefined) {
      const range = new Range(document.positionAt(this.from), document.positionAt(this.from + found.length));
      const isTaken = await this.editor.edit((edit) => edit.replace(range, this.text), { undoStopBefore: false, undoStopAfter: false });
      if (!isTaken) {
        return this.events.length > count ? this.take() : undefined; // more was typed meanwhile
      }
    }
    this.dispose();
    return found?.typed;
  }
}

/** What was typed at one place in a text of `length` characters, and its length after that; `undefined` if others changed too. */
function typedBy(changes: readonly Change[], from: number, length: number): { typed: string; length: number } | undefined {
  let typed = "";
  let start = NaN;
  for (const { rangeOffset, rangeLength, text } of changes) {
    if (rangeOffset < from || rangeOffset + rangeLength > from + length) {
      return undefined;
    }
    const at = rangeOffset - start;
    if (at >= 0 && at + rangeLength <= typed.length) {
      typed = typed.slice(0, at) + text + typed.slice(at + rangeLength);
    } else {
      typed += text; // the first, or in the place of a selection
      start = rangeOffset + text.length - typed.length;
    }
    length += text.length - rangeLength;
  }
  return { typed, length };
}
