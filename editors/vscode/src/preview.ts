/** The editor's own diff of a proposed edit, on read-only documents that live in the transcript. */
import { basename } from "node:path";
import { commands, Disposable, EventEmitter, l10n, type TextDocumentContentProvider, Uri, workspace } from "vscode";
import type { DiffContent } from "./protocol";
import type { Conversations } from "./conversations";
import { isNotebook } from "./notebooks";

const SCHEME = "tandem-diff";

export class Preview implements TextDocumentContentProvider, Disposable {
  private readonly changed = new EventEmitter<Uri>();
  readonly onDidChange = this.changed.event;
  private readonly shown = new Map<string, Uri>();
  private readonly subscriptions: Disposable;

  constructor(private readonly conversations: Conversations) {
    this.subscriptions = Disposable.from(
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      workspace.onDidCloseTextDocument(({ uri }) => this.shown.delete(uri.toString())),
      conversations.onEvent(({ type }) => type === "grew" && this.shown.forEach((uri) => this.changed.fire(uri))),
      this.changed,
    );
  }

  /** Opens the diff without taking the focus. */
  async show(id: number, index: number): Promise<void> {
    const diff = this.conversations.current.transcript.diffs(id)[index];
    if (diff === undefined) {
      return;
    }
    const [before, after] = (["before", "after"] as const).map((side) => address(diff, id, index, side));
    const title = l10n.t("{0} (proposed by tandem)", basename(diff.path));
    await commands.executeCommand("vscode.diff", before, after, title, { preserveFocus: true, preview: true });
  }

  provideTextDocumentContent(uri: Uri): string {
    this.shown.set(uri.toString(), uri);
    const [id, index, side] = uri.query.split("/");
    // Of any conversation: the diff stays open when another one is selected.
    const [diff] = this.conversations.sessions.flatMap(({ transcript }) => transcript.diffs(Number(id))[Number(index)] ?? []);
    return (side === "before" ? diff?.oldText : diff?.newText) ?? "";
  }

  dispose(): void {
    this.subscriptions.dispose();
  }
}

/** The path keeps the file's name, so that the diff is colored in its language. The text of a notebook's cells has no language in VS Code. */
function address(diff: DiffContent, id: number, index: number, side: "before" | "after"): Uri {
  const { path } = Uri.file(diff.path);
  return Uri.from({ scheme: SCHEME, path: isNotebook({ path }) ? `${path}.py` : path, query: `${id}/${index}/${side}` });
}
