/** The saved conversations of this folder: open, rename, delete; and the one that is shown, as a text to keep. */
import { l10n, type QuickPick, type QuickPickItem, ThemeIcon, window, workspace } from "vscode";
import type { ChatView } from "./chat";
import type { Conversations } from "./conversations";
import { showFailure } from "./failure";
import type { SavedSession } from "./protocol";

interface Entry extends QuickPickItem {
  readonly sessionId: string;
}

const MAX_LABEL = 60;

const rename = { iconPath: new ThemeIcon("edit"), tooltip: l10n.t("Rename") };
const remove = { iconPath: new ThemeIcon("trash"), tooltip: l10n.t("Delete") };

/** Lets the user choose a conversation to resume, whichever editor it began in. */
export async function openSession(conversations: Conversations, chat: ChatView): Promise<void> {
  const list = window.createQuickPick<Entry>();
  list.title = l10n.t("tandem: Open Session");
  list.placeholder = l10n.t("Resume a session");
  list.matchOnDescription = true;
  list.onDidTriggerItemButton(({ item, button }) =>
    (button === rename ? renameSession(conversations, item) : deleteSession(conversations, item)).catch(showFailure),
  );
  list.onDidHide(() => list.dispose());
  list.onDidAccept(() => {
    const [picked] = list.selectedItems;
    list.hide();
    void (picked && show(conversations, chat, picked).catch(showFailure));
  });
  await fill(list, conversations);
}

async function fill(list: QuickPick<Entry>, conversations: Conversations): Promise<void> {
  list.busy = true;
  list.show();
  await conversations.start();
  const saved = await conversations.saved();
  list.items = saved.map((one) => entry(one, one.sessionId === conversations.current.current));
  list.busy = false;
}

function entry({ sessionId, title, updatedAt }: SavedSession, isCurrent: boolean): Entry {
  const when = updatedAt == null ? "" : new Date(updatedAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const description = isCurrent ? l10n.t("{0}, open", when) : when;
  const [line = ""] = (title || sessionId).split("\n");
  const label = line.length > MAX_LABEL ? `${line.slice(0, MAX_LABEL)}…` : line; // else there is no room for the date
  return { sessionId, label, description, buttons: [rename, remove] };
}

async function show(conversations: Conversations, chat: ChatView, { sessionId }: Entry): Promise<void> {
  await chat.reveal();
  await conversations.load(sessionId);
}

async function renameSession(conversations: Conversations, { sessionId, label }: Entry): Promise<void> {
  const name = await window.showInputBox({ title: l10n.t("tandem: Rename Session"), value: label });
  if (name !== undefined) {
    conversations.rename(sessionId, name.trim());
  }
}

async function deleteSession(conversations: Conversations, { sessionId, label }: Entry): Promise<void> {
  const yes = l10n.t("Delete");
  const detail = l10n.t("This deletes its messages and undo history, and cannot be undone.");
  const picked = await window.showWarningMessage(l10n.t("Delete the session \u201c{0}\u201d?", label), { modal: true, detail }, yes);
  if (picked === yes) {
    await conversations.delete(sessionId);
  }
}

/** Opens the conversation as Markdown, to save or copy. */
export async function exportSession({ current }: Conversations): Promise<void> {
  const document = await workspace.openTextDocument({ language: "markdown", content: current.transcript.markdown() });
  await window.showTextDocument(document);
}
