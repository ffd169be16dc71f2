/**
 * Suggestions for what is being written: commands after a `/` at the beginning, mentions after an `@`. A listbox that the input steers by
 * `aria-activedescendant`: the focus stays in the input. Invariant: what is shown fits the word before the cursor as it is now.
 */
import type { Command } from "../src/messages";
import type { Completion } from "../src/protocol";
import { visible } from "../src/safe";
import { h } from "./dom";
import { icon, type IconName } from "./icons";
import { t } from "./words";
import { wordAt } from "./word";

interface Suggestion {
  readonly icon: IconName;
  readonly label: string;
  readonly detail: string;
  /** What the word becomes. */
  readonly insert: string;
  /** There may be more of the same word, such as what is in a folder. */
  readonly goesOn: boolean;
}

const kindIcons: Record<Completion["kind"], IconName> = {
  file: "file",
  folder: "folder",
  symbol: "symbol",
  diagnostics: "warning",
  selection: "selection",
  resource: "globe",
};
const ID = "suggestions";

export class Suggestions {
  readonly element = h("div", { class: "suggestions", role: "listbox", id: ID, "aria-label": t("Suggestions"), hidden: true });
  /** Tells screen reader users that there are some. */
  readonly status = h("span", { class: "hidden-text", role: "status" });
  private commands: readonly Command[] = [];
  private suggestions: readonly Suggestion[] = [];
  private active = 0;
  /** Where the word begins that a suggestion replaces; it ends at the cursor. */
  private start = 0;
  private request = 0;

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly complete: (request: number, query: string) => void,
    private readonly edited: () => void,
  ) {
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-haspopup", "listbox");
    input.setAttribute("aria-controls", ID);
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  /** Servers list theirs while the first prompt is written. */
  know(commands: readonly Command[]): void {
    const isNews = JSON.stringify(commands) !== JSON.stringify(this.commands);
    this.commands = commands;
    if (isNews && document.activeElement === this.input) {
      this.update();
    }
  }

  /** Looks at the word before the cursor again. */
  update(): void {
    this.request++;
    const { value, selectionStart, selectionEnd } = this.input;
    const before = selectionStart === selectionEnd ? value.slice(0, selectionStart) : "";
    const word = wordAt(before);
    if (word === undefined) {
      this.close();
    } else if (word.sigil === "/") {
      const fitting = this.commands.filter(({ name }) => name.startsWith(word.query));
      this.show(0, fitting.map(ofCommand));
    } else {
      this.complete(this.request, word.query);
    }
  }

  /** The answer to a request; an outdated one is dropped. */
  offer(request: number, items: readonly Completion[]): void {
    if (request === this.request) {
      const before = this.input.value.slice(0, this.input.selectionStart);
      this.show(before.lastIndexOf("@") + 1, items.map(ofMention));
    }
  }

  /** Whether the key was for the suggestions. */
  key(event: KeyboardEvent): boolean {
    if (!this.isOpen || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) {
      return false;
    }
    switch (event.key) {
      case "ArrowDown":
        this.activate(this.active + 1);
        return true;
      case "ArrowUp":
        this.activate(this.active - 1);
        return true;
      case "Escape":
        this.close();
        return true;
      case "Enter":
      case "Tab":
        return this.accept(this.active);
      default:
        return false;
    }
  }

  close(): void {
    this.request++;
    this.show(0, []);
  }

  private show(start: number, suggestions: readonly Suggestion[]): void {
    this.start = start;
    this.suggestions = suggestions;
    this.element.hidden = suggestions.length === 0;
    this.element.replaceChildren(...suggestions.map((one, index) => this.option(one, index)));
    this.status.textContent = suggestions.length === 0 ? "" : t("{0} suggestions, Tab inserts one", suggestions.length);
    this.activate(0);
  }

  private option({ icon: name, label, detail }: Suggestion, index: number): HTMLElement {
    const option = h(
      "div",
      { class: "option", role: "option", id: `${ID}-${index}`, click: () => this.accept(index) },
      icon(name),
      h("span", { class: "label" }, visible(label)),
      h("span", { class: "detail" }, visible(detail)),
    );
    option.addEventListener("mousedown", (event) => event.preventDefault()); // the input keeps the focus
    return option;
  }

  private activate(index: number): void {
    const { length } = this.suggestions;
    this.active = length === 0 ? 0 : (index + length) % length;
    [...this.element.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === this.active)));
    const option = this.element.children[this.active];
    if (option === undefined) {
      this.input.removeAttribute("aria-activedescendant");
    } else {
      this.input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  }

  /** Inserts a suggestion; `false` if it is already there, so that Enter sends. */
  private accept(index: number): boolean {
    const suggestion = this.suggestions[index];
    if (suggestion === undefined) {
      return false;
    }
    const { input, start } = this;
    const end = input.selectionStart;
    const isThere = input.value.slice(start, end) === suggestion.insert;
    this.close();
    if (isThere) {
      return false;
    }
    const space = suggestion.goesOn || /^\s/.test(input.value.slice(end)) ? "" : " ";
    input.setRangeText(suggestion.insert + space, start, end, "end");
    this.edited();
    if (suggestion.goesOn) {
      this.update();
    }
    return true;
  }
}

function ofCommand({ name, description, takesMore }: Command): Suggestion {
  return { icon: "terminal", label: `/${name}${takesMore ? " …" : ""}`, detail: description, insert: `/${name}`, goesOn: false };
}

function ofMention({ kind, label, detail, insert }: Completion): Suggestion {
  return { icon: kindIcons[kind] ?? "file", label, detail: detail ?? "", insert, goesOn: kind === "folder" };
}
