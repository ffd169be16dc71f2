/**
 * The chat view: draws what the extension says and reports what the person does. It owns nothing but the draft; changes are applied once a frame,
 * only to the items they name, and the view follows the end of the conversation unless the person scrolled away from it.
 */
import type { Change, ChatState, FromView, Item, ToView } from "../src/messages";
import { visible } from "../src/safe";
import { Composer } from "./composer";
import { h, Slot } from "./dom";
import { icon } from "./icons";
import { errorCard, type ItemView, viewOf, waitingMessage } from "./items";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
  getState(): { draft: string } | undefined;
  setState(state: { draft: string }): void;
};

/** How near the end still counts as at the end. */
const FOLLOW_PX = 40;

const vscode = acquireVsCodeApi();
const send = (message: FromView) => vscode.postMessage(message);
const views = new Map<number, ItemView>();
const list = h("div", { class: "list", role: "log", "aria-label": "Conversation", "aria-live": "polite" });
const welcome = new Slot("welcome");
const activity = new Slot("activity");
activity.element.role = "status";
const waiting = new Slot("waiting");
waiting.element.role = "group";
waiting.element.ariaLabel = "Not heard yet";
const content = h("div", { class: "content" }, welcome.element, list, activity.element, waiting.element);
const scroller = h("main", { scroll: () => scrolled() }, content);
const jump = h(
  "button",
  { type: "button", class: "jump", title: "To the end", "aria-label": "To the end", click: () => toEnd() },
  icon("arrowDown"),
);
const composer = new Composer(send, {
  get: () => vscode.getState()?.draft ?? "",
  set: (draft) => vscode.setState({ draft }),
});
let following = true;
document.body.append(scroller, jump, composer.element);
const resized = new ResizeObserver(() => (following ? toEnd() : scrolled()));
resized.observe(content);
resized.observe(scroller);

let queue: ToView[] = [];
addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  if (queue.push(data) === 1) {
    requestAnimationFrame(drawQueue);
  }
});
list.addEventListener("click", (event) => follow(event));
list.addEventListener("keydown", (event) => event.key === "Enter" && follow(event));
addEventListener("keydown", ({ key, isComposing }) => key === "Escape" && !isComposing && composer.isBusy && send({ type: "stop" }));
send({ type: "ready" });

function drawQueue(): void {
  const messages = queue;
  queue = [];
  messages.forEach(receive);
}

function receive(message: ToView): void {
  switch (message.type) {
    case "reset":
      views.clear();
      list.replaceChildren();
      message.items.forEach(put);
      return drawState(message.state);
    case "changes":
      return message.changes.forEach(change);
    case "state":
      return drawState(message.state);
    case "restore":
      return composer.restore(message.text);
    case "completions":
      return composer.offer(message.request, message.items);
    case "focus":
      return composer.focus();
  }
}

function change(one: Change): void {
  switch (one.op) {
    case "put":
      return put(one.item);
    case "append":
      return views.get(one.id)?.append(one.text);
    case "remove":
      views.get(one.id)?.element.remove();
      views.delete(one.id);
  }
}

function put(item: Item): void {
  const known = views.get(item.id);
  if (known !== undefined) {
    known.put(item);
    return;
  }
  const view = viewOf(item, send);
  views.set(item.id, view);
  list.append(view.element);
}

function drawState(state: ChatState): void {
  composer.draw(state);
  const { phase, message } = state;
  document.body.dataset["phase"] = phase;
  const words = { running: message || "Working…", waiting: "Waiting for your answer" }[phase as string] ?? "";
  activity.set(words, () =>
    words === "" ? [] : [icon(phase === "waiting" ? "question" : "loading", phase === "waiting" ? "" : "spin"), visible(words)],
  );
  waiting.set(state.waiting, () => state.waiting.map((message, index) => waitingMessage(message, index, send)));
  const empty = views.size === 0;
  welcome.element.hidden = !empty;
  welcome.set({ phase, message, remedies: state.remedies }, () => greeting(state));
}

function greeting({ phase, message, remedies }: ChatState): Node[] {
  const head = [icon("tandem", "logo"), h("h1", {}, "tandem")];
  if (phase === "no_model") {
    const text =
      message || "No model is configured yet. Start a local server such as Ollama, set an API key, or name an endpoint in the settings.";
    return [...head, errorCard({ text, remedies: ["walkthrough", "apiKey", "settings"] }, send)];
  }
  if (phase === "stopped") {
    return [...head, errorCard({ text: message, remedies }, send)];
  }
  const chord = navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl+K";
  const keys = (key: string) => h("span", { class: "keys" }, h("kbd", {}, chord), h("kbd", {}, key));
  return [
    ...head,
    h("p", {}, "Edits land in the open buffer, unsaved text included. Undo takes them back."),
    h(
      "ul",
      {},
      h("li", {}, "Ask about the selection", keys("A")),
      h("li", {}, "Edit the selection", keys("Y")),
      h("li", {}, "Come back to this chat", keys("T")),
    ),
  ];
}

/** Links and copy buttons inside rendered Markdown, which holds no listeners of its own. */
function follow(event: Event): void {
  const target = event.target as HTMLElement;
  const href = target.closest<HTMLElement>("[data-href]")?.dataset["href"];
  if (href !== undefined) {
    send({ type: "link", href });
  }
  const copy = event.type === "click" ? target.closest<HTMLElement>("[data-copy]") : null;
  const text = copy?.closest(".code")?.querySelector("code")?.textContent;
  if (copy && text != null) {
    send({ type: "copy", text });
    copy.textContent = "Copied";
  }
}

function toEnd(): void {
  scroller.scrollTop = scroller.scrollHeight;
  scrolled();
}

function scrolled(): void {
  following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < FOLLOW_PX;
  jump.hidden = following;
}
