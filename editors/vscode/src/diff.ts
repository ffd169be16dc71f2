/** The line diff of a proposed edit, cut to what a side bar can show; the full diff opens in the diff editor. */
import { structuredPatch, type StructuredPatchHunk } from "diff";
import type { DiffContent } from "./protocol";

export interface DiffLine {
  readonly sign: " " | "+" | "-";
  readonly text: string;
  /** Its number in the new text; a removed line has none, nor has any where the texts were too different to compare. */
  readonly line?: number;
  /** Where it differs from the line that it replaces or that replaces it; nothing if the two have little in common. */
  readonly changed?: readonly [from: number, to: number];
}

export interface DiffView {
  readonly path: string;
  readonly added: number;
  readonly removed: number;
  readonly hunks: readonly (readonly DiffLine[])[];
  /** Changed or context lines that are not in `hunks`. */
  readonly hiddenLines: number;
}

const WORDS = /[\p{L}\p{N}_]+|\s+|./gu;
const CONTEXT_LINES = 2;
const MAX_LINES = 400;
/** With more edits than this, an exact diff is too slow. */
const MAX_EDITS = 4000;

/** Compares by lines; if the texts differ too much, all lines count as replaced. */
export function diffView({ path, oldText, newText, _meta }: DiffContent): DiffView {
  const [before, after] = withoutSameEnds(oldText ?? "", newText);
  const skipped = _meta?.["tandem/skippedLines"] ?? 0;
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_EDITS };
  const patch = structuredPatch("", "", before, after, "", "", options);
  const hunks = patch?.hunks.map((hunk) => withChanges(withoutBlankRim(diffLines(hunk, skipped)))) ?? [replaced(before, after)];
  const lines = hunks.flat();
  return {
    path,
    added: lines.filter(({ sign }) => sign === "+").length,
    removed: lines.filter(({ sign }) => sign === "-").length,
    hunks: firstLines(hunks, MAX_LINES),
    hiddenLines: Math.max(0, lines.length - MAX_LINES),
  };
}

/** Line ends of Windows are shown only where they change or are mixed. */
function withoutSameEnds(before: string, after: string): [string, string] {
  const isMixed = /(?<!\r)\n/.test(before) || /(?<!\r)\n/.test(after);
  const ends = isMixed ? "\n" : "\r\n";
  return [before.replaceAll(ends, "\n"), after.replaceAll(ends, "\n")];
}

/** `\ No newline at end of file` is a note, not a line. */
function diffLines({ lines, newStart }: StructuredPatchHunk, skipped: number): DiffLine[] {
  let line = newStart + skipped;
  return lines.flatMap((text): DiffLine[] => {
    const sign = text.charAt(0);
    if (sign !== " " && sign !== "+" && sign !== "-") {
      return [];
    }
    return [{ sign, text: text.slice(1), ...(sign !== "-" && { line: line++ }) }];
  });
}

/** Context that begins or ends with an empty line begins one line later, or ends one earlier. */
function withoutBlankRim(lines: DiffLine[]): DiffLine[] {
  const blank = (line: DiffLine | undefined) => line?.sign === " " && line.text.trim() === "";
  return lines.slice(blank(lines[0]) ? 1 : 0, blank(lines.at(-1)) ? -1 : undefined);
}

/** Lines that replace the same number of lines are compared one by one. */
function withChanges(lines: readonly DiffLine[]): DiffLine[] {
  const marked = [...lines];
  for (let at = 0; at < lines.length;) {
    const removed = run(lines, at, "-");
    const added = run(lines, at + removed, "+");
    for (let index = at; removed === added && index < at + removed; index++) {
      const [before, after] = [lines[index], lines[index + removed]];
      const changes = before && after && changed(before.text, after.text);
      if (changes) {
        marked[index] = { ...before, changed: changes[0] };
        marked[index + removed] = { ...after, changed: changes[1] };
      }
    }
    at += Math.max(1, removed + added);
  }
  return marked;
}

function run(lines: readonly DiffLine[], from: number, sign: DiffLine["sign"]): number {
  let end = from;
  while (lines[end]?.sign === sign) {
    end++;
  }
  return end - from;
}

/** How much two lists or texts have in common at their beginnings, and at their ends. */
export function sameEnds<T>(a: ArrayLike<T>, b: ArrayLike<T>, isSame: (one?: T, other?: T) => boolean = Object.is): [number, number] {
  const most = Math.min(a.length, b.length);
  let [first, last] = [0, 0];
  while (first < most && isSame(a[first], b[first])) {
    first++;
  }
  while (last < most - first && isSame(a[a.length - 1 - last], b[b.length - 1 - last])) {
    last++;
  }
  return [first, last];
}

/** The ranges between the words that both lines begin and end with. */
function changed(before: string, after: string): [[number, number], [number, number]] | undefined {
  const a: string[] = before.match(WORDS) ?? [];
  const b: string[] = after.match(WORDS) ?? [];
  const [first, last] = sameEnds(a, b);
  const same = [...a.slice(0, first), ...a.slice(a.length - last)].join("");
  if (same.trim().length * 4 < Math.min(before.length, after.length)) {
    return undefined;
  }
  const from = a.slice(0, first).join("").length;
  const tail = a.slice(a.length - last).join("").length;
  return [
    [from, before.length - tail],
    [from, after.length - tail],
  ];
}

function replaced(before: string, after: string): DiffLine[] {
  const lines = (text: string, sign: "+" | "-") => text.split("\n").map((line): DiffLine => ({ sign, text: line }));
  return [...lines(before, "-"), ...lines(after, "+")];
}

function firstLines(hunks: readonly (readonly DiffLine[])[], limit: number): DiffLine[][] {
  let left = limit;
  const shown = hunks.map((hunk) => {
    const lines = hunk.slice(0, left);
    left -= lines.length;
    return lines;
  });
  return shown.filter((lines) => lines.length > 0);
}
