import assert from "node:assert/strict";
import { test } from "node:test";
import { diffView } from "../src/diff";

function shown(oldText: string | null, newText: string): string[] {
  return diffView({ type: "diff", path: "/a", oldText, newText }).hunks.map((hunk) => hunk.map(({ sign, text }) => sign + text).join("\n"));
}

test("shows changed lines with a little context", () => {
  assert.deepEqual(shown("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n"), [" a\n b\n-c\n+C\n d\n e"]);
  assert.deepEqual(shown(null, "new\nfile\n"), ["+new\n+file"]);
  assert.deepEqual(shown("same\n", "same\n"), []);
  assert.deepEqual(shown("no newline", "no newline\n"), ["-no newline\n+no newline"]);
});

test("blank lines at the rim of a hunk tell nothing", () => {
  assert.deepEqual(shown("x\n\na\n\ny\n", "x\n\nb\n\ny\n"), [" x\n \n-a\n+b\n \n y"]);
  assert.deepEqual(shown("w\n\nx\na\ny\n\nz\n", "w\n\nx\nb\ny\n\nz\n"), [" x\n-a\n+b\n y"]);
});

test("line ends of Windows are shown where they change", () => {
  assert.deepEqual(shown("a\r\nb\r\n", "a\r\nB\r\n"), [" a\n-b\n+B"]);
  assert.deepEqual(shown(null, "new\r\n"), ["+new"]);
  assert.deepEqual(shown("a\r\n", "a\n"), ["-a\r\n+a"]);
});

test("lines have the numbers of their file, of which the server may leave out the beginning", () => {
  const numbers = (above: number, skipped?: number) =>
    diffView({
      type: "diff",
      path: "/a",
      oldText: `${"\n".repeat(above)}a\nb\nc\nd\n`,
      newText: `${"\n".repeat(above)}a\nB\nx\nd\ne\n`,
      ...(skipped !== undefined && { _meta: { "tandem/skippedLines": skipped } }),
    })
      .hunks.flat()
      .filter(({ text }) => text !== "")
      .map(({ sign, line }) => `${sign}${line ?? ""}`);
  assert.deepEqual(numbers(0), [" 1", "-", "-", "+2", "+3", " 4", "+5"]);
  assert.deepEqual(numbers(49), [" 50", "-", "-", "+51", "+52", " 53", "+54"]);
  assert.deepEqual(numbers(49, 1000), [" 1050", "-", "-", "+1051", "+1052", " 1053", "+1054"]);
});

test("counts all lines and shows what fits", () => {
  const many = Array.from({ length: 1000 }, (_, index) => `line ${index}\n`).join("");
  const view = diffView({ type: "diff", path: "/a", oldText: "", newText: many });
  assert.equal(view.added, 1000);
  assert.equal(view.hunks.flat().length + view.hiddenLines, 1000);
  assert.ok(view.hunks.flat().length <= 400);
});

test("texts too different to compare are shown as replaced, quickly", () => {
  const lines = (word: string) => Array.from({ length: 5000 }, (_, index) => `${word} ${index}`).join("\n");
  const view = diffView({ type: "diff", path: "/a", oldText: lines("old"), newText: lines("new") });
  assert.deepEqual([view.added, view.removed], [5000, 5000]);
});

test("in lines that replace others the words that differ are marked, where most is the same", () => {
  const marked = (oldText: string, newText: string) =>
    diffView({ type: "diff", path: "/a", oldText, newText })
      .hunks.flat()
      .filter(({ sign }) => sign !== " ")
      .map(({ text, changed: [from, to] = [0, 0] }) => text.slice(from, to));
  assert.deepEqual(marked("let total = old(a);\n", "let total = new_one(a);\n"), ["old", "new_one"]);
  assert.deepEqual(marked("a b\nc d\n", "a x\nc y\n"), ["b", "d", "x", "y"]);
  assert.deepEqual(marked("f(a)\n", "f(a, b)\n"), ["", ", b"]);
  assert.deepEqual(marked("something else\n", "nothing alike\n"), ["", ""]);
  assert.deepEqual(marked("one line\n", "one line\nand two\n"), [""], "only lines that replace as many");
});
