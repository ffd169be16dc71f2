// Messages sent while a turn runs: queued, joined, returned; and help with writing them: commands, mentions, options.
import assert from "node:assert/strict";
import { TRY_MS, eventually, exactly, until } from "./workbench.mjs";

/** The checks, in order, each a name and a function. `typed` is in the open buffer, but not on disk. */
export function turnChecks({ bench, model, picture, typed }) {
  const { chat } = bench;
  const said = (text) => chat.locator(".list .user", { hasText: text });
  const waiting = (text) => chat.locator(".waiting .user", { hasText: text });
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const box = chat.locator("textarea");
  const options = chat.getByRole("listbox", { name: "Suggestions" }).getByRole("option");

  const shows = (text) => until(box, ({ value }, expected) => value === expected, text);

  async function sayNow(text) {
    await box.fill(text);
    await box.press("Alt+Enter");
    await shows("");
  }

  /** The server has processed everything it was sent. */
  async function serverIsUpToDate() {
    await box.fill("@");
    await options.first().waitFor();
    await box.fill("");
  }

  /** Types until this is offered: on a busy machine, the server may offer it only when asked again. */
  async function offered(text, option) {
    await eventually(async () => {
      await box.fill(text);
      await options.filter({ hasText: option }).first().waitFor({ timeout: TRY_MS });
    });
  }

  async function follows() {
    await model.script([{ text: "First" }, { gate: "queue" }, { text: " things first." }], [{ gate: "second" }, { text: "Second things second." }], [{ text: "Third." }]);
    await bench.say("One.");
    await model.state("gate:queue");
    await bench.say("Two.");
    await bench.say("Three.");
    await waiting("Two.").getByText("Queued").waitFor();
    await waiting("Three.").waitFor();
    await exactly(said("Two."), 0);
    await model.open("queue");
    await model.state("gate:second");
    await said("Two.").waitFor();
    await waiting("Two.").waitFor({ state: "detached" });
    await waiting("Three.").waitFor();
    await model.open("second");
    await answer("Third.").waitFor();
    await bench.idle();
    const order = await chat.locator(".group > :is(.user, .answer)").allInnerTexts();
    const expected = ["One.", "First things first.", "Two.", "Second things second.", "Three.", "Third."];
    assert.deepEqual(order.slice(-6), expected, "each is shown once, in its place");
  }

  async function joins() {
    const { requests: before } = await model.state();
    const read = { call: { id: "call_steer", name: "read_file", arguments: { path: "README.md" } } };
    await model.script([{ text: "I read it." }, { gate: "steer" }, read], [{ gate: "joined" }, { text: "Both, then." }]);
    await exactly(chat.getByRole("button", { name: /Send now/ }), 0); // offered only while a turn runs
    await bench.say("Read it.");
    await model.state("gate:steer");
    await box.fill("The second line, too.");
    await chat.getByRole("button", { name: /Send now/ }).click();
    await sayNow("And be short.");
    await waiting("The second line, too.").getByText("Sent after the current step").waitFor();
    await picture("steer");
    await serverIsUpToDate();
    await model.open("steer");
    await model.state("gate:joined");
    await said("And be short.").waitFor();
    await exactly(chat.locator(".waiting .user"), 0);
    await model.open("joined");
    await answer("Both, then.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.equal(requests.length, before.length + 2, "it is one turn");
    assert.match(JSON.stringify(requests.at(-1)), /The second line, too\.[\s\S]*And be short\./);
    const order = await chat.locator(".group > :is(.user, .answer, .tool)").allInnerTexts();
    assert.match(order.slice(-6).join("|"), /^Read it\.\|I read it\.\|.*README\.md.*\|The second line, too\.\|And be short\.\|Both, then\.$/s);
  }

  async function comesBack() {
    await model.script([{ text: "For ever" }, { hang: true }]);
    await bench.say("Go on for ever.");
    await answer("For ever").waitFor();
    await bench.say("Follows.");
    await sayNow("Joins.");
    await waiting("Joins.").getByRole("button", { name: "Edit" }).click();
    await shows("Joins.");
    await box.fill("");
    await sayNow("Joins.");
    await bench.say("Follows again.");
    await box.fill("A draft.");
    await waiting("Follows again.").getByRole("button", { name: "Edit" }).click();
    await waiting("Follows again.").waitFor({ state: "detached" });
    await chat.getByRole("button", { name: "Stop" }).click();
    await bench.idle();
    await until(box, ({ value }, expected) => value.split("\n\n").sort().join() === expected, "A draft.,Follows again.,Follows.,Joins.");
    assert.match(await box.inputValue(), /^A draft\./, "what comes back stands behind what is written");
    await exactly(said(/Follows|Joins/), 0);
    await exactly(chat.locator(".waiting .user"), 0);
    await box.fill("");
  }

  /** The person types on while a message returns. */
  async function typesOn() {
    await model.script([{ text: "Without end" }, { hang: true }]);
    await bench.say("Go on without end.");
    await answer("Without end").waitFor();
    await bench.say("Comes back.");
    await waiting("Comes back.").waitFor();
    await box.pressSequentially("Still typ");
    await box.press("Escape");
    await shows("Still typ\n\nComes back.");
    await bench.page.keyboard.type("ing");
    await shows("Still typing\n\nComes back.");
    await bench.idle();
    await box.fill("");
  }

  async function restarts() {
    await model.script([{ text: "On and on" }, { hang: true }]);
    await bench.say("Go on and on.");
    await answer("On and on").waitFor();
    await bench.say("Waits.");
    await waiting("Waits.").waitFor();
    const errors = await chat.locator(".list .error").count();
    await bench.command("tandem: Restart Server");
    await chat.locator(".notice", { hasText: "Stopped." }).last().getByRole("button", { name: "Continue" }).waitFor();
    await shows("Waits.");
    await bench.idle();
    await exactly(chat.locator(".list .error"), errors);
    await box.fill("");
  }

  /** The input tells screen readers which option is selected. */
  async function isActive(index) {
    await options.nth(index).and(chat.locator("[aria-selected=true]")).waitFor();
    await until(box, (input, id) => input.getAttribute("aria-activedescendant") === id, await options.nth(index).getAttribute("id"));
  }

  async function slash() {
    const { requests: before } = await model.state();
    await box.fill("/");
    await options.filter({ hasText: "/compact" }).waitFor();
    await isActive(0);
    await box.press("ArrowDown");
    await isActive(1);
    await picture("commands");
    await box.press("Escape");
    await exactly(options, 0);
    await until(box, (input) => !input.hasAttribute("aria-activedescendant"));
    await box.fill("/he");
    await options.filter({ hasText: "/help" }).waitFor();
    await exactly(options, 1);
    await box.press("Enter");
    await shows("/help ");
    await box.press("Enter");
    await answer("/compact").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.equal(requests.length, before.length, "no model was asked");
  }

  async function mentions() {
    await offered("What is in @pri", "src/price.ts");
    await box.press("Tab");
    await shows("What is in @src/price.ts ");
    await offered("What is in @src/price.ts and @#tota", "function total");
    await picture("mentions");
    await box.press("Enter");
    await shows("What is in @src/price.ts and @src/price.ts#L6-L8 ");
    await offered("What is in @src/price.ts, @src/price.ts#L6-L8 and @sr", "src/");
    await box.press("Tab");
    await options.filter({ hasText: "src/cart.ts" }).waitFor();
    await shows("What is in @src/price.ts, @src/price.ts#L6-L8 and @src/"); // after a folder, its contents are offered
    await box.press("Escape");
    await model.script([{ text: "Prices." }]);
    await box.press("Enter");
    await answer("Prices.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    const sent = JSON.stringify(requests.at(-1).messages.at(-1));
    assert.ok(sent.includes(`price: number; ${typed}`), "the file comes along as the editor has it");
  }

  async function effort() {
    await bench.command("tandem: Set Reasoning Effort");
    await bench.choose("High");
    await statusShows(/effort\sHigh/);
    await model.script([{ text: "Thought through." }]);
    await bench.say("Think hard.");
    await answer("Thought through.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.equal(requests.at(-1).reasoning_effort, "high");
    await bench.command("tandem: Set Model");
    await bench.choose("qwen3-coder");
    await statusShows(/effort\sHigh[\s\S]*Change: Mode · Model · Reasoning Effort/);
  }

  /** In its hover, which closes when the item is redrawn, and opens when the pointer comes. */
  async function statusShows(text) {
    await eventually(async () => {
      await bench.page.mouse.move(700, 300);
      await bench.page.locator(".statusbar-item", { hasText: "tandem" }).hover();
      await bench.page.locator(".workbench-hover", { hasText: text }).waitFor({ timeout: TRY_MS });
    });
  }

  return [
    ["a message sent during a turn is queued and runs next", follows],
    ["a message sent with Send Now joins the running turn", joins],
    ["Stop and Edit return queued messages to the input", comesBack],
    ["a message that returns leaves the cursor where the person types", typesOn],
    ["Restart Server stops the running turn and returns queued messages to the input", restarts],
    ["slash commands are suggested, chosen with the keys, and run", slash],
    ["files, definitions and folders are suggested as mentions and sent", mentions],
    ["the model and its effort are chosen from the palette", effort],
  ];
}
