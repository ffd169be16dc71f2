/**
 * Answers the server's requests to the editor's language servers: on the current buffers, with LSP's result types. Nothing is applied. A language server that
 * is still starting finds nothing, so the first question about a language is asked again for a while.
 */
import {
  type CallHierarchyIncomingCall,
  type CallHierarchyItem,
  type CallHierarchyOutgoingCall,
  type CancellationToken,
  type CodeAction,
  CodeActionKind,
  commands,
  extensions,
  type Hover,
  l10n,
  type Location,
  type LocationLink,
  type Position,
  Range,
  type SymbolInformation,
  type TextDocument,
  type TextEdit,
  Uri,
  window,
  workspace,
  type WorkspaceEdit,
  languages,
} from "vscode";
import { type LanguageClient, ResponseError } from "vscode-languageclient/node";
import type { LanguageOp, LanguageParams } from "./protocol";
import { Converter, type EditorSymbol } from "./lsp";

/** The server waits 10 s. */
const STARTING_MS = 8000;
const AGAIN_MS = 400;
/** LSP's code for a valid request that failed. */
const REQUEST_FAILED = -32803;

interface Question {
  readonly document: TextDocument;
  readonly position: Position;
  readonly query: string;
  readonly newName: string;
  readonly preferred: boolean;
  readonly lsp: Converter;
}

/** Returns nothing if no language server has an answer. */
type Answer = (question: Question) => Promise<unknown>;

const answers: Record<LanguageOp, Answer> = {
  definition: places("vscode.executeDefinitionProvider"),
  declaration: places("vscode.executeDeclarationProvider"),
  implementation: places("vscode.executeImplementationProvider"),
  type_definition: places("vscode.executeTypeDefinitionProvider"),
  references: places("vscode.executeReferenceProvider"),
  async hover({ document, position, lsp }) {
    const hovers = await ask<Hover[]>("vscode.executeHoverProvider", document.uri, position);
    return hovers && hovers.length > 0 ? lsp.hover(hovers) : undefined;
  },
  async document_symbols({ document, lsp }) {
    const symbols = await ask<EditorSymbol[]>("vscode.executeDocumentSymbolProvider", document.uri);
    return filled(symbols?.map((symbol) => lsp.documentSymbol(symbol)));
  },
  async workspace_symbols({ query, lsp }) {
    const symbols = await ask<SymbolInformation[]>("vscode.executeWorkspaceSymbolProvider", query);
    return filled(symbols?.map((symbol) => lsp.workspaceSymbol(symbol)));
  },
  async incoming_calls({ lsp, ...question }) {
    const calls = await callsOf<CallHierarchyIncomingCall>(question, "vscode.provideIncomingCalls");
    return filled(calls?.map(({ from, fromRanges }) => ({ from: lsp.callItem(from), fromRanges: fromRanges.map(lsp.range) })));
  },
  async outgoing_calls({ lsp, ...question }) {
    const calls = await callsOf<CallHierarchyOutgoingCall>(question, "vscode.provideOutgoingCalls");
    return filled(calls?.map(({ to, fromRanges }) => ({ to: lsp.callItem(to), fromRanges: fromRanges.map(lsp.range) })));
  },
  async rename({ document, position, newName, lsp }) {
    const edit = await ask<WorkspaceEdit>("vscode.executeDocumentRenameProvider", document.uri, position, newName);
    return edit && edit.size > 0 ? lsp.workspaceEdit(edit.entries()) : undefined;
  },
  async quick_fixes({ document, position, preferred, lsp }) {
    const range = problemAt(document, position);
    const resolved = 10;
    const fixes = await ask<CodeAction[]>("vscode.executeCodeActionProvider", document.uri, range, CodeActionKind.QuickFix.value, resolved);
    const usable = (fixes ?? []).filter(({ edit }) => edit !== undefined && edit.size > 0);
    const best = usable.find(({ isPreferred }) => isPreferred);
    if (preferred) {
      return best?.edit ? lsp.workspaceEdit(best.edit.entries()) : null;
    }
    const edit = (best ?? usable[0])?.edit;
    return edit && lsp.workspaceEdit(edit.entries());
  },
  async format({ document, lsp }) {
    const shown = window.visibleTextEditors.find((editor) => editor.document === document)?.options;
    const options = { tabSize: shown?.tabSize ?? 4, insertSpaces: shown?.insertSpaces ?? true };
    const edits = await ask<TextEdit[]>("vscode.executeFormatDocumentProvider", document.uri, options);
    return edits && lsp.workspaceEdit([[document.uri, edits]]);
  },
};

/** The operations that this editor supports. */
export const languageOps = Object.keys(answers);

/** Languages whose servers are known to run. */
const running = new Set<string>();

export async function language(client: LanguageClient, params: LanguageParams, token: CancellationToken): Promise<unknown> {
  const question = await questionOf(client, params);
  const { languageId } = question.document;
  const deadline = Date.now() + (running.has(languageId) ? 0 : STARTING_MS);
  await startExtensions(languageId);
  for (;;) {
    let refusal = nothing(params, languageId);
    const answer = await answers[params.op](question).catch((error: unknown) => {
      refusal = error instanceof Error ? error.message : String(error); // such as "you cannot rename this"
    });
    if (answer !== undefined) {
      running.add(languageId);
      return answer;
    }
    if (token.isCancellationRequested || Date.now() + AGAIN_MS > deadline) {
      throw new ResponseError(REQUEST_FAILED, refusal);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function nothing({ op }: LanguageParams, languageId: string): string {
  return l10n.t("No results for `{0}`; the {1} extension may not support it", op, languageId);
}

/** For workspace symbols, any open document determines the language. */
async function questionOf(client: LanguageClient, { uri, position, query, newName, preferred }: LanguageParams): Promise<Question> {
  const document =
    uri == null ? workspace.textDocuments.find(({ uri }) => uri.scheme === "file") : await workspace.openTextDocument(Uri.parse(uri));
  if (document === undefined) {
    throw new ResponseError(REQUEST_FAILED, l10n.t("no file is open, so VS Code runs no language server"));
  }
  const lsp = new Converter(client.code2ProtocolConverter);
  const at = client.protocol2CodeConverter.asPosition(position ?? { line: 0, character: 0 });
  return {
    document,
    position: document.validatePosition(at),
    query: query ?? "",
    newName: newName ?? "",
    preferred: preferred ?? false,
    lsp,
  };
}

/** A file that is not shown starts no extension by itself. */
async function startExtensions(languageId: string): Promise<void> {
  const concerned = extensions.all.filter(({ packageJSON }) => {
    const events = (packageJSON as { activationEvents?: string[] }).activationEvents ?? [];
    return events.includes(`onLanguage:${languageId}`);
  });
  await Promise.allSettled(concerned.map((extension) => extension.activate()));
}

function places(command: string): Answer {
  return async ({ document, position, lsp }) => {
    const found = await ask<(Location | LocationLink)[]>(command, document.uri, position);
    return filled(found?.map((one) => lsp.location(one)));
  };
}

async function callsOf<T>({ document, position }: Omit<Question, "lsp">, command: string): Promise<T[] | undefined> {
  const items = await ask<CallHierarchyItem[]>("vscode.prepareCallHierarchy", document.uri, position);
  const calls = await Promise.all((items ?? []).map((item) => ask<T[]>(command, item)));
  return calls.flatMap((one) => one ?? []);
}

/** The problem at the position, else the one on its line. */
function problemAt(document: TextDocument, position: Position): Range {
  const problems = languages.getDiagnostics(document.uri).map(({ range }) => range);
  const onLine = problems.filter(({ start, end }) => start.line <= position.line && position.line <= end.line);
  return problems.find((range) => range.contains(position)) ?? onLine[0] ?? new Range(position, position);
}

async function ask<T>(command: string, ...args: unknown[]): Promise<T | undefined> {
  return (await commands.executeCommand<T | null>(command, ...args)) ?? undefined;
}

function filled<T>(list: T[] | undefined): T[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list;
}
