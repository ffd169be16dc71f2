/** The form that sets up a model: provider, key, model, a test; then the first question. */
import type { Setup, ToView } from "../src/messages";
import { visible } from "../src/safe";
import type * as wire from "../src/wire-types";
import { focus, h } from "./dom";
import type { Send } from "./items";
import { t } from "./words";

/** An endpoint that is not in the provider table. */
const CUSTOM = "custom";

type Answer = Extract<ToView, { type: "setup" | "setupModels" | "setupChecked" }>;

export class SetupForm {
  readonly element = h("form", { class: "setup", hidden: true, "aria-label": t("Set up a model") });
  private readonly provider = h("select", { name: "provider", change: () => this.providerChosen() });
  private readonly address = h("input", { name: "address", type: "url", placeholder: "https://…/v1", change: () => this.askModels() });
  private readonly key = h("input", { name: "key", type: "password", autocomplete: "off", change: () => this.askModels() });
  private readonly model = h("input", { name: "model", list: "models", autocomplete: "off", spellcheck: "false" });
  private readonly models = h("datalist", { id: "models" });
  private readonly addressRow = row(t("Base URL"), this.address);
  private readonly keyRow = row(t("API key"), this.key);
  private readonly status = h("div", { class: "setup-status", role: "status" });
  private providers: readonly wire.ProviderInfo[] = [];
  /** The model that is used where none is chosen: the best one the provider offers. */
  private suggested = "";
  private request = 0;
  /** Why there is no list of models. */
  private problem: string | undefined;

  constructor(
    private readonly send: Send,
    private readonly done: () => void,
    /** Whether there is a draft. */
    private readonly isWriting: () => boolean,
  ) {
    const button = (name: string, click: () => void, look = "") => h("button", { type: "button", class: `button ${look}`, click }, name);
    this.element.append(
      h("h2", {}, t("Set up a model")),
      row(t("Provider"), this.provider),
      this.addressRow,
      this.keyRow,
      row(t("Model"), this.model),
      this.models,
      this.status,
      h(
        "div",
        { class: "buttons" },
        button(t("Save"), () => this.submit("save"), "allow_once"),
        button(t("Test"), () => this.submit("check")),
        button(t("Cancel"), () => this.close()),
      ),
    );
    this.element.addEventListener("submit", (event) => event.preventDefault());
    this.element.addEventListener("keydown", (event) => this.typed(event));
  }

  take(answer: Answer): void {
    if (answer.type === "setup") {
      this.open(answer.providers);
      const isIn = this.element.contains(document.activeElement);
      if (!isIn && (answer.isAsked || !this.isWriting())) {
        focus(this.provider);
      }
    } else if (answer.request === this.request) {
      this.status.replaceChildren(...(answer.type === "setupModels" ? this.offer(answer) : findings(answer)));
    }
  }

  close(): void {
    this.key.value = "";
    this.element.hidden = true;
    this.done();
  }

  private open(providers: readonly wire.ProviderInfo[]): void {
    if (!this.element.hidden) {
      return; // what is in it stays
    }
    this.providers = providers;
    const names = providers.map(({ name, title, foundLocally }) =>
      h("option", { value: name }, foundLocally ? t("{0} (running on this machine)", visible(title)) : visible(title)),
    );
    this.provider.replaceChildren(...names, h("option", { value: CUSTOM }, t("Other endpoint…")));
    this.element.hidden = false;
    this.providerChosen();
  }

  private providerChosen(): void {
    const known = this.chosen();
    this.provider.title = this.provider.selectedOptions[0]?.textContent ?? ""; // its name can be longer than the side bar is wide
    this.addressRow.hidden = known?.baseUrl != null;
    this.keyRow.hidden = known?.needsKey === false;
    this.key.value = ""; // a key goes only to the provider that it was typed for
    this.model.value = "";
    this.suggest("");
    this.models.replaceChildren();
    this.status.replaceChildren();
    this.askModels();
  }

  private chosen(): wire.ProviderInfo | undefined {
    return this.providers.find(({ name }) => name === this.provider.value);
  }

  private values(): Setup {
    const address = this.addressRow.hidden ? "" : this.address.value.trim();
    return {
      provider: this.provider.value,
      model: this.model.value.trim() || this.suggested,
      apiKey: this.key.value.trim(),
      baseUrl: address,
    };
  }

  private askModels(): void {
    const { apiKey, baseUrl } = this.values();
    const isReady = (this.keyRow.hidden || apiKey !== "" || !this.addressRow.hidden) && (this.addressRow.hidden || baseUrl !== "");
    if (isReady) {
      this.ask("models", t("Looking for models…"));
    } else {
      this.status.replaceChildren(t("Enter the {0} to see the available models.", this.addressRow.hidden ? t("API key") : t("Base URL")));
    }
  }

  private ask(what: "models" | "check" | "save", words: string): void {
    this.request++;
    this.problem = undefined;
    this.status.replaceChildren(words);
    this.send({ type: "setup", what, request: this.request, values: this.values() });
  }

  private submit(what: "check" | "save"): void {
    if (this.values().model === "") {
      if (this.problem === undefined) {
        this.status.replaceChildren(t("Choose a model first."));
      } // else it says why there is none to choose
      this.model.focus();
    } else {
      this.ask(what, what === "check" ? t("Testing…") : t("Saving…"));
    }
  }

  private offer({ models, problem }: Extract<Answer, { type: "setupModels" }>): (Node | string)[] {
    this.models.replaceChildren(...models.map(({ id, ...about }) => h("option", { value: id }, details(about))));
    // For an endpoint that tandem does not know, the order of the models means nothing.
    const isKnown = models.length === 1 || this.chosen() !== undefined;
    this.suggest((isKnown && models[0]?.id) || "");
    this.problem = problem;
    if (problem !== undefined) {
      return [visible(problem)];
    }
    return [models.length === 1 ? t("1 model found.") : t("{0} models found. Type to search.", models.length)];
  }

  private suggest(model: string): void {
    this.suggested = model;
    this.model.placeholder = visible(model);
  }

  private typed(event: KeyboardEvent): void {
    if (event.key === "Enter" && event.target !== this.provider && !(event.target instanceof HTMLButtonElement)) {
      event.preventDefault();
      this.submit("save");
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
    }
  }
}

function row(label: string, field: HTMLElement): HTMLElement {
  return h("label", {}, h("span", {}, label), field);
}

/** Window and price, as far as they are known. */
function details({ contextWindow, price }: Omit<wire.ModelInfo, "id">): string {
  const window = contextWindow == null ? "" : t("{0}k tokens", Math.round(contextWindow / 1000));
  const cost = price == null ? "" : t("${0} in, ${1} out per million tokens", price.input, price.output);
  return [window, cost].filter(Boolean).join(", ");
}

function findings({ findings, problem }: Extract<Answer, { type: "setupChecked" }>): (Node | string)[] {
  if (problem !== undefined) {
    return [visible(problem)];
  }
  const marks = { good: "✓", warning: "!", bad: "✗" };
  return findings.map(({ check, verdict, found, advice }) =>
    h(
      "div",
      { class: `finding ${verdict}` },
      `${marks[verdict]} ${visible(check)}: ${visible(found)}`,
      advice != null && h("div", { class: "advice" }, `→ ${visible(advice)}`),
    ),
  );
}
