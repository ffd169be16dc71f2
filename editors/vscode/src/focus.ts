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
  Range,
  type TextEditor,
  window,
  workspace,
} from "vscode";
import { type Attachment, currentEditor, linesLabel, textAttachment } from "./context";
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
      languages.onDidChangeDiagnostics(() => this.soon()),
    );
  }

  /** Empty where no file is open. */
  get looking(): Looking[] {
    const editor = fileEditor();
    if (editor === undefined) {
      return [];
    }
    const label = linesLabel(editor.document, editor.selection);
    const count = problemsOf(editor).length;
    return [
      { what: "place", label, isShared: this.shared.has("place") },
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

  /** The problems of the file, if they are sent. */
  problems(): Attachment[] {
    const editor = fileEditor();
    const found = editor === undefined || !this.shared.has("problems") ? [] : problemsOf(editor);
    if (editor === undefined || found.length === 0) {
      return [];
    }
    const path = workspace.asRelativePath(editor.document.uri);
    const lines = found.map((problem) => described(path, problem));
    const text = `Problems that the editor shows in ${path}:\n${lines.join("\n")}`;
    return [textAttachment(counted(found.length), text)];
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

function fileEditor(): TextEditor | undefined {
  const editor = currentEditor();
  return editor?.document.uri.scheme === "file" ? editor : undefined;
}

function problemsOf({ document }: TextEditor): Diagnostic[] {
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
