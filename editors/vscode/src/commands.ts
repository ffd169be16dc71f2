/** The commands of the palette, menus and key bindings. */
import {
  commands,
  ConfigurationTarget,
  type Diagnostic,
  type Disposable,
  env,
  l10n,
  type LogOutputChannel,
  type NotebookCell,
  type QuickPickItem,
  type SourceControlResourceState,
  type Uri,
  window,
  workspace,
} from "vscode";
import type { ChatView } from "./chat";
import { comment } from "./comment";
import { buildProgram } from "./build";
import { attachmentOf, currentEditor, rangeAttachment } from "./context";
import { terminalAttachment } from "./sources";
import { failure } from "./failure";
import type { Choice, Phase } from "./messages";
import * as protocol from "./protocol";
import type { Hunk } from "./review";
import { exportSession, openSession } from "./sessions";
import type { Server } from "./server";
import type { Session } from "./session";
import type { Conversations } from "./conversations";

/** Instead of a choice. */
const AGAIN = "";

export interface Parts {
  readonly server: Server;
  readonly conversations: Conversations;
  readonly chat: ChatView;
  readonly log: LogOutputChannel;
}

export function registerCommands(parts: Parts): Disposable[] {
  const { server, conversations, chat, log } = parts;
  const current = () => conversations.current;
  const handlers: Record<string, (...args: never[]) => unknown> = {
    openChat: () => chat.focus(),
    newSession: () => newSession(parts),
    openSession: () => openSession(conversations, chat),
    exportSession: () => exportSession(conversations),
    stop: () => current().stop(),
    try: () => chat.try(),
    allow: () => current().questions.answerFirst("allow_once"),
    permitByRule: () => permitByRule(current()),
    reject: () => current().questions.answerFirst("reject_once"),
    askSelection: () => askSelection(chat),
    comment: (hunk?: Hunk) => comment(chat, hunk),
    explainSelection: () => explainSelection(parts),
    fix: (uri: Uri, diagnostic: Diagnostic) => fix(parts, uri, diagnostic),
    setMode: () => pick(conversations, "mode", l10n.t("Mode")),
    setModel: () => pick(conversations, "model", l10n.t("Model"), (current) => othersOf(server, current)),
    setEffort: () => pick(conversations, "effort", l10n.t("Reasoning Effort")),
    setUp: () => chat.setUp(),
    setApiKey: () => setApiKey(server),
    buildProgram: () => buildProgram(conversations),
    chooseProgram: () => chooseProgram(),
    addFiles: (uri?: Uri, uris?: readonly Uri[]) => addFiles(chat, uris ?? (uri === undefined ? [] : [uri])),
    addCell: ({ document }: NotebookCell) => addFiles(chat, [document.uri]),
    addResource: (...states: SourceControlResourceState[]) =>
      addFiles(
        chat,
        states.map(({ resourceUri }) => resourceUri),
      ),
    addTerminal: () => addTerminal(chat, "all"),
    addTerminalSelection: () => addTerminal(chat, "selection"),
    openSettings: () => openSettings(),
    showLog: () => log.show(true),
    restartServer: () => conversations.restart(),
  };
  return Object.entries(handlers).map(([name, handler]) => commands.registerCommand(`tandem.${name}`, handler));
}

/** Even if the chat is hidden, the input gets focus. */
async function newSession({ conversations, chat }: Parts): Promise<void> {
  await Promise.all([conversations.renew(), chat.focus()]);
}

async function askSelection(chat: ChatView): Promise<void> {
  const editor = currentEditor();
  if (editor !== undefined) {
    chat.attach(attachmentOf(editor));
  }
  await chat.focus();
}

/** From the explorer, an editor or Source Control. */
async function addFiles(chat: ChatView, uris: readonly Uri[]): Promise<void> {
  await chat.attachFiles(uris);
  await chat.focus();
}

async function addTerminal(chat: ChatView, part: "all" | "selection"): Promise<void> {
  try {
    chat.attach(await terminalAttachment(part));
    await chat.focus();
  } catch (error) {
    void window.showWarningMessage(`tandem: ${String((error as Error).message)}`);
  }
}

async function explainSelection({ conversations, chat }: Parts): Promise<void> {
  const editor = currentEditor();
  if (editor !== undefined) {
    const attachment = attachmentOf(editor);
    await chat.reveal();
    await (await conversations.shown()).prompt({ text: l10n.t("Explain {0}.", attachment.label), attachments: [attachment] });
  }
}

async function fix({ conversations, chat }: Parts, uri: Uri, diagnostic: Diagnostic): Promise<void> {
  const document = await workspace.openTextDocument(uri);
  const { start, end } = diagnostic.range;
  const lines = document.lineAt(start).range.union(document.lineAt(end).range);
  const attachment = rangeAttachment(document, lines);
  const source = diagnostic.source === undefined ? "" : ` (${diagnostic.source})`;
  await chat.reveal();
  await (
    await conversations.shown()
  ).prompt({
    text: `Fix this problem at ${attachment.label}${source}: ${diagnostic.message}`,
    attachments: [attachment],
  });
}

/** Allows the call and adds a rule, which the user can edit and the server checks. */
async function permitByRule({ questions }: Session): Promise<void> {
  const asked = questions.first("allow_always");
  const items = (asked?.options ?? [])
    .filter((option) => option._meta?.tandem?.rule !== undefined)
    .map((option) => ({ label: option.name, option }));
  if (asked === undefined || items.length === 0) {
    void window.showInformationMessage(l10n.t("tandem: this requires approval every time."));
    return;
  }
  const picked = await window.showQuickPick(items, { title: l10n.t("tandem: Always Allow") });
  const rule = await (picked &&
    window.showInputBox({
      title: `tandem: ${picked.option.name}`,
      prompt: l10n.t("The rule, such as `run_command(npm test *)`. A rule that is too broad allows only this call."),
      value: picked.option._meta?.tandem?.rule ?? "",
    }));
  if (picked !== undefined && rule !== undefined) {
    questions.answer(asked.id, picked.option.optionId, rule.trim());
  }
}

/** In a remote window, machine settings are on a page of their own. */
async function openSettings(): Promise<void> {
  const page = env.remoteName === undefined ? "workbench.action.openSettings" : "workbench.action.openRemoteSettings";
  await commands.executeCommand(page, env.remoteName === undefined ? "@ext:tandem.tandem" : { query: "@ext:tandem.tandem" });
}

/** Sets the path of the program, on the machine where the files are. */
async function chooseProgram(): Promise<void> {
  const openLabel = l10n.t("Use This Executable");
  const [picked] = (await window.showOpenDialog({ title: l10n.t("tandem: Select Executable"), openLabel })) ?? [];
  if (picked !== undefined) {
    await workspace.getConfiguration("tandem").update("server.path", picked.fsPath, ConfigurationTarget.Global);
  }
}

/** Lets the user choose the session's mode, model or effort; for the model, also from `others`, which are looked up. */
async function pick(conversations: Conversations, id: string, title: string, others = noOthers): Promise<void> {
  await conversations.start();
  const session = conversations.current;
  const { pickers, phase } = session.state;
  const picker = pickers.find((one) => one.id === id);
  if (picker === undefined) {
    return sayNothingToPick(phase);
  }
  const item = ({ value, name, description }: Choice): QuickPickItem & { value: string } => ({
    label: name,
    value,
    detail: description ?? "",
    ...(value === picker.current && { description: l10n.t("current") }),
  });
  const isNew = ({ value }: Choice) => !picker.choices.some((choice) => choice.value === value);
  const items = others(picker.current).then(
    (more) => [...picker.choices, ...more.filter(isNew)].map(item),
    (error: unknown) => [...picker.choices.map(item), notListed(error)],
  );
  const picked = await window.showQuickPick(items, { title: `tandem: ${title}`, matchOnDetail: true });
  if (picked?.value === AGAIN) {
    await pick(conversations, id, title, others);
  } else if (picked !== undefined) {
    await session.pick(id, picked.value);
  }
}

/** Shows why there are no others, and requests them again. */
function notListed(error: unknown): QuickPickItem & { value: string } {
  return { label: l10n.t("$(warning) The other models could not be listed: try again"), detail: failure(error).text, value: AGAIN };
}

async function noOthers(_current: string): Promise<Choice[]> {
  return [];
}

/** The other models of the endpoint that has this one. */
async function othersOf(server: Server, current: string): Promise<Choice[]> {
  const provider = current.split("/", 1)[0] ?? "";
  const { models } = await server.request(protocol.models, { provider });
  return models.map(({ id }) => ({ value: `${provider}/${id}`, name: `${provider}/${id}` }));
}

async function sayNothingToPick(phase: Phase): Promise<void> {
  if (phase === "ready") {
    void window.showInformationMessage(l10n.t("tandem: this model has no such option."));
    return;
  }
  const setUp = l10n.t("Set Up");
  const picked = await window.showInformationMessage(l10n.t("tandem: no model is set up yet."), setUp);
  if (picked === setUp) {
    await commands.executeCommand("tandem.setUp");
  }
}

/** The key goes from the input box to the secret store, and from there to the server's environment; never into a setting. */
async function setApiKey(server: Server): Promise<void> {
  const key = await window.showInputBox({
    title: l10n.t("tandem: Set API Key"),
    prompt: l10n.t("Stored in the system's secret store. Leave empty to remove all stored keys."),
    password: true,
    ignoreFocusOut: true,
  });
  if (key?.trim() === "") {
    await server.removeApiKeys();
  } else if (key !== undefined) {
    await server.setApiKey("", key.trim());
  }
}
