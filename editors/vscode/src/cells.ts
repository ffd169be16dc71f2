/**
 * Edit in place in a cell of a notebook. VS Code shows no comments there: the input opens above, and the proposal in a comparison. Invariants: the cell does
 * not change before the edit is kept; one that was changed meanwhile is never overwritten.
 */
import {
  commands,
  type Disposable,
  EventEmitter,
  l10n,
  languages,
  type NotebookCell,
  ProgressLocation,
  Range,
  type Tab,
  TabInputTextDiff,
  type TextDocumentContentProvider,
  type TextEditor,
  Uri,
  window,
  workspace,
  WorkspaceEdit,
} from "vscode";
import { DidCloseTextDocumentNotification, DidOpenTextDocumentNotification } from "vscode-languageclient/node";
import { cellAttachment } from "./context";
import { showFailure } from "./failure";
import { textOfNotebook } from "./notebooks";
import type { Server } from "./server";
import type { Message } from "./turns";

const SCHEME = "tandem-cell";

export interface KeptEdit {
  readonly message: Message;
  readonly uri: Uri;
  readonly before: string;
  readonly after: string;
}

export class Cells implements TextDocumentContentProvider, Disposable {
  private proposal = "";
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration = workspace.registerTextDocumentContentProvider(SCHEME, this);

  constructor(private readonly server: Server) {}

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  provideTextDocumentContent(): string {
    return this.proposal;
  }

  /** Edits the selection, or the cell. Returns what was kept. */
  async edit(cell: NotebookCell, { selection }: TextEditor): Promise<KeptEdit | undefined> {
    const { document, notebook } = cell;
    const { version } = document;
    const whole = document.validateRange(new Range(0, 0, document.lineCount, 0));
    const range = selection.isEmpty
      ? whole
      : selection.with(selection.start.with({ character: 0 }), document.lineAt(selection.end).range.end);
    const attachment = cellAttachment(cell, range);
    let [instruction, text]: [string, string | undefined] = ["", undefined];
    try {
      for (;;) {
        const asked = await window.showInputBox({
          title: attachment.label,
          prompt:
            text === undefined
              ? l10n.t("What should change?")
              : l10n.t("{0}: Enter keeps, Escape discards, or describe what to improve", l10n.t("1 change")),
          ignoreFocusOut: true,
        });
        if (asked === undefined || (asked === "" && text === undefined)) {
          return undefined;
        }
        if (asked === "") {
          break;
        }
        instruction = asked;
        text = (await this.ask(cell, range, instruction, text)) ?? text;
        if (text !== undefined) {
          await this.show(cell, range, text);
        }
      }
    } finally {
      await window.tabGroups.close(comparisons());
    }
    const before = await textOfNotebook(notebook.uri);
    const change = new WorkspaceEdit();
    change.replace(document.uri, range, text ?? "");
    if (document.version !== version || !(await workspace.applyEdit(change))) {
      void window.showWarningMessage(l10n.t("The edit could not be applied. Nothing was changed."));
      return undefined;
    }
    const message = { text: instruction, attachments: [attachment] };
    return { message, uri: notebook.uri, before, after: await textOfNotebook(notebook.uri) };
  }

  /** During the request, the server knows the cell as a document of its own. */
  private async ask({ document }: NotebookCell, range: Range, instruction: string, previous?: string): Promise<string | undefined> {
    const uri = String(document.uri);
    const { languageId, version } = document;
    const location = ProgressLocation.Notification;
    return window.withProgress({ location, title: l10n.t("Working…"), cancellable: true }, async (_, token) => {
      try {
        await this.server.start();
        await this.server.notify(DidOpenTextDocumentNotification.type, {
          textDocument: { uri, languageId, version, text: document.getText() },
        });
        const params = { textDocument: { uri }, range, instruction, ...(previous && { previous }) };
        const text = await this.server.rewrite(params, token);
        return text.replace(/\n$/, "");
      } catch (error) {
        if (!token.isCancellationRequested) {
          showFailure(error);
        }
        return undefined;
      } finally {
        await this.server.notify(DidCloseTextDocumentNotification.type, { textDocument: { uri } });
      }
    });
  }

  /** Below, where the input hides nothing. */
  private async show(cell: NotebookCell, range: Range, text: string): Promise<void> {
    const { document } = cell;
    const now = document.getText();
    this.proposal = now.slice(0, document.offsetAt(range.start)) + text + now.slice(document.offsetAt(range.end));
    const after = document.uri.with({ scheme: SCHEME });
    this.changed.fire(after);
    if (comparisons().length === 0) {
      await languages.setTextDocumentLanguage(await workspace.openTextDocument(after), document.languageId);
      await commands.executeCommand("workbench.action.newGroupBelow");
      const title = l10n.t("{0} (proposed by tandem)", cellAttachment(cell).label);
      await commands.executeCommand("vscode.diff", document.uri, after, title, { preserveFocus: true, preview: true });
    }
  }
}

function comparisons(): Tab[] {
  const tabs = window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => input instanceof TabInputTextDiff && input.modified.scheme === SCHEME);
}
