/** Why a line is here: the turn that wrote it, on hover, with links to that turn and to revert the hunk. */
import {
  commands,
  type Disposable,
  Hover,
  type HoverProvider,
  l10n,
  languages,
  MarkdownString,
  type Position,
  type TextDocument,
  Uri,
} from "vscode";
import type { CancellationToken } from "vscode";
import type { ChatView } from "./chat";
import type { Conversations } from "./conversations";
import { contains } from "./hunks";
import * as protocol from "./protocol";
import type { Review } from "./review";
import { visible } from "./safe";
import type { Server } from "./server";

const OPEN = "tandem.openTurn";
const REVERT = "tandem.revertHunk";

export function registerOrigins(server: Server, review: Review, conversations: Conversations, chat: ChatView): Disposable[] {
  return [
    languages.registerHoverProvider({ scheme: "file" }, new Origins(server, review)),
    commands.registerCommand(OPEN, async (sessionId: string, turn: number) => {
      await chat.reveal();
      await conversations.load(sessionId);
      chat.showTurn(turn);
    }),
    commands.registerCommand(REVERT, async (uri: string, line: number) => {
      const hunk = hunkAt(review, Uri.parse(uri), line);
      await (hunk && review.reject(hunk));
    }),
  ];
}

class Origins implements HoverProvider {
  constructor(
    private readonly server: Server,
    private readonly review: Review,
  ) {}

  async provideHover({ uri }: TextDocument, { line }: Position, token: CancellationToken): Promise<Hover | undefined> {
    const at = { line, character: 0 };
    const params = { textDocument: { uri: uri.toString() }, range: { start: at, end: at } };
    const [origin] = (await this.server.ask(protocol.origins, params, token)) ?? [];
    if (origin === undefined) {
      return undefined;
    }
    const canRevert = hunkAt(this.review, uri, line) !== undefined;
    return new Hover(words(origin, canRevert ? link(l10n.t("Reject This Change"), REVERT, [uri.toString(), line]) : ""));
  }
}

function hunkAt(review: Review, uri: Uri, line: number) {
  return review.of(uri).find(({ hunk }) => contains(hunk, line));
}

/** The prompt and the title are others' text: only the links are Markdown. */
function words({ turn, prompt, by, model, edited, sessionId }: protocol.Origin, revert: string): MarkdownString {
  const text = new MarkdownString();
  text.isTrusted = { enabledCommands: [OPEN, REVERT] };
  text.appendMarkdown(`**${l10n.t("tandem, turn {0}", turn)}**: `).appendText(visible(prompt));
  if (edited) {
    text.appendMarkdown(` *(${l10n.t("edited since")})*`);
  }
  text.appendMarkdown("\n\n").appendText(visible(`${by} · ${model}`));
  return text.appendMarkdown(`\n\n${link(l10n.t("Open Turn"), OPEN, [sessionId, turn])}${revert && ` · ${revert}`}`);
}

function link(title: string, command: string, values: readonly unknown[]): string {
  return `[${title}](command:${command}?${encodeURIComponent(JSON.stringify(values))})`;
}
