/**
 * A commit message from the staged diff, in the input of Source Control. The model sees the document that `git commit --verbose` shows, and writes its first
 * lines. Invariant: what the person wrote there can be restored, and is not overwritten while they type.
 */
import { randomUUID } from "node:crypto";
import { commands, type Disposable, extensions, l10n, ProgressLocation, type SourceControl, Uri, window, workspace } from "vscode";
import { failure } from "./failure";
import { COMMIT_SCHEME, type Server } from "./server";

/** The number of recent commits that show the style of a repository. */
const STYLE = 8;
const INSTRUCTION =
  "Write the message of this commit: a subject of at most 72 characters that says what it does, and only where the reason is not obvious a blank line and a short body. Follow the style of the recent commits.";

/** Of the Git extension's API, version 1. */
interface Change {
  readonly uri: Uri;
  readonly status: number;
}
export interface Repository {
  readonly rootUri: Uri;
  readonly inputBox: { value: string };
  /** Which list has new files is up to a setting; older versions have no `untrackedChanges`. */
  readonly state: {
    readonly indexChanges: readonly Change[];
    readonly workingTreeChanges: readonly Change[];
    readonly untrackedChanges?: readonly Change[];
  };
  /** Looks for changes now. */
  status(): Promise<void>;
  diff(cached?: boolean): Promise<string>;
  log(options: { maxEntries: number }): Promise<readonly { readonly message: string }[]>;
}
interface Git {
  getAPI(version: 1): { readonly repositories: readonly Repository[] };
}

/** The texts of the documents, by URI. */
const texts = new Map<string, string>();

export function registerCommit(server: Server): Disposable[] {
  return [
    workspace.registerTextDocumentContentProvider(COMMIT_SCHEME, {
      provideTextDocumentContent: (uri) => texts.get(uri.toString()) ?? "",
    }),
    commands.registerCommand("tandem.commitMessage", (source?: SourceControl) => run(server, source)),
  ];
}

async function run(server: Server, source: SourceControl | undefined): Promise<void> {
  const repository = await repositoryOf(source);
  const text = repository === undefined ? "" : await verbose(repository);
  if (repository === undefined || text === "") {
    void window.showInformationMessage(l10n.t("No changes to write a commit message for."));
    return;
  }
  const uri = Uri.from({ scheme: COMMIT_SCHEME, path: `/${randomUUID()}/COMMIT_EDITMSG` });
  texts.set(uri.toString(), text);
  try {
    await workspace.openTextDocument(uri); // now the server has it
    await write(server, repository.inputBox, uri);
  } finally {
    texts.delete(uri.toString());
  }
}

export async function openRepositories(): Promise<readonly Repository[]> {
  const git = await extensions.getExtension<Git>("vscode.git")?.activate();
  return git?.getAPI(1).repositories ?? [];
}

async function repositoryOf(source: SourceControl | undefined): Promise<Repository | undefined> {
  const repositories = await openRepositories();
  return repositories.find(({ rootUri }) => rootUri.toString() === source?.rootUri?.toString()) ?? repositories[0];
}

/** The staged changes, or all where nothing is staged; empty where there are none. */
async function verbose(repository: Repository): Promise<string> {
  const diff = await repository.diff(repository.state.indexChanges.length > 0);
  const recent = await repository.log({ maxEntries: STYLE }).catch(() => []); // there may be no commit yet
  const subjects = recent.map(({ message }) => `# ${message.split("\n", 1)[0] ?? ""}`);
  return diff.trim() === "" ? "" : ["", "# Recent commits:", ...subjects, "# Changes to be committed:", diff].join("\n");
}

async function write(server: Server, inputBox: Repository["inputBox"], uri: Uri): Promise<void> {
  const before = inputBox.value;
  const start = { line: 0, character: 0 };
  const began = before.trim() === "" ? "" : ` The person wrote: ${before.trim()}`;
  const params = { textDocument: { uri: uri.toString() }, range: { start, end: start }, instruction: INSTRUCTION + began };
  const title = l10n.t("tandem: writing the commit message");
  await window.withProgress({ location: ProgressLocation.Notification, title, cancellable: true }, async (_, token) => {
    try {
      const text = await server.rewrite(params, token);
      void put(inputBox, before, text.trim());
    } catch (error) {
      if (!token.isCancellationRequested) {
        void window.showWarningMessage(`tandem: ${failure(error).text}`);
      }
    }
  });
}

async function put(inputBox: Repository["inputBox"], before: string, text: string): Promise<void> {
  if (inputBox.value !== before) {
    void window.showInformationMessage(l10n.t("Your commit message was edited in the meantime and was not replaced: {0}", text));
    return;
  }
  inputBox.value = text;
  const undo = l10n.t("Undo");
  if (before.trim() !== "" && (await window.showInformationMessage(l10n.t("The commit message was replaced."), undo)) === undo) {
    inputBox.value = before;
  }
}
