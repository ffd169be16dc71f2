/** Code blocks: highlighted when near the viewport, with buttons that act on their text. */
import type { CodeAction } from "../src/messages";
import type { Send } from "./items";
import { boxes } from "./markdown";
import { t } from "./words";

/** Longer blocks stay plain, because highlighting them takes too long. */
const MAX = 40_000;

const script = document.currentScript as HTMLScriptElement | null;
let worker: Promise<Worker | undefined> | undefined;
/** What to do with the answers of the worker. */
const requests = new Map<number, (markup?: string) => void>();
let lastRequest = 0;

const awaited = new WeakMap<Element, () => void>();
const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        near.unobserve(target);
        awaited.get(target)?.();
      }
    }
  },
  { rootMargin: "50% 0px" },
);

/** Runs once, when the element is in the window or near it. */
export function whenNear(element: Element, run: () => void): void {
  awaited.set(element, run);
  near.observe(element);
}

/** Highlighted code, in which every element ends with its line; `undefined` for an unknown language or more than `MAX` characters. */
export async function highlighted(code: string, language: string): Promise<string | undefined> {
  if (language === "" || code.length > MAX) {
    return undefined;
  }
  worker ??= startWorker().catch(() => undefined);
  const started = await worker;
  if (started === undefined) {
    return undefined;
  }
  return new Promise((resolve) => {
    const id = ++lastRequest;
    requests.set(id, resolve);
    started.postMessage({ id, code, language });
  });
}

/** Highlights the finished blocks in an element once they are near the viewport. */
export function finishCode(within: Element): void {
  for (const block of within.querySelectorAll<HTMLElement>(".code:not([data-finished])")) {
    block.dataset["finished"] = "";
    whenNear(block, () => void color(block));
  }
}

/** Handles a click on a block's button. */
export function codeClicked(target: HTMLElement, send: Send): void {
  const button = target.closest<HTMLElement>("[data-code]");
  const block = button?.closest<HTMLElement>(".code");
  const text = block?.querySelector("code")?.textContent;
  if (button == null || block == null || text == null) {
    return;
  }
  const action = button.dataset["code"] as CodeAction;
  send({ type: "code", action, text, language: block.dataset["language"] ?? "" });
  if (action === "copy") {
    button.textContent = t("Copied");
    setTimeout(() => (button.textContent = t("Copy")), 1500);
  }
}

async function color(block: HTMLElement): Promise<void> {
  const code = block.querySelector("code");
  const markup = await highlighted(code?.textContent ?? "", (block.dataset["language"] ?? "").toLowerCase());
  if (code !== null && markup !== undefined) {
    code.innerHTML = boxes(markup);
  }
}

/** A worker of a webview has to come from a `blob:`. */
async function startWorker(): Promise<Worker> {
  const source = await fetch(`${script?.dataset["dist"]}/highlight.js`);
  const started = new Worker(URL.createObjectURL(await source.blob()));
  started.onmessage = ({ data: { id, markup } }: MessageEvent<{ id: number; markup?: string }>) => {
    requests.get(id)?.(markup);
    requests.delete(id);
  };
  return started;
}
