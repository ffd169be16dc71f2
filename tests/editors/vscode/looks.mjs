// The chat in windows of other sizes and themes, and in long conversations; and what the buttons of the chat open.
import assert from "node:assert/strict";
import { exactly, until } from "./workbench.mjs";

const NARROW_PX = 180;
const WIDE_PX = 440;

/** The checks, in order, each a name and a function. */
export function looksChecks({ bench, model, picture }) {
  const { chat, page } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const write = (text) => ({ call: { id: `call_${text}`, name: "write_file", arguments: { path: "long.txt", content: `${text}\n` } } });
  const edit = { call: { id: "call_look", name: "edit_file", arguments: { path: "looks.txt", edits: [{ old_text: "alpha beta", new_text: "alpha gamma" }] } } };

  async function highContrast() {
    await model.reset();
    await bench.newSession();
    bench.save("looks.txt", "alpha beta\n");
    await bench.setMode("ask");
    await model.script([{ call: { id: "call_read", name: "read_file", arguments: { path: "looks.txt" } } }], [edit], [{ text: "As you wish." }]);
    await bench.say("Say gamma.");
    const card = chat.locator(".asking");
    await card.locator(".question button").first().waitFor();
    await bench.theme("Dark High Contrast");
    await until(card, (element) => getComputedStyle(element).borderTopWidth === "2px");
    await until(card.locator(".line.added"), (element) => getComputedStyle(element).outlineStyle === "solid");
    await until(card.locator(".line.removed"), (element) => getComputedStyle(element).outlineStyle === "dashed");
    await picture("high-contrast");
    await bench.theme("Dark Modern");
  }

  /** All requests and buttons are inside the window. */
  async function narrow() {
    await bench.widenSideBar(NARROW_PX);
    const card = chat.locator(".asking");
    await until(chat.locator("main"), ({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth);
    for (const button of await card.locator(".question button").all()) {
      await until(button, (one) => one.getBoundingClientRect().right <= innerWidth && one.scrollWidth <= one.clientWidth);
    }
    for (const control of await chat.locator(".composer :is(button, select)").all()) {
      await until(control, (one) => one.hidden || (one.getBoundingClientRect().right <= innerWidth && one.clientWidth > 20));
    }
    await until(chat.locator(".composer select.mode"), ({ clientWidth }) => clientWidth > 40); // it is legible
    await picture("narrow-edit");
    await card.locator(".question button", { hasText: /reject/i }).click();
    await answer("As you wish.").waitFor();
    await bench.idle();
    for (const width of [220, 320, 420, WIDE_PX]) {
      await bench.widenSideBar(width);
      for (const picker of ["mode", "model"]) {
        await until(chat.locator(`.composer select.${picker}`), isWhole);
      }
    }
    const models = chat.locator('.composer select.model[title$=" custom/qwen3-coder"]');
    await models.locator("option[selected]", { hasText: /^qwen3-coder$/ }).waitFor({ state: "attached" }); // all have the provider, which takes up room
  }

  /** What is chosen in it is read to its end. */
  function isWhole(select) {
    const whole = select.cloneNode(true);
    whole.value = select.value;
    whole.style.cssText = "position: absolute; max-width: none";
    select.parentElement.append(whole);
    const { offsetWidth } = whole;
    whole.remove();
    return offsetWidth > 0 && select.offsetWidth >= offsetWidth;
  }

  /** The buttons on a prompt hide no word of it, and a wide table's scroll bar is visible without a pointer. */
  async function nothingHidden() {
    await model.script([{ text: `| ${"wide | ".repeat(40)}\n| ${"--- | ".repeat(40)}\n| ${"cell | ".repeat(40)}\n\nA table.` }]);
    await bench.say("word ".repeat(40).trim());
    await answer("A table.").waitFor();
    await bench.idle();
    await until(chat.locator(".answer .table").last(), (table) => table.offsetHeight > table.firstElementChild.offsetHeight + 5);
    const prompt = chat.locator(".user").last();
    await prompt.hover();
    await until(prompt.locator(".actions"), (buttons) => getComputedStyle(buttons).opacity === "1");
    const isClear = ({ parentElement }) => {
      const range = document.createRange();
      range.selectNodeContents(parentElement.querySelector(".user-text"));
      const bar = parentElement.querySelector(".actions").getBoundingClientRect();
      return [...range.getClientRects()].every(({ top, right }) => top >= bar.bottom || right <= bar.left);
    };
    await until(prompt.locator(".actions"), isClear);
    await picture("prompt-buttons");
  }

  /** The view of changes takes half of the chat's height: the end of the answer must stay visible. */
  async function followed() {
    await bench.keepAll();
    await bench.newSession();
    await bench.setMode("edit");
    const long = Array.from({ length: 30 }, (_, index) => `Paragraph ${index} of a long answer.`).join("\n\n");
    await model.script([{ text: long }, write("one")], [{ text: `${long}\n\nThe very last word.` }]);
    await bench.say("Write at length.");
    await answer("The very last word.").waitFor();
    await bench.idle();
    await page.locator(".pane-header", { hasText: "Changes" }).waitFor();
    await until(answer("The very last word.").last(), (element) => element.getBoundingClientRect().bottom <= document.querySelector("main").getBoundingClientRect().bottom + 60);
    await exactly(chat.locator(".jump:not([hidden])"), 0);
    await picture("followed");
    await bench.command("tandem: Reject All");
  }

  /** After scrolling up, by mouse or keyboard, new text moves nothing, and a button leads back to the end. */
  async function scrolledUp() {
    await model.script([{ text: "It begins here.\n\n" }, { gate: "more" }, { text: "More and more.\n\n".repeat(40) }, { text: "Now it ends." }]);
    await bench.say("And once more.");
    await model.state("gate:more");
    await answer("It begins here.").waitFor();
    await chat.locator("textarea").press("PageUp");
    await chat.locator(".jump:not([hidden])").waitFor();
    const before = await chat.locator("main").evaluate((main) => main.scrollTop);
    await model.open("more");
    await bench.idle();
    assert.equal(await chat.locator("main").evaluate((main) => main.scrollTop), before);
    await chat.getByRole("button", { name: "Scroll to the end" }).click();
    await until(answer("Now it ends."), (element) => element.getBoundingClientRect().bottom <= innerHeight);
    await exactly(chat.locator(".jump:not([hidden])"), 0);
  }

  /** In a remote window, such as this one, the effective settings are on a page of their own. */
  async function settings() {
    await bench.command("tandem: Open Settings");
    const item = page.locator(".settings-editor .setting-item-contents", { hasText: "Base Url" });
    await item.first().waitFor();
    await bench.command("View: Close Editor"); // others may be unsaved
  }

  async function otherModel() {
    await model.script([{ status: 404, body: { error: { message: "The model `qwen3-coder` does not exist" } } }], [{ text: "Another one answers." }]);
    await bench.say("Who is there?");
    const card = chat.locator(".list .error", { hasText: "does not exist" });
    const notListed = page.locator(".quick-input-list .monaco-list-row", { hasText: "could not be listed: try again" });
    await model.models("refuse");
    await card.getByRole("button", { name: "Choose Model…" }).click();
    await notListed.waitFor();
    await model.models("offer");
    await notListed.click();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "qwen3-coder" }).first().waitFor();
    await bench.choose("custom/test"); // not configured: the endpoint reports it
    await card.getByRole("button", { name: "Try Again" }).click();
    await answer("Another one answers.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.equal(requests.at(-1).model, "test");
    await bench.command("tandem: Set Model");
    await bench.choose("qwen3-coder");
  }

  return [
    ["high contrast: what is asked, added and removed has borders", highContrast],
    ["at 180 px nothing is beyond the edge", narrow],
    ["buttons hide no word of a prompt, and a wide table shows that it scrolls", nothingHidden],
    ["the end of an answer stays in sight when the changes appear", followed],
    ["scrolled up, the text stands still, and a button leads to the end", scrolledUp],
    ["Open Settings leads to the settings that count", settings],
    ["a model that does not exist is changed for another one", otherModel],
  ];
}
