/** A diff in the chat: numbered lines with the differing words marked, highlighted once it is near the window. */
import type { DiffLine, DiffView } from "../src/diff";
import { visible } from "../src/safe";
import { highlighted, whenNear } from "./code";
import { type Child, h } from "./dom";
import { t } from "./words";

type Hunk = DiffView["hunks"][number];

const signNames = { "+": t("added: "), "-": t("removed: "), " ": "" };

export function diffTable({ path, hunks, hiddenLines }: DiffView, head: Child): HTMLElement {
  const rows = hunks.map((hunk) => hunk.map(diffRow));
  const lines = rows.flatMap((some, index) => [index > 0 && h("div", { class: "gap" }, "⋯"), ...some]);
  const table = h(
    "div",
    { class: "diff", tabindex: "0", role: "region", "aria-label": t("Diff of {0}", visible(path)) },
    head,
    h("div", { class: "diff-lines" }, ...lines),
    hiddenLines > 0 && h("div", { class: "gap" }, t("{0} more lines: open the diff to see them", hiddenLines)),
  );
  whenNear(table, () => hunks.forEach((hunk, index) => void color(hunk, rows[index] ?? [], languageOf(path))));
  return table;
}

function diffRow({ sign, text, line, changed: [from, to] = [0, 0] }: DiffLine): HTMLElement {
  const kind = { "+": "added", "-": "removed", " ": "same" }[sign];
  const shownSign = sign === "-" ? "−" : sign;
  return h(
    "div",
    { class: `line ${kind}` },
    h("span", { class: "number", "aria-hidden": "true" }, String(line ?? "")),
    h("span", { class: "sign", "aria-label": signNames[sign] }, shownSign),
    h(
      "span",
      { class: "code-text" },
      visible(text.slice(0, from)),
      to > from && h("span", { class: "changed" }, visible(text.slice(from, to))),
      visible(text.slice(Math.max(from, to))),
    ),
  );
}

/** The highlighter knows languages by file extension, and by whole names such as `Makefile`. */
function languageOf(path: string): string {
  return (/[^./\\]+$/.exec(path)?.[0] ?? "").toLowerCase();
}

/** Old and new lines are highlighted separately. A hunk with an invisible character stays plain, so that the character shows. */
async function color(hunk: Hunk, rows: readonly HTMLElement[], language: string): Promise<void> {
  if (hunk.some(({ text }) => visible(text) !== text)) {
    return;
  }
  const [before, after] = await Promise.all(["+", "-"].map((not) => linesOf(hunk, not, language)));
  hunk.forEach(({ sign, changed }, index) => {
    const markup = (sign === "-" ? before : after)?.[index];
    const text = rows[index]?.querySelector(".code-text");
    if (markup !== undefined && text != null) {
      text.innerHTML = markup;
      mark(text, changed ?? [0, 0]);
    }
  });
}

/** The markup of the lines without those of a sign, each at its place. */
async function linesOf(hunk: Hunk, not: string, language: string): Promise<(string | undefined)[] | undefined> {
  const code = hunk.filter(({ sign }) => sign !== not).map(({ text }) => text);
  const markup = (await highlighted(code.join("\n"), language))?.split("\n");
  return markup && hunk.map(({ sign }) => (sign === not ? undefined : markup.shift()));
}

/** Wraps characters that may begin and end inside colored words. */
function mark(line: Element, [from, to]: readonly [number, number]): void {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) {
    texts.push(walker.currentNode as Text);
  }
  let at = 0;
  for (const text of texts) {
    const [start, end] = [Math.max(0, from - at), Math.min(text.length, to - at)];
    at += text.length;
    if (start < end) {
      const part = text.splitText(start);
      part.splitText(end - start);
      const changed = h("span", { class: "changed" });
      part.replaceWith(changed);
      changed.append(part);
    }
  }
}
