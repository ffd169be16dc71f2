// What an answer looks like while it streams, judged by the positions of its letters on the screen.
import assert from "node:assert/strict";

/** As with most models, most words are two tokens, and a line break is in one token with the word before it. */
const TOKEN = /[^\n]{1,4}\n*/g;
/** After this many tokens, the model waits until the chat has been checked. */
const TOKENS = 7;

const PROSE = `Stalling is what a server does that neither answers nor hangs up, and a conversation that waits for it looks as if it had ended. So every request has a limit.

The second paragraph begins in a line of its own.
This sentence is still of it, although the model wrote it in a line of its own, and it goes on for so long that it takes up several lines on every screen there is.

### What there is to know

- An item of a list, which is long enough to go on in the line below and in the one below that, whichever the font.
- Another item.
- 3 of them are enough.

> Somebody said this, and meant it, and it is so much that it does not fit into a line.

1. First there is a number.
2. Then there is another one, with a longer text behind it than the first one had, which is therefore broken.

${"A long paragraph is parsed less often than a short one, because nothing of it may change any more. ".repeat(14).trim()}

`;
/** In a separate piece: the following words are in another font. */
const CODE = "`code`";
const END = " in a line has a font of its own, and this is the end of the prose.";

/** The checks, in order, each a name and a function. */
export function streamChecks({ bench, model, picture }) {
  const { chat } = bench;
  const streaming = chat.locator(".answer.streaming");

  async function asFinished() {
    await model.reset();
    await bench.newSession();
    const body = chat.locator("body");
    const pieces = [...cut(PROSE), [CODE], ...cut(END)];
    await model.script(pieces.flatMap((tokens, index) => [...tokens.map((text) => ({ text })), { gate: `piece-${index}` }]));
    await body.evaluate(record, linesOnScreen.toString());
    await bench.say("Say a lot.");
    let text = "";
    for (const [index, tokens] of pieces.entries()) {
      text += tokens.join("");
      await body.evaluate(({ seen }, count) => seen(count), lettersOf(text));
      if (text === PROSE) {
        await picture("streaming");
      } else if (tokens[0] === CODE) {
        await streaming.locator("code").waitFor();
      }
      await model.open(`piece-${index}`);
    }
    await bench.idle();
    const samples = await body.evaluate(stopped);
    const { seen, wrong } = await chat.locator(".answer").last().evaluate(compared, { samples, measure: linesOnScreen.toString() });
    assert.ok(seen > pieces.length / 2, `${seen} of ${samples.length} looks at ${pieces.length} pieces were compared`);
    assert.deepEqual(wrong.slice(0, 3), [], `${wrong.length} of ${seen} times it looked unlike the finished text`);
  }

  /** The marks of VS Code's find widget, which a view does not have, would give each element two more styles: a third of the time of a burst. */
  async function noFindMarks() {
    const rules = await chat.locator("body").evaluate(() => [...document.styleSheets].flatMap(({ cssRules }) => [...cssRules].map(({ cssText }) => cssText)));
    assert.match(rules.join("\n"), /@layer vscode-default/, "VS Code's own style");
    assert.doesNotMatch(rules.join("\n"), /::highlight/);
  }

  return [
    ["text that streams stands in the same lines as the finished text", asFinished],
    ["elements of the chat have no styles for marks that it does not have", noFindMarks],
  ];
}

/** Pieces of a few tokens each. */
function cut(text) {
  const tokens = text.match(TOKEN);
  return Array.from({ length: Math.ceil(tokens.length / TOKENS) }, (_, index) => tokens.slice(index * TOKENS, (index + 1) * TOKENS));
}

/** The minimum number of letters on the screen: without markup, and without what may begin a list item. */
function lettersOf(text) {
  return text.replace(/^ *(?:[#>*-]+|\d+\.?)(?: +|$)/gm, "").replace(/[\s`]/g, "").length;
}

/** Runs in the browser: the text of each line and where it ends, by the boxes of its words, or of the letters if a word spans lines. */
function linesOnScreen(element) {
  const lines = [];
  const range = document.createRange();
  const boxesOf = (node, { 0: text, index }) => {
    range.setStart(node, index);
    range.setEnd(node, index + text.length);
    return [...range.getClientRects()];
  };
  const add = (text, box) => {
    const last = lines.at(-1);
    if (last !== undefined && box.top < last.bottom && box.left > last.right - 1) {
      const space = box.left > last.right + 1 ? " " : "";
      lines[lines.length - 1] = { text: last.text + space + text, bottom: Math.max(last.bottom, box.bottom), right: box.right };
    } else {
      lines.push({ text, bottom: box.bottom, right: box.right });
    }
  };
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    for (const word of node.data.matchAll(/\S+/g)) {
      const boxes = boxesOf(node, word);
      if (boxes.length === 1) {
        add(word[0], boxes[0]);
        continue;
      }
      for (const letter of word[0].matchAll(/./gu)) {
        add(letter[0], boxesOf(node, { 0: letter[0], index: word.index + letter.index })[0]);
      }
    }
  }
  return lines.map(({ text, right }) => ({ text, right: Math.round(right) }));
}

/** Runs in the browser: inspects the answer in each frame until `stopped` is called. `seen` waits until it has that many letters. */
function record(body, measure) {
  const look = new Function("element", `return (${measure})(element)`);
  body.samples = [];
  let before = "";
  let met = () => undefined;
  body.seen = (count) =>
    new Promise((resolve, reject) => {
      const letters = () => before.replace(/\s/g, "").length;
      const timer = setTimeout(() => reject(new Error(`${letters()} of ${count} letters, at the end ${before.slice(-40)}`)), 60_000);
      met = () => letters() >= count && resolve(clearTimeout(timer));
      met();
    });
  const frame = () => {
    const text = body.querySelector(".answer.streaming .markdown");
    if (text !== null && text.textContent !== before) {
      before = text.textContent;
      body.samples.push(look(text));
      met();
    }
    body.frame = requestAnimationFrame(frame);
  };
  frame();
}

function stopped(body) {
  cancelAnimationFrame(body.frame);
  return body.samples;
}

/**
 * Runs in the browser: the samples that differ from the finished answer up to that point, and how many were compared. Samples with
 * unfinished markup are skipped.
 */
function compared(answer, { samples, measure }) {
  const look = new Function("element", `return (${measure})(element)`);
  const markdown = answer.querySelector(".markdown");
  const whole = [...markdown.childNodes].map((node) => node.cloneNode(true));
  const all = letters(markdown.textContent);
  const rendered = samples.map((lines) => ({ lines, text: letters(lines.map((line) => line.text).join("")) })).filter(({ text }) => all.startsWith(text));
  const wrong = rendered.flatMap(({ lines, text }) => {
    markdown.replaceChildren(...whole.map((node) => node.cloneNode(true)));
    cut(markdown, text.length);
    const finished = look(markdown);
    return JSON.stringify(finished) === JSON.stringify(lines) ? [] : [{ streaming: lines.slice(-3), finished: finished.slice(-3) }];
  });
  markdown.replaceChildren(...whole);
  return { seen: rendered.length, wrong };

  function letters(text) {
    return text.replace(/\s/g, "");
  }

  /** Keeps this many letters. */
  function cut(element, count) {
    let left = count;
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const end = [...node.data].findIndex((letter) => /\S/.test(letter) && left-- <= 0);
      node.data = end < 0 ? node.data : node.data.slice(0, end);
    }
  }
}
