import assert from "node:assert/strict";
import { test } from "node:test";
import { contains, shape, summary, without } from "../src/hunks";
import type { ReviewedHunk } from "../src/protocol";

function hunk(now: [start: number, count: number], oldText: string, diff = ""): ReviewedHunk {
  const old = oldText === "" ? 0 : oldText.split(/(?<=\n)/).length;
  return { id: now[0], old: { start: now[0], count: old }, new: { start: now[0], count: now[1] }, oldText, diff };
}

function check(text: string, hunks: ReviewedHunk[], expected: string) {
  assert.equal(without(text, hunks), expected);
}

test("the text before is the text without its hunks, whatever their order", () => {
  check("A\nb\nC\nD\n", [hunk([1, 1], "a\n"), hunk([3, 2], "c\n")], "a\nb\nc\n");
  check("A\nb\nC\nD\n", [hunk([3, 2], "c\n"), hunk([1, 1], "a\n")], "a\nb\nc\n");
});

test("removed lines come back where they were", () => {
  check("a\nc\n", [hunk([2, 0], "b\n")], "a\nb\nc\n");
  check("a\n", [hunk([2, 0], "b\n")], "a\nb\n");
  check("", [hunk([1, 0], "a\nb\n")], "a\nb\n");
});

test("line endings and a missing last one stay", () => {
  check("A\r\nb", [hunk([1, 1], "a\r\n")], "a\r\nb");
  check("a\nB", [hunk([2, 1], "b")], "a\nb");
});

test("a created file was nothing", () => check("new\n", [hunk([1, 1], "")], ""));

test("a hunk has its lines, and where it removed some the ones beside", () => {
  const at = (lines: number[], one: ReviewedHunk) => lines.map((line) => contains(one, line));
  assert.deepEqual(at([1, 2, 3, 4], hunk([3, 2], "x\n")), [false, true, true, false]);
  assert.deepEqual(at([0, 1, 2, 3], hunk([3, 0], "x\n")), [false, true, true, false]);
});

test("a hunk is told by its first new line, else by what it removed", () => {
  assert.equal(summary(hunk([1, 1], "a\n", "@@ -1 +1 @@\n-a\n+  b\n c\n")), "b");
  assert.equal(summary(hunk([1, 0], "a\n", "@@ -1 +0,0 @@\n-a\n")), "a");
  assert.equal(summary(hunk([1, 1], "", '+   "source": "x = 1"\n'), true), "x = 1");
  assert.deepEqual([hunk([1, 1], ""), hunk([1, 1], "a\n"), hunk([1, 0], "a\n")].map(shape), ["added", "modified", "removed"]);
});
