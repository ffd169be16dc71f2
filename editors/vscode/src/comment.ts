/** Comments on lines: collected as chips above the chat input and sent as one prompt. */
import { l10n, type Range, type TextDocument, Uri, window, workspace } from "vscode";
import type { ChatView } from "./chat";
import { currentEditor, rangeAttachment } from "./context";
import { lines } from "./marks";
import type { Hunk } from "./review";
import { fenced } from "./transcript";

const LABEL_LENGTH = 30;

/** On a change to review, else on the selection or the line of the cursor. */
export async function comment(chat: ChatView, hunk?: Hunk): Promise<void> {
  const place = await placeOf(hunk);
  if (place === undefined) {
    void window.showInformationMessage(l10n.t("Open a file to comment on."));
    return;
  }
  const { document, range } = place;
  const { label } = rangeAttachment(document, range);
  const words = await window.showInputBox({
    title: l10n.t("tandem: Comment on {0}", label),
    prompt: l10n.t("Comments are collected below the chat and sent with your next prompt."),
  });
  if (words === undefined || words.trim() === "") {
    return;
  }
  const where = `${workspace.asRelativePath(document.uri)}:${label.slice(label.lastIndexOf(":") + 1)}`;
  const text = `Comment on ${where}:\n\n${fenced(document.getText(range), document.languageId)}\n\n${words.trim()}`;
  const short = words.length > LABEL_LENGTH ? `${words.slice(0, LABEL_LENGTH)}…` : words;
  chat.attach({ label: `${label}: ${short}`, block: { type: "text", text } });
  await chat.reveal();
}

async function placeOf(hunk: Hunk | undefined): Promise<{ document: TextDocument; range: Range } | undefined> {
  if (hunk?.hunk !== undefined) {
    const document = await workspace.openTextDocument(Uri.file(hunk.file.path));
    return { document, range: lines(document, hunk) };
  }
  const editor = currentEditor();
  if (editor === undefined) {
    return undefined;
  }
  const { document, selection } = editor;
  return { document, range: selection.isEmpty ? document.lineAt(selection.start.line).range : selection };
}
