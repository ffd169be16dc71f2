// The models of VS Code, here those of another extension: chosen in the setup form, prompted, cancelled, their edits undone.
import assert from "node:assert/strict";
import { exactly } from "./workbench.mjs";

/** The file the model edits (linter/models.js); no other check uses it. */
const OFFER = "src/offer.ts";
const TEXT = 'export const offer = "5 EUR";\n';

export function modelChecks({ bench, model, settings, picture }) {
  async function chosen() {
    const { chat } = bench;
    await bench.newSession();
    bench.configure({}); // without a configured model, the chosen one is the only one
    await exactly(chat.locator(".composer select.model"), 0); // the server has restarted
    await bench.command("tandem: Set Up Model");
    const form = chat.getByRole("form", { name: "Set up a model" });
    await form.locator("[name=provider]").selectOption("anthropic");
    await form.locator("[name=key]").evaluate((key) => (key.value = "typed for Anthropic"));
    await form.locator("[name=provider]").selectOption("vscode");
    assert.equal(await form.locator("[name=key]").inputValue(), "", "another provider is not sent the key");
    await form.getByText("1 model found.").waitFor();
    await exactly(form.locator("[name=key]:visible"), 0);
    await picture("vscode-models");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "hidden" });
  }

  async function edited() {
    const { chat } = bench;
    await model.reset();
    bench.save(OFFER, TEXT);
    await bench.openFile("offer.ts");
    await bench.newSession();
    await bench.say("Sell in dollars.");
    await chat.locator(".answer strong", { hasText: "pencil" }).waitFor();
    await chat.getByRole("button", { name: "Allow", exact: true }).click();
    await chat.locator(".answer", { hasText: "The result: " }).waitFor();
    await bench.idle();
    await bench.bufferIs(TEXT.replace("EUR", "USD"));
    await picture("vscode-models-answer");
    assert.equal((await model.state()).requests.length, 0, "nothing went anywhere else");
    await bench.command("tandem: Undo Last Turn");
    await bench.bufferIs(TEXT);
  }

  async function cancelled() {
    const { chat } = bench;
    await bench.say("Tell me a story.");
    await chat.locator(".answer", { hasText: "Once upon a time" }).waitFor();
    await chat.getByRole("button", { name: "Stop" }).click();
    await bench.idle();
    await bench.say("How often?");
    await chat.locator(".answer", { hasText: "Cancelled 1 times." }).waitFor();
    await bench.idle();
    bench.configure(settings);
    await chat.locator(".notice", { hasText: "Settings changed: a new session has started" }).waitFor();
  }

  return [
    ["the setup form offers the models of VS Code", chosen],
    ["a model of VS Code answers, and its edit is approved", edited],
    ["a model of VS Code is cancelled", cancelled],
  ];
}
