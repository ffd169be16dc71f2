/**
 * Markdown that arrives in pieces. What can no longer change is rendered once and kept; only the last block is rendered again, so the cost of a
 * piece does not grow with the answer. The HTML it makes holds no markup of the model's, no image, no address that is loaded or followed by itself.
 */
import MarkdownIt, { type Token } from "markdown-it";
import { visible } from "../src/safe";

/** HTML to append to what is settled, and the HTML of the block that may still grow. */
export interface Rendered {
  readonly settled: string;
  readonly tail: string;
}

export class MarkdownStream {
  private readonly env = {};
  private rest = "";

  push(text: string): Rendered {
    this.rest += text;
    const tokens = markdown.parse(visible(this.rest), this.env);
    const blocks = topLevelBlocks(tokens);
    const settled = blocks.slice(0, this.settledCount(blocks));
    const from = settled.at(-1)?.end ?? 0;
    this.rest = this.rest.split("\n").slice(from).join("\n");
    return { settled: this.render(settled), tail: this.render(blocks.slice(settled.length)) };
  }

  /** All blocks but the last one that begins on a finished line: later text can join that one, and the unfinished line can turn into anything. */
  private settledCount(blocks: readonly Block[]): number {
    const finishedLines = this.rest.split("\n").length - 1;
    return Math.max(0, blocks.filter(({ start }) => start < finishedLines).length - 1);
  }

  private render(blocks: readonly Block[]): string {
    const tokens = blocks.flatMap((block) => block.tokens);
    return markdown.renderer.render(tokens, markdown.options, this.env);
  }
}

interface Block {
  readonly tokens: Token[];
  readonly start: number;
  readonly end: number;
}

function topLevelBlocks(tokens: readonly Token[]): Block[] {
  const blocks: Block[] = [];
  for (const token of tokens) {
    const opens = token.level === 0 && token.nesting >= 0;
    if (opens) {
      const [start, end] = token.map ?? [0, 0];
      blocks.push({ tokens: [token], start, end });
    } else {
      blocks.at(-1)?.tokens.push(token);
    }
  }
  return blocks;
}

const markdown = new MarkdownIt({ html: false, linkify: false });
const escape = markdown.utils.escapeHtml;

/** `http`, `https`, `file` and paths; no other scheme, and no path that names another machine. */
markdown.validateLink = (address) => /^(https?|file):/i.test(address) || !/^([a-z][a-z0-9+.-]*:|\/\/|\\\\)/i.test(address.trim());

Object.assign(markdown.renderer.rules, {
  link_open: (tokens: Token[], index: number) => link(attribute(tokens[index], "href")),
  image: (tokens: Token[], index: number) => `${link(attribute(tokens[index], "src"))}${escape(tokens[index]?.content ?? "")}</a>`,
  fence: (tokens: Token[], index: number) => codeBlock(tokens[index]?.content ?? "", tokens[index]?.info ?? ""),
  code_block: (tokens: Token[], index: number) => codeBlock(tokens[index]?.content ?? "", ""),
  table_open: () => `<div class="table"><table>`,
  table_close: () => `</table></div>`,
  th_open: (tokens: Token[], index: number) => cell("th", tokens[index]),
  td_open: (tokens: Token[], index: number) => cell("td", tokens[index]),
});

/** Not an `href`: the extension is told of the click and decides. */
function link(address: string): string {
  return `<a role="link" tabindex="0" data-href="${escape(address)}" title="${escape(address)}">`;
}

function codeBlock(code: string, info: string): string {
  const language = escape(info.trim().split(/\s/)[0] ?? "");
  const bar = `<div class="code-bar"><span>${language}</span><button type="button" data-copy>Copy</button></div>`;
  return `<div class="code">${bar}<pre tabindex="0"><code>${escape(code)}</code></pre></div>`;
}

/** The content policy forbids style attributes, which is how columns are aligned otherwise. */
function cell(tag: "th" | "td", token: Token | undefined): string {
  const alignment = /text-align:(\w+)/.exec(attribute(token, "style"))?.[1];
  return alignment === undefined ? `<${tag}>` : `<${tag} class="${alignment}">`;
}

function attribute(token: Token | undefined, name: string): string {
  return String(token?.attrGet(name) ?? "");
}
