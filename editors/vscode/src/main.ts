/** Entry point. Activated when the window has started; the chat view, commands and changes pending review start the server. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { commands, type ExtensionContext, l10n, window, workspace } from "vscode";
import { registerActions } from "./actions";
import { Before } from "./before";
import { Changes } from "./changes";
import { ChatView } from "./chat";
import { provideDiagrams } from "./code";
import { registerCommands } from "./commands";
import { registerCommit } from "./commit";
import { Conversations } from "./conversations";
import { watchReports } from "./diagnostics";
import { Focus } from "./focus";
import { Gutter } from "./gutter";
import { Inline } from "./inline";
import { followRenames } from "./links";
import { Marks } from "./marks";
import { Memory } from "./memory";
import { NextEdit } from "./nextEdit";
import { registerOrigins } from "./origins";
import { Preview } from "./preview";
import { Proposed } from "./proposed";
import { Renewal } from "./renewal";
import { Review } from "./review";
import { Server } from "./server";
import { registerReviewCommands } from "./reviewing";
import { showStatus } from "./status";

/** Stops everything that is running; does nothing until something is. */
let end = async () => {};

export function activate({ extensionUri, globalStorageUri, secrets, subscriptions }: ExtensionContext): void {
  const log = window.createOutputChannel("tandem", { log: true });
  const edits = new NextEdit();
  const server = new Server(log, secrets, edits);
  const forgets = (error: unknown) => log.error(`What is open here will not be restored, because it cannot be written: ${error}`);
  const conversations = new Conversations(server, new Memory(join(globalStorageUri.fsPath, `${workspaceId()}.json`), forgets));
  const preview = new Preview(conversations);
  const review = new Review(conversations);
  const before = new Before(review);
  const renewal = new Renewal((goesOn) => renewServer(conversations, goesOn));
  const looking = new Focus(server);
  const chat = new ChatView(extensionUri, conversations, preview, review, server, renewal, looking);
  subscriptions.push(
    log,
    edits,
    conversations,
    preview,
    chat,
    review,
    before,
    new Changes(review),
    new Marks(review),
    new Gutter(review, before),
    new Proposed(conversations),
    new Inline(server, conversations),
    showStatus(conversations, review),
    looking,
    registerActions(review),
    provideDiagrams(),
    followRenames(),
    ...registerCommit(server),
    ...registerCommands({ server, conversations, chat, log }),
    ...registerReviewCommands(review, before),
    ...registerOrigins(server, review, conversations, chat),
    conversations.onEvent(({ type }) => type === "changed" && setContext(conversations)),
    conversations.onSwitch(() => setContext(conversations)),
    renewal,
    ...watchReports(),
    secrets.onDidChange(() => renewal.soon(true)),
    workspace.onDidChangeConfiguration((event) => {
      const concerns = (...keys: string[]) => keys.some((key) => event.affectsConfiguration(`tandem.${key}`));
      const isOther = concerns("model", "baseUrl", "api", "mode");
      if (concerns("finish")) {
        void server.configure();
      }
      return (isOther || concerns("server", "completion", "permissions")) && renewal.soon(!isOther);
    }),
  );
  end = async () => {
    conversations.dispose(); // from now on, the server keeps the prompts it returns
    await server.dispose();
  };
  if (conversations.arePending) {
    void conversations.start(); // pending changes are marked even if the chat is closed
  }
}

export async function deactivate(): Promise<void> {
  await end();
}

/** Two windows on the same folder, one after the other, share it. VS Code's own folder for a workspace can change with a reload. */
function workspaceId(): string {
  const uri = workspace.workspaceFile ?? workspace.workspaceFolders?.[0]?.uri;
  return createHash("sha256")
    .update(uri?.toString() ?? "")
    .digest("hex")
    .slice(0, 32);
}

function setContext({ current: { state } }: Conversations): void {
  void commands.executeCommand("setContext", "tandem.running", state.phase === "running" || state.phase === "waiting");
  void commands.executeCommand("setContext", "tandem.waiting", state.phase === "waiting");
}

/** The server reads its environment when it starts; a running turn is not interrupted for that. */
async function renewServer(conversations: Conversations, goesOn: boolean): Promise<void> {
  if (conversations.isRunning) {
    void offerRestart(conversations, goesOn);
  } else {
    await conversations.restart(goesOn);
  }
}

async function offerRestart(conversations: Conversations, goesOn: boolean): Promise<void> {
  const restart = l10n.t("Restart Now");
  const picked = await window.showInformationMessage(l10n.t("The new tandem settings apply when its server restarts."), restart);
  if (picked === restart) {
    await conversations.restart(goesOn);
  }
}
