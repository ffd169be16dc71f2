/**
 * Notebooks that are open: the server knows them as the text of their files, unsaved changes included, and an edit of that text changes their cells. If VS Code
 * would format an unmodified notebook differently than its file, edits go to the file, which VS Code reloads when it changes.
 */
import { readFile } from "node:fs/promises";
import {
  commands,
  Disposable,
  extensions,
  l10n,
  type NotebookCell,
  NotebookCellData,
  NotebookData,
  type NotebookDocument,
  NotebookEdit,
  NotebookRange,
  Range,
  type TextDocument,
  type Uri,
  workspace,
  WorkspaceEdit,
} from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, LanguageClient, TextEdit } from "vscode-languageclient/node";
import { TextDocument as JsonDocument } from "vscode-languageserver-textdocument";
import { sameEnds } from "./diff";

const TYPE = "jupyter-notebook";
/** The scheme of documents that are cells. */
export const CELL_SCHEME = "vscode-notebook-cell";
/** While a person types or cells run, their text is sent so often: less often if that takes long, at most a tenth of the time. */
const REST_MS = 200;
const REST_PER_COST = 9;

/** What VS Code's own extension for these files offers. Its command for this, `vscode.executeNotebookToData`, loses outputs of text. */
interface Exporter {
  exportNotebook(data: NotebookData): Promise<string>;
}

/** A cell in the file. */
interface Cell {
  readonly cell_type: string;
  readonly source: string | readonly string[];
}

export class Notebooks implements Disposable {
  /** What the server was sent, by URI. */
  private readonly sent = new Map<string, { readonly version: number; readonly text: string }>();
  private readonly changed = new Map<NotebookDocument, NodeJS.Timeout>();
  private last: Promise<unknown> = Promise.resolve();
  /** The time it took to send one, in milliseconds. */
  private cost = 0;
  private readonly subscriptions: Disposable;

  constructor(private readonly client: LanguageClient) {
    const send = (notebook: NotebookDocument) => void this.send(notebook);
    this.subscriptions = Disposable.from(
      workspace.onDidOpenNotebookDocument(send),
      workspace.onDidCloseNotebookDocument(send),
      workspace.onDidChangeNotebookDocument(({ notebook }) => this.soon(notebook)),
      workspace.onDidSaveNotebookDocument(async (notebook) => {
        await this.send(notebook);
        await this.notify("didSave", notebook, {});
      }),
    );
    workspace.notebookDocuments.forEach(send);
  }

  /** Whether the server knows it: then the same file must not be opened as another document. */
  has(uri: Uri): boolean {
    return this.sent.has(this.client.code2ProtocolConverter.asUri(uri));
  }

  /** Resolves once the server has their current content. */
  async settled(): Promise<void> {
    for (const notebook of this.changed.keys()) {
      void this.send(notebook);
    }
    await this.last;
  }

  /** Saves those of these that have unsaved changes. */
  async save(uris: readonly string[]): Promise<void> {
    const unsaved = workspace.notebookDocuments.filter((notebook) => notebook.isDirty && uris.includes(this.uriOf(notebook)));
    await Promise.all(unsaved.map((notebook) => notebook.save()));
    await Promise.all(unsaved.map((notebook) => this.send(notebook)));
  }

  /** Applies an edit of the text of a notebook; `undefined` for one of another document. */
  async apply({ edit }: ApplyWorkspaceEditParams): Promise<ApplyWorkspaceEditResult | undefined> {
    const [change] = edit.documentChanges ?? [];
    if (change === undefined || !("textDocument" in change) || !this.sent.has(change.textDocument.uri)) {
      return undefined;
    }
    const { uri, version } = change.textDocument;
    const notebook = workspace.notebookDocuments.find((one) => this.uriOf(one) === uri);
    if (notebook !== undefined) {
      await this.send(notebook);
    }
    const known = this.sent.get(uri);
    if (notebook === undefined || known?.version !== version) {
      return { applied: false, failureReason: "the notebook has changed" };
    }
    try {
      const before = JsonDocument.create(uri, "json", known.version, known.text);
      const difference = await cellEdits(notebook, known.text, JsonDocument.applyEdits(before, change.edits as TextEdit[]));
      const applied = difference !== undefined && (await workspace.applyEdit(difference));
      await this.send(notebook);
      return applied ? { applied } : { applied, failureReason: "the notebook has changed" };
    } catch (error) {
      return { applied: false, failureReason: String(error) };
    }
  }

  dispose(): void {
    this.changed.forEach(clearTimeout);
    this.subscriptions.dispose();
  }

  private soon(notebook: NotebookDocument): void {
    if (!this.changed.has(notebook)) {
      this.changed.set(
        notebook,
        setTimeout(() => void this.send(notebook), Math.max(REST_MS, this.cost * REST_PER_COST)),
      );
    }
  }

  /** Tells the server what is in a notebook now, one after the other. */
  private send(notebook: NotebookDocument): Promise<void> {
    clearTimeout(this.changed.get(notebook));
    this.changed.delete(notebook);
    const sending = this.last
      .then(() => this.sendNow(notebook))
      .catch((error: unknown) => this.client.error(notebook.uri.path, error, false));
    this.last = sending;
    return sending;
  }

  private async sendNow(notebook: NotebookDocument): Promise<void> {
    const uri = this.uriOf(notebook);
    const known = this.sent.get(uri);
    const begun = performance.now();
    const text = await textToSend(notebook);
    this.cost = performance.now() - begun;
    if (text === undefined) {
      await this.notify("didClose", notebook, {});
      this.sent.delete(uri);
    } else if (text !== known?.text) {
      const version = (known?.version ?? 0) + 1;
      this.sent.set(uri, { version, text });
      await (known === undefined
        ? this.client.sendNotification("textDocument/didOpen", { textDocument: { uri, version, languageId: "json", text } })
        : this.notify("didChange", notebook, { contentChanges: [{ text }] }));
    }
  }

  /** A notification about one that the server knows. */
  private async notify(what: string, notebook: NotebookDocument, more: object): Promise<void> {
    const uri = this.uriOf(notebook);
    const known = this.sent.get(uri);
    if (known !== undefined) {
      await this.client.sendNotification(`textDocument/${what}`, { textDocument: { uri, version: known.version }, ...more });
    }
  }

  private uriOf({ uri }: NotebookDocument): string {
    return this.client.code2ProtocolConverter.asUri(uri);
  }
}

/** A file that is not text to VS Code: opened as text, it would be there twice. */
export function isNotebook({ path }: Pick<Uri, "path">): boolean {
  return path.toLowerCase().endsWith(".ipynb");
}

/** The cell whose text a document is. */
export function cellOf({ uri }: Pick<TextDocument, "uri">): NotebookCell | undefined {
  const cells = uri.scheme === CELL_SCHEME ? workspace.notebookDocuments.flatMap((notebook) => notebook.getCells()) : [];
  return cells.find(({ document }) => String(document.uri) === String(uri));
}

/** The text that the file has once it is saved. */
async function savedText(notebook: NotebookDocument): Promise<string> {
  const cells = notebook.getCells().map(({ kind, document, outputs, metadata, executionSummary }) => {
    const data = new NotebookCellData(kind, document.getText(), document.languageId);
    return Object.assign(data, { outputs: [...outputs], metadata, executionSummary });
  });
  const data = Object.assign(new NotebookData(cells), { metadata: notebook.metadata });
  const exporter = await extensions.getExtension<Exporter>("vscode.ipynb")?.activate();
  if (exporter === undefined) {
    throw new Error(l10n.t("VS Code's extension for notebooks, vscode.ipynb, is disabled."));
  }
  return exporter.exportNotebook(data);
}

/** The text of its file with unsaved changes, as the server knows it. */
export async function textOfNotebook(uri: Uri): Promise<string> {
  const open = workspace.notebookDocuments.find((notebook) => String(notebook.uri) === String(uri));
  return (open && (await textToSend(open))) ?? readFile(uri.fsPath, "utf8");
}

async function textToSend(notebook: NotebookDocument): Promise<string | undefined> {
  if (notebook.isClosed || notebook.notebookType !== TYPE || notebook.uri.scheme !== "file") {
    return undefined;
  }
  const text = await savedText(notebook);
  return notebook.isDirty || text === (await readFile(notebook.uri.fsPath, "utf8")) ? text : undefined;
}

/** What turns the cells of a file into others: changed sources as edits of their text, all else as new cells. `undefined` if the cells have changed since. */
async function cellEdits(notebook: NotebookDocument, before: string, after: string): Promise<WorkspaceEdit | undefined> {
  const [old, now]: [Cell[], Cell[]] = [JSON.parse(before).cells, JSON.parse(after).cells];
  const bytes = new TextEncoder().encode(after);
  const data = await commands.executeCommand<NotebookData>("vscode.executeDataToNotebook", notebook.notebookType, bytes);
  const cells = notebook.getCells();
  if (cells.length !== old.length || cells.some(({ document }, index) => plain(document.getText()) !== sourceOf(old[index]))) {
    return undefined;
  }
  const isSame = (one: Cell | undefined, other: Cell | undefined) => JSON.stringify(one) === JSON.stringify(other);
  const [start, behind] = sameEnds(old, now, isSame);
  const [oldEnd, nowEnd] = [old.length - behind, now.length - behind];
  const edit = new WorkspaceEdit();
  const withoutSource = (cell: Cell | undefined) => ({ ...cell, source: "" }) as Cell;
  const onlySources = old.slice(start, oldEnd).every((cell, index) => isSame(withoutSource(cell), withoutSource(now[start + index])));
  if (oldEnd === nowEnd && onlySources) {
    for (const { document, index } of cells.slice(start, oldEnd)) {
      const { range, text } = replacement(document, sourceOf(now[index]));
      edit.replace(document.uri, range, text);
    }
  } else {
    edit.set(notebook.uri, [NotebookEdit.replaceCells(new NotebookRange(start, oldEnd), data.cells.slice(start, nowEnd))]);
  }
  return edit;
}

/** The edit that turns a document into another text. */
function replacement(document: TextDocument, text: string): { range: Range; text: string } {
  const before = document.getText();
  const [start, behind] = sameEnds(before, text);
  const range = new Range(document.positionAt(start), document.positionAt(before.length - behind));
  return { range, text: text.slice(start, text.length - behind) };
}

/** The cells of a notebook's file, as the model reads them; a text that has none stays as it is. */
export function cellsOf(text: string): string {
  try {
    const { cells } = JSON.parse(text) as { readonly cells: readonly Cell[] };
    return cells.map((cell, index) => `# %% [${cell.cell_type}] ${index + 1}\n${sourceOf(cell)}\n`).join("\n");
  } catch {
    return text;
  }
}

function sourceOf(cell: Cell | undefined): string {
  return plain([cell?.source ?? ""].flat().join(""));
}

function plain(text: string): string {
  return text.replaceAll("\r\n", "\n");
}
