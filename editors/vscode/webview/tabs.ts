/** The open conversations, when there are several: which one is shown, and what the others do. */
import type { ConversationLabel } from "../src/messages";
import { visible } from "../src/safe";
import { announceAsking } from "./announce";
import { h, Slot } from "./dom";
import { icon, type IconName } from "./icons";
import { iconButton, type Send } from "./items";
import { t } from "./words";

const states: Record<ConversationLabel["state"], { icon?: IconName; says: string }> = {
  idle: { says: "" },
  running: { icon: "loading", says: t("running") },
  asks: { icon: "question", says: t("waiting for your answer") },
  done: { icon: "passed", says: t("done") },
};

export class Tabs {
  private readonly slot = new Slot("tabs");
  private drawn: readonly ConversationLabel[] = [];
  readonly element = this.slot.element;

  constructor(private readonly send: Send) {
    this.element.role = "tablist";
    this.element.ariaLabel = t("Sessions");
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.showCurrent()).observe(this.element);
  }

  draw(conversations: readonly ConversationLabel[]): void {
    this.element.hidden = conversations.length < 2;
    announceAsking(conversations, this.drawn);
    this.drawn = conversations;
    this.slot.set(conversations, () => {
      requestAnimationFrame(() => this.showCurrent());
      return conversations.map((one, index) => this.tab(one, index));
    });
  }

  private showCurrent(): void {
    this.element.querySelector(".current")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private tab({ title, isCurrent, state }: ConversationLabel, index: number): HTMLElement {
    const { icon: name, says } = states[state];
    const words = visible(title.split("\n")[0] ?? "") || t("New session");
    const label = h(
      "button",
      {
        type: "button",
        role: "tab",
        class: "label",
        title: words,
        "aria-selected": String(isCurrent),
        tabindex: isCurrent ? "0" : "-1",
        click: () => this.send({ type: "select", index }),
      },
      name !== undefined && icon(name, name === "loading" ? "spin" : ""),
      says !== "" && h("span", { class: "hidden-text" }, `${says}: `),
      h("span", { class: "words" }, words),
    );
    const close = iconButton("close", t("Close {0}", words), () => this.send({ type: "close", index }));
    return h("div", { class: `tab ${isCurrent ? "current" : ""}`, role: "presentation" }, label, close);
  }

  /** The arrows go from tab to tab, as in every list of tabs. */
  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const tabs = [...this.element.querySelectorAll<HTMLElement>("[role=tab]")];
    const at = tabs.indexOf(document.activeElement as HTMLElement);
    if (step !== undefined && at >= 0) {
      tabs[(at + step + tabs.length) % tabs.length]?.focus();
    }
  }
}
