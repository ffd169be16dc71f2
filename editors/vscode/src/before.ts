/** The editor's own diff of a file under review: what was there before the turn on the left, the file itself on the right. */
import { basename } from "node:path";
import { commands, type Disposable, EventEmitter, l10n, Range, type TextDocumentContentProvider, Uri, workspace } from "vscode";
import { without } from "./hunks";
import type { Hunk, Part, Review } from "./review";

const SCHEME = "tandem-before";

export class Before implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly shown = new Map<string, Uri>();
  private readonly subscriptions: Disposable[];

  constructor(private readonly review: Review) {
    this.subscriptions = [
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      workspace.onDidCloseTextDocument(({ uri }) => this.shown.delete(uri.toString())),
      review.onChange(() => this.shown.forEach((uri) => this.changed.fire(uri))),
    ];
  }

  async show(part: Part): Promise<void> {
    const { file, hunk } = part;
    if (file === undefined) {
      return this.showTurn(part);
    }
    const [before, after] = await this.sides({ ...part, file });
    const line = hunk && Math.max(0, hunk.new.start - 1);
    const options = { preview: true, ...(line !== undefined && { selection: new Range(line, 0, line, 0) }) };
    await commands.executeCommand("vscode.diff", before, after, l10n.t("{0} (before tandem ↔ now)", basename(file.path)), options);
  }

  /** All files of a turn in one editor. */
  async showTurn(part: Part): Promise<void> {
    const resources = part.turn.files.map(async (file) => {
      const [before, after] = await this.sides({ ...part, file });
      return [Uri.file(file.path), before, after];
    });
    await commands.executeCommand(
      "vscode.changes",
      l10n.t("{0} (before tandem ↔ now)", this.review.title(part)),
      await Promise.all(resources),
    );
  }

  /** The file before all that waits for a review. */
  ofAll(path: Uri): Uri {
    return Uri.from({ scheme: SCHEME, path: path.path });
  }

  /** The file before the turn and now; one that is gone is empty. */
  private async sides({ session, turn, file }: Part & Pick<Hunk, "file">): Promise<[Uri, Uri]> {
    const path = Uri.file(file.path);
    const before = Uri.from({ scheme: SCHEME, path: path.path, query: addressOf(session, turn) });
    const isThere = (await textOf(path)) !== undefined;
    return [before, isThere ? path : before.with({ query: "nothing" })];
  }

  async provideTextDocumentContent(uri: Uri): Promise<string> {
    this.shown.set(uri.toString(), uri);
    const path = Uri.file(uri.path);
    const reverted = this.review.of(path).filter(({ session, turn }) => uri.query === "" || addressOf(session, turn) === uri.query);
    const hunks = reverted.map(({ hunk }) => hunk);
    return uri.query === "nothing" ? "" : without((await textOf(path)) ?? "", hunks);
  }

  dispose(): void {
    this.changed.dispose();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }
}

function addressOf({ savedId = "" }: Part["session"], { turn }: Part["turn"]): string {
  return `${savedId}/${turn}`;
}

/** The file's text, including unsaved changes; `undefined` if there is no such file. */
async function textOf(path: Uri): Promise<string | undefined> {
  try {
    return (await workspace.openTextDocument(path)).getText();
  } catch {
    return undefined;
  }
}
