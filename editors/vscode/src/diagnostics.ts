/**
 * Reports the editor's problems to the server. After an edit it waits until the problems of the new text have settled. A checker that finds
 * nothing stays silent, so the wait has a limit.
 */
import { type CancellationToken, type Diagnostic, languages, Uri } from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { DiagnosticsParams, DiagnosticsResult } from "./protocol";

const REST_MS = 250;
const SILENCE_MS = 1000;
const TIMEOUT_MS = 1500;

export async function diagnostics(
  client: LanguageClient,
  { uris, settled }: DiagnosticsParams,
  token: CancellationToken,
): Promise<DiagnosticsResult> {
  const wanted = uris.map((uri) => Uri.parse(uri));
  if (settled) {
    await settle(wanted, token);
  }
  const found: [Uri, Diagnostic[]][] =
    wanted.length > 0 ? wanted.map((uri) => [uri, languages.getDiagnostics(uri)]) : languages.getDiagnostics();
  const { code2ProtocolConverter: wire } = client;
  const documents = found.map(async ([uri, problems]) => ({ uri: wire.asUri(uri), diagnostics: await wire.asDiagnostics(problems) }));
  return { documents: await Promise.all(documents) };
}

function settle(uris: readonly Uri[], token: CancellationToken): Promise<void> {
  const wanted = new Set(uris.map(String));
  const deadline = Date.now() + TIMEOUT_MS;
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const wait = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(finish, Math.max(0, Math.min(ms, deadline - Date.now())));
    };
    const subscriptions = [
      languages.onDidChangeDiagnostics((event) => event.uris.some((uri) => wanted.has(String(uri))) && wait(REST_MS)),
      token.onCancellationRequested(() => finish()),
    ];
    const finish = () => {
      clearTimeout(timer);
      subscriptions.forEach((subscription) => void subscription.dispose());
      resolve();
    };
    wait(SILENCE_MS);
  });
}
