/**
 * The chat view: draws the extension's state and reports user input. It owns nothing. Changes are applied once per frame, and only to the
 * items they name; the view follows the end of the conversation unless the user scrolled away.
 */
import type { Action, ChatState, FromView, ToView } from "../src/messages";
import { visible } from "../src/safe";
import { announcements } from "./announce";
import { codeClicked } from "./code";
import { askForPictures, takePicture } from "./chips";
import { Composer } from "./composer";
import { CONTROL, h, Slot } from "./dom";
import { askForFiles, linkFiles, lookAgain } from "./files";
import { icon } from "./icons";
import { age, JobStrip } from "./jobs";
import { errorCard, waitingMessage } from "./items";
import { List } from "./list";
import { SetupForm } from "./setup";
import { Tabs } from "./tabs";
import { t } from "./words";

declare function acquireVsCodeApi(): {
  postMessage(message: FromView): void;
};

/** How near the end still counts as at the end. */
const FOLLOW_PX = 40;
/** Between a permission request and the edge of the view. */
const GAP_PX = 8;

withoutFindMarks();
const vscode = acquireVsCodeApi();
const send = (message: Action) => {
  following ||= message.type === "send"; // whoever sends a message wants to see what comes of it
  vscode.postMessage({ ...message, draft: draftNumber });
};
/** Of the draft in the input; the extension has not said yet what is in it. */
let draftNumber: number | undefined;
let following = true;
const scroller = h("main", { scroll: () => scrolled() });
askForPictures(send);
askForFiles(send);
const list = new List(scroller, send);
const welcome = new Slot("welcome");
const activity = new Slot("activity");
activity.element.role = "status";
const waiting = new Slot("waiting");
waiting.element.role = "group";
waiting.element.ariaLabel = t("Queued prompts");
const content = h("div", { class: "content" }, welcome.element, list.element, activity.element, waiting.element);
scroller.append(content);
const jump = h(
  "button",
  { type: "button", class: "jump", title: t("Scroll to the end"), "aria-label": t("Scroll to the end"), click: () => jumpToEnd() },
  icon("arrowDown"),
);
const composer = new Composer(send);
const setup = new SetupForm(
  send,
  () => composer.focus(),
  () => composer.text !== "",
);
const tabs = new Tabs(send);
const jobs = new JobStrip(send);
/** The scroll position and sizes at the last check. */
let last = { top: 0, height: 0, shown: 0 };
composer.prompts = () => list.prompts;
composer.toRequest = () => {
  const first = list.element.querySelector<HTMLElement>(".asking .question .reject_once, .asking .question button");
  first?.focus();
  return first !== null;
};
composer.page = (step) => scroller.scrollBy(0, step * 0.9 * scroller.clientHeight);
document.body.append(
  announcements,
  tabs.element,
  scroller,
  h("div", { class: "end" }, jump),
  jobs.element,
  setup.element,
  composer.element,
);
const resized = new ResizeObserver(() => (following ? toEnd() : scrolled()));
resized.observe(content);
resized.observe(scroller);

/** When something of the running turn was last received, in milliseconds; after a while the activity says for how long there was nothing. */
let received = Date.now();
let activityWords = "";
const QUIET_MS = 10_000;
/** It changes each second, which screen readers would read out. */
const silence = h("span", { "aria-hidden": "true", "aria-live": "off" });
setInterval(() => drawActivity(), 1000);

let queue: ToView[] = [];
addEventListener("message", ({ data }: MessageEvent<ToView>) => {
  if (queue.push(data) === 1) {
    requestAnimationFrame(drawQueue);
  }
});
list.element.addEventListener("click", (event) => follow(event));
list.element.addEventListener("keydown", (event) => event.key === "Enter" && follow(event));
addEventListener("keydown", ({ key, isComposing }) => key === "Escape" && !isComposing && composer.isBusy && send({ type: "stop" }));
send({ type: "ready" });

/** VS Code styles the matches of its find widget, which this view does not have. Each element would carry two more styles for them. */
function withoutFindMarks(): void {
  const { sheet } = document.querySelector<HTMLStyleElement>("#_defaultStyles") ?? {};
  const layers = [...(sheet?.cssRules ?? [])].filter((rule) => rule instanceof CSSLayerBlockRule);
  for (const layer of layers) {
    for (let at = layer.cssRules.length - 1; at >= 0; at--) {
      if (layer.cssRules[at]?.cssText.startsWith("::highlight(")) {
        layer.deleteRule(at);
      }
    }
  }
}

function drawQueue(): void {
  const messages = queue;
  queue = [];
  const hadFocus = document.activeElement !== document.body;
  messages.forEach(receive);
  welcome.element.hidden = !list.isEmpty;
  if (hadFocus && document.activeElement === document.body) {
    composer.focus(); // what had it is gone, such as the buttons of a permission request
  }
  if (messages.some(({ type }) => type === "changes")) {
    received = Date.now();
    send({ type: "drawn" });
  }
}

function receive(message: ToView): void {
  switch (message.type) {
    case "reset":
      list.reset(message.items);
      following = true;
      if (message.draft !== undefined) {
        showDraft(message.draft);
      }
      return drawState(message.state);
    case "changes":
      return message.changes.forEach((change) => list.apply(change));
    case "state":
      return drawState(message.state);
    case "draft":
      return composer.show(message.text, message.was);
    case "setup":
    case "setupModels":
    case "setupChecked":
      return setup.take(message);
    case "setupDone":
      return setup.close();
    case "completions":
      return composer.offer(message.request, message.items);
    case "focus":
      return composer.focus();
    case "showTurn":
      following = false;
      return list.showTurn(message.turn);
    case "try":
      return composer.try();
    case "files":
      return linkFiles(list.element, message.names);
    case "picture":
      return takePicture(message);
  }
}

/** Text typed while the page was loading is appended to the draft. */
function showDraft({ number, text }: { number: number; text: string }): void {
  const typed = draftNumber === undefined ? composer.text : "";
  draftNumber = number;
  composer.show([text, typed].filter(Boolean).join("\n\n"));
  if (typed !== "") {
    send({ type: "draft", text: composer.text });
  }
}

function drawState(state: ChatState): void {
  composer.draw(state);
  tabs.draw(state.conversations);
  jobs.draw(state.jobs);
  const { phase, message } = state;
  if (phase !== "running" || document.body.dataset["phase"] !== phase) {
    received = Date.now();
  }
  if (phase === "ready" && document.body.dataset["phase"] !== phase) {
    lookAgain(list.element);
  }
  document.body.dataset["phase"] = phase;
  activityWords = { running: message || t("Working…"), waiting: t("Waiting for your answer") }[phase as string] ?? "";
  drawActivity();
  waiting.set(state.waiting, () => state.waiting.map((message, index) => waitingMessage(message, index, send)));
  welcome.set({ phase, message, remedies: state.remedies }, () => greeting(state));
}

function drawActivity(): void {
  const isWaiting = document.body.dataset["phase"] === "waiting";
  const quiet = isWaiting ? 0 : Date.now() - received;
  activity.set({ words: activityWords, isWaiting }, ({ words }) =>
    words === "" ? [] : [icon(isWaiting ? "question" : "loading", isWaiting ? "" : "spin"), visible(words), silence],
  );
  const says = quiet < QUIET_MS ? "" : ` ${t("No output for {0}", age(quiet))}`;
  if (silence.textContent !== says) {
    silence.textContent = says;
  }
}

function greeting({ phase, message, remedies }: ChatState): Node[] {
  const about = h("p", {}, t("tandem edits your open files, unsaved changes included. Ctrl+Z undoes."));
  const head = [icon("tandem", "logo"), h("h1", {}, "tandem"), about];
  if (phase === "no_model") {
    const text = t(
      "No model is set up yet. Choose a provider and a model; a running Ollama, LM Studio or llama.cpp is detected automatically.",
    );
    return [...head, errorCard({ text, ...(message !== "" && { details: message }), remedies: ["setup", "settings"] }, send)];
  }
  if (phase === "stopped") {
    return [...head, errorCard({ text: message, remedies }, send)];
  }
  const keys = (key: string) => h("span", { class: "keys" }, h("kbd", {}, `${CONTROL}K`), h("kbd", {}, key));
  return [
    ...head,
    h(
      "ul",
      {},
      h("li", {}, t("Ask about the selection"), keys("A")),
      h("li", {}, t("Edit the selection"), keys("Y")),
      h("li", {}, t("Focus the chat"), keys("T")),
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
  if (event.type === "click") {
    codeClicked(target, send);
  }
}

/** The button disappears, and with it the focus it had. */
function jumpToEnd(): void {
  toEnd();
  composer.focus();
}

function toEnd(): void {
  following = true;
  scroller.scrollTop = end();
  scrolled();
}

/** Where the view stands while it follows: at the end, or where a permission request is seen from its head to its buttons. */
function end(): number {
  const { scrollHeight, scrollTop, clientHeight } = scroller;
  const asking = document.body.dataset["phase"] === "waiting" ? list.element.querySelector(".asking") : null;
  if (asking === null) {
    return scrollHeight - clientHeight;
  }
  const card = asking.getBoundingClientRect();
  const above = scroller.getBoundingClientRect().top - scrollTop + GAP_PX;
  return Math.min(scrollHeight - clientHeight, Math.max(card.top - above, card.bottom - above - clientHeight + 2 * GAP_PX));
}

/** Stops following only when the user scrolls up, not when the view or the text changes size. */
function scrolled(): void {
  const now = { top: scroller.scrollTop, height: scroller.scrollHeight, shown: scroller.clientHeight };
  const isAtEnd = end() - now.top < FOLLOW_PX;
  const wentUp = now.top < last.top && now.height >= last.height && now.shown <= last.shown;
  following = isAtEnd || (following && !wentUp);
  jump.hidden = following;
  last = now;
}
