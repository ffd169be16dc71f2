/**
 * Renders Markdown. The HTML contains no markup of the model's, no images, and no address that is loaded or followed automatically.
 */
import MarkdownIt, { type Token } from "markdown-it";
import { visible } from "../src/safe";
import { linkWords } from "./references";
import { useFormulas } from "./tex";
import { t } from "./words";

/** A block of the top level. */
export interface Block {
  readonly type: string;
  readonly markup: string;
  readonly tokens: readonly Token[];
  /** Its first line, and the line after its last. */
  readonly start: number;
  readonly end: number;
  /** The number of an ordered list's first item. */
  readonly first: number;
}

/** Link definitions apply to the rest of an answer, as long as the rest is short enough to be parsed at once. */
const environment = () => ({});

export function parse(text: string): Token[] {
  return markdown.parse(text, environment());
}

export function blocksOf(tokens: readonly Token[]): Block[] {
  const blocks: (Block & { tokens: Token[] })[] = [];
  for (const token of tokens) {
    if (token.level === 0 && token.nesting >= 0) {
      const [start, end] = token.map ?? [0, 0];
      const first = Number(token.attrGet("start") ?? 1);
      blocks.push({ type: token.type, markup: token.markup, tokens: [token], start, end, first });
    } else {
      blocks.at(-1)?.tokens.push(token);
    }
  }
  return blocks;
}

/** Where the items of a list begin. */
export function itemsOf({ tokens }: Block): number[] {
  return tokens.filter(({ type, level }) => type === "list_item_open" && level === 1).map(({ map }) => map?.[0] ?? 0);
}

/** A list in two: its first items, and the others. */
export function splitList(list: Block, count: number): [Block, Block] {
  const begins = list.tokens.flatMap(({ type, level }, index) => (type === "list_item_open" && level === 1 ? [index] : []));
  const [open, close] = [list.tokens[0], list.tokens.at(-1)] as [Token, Token];
  const inner = list.tokens.slice(1, -1);
  const at = (begins[count] ?? inner.length) - 1;
  const half = (tokens: Token[]): Block => ({ ...list, tokens: [copy(open), ...tokens, close] });
  return [half(inner.slice(0, at)), half(inner.slice(at))];
}

function copy(token: Token): Token {
  return Object.assign(Object.create(Object.getPrototypeOf(token)), token, { attrs: token.attrs?.map((pair) => [...pair]) ?? null });
}

/** The rows of a table's body. */
export function rowsOf({ tokens }: Block): Token[] {
  const from = tokens.findIndex(({ type }) => type === "tbody_open");
  const to = tokens.findIndex(({ type }) => type === "tbody_close");
  return from < 0 ? [] : tokens.slice(from + 1, to);
}

/** With `number` a list that begins the blocks counts from there. */
export function render(blocks: readonly Block[], number?: number): string {
  const tokens = blocks.flatMap((block) => block.tokens);
  if (number !== undefined && tokens[0]?.type === "ordered_list_open") {
    tokens[0].attrSet("start", String(number));
  }
  return markdown.renderer.render(tokens, markdown.options, {});
}

const markdown = new MarkdownIt({ html: false, linkify: true });
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
useFormulas(markdown);
const escape = markdown.utils.escapeHtml;

/** `http`, `https`, `file` and paths; no other scheme, and no path that names another machine. */
markdown.validateLink = (address) =>
  /^(https?|file):/i.test(address) || !/^([a-z][a-z0-9+.-]*:(?!\d+(:\d+)?$)|\/\/|\\\\)/i.test(address.trim());

/** Of HTML, only what breaks lines or names what can be folded: that is shown unfolded. */
markdown.inline.ruler.before("html_inline", "tags", (state, silent) => {
  const [tag, end, name] = /^<(\/?)(br|details|summary)(?: open| ?\/)?>/i.exec(state.src.slice(state.pos, state.pos + 16)) ?? [];
  if (tag === undefined) {
    return false;
  }
  if (!silent && name?.toLowerCase() === "br") {
    state.push("hardbreak", "br", 0);
  } else if (!silent && name?.toLowerCase() === "summary") {
    state.push(end ? "strong_close" : "strong_open", "strong", end ? -1 : 1);
  }
  state.pos += tag.length;
  return true;
});

/** Tight and loose lists look the same, so that later text does not change items above. */
markdown.core.ruler.push("loose", ({ tokens }) => {
  for (const token of tokens) {
    token.hidden &&= !token.type.startsWith("paragraph_");
  }
});

markdown.core.ruler.push("references", ({ tokens, Token }) => {
  for (const token of tokens) {
    if (token.type === "inline" && token.children) {
      token.children = linkWords(token.children, Token);
    }
  }
});

const task = /^\[([ xX])\]\s+/;
markdown.core.ruler.push("tasks", ({ tokens }) => {
  tokens.forEach((token, index) => {
    const [text] = token.children ?? [];
    const found = tokens[index - 2]?.type === "list_item_open" && text?.type === "text" ? task.exec(text.content) : null;
    if (found !== null && text !== undefined) {
      text.content = text.content.slice(found[0].length);
      text.meta = { task: found[1] === " " ? "todo" : "done" };
      tokens[index - 2]?.attrSet("class", "task");
    }
  });
});

Object.assign(markdown.renderer.rules, {
  text: (tokens: Token[], index: number) => taskBox(tokens[index]) + escape(visible(tokens[index]?.content ?? "")),
  code_inline: (tokens: Token[], index: number) => inlineCode(tokens[index]),
  link_open: (tokens: Token[], index: number) => {
    const file = attribute(tokens[index], "data-file");
    return file === "" ? link(attribute(tokens[index], "href")) : `<a data-file="${escape(file)}">`;
  },
  image: (tokens: Token[], index: number) => `${link(attribute(tokens[index], "src"))}${escape(tokens[index]?.content ?? "")}</a>`,
  fence: (tokens: Token[], index: number) => codeBlock(tokens[index]?.content ?? "", tokens[index]?.info ?? ""),
  code_block: (tokens: Token[], index: number) => codeBlock(tokens[index]?.content ?? "", ""),
  table_open: () => `<div class="table" tabindex="0"><table>`,
  table_close: () => `</table></div>`,
  th_open: (tokens: Token[], index: number) => cell("th", tokens[index]),
  td_open: (tokens: Token[], index: number) => cell("td", tokens[index]),
});

function taskBox(token: Token | undefined): string {
  const state = (token?.meta as { task?: string } | null)?.task;
  return state === undefined ? "" : `<span class="box" role="img" aria-label="${state}">${state === "done" ? "☑" : "☐"}</span> `;
}

/** A symbol is looked up when clicked. It is not focusable, because most names in code style are no definitions. */
function inlineCode(token: Token | undefined): string {
  const symbol = (token?.meta as { symbol?: string } | null)?.symbol;
  const attributes = symbol === undefined ? "" : ` data-href="symbol:${escape(symbol)}" title="${escape(t("Go to the definition"))}"`;
  return `<code${attributes}>${escape(token?.content ?? "")}</code>`;
}

/** Not an `href`: the extension receives the click and decides. */
function link(address: string): string {
  return `<a role="link" tabindex="0" data-href="${escape(address)}" title="${escape(address)}">`;
}

/** Blocks in these languages can run in a terminal. */
const SHELLS = new Set(["sh", "bash", "zsh", "fish", "shell", "console", "powershell", "pwsh", "ps1", "cmd", "bat"]);
const names: Record<string, string> = {
  copy: t("Copy"),
  insert: t("Insert"),
  apply: t("Apply to File"),
  run: t("Run in Terminal"),
  diagram: t("Show Diagram"),
};

/** Lines per box: long blocks are laid out and painted box by box. */
const LINES = 50;

function codeBlock(code: string, info: string): string {
  const language = escape(info.trim().split(/\s/)[0] ?? "");
  const name = language.toLowerCase();
  const actions = ["copy", "insert", SHELLS.has(name) ? "run" : name === "mermaid" ? "diagram" : "apply"];
  const buttons = actions.map((action) => `<button type="button" data-code="${action}">${escape(names[action] ?? "")}</button>`).join("");
  const bar = `<div class="code-bar"><span class="language">${language}</span><span class="code-actions">${buttons}</span></div>`;
  return `<div class="code" data-language="${language}">${bar}<pre tabindex="0"><code>${boxes(escape(code))}</code></pre></div>`;
}

/** Markup of code, whose elements end with their line, in boxes of some lines each. */
export function boxes(markup: string): string {
  const lines = markup.split(/(?<=\n)/);
  const parts = Array.from({ length: Math.ceil(lines.length / LINES) }, (_, index) => lines.slice(index * LINES, (index + 1) * LINES));
  return parts.map((part) => `<span class="lines">${part.join("")}</span>`).join("");
}

/** The content policy forbids style attributes, which is how columns are aligned otherwise. */
function cell(tag: "th" | "td", token: Token | undefined): string {
  const alignment = /text-align:(\w+)/.exec(attribute(token, "style"))?.[1];
  return alignment === undefined ? `<${tag}>` : `<${tag} class="${alignment}">`;
}

function attribute(token: Token | undefined, name: string): string {
  return String(token?.attrGet(name) ?? "");
}
