/**
 * Renders streaming Markdown. A block is settled once it can no longer change; the last one is parsed again only after it has grown by a share of
 * its length, so the cost is linear even if the answer is one code block, list, table or line.
 */
import { visible } from "../src/safe";
import { type Block, blocksOf, itemsOf, parse, render, rowsOf, splitList } from "./markdown";

/** What to do with the page. */
export type Step =
  /** HTML after the settled part. */
  | { readonly op: "settle"; readonly html: string }
  /** HTML at the end of the list or table that is settled last. */
  | { readonly op: "grow"; readonly html: string }
  /** The HTML of what may still change. */
  | { readonly op: "tail"; readonly html: string }
  /** Plain text at the end of that, until it is parsed. */
  | { readonly op: "text"; readonly text: string };

/** A tail up to this long is parsed at every line, and within a line after `SHORT_STEP` characters. */
const SHORT = 800;
const SHORT_STEP = 40;
/** A line that begins an item, whatever follows; and one that may still become the beginning of one. */
const ITEM = /^ {0,3}([-*+]|\d{1,9}[.)]) +[^\s*_+-]/;
const MAY_BE_ITEM = /^\s*([-*+]\s*|\d{1,9}[.)]?\s*)?$/;
/** The beginning of a line after an empty one: it completes the text before. */
const NEW_BLOCK = /\n[ \t\r]*\n\S/;

type Mode =
  | { readonly kind: "blocks" }
  /** Inside an open code block; `close` matches the line that ends it. */
  | { readonly kind: "fence"; readonly close: RegExp; readonly marker: string }
  /** After a table with this head. */
  | { readonly kind: "table"; readonly head: string }
  /** After a list that the rest continues; `next` is the number of its first item there. */
  | { readonly kind: "list"; readonly type: string; readonly markup: string; next: number };

export class MarkdownStream {
  /** How many characters were parsed so far, counting repetitions. */
  parsed = 0;
  private mode: Mode = { kind: "blocks" };
  private rest = "";
  /** How much of the rest the page shows parsed. */
  private shown = 0;
  /** How much of the rest is on the page, parsed or not. */
  private written = 0;
  /** Where the last, unfinished line begins. */
  private line = 0;

  push(text: string): Step[] {
    const before = this.rest.length;
    this.rest += text;
    if (this.mode.kind === "fence") {
      return this.code(before);
    }
    this.line = this.rest.lastIndexOf("\n") + 1;
    if (this.mode.kind === "table") {
      return this.line > 0 ? this.rows() : [];
    }
    return this.isDue() ? this.blocks() : this.more();
  }

  /** Nothing follows: all of it is settled. */
  end(): Step[] {
    if (this.rest === "") {
      return [];
    }
    if (this.mode.kind === "table") {
      this.rest = this.rest.replace(/\n?$/, "\n"); // a finished line: a row, or the beginning of something else
      this.line = this.rest.length;
      const steps = this.rows();
      return [...steps, ...this.end()];
    }
    const steps = this.settle(this.parse(this.rest));
    this.rest = "";
    this.mode = { kind: "blocks" };
    return [...steps, { op: "tail", html: "" }];
  }

  private isDue(): boolean {
    const { length } = this.rest;
    const grown = length - this.shown;
    const hasNewLine = this.line >= this.shown && !this.mayBeItem();
    if (this.shown >= SHORT) {
      return grown >= this.shown || (hasNewLine && NEW_BLOCK.test(this.rest.slice(this.shown - 2)));
    }
    return this.shown === 0 || hasNewLine || grown >= Math.max(SHORT_STEP, this.shown / 8);
  }

  private mayBeItem(): boolean {
    return MAY_BE_ITEM.test(this.rest.slice(this.line));
  }

  /** What has arrived since, except text that may turn out to begin an item: that does not continue the line above. */
  private more(): Step[] {
    const text = this.rest.slice(this.written, this.line >= this.shown && this.mayBeItem() ? this.line : undefined);
    this.written += text.length;
    return text === "" ? [] : [{ op: "text", text: visible(text) }];
  }

  private blocks(): Step[] {
    const blocks = this.parse(this.rest);
    const done = blocks.slice(0, this.settledCount(blocks));
    const steps = this.settle(done);
    const [first, ...others] = blocks.slice(done.length);
    this.cut(first?.start ?? done.at(-1)?.end ?? 0);
    if (first === undefined) {
      return [...steps, { op: "tail", html: "" }];
    }
    return [...steps, ...(others.length === 0 ? this.open(first) : this.shownTail([first, ...others]))];
  }

  /** All blocks but the last one that begins on a finished line: later text can join that one, and the unfinished line can turn into anything. */
  private settledCount(blocks: readonly Block[]): number {
    const lines = this.certainLines();
    return Math.max(0, blocks.filter(({ start }) => start < lines).length - 1);
  }

  /** The finished lines, and the unfinished one where it is clear what it begins. */
  private certainLines(): number {
    return count(this.rest, "\n") + Number(ITEM.test(this.rest.slice(this.line)));
  }

  /** The last block, with which the rest begins: code, a table and a list settle in part. */
  private open(block: Block): Step[] {
    const { type, markup } = block;
    if (type === "fence" && this.line > 0) {
      const closes = new RegExp(`^ {0,3}${markup.charAt(0)}{${markup.length},}[ \\t\\r]*$`);
      const isOpen = !this.rest
        .slice(0, this.line)
        .trimEnd()
        .split("\n")
        .slice(1)
        .some((line) => closes.test(line));
      if (isOpen) {
        this.mode = { kind: "fence", close: closes, marker: markup.charAt(0) };
        const held = this.heldBack();
        const html = render(this.parse(this.rest.slice(0, this.rest.length - held)));
        this.shown = this.rest.length - held;
        return [{ op: "tail", html }];
      }
    }
    const lines = count(this.rest, "\n");
    if (type === "table_open" && lines > 2 && block.end - block.start >= lines) {
      const head = this.rest.split("\n", 2).join("\n");
      const steps = this.settle(this.parse(this.rest.slice(0, this.line)));
      this.cut(lines);
      this.mode = { kind: "table", head };
      return [...steps, { op: "tail", html: "" }];
    }
    if (type === "bullet_list_open" || type === "ordered_list_open") {
      return this.items(block);
    }
    return this.shownTail([block]);
  }

  /** The list's items but the last are settled. */
  private items(block: Block): Step[] {
    const lines = this.certainLines();
    const starts = itemsOf(block).map((start) => start - block.start);
    const last = starts.filter((start) => start < lines).length - 1;
    if (last < 1) {
      return this.shownTail([block]);
    }
    const [done, open] = splitList(block, last);
    const first = this.continued(block) ?? block.first;
    const steps = this.settle([done]);
    this.mode = { kind: "list", type: block.type, markup: block.markup, next: first + last };
    this.cut(starts[last] ?? 0);
    return [...steps, ...this.shownTail([open])];
  }

  /** The number of the block's first item, if it continues the list that was settled last. */
  private continued(block: Block | undefined): number | undefined {
    const { mode } = this;
    return mode.kind === "list" && mode.type === block?.type && mode.markup === block.markup ? mode.next : undefined;
  }

  /** Renders blocks after the settled part; the first may continue the list there. */
  private settle(blocks: readonly Block[]): Step[] {
    const [first, ...others] = blocks;
    if (first === undefined) {
      return [];
    }
    const steps: Step[] = [];
    if (this.continued(first) !== undefined) {
      steps.push({ op: "grow", html: render([{ ...first, tokens: first.tokens.slice(1, -1) }]) });
    } else {
      others.unshift(first);
    }
    if (others.length > 0) {
      this.mode = { kind: "blocks" };
      steps.push({ op: "settle", html: render(others) });
    }
    return steps;
  }

  private shownTail(blocks: readonly Block[]): Step[] {
    this.shown = this.rest.length;
    const last = blocks.at(-1)?.tokens.findLast(({ nesting }) => nesting === 0);
    this.written = last?.type === "inline" ? this.rest.trimEnd().length : this.shown; // words are shown without the space after them
    const [first] = blocks;
    return [{ op: "tail", html: render(blocks, this.continued(first)) }];
  }

  /** More of an open code block. */
  private code(from: number): Step[] {
    const mode = this.mode as Extract<Mode, { kind: "fence" }>;
    for (let line = this.line, end = this.rest.indexOf("\n", Math.max(line, from)); end >= 0; end = this.rest.indexOf("\n", line)) {
      if (line > 0 && mode.close.test(this.rest.slice(line, end))) {
        return this.closeCode(end + 1);
      }
      line = end + 1;
      this.line = line;
    }
    const text = this.rest.slice(this.shown, this.rest.length - this.heldBack());
    this.shown += text.length;
    return text === "" ? [] : [{ op: "text", text: visible(text) }];
  }

  private closeCode(end: number): Step[] {
    const rest = this.rest.slice(end);
    const steps = this.settle(this.parse(this.rest.slice(0, end)));
    this.mode = { kind: "blocks" };
    this.rest = "";
    this.shown = 0;
    return [...steps, { op: "tail", html: "" }, ...(rest === "" ? [] : this.push(rest))];
  }

  /** The unfinished line may turn out to be the end of the code. */
  private heldBack(): number {
    const line = this.rest.slice(this.line);
    const mayClose = this.mode.kind === "fence" && new RegExp(`^ {0,3}[${this.mode.marker}]*[ \\t\\r]*$`).test(line);
    return mayClose ? line.length : 0;
  }

  /** More rows of a table, a line at a time. */
  private rows(): Step[] {
    const { head } = this.mode as Extract<Mode, { kind: "table" }>;
    const lines = this.rest.slice(0, this.line);
    const [table] = this.parse(`${head}\n${lines}`);
    const own = (table?.end ?? 2) - 2;
    const steps: Step[] = own > 0 && table ? [{ op: "grow", html: render([{ ...table, tokens: rowsOf(table) }]) }] : [];
    this.cut(own);
    if (own < count(lines, "\n")) {
      this.mode = { kind: "blocks" };
      steps.push(...(this.rest === "" ? [] : this.blocks()));
    }
    return steps;
  }

  private cut(lines: number): void {
    this.rest = this.rest.split("\n").slice(lines).join("\n");
    this.line = this.rest.lastIndexOf("\n") + 1;
    this.shown = 0;
  }

  private parse(text: string): Block[] {
    this.parsed += text.length;
    return blocksOf(parse(visible(text)));
  }
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}
