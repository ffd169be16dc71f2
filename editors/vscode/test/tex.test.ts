import assert from "node:assert/strict";
import { test } from "node:test";
import { MarkdownStream } from "../webview/stream";
import { Page } from "./page";

function html(text: string, size = text.length): string {
  const stream = new MarkdownStream();
  const page = new Page();
  (text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []).forEach((piece) => page.apply(stream.push(piece)));
  page.apply(stream.end());
  return page.html;
}

/** The formulas of a text, each with its rendering. */
function formulas(text: string): string[] {
  return [...html(text).matchAll(/class="math( display)?" data-tex="([^"]*)"/g)].map(([, display, tex]) => `${display ?? ""}${tex}`);
}

test("formulas are found in text, in paragraphs of their own, in lists and in tables", () => {
  for (const [text, ...expected] of [
    ["the sum \\(a_1 + b\\) and $x^2$, $n$ or $O(n)$.", "a_1 + b", "x^2", "n", "O(n)"],
    ["\\[\n\\frac{a}{b}\n+ c\n\\]", " display\\frac{a}{b}\n+ c"],
    ["so\n$$\nx = 1\n- y\n$$\nholds", " displayx = 1\n- y"],
    ["$$E = mc^2$$", " displayE = mc^2"],
    ["inline $$x = 1$$ too", " displayx = 1"],
    ["- one $a_1$\n- two\n\n  $$\n  b\n  $$", "a_1", " displayb"],
    ["| f |\n|---|\n| $x^2$ |", "x^2"],
    ["\\(a < b\\)", "a &lt; b"],
  ] as const) {
    assert.deepEqual(formulas(text), expected, text);
  }
});

test("prices, variables, patterns, code and brackets are no formulas", () => {
  for (const text of [
    "it costs $5 and $6, or $7.50 = $8",
    "from $10 to $20",
    "add $HOME/bin:$PATH to it, and $FOO_BAR=$BAZ",
    "echo $(pwd)/$(id -u), ${A}_${B}",
    "`$x^2$` and `\\(a\\)`",
    "the pattern ^a_b$ and ^c$ match",
    "$$ is the process, and so is $$, twice",
    "\\[optional\\] words, \\[x\\]",
    '"$FOO_X" and "$BAR_Y"',
    "US$5 < US$6",
    "```\n$$\nx\n$$\n```",
    "$$\nnever closed\n\nthe next paragraph",
    "$a_b$c and x$a_b$",
  ]) {
    assert.deepEqual(formulas(text), [], text);
  }
  assert.match(html("\\[optional\\] words"), /\[optional\] words/);
  assert.match(html("$$\nnever closed\n\nthe next paragraph"), /<p>the next paragraph<\/p>/);
});

test("a formula is shown as it is written, with no markup of its own, however it arrives", () => {
  const text =
    'So:\n\n$$\n\\text{<b onclick="x">}\n+ \\sum_{i=1}^n i\n$$\n\nand \\(a < \\text{"}\\) or $x_1$.\n\n1. \\[\n   y = 2\n   \\]\n2. two\n';
  const whole = html(text);
  assert.doesNotMatch(whole, /<b[ >]/);
  assert.match(whole, /<div class="math display" data-tex="\\text\{&lt;b onclick=&quot;x&quot;&gt;\}\n\+ [^"]*">\$\$\n\\text\{&lt;b/);
  for (const size of [1, 2, 3, 7, 20]) {
    assert.equal(html(text, size), whole, `pieces of ${size}`);
  }
});
