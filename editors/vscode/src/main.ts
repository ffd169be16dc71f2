/** Puts the parts together. Activated by the chat view or a command; the server starts with the first of them. */
import { commands, type ExtensionContext, window, workspace } from "vscode";
import { registerActions } from "./actions";
import { Before } from "./before";
import { Changes } from "./changes";
import { ChatView } from "./chat";
import { registerCommands } from "./commands";
import { followFocus } from "./focus";
import { Marks } from "./marks";
import { Preview } from "./preview";
import { Review } from "./review";
import { Server } from "./server";
import { Session } from "./session";
import { registerReviewCommands } from "./reviewing";
import { showStatus } from "./status";

let server: Server | undefined;

export function activate({ extensionUri, secrets, subscriptions }: ExtensionContext): void {
  const log = window.createOutputChannel("tandem", { log: true });
  server = new Server(log, secrets);
  const session = new Session(server);
  const preview = new Preview(session);
  const review = new Review(session);
  const before = new Before(review);
  const chat = new ChatView(extensionUri, session, preview);
  subscriptions.push(
    log,
    session,
    preview,
    chat,
    review,
    before,
    new Changes(review),
    new Marks(review),
    showStatus(session, review),
    followFocus(server),
    registerActions(review),
    ...registerCommands({ server, session, chat, log }),
    ...registerReviewCommands(review, before),
    session.onChange(() => setContext(session)),
    review.onChange(() => void commands.executeCommand("setContext", "tandem.hasChanges", review.count > 0)),
    secrets.onDidChange(() => void renewServer(session, true)),
    workspace.onDidChangeConfiguration((event) => {
      const concerns = (...keys: string[]) => keys.some((key) => event.affectsConfiguration(`tandem.${key}`));
      const isOther = concerns("model", "baseUrl", "api", "mode");
      return (isOther || concerns("server")) && void renewServer(session, !isOther);
    }),
  );
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}

function setContext({ state }: Session): void {
  void commands.executeCommand("setContext", "tandem.running", state.phase === "running" || state.phase === "waiting");
  void commands.executeCommand("setContext", "tandem.waiting", state.phase === "waiting");
}

/** The server reads its environment when it starts; a running turn is not cut off for it. */
async function renewServer(session: Session, goesOn: boolean): Promise<void> {
  if (!session.isRunning) {
    return session.restart(goesOn);
  }
  const restart = "Restart Now";
  const picked = await window.showInformationMessage("The new tandem settings apply when its server restarts.", restart);
  if (picked === restart) {
    await session.restart(goesOn);
  }
}
