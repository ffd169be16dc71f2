/** The views of all kinds of items. A view redraws itself from a new version of its item and reports what the user did. */
import type { DiffView } from "../src/diff";
import type {
  ErrorItem,
  Action,
  Item,
  JobView,
  NoticeItem,
  PlanItem,
  Question,
  Remedy,
  ToolItem,
  UserItem,
  WaitingMessage,
} from "../src/messages";
import { duration, hasFailed } from "../src/exit";
import type { PermissionOption, PlanEntry, ToolStatus } from "../src/protocol";
import { visible } from "../src/safe";
import { triedText } from "../src/trial";
import { chip } from "./chips";
import { diffTable } from "./diff";
import { type Child, CONTROL, h, Slot } from "./dom";
import { icon, type IconName, kindIcons } from "./icons";
import { styled } from "./styled";
import { TextView } from "./text";
import { t } from "./words";

export type Send = (message: Action) => void;

export interface ItemView {
  readonly element: HTMLElement;
  put(item: Item): void;
  append(text: string): void;
}

export function viewOf(item: Item, send: Send): ItemView {
  switch (item.kind) {
    case "user":
      return new UserView(item, send);
    case "answer":
    case "thought":
      return new TextView(item, send);
    case "tool":
      return new ToolView(item, send);
    case "plan":
      return new PlanView(item);
    case "notice":
      return new CardView(item, (one) => notice(one as NoticeItem, send));
    case "error":
      return new CardView(item, (one) => errorCard(one as ErrorItem, send));
  }
}

/** A card whose buttons can be removed. */
class CardView implements ItemView {
  readonly element = h("div", { class: "contents" });

  constructor(
    item: Item,
    private readonly render: (item: Item) => HTMLElement,
  ) {
    this.put(item);
  }

  put(item: Item): void {
    this.element.replaceChildren(this.render(item));
  }

  append(): void {}
}

function userMessage({ text, context }: Pick<UserItem, "text" | "context">, ...more: Child[]): HTMLElement {
  const tried = triedText(text);
  const trial = tried !== undefined && h("span", { class: "chip" }, icon("beaker"), t("Private copy"));
  const chips = [trial, ...context.map((one) => chip(one))].filter((one) => one !== false);
  return h(
    "article",
    { class: "user", "aria-label": t("You") },
    chips.length > 0 && h("div", { class: "chips" }, ...chips),
    h("div", { class: "user-text" }, visible(tried ?? text)),
    ...more,
  );
}

/** A prompt. Once its turn is known, the conversation can be restored to before it. */
class UserView implements ItemView {
  readonly element: HTMLElement;
  private readonly actions = h("div", { class: "actions", role: "group", "aria-label": t("Actions for this prompt") });

  constructor(item: UserItem, send: Send) {
    const button = (name: IconName, how: "edit" | "again", words: string) =>
      iconButton(name, words, () => send({ type: "goBack", id: item.id, how }));
    this.actions.append(
      button("edit", "edit", t("Edit: rewind the files and the session to before this prompt")),
      button("refresh", "again", t("Send again: rewind the files and the session to before this prompt")),
    );
    this.element = userMessage(item, this.actions);
    this.put(item);
  }

  put(item: Item): void {
    this.actions.hidden = item.kind !== "user" || item.turn === undefined || item.isCut === true;
  }

  append(): void {}
}

/** A message the model has not seen yet. It can be moved back to the input. */
export function waitingMessage(message: WaitingMessage, index: number, send: Send): HTMLElement {
  const says = message.joins ? t("Sent after the current step") : t("Queued");
  const back = iconButton("edit", t("Edit"), () => send({ type: "returnToInput", index }));
  return userMessage(message, h("div", { class: "waits" }, h("span", {}, says), back));
}

function notice({ id, text, remedies }: NoticeItem, send: Send): HTMLElement {
  return h("div", { class: "notice" }, h("p", {}, ...quoting(text)), remedyButtons(remedies, send, id));
}

const remedyNames: Record<Remedy, string> = {
  retry: t("Try Again"),
  continue: t("Continue"),
  undo: t("Undo"),
  redo: t("Redo"),
  folder: t("Open Folder"),
  model: t("Choose Model…"),
  setup: t("Set Up Model"),
  build: t("Build It (2–10 min)"),
  program: t("Select Executable…"),
  settings: t("Open Settings"),
  log: t("Show Log"),
};

/** Without an id it is the view's own error. */
export function errorCard(error: Pick<ErrorItem, "text" | "details" | "remedies"> & { id?: number }, send: Send): HTMLElement {
  const { text, details, remedies, id } = error;
  const words = (of: string) => h("div", { class: "error-text" }, ...quoting(of));
  const more = details !== undefined && h("details", {}, h("summary", {}, t("Details")), words(details));
  return h("section", { class: "error" }, icon("error"), h("div", {}, words(text), remedyButtons(remedies, send, id), more));
}

/** What stands between backticks is code. */
function quoting(text: string): Child[] {
  return visible(text)
    .split(/`([^`\n]+)`/)
    .map((part, index) => (index % 2 === 0 ? part : h("code", {}, part)));
}

function remedyButtons(remedies: readonly Remedy[], send: Send, id: number | undefined): Child {
  const click = (remedy: Remedy) => () => send({ type: "remedy", remedy, ...(id !== undefined && { id }) });
  const buttons = remedies.map((remedy) => h("button", { type: "button", class: "button", click: click(remedy) }, remedyNames[remedy]));
  return buttons.length > 0 && h("div", { class: "buttons" }, ...buttons);
}

const statusIcons: Record<ToolStatus, { name: IconName; says: string }> = {
  pending: { name: "circle", says: t("pending") },
  in_progress: { name: "loading", says: t("running") },
  completed: { name: "check", says: t("done") },
  failed: { name: "close", says: t("failed") },
};

/** The mark of a background command and its words; without one its server is gone. */
export function look(job: Partial<Pick<JobView, "state" | "exitCode">>): { name: IconName; says: string } {
  const { state, exitCode } = job;
  if (state === "running") {
    return { name: "loading", says: t("running in the background") };
  }
  if (state === "stopped") {
    return { name: "stop", says: t("stopped") };
  }
  if (state === undefined) {
    return { name: "circle", says: t("started in the background") };
  }
  return exitCode === 0
    ? { name: "check", says: t("done") }
    : { name: "close", says: exitCode == null ? t("exit status unknown") : t("exit code {0}", exitCode) };
}

/** If there are diffs of more files than this, each is folded to a line. */
const OPEN_FILES = 4;
/** With more, the rest of the files is folded to one line. */
const LISTED_FILES = 10;
/** How many lines of a running command's output are shown. */
const LIVE_LINES = 12;

/** With Ctrl+K or ⌘K, what answers the first request for approval. */
const KEYS: Partial<Record<PermissionOption["kind"], string>> = { allow_once: "Y", reject_once: "N" };

class ToolView implements ItemView {
  readonly element = h("section", { class: "tool" });
  private readonly head = new Slot("tool-head");
  private readonly body = new Slot("tool-body");
  private readonly question = new Slot("question");
  private folded: boolean | undefined;
  private item: ToolItem;

  constructor(
    item: ToolItem,
    private readonly send: Send,
  ) {
    this.element.append(this.head.element, this.body.element, this.question.element);
    this.item = item;
    this.put(item);
  }

  put(item: ToolItem): void {
    this.item = item;
    this.element.dataset["kind"] = item.toolKind;
    this.element.dataset["status"] = this.status();
    this.element.classList.toggle("asked", item.isAsked === true);
    const { diffs, output, styles, question, ...head } = item;
    const counts = { added: sum(diffs, "added"), removed: sum(diffs, "removed") };
    const asking = question !== undefined;
    this.element.classList.toggle("card", diffs.length > 0 || asking);
    this.element.classList.toggle("asking", asking);
    this.element.setAttribute("aria-label", visible(item.title));
    this.head.set({ ...head, asking, counts, hasBody: this.hasBody(), open: this.isOpen() }, () => this.drawHead(counts));
    this.body.element.hidden = !this.isOpen();
    this.element.classList.toggle("open", this.isOpen());
    this.element.classList.toggle("below", this.isBelow());
    const shown = this.isLive() ? lastLines(output, LIVE_LINES) : output;
    this.body.set({ diffs, shown, styles }, () => [
      ...(diffs.length > OPEN_FILES
        ? this.drawFiles(diffs)
        : diffs.map((diff, index) => diffTable(diff, diffs.length > 1 && this.drawPath(diff, index)))),
      ...this.drawOutput(shown, this.isLive() ? [] : styles),
    ]);
    this.question.element.hidden = !asking;
    this.question.set(question, () => (question ? this.drawQuestion(question) : []));
  }

  append(): void {}

  /** For changes or a command that require approval, the description is below; a file in the request can be opened where it is named. */
  private drawOutput(shown: string, styles: ToolItem["styles"]): Child[] {
    const { question, command = "", location, diffs } = this.item;
    const at = question === undefined || location === undefined ? -1 : shown.indexOf(location.path);
    if (location !== undefined && at !== -1) {
      const click = () => this.send({ type: "open", location });
      const file = h("button", { type: "button", class: "link", click }, visible(location.path));
      return [h("p", { class: "facts" }, visible(shown.slice(0, at)), file, visible(shown.slice(at + location.path.length)))];
    }
    const asked = question !== undefined;
    const isNote = asked && command === "" && diffs.length > 0;
    const facts = isNote ? shown : asked && command !== "" && shown.startsWith(`${command}\n`) ? shown.slice(command.length + 1) : "";
    const output = isNote ? "" : facts === "" ? shown : command;
    return [
      output !== "" && h("pre", { class: "output", tabindex: "0" }, ...styled(output, styles)),
      facts !== "" && h("p", { class: "facts" }, visible(facts)),
    ];
  }

  private hasBody(): boolean {
    return this.item.diffs.length > 0 || this.item.output !== "";
  }

  /** Diffs, permission requests, answers and the output of a running command are shown; other output is folded until the user opens it. */
  private isOpen(): boolean {
    const { diffs, question, isAsked } = this.item;
    return this.hasBody() && !(this.folded ?? (diffs.length === 0 && question === undefined && !isAsked && !this.isLive()));
  }

  /** Its command is not in the head, but in the body. */
  private isBelow(): boolean {
    return this.item.question !== undefined && this.item.command !== undefined && this.isOpen();
  }

  private isLive(): boolean {
    return this.item.toolKind === "execute" && this.item.status === "in_progress";
  }

  /** The command that goes on after its call. */
  private job(): ToolItem["background"] {
    const { exit, status, background } = this.item;
    return status === "completed" && exit === undefined ? background : undefined;
  }

  private status(): string {
    const { exit, status } = this.item;
    const job = this.job();
    if (job !== undefined && job.state !== "exited") {
      return "background";
    }
    const isBad = exit !== undefined ? hasFailed(exit) : job !== undefined && job.exitCode !== 0;
    return isBad ? "failed" : status;
  }

  private drawHead({ added, removed }: { added: number; removed: number }): Child[] {
    const { id, title, location, toolKind, diffs, command, exit, background, question } = this.item;
    const words = visible(title);
    const { name, says } = this.state();
    return [
      icon(kindIcons[toolKind], "kind"),
      location === undefined
        ? h("span", { class: "title", title: words }, ...withCode(words, command, this.isOpen(), this.isBelow()))
        : h(
            "button",
            { type: "button", class: "title link", title: visible(location.path), click: () => this.send({ type: "open", location }) },
            words,
          ),
      h(
        "span",
        { class: "ends" },
        added + removed > 0 && lineCounts(added, removed),
        diffs.length > 0 && iconButton("diff", t("Open diff in the editor"), () => this.send({ type: "showDiff", id, index: 0 })),
        command !== undefined && iconButton("play", t("Run in Terminal"), () => this.send(inTerminal(command))),
        this.isLive() &&
          question === undefined &&
          iconButton("arrowDown", t("Run in Background"), () => this.send({ type: "runInBackground", id })),
        background !== undefined && exit === undefined && h("span", { class: "exit" }, question ? t("in the background") : says),
        exit !== undefined && h("span", { class: "exit" }, hasFailed(exit) ? `${says} · ${duration(exit)}` : duration(exit)),
        h(
          "span",
          { class: "status", title: says },
          icon(name, name === "loading" ? "spin" : ""),
          h("span", { class: "hidden-text" }, says),
        ),
        this.hasBody() && this.drawFold(),
      ),
    ];
  }

  private state(): { name: IconName; says: string } {
    const { status, question, exit } = this.item;
    const job = this.job();
    if (question !== undefined) {
      return { name: "question", says: t("waiting for your answer") };
    }
    if (job !== undefined) {
      return look(job);
    }
    if (exit === undefined || !hasFailed(exit)) {
      return statusIcons[status];
    }
    return { name: "close", says: exit.code == null ? t("exit status unknown") : t("exit code {0}", exit.code) };
  }

  /** Names one of several diffs, and opens it. */
  private drawPath({ path }: DiffView, index: number, words = visible(path)): HTMLElement {
    const click = () => this.send({ type: "showDiff", id: this.item.id, index });
    return h("button", { type: "button", class: "diff-path link", title: t("Open diff in the editor"), click }, words);
  }

  private drawFiles(diffs: readonly DiffView[]): HTMLElement[] {
    const files = diffs.map((diff, index) => this.drawFile(diff, index));
    const more = files.splice(LISTED_FILES);
    const counted = h("summary", {}, t("{0} more files", more.length));
    return more.length === 0 ? files : [...files, h("details", { class: "diff-file more" }, counted, ...more)];
  }

  /** One of many files; its diff is drawn when it is unfolded. */
  private drawFile(diff: DiffView, index: number): HTMLElement {
    const summary = h("summary", {}, h("span", { class: "file" }, visible(diff.path)), lineCounts(diff.added, diff.removed));
    const file = h("details", { class: "diff-file" }, summary);
    file.addEventListener("toggle", () => file.append(diffTable(diff, this.drawPath(diff, index, t("Open diff in the editor")))), {
      once: true,
    });
    return file;
  }

  private drawFold(): HTMLElement {
    const open = this.isOpen();
    const button = iconButton("chevron", open ? t("Fold") : t("Unfold"), () => {
      this.folded = open;
      this.put(this.item);
      this.head.element.querySelector<HTMLElement>(".fold")?.focus();
    });
    button.classList.add("fold");
    button.setAttribute("aria-expanded", String(open));
    return button;
  }

  private drawQuestion({ options, mixed }: Question): Child[] {
    const { id } = this.item;
    const warning = t("Check carefully: {0} mixes letters of different scripts.", mixed.map((word) => `“${word}”`).join(", "));
    const button = (option: PermissionOption) => {
      const { kind, optionId, name } = option;
      const key = options.find((one) => one.kind === kind) === option && !optionId.startsWith("answer_") ? KEYS[kind] : undefined;
      const title = key && `${CONTROL}K ${CONTROL}${key}`;
      return h(
        "button",
        { type: "button", class: `button ${kind}`, title, click: () => this.send({ type: "answer", id, optionId }) },
        visible(name),
      );
    };
    return [
      mixed.length > 0 && h("p", { class: "warning" }, icon("warning"), warning),
      h("div", { class: "buttons", role: "group", "aria-label": t("tandem needs your approval") }, ...options.map(button)),
    ];
  }
}

function lineCounts(added: number, removed: number): HTMLElement {
  return h("span", { class: "counts" }, h("span", { class: "added" }, `+${added}`), h("span", { class: "removed" }, `−${removed}`));
}

function inTerminal(text: string): Action {
  return { type: "code", action: "run", text, language: "" };
}

/** A title that quotes its command shows it as code, with its lines where there is room; where it is shown below, it asks. */
function withCode(title: string, command: string | undefined, isOpen: boolean, isBelow: boolean): Child[] {
  const [from, to] = [title.indexOf("`"), title.lastIndexOf("`")];
  if (command === undefined || from === to) {
    return [title];
  }
  const more = title.slice(to + 1);
  if (isBelow) {
    return [t("Allow tandem to run this command?"), more];
  }
  return [title.slice(0, from), h("code", {}, isOpen ? visible(command) : title.slice(from + 1, to)), more];
}

function lastLines(text: string, count: number): string {
  const lines = text.trimEnd().split("\n");
  return lines.length <= count ? text : ["…", ...lines.slice(-count)].join("\n");
}

function sum(diffs: readonly DiffView[], what: "added" | "removed"): number {
  return diffs.reduce((total, diff) => total + diff[what], 0);
}

export function iconButton(name: IconName, label: string, click: () => void): HTMLButtonElement {
  return h("button", { type: "button", class: "icon-button", title: label, "aria-label": label, click }, icon(name));
}

const planIcons: Record<PlanEntry["status"], IconName> = { pending: "circle", in_progress: "loading", completed: "passed" };

class PlanView implements ItemView {
  readonly element: HTMLElement;
  private readonly slot = new Slot("contents");

  constructor(item: PlanItem) {
    this.element = h("section", { class: "plan card", "aria-label": t("Plan") }, this.slot.element);
    this.put(item);
  }

  put({ entries }: PlanItem): void {
    const done = entries.filter(({ status }) => status === "completed").length;
    this.slot.set(entries, () => [
      h("div", { class: "plan-head" }, t("Plan"), h("span", { class: "counts" }, t("{0} of {1}", done, entries.length))),
      h("ol", {}, ...entries.map(planRow)),
    ]);
  }

  append(): void {}
}

const planStates: Record<PlanEntry["status"], string> = {
  pending: t("pending"),
  in_progress: t("in progress"),
  completed: t("completed"),
};

function planRow({ content, status }: PlanEntry): HTMLElement {
  const mark = icon(planIcons[status], status === "in_progress" ? "spin" : "");
  return h("li", { "data-status": status }, mark, h("span", {}, visible(content)), h("span", { class: "hidden-text" }, planStates[status]));
}
