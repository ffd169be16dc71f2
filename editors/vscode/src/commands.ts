/** The commands of the palette, the menus and the keys; each is a few lines over the session and the chat. */
import { commands, type Diagnostic, type Disposable, type LogOutputChannel, type QuickPickItem, type Uri, window, workspace } from "vscode";
import type { ChatView } from "./chat";
import { attachmentOf, currentEditor, rangeAttachment } from "./context";
import type { Server } from "./server";
import type { Session } from "./session";

export interface Parts {
  readonly server: Server;
  readonly session: Session;
  readonly chat: ChatView;
  readonly log: LogOutputChannel;
}

export function registerCommands(parts: Parts): Disposable[] {
  const { server, session, chat, log } = parts;
  const handlers: Record<string, (...args: never[]) => unknown> = {
    openChat: () => chat.focus(),
    newSession: () => session.renew(),
    openSession: () => openSession(parts),
    stop: () => session.stop(),
    allow: () => session.questions.answerFirst("allow_once"),
    permitByRule: () => permitByRule(session),
    reject: () => session.questions.answerFirst("reject_once"),
    askSelection: () => askSelection(chat),
    editSelection: () => editSelection(parts),
    fix: (uri: Uri, diagnostic: Diagnostic) => fix(parts, uri, diagnostic),
    setMode: () => pick(session, "mode", "Mode"),
    setModel: () => pick(session, "model", "Model"),
    setEffort: () => pick(session, "effort", "Reasoning Effort"),
    setApiKey: () => setApiKey(server),
    openSettings: () => commands.executeCommand("workbench.action.openSettings", "@ext:tandem.tandem"),
    showLog: () => log.show(true),
    restartServer: () => session.restart(),
  };
  return Object.entries(handlers).map(([name, handler]) => commands.registerCommand(`tandem.${name}`, handler));
}

async function askSelection(chat: ChatView): Promise<void> {
  const editor = currentEditor();
  if (editor !== undefined) {
    chat.attach(attachmentOf(editor));
  }
  await chat.focus();
}

async function editSelection({ session, chat }: Parts): Promise<void> {
  const editor = currentEditor();
  if (editor === undefined) {
    return;
  }
  const attachment = attachmentOf(editor);
  const instruction = await window.showInputBox({
    title: `tandem: Edit ${attachment.label}`,
    prompt: "What should change?",
    placeHolder: "make this handle an empty list",
  });
  if (instruction === undefined || instruction.trim() === "") {
    return;
  }
  await chat.reveal();
  await session.prompt({ text: `Edit ${attachment.label}: ${instruction.trim()}`, attachments: [attachment] });
}

async function fix({ session, chat }: Parts, uri: Uri, diagnostic: Diagnostic): Promise<void> {
  const document = await workspace.openTextDocument(uri);
  const { start, end } = diagnostic.range;
  const lines = document.lineAt(start).range.union(document.lineAt(end).range);
  const attachment = rangeAttachment(document, lines);
  const source = diagnostic.source === undefined ? "" : ` (${diagnostic.source})`;
  await chat.reveal();
  await session.prompt({ text: `Fix this problem at ${attachment.label}${source}: ${diagnostic.message}`, attachments: [attachment] });
}

/** Allows what is asked and what is like it; what that is may be made wider, which the server judges. */
async function permitByRule({ questions }: Session): Promise<void> {
  const asked = questions.first("allow_always");
  const items = (asked?.options ?? []).map((option) => ({ label: option.name, option }));
  if (asked === undefined) {
    void window.showInformationMessage("tandem: this is asked every time");
    return;
  }
  const picked = await window.showQuickPick(items, { title: "tandem: Permit by Rule" });
  const rule = await (picked &&
    window.showInputBox({
      title: `tandem: ${picked.option.name}`,
      prompt: "What is allowed, such as `run_command(npm test *)`. A rule that is too wide allows only once.",
      value: picked.option._meta?.tandem?.rule ?? "",
    }));
  if (picked !== undefined && rule !== undefined) {
    questions.answer(asked.id, picked.option.optionId, rule.trim());
  }
}

/** Lets the person choose a conversation to go on with, whichever editor it began in. */
async function openSession({ session, chat }: Parts): Promise<void> {
  const earlier = session.earlier().then((kept) =>
    kept.map(({ sessionId, title, updatedAt }) => ({
      label: title ?? sessionId,
      description: updatedAt == null ? "" : new Date(updatedAt).toLocaleString(),
      sessionId,
    })),
  );
  const placeHolder = "Go on with an earlier session of this folder";
  const picked = await window.showQuickPick(earlier, { title: "tandem: Open Session", placeHolder });
  if (picked !== undefined) {
    await chat.reveal();
    await session.load(picked.sessionId);
  }
}

/** Lets the person choose an option of the session: the mode, the model, the effort. */
async function pick(session: Session, id: string, title: string): Promise<void> {
  await session.open();
  const { pickers, message } = session.state;
  const picker = pickers.find((one) => one.id === id);
  if (picker === undefined) {
    void window.showInformationMessage(`tandem: ${message || "there is nothing to choose with this model"}`);
    return;
  }
  const items = picker.choices.map(({ value, name, description }): QuickPickItem & { value: string } => ({
    label: name,
    value,
    detail: description ?? "",
    ...(value === picker.current && { description: "current" }),
  }));
  const picked = await window.showQuickPick(items, { title: `tandem: ${title}`, matchOnDetail: true });
  if (picked !== undefined) {
    await session.pick(id, picked.value);
  }
}

/** The key goes from the input box to the secret store, and from there to the server's environment; never into a setting. */
async function setApiKey(server: Server): Promise<void> {
  const key = await window.showInputBox({
    title: "tandem: Set API Key",
    prompt: "Kept in the system's secret store. Empty removes it.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key !== undefined) {
    await server.setApiKey(key.trim());
  }
}
