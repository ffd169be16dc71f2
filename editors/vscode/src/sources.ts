/** What the editor knows beside files and can go along with a message: `@terminal` and `@git`. */
import { commands, env, l10n, window } from "vscode";
import { repositoryOf } from "./commit";
import { type Attachment, textAttachment } from "./context";
import type { Completion } from "./protocol";

/** The most of one, in characters: the end of a terminal, the beginning of a diff. */
const MAX = 60_000;

const SOURCES: Readonly<Record<string, { detail: string; read: () => Promise<Attachment | undefined> }>> = {
  "@terminal": { detail: l10n.t("the text of the active terminal"), read: () => terminalAttachment() },
  "@git": { detail: l10n.t("the changes that are not committed"), read: () => gitAttachment() },
};

/** Those that a query behind an `@` may mean. */
export function sourcesFor(query: string): Completion[] {
  const meant = Object.entries(SOURCES).filter(([name]) => name.startsWith(`@${query}`));
  return meant.map(([insert, { detail }]) => ({ insert, label: insert.slice(1), kind: "selection", detail }));
}

/** Those that a message names. */
export async function mentionedSources(text: string): Promise<Attachment[]> {
  const named = Object.entries(SOURCES).filter(([name]) => text.split(/\s+/).includes(name));
  const read = await Promise.all(named.map(([, source]) => source.read()));
  return read.filter((attachment) => attachment !== undefined);
}

/** The selection in the active terminal, or all of its text. There is no other way to it than the clipboard, which is restored. */
export async function terminalAttachment(): Promise<Attachment | undefined> {
  const terminal = window.activeTerminal;
  if (terminal === undefined) {
    return undefined;
  }
  const before = await env.clipboard.readText();
  await env.clipboard.writeText("");
  let text: string;
  try {
    await commands.executeCommand("workbench.action.terminal.copySelection");
    text = await env.clipboard.readText();
    if (text === "") {
      await commands.executeCommand("workbench.action.terminal.selectAll");
      await commands.executeCommand("workbench.action.terminal.copySelection");
      await commands.executeCommand("workbench.action.terminal.clearSelection");
      text = await env.clipboard.readText();
    }
  } finally {
    await env.clipboard.writeText(before);
  }
  const shown = text.trim().slice(-MAX);
  return shown === "" ? undefined : textAttachment(terminal.name, `Text of the terminal ${terminal.name}:\n\n${shown}`);
}

async function gitAttachment(): Promise<Attachment | undefined> {
  const repository = await repositoryOf(undefined);
  const [staged = "", other = ""] = repository === undefined ? [] : await Promise.all([repository.diff(true), repository.diff(false)]);
  const diff = [staged, other].filter((text) => text.trim() !== "").join("\n");
  return diff === "" ? undefined : textAttachment("git", `Changes that are not committed:\n\n${diff.slice(0, MAX)}`);
}
