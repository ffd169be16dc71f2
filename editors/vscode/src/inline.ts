/**
 * Edit in place: the person describes the change below the lines, and the model's rewrite shows there as a diff. Invariants: the document does not
 * change before the edit is kept, which is one undo step and a turn of the conversation; one edit at a time; lines that were changed meanwhile are
 * never overwritten.
 */
import {
  type Comment,
  CommentMode,
  type CommentReply,
  comments,
  type CommentThread,
  CommentThreadCollapsibleState,
  CancellationTokenSource,
  commands,
  Disposable,
  l10n,
  MarkdownString,
  Position,
  Range,
  Selection,
  type TextDocument,
  type TextDocumentChangeEvent,
  type TextEditor,
  ThemeColor,
  window,
  workspace,
  WorkspaceEdit,
} from "vscode";
import { Cells, type KeptEdit } from "./cells";
import { currentEditor, rangeAttachment } from "./context";
import type { Conversations } from "./conversations";
import { EarlyTyping } from "./early";
import { failure } from "./failure";
import { counted } from "./hunks";
import { cellOf } from "./notebooks";
import { asDiff, type Lines, type Piece, piecesOf, shifted, withoutLastLineEnd } from "./rewrite";
import { visible } from "./safe";
import type { Server } from "./server";
import { fenced } from "./transcript";

const CONTROLLER = "tandem.inline";
/** The longest wait for the widget's input. */
const INPUT_MS = 3000;
/** The widget redraws itself up to 100 ms after its comments changed, and closes an input that was sent: only then can it have the focus. */
const DRAWN_MS = 250;
const FOCUS_TRIES = 4;
/** From the widget to its input. */
const NEXT = "widgetNavigation.focusNext";

/** A displayed hunk of the proposal. */
interface Shown extends Comment {
  readonly piece?: Piece;
}

interface Proposal {
  /** The latest instruction. */
  instruction: string;
  /** The replacement so far. */
  text: string | undefined;
  pieces: readonly Piece[];
  left: Set<Piece>;
}

interface Edit extends Proposal {
  readonly document: TextDocument;
  readonly thread: CommentThread;
  lines: Lines;
  /** While typed keys may go into the document. */
  early: EarlyTyping | undefined;
  input?: TextDocument | undefined;
  /** `before` is the proposal that it is to improve. */
  request: { readonly cancel: CancellationTokenSource; readonly end: Promise<void>; readonly before: Proposal } | undefined;
}

export class Inline implements Disposable {
  private readonly controller = comments.createCommentController(CONTROLLER, l10n.t("Edit with tandem"));
  private readonly replaced = window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor("diffEditor.removedLineBackground"),
  });
  private readonly cells: Cells;
  private edit: Edit | undefined;
  private opening = Promise.resolve();
  private readonly subscriptions: Disposable;

  constructor(
    private readonly server: Server,
    private readonly conversations: Conversations,
  ) {
    this.cells = new Cells(server);
    this.controller.options = {
      prompt: l10n.t("What should change?"),
      placeHolder: l10n.t("Describe a change: Enter sends it, Escape closes"),
    };
    const register = (name: string, run: (...args: never[]) => unknown) => commands.registerCommand(`tandem.${name}`, run);
    this.subscriptions = Disposable.from(
      this.controller,
      this.replaced,
      this.cells,
      workspace.onDidChangeTextDocument((event) => this.changed(event)),
      workspace.onDidCloseTextDocument((document) => document === this.edit?.document && this.close()),
      window.onDidChangeVisibleTextEditors(() => this.decorate()),
      register("editSelection", () => (this.opening = this.begin())),
      register("inlineSend", (clicked?: CommentReply) => void this.send(clicked === undefined)),
      register("inlineAccept", () => this.accept()),
      register("inlineDiscard", () => this.discard()),
      register("inlineLeave", ({ piece }: Shown) => this.choose(piece, false)),
      register("inlineTake", ({ piece }: Shown) => this.choose(piece, true)),
    );
  }

  dispose(): void {
    this.close();
    this.subscriptions.dispose();
  }

  /** Opens the input below the selected lines, or the one of the cursor. */
  private async begin(): Promise<void> {
    const editor = currentEditor();
    if (editor === undefined) {
      void window.showInformationMessage(l10n.t("Open a file to edit."));
      return;
    }
    this.close();
    const { document } = editor;
    const cell = cellOf(document);
    if (cell !== undefined) {
      const kept = await this.cells.edit(cell, editor);
      return kept && this.record(kept);
    }
    await this.open(editor, selectedLines(editor), "");
  }

  /** Opens it with what was typed so far. */
  private async open(editor: TextEditor, lines: Lines, typed: string): Promise<void> {
    const { document, selection } = editor;
    const range = rangeOf(document, lines);
    const early = new EarlyTyping(editor, range.union(selection));
    if (!selection.isEmpty) {
      editor.selection = new Selection(range.end, range.end); // keys typed there replace nothing, and the input will be here
    }
    const opened = inputOpened();
    const thread = this.controller.createCommentThread(document.uri, range, []);
    thread.collapsibleState = CommentThreadCollapsibleState.Expanded;
    const edit: Edit = {
      document,
      thread,
      lines,
      early,
      instruction: "",
      text: undefined,
      pieces: [],
      left: new Set(),
      request: undefined,
    };
    this.edit = edit;
    this.draw();
    edit.input = await opened;
    const isFocused = await this.focusInput();
    const more = edit === this.edit ? await early.take() : undefined;
    edit.early = undefined;
    if (edit !== this.edit) {
      return; // discarded meanwhile: what is typed and selected now is meant for the document
    }
    editor.selection = selection.isEmpty ? selection : new Selection(range.start, range.end);
    if (more === undefined) {
      early.events.forEach((event) => this.changed(event));
    } else if (more !== "" && !isFocused && !more.includes("\n")) {
      this.close(); // the widget moved with the lines, and has lost its place
      return this.open(editor, lines, typed + more);
    }
    const [line = "", ...sent] = (typed + (more ?? "")).split(/\r?\n/);
    await this.changeInput(edit, new Range(0, 0, 0, 0), line);
    if (sent.length > 0) {
      void this.send(isFocused);
    }
  }

  /**
   * The widget takes the focus in two steps, itself and then its input: between them a key would be lost, and an input that has the focus loses it. It is
   * the one at the end of the selection. The active editor says nothing here: while the input has the focus, it is the input.
   */
  private async focusInput(): Promise<boolean> {
    const { edit } = this;
    const editor = window.visibleTextEditors.find(({ document }) => document === edit?.document);
    const isThere = edit !== undefined && editor?.selection.end.line === edit.lines.last;
    if (isThere) {
      const steps = ["workbench.action.focusCommentOnCurrentLine", NEXT];
      await commands.executeCommand("runCommands", { commands: steps });
    }
    return isThere;
  }

  /** Again, if the person has typed into it meanwhile. */
  private async changeInput(edit: Edit, range: Range, text: string): Promise<void> {
    let isChanged = range.isEmpty && text === "";
    while (!isChanged && edit === this.edit && edit.input?.isClosed === false) {
      const change = new WorkspaceEdit();
      change.replace(edit.input.uri, range, text);
      isChanged = await workspace.applyEdit(change);
    }
  }

  /**
   * Once the window has the comments, which is late on a busy machine: it answers in the order in which it is told. The widget can learn late, too, that it
   * has the focus, and ignores the second step until then; in the input, that step does nothing.
   */
  private async focusSoon(): Promise<void> {
    const { edit } = this;
    await commands.executeCommand("setContext", "tandem.inlineOpen", edit !== undefined);
    await drawn();
    await this.focusInput();
    for (let tries = 0; tries < FOCUS_TRIES && edit === this.edit; tries++) {
      await drawn();
      await commands.executeCommand(NEXT);
    }
  }

  /** Sends what is in the input; with nothing in it, keeps the proposal. */
  private async send(hasFocus: boolean): Promise<void> {
    await this.opening;
    const { edit } = this;
    const text = edit?.input?.getText() ?? "";
    if (edit?.input === undefined || text.trim() === "") {
      return this.accept();
    }
    void this.ask(text);
    if (!hasFocus) {
      void this.focusSoon();
    }
    await this.changeInput(edit, new Range(new Position(0, 0), edit.input.positionAt(text.length)), "");
  }

  /** Asks the model, or asks it to improve its proposal. */
  private async ask(instruction: string): Promise<void> {
    const { edit } = this;
    if (edit === undefined || instruction.trim() === "") {
      return;
    }
    edit.request?.cancel.cancel();
    await edit.request?.end; // while both run, neither's text is shown
    if (edit !== this.edit) {
      return;
    }
    const { text, pieces, left } = edit;
    const before = { instruction: edit.instruction || instruction.trim(), text, pieces, left };
    Object.assign(edit, { instruction: instruction.trim(), text: "", pieces: [], left: new Set() } satisfies Proposal);
    const cancel = new CancellationTokenSource();
    const end = this.run(edit, before, cancel);
    edit.request = { cancel, end, before };
    this.draw();
    await end;
  }

  private async run(edit: Edit, before: Proposal, cancel: CancellationTokenSource): Promise<void> {
    const { document, instruction } = edit;
    const { start, end } = rangeOf(document, edit.lines);
    try {
      const range = { start: { line: start.line, character: 0 }, end: { line: end.line, character: end.character } };
      const textDocument = { uri: document.uri.toString() };
      const params = { textDocument, range, instruction, ...(before.text && { previous: before.text }) };
      const text = await this.server.rewrite(params, cancel.token, (grown) => this.grew(edit, grown));
      edit.text = withoutLastLineEnd(text);
      edit.pieces = piecesOf(document.getText(rangeOf(document, edit.lines)), edit.text);
      edit.request = undefined;
      this.draw();
    } catch (error) {
      Object.assign(edit, before, { request: undefined });
      this.draw(cancel.token.isCancellationRequested ? undefined : failure(error).text);
    }
  }

  private grew(edit: Edit, text: string): void {
    if (edit === this.edit && edit.request !== undefined) {
      edit.text = text;
      this.draw();
    }
  }

  private choose(piece: Piece | undefined, isTaken: boolean): void {
    if (piece !== undefined) {
      this.edit?.left[isTaken ? "delete" : "add"](piece);
      this.draw();
      void this.focusSoon();
    }
  }

  /** Applies the hunks that were not left out, as one undo step. */
  private async accept(): Promise<void> {
    const { edit } = this;
    if (edit === undefined || edit.request !== undefined || edit.left.size === edit.pieces.length) {
      return;
    }
    const { document, lines, pieces, left, instruction } = edit;
    const before = document.getText();
    const message = { text: instruction, attachments: [rangeAttachment(document, rangeOf(document, lines))] };
    const change = new WorkspaceEdit();
    for (const piece of pieces.filter((one) => !left.has(one))) {
      const { range, text } = replacement(document, lines.first, piece);
      change.replace(document.uri, range, text);
    }
    this.close();
    if (await workspace.applyEdit(change)) {
      void this.record({ message, uri: document.uri, before, after: document.getText() });
    } else {
      void window.showWarningMessage(l10n.t("The edit could not be applied. Nothing was changed."));
    }
    await window.showTextDocument(document);
  }

  /** Makes the edit part of the conversation, and so of its review. The chat does not have to be open. */
  private async record({ message, uri, before, after }: KeptEdit): Promise<void> {
    try {
      await this.conversations.start();
      await (await this.conversations.shown()).keepEdit(message, { textDocument: { uri: uri.toString() }, before, after });
    } catch (error) {
      window.setStatusBarMessage(l10n.t("tandem: the edit was kept, but is not in the session: {0}", failure(error).text), 10_000);
    }
  }

  /** An improvement that is being written is stopped; otherwise, nothing of the edit remains. */
  private async discard(): Promise<void> {
    const { edit } = this;
    if (edit?.request?.before.text !== undefined) {
      return edit.request.cancel.cancel();
    }
    this.close();
    await edit?.early?.take(); // it was meant for the input
    await (edit && window.showTextDocument(edit.document));
  }

  private close(): void {
    const { edit } = this;
    this.edit = undefined;
    edit?.early?.dispose();
    edit?.request?.cancel.cancel();
    edit?.thread.dispose();
    this.tell();
    this.decorate();
  }

  private changed({ document, contentChanges }: TextDocumentChangeEvent): void {
    const { edit } = this;
    if (document !== edit?.document || contentChanges.length === 0 || edit.early !== undefined) {
      return;
    }
    let lines: Lines | undefined = edit.lines;
    for (const { range, text } of contentChanges) {
      lines &&= shifted(lines, { first: range.start.line, last: range.end.line, text });
    }
    if (lines === undefined) {
      this.close();
      window.setStatusBarMessage(l10n.t("tandem: edit discarded because its lines were changed"), 5000);
    } else {
      edit.lines = lines;
      edit.thread.range = rangeOf(document, lines);
      this.decorate();
    }
  }

  private draw(problem?: string): void {
    const { edit } = this;
    if (edit === undefined) {
      return;
    }
    const { thread, request, pieces, left } = edit;
    const isReady = request === undefined && pieces.length > 0;
    thread.contextValue = isReady ? "ready" : "open";
    thread.label = this.label(edit);
    const asked = edit.instruction === "" ? [] : [comment(l10n.t("You"), new MarkdownString().appendText(visible(edit.instruction)))];
    const failed = problem === undefined ? [] : [comment("tandem", new MarkdownString().appendText(problem))];
    thread.comments = [...asked, ...proposal(edit), ...failed];
    this.tell(isReady && left.size < pieces.length);
    this.decorate();
  }

  private label({ request, pieces, left, text }: Edit): string {
    if (request !== undefined) {
      return l10n.t("tandem is writing… Escape stops");
    }
    if (pieces.length > 0) {
      return l10n.t("{0}: Enter keeps, Escape discards, or describe what to improve", counted(pieces.length - left.size));
    }
    return text === undefined ? l10n.t("Edit with tandem") : l10n.t("No change proposed");
  }

  /** Sets the contexts of the key bindings. */
  private tell(isReady = false): void {
    void commands.executeCommand("setContext", "tandem.inlineOpen", this.edit !== undefined);
    void commands.executeCommand("setContext", "tandem.inlineReady", isReady);
  }

  /** Marks the lines that would be removed. */
  private decorate(): void {
    for (const editor of window.visibleTextEditors) {
      editor.setDecorations(this.replaced, editor.document === this.edit?.document ? this.going(this.edit) : []);
    }
  }

  private going({ document, lines, pieces, left, request }: Edit): Range[] {
    if (request !== undefined) {
      return [rangeOf(document, lines)];
    }
    const taken = pieces.filter((piece) => !left.has(piece) && piece.before.length > 0);
    return taken.map(({ line, before }) => new Range(lines.first + line, 0, lines.first + line + before.length - 1, 0));
  }
}

function drawn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, DRAWN_MS));
}

/** The editor opens a document for the widget's input. */
function inputOpened(): Promise<TextDocument | undefined> {
  return new Promise((resolve) => {
    const done = (input?: TextDocument) => {
      clearTimeout(timer);
      subscription.dispose();
      resolve(input);
    };
    const timer = setTimeout(done, INPUT_MS);
    const subscription = workspace.onDidOpenTextDocument((document) => document.uri.scheme === "comment" && done(document));
  });
}

/** The text while it streams, then its hunks. */
function proposal({ text, pieces, left, request, document }: Edit): Shown[] {
  if (request !== undefined) {
    return [comment("tandem", new MarkdownString(text ? fenced(visible(text), document.languageId) : "…"))];
  }
  return pieces.map((piece) => {
    const isLeft = left.has(piece);
    const body = new MarkdownString(asDiff(piece));
    return { ...comment("tandem", body), piece, contextValue: isLeft ? "left" : "taken", ...(isLeft && { label: l10n.t("left out") }) };
  });
}

function comment(name: string, body: MarkdownString): Shown {
  return { author: { name }, mode: CommentMode.Preview, body };
}

/** A selection that ends before the first character of a line does not include that line. */
function selectedLines({ selection: { start, end } }: TextEditor): Lines {
  const endsBefore = end.character === 0 && end.line > start.line;
  return { first: start.line, last: end.line - (endsBefore ? 1 : 0) };
}

/** Whole lines, without the end of the last one. */
function rangeOf(document: TextDocument, { first, last }: Lines): Range {
  return new Range(first, 0, last, document.lineAt(Math.min(last, document.lineCount - 1)).text.length);
}

/** In the current text: lines that are only added go before the line where they begin, or after the last one. */
function replacement(document: TextDocument, first: number, { line, before, after }: Piece): { range: Range; text: string } {
  const start = first + line;
  if (before.length === 0) {
    const isBehind = start >= document.lineCount;
    const at = isBehind ? document.lineAt(document.lineCount - 1).range.end : document.lineAt(start).range.start;
    const text = after.join("\n");
    return { range: new Range(at, at), text: isBehind ? `\n${text}` : `${text}\n` };
  }
  const last = start + before.length - 1;
  if (after.length > 0) {
    return { range: new Range(start, 0, last, document.lineAt(last).text.length), text: after.join("\n") };
  }
  const isToEnd = last + 1 >= document.lineCount;
  if (!isToEnd) {
    return { range: new Range(start, 0, last + 1, 0), text: "" };
  }
  const from = start === 0 ? document.lineAt(0).range.start : document.lineAt(start - 1).range.end;
  return { range: new Range(from, document.lineAt(last).range.end), text: "" };
}
