import assert from "node:assert/strict";
import { test } from "node:test";
import { MarkdownStream } from "../webview/stream";
import { Page } from "./page";

/** Renders the text piece by piece, as it would stream in. */
function streamed(pieces: readonly string[]): string {
  const stream = new MarkdownStream();
  const page = new Page();
  pieces.forEach((piece) => page.apply(stream.push(piece)));
  page.apply(stream.end());
  assert.equal(page.tail, "", "nothing is left that may change");
  return page.html;
}

function cut(text: string, size: number): string[] {
  return text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
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
    assert.equal(streamed(cut(document, size)), whole, `pieces of ${size}`);
  }
});

test("the cost of one long block is linear: bytes parsed are at most three times its length", () => {
  const lines = (line: (index: number) => string) => Array.from({ length: 600 }, (_, index) => line(index)).join("\n");
  const blocks: Record<string, string> = {
    code: `\`\`\`ts\n${lines((index) => `const value${index} = compute(${index}); // what comes of it, and why`)}\n\`\`\`\n`,
    "a code block that never ends": `\`\`\`\n${lines((index) => `line ${index} of the log, without an end in sight`)}`,
    list: lines((index) => `- Step ${index}: read the file, change the place, and run its tests once more`),
    "numbered list": lines((index) => `${index + 1}. Step ${index}: read the file, change the place, and run its tests`),
    table: `| name | value |\n|---|--:|\n${lines((index) => `| row number ${index} of them | ${index * index} |`)}`,
    quote: lines((index) => `> Line ${index} of what somebody said a long time ago in a galaxy far away`),
    "one line": lines((index) => `some more words ${index} of one line without an end`).replaceAll("\n", " "),
  };
  for (const [name, text] of Object.entries(blocks)) {
    for (const size of [8]) {
      const stream = new MarkdownStream();
      const page = new Page();
      cut(text, size).forEach((piece) => page.apply(stream.push(piece)));
      page.apply(stream.end());
      const ratio = stream.parsed / text.length;
      assert.ok(ratio <= 3, `${name}, pieces of ${size}: ${ratio.toFixed(2)} times`);
      assert.equal(page.html, streamed([text]), name);
    }
  }
});

test("what the model wrote so far is on the page", () => {
  for (const size of [1, 3, 8]) {
    const stream = new MarkdownStream();
    const page = new Page();
    let sent = "";
    for (const piece of cut("Some words and `code` in it, which go on\nfor two lines.\n\n```sh\nmake all\nmake test\n```\nDone", size)) {
      sent += piece;
      page.apply(stream.push(piece));
      const words = sent
        .replace(/[`\n]+(sh\n)?/g, " ")
        .trim()
        .split(/\s+/)
        .slice(0, -1);
      const shown = page.html.replace(/<[^>]*>/g, " ");
      words.forEach((word) => assert.ok(shown.includes(word), `${word} in ${shown}`));
    }
  }
});

test("what is on the page is what the text so far looks like: each word in its paragraph or item, behind the word before it", () => {
  const long = "A long paragraph is parsed less often than a short one. ".repeat(30).trim();
  const first = "One paragraph\nin two lines.\n\n";
  const prose = `- an item, which is longer than forty characters\n- 3 more\n\n${long}\n\nThe end, and\n3 words.`;
  const words = (html: string) => html.replace(/\s+(?=<)/g, "").replace(/>\s+/g, ">");
  for (const size of [1, 2, 3, 7, 41, 64]) {
    const stream = new MarkdownStream();
    const page = new Page();
    let sent = "";
    for (const piece of [first, ...cut(prose, size)]) {
      sent += piece;
      page.apply(stream.push(piece));
      const held = /\n[-\d] ?$/.exec(sent)?.[0].length ?? 0; // this may begin a list item
      const expected = streamed([sent.slice(0, sent.length - held)]).replace(/<\/ul>\s*<ul>/g, "");
      assert.equal(
        words(page.html.replace(/<\/ul>\s*<ul>/g, "")),
        words(expected),
        `pieces of ${size}: ${JSON.stringify(sent.slice(-20))}`,
      );
    }
  }
});

test("numbers go on in a list that settles item by item", () => {
  const stream = new MarkdownStream();
  const page = new Page();
  cut("3. three\n4. four\n5. five\n6. si", 4).forEach((piece) => page.apply(stream.push(piece)));
  assert.match(page.settled, /^<ol start="3">\n(<li>[^]*){3}<\/ol>/);
  assert.match(page.tail, /<ol start="6">/);
});

test("names of files, addresses, task lists and line breaks", () => {
  const cases: [string, RegExp][] = [
    ["see src/price.ts:6 and more", /see <a [^>]*data-file="src\/price.ts:6"[^>]*>src\/price.ts:6<\/a> and/],
    ["see `src/price.ts:6-8`.", /<a [^>]*data-file="src\/price.ts:6-8"[^>]*><code>src\/price.ts:6-8<\/code><\/a>\./],
    ["[price](src/price.ts:6)", /data-href="src\/price.ts:6"/],
    ["price.ts:12 fails", /data-file="price.ts:12"/],
    ["`total` and `to_cents()`", /<code data-href="symbol:total"[^>]*>total<\/code> and <code data-href="symbol:to_cents"/],
    ["at https://example.com/a.b, then", /data-href="https:\/\/example.com\/a.b"[^>]*>https:\/\/example.com\/a.b<\/a>, then/],
    ["- [ ] open\n- [x] done", /<li class="task">\s*<p><span class="box"[^>]*aria-label="todo">☐<\/span> open[^]*aria-label="done">☑/],
    ["| a |\n|---|\n| one<br>two |", /one<br>\n?two/],
    ["<details>\n<summary>Log of `a`</summary>\n\nfoo\n\n</details>", /<strong>Log of <code[^>]*>a<\/code><\/strong><\/p>\s*<p>foo<\/p>/],
  ];
  for (const [source, expected] of cases) {
    assert.match(streamed([source]), expected, source);
  }
  for (const plain of ["and/or", "e.g. this", "1.5 of 2.5", "`a.b.c()`", "version 1.2.3:4", "example.com is", "`a b`", "`id`"]) {
    assert.doesNotMatch(streamed([plain]), /data-href/, plain);
  }
});

test("markup, images and foreign schemes of the model stay text or become plain links", () => {
  const cases: [string, RegExp, RegExp][] = [
    ["<script>x()</script>", /&lt;script&gt;/, /<script/],
    ["<img src=x onerror=y>", /&lt;img/, /<img/],
    ["![alt](https://example.com/a.png)", /data-href="https:\/\/example\.com\/a\.png".*>alt<\/a>/, /<img| href=/],
    ["[x](symbol:total) [`total`](src/price.ts)", /\[x\].*data-href="src\/price\.ts"[^>]*><code>total</, /data-href="symbol/],
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

test("a text may end directly below a table, whatever its last line is", () => {
  for (const last of ["* plus VAT", "# Note", "> quoted", "```ts", "1. one", "---", "| B", "words", "<b>"]) {
    const text = `| a | b |\n|--|--|\n| 1 | 2 |\n${last}`;
    const whole = streamed([`${text}\n`]);
    for (const size of [1, 2, 5, 100]) {
      assert.equal(streamed(cut(text, size)), whole, `${last}, pieces of ${size}`);
    }
  }
});
