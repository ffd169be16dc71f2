/** Sources besides files that can be sent with a message: `@terminal` and `@git`. */
import { posix } from "node:path";
import { commands, env, l10n, window } from "vscode";
import { openRepositories, type Repository } from "./commit";
import { type Attachment, textAttachment } from "./context";
import type { Completion } from "./protocol";

/** The maximum length of one, in characters: the end of a terminal, the beginning of a diff. */
const MAX = 60_000;

/** Of the Git extension: a file that was never added. */
const UNTRACKED = 7;

/** How long to wait for the clipboard: in a browser, VS Code first asks for permission. */
const CLIPBOARD_MS = 5000;

const SOURCES: Readonly<Record<string, { detail: string; read: () => Promise<Attachment> }>> = {
  "@terminal": { detail: l10n.t("the text of the active terminal"), read: () => terminalAttachment("all") },
  "@git": { detail: l10n.t("the changes that are not committed"), read: () => gitAttachment() },
};

/** The sources that a query after an `@` may mean. */
export function sourcesFor(query: string): Completion[] {
  const meant = Object.entries(SOURCES).filter(([name]) => name.startsWith(`@${query}`));
  return meant.map(([name, { detail }]) => ({ insert: name.slice(1), label: name.slice(1), kind: "selection", detail }));
}

/** Those that a message names. One that cannot be read is an error that says why, not a message without it. */
export function mentionedSources(text: string): Promise<Attachment[]> {
  const words = text.split(/\s+/).map((word) => word.replace(/^[([{"'`]+|[,;:.!?)\]}"'`]+$/g, ""));
  const named = Object.entries(SOURCES).filter(([name]) => words.includes(name));
  return Promise.all(named.map(([, source]) => source.read()));
}

/** The text of the active terminal. The only way to get it is the clipboard, which is restored. */
export async function terminalAttachment(part: "all" | "selection"): Promise<Attachment> {
  const terminal = window.activeTerminal;
  if (terminal === undefined) {
    throw new Error(l10n.t("No terminal is open."));
  }
  const before = await readClipboard();
  await env.clipboard.writeText("");
  let text: string;
  try {
    if (part === "all") {
      await commands.executeCommand("workbench.action.terminal.selectAll");
    }
    await commands.executeCommand("workbench.action.terminal.copySelection");
    if (part === "all") {
      await commands.executeCommand("workbench.action.terminal.clearSelection");
    }
    text = await readClipboard();
  } finally {
    await env.clipboard.writeText(before);
  }
  const shown = text.trim().slice(-MAX);
  if (shown === "") {
    throw new Error(l10n.t("The terminal is empty."));
  }
  return textAttachment(terminal.name, `Text of the terminal ${terminal.name}:\n\n${shown}`);
}

async function readClipboard(): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const refused = l10n.t(
      "tandem reads the terminal through the clipboard, but has no access to it. Allow access in the browser, then send again.",
    );
    timer = setTimeout(() => reject(new Error(refused)), CLIPBOARD_MS);
  });
  try {
    return await Promise.race([env.clipboard.readText(), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function gitAttachment(): Promise<Attachment> {
  const repositories = await openRepositories();
  if (repositories.length === 0) {
    throw new Error(l10n.t("VS Code's Git extension has found no repository here."));
  }
  const text = (await Promise.all(repositories.map(changesIn))).join("\n\n");
  const rest = text.length > MAX ? "\n(cut off here: `git diff HEAD` has the rest)" : "";
  return textAttachment("git", text.slice(0, MAX) + rest);
}

/** A diff has no new files, so they are named. */
async function changesIn(repository: Repository): Promise<string> {
  await repository.status();
  const { rootUri, state } = repository;
  const untracked = [...(state.untrackedChanges ?? []), ...state.workingTreeChanges].filter(({ status }) => status === UNTRACKED);
  const names = untracked.map(({ uri }) => `new file, not added: ${posix.relative(rootUri.path, uri.path)}`);
  const diffs = await Promise.all([repository.diff(true), repository.diff(false)]);
  const changes = [names.join("\n"), ...diffs].filter((text) => text.trim() !== "").join("\n\n") || "(none)";
  return `Changes in ${rootUri.fsPath} that are not committed:\n\n${changes}`;
}
