// Checks that the chat is legible in every state the checks take pictures of: each in every width and every theme, one of these in each width. The picture's
// name decides which, so that an element in many pictures is seen in all pairs. The chat's frame gets the width and the theme's styles directly, so that
// nothing has to be dragged or chosen.
import assert from "node:assert/strict";
import { join } from "node:path";
import { THEMES } from "./workbench.mjs";

const WIDTHS_PX = [220, 320, 420];
const CONTRAST = 4.5;
/** A word of at most this many letters always fits on a line. */
const SHORT = 16;

export class Legibility {
  #themes;
  #findings = new Map();
  #pictures = 0;
  #states = 0;
  #tookMs = 0;

  /** Done before the checks, because choosing a theme takes the keyboard focus away. */
  static async start(bench, options) {
    const legibility = new Legibility(bench, options);
    legibility.#themes = await legibility.#collect();
    return legibility;
  }

  constructor(bench, { out, keepPictures }) {
    this.bench = bench;
    this.out = out;
    this.keepPictures = keepPictures;
  }

  async look(name) {
    this.#pictures++;
    const { chat } = this.bench;
    const outer = this.bench.page.locator('iframe.webview.ready[src*="extensionId=tandem.tandem"]');
    if (!(await outer.isVisible())) {
      return; // the focus is on something else
    }
    this.#states++;
    const began = performance.now();
    const frame = outer.contentFrame().locator("iframe#active-frame");
    const body = chat.locator("body");
    const before = await body.evaluate(themeOf);
    const whole = await frame.evaluate(({ style }) => style.width);
    const themes = Object.entries(this.#themes);
    const first = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
    for (const [index, width] of WIDTHS_PX.entries()) {
      await frame.evaluate((element, px) => (element.style.width = `${px}px`), width);
      await this.bench.drawn();
      const one = (first + index) % themes.length;
      for (const [theme, given] of this.keepPictures ? themes : [themes[one]]) {
        await body.evaluate(wear, given);
        const found = await body.evaluate(illegible, { CONTRAST, SHORT });
        found.forEach((text) => this.#found(text, `${name} ${width} ${theme}`));
        if (this.keepPictures) {
          const { x, y, height } = await outer.boundingBox();
          await this.bench.page.screenshot({ path: join(this.out, `legible-${name}-${width}-${theme}.png`), clip: { x, y, width, height } });
        }
      }
    }
    await frame.evaluate((element, width) => (element.style.width = width), whole);
    await body.evaluate(wear, before);
    this.#tookMs += performance.now() - began;
  }

  /** Fails, listing what was illegible and where. */
  report() {
    console.log(`# ${this.#states} states in ${WIDTHS_PX.length} widths and ${Object.keys(THEMES).length} themes took ${(this.#tookMs / 1000).toFixed(1)} s`);
    const lines = [...this.#findings].map(([text, where]) => `${text}  [${where.size}: ${[...where].slice(0, 4).join(", ")}]`);
    assert.equal(lines.length, 0, `${lines.length} findings\n${lines.join("\n")}`);
    assert.ok(this.#states > this.#pictures / 2, `${this.#states} of ${this.#pictures} pictures show the chat`);
  }

  #found(text, where) {
    this.#findings.set(text, (this.#findings.get(text) ?? new Set()).add(where));
  }

  /** The styles a page receives in each theme; the last theme stays. */
  async #collect() {
    const themes = {};
    for (const name of Object.keys(THEMES)) {
      await this.bench.theme(name);
      themes[name.replaceAll(" ", "-")] = await this.bench.chat.locator("body").evaluate(themeOf);
    }
    return themes;
  }
}

/** Runs in the browser, like the functions below. */
function themeOf(body) {
  return { style: document.documentElement.style.cssText, className: body.className, kind: body.dataset.vscodeThemeKind };
}

function wear(body, { style, className, kind }) {
  document.documentElement.style.cssText = style; // the attribute is forbidden
  document.documentElement.style.background = "var(--vscode-sideBar-background)"; // otherwise the window's own theme is behind it
  body.className = className;
  body.dataset.vscodeThemeKind = kind;
}

function illegible(body, { CONTRAST, SHORT }) {
  const found = new Set();
  const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const styleOf = new Map();
  const style = (element) => styleOf.get(element) ?? styleOf.set(element, getComputedStyle(element)).get(element);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    const isSeen = element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
    if (node.data.trim() === "" || !isSeen || element.closest(".hidden-text, style, script, option, textarea, svg")) {
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(({ width }) => width > 0);
    const where = `${kindOf(element)} “${node.data.trim().slice(0, 40)}”`;
    cutOff(element, boxes, where);
    covered(element, boxes, where);
    broken(element, node, where);
    contrast(element, style(element).color, where);
  }
  for (const field of body.querySelectorAll("select, textarea, input")) {
    if (field.checkVisibility({ opacityProperty: true })) {
      contrast(field, style(field).color, kindOf(field));
      field.localName === "select" && chosen(field);
      field.placeholder && contrast(field, getComputedStyle(field, "::placeholder").color, `placeholder of ${kindOf(field)}`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    found.add(`the page is ${document.documentElement.scrollWidth} px wide`);
  }
  return [...found];

  function kindOf(element) {
    return [element.closest("[class]")?.parentElement?.className, element.closest("[class]")?.className, element.localName].join(" > ");
  }

  /** Text ends where its box ends, unless it can be scrolled or a tooltip shows the rest. */
  function cutOff(element, boxes, where) {
    const right = Math.max(...boxes.map((box) => box.right));
    const left = Math.min(...boxes.map((box) => box.left));
    for (let box = element; box !== document.documentElement; box = box.parentElement) {
      const { overflowX, textOverflow } = style(box);
      const { left: first, right: last } = box.getBoundingClientRect();
      if (overflowX === "visible" || (right <= last + 1 && left >= first - 1)) {
        continue;
      }
      const canScroll = ["auto", "scroll"].includes(overflowX) || box.matches(".diff, .output, .code pre, .table, .tabs");
      const isLabel = box.closest("button, summary, label") !== null && box.closest("[role=tab], .option, .link") === null;
      const isTold = textOverflow === "ellipsis" && !isLabel && (box.closest("[title]") !== null || box.closest(".option") !== null);
      if (!canScroll && !isTold) {
        found.add(`cut off by ${Math.round(right - last)} px: ${where}`);
      }
      return;
    }
    if (right > innerWidth + 1 || left < -1) {
      found.add(`beyond the edge by ${Math.round(right - innerWidth)} px: ${where}`);
    }
  }

  /** The selected option is legible, or the list's tooltip shows it. */
  function chosen(select) {
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    context.font = style(select).font;
    const text = select.selectedOptions[0]?.textContent ?? "";
    const arrow = 20;
    if (context.measureText(text).width > select.clientWidth - arrow && !select.title.includes(text)) {
      found.add(`cut off: ${kindOf(select)} “${text}”`);
    }
  }

  /** The visible part of a box: surrounding boxes may clip it. */
  function seen(element, box) {
    let { left, right, top, bottom } = box;
    for (let outer = element; outer !== null; outer = outer.parentElement) {
      if (style(outer).overflowY !== "visible") {
        const clip = outer.getBoundingClientRect();
        [left, right, top, bottom] = [Math.max(left, clip.left), Math.min(right, clip.right), Math.max(top, clip.top), Math.min(bottom, clip.bottom)];
      }
    }
    return { x: (left + right) / 2, y: (top + bottom) / 2, isSeen: right - left > 2 && bottom - top > 2 };
  }

  function covered(element, [box], where) {
    const { x, y, isSeen } = box === undefined ? {} : seen(element, box);
    const over = isSeen && document.elementFromPoint(x, y);
    if (over && !over.contains(element) && !element.contains(over) && over.closest(".suggestions, .jump, .asking .tool-head, .below .tool-body") === null) {
      found.add(`covered by ${kindOf(over)}: ${where}`);
    }
  }

  /** A word stays on one line if it fits: where it is alone, and where it is short. */
  function broken(element, node, where) {
    if (element.closest("code, pre, .diff, .output, .facts, .file, .job, math")) {
      return; // there, text wraps at any character
    }
    let block = element;
    while (style(block).display.startsWith("inline")) {
      block = block.parentElement;
    }
    const { paddingLeft, paddingRight } = style(block);
    const room = block.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const lines = (from, text) => {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, from + text.length);
      const boxes = [...range.getClientRects()];
      return { count: new Set(boxes.map(({ bottom }) => Math.round(bottom))).size, width: boxes.reduce((sum, { width }) => sum + width, 0) };
    };
    for (const { 0: token, index } of node.data.matchAll(/\S+/g)) {
      const fits = lines(index, token).width <= room;
      for (const { 0: word, index: at } of token.matchAll(/[\p{L}\p{M}\d]+/gu)) {
        const isShort = word === token && word.length <= SHORT;
        if ((fits || isShort) && lines(index + at, word).count > 1) {
          found.add(`“${word}” is in several lines: ${where}`);
        }
      }
    }
  }

  function contrast(element, color, where) {
    if (element.closest(":disabled, [aria-disabled=true]")) {
      return;
    }
    const chain = [];
    for (let one = element; one !== null; one = one.parentElement) {
      chain.unshift(one);
    }
    const [behind, text] = painted(chain, rgba(color), [0, 0, 0]);
    const [light, dark] = [luminance(behind), luminance(text)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < CONTRAST) {
      found.add(`contrast ${ratio.toFixed(1)}: ${where}`);
    }
  }

  /** The colors of text and its background, as on the screen. */
  function painted([element, ...inner], color, behind) {
    if (element === undefined) {
      return [behind, over(color, behind)];
    }
    const { backgroundColor, opacity } = style(element);
    const seen = painted(inner, color, over(rgba(backgroundColor), behind));
    return seen.map((one) => over([...one.slice(0, 3), Number(opacity)], behind));
  }

  function over([red, green, blue, alpha = 1], behind) {
    return [red, green, blue].map((part, index) => part * alpha + behind[index] * (1 - alpha));
  }

  function rgba(text) {
    const canvas = (rgba.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }));
    rgba.known ??= new Map();
    if (!rgba.known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      rgba.known.set(text, [red, green, blue, alpha / 255]);
    }
    return rgba.known.get(text);
  }

  function luminance(color) {
    const [red, green, blue] = color.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
}
