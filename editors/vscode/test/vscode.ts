/** The part of VS Code's API that the sources under test use, and its effects in tests. */
import { CancellationTokenSource, Emitter, Event } from "vscode-jsonrpc";

export { CancellationTokenSource, Emitter as EventEmitter };

class Uri {
  private constructor(private readonly path: string) {}
  get fsPath() {
    return this.path;
  }
  static file = (path: string) => new Uri(path);
  static parse = (text: string) => new Uri(text.replace(/^file:\/\//, ""));
  static joinPath = ({ path }: Uri, ...parts: string[]) => new Uri([path, ...parts].join("/"));
  toString = () => `file://${this.path}`;
}
export const Disposable = {
  from: (...all: readonly { dispose(): unknown }[]) => ({ dispose: () => all.forEach((one) => one.dispose()) }),
};
export const CodeActionKind = { QuickFix: { value: "quickfix" } };
export const extensions = { all: [] };
class Position {}
class Range {}
class NotebookCellData {}
class NotebookData {}
class NotebookEdit {}
class NotebookRange {}
class ThemeIcon {}
class WorkspaceEdit {}
export { NotebookCellData, NotebookData, NotebookEdit, NotebookRange, Position, Range, ThemeIcon, Uri, WorkspaceEdit };

const nothing = () => ({ dispose: () => undefined });
export const ProgressLocation = {};
export const ConfigurationTarget = { Global: 1 };
export const commands = { executeCommand: async () => undefined };
export const env = { language: "en" };
export const l10n = {
  t: (text: string, ...values: unknown[]) => text.replace(/\{(\d+)\}/g, (_, index: string) => String(values[Number(index)])),
};
export const languages = { onDidChangeDiagnostics: Event.None };
export const window = {
  createQuickPick: nothing,
  createTerminal: nothing,
  registerWebviewViewProvider: nothing,
  showInformationMessage: async () => undefined,
  showErrorMessage: async () => undefined,
  showWarningMessage: async () => undefined,
};
export const lm = {};
export const workspace = {
  workspaceFolders: [{ uri: { fsPath: "/project" } }],
  asRelativePath: (path: string) => path,
  openTextDocument: async (path: string) => ({ getText: () => `text of ${path}` }),
  getConfiguration: () => ({ get: (_key: string, otherwise: unknown) => otherwise, update: async () => undefined }),
};
