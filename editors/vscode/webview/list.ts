/**
 * The items of the conversation, in groups. Groups far from the viewport are removed from the page but keep their height, so the cost does not grow
 * with the conversation; a group that was never near is not drawn at all.
 */
import type { Change, Item } from "../src/messages";
import { announce } from "./announce";
import { h } from "./dom";
import { type ItemView, type Send, viewOf } from "./items";
import { t } from "./words";

/** A group ends at the first prompt after `GROUP` items, or after `GROUP_MAX` at the latest. A text counts as one more for this many characters. */
const GROUP = 12;
const GROUP_MAX = 40;
const ITEM_CHARACTERS = 2000;
/** The estimated height of an undrawn item. */
const ITEM_PX = 80;
/** Groups within this distance of the viewport are in the page. */
const NEAR = "150% 0px";

interface Group {
  readonly element: HTMLElement;
  readonly entries: Entry[];
  isIn: boolean;
}

interface Entry {
  item: Item;
  view?: ItemView;
  readonly group: Group;
}

export class List {
  readonly element = h("div", { class: "list", role: "log", "aria-label": t("Session"), "aria-live": "off" });
  private readonly entries = new Map<number, Entry>();
  private readonly groups: Group[] = [];
  private readonly byElement = new WeakMap<Element, Group>();
  private readonly near: IntersectionObserver;

  constructor(
    scroller: HTMLElement,
    private readonly send: Send,
  ) {
    this.near = new IntersectionObserver((changes) => changes.forEach((change) => this.moved(change)), {
      root: scroller,
      rootMargin: NEAR,
    });
  }

  get isEmpty(): boolean {
    return this.entries.size === 0;
  }

  /** The user's prompts, in order. */
  get prompts(): string[] {
    return [...this.entries.values()].flatMap(({ item }) => (item.kind === "user" ? item.text : []));
  }

  reset(items: readonly Item[]): void {
    this.entries.clear();
    this.groups.splice(0).forEach(({ element }) => this.near.unobserve(element));
    this.element.replaceChildren();
    items.forEach((item) => this.add(item, false));
    this.groups.slice(-2).forEach((group) => this.bringIn(group));
    this.groups.slice(0, -2).forEach((group) => setHeight(group.element, sizeOf(group) * ITEM_PX));
  }

  apply(change: Change): void {
    switch (change.op) {
      case "put":
        return this.put(change.item);
      case "append":
        return this.append(change.id, change.text);
      case "remove":
        return this.remove(change.id);
    }
  }

  /** Scrolls to the message that began a turn. */
  showTurn(turn: number): void {
    const entry = [...this.entries.values()].find(({ item }) => item.kind === "user" && item.turn === turn);
    if (entry !== undefined) {
      this.bringIn(entry.group);
      this.view(entry).element.scrollIntoView({ block: "start" });
    }
  }

  private put(item: Item): void {
    const entry = this.entries.get(item.id);
    announce(item, entry?.item);
    if (entry === undefined) {
      this.add(item, true);
      return;
    }
    entry.item = item;
    entry.view?.put(item);
    if (entry.view !== undefined) {
      markCut(entry.view, item);
    }
  }

  private append(id: number, text: string): void {
    const entry = this.entries.get(id);
    if (entry !== undefined && "text" in entry.item) {
      entry.item = { ...entry.item, text: entry.item.text + text };
      entry.view?.append(text);
    }
  }

  private remove(id: number): void {
    const entry = this.entries.get(id);
    if (entry !== undefined) {
      entry.view?.element.remove();
      entry.group.entries.splice(entry.group.entries.indexOf(entry), 1);
      this.entries.delete(id);
    }
  }

  private add(item: Item, draw: boolean): void {
    const group = this.groupFor(item);
    const entry: Entry = { item, group };
    group.entries.push(entry);
    this.entries.set(item.id, entry);
    if (draw) {
      group.element.append(this.view(entry).element);
    }
  }

  private groupFor(item: Item): Group {
    const last = this.groups.at(-1);
    const size = last === undefined ? GROUP_MAX : sizeOf(last);
    if (last !== undefined && size < GROUP_MAX && !(size >= GROUP && item.kind === "user")) {
      return last;
    }
    const group: Group = { element: h("div", { class: "group", role: "presentation" }), entries: [], isIn: false };
    this.groups.push(group);
    this.byElement.set(group.element, group);
    this.element.append(group.element);
    this.near.observe(group.element);
    return group;
  }

  private view(entry: Entry): ItemView {
    if (entry.view === undefined) {
      entry.view = viewOf(entry.item, this.send);
      markCut(entry.view, entry.item);
    }
    return entry.view;
  }

  private moved({ target, isIntersecting, boundingClientRect }: IntersectionObserverEntry): void {
    const group = this.byElement.get(target);
    if (group === undefined || !target.isConnected) {
      return;
    }
    const stays = isIntersecting || this.groups.indexOf(group) >= this.groups.length - 2 || target.contains(document.activeElement);
    if (stays && !group.isIn) {
      this.bringIn(group);
    } else if (!stays && group.isIn) {
      group.isIn = false;
      setHeight(group.element, boundingClientRect.height);
      group.element.replaceChildren();
    }
  }

  private bringIn(group: Group): void {
    group.isIn = true;
    group.element.style.height = "";
    group.element.replaceChildren(...group.entries.map((entry) => this.view(entry).element));
  }
}

function sizeOf({ entries }: Group): number {
  return entries.reduce((sum, { item }) => sum + 1 + ("text" in item ? Math.floor(item.text.length / ITEM_CHARACTERS) : 0), 0);
}

function markCut({ element }: ItemView, { isCut }: Item): void {
  element.classList.toggle("cut", isCut === true);
  element.title = isCut === true ? t("No longer part of the session. Undo restores it.") : "";
}

function setHeight(element: HTMLElement, pixels: number): void {
  element.style.height = `${pixels}px`;
}
