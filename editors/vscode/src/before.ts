/**
 * The editor's own diff of a file under review: the text before the turn on the left, the file itself on the right. VS Code compares notebooks by cell, but
 * reads them from file systems alone.
 */
import { basename } from "node:path";
import {
  commands,
  Disposable,
  EventEmitter,
  type FileChangeEvent,
  FileChangeType,
  type FileSystemProvider,
  FileSystemError,
  FileType,
  l10n,
  Range,
  type Tab,
  TabInputNotebookDiff,
  TabInputText,
  TabInputTextDiff,
  type TextDocumentContentProvider,
  Uri,
  window,
  workspace,
} from "vscode";
import { without } from "./hunks";
import { cellsOf, isNotebook, textOfNotebook } from "./notebooks";
import type { Hunk, Part, Review } from "./review";

const SCHEME = "tandem-before";
const NOTEBOOK_SCHEME = "tandem-before-notebook";
/** The fragment of a notebook's text that is shown as its cells. */
const CELLS = "cells";

export class Before implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly shown = new Map<string, Uri>();
  /** The turns that were shown in one editor, by its title: VS Code says nothing else of such an editor. */
  private readonly turns = new Map<string, Part>();
  private readonly subscriptions: Disposable;

  constructor(private readonly review: Review) {
    this.subscriptions = Disposable.from(
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      workspace.onDidCloseTextDocument(({ uri }) => this.shown.delete(uri.toString())),
      workspace.registerFileSystemProvider(NOTEBOOK_SCHEME, this.notebooks(), { isReadonly: true }),
      review.onChange(() => this.shown.forEach((uri) => this.changed.fire(uri))),
      this.changed,
    );
  }

  async show(part: Part): Promise<void> {
    const { file, hunk } = part;
    if (file === undefined) {
      return this.showTurn(part);
    }
    const [before, after] = await this.sides({ ...part, file });
    const line = hunk && Math.max(0, hunk.new.start - 1);
    const options = { preview: true, ...(line !== undefined && { selection: new Range(line, 0, line, 0) }) };
    await commands.executeCommand("vscode.diff", before, after, l10n.t("{0} (before tandem ↔ now)", basename(file.path)), options);
  }

  /** All files of a turn in one editor. It shows notebooks as text, so they are given as the text of their cells. */
  async showTurn(part: Part): Promise<void> {
    const resources = part.turn.files.map(async (file) => {
      const uri = Uri.file(file.path);
      const sides = await this.sides({ ...part, file });
      return [uri, ...(isNotebook(uri) ? sides.map(asCells) : sides)];
    });
    const title = this.titleOf(part);
    this.turns.set(title, part);
    await commands.executeCommand("vscode.changes", title, await Promise.all(resources));
  }

  /** What the active editor shows of what is to be reviewed: a turn, a file before a turn and now, or a file. */
  get inEditor(): Part[] {
    const { activeTab: tab } = window.tabGroups.activeTabGroup;
    return tab === undefined ? [] : this.shownIn(tab);
  }

  /** Closes the active editor if the change it compares is no longer pending. A file with unsaved text takes its place. */
  async closeSettled(): Promise<void> {
    const { activeTab: tab } = window.tabGroups.activeTabGroup;
    if (tab === undefined || !this.compares(tab) || this.shownIn(tab).length > 0) {
      return;
    }
    if (tab.isDirty && tab.input instanceof TabInputTextDiff) {
      await window.showTextDocument(tab.input.modified, { preview: false });
    } else if (tab.isDirty) {
      return;
    }
    await window.tabGroups.close(tab);
  }

  private compares({ input, label }: Tab): boolean {
    return isComparison(input) ? input.original.scheme.startsWith(SCHEME) : this.turnIn(label) !== undefined;
  }

  private shownIn({ input, label }: Tab): Part[] {
    if (input instanceof TabInputText) {
      return filesOf(this.review.of(input.uri));
    }
    if (isComparison(input)) {
      return filesOf(input.original.scheme.startsWith(SCHEME) ? this.reverted(input.original) : this.review.of(input.modified));
    }
    const turn = this.turnIn(label);
    return turn ? this.review.turns.filter((part) => isSameTurn(part, turn)) : [];
  }

  private turnIn(label: string): Part | undefined {
    return [...this.turns].findLast(([title]) => label.startsWith(title))?.[1]; // VS Code adds the number of files
  }

  get isTurnInEditor(): boolean {
    return this.inEditor.some(({ file }) => file === undefined);
  }

  /** The file before all changes under review. */
  ofAll(path: Uri): Uri {
    return Uri.from({ scheme: SCHEME, path: path.path });
  }

  /** This turn's only, even if another turn has the same prompt. */
  private titleOf(part: Part): string {
    const words = l10n.t("{0} (before tandem ↔ now)", this.review.title(part));
    const isFree = (title: string) => isSameTurn(this.turns.get(title) ?? part, part);
    let title = words;
    for (let number = 2; !isFree(title); number++) {
      title = `${words} #${number}`;
    }
    return title;
  }

  /** The file before the turn and now; one that is gone is empty. */
  private async sides({ session, turn, file }: Part & Pick<Hunk, "file">): Promise<[Uri, Uri]> {
    const path = Uri.file(file.path);
    const scheme = isNotebook(path) ? NOTEBOOK_SCHEME : SCHEME;
    const before = Uri.from({ scheme, path: path.path, query: addressOf(session, turn) });
    const isThere = (await textOf(path)) !== undefined;
    return [before, isThere ? path : before.with({ query: "nothing" })];
  }

  async provideTextDocumentContent(uri: Uri): Promise<string> {
    this.shown.set(uri.toString(), uri);
    const hunks = this.reverted(uri).map(({ hunk }) => hunk);
    const text = uri.query === "nothing" ? "" : without((await textOf(Uri.file(uri.path))) ?? "", hunks);
    return uri.fragment === CELLS ? cellsOf(text) : text;
  }

  private notebooks(): FileSystemProvider {
    const bytesOf = async (uri: Uri) => new TextEncoder().encode(await this.provideTextDocumentContent(uri));
    const refuse = () => {
      throw FileSystemError.NoPermissions();
    };
    const changed = new EventEmitter<FileChangeEvent[]>();
    let mtime = 0;
    this.changed.event((uri) => {
      mtime++;
      changed.fire([{ type: FileChangeType.Changed, uri }]);
    });
    return {
      onDidChangeFile: changed.event,
      watch: () => changed,
      stat: async (uri) => ({ type: FileType.File, ctime: 0, mtime, size: (await bytesOf(uri)).length }),
      readFile: bytesOf,
      readDirectory: refuse,
      createDirectory: refuse,
      writeFile: refuse,
      delete: refuse,
      rename: refuse,
    };
  }

  /** The changes that a text on the left side excludes. */
  private reverted({ path, query }: Uri): Hunk[] {
    return this.review.of(Uri.file(path)).filter(({ session, turn }) => query === "" || addressOf(session, turn) === query);
  }

  dispose(): void {
    this.subscriptions.dispose();
  }
}

/** Each file of a turn once. */
function filesOf(hunks: readonly Hunk[]): Part[] {
  const parts = hunks.map(({ session, turn, file }) => ({ session, turn, file }));
  return parts.filter((part, index) => parts.findIndex((other) => isSameTurn(part, other)) === index);
}

/** One side of a comparison, as the text of its cells. The file itself has no query: this one reverts nothing. */
function asCells({ path, query }: Uri): Uri {
  return Uri.from({ scheme: SCHEME, path, query: query || "now", fragment: CELLS });
}

function isSameTurn(a: Part, b: Part): boolean {
  return a.session === b.session && a.turn.turn === b.turn.turn;
}

function addressOf({ savedId = "" }: Part["session"], { turn }: Part["turn"]): string {
  return `${savedId}/${turn}`;
}

function isComparison(input: unknown): input is TabInputTextDiff | TabInputNotebookDiff {
  return input instanceof TabInputTextDiff || input instanceof TabInputNotebookDiff;
}

/** The file's text, including unsaved changes; `undefined` if there is no such file. */
async function textOf(path: Uri): Promise<string | undefined> {
  try {
    return isNotebook(path) ? await textOfNotebook(path) : (await workspace.openTextDocument(path)).getText();
  } catch {
    return undefined;
  }
}
