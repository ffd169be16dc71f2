/** The input with its attachments, mode and model. */
import type { ChatState, Chip, Looking, Picker } from "../src/messages";
import type { Completion } from "../src/protocol";
import { visible } from "../src/safe";
import { chip } from "./chips";
import { focus, h, IS_MAC, Slot } from "./dom";
import { icon } from "./icons";
import { takeFiles } from "./drop";
import { iconButton, type Send } from "./items";
import { Suggestions } from "./suggestions";
import { TRY, triedText } from "../src/trial";
import { t } from "./words";

/** The options that stand below the input; others are in the command palette. */
const PICKERS = ["mode", "model"];
/** Instead of a model: one that the endpoint has and nobody configured. */
const MORE = "";
/** Keys that are no key of a shortcut by themselves. */
const MODIFIERS = new Set(["Control", "Meta", "Shift", "Alt", "AltGraph"]);

export class Composer {
  readonly element: HTMLElement;
  private readonly input: HTMLTextAreaElement;
  private readonly chips = new Slot("chips");
  private readonly pickers = new Slot("pickers");
  private readonly usage = new Slot("usage");
  private readonly action = new Slot("action");
  private readonly suggestions: Suggestions;
  /** What was asked in this conversation, the latest last. */
  prompts: () => readonly string[] = () => [];
  /** Scrolls the conversation by a page, up or down. */
  page: (step: 1 | -1) => void = () => {};
  /** Goes back to the permission request, if there is one. */
  toRequest: () => boolean = () => false;
  /** How far back the recalled prompt is; 0 is the draft, kept in `kept` meanwhile. */
  private recalled = 0;
  private kept = "";
  /** A turn runs: there is something to stop. */
  isBusy = false;
  private isEditing = false;
  /** Ctrl+K was pressed, with which VS Code's commands of two keys begin. */
  private isChord = false;
  private readonly editing = new Slot("editing");

  constructor(private readonly send: Send) {
    this.input = h("textarea", {
      rows: "1",
      "aria-label": t("Prompt for tandem"),
      input: () => this.edited(true),
      blur: () => this.suggestions.close(),
      keydown: (event) => this.key(event as KeyboardEvent),
    });
    const give = (event: Event, data: DataTransfer | null) => data !== null && takeFiles(data, send) && event.preventDefault();
    // Office programs add a picture of the text that is copied.
    const isText = (data: DataTransfer | null) => data?.types.includes("text/plain") && data.types.includes("text/html");
    this.input.addEventListener("paste", (event) => !isText(event.clipboardData) && give(event, event.clipboardData));
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => give(event, event.dataTransfer));
    const attach = iconButton("add", t("Add the selection, files or images (hold Shift to drop files here)"), () =>
      send({ type: "attach" }),
    );
    const rest = h("div", { class: "rest" }, attach, this.usage.element, this.action.element);
    const bar = h("div", { class: "bar" }, this.pickers.element, rest);
    const complete = (request: number, query: string) => send({ type: "complete", request, query });
    this.suggestions = new Suggestions(this.input, complete, () => this.edited());
    const { element: list, status } = this.suggestions;
    this.element = h("div", { class: "composer" }, list, status, this.editing.element, this.chips.element, this.input, bar);
  }

  focus(): void {
    focus(this.input);
  }

  /** The draft, also while an earlier prompt is shown in its place. */
  get text(): string {
    return this.isRecalled ? this.kept : this.input.value;
  }

  /** An earlier prompt is shown, which is no draft until it is edited. */
  private get isRecalled(): boolean {
    return this.recalled > 0 && this.input.value === this.prompts().at(-this.recalled);
  }

  /** The draft of another conversation, or this one's, changed when it was as in `was`: what was typed since stays, and so does the cursor. */
  show(text: string, was = this.text): void {
    const { text: value } = this;
    const { selectionStart, selectionEnd } = this.input;
    const added = text.startsWith(was) ? text.slice(was.length).trimStart() : text;
    this.recalled = 0;
    this.input.value = value === was ? text : [value, added].filter(Boolean).join("\n\n");
    if (value !== "" && this.text.startsWith(value)) {
      this.input.setSelectionRange(selectionStart, selectionEnd);
    }
    if (value !== was) {
      this.edited();
    }
  }

  offer(request: number, items: readonly Completion[]): void {
    this.suggestions.offer(request, items);
  }

  draw({ phase, attachments, isEditing, looking, pickers, commands, usage }: ChatState): void {
    this.isBusy = phase === "running" || phase === "waiting";
    this.isEditing = isEditing;
    this.suggestions.know(commands);
    this.editing.set(isEditing, () => (isEditing ? this.drawEditing() : []));
    this.input.placeholder = this.isBusy ? t("Queue a follow-up (Alt+Enter: send now)") : t("Ask tandem… (@ file, / command)");
    this.chips.set({ attachments, looking }, () => [
      ...looking.filter(({ label }) => !attachments.some((one) => one.label === label)).map((one) => this.lookingChip(one)),
      ...attachments.map((one, index) => this.chip(one, index)),
    ]);
    const offered = pickers.filter(({ id }) => PICKERS.includes(id));
    this.pickers.set(offered, () => offered.map((picker) => this.picker(picker)));
    this.usage.set(usage, () => [usage && used(usage)]);
    this.action.set(this.isBusy, () => (this.isBusy ? [this.nowButton(), this.stopButton()] : [this.tryButton(), this.sendButton()]));
  }

  /** The draft replaces an earlier message. */
  private drawEditing(): HTMLElement[] {
    const cancel = iconButton("close", t("Cancel (Escape)"), () => this.cancelEdit());
    return [h("span", {}, t("Editing an earlier prompt: sending it rewinds the files and the session to before it.")), cancel];
  }

  private cancelEdit(): void {
    this.send({ type: "cancelEdit" });
    this.input.focus();
  }

  private lookingChip({ what, label, isShared }: Looking): HTMLElement {
    const name = visible(label);
    const words = isShared ? t("{0}: sent with each prompt. Click to exclude it.", name) : t("{0}: not sent. Click to include it.", name);
    const click = () => this.send({ type: "look", what });
    const chip = h("button", { type: "button", class: "looking", title: words, "aria-label": name, click });
    chip.setAttribute("aria-pressed", String(isShared));
    chip.append(icon(isShared ? "eye" : "eyeClosed"), name);
    return chip;
  }

  private chip(one: Chip, index: number): HTMLElement {
    const remove = iconButton("close", t("Remove {0}", visible(one.label)), () => this.send({ type: "detach", index }));
    return chip(one, remove);
  }

  private picker({ id, name, current, choices }: Picker): HTMLElement {
    const provider = sharedProvider(choices.map(({ name }) => name));
    const options = choices.map(({ value, name, description }) =>
      h("option", { value, selected: value === current, title: description }, visible(name.slice(provider.length))),
    );
    const chosen = visible(choices.find(({ value }) => value === current)?.name ?? current);
    const more = id === "model" && h("option", { value: MORE }, t("More models…"));
    const select = h("select", { class: id, "aria-label": name, title: `${name}: ${chosen}` }, ...options, more);
    select.addEventListener("change", () => {
      const { value } = select;
      select.value = current; // until the server agrees
      this.send(value === MORE ? { type: "remedy", remedy: "model" } : { type: "pick", what: id, value });
    });
    return select;
  }

  /** Sends the draft as a trial; with no draft it begins one. */
  try(): void {
    const text = this.input.value.trim();
    if (triedText(text) === undefined) {
      this.input.value = `${TRY} ${text === TRY ? "" : text}`;
      this.edited();
    }
    if (text === "" || text === TRY) {
      this.focus();
    } else {
      this.submit();
    }
  }

  private tryButton(): HTMLElement {
    return iconButton("beaker", t("Try: run it on a private copy of the workspace, then apply or discard the changes"), () => this.try());
  }

  private sendButton(): HTMLElement {
    return h(
      "button",
      { type: "button", class: "send", title: t("Send (Enter)"), "aria-label": t("Send"), click: () => this.submit() },
      icon("arrowUp"),
    );
  }

  private nowButton(): HTMLElement {
    return iconButton("send", t("Send now, to the running turn (Alt+Enter)"), () => this.submit(true));
  }

  private stopButton(): HTMLElement {
    return h(
      "button",
      { type: "button", class: "send stop", title: t("Stop (Escape)"), "aria-label": t("Stop"), click: () => this.send({ type: "stop" }) },
      icon("stop"),
    );
  }

  private edited(byHand = false): void {
    this.send({ type: "draft", text: this.input.value });
    if (byHand) {
      this.suggestions.update();
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) {
      return;
    }
    if (!MODIFIERS.has(event.key)) {
      if (this.isChord && event.key.length === 1) {
        event.preventDefault(); // VS Code takes it, and would leave it in the input
      }
      this.isChord = !this.isChord && (IS_MAC ? event.metaKey : event.ctrlKey) && event.key === "k";
    }
    if (this.suggestions.key(event)) {
      event.preventDefault();
      event.stopPropagation(); // Escape stops no turn while it closes the suggestions
    } else if (event.key === "Escape" && this.isEditing) {
      event.stopPropagation();
      this.cancelEdit();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && this.recall(event.key === "ArrowUp" ? 1 : -1)) {
      event.preventDefault();
    } else if ((event.key === "PageUp" || event.key === "PageDown") && this.input.scrollHeight <= this.input.clientHeight) {
      event.preventDefault();
      this.page(event.key === "PageUp" ? -1 : 1);
    } else if (event.key === "Tab" && event.shiftKey && this.toRequest()) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey && this.isBusy);
    }
  }

  /** Shows an earlier prompt or the draft again; `false` if the key should move the cursor. */
  private recall(step: 1 | -1): boolean {
    const { input } = this;
    const prompts = this.prompts();
    const isUntouched = this.recalled > 0 ? this.isRecalled : step === 1 && input.selectionEnd === 0;
    const next = this.recalled + step;
    if (!isUntouched || next < 0 || next > prompts.length) {
      return false;
    }
    if (this.recalled === 0) {
      this.kept = input.value;
    }
    this.recalled = next;
    input.value = next === 0 ? this.kept : (prompts[prompts.length - next] ?? "");
    return true;
  }

  private submit(now = false): void {
    const text = this.input.value.trim();
    if (text === "") {
      return;
    }
    if (text === TRY) {
      return this.try(); // sent without a prompt, it would only explain itself, and what is typed next would be no trial
    }
    this.input.value = "";
    this.recalled = 0;
    this.suggestions.close();
    this.edited();
    this.send({ type: "send", text, now });
  }
}

/** `provider/` if all names begin with it: the little room is for the model. */
function sharedProvider(names: readonly string[]): string {
  const [provider = ""] = /^[^/]+\//.exec(names[0] ?? "") ?? [];
  return names.every((name) => name.startsWith(provider)) ? provider : "";
}

/** The share of the window that is full, else the tokens in it; with the cost, where it is known. */
function used({ used, size, cost, turnCost }: NonNullable<ChatState["usage"]>): HTMLElement {
  const tokens = size == null || size === 0 ? t("{0} tokens", short(used)) : `${Math.round((100 * used) / size)} %`;
  const price = cost == null ? "" : dollars(cost);
  const words = size == null || size === 0 ? t("{0} tokens of context", used) : t("{0} of {1} tokens of context", used, size);
  const title = price === "" ? words : `${words}, ${spent(price, turnCost)}`;
  return h("span", { title, "aria-label": title }, [tokens, price].filter(Boolean).join(" · "));
}

function spent(session: string, turn: number | undefined): string {
  return turn === undefined ? t("{0} in this session", session) : t("{0} in this session, {1} in the latest turn", session, dollars(turn));
}

function dollars(cost: number): string {
  return `$${cost.toFixed(cost < 0.995 ? 3 : 2)}`;
}

/** `950`, `12k`. */
function short(count: number): string {
  return count < 1000 ? String(count) : `${Math.round(count / 1000)}k`;
}
