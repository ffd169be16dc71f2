/** The background commands of the conversation, above the input: what runs, for how long, on which ports, and what it printed last. */
import type { JobView } from "../src/messages";
import { visible } from "../src/safe";
import { type Child, h, Slot } from "./dom";
import { icon } from "./icons";
import { iconButton, look, type Send } from "./items";
import { t } from "./words";

export class JobStrip {
  readonly element = h("section", { class: "jobs", "aria-label": t("Background commands") });
  private readonly rows = new Map<number, Row>();

  constructor(private readonly send: Send) {
    setInterval(() => this.rows.forEach((row) => row.tick()), 1000);
  }

  draw(jobs: readonly JobView[]): void {
    this.element.hidden = jobs.length === 0;
    for (const [id, row] of this.rows) {
      if (!jobs.some((job) => job.id === id)) {
        row.element.remove();
        this.rows.delete(id);
      }
    }
    for (const job of jobs) {
      const row = this.rows.get(job.id) ?? new Row(this.send);
      this.rows.set(job.id, row);
      if (!row.element.isConnected) {
        this.element.append(row.element); // moved, it would lose the focus and its place in the output
      }
      row.put(job);
    }
  }
}

class Row {
  private readonly head = new Slot("job-head");
  private readonly age = h("span", { class: "age" });
  private readonly output = h("pre", { class: "output", tabindex: "0" });
  readonly element = h("div", { class: "job" }, this.head.element, this.output);
  private job: JobView | undefined;
  private isOpen = false;

  constructor(private readonly send: Send) {}

  put(job: JobView): void {
    this.job = job;
    const { output, ...head } = job;
    this.element.dataset["state"] = job.state;
    this.head.set({ ...head, isOpen: this.isOpen }, () => this.drawHead(job));
    const lines = visible(output).trimEnd();
    const shown = this.isOpen ? lines : lines.slice(lines.lastIndexOf("\n") + 1);
    this.output.hidden = shown === "";
    this.output.classList.toggle("last", !this.isOpen);
    if (this.output.textContent !== shown) {
      const { scrollTop, scrollHeight, clientHeight } = this.output;
      const follows = scrollHeight - scrollTop - clientHeight < 10;
      this.output.textContent = shown;
      this.output.scrollTop = follows ? this.output.scrollHeight : scrollTop;
    }
    this.tick();
  }

  tick(): void {
    if (this.job?.state === "running") {
      this.age.textContent = age(Date.now() - this.job.startedAt);
    }
  }

  private drawHead(job: JobView): Child[] {
    const { id, command, state, ports } = job;
    const words = visible(command);
    const { name, says } = look(job);
    const act = (what: "stop" | "terminal") => () => this.send({ type: "job", what, id });
    const fold = iconButton("chevron", this.isOpen ? t("Hide output") : t("Output"), () => this.toggle());
    fold.classList.add("fold");
    fold.setAttribute("aria-expanded", String(this.isOpen));
    const end = h("span", { class: "age" }, says);
    return [
      h("span", { class: "status", title: says }, icon(name, name === "loading" ? "spin" : "")),
      h("code", { class: "title", title: words }, words),
      h(
        "span",
        { class: "ends" },
        h("span", { class: "ports" }, ...ports.map((port) => this.drawPort(id, port))),
        state === "running" ? h("span", {}, h("span", { class: "hidden-text" }, says), this.age) : end,
        iconButton("terminal", t("Open in Terminal"), act("terminal")),
        state === "running" && iconButton("stop", t("Stop this command"), act("stop")),
        fold,
      ),
    ];
  }

  private drawPort(id: number, port: number): HTMLElement {
    const title = t("Open port {0} in the browser", port);
    return h("button", { type: "button", class: "link", title, click: () => this.send({ type: "openPort", id, port }) }, `:${port}`);
  }

  private toggle(): void {
    this.isOpen = !this.isOpen;
    if (this.job !== undefined) {
      this.put(this.job);
    }
    this.output.scrollTop = this.output.scrollHeight;
  }
}

/** `42 s`, `3 min`, `2 h 5 min`. */
export function age(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes === 0) {
    return `${Math.max(0, Math.floor(milliseconds / 1000))} s`;
  }
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
