/** An answer, or folded reasoning: streaming Markdown. */
import type { TextItem } from "../src/messages";
import { finishCode } from "./code";
import { h } from "./dom";
import { finishFiles } from "./files";
import { finishFormulas } from "./formulas";
import { icon } from "./icons";
import { iconButton, type ItemView, type Send } from "./items";
import { MarkdownStream, type Step } from "./stream";
import { t } from "./words";

/** Blocks per box: the browser skips boxes that are off screen. */
const BLOCKS = 24;
/** Where text continues inside the open block: elements that hold blocks or lines, never a link, an emphasis or code in a line. */
const HOLDERS = "p, li, ul, ol, blockquote, h1, h2, h3, h4, h5, h6, div, pre, pre > code, .lines";
/** A growing text is cut into boxes, of which only the last is laid out again. */
const BOX_CHARACTERS = 2000;

export class TextView implements ItemView {
  readonly element: HTMLElement;
  private readonly settled = h("div", { class: "contents" });
  private readonly tail = h("div", { class: "tail" });
  private readonly title: HTMLElement | undefined;
  private readonly actions = h("div", { class: "actions" });
  private stream = new MarkdownStream();
  private text = "";
  private done = false;

  constructor(item: TextItem, send: Send) {
    const body = h("div", { class: "markdown" }, this.settled, this.tail);
    if (item.kind === "thought") {
      this.title = h("span");
      this.element = h("details", { class: "thought" }, h("summary", {}, icon("chevron", "chevron"), this.title), body);
    } else {
      this.element = h("article", { class: "answer", "aria-label": "tandem" }, body, this.actions);
      this.actions.append(iconButton("copy", t("Copy answer"), () => send({ type: "copy", text: this.text })));
    }
    this.put(item);
  }

  put({ text, done }: TextItem): void {
    if (!text.startsWith(this.text) || (this.done && text !== this.text)) {
      this.stream = new MarkdownStream();
      this.settled.replaceChildren();
      this.tail.replaceChildren();
      this.text = "";
      this.done = false;
    }
    this.append(text.slice(this.text.length));
    if (done && !this.done) {
      this.done = true;
      this.stream.end().forEach((step) => this.draw(step));
    }
    this.element.classList.toggle("streaming", !done);
    this.actions.hidden = !done;
    this.title?.replaceChildren(done ? t("Thought") : t("Thinking…"));
  }

  append(text: string): void {
    if (text !== "") {
      this.text += text;
      this.stream.push(text).forEach((step) => this.draw(step));
    }
  }

  private draw(step: Step): void {
    switch (step.op) {
      case "settle":
        return this.settle(step.html);
      case "grow":
        return grow(open(this.settled.lastElementChild?.lastElementChild), step.html);
      case "tail":
        this.tail.innerHTML = step.html;
        return;
      case "text":
        return write(step.text, this.tail);
    }
  }

  private settle(html: string): void {
    const box = this.box();
    box.insertAdjacentHTML("beforeend", html);
    finish(box);
  }

  /** The box for what settles next. */
  private box(): Element {
    const last = this.settled.lastElementChild;
    if (last !== null && last.childElementCount < BLOCKS) {
      return last;
    }
    const box = h("div", { class: "blocks" });
    this.settled.append(box);
    return box;
  }
}

/** Where the rows of a table go, or the items of a list. */
function open(block: Element | null | undefined): Element | undefined {
  return block?.querySelector("tbody") ?? block ?? undefined;
}

/** Adds rows or items. Only these are looked through, however long the table or list is. */
function grow(block: Element | undefined, html: string): void {
  const last = block?.lastElementChild;
  block?.insertAdjacentHTML("beforeend", html);
  for (let one = last === null ? block?.firstElementChild : last?.nextElementSibling; one; one = one.nextElementSibling) {
    finish(one);
  }
}

/** Colors code, links files and shows formulas. */
function finish(settled: Element): void {
  finishCode(settled);
  finishFiles(settled);
  finishFormulas(settled);
}

/** Text goes to the end of the last line. Between the end tags of blocks are line breaks, which are not on the screen: only elements count. */
function write(text: string, place: Element): void {
  let holder = place;
  while (holder.lastElementChild?.matches(HOLDERS)) {
    holder = holder.lastElementChild;
  }
  const last = holder.lastChild;
  if (holder.matches(".lines") && (holder.textContent?.length ?? 0) > BOX_CHARACTERS) {
    continueBox(text, holder);
  } else if (last instanceof Text) {
    last.appendData(text);
  } else {
    holder.append(text);
  }
}

/** The box ends with its line; what follows is in a new one. */
function continueBox(text: string, box: Element): void {
  const end = text.indexOf("\n") + 1;
  box.append(text.slice(0, end || undefined));
  if (end > 0) {
    box.after(h("span", { class: "lines" }, text.slice(end)));
  }
}
