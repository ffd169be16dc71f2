/** The difference between lines and their replacement, as hunks that can be included or excluded. Pure. */
import { diffArrays } from "diff";
import { visible } from "./safe";
import { fenced } from "./transcript";

export interface Piece {
  /** Where it begins in the old lines, counted from 0. */
  readonly line: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Lines that differ, with the lines next to them that differ too. */
export function piecesOf(before: string, after: string): Piece[] {
  const pieces: Piece[] = [];
  let line = 0;
  let open: { line: number; before: string[]; after: string[] } | undefined;
  for (const { value, added, removed } of diffArrays(linesOf(before), linesOf(after))) {
    if (!added && !removed) {
      open = undefined;
    } else {
      if (open === undefined) {
        open = { line, before: [], after: [] };
        pieces.push(open);
      }
      (added ? open.after : open.before).push(...value);
    }
    line += added ? 0 : value.length;
  }
  return pieces;
}

/** A replacement of lines without their last line end. */
export function withoutLastLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** As a diff that is safe to show, in a fence that is longer than any in the text. */
export function asDiff({ before, after }: Piece): string {
  const lines = [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)];
  return fenced(visible(lines.join("\n")), "diff");
}

/** Where lines are after a change of other lines; `undefined` if these changed. */
export function shifted(lines: Lines, change: Lines & { readonly text: string }): Lines | undefined {
  if (change.first > lines.last) {
    return lines;
  }
  if (change.last >= lines.first) {
    return undefined;
  }
  const by = linesOf(change.text).length - 1 - (change.last - change.first);
  return { first: lines.first + by, last: lines.last + by };
}

/** The first and the last of some lines, counted from 0. */
export interface Lines {
  readonly first: number;
  readonly last: number;
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/);
}
