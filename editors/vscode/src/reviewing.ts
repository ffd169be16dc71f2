/** The commands to review with; without an argument they mean the change under the cursor. */
import { existsSync } from "node:fs";
import { l10n, commands, type Disposable, Selection, TextEditorRevealType, Uri, window } from "vscode";
import type { Before } from "./before";
import { CHANGES_VIEW } from "./changes";
import { currentEditor } from "./context";
import { contains } from "./hunks";
import { lines } from "./marks";
import { isNotebook } from "./notebooks";
import type { Hunk, Part, Review } from "./review";

export function registerReviewCommands(review: Review, before: Before): Disposable[] {
  const onPart = (use: (part: Part) => Promise<void>) => async (part?: Part | Uri) => {
    const chosen = part === undefined || part instanceof Uri ? here(review) : part; // an editor's menu gives its file
    await (chosen === undefined ? sayNone(review) : use(chosen));
  };
  const deciding = (decide: (part: Part) => Promise<void>) =>
    onPart(async (part) => {
      await decide(part);
      await before.closeSettled();
    });
  /** The latest first, because it builds on the earlier ones. */
  const inEditor = async (use: (part: Part) => Promise<void>) => {
    const shown = before.inEditor.reverse();
    if (shown.length === 0) {
      await sayNone(review, l10n.t("No changes by tandem to review in this editor."));
    }
    for (const part of shown) {
      await use(part);
    }
    await before.closeSettled();
  };
  const handlers: Record<string, (...args: never[]) => unknown> = {
    undoLastTurn: () => review.undo(),
    redo: () => review.redo(),
    reviewChanges: () => reviewChanges(review),
    keepChange: deciding((part) => review.keep(part)),
    rejectChange: deciding((part) => review.reject(part)),
    openChange: onPart((part) => before.show(part)),
    keepInEditor: () => inEditor((part) => review.keep(part)),
    rejectInEditor: () => inEditor((part) => review.reject(part)),
    keepAll: () => review.keepAll(),
    rejectAll: () => review.rejectAll(),
    nextChange: () => goTo(review, before, 1),
    previousChange: () => goTo(review, before, -1),
  };
  return [
    ...Object.entries(handlers).map(([name, handler]) => commands.registerCommand(`tandem.${name}`, handler)),
    review.onChange(() => setContext(review, before)),
    window.tabGroups.onDidChangeTabs(() => setContext(review, before)),
    window.tabGroups.onDidChangeTabGroups(() => setContext(review, before)),
  ];
}

/** Which commands are offered, and where: the title of an editor is of its file, or of a turn. */
function setContext(review: Review, before: Before): void {
  const files = new Set(review.all().map(({ file }) => file.path));
  void commands.executeCommand("setContext", "tandem.hasChanges", files.size > 0);
  void commands.executeCommand("setContext", "tandem.changedFiles", [...files].map(Uri.file));
  void commands.executeCommand("setContext", "tandem.turnInEditor", before.isTurnInEditor);
}

async function reviewChanges(review: Review): Promise<void> {
  await review.refresh();
  await (review.count === 0 ? sayNone(review) : commands.executeCommand(`${CHANGES_VIEW}.focus`));
}

function here(review: Review): Hunk | undefined {
  const editor = currentEditor();
  return editor && review.of(editor.document.uri).find(({ hunk }) => contains(hunk, editor.selection.active.line));
}

async function sayNone(review: Review, here = l10n.t("tandem has not changed the line at the cursor.")): Promise<void> {
  const text = review.count === 0 ? l10n.t("No changes by tandem to review.") : here;
  void window.showInformationMessage(text);
}

/**
 * Goes to the next or previous change, in the next file when this one has no more. A notebook, or a file that is no longer text, is one place: its comparison.
 */
async function goTo(review: Review, before: Before, step: 1 | -1): Promise<void> {
  const isText = (path: string) => !isNotebook({ path }) && existsSync(path);
  const at = (path: string, line: number) => ({ path, line: isText(path) ? line : 0 });
  const places = review.all().map((one) => ({ ...at(one.file.path, one.hunk.new.start - 1), one }));
  const order = (a: { path: string; line: number }, b: typeof a) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1) * step;
  places.sort(order);
  const editor = currentEditor();
  const from = at(before.inEditor[0]?.file?.path ?? editor?.document.uri.fsPath ?? "", editor?.selection.active.line ?? 0);
  const target = places.find((place) => order(place, from) > 0) ?? places[0];
  if (target === undefined) {
    return sayNone(review);
  }
  const shown = await (isText(target.path) ? window.showTextDocument(Uri.file(target.path)) : undefined)?.then(
    (editor) => editor,
    () => undefined,
  );
  if (shown === undefined) {
    return before.show(target.one);
  }
  const { start } = lines(shown.document, target.one);
  shown.selection = new Selection(start, start);
  shown.revealRange(shown.selection, TextEditorRevealType.InCenterIfOutsideViewport);
}
