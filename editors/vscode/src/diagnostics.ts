/**
 * Reports the editor's problems to the server. After an edit, it waits until the problems of the new text have arrived and no longer change.
 *
 * VS Code does not tell which version a report is for: one may arrive after an edit and be about the previous text. So a report counts once it comes after an
 * answer of the language servers that they gave knowing the edit and says something else than before, or when nothing followed both for a while: a linter
 * inside VS Code reports before any server answers. A source that stays silent has not reported.
 */
import {
  type CancellationToken,
  commands,
  type Diagnostic,
  type Disposable,
  languages,
  Position,
  type TextDocument,
  Uri,
  workspace,
} from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { isNotebook } from "./notebooks";
import type { DiagnosticsParams, DiagnosticsResult } from "./protocol";

const REST_MS = 250;
const SILENCE_MS = 1000;
const TIMEOUT_MS = 1800;
const ANSWER_MS = 700;
const POLL_MS = 25;
/** How much later VS Code announces a report. */
const DELAY_MS = 50;

/** When a document was opened or changed last, when the language servers were seen to know that, and when it was reported on since. */
interface Reported {
  readonly changed: number;
  /** The problems shown at that time. */
  readonly before: string;
  known?: number;
  at?: number;
}

const documents = new Map<string, Reported>();
/** By language: true once something was reported on it, false after a wait in silence. */
const speaks = new Map<string, boolean>();

/** Keeps track of which documents were reported on since they changed. */
export function watchReports(): Disposable[] {
  const changed = ({ uri }: TextDocument) => documents.set(String(uri), { changed: Date.now(), before: problemsOf(uri) });
  return [
    workspace.onDidOpenTextDocument(changed),
    workspace.onDidChangeTextDocument(({ document, contentChanges }) => contentChanges.length > 0 && changed(document)),
    workspace.onDidCloseTextDocument(({ uri }) => documents.delete(String(uri))),
    languages.onDidChangeDiagnostics(({ uris }) => {
      const reported = new Set(uris.map(String));
      for (const { uri, languageId } of workspace.textDocuments) {
        const document = documents.get(String(uri));
        if (reported.has(String(uri)) && Date.now() - (document?.changed ?? 0) >= DELAY_MS) {
          speaks.set(languageId, true);
          Object.assign(document ?? {}, { at: Date.now() });
        }
      }
    }),
  ];
}

export async function diagnostics(
  client: LanguageClient,
  { uris, settled }: DiagnosticsParams,
  token: CancellationToken,
): Promise<DiagnosticsResult> {
  const { code2ProtocolConverter: wire } = client;
  const shown = async (uri: Uri, problems: readonly Diagnostic[]) => ({
    uri: wire.asUri(uri),
    diagnostics: await wire.asDiagnostics([...problems]),
  });
  const wanted = uris.map((uri) => Uri.parse(uri));
  if (!settled) {
    const found: [Uri, Diagnostic[]][] =
      wanted.length > 0 ? wanted.map((uri) => [uri, languages.getDiagnostics(uri)]) : languages.getDiagnostics();
    return { documents: await Promise.all(found.map(([uri, problems]) => shown(uri, problems))) };
  }
  // A file that the turn created may not be open yet; then nobody checks it.
  const texts = wanted.filter((uri) => !isNotebook(uri));
  const opened = await Promise.allSettled(texts.map((uri) => workspace.openTextDocument(uri)));
  const open = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  await settle(open, token);
  open.forEach(({ languageId }) => speaks.set(languageId, speaks.get(languageId) ?? false));
  const checked = open.filter(({ languageId }) => speaks.get(languageId));
  const answers = checked.map(async (document) => ({
    ...(await shown(document.uri, languages.getDiagnostics(document.uri))),
    ...(isReported(document) && { version: document.version }),
  }));
  return { documents: await Promise.all(answers) };
}

/** Whether the last report is of its text; a document that never changed is as it was when it was reported on. */
function isReported({ uri }: TextDocument): boolean {
  const document = documents.get(String(uri));
  return (
    document === undefined ||
    isOfText(uri, document) ||
    Date.now() >= Math.max(document.known ?? Infinity, document.at ?? Infinity) + SILENCE_MS
  );
}

function isOfText(uri: Uri, { known, at, before }: Reported): boolean {
  return known !== undefined && at !== undefined && at >= known + DELAY_MS && problemsOf(uri) !== before;
}

function problemsOf(uri: Uri): string {
  return JSON.stringify(languages.getDiagnostics(uri).map(({ range, message }) => [range, message]));
}

/** Requests something about each changed document from the language servers. To answer, they have to process the change first. */
async function makeKnown(open: readonly TextDocument[]): Promise<void> {
  const answers = open.map(async ({ uri }) => {
    const document = documents.get(String(uri));
    if (document !== undefined && document.known === undefined) {
      await commands.executeCommand("vscode.executeHoverProvider", uri, new Position(0, 0));
      document.known = Date.now();
    }
  });
  await Promise.race([Promise.allSettled(answers), new Promise((resolve) => setTimeout(resolve, ANSWER_MS))]);
}

async function settle(open: readonly TextDocument[], token: CancellationToken): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  await makeKnown(open);
  while (!token.isCancellationRequested && Date.now() < Math.min(end, Math.max(...open.map(worthWaiting)))) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** How long to wait for a report on a document. */
function worthWaiting({ uri, languageId }: TextDocument): number {
  const document = documents.get(String(uri));
  if (document === undefined || speaks.get(languageId) === false) {
    return 0;
  }
  const { known, changed, at } = document;
  return at !== undefined && isOfText(uri, document) ? at + REST_MS : Math.max(known ?? changed, at ?? 0) + SILENCE_MS;
}
