/**
 * Documents that no tab shows, such as files that a turn created, which are opened to find their problems. An edit of one is saved at once: a file that nobody
 * has open changes on disk, and no tab with unsaved text appears for it.
 */
import { type TextDocument, window, workspace } from "vscode";

export async function savingUnseen<T>(edit: () => T): Promise<Awaited<T>> {
  const unseen = workspace.textDocuments.filter((document) => document.uri.scheme === "file" && !document.isDirty && !isSeen(document));
  const result = await edit();
  await Promise.all(unseen.filter(({ isDirty }) => isDirty).map((document) => document.save()));
  return result;
}

/** In an editor, a diff or a notebook: each kind of tab has its URIs under other names. */
function isSeen({ uri }: TextDocument): boolean {
  const inputs = window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ input }) => input));
  const shown = inputs.flatMap((input) => (input instanceof Object ? Object.values(input) : []));
  return shown.some((one) => String(one) === String(uri));
}
