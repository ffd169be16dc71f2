/** Where the person writes, with what goes along, the mode and the model. Keeps the draft when the view is hidden. */
import type { ChatState, Picker } from "../src/messages";
import { visible } from "../src/safe";
import { h, Slot } from "./dom";
import { icon } from "./icons";
import { iconButton, type Send } from "./items";

export interface Draft {
  get(): string;
  set(text: string): void;
}

export class Composer {
  readonly element: HTMLElement;
  private readonly input: HTMLTextAreaElement;
  private readonly chips = new Slot("chips");
  private readonly pickers = new Slot("pickers");
  private readonly action = new Slot("action");
  /** A turn runs: there is something to stop. */
  isBusy = false;

  constructor(
    private readonly send: Send,
    private readonly draft: Draft,
  ) {
    this.input = h("textarea", {
      rows: "1",
      placeholder: "Ask tandem…",
      "aria-label": "Message to tandem",
      input: () => this.edited(),
      keydown: (event) => this.key(event as KeyboardEvent),
    });
    this.input.value = draft.get();
    const attach = iconButton("add", "Add the selection or the open file", () => send({ type: "attach" }));
    const bar = h("div", { class: "bar" }, attach, this.pickers.element, this.action.element);
    this.element = h("div", { class: "composer" }, this.chips.element, this.input, bar);
  }

  /** Takes the focus within this view once the editor gave it to the view; never from the rest of the window. */
  focus(): void {
    if (document.hasFocus()) {
      this.input.focus();
    } else {
      addEventListener("focus", () => this.input.focus(), { once: true });
    }
  }

  draw({ phase, attachments, queued, modes, models, usage }: ChatState): void {
    this.isBusy = phase === "running" || phase === "waiting";
    this.chips.set({ attachments, queued }, () => [
      ...queued.map((text, index) => this.queuedChip(text, index)),
      ...attachments.map((label, index) => this.chip(label, index)),
    ]);
    this.pickers.set({ modes, models, usage }, () => [
      modes && this.picker("mode", "Mode", modes),
      models && this.picker("model", "Model", models),
      usage &&
        usage.size > 0 &&
        h(
          "span",
          { class: "usage", title: `${usage.used} of ${usage.size} tokens of context` },
          `${Math.round((100 * usage.used) / usage.size)} %`,
        ),
    ]);
    this.action.set(this.isBusy, () => [this.isBusy ? this.stopButton() : this.sendButton()]);
  }

  private queuedChip(text: string, index: number): HTMLElement {
    const remove = iconButton("close", `Do not send ${visible(text)}`, () => this.send({ type: "unqueue", index }));
    return h("span", { class: "chip queued", title: visible(text) }, h("span", { class: "words" }, `Next: ${visible(text)}`), remove);
  }

  private chip(label: string, index: number): HTMLElement {
    const remove = iconButton("close", `Remove ${visible(label)}`, () => this.send({ type: "detach", index }));
    return h("span", { class: "chip" }, visible(label), remove);
  }

  private picker(what: "mode" | "model", name: string, { current, choices }: Picker): HTMLElement {
    const options = choices.map(({ value, name, description }) =>
      h("option", { value, selected: value === current, title: description }, visible(name)),
    );
    const select = h("select", { class: what, "aria-label": name, title: name }, ...options);
    select.addEventListener("change", () => {
      const { value } = select;
      select.value = current; // until the server agrees
      this.send({ type: "pick", what, value });
    });
    return select;
  }

  private sendButton(): HTMLElement {
    return h(
      "button",
      { type: "button", class: "send", title: "Send (Enter)", "aria-label": "Send", click: () => this.submit() },
      icon("arrowUp"),
    );
  }

  private stopButton(): HTMLElement {
    return h(
      "button",
      { type: "button", class: "send stop", title: "Stop (Escape)", "aria-label": "Stop", click: () => this.send({ type: "stop" }) },
      icon("stop"),
    );
  }

  private edited(): void {
    this.draft.set(this.input.value);
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) {
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    }
  }

  private submit(): void {
    const text = this.input.value.trim();
    if (text === "") {
      return;
    }
    this.input.value = "";
    this.edited();
    this.send({ type: "send", text });
  }
}
