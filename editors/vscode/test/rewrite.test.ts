import assert from "node:assert/strict";
import { test } from "node:test";
import { asDiff, type Lines, piecesOf, shifted, withoutLastLineEnd } from "../src/rewrite";

test("what differs is in hunks, each where it begins in the old lines", () => {
  const before = "a\nb\nc\nd\ne";
  assert.deepEqual(piecesOf(before, "a\nB\nc\nd\ne\nf"), [
    { line: 1, before: ["b"], after: ["B"] },
    { line: 5, before: [], after: ["f"] },
  ]);
  assert.deepEqual(piecesOf(before, "new\na\nb\ne"), [
    { line: 0, before: [], after: ["new"] },
    { line: 2, before: ["c", "d"], after: [] },
  ]);
  assert.deepEqual(piecesOf("a\r\nb", "a\nb"), [], "line ends are the document's");
  assert.deepEqual(piecesOf("", "x"), [{ line: 0, before: [""], after: ["x"] }]);
});

test("a hunk is shown as a diff, whatever is in it", () => {
  assert.equal(asDiff({ line: 0, before: ["a"], after: ["```", "b"] }), "````diff\n-a\n+```\n+b\n````");
});

test("one line end behind the last line is not a line", () => {
  assert.deepEqual(["a\n", "a\r\n", "a\n\n", "a"].map(withoutLastLineEnd), ["a", "a", "a\n", "a"]);
});

test("lines follow what is typed before them, and are given up where they are typed in", () => {
  const lines: Lines = { first: 4, last: 6 };
  const typed = (first: number, last: number, text: string) => shifted(lines, { first, last, text });
  assert.deepEqual(typed(1, 1, "x"), lines);
  assert.deepEqual(typed(1, 1, "x\ny\n"), { first: 6, last: 8 });
  assert.deepEqual(typed(0, 2, ""), { first: 2, last: 4 });
  assert.deepEqual(typed(7, 9, "x"), lines);
  assert.equal(typed(3, 4, ""), undefined, "the line before is joined to them");
  assert.equal(typed(5, 5, "x"), undefined);
});
