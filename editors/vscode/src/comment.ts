/** Comments on lines: collected as chips above the chat input and sent as one prompt. */
import { basename } from "node:path";
import { l10n, type Range, type TextDocument, Uri, window, workspace } from "vscode";
import type { ChatView } from "./chat";
import { currentEditor, rangeAttachment } from "./context";
import { cellText } from "./hunks";
import { lines } from "./marks";
import { isNotebook } from "./notebooks";
import type { Hunk } from "./review";
import { fenced } from "./transcript";

const LABEL_LENGTH = 30;

interface Place {
  /** The name of the file, and the place in it. */
  readonly label: string;
  /** The same, relative to the workspace. */
  readonly where: string;
  readonly quoted: string;
}

/** On a change to review, else on the selection or the line of the cursor. */
export async function comment(chat: ChatView, hunk?: Hunk): Promise<void> {
  const place = await placeOf(hunk);
  if (place === undefined) {
    void window.showInformationMessage(l10n.t("Open a file to comment on."));
    return;
  }
  const { label, where, quoted } = place;
  const words = await window.showInputBox({
    title: l10n.t("tandem: Comment on {0}", label),
    prompt: l10n.t("Comments are collected above the chat's input and sent with your next prompt."),
  });
  if (words === undefined || words.trim() === "") {
    return;
  }
  const text = `Comment on ${where}:\n\n${quoted}\n\n${words.trim()}`;
  const short = words.length > LABEL_LENGTH ? `${words.slice(0, LABEL_LENGTH)}…` : words;
  chat.attach({ label: `${label}: ${short}`, block: { type: "text", text } });
  await chat.reveal();
}

/** A change to a notebook is recorded for its file, which is JSON, so its effect on the cells is quoted. */
async function placeOf(hunk: Hunk | undefined): Promise<Place | undefined> {
  if (hunk?.hunk !== undefined) {
    const uri = Uri.file(hunk.file.path);
    if (isNotebook(uri)) {
      return { label: basename(uri.path), where: workspace.asRelativePath(uri), quoted: fenced(cellText(hunk.hunk), "") };
    }
    const document = await workspace.openTextDocument(uri);
    return inDocument(document, lines(document, hunk));
  }
  const editor = currentEditor();
  if (editor === undefined) {
    return undefined;
  }
  const { document, selection } = editor;
  return inDocument(document, selection.isEmpty ? document.lineAt(selection.start.line).range : selection);
}

function inDocument(document: TextDocument, range: Range): Place {
  const { label } = rangeAttachment(document, range);
  const where = workspace.asRelativePath(document.uri) + label.slice(basename(document.fileName).length);
  return { label, where, quoted: fenced(document.getText(range), document.languageId) };
}
