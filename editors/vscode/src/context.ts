/** What goes along with a question: the selected text as the editor has it, or a file to look at. */
import { basename } from "node:path";
import { type Range, type TextDocument, type TextEditor, window } from "vscode";
import type { ContentBlock } from "./protocol";

export interface Attachment {
  readonly label: string;
  readonly block: ContentBlock;
}

/** The selection, or the whole file by name when nothing is selected. */
export function attachmentOf(editor: TextEditor): Attachment {
  const { document, selection } = editor;
  return selection.isEmpty ? fileAttachment(document) : rangeAttachment(document, selection);
}

export function rangeAttachment(document: TextDocument, range: Range): Attachment {
  const { first, last } = lines(range);
  const where = first === last ? `${first}` : `${first}-${last}`;
  const fragment = first === last ? `L${first}` : `L${first}-L${last}`;
  const uri = document.uri.with({ fragment }).toString();
  return {
    label: `${basename(document.fileName)}:${where}`,
    block: { type: "resource", resource: { uri, mimeType: "text/plain", text: document.getText(range) } },
  };
}

/** The code editor the person works in, which is still there when the focus is in the chat. */
export function currentEditor(): TextEditor | undefined {
  const isCode = (editor: TextEditor) => ["file", "untitled"].includes(editor.document.uri.scheme);
  return [window.activeTextEditor, ...window.visibleTextEditors].find((editor) => editor !== undefined && isCode(editor));
}

export function fileAttachment(document: TextDocument): Attachment {
  const name = basename(document.fileName);
  return { label: name, block: { type: "resource_link", uri: document.uri.toString(), name } };
}

/** 1-based; a selection that ends before the first character of a line does not include that line. */
function lines({ start, end }: Range): { first: number; last: number } {
  const endsBefore = end.character === 0 && end.line > start.line;
  return { first: start.line + 1, last: end.line + (endsBefore ? 0 : 1) };
}
