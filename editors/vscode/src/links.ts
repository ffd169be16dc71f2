/** Links and file names from the chat. A model wrote them, so an address is shown in full and requires confirmation before anything opens. */
import { stat } from "node:fs/promises";
import { isAbsolute, join, posix } from "node:path";
import { commands, type Disposable, l10n, env, Position, Range, Uri, window, workspace } from "vscode";
import type { Location } from "./messages";
import { isNotebook } from "./notebooks";
import { visible } from "./safe";
import type { Session } from "./session";

/** The scheme of a symbol's link, which only the chat's own Markdown makes. */
const SYMBOL = "symbol:";
/** The maximum number of files for a set of names: a workspace may have one in each folder. */
const FOUND = 1000;
/**
 * What VS Code's quick open takes for a file's name: it begins with a letter, a digit or what names begin with, and has no space. A sign or a word before a
 * space can mean something else, such as `>` a command and `ext install ` an extension, which Enter then runs or installs.
 */
const SEARCHED = /^[\p{L}\p{N}_.]\S*$/u;
/** Those of this window, in order. The chat keeps the names that files had. */
const renames: { readonly oldUri: Uri; readonly newUri: Uri }[] = [];

export function followRenames(): Disposable {
  return workspace.onDidRenameFiles(({ files }) => void renames.push(...files));
}

/** Opens `http(s)` in the browser after a yes, and a file of the workspace or a definition in it in the editor; nothing else. */
export async function openLink(href: string, session: Session): Promise<void> {
  if (/^https?:/i.test(href)) {
    return openAddress(Uri.parse(href, true));
  }
  if (href.startsWith(SYMBOL)) {
    return openSymbol(href.slice(SYMBOL.length), session);
  }
  await openLocation(target(href), session);
}

/** The place that an address names: `a.ts`, `a.ts:6`, `a.ts:6-8`, `a.ts:6:2`, `a.ts#L6`, or the same with `file:`. */
export function target(href: string): Location {
  const [, path = "", line] = /^(.*?)(?:#L(\d+)(?:-L?\d+)?|:(\d+)(?:[:-]\d+)?|#[^/#]*)?$/s.exec(href)?.flatMap((part) => part ?? []) ?? [];
  const file = /^file:/i.test(path) ? Uri.parse(path).fsPath : decoded(path);
  return { path: file, ...(line !== undefined && { line: Number(line) }) };
}

/** The names that mean a file of the workspace, by its path or just by its name. */
export async function existing(names: readonly string[]): Promise<string[]> {
  const files = names.map((name) => ({ name, path: target(name).path }));
  const alone = [...new Set(files.map(({ path }) => path).filter((path) => !/[\\/]/.test(path)))];
  const pattern = alone.length > 1 ? `**/{${alone.join(",")}}` : `**/${alone.join("")}`;
  const found = alone.length === 0 ? [] : await workspace.findFiles(pattern, undefined, FOUND);
  const there = new Set(found.map(({ path }) => posix.basename(path)));
  const exist = await Promise.all(files.map(({ path }) => there.has(path) || isFile(path)));
  return names.filter((_, index) => exist[index]);
}

async function isFile(path: string): Promise<boolean> {
  const uri = inWorkspace(path);
  try {
    return uri !== undefined && (await stat(uri.fsPath)).isFile();
  } catch {
    return false;
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a file may be named 100%.txt
  }
}

/** Shows the file and leaves the focus in the chat; outside the workspace only the `session`'s plans. */
export async function openLocation({ path, line }: Location, session: Session): Promise<void> {
  const uri = session.transcript.isPlan(path) ? Uri.file(path) : inWorkspace(path);
  if (uri === undefined) {
    void window.showWarningMessage(l10n.t("tandem only opens files of this workspace: {0}", visible(path)));
    return;
  }
  if (isNotebook(uri)) {
    await commands.executeCommand("vscode.open", uri, { preserveFocus: true, preview: true });
    return;
  }
  const at = line === undefined ? undefined : new Position(Math.max(0, line - 1), 0);
  const options = { preserveFocus: true, preview: true, ...(at && { selection: new Range(at, at) }) };
  try {
    await window.showTextDocument(uri, options).then(undefined, () => window.showTextDocument(renamed(uri), options));
  } catch {
    if (!/[\\/]/.test(path) && SEARCHED.test(path)) {
      // A model often names a file without its folder. The list shows it, or that there is none.
      await commands.executeCommand("workbench.action.quickOpen", line === undefined ? path : `${path}:${line}`);
      return;
    }
    void window.showWarningMessage(l10n.t("Could not open {0}: it does not exist or is not text.", visible(path)));
  }
}

/** Where a file is after it, or a folder that it is in, was renamed. */
function renamed(uri: Uri): Uri {
  return renames.reduce((at, { oldUri, newUri }) => {
    const rest = at.path.slice(oldUri.path.length);
    return at.path.startsWith(oldUri.path) && /^(\/|$)/.test(rest) ? at.with({ path: newUri.path + rest }) : at;
  }, uri);
}

/** Asks the server, which finds definitions without language extensions. */
async function openSymbol(name: string, session: Session): Promise<void> {
  const found = (await session.complete(`#${name}`)).find(({ kind, label }) => kind === "symbol" && label.endsWith(` ${name}`));
  if (found?.detail === undefined) {
    window.setStatusBarMessage(l10n.t("tandem: no definition of {0} found", visible(name)), 5000);
  } else {
    await openLocation(target(found.detail), session);
  }
}

async function openAddress(uri: Uri): Promise<void> {
  const open = l10n.t("Open");
  const detail = visible(uri.toString(true));
  const picked = await window.showWarningMessage(l10n.t("Open this address from the model's answer?"), { modal: true, detail }, open);
  if (picked === open) {
    await env.openExternal(uri);
  }
}

function inWorkspace(path: string): Uri | undefined {
  const root = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const absolute = isAbsolute(path) || root === undefined ? path : join(root, path);
  const uri = Uri.file(absolute);
  return uri.authority === "" && workspace.getWorkspaceFolder(uri) !== undefined ? uri : undefined;
}
