import assert from "node:assert/strict";
import { test } from "node:test";
import { MarkdownStream } from "../webview/markdown";

/** Renders the text piece by piece, as it would stream in. */
function streamed(pieces: readonly string[]): string {
  const stream = new MarkdownStream();
  let settled = "";
  let tail = "";
  for (const piece of pieces) {
    const rendered = stream.push(piece);
    settled += rendered.settled;
    tail = rendered.tail;
  }
  return settled + tail;
}

const document = `# Title

A paragraph with **bold**, \`code\` and a [link](src/a.ts#L3).
Still the paragraph.

- one
- two

  with a second paragraph
- three

1. first

2. second

\`\`\`ts
const a = 1;

const b = \`x\`;
\`\`\`

> quoted
lazily

| a | b |
|:--|--:|
| 1 | 2 |

Setext
======

Done 👩‍💻.
`;

test("any cutting of a text renders as the whole of it", () => {
  const whole = streamed([document]);
  const sizes = [1, 2, 3, 5, 7, 11, 64];
  for (const size of sizes) {
    const pieces = document.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
    assert.equal(streamed(pieces), whole, `pieces of ${size}`);
  }
});

test("what is settled is rendered once: the cost of a piece does not grow with the answer", () => {
  const stream = new MarkdownStream();
  const tails = Array.from({ length: 500 }, (_, index) => stream.push(`Paragraph number ${index}.\n\n`).tail.length);
  assert.ok(Math.max(...tails) < 60);
});

test("markup, images and foreign schemes of the model stay text or become plain links", () => {
  const cases: [string, RegExp, RegExp][] = [
    ["<script>x()</script>", /&lt;script&gt;/, /<script/],
    ["<img src=x onerror=y>", /&lt;img/, /<img/],
    ["![alt](https://example.com/a.png)", /data-href="https:\/\/example\.com\/a\.png".*>alt<\/a>/, /<img| href=/],
    ["[run](command:workbench.action.quit)", /\[run\]\(command:/, /data-href/],
    ["[x](javascript:alert(1))", /\[x\]/, /data-href/],
    ["[x](vscode://a.b/c)", /\[x\]/, /data-href/],
    ["[x](//server/share)", /\[x\]/, /data-href/],
    ["![x](data:image/png;base64,AAAA)", /!\[x\]/, /data-href|<img/],
    ['[x](https://a.example/"onclick="y)', /data-href="https:\/\/a\.example\/%22onclick=%22y"/, /"onclick/],
    ['```"><b>\n<i>\n```', /&lt;i&gt;/, /<b>|<i>/],
    ["|a|\n|--:|\n|1|", /<td class="right">1/, /style=/],
    ["safe \u202Eevil", /⟨U\+202E⟩/, /\u202E/],
  ];
  for (const [source, expected, forbidden] of cases) {
    const html = streamed([source]);
    assert.match(html, expected, source);
    assert.doesNotMatch(html, forbidden, source);
  }
});
