/** Elements in one line. Text goes in as text, never as markup. */
import { t } from "./words";

type Props = Record<string, string | boolean | ((event: Event) => void) | undefined>;
export type Child = Node | string | undefined | false;

/** How a shortcut is written. */
export const IS_MAC = navigator.platform.startsWith("Mac");
export const CONTROL = IS_MAC ? "⌘" : t("Ctrl+");

/** `h("button", { class: "x", title: "…", click: handler }, …)`: functions are listeners, `true` is a bare attribute, `undefined` is none. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== undefined && child !== false));
  return element;
}

/** What gets the focus with the view: the last that asked for it. */
let wanted: HTMLElement | undefined;

/**
 * Focuses an element once the view has the focus; takes it neither from the rest of the window nor from what the person chose by then. What a redraw
 * removed meanwhile was replaced, and its replacement is nobody's choice.
 */
export function focus(element: HTMLElement): void {
  if (document.hasFocus()) {
    return element.focus();
  }
  wanted = element;
  const before = document.activeElement;
  const focused = () => {
    if (wanted === element && (document.activeElement === before || before?.isConnected === false)) {
      element.focus();
    }
  };
  addEventListener("focus", focused, { once: true });
}

const FOCUSABLE = "button, select, [tabindex]";
const nameOf = (element: HTMLElement) => element.ariaLabel ?? element.textContent;

/** Redraws only when its data changed, so that scrolling, folding and the focus survive. */
export class Slot {
  readonly element: HTMLElement;
  private shown = "";

  constructor(className: string) {
    this.element = h("div", { class: className });
  }

  set<T>(data: T, render: (data: T) => Child[]): void {
    const key = JSON.stringify(data);
    if (key !== this.shown) {
      this.shown = key;
      const held = this.focusable().find((one) => one === document.activeElement);
      this.element.replaceChildren(...render(data).filter((child) => child !== undefined && child !== false));
      if (held !== undefined) {
        const name = nameOf(held); // never a different one: a key meant for one must not trigger the other
        this.focusable()
          .find((one) => nameOf(one) === name)
          ?.focus();
      }
    }
  }

  private focusable(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>(FOCUSABLE)];
  }
}
