/** Hunks of a text, as the server lists them. Pure. */
import { l10n } from "vscode";
import type { ReviewedHunk } from "./protocol";

/** The text without these hunks: what was there before. Lines end as they do in the text. */
export function without(text: string, hunks: readonly ReviewedHunk[]): string {
  const lines = text.split(/(?<=\n)/);
  const fromTheEnd = [...hunks].sort((a, b) => b.new.start - a.new.start);
  for (const { new: now, oldText } of fromTheEnd) {
    lines.splice(now.start - 1, now.count, oldText);
  }
  return lines.join("");
}

/** Whether a 0-based line is in the hunk; where lines were removed, the one before or after it. */
export function contains({ new: { start, count } }: ReviewedHunk, line: number): boolean {
  const first = start - 1;
  return count === 0 ? line === first || line === first - 1 : line >= first && line < first + count;
}

/** What a hunk does, in a few words: its first changed line; of a notebook's file the first that is of a cell. */
export function summary({ diff }: ReviewedHunk, isNotebook = false): string {
  const changed = diff.split("\n").filter((line) => /^[-+]/.test(line));
  const added = changed.filter((line) => line.startsWith("+") && line.trim() !== "+");
  const lines = [...added, ...changed].map((line) => line.slice(1).trim());
  const [first = lines[0] ?? ""] = isNotebook ? lines.flatMap(ofCell) : lines;
  return first.trim();
}

/** What a hunk of a notebook's file wrote into cells, or else removed from them. */
export function cellText({ diff }: ReviewedHunk): string {
  const [added = [], removed = []] = ["+", "-"].map((sign) => {
    const lines = diff.split("\n").filter((line) => line.startsWith(sign));
    return lines.flatMap((line) => ofCell(line.slice(1).trim()));
  });
  return (added.length > 0 ? added : removed).join("\n");
}

/** In JSON, the lines of a source are strings, or all of it is one. */
function ofCell(line: string): string[] {
  const text = /^(?:"source": )?("(?:[^"\\]|\\.)*")(?=,?$)/.exec(line)?.[1];
  return text === undefined ? [] : [String(JSON.parse(text)).trimEnd()];
}

export type Shape = "added" | "removed" | "modified";

export function shape({ old, new: now }: ReviewedHunk): Shape {
  if (old.count === 0) {
    return "added";
  }
  return now.count === 0 ? "removed" : "modified";
}

/** `1 change`, `2 changes`. */
export function counted(count: number): string {
  return count === 1 ? l10n.t("1 change") : l10n.t("{0} changes", count);
}
