/** Attachments of a prompt: the selected text, unsaved changes included, or a file. */
import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import {
  l10n,
  type NotebookCell,
  NotebookRange,
  type QuickPickItem,
  type Range,
  type TextDocument,
  type TextEditor,
  Uri,
  type ViewColumn,
  window,
  workspace,
} from "vscode";
import type { Chip } from "./messages";
import { CELL_SCHEME, cellOf } from "./notebooks";
import type { ContentBlock } from "./protocol";

/** Image formats that models accept. */
const IMAGES: Readonly<Record<string, string>> = {
  ".gif": "image/gif",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".png": "image/png",
  ".webp": "image/webp",
};

export interface Attachment {
  readonly label: string;
  readonly block: ContentBlock;
}

/** The images that a view knows, which shows them as thumbnails: as long as a draft or a message has them. */
const images: WeakRef<ContentBlock>[] = [];
const numbers = new WeakMap<ContentBlock, number>();

export function chips(attachments: readonly Attachment[]): Chip[] {
  return attachments.map(({ label, block }) =>
    block.type === "image" && block.data !== "" ? { label, image: numberOf(block) } : { label },
  );
}

/** As an address that the view can show. */
export function pictureOf(image: number): string {
  const block = images[image]?.deref();
  return block?.type === "image" ? `data:${block.mimeType};base64,${block.data}` : "";
}

function numberOf(block: ContentBlock): number {
  const number = numbers.get(block) ?? images.push(new WeakRef(block)) - 1;
  numbers.set(block, number);
  return number;
}

/** The selection; when nothing is selected, the whole file by name, or the cell. */
export function attachmentOf({ document, selection }: TextEditor): Attachment {
  if (!selection.isEmpty) {
    return rangeAttachment(document, selection);
  }
  const cell = cellOf(document);
  return cell === undefined ? fileAttachment(document.uri) : cellAttachment(cell);
}

/** Lets the user choose attachments: what the editor shows, or files. Images are sent, other files named. */
export async function chooseAttachments(): Promise<Attachment[]> {
  const editor = currentEditor();
  const here = editor && attachmentOf(editor);
  const files = l10n.t("Files and Images…");
  if (here === undefined) {
    return chooseFiles();
  }
  const items: QuickPickItem[] = [{ label: here.label, description: l10n.t("the selection or the open file") }, { label: files }];
  const picked = await window.showQuickPick(items, { title: l10n.t("tandem: Add to the Prompt") });
  return picked === undefined ? [] : picked.label === files ? chooseFiles() : [here];
}

async function chooseFiles(): Promise<Attachment[]> {
  const uris = await window.showOpenDialog({ canSelectMany: true, openLabel: l10n.t("Add") });
  return Promise.all((uris ?? []).map(attachmentOfFile));
}

/** An image with its bytes, a cell of a notebook with its text, another file by its name. Remote windows use their own URI scheme for files that are local to the extension. */
export async function attachmentOfFile(named: Uri): Promise<Attachment> {
  const cell = cellOf({ uri: named });
  if (cell !== undefined) {
    return cellAttachment(cell);
  }
  const uri = named.scheme === "vscode-remote" ? Uri.file(named.path) : named;
  const mimeType = IMAGES[extname(uri.path).toLowerCase()];
  return mimeType === undefined
    ? fileAttachment(uri)
    : imageAttachment(basename(uri.path), mimeType, (await readFile(uri.fsPath)).toString("base64"));
}

export function imageAttachment(label: string, mimeType: string, data: string): Attachment {
  return { label, block: { type: "image", mimeType, data } };
}

export function rangeAttachment(document: TextDocument, range: Range): Attachment {
  const cell = cellOf(document);
  return cell === undefined ? linesAttachment(document, range) : cellAttachment(cell, range);
}

/** Of a cell, all or some. */
export function cellAttachment(cell: NotebookCell, range?: Range): Attachment {
  const { label, path } = cellPlace(cell);
  return textAttachment(label, `From ${path}:\n\n${cell.document.getText(range)}`);
}

/** The server counts cells too. */
export function cellPlace({ notebook, index }: NotebookCell): { label: string; path: string } {
  const place = (path: string) => `${path}, cell ${index + 1}`;
  return { label: place(basename(notebook.uri.path)), path: place(workspace.asRelativePath(notebook.uri)) };
}

function linesAttachment(document: TextDocument, range: Range): Attachment {
  const { first, last } = linesOf(range);
  const fragment = first === last ? `L${first}` : `L${first}-L${last}`;
  const uri = document.uri.with({ fragment }).toString();
  return textAttachment(linesLabel(document, range), document.getText(range), uri);
}

/** Such as `price.rs:3-7`. */
export function linesLabel({ fileName }: TextDocument, range: Range): string {
  const { first, last } = linesOf(range);
  return `${basename(fileName)}:${first === last ? first : `${first}-${last}`}`;
}

/** A text that is sent with the prompt but is not part of what the person wrote. If it is not a file, its address is its label, from which it is shown again.
/** */
export function textAttachment(label: string, text: string, uri = label.replaceAll("%", "%25")): Attachment {
  return { label, block: { type: "resource", resource: { uri, mimeType: "text/plain", text } } };
}

/** The code editor the user works in, also while the focus is in the chat. */
export function currentEditor(): TextEditor | undefined {
  const isCode = (editor: TextEditor) => ["file", "untitled", CELL_SCHEME].includes(editor.document.uri.scheme);
  return [window.activeTextEditor, ...window.visibleTextEditors].find((editor) => editor !== undefined && isCode(editor));
}

/** Gives a document the focus. */
export async function show(document: TextDocument, column?: ViewColumn): Promise<void> {
  const cell = cellOf(document);
  if (cell === undefined) {
    await window.showTextDocument(document, column);
  } else {
    await window.showNotebookDocument(cell.notebook, { selections: [new NotebookRange(cell.index, cell.index + 1)] });
  }
}

/** By name; if it is not a file yet, with its text. */
export function fileAttachment(uri: Uri): Attachment {
  const name = basename(uri.path);
  const untitled = workspace.textDocuments.find((document) => document.isUntitled && String(document.uri) === String(uri));
  if (untitled !== undefined) {
    return textAttachment(name, untitled.getText(), String(uri));
  }
  return { label: name, block: { type: "resource_link", uri: uri.toString(), name } };
}

/** 1-based; a selection that ends before the first character of a line does not include that line. */
function linesOf({ start, end }: Range): { first: number; last: number } {
  const endsBefore = end.character === 0 && end.line > start.line;
  return { first: start.line + 1, last: end.line + (endsBefore ? 0 : 1) };
}
