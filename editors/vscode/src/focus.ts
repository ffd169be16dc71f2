/**
 * The context that is sent with each message: the location in the editor, and the problems of its file if enabled. Both are shown as chips that toggle them.
 * The server is told the location when the cursor rests, and before each message.
 */
import {
  type Diagnostic,
  DiagnosticSeverity,
  Disposable,
  EventEmitter,
  l10n,
  languages,
  type NotebookCell,
  Range,
  type TextDocument,
  type TextEditor,
  window,
  workspace,
} from "vscode";
import { type Attachment, cellPlace, currentEditor, linesLabel, textAttachment } from "./context";
import type { Looking } from "./messages";
import { didFocus } from "./protocol";
import type { Server } from "./server";

const REST_MS = 200;
/** No file: the server clears the place. */
const NOTHING = { textDocument: { uri: "untitled:" }, selection: plain(new Range(0, 0, 0, 0)) };

export class Focus implements Disposable {
  private readonly shared = new Set<Looking["what"]>(["place"]);
  private timer: NodeJS.Timeout | undefined;
  private readonly changed = new EventEmitter<void>();
  readonly onChange = this.changed.event;
  private readonly subscriptions: Disposable;

  constructor(private readonly server: Server) {
    this.subscriptions = Disposable.from(
      window.onDidChangeActiveTextEditor(() => this.soon()),
      window.onDidChangeTextEditorSelection(() => this.soon()),
      window.onDidChangeTextEditorVisibleRanges(() => this.soon()),
      window.onDidChangeActiveNotebookEditor(() => this.soon()),
      window.onDidChangeNotebookEditorSelection(() => this.soon()),
      languages.onDidChangeDiagnostics(() => this.soon()),
    );
  }

  /** Empty where no file is open. */
  get looking(): Looking[] {
    const place = currentPlace();
    if (place === undefined) {
      return [];
    }
    const count = problemsOf(place).length;
    return [
      { what: "place", label: place.label, isShared: this.shared.has("place") },
      ...(count > 0 ? [{ what: "problems", label: counted(count), isShared: this.shared.has("problems") } as const] : []),
    ];
  }

  toggle(what: Looking["what"]): void {
    if (!this.shared.delete(what)) {
      this.shared.add(what);
    }
    this.changed.fire();
    void this.report();
  }

  /** The cell and the problems, if they are sent: the server is told of lines, not of cells. */
  attachments(): Attachment[] {
    const place = currentPlace();
    if (place === undefined) {
      return [];
    }
    const { label, path, isCell } = place;
    const found = this.shared.has("problems") ? problemsOf(place) : [];
    const lines = found.map((problem) => described(path, problem));
    const text = `Problems that the editor shows in ${path}:\n${lines.join("\n")}`;
    return [
      ...(isCell && this.shared.has("place") ? [textAttachment(label, `The user is looking at ${path}.`)] : []),
      ...(found.length > 0 ? [textAttachment(counted(found.length), text)] : []),
    ];
  }

  /** Sends the place to the server now. */
  async report(): Promise<void> {
    clearTimeout(this.timer);
    const editor = this.shared.has("place") ? fileEditor() : undefined;
    await this.server.notify(didFocus, editor === undefined ? NOTHING : focusOf(editor));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
    this.subscriptions.dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.changed.fire();
      void this.report();
    }, REST_MS);
  }
}

interface Place {
  readonly document: TextDocument;
  readonly label: string;
  readonly path: string;
  readonly isCell: boolean;
}

function currentPlace(): Place | undefined {
  const cell = currentCell();
  if (cell !== undefined) {
    return { document: cell.document, ...cellPlace(cell), isCell: true };
  }
  const editor = fileEditor();
  if (editor === undefined) {
    return undefined;
  }
  const { document, selection } = editor;
  return { document, label: linesLabel(document, selection), path: workspace.asRelativePath(document.uri), isCell: false };
}

function currentCell(): NotebookCell | undefined {
  const editor = window.activeNotebookEditor;
  const isFile = editor?.notebook.uri.scheme === "file" && editor.notebook.cellCount > 0;
  return isFile ? editor.notebook.cellAt(editor.selection.start) : undefined;
}

function fileEditor(): TextEditor | undefined {
  const editor = currentCell() === undefined ? currentEditor() : undefined;
  return editor?.document.uri.scheme === "file" ? editor : undefined;
}

function problemsOf({ document }: Place): Diagnostic[] {
  return languages.getDiagnostics(document.uri).filter(({ severity }) => severity <= DiagnosticSeverity.Warning);
}

function counted(count: number): string {
  return count === 1 ? l10n.t("1 problem") : l10n.t("{0} problems", count);
}

function described(path: string, { range, severity, message, source }: Diagnostic): string {
  const kind = severity === DiagnosticSeverity.Error ? "error" : "warning";
  return `${path}:${range.start.line + 1}: ${kind}: ${message}${source === undefined ? "" : ` (${source})`}`;
}

function focusOf({ document, selection, visibleRanges }: TextEditor) {
  const [first] = visibleRanges;
  const last = visibleRanges.at(-1);
  return {
    textDocument: { uri: document.uri.toString() },
    selection: plain(selection),
    ...(first && last && { visibleRange: plain(new Range(first.start, last.end)) }),
  };
}

function plain({ start, end }: Range) {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
