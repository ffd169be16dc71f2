/** Announces news to screen readers once per message: an answer when it is complete, errors and permission requests at once. */
import type { ConversationLabel, Item } from "../src/messages";
import { visible } from "../src/safe";
import { h } from "./dom";
import { t } from "./words";

/** Longer texts are cut for screen readers. */
const MAX = 1500;

const polite = h("div", { class: "hidden-text", role: "status" });
const urgent = h("div", { class: "hidden-text", role: "alert" });
export const announcements = h("div", {}, polite, urgent);

/** `before` is what the item was, if it was there. */
export function announce(item: Item, before: Item | undefined): void {
  switch (item.kind) {
    case "answer":
      return item.done && !(before?.kind === "answer" && before.done) ? say(polite, item.text) : undefined;
    case "notice":
      return before === undefined ? say(polite, item.text) : undefined;
    case "error":
      return before === undefined ? say(urgent, item.text) : undefined;
    case "tool": {
      const isNew = item.question !== undefined && !(before?.kind === "tool" && before.question !== undefined);
      return isNew ? say(urgent, t("tandem needs your approval: {0}", item.title)) : undefined;
    }
  }
}

/** Conversations that are not shown and begin to ask. */
export function announceAsking(now: readonly ConversationLabel[], before: readonly ConversationLabel[]): void {
  const asking = (labels: readonly ConversationLabel[]) => labels.filter(({ state }) => state === "asks");
  const asked = new Set(asking(before).map(({ title }) => title));
  const [one] = asking(now).filter(({ title, isCurrent }) => !isCurrent && !asked.has(title));
  if (one !== undefined) {
    say(urgent, t("tandem is waiting for your answer: {0}", one.title));
  }
}

function say(region: HTMLElement, text: string): void {
  region.textContent = visible(text.length > MAX ? `${text.slice(0, MAX)}…` : text);
}
