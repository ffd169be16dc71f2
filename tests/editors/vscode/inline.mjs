// Edit in place: described below the lines, shown there as a diff, and in the document only when it is kept.
import assert from "node:assert/strict";
import { TRY_MS, eventually, until } from "./workbench.mjs";

export const STOCK = "src/stock.ts";
const LOW = "  return count < 10;";
const LOWER = "  return count <= 10;";
const LEFT = "  return `${count} left`;";
export const STOCK_TEXT = `export function low(count: number): boolean {
${LOW}
}

export function text(count: number): string {
${LEFT}
}
`;
const FIRST_HALF = STOCK_TEXT.split("\n").slice(0, 3).join("\n").replace(LOW, LOWER);
const SECOND_HALF = STOCK_TEXT.split("\n").slice(3, 7).join("\n").replace(" left", " in stock");

/** The checks, in order, each a name and a function. */
export function inlineChecks({ bench, model, picture }) {
  const { page } = bench;
  const widget = page.locator(".review-widget");
  const input = widget.locator(".comment-form .monaco-editor.focused");

  async function begin(instruction) {
    await bench.select("export function low", 7);
    await bench.command("tandem: Edit in Place");
    await say(instruction);
  }

  async function say(instruction) {
    await input.waitFor();
    await page.keyboard.type(`${instruction}\n`);
  }

  /** Keeps the edit. The input is redrawn after a change, and a key pressed earlier is lost. */
  async function enter() {
    await eventually(async () => {
      await input.waitFor({ timeout: TRY_MS });
      await page.keyboard.press("Enter");
      await widget.waitFor({ state: "detached", timeout: TRY_MS });
    });
  }

  async function isUntouched() {
    await widget.waitFor({ state: "detached" });
    await bench.bufferIs(STOCK_TEXT);
    await page.locator(".tab.active:not(.dirty)").waitFor();
  }

  async function kept() {
    await model.reset();
    await bench.openFile("stock.ts");
    await model.script([{ text: `\`\`\`ts\n${FIRST_HALF}\n` }, { gate: "inline" }, { text: `${SECOND_HALF}\n\`\`\`` }]);
    await begin("include 10 as low, and say in stock");
    await model.state("gate:inline");
    await widget.getByText("count <= 10").waitFor();
    await picture("inline-streams");
    await page.locator(".tab.active:not(.dirty)").waitFor(); // nothing is in the document yet
    await model.open("inline");
    await widget.getByText("2 changes: Enter keeps").waitFor();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages), /<selection>export function low[\s\S]*include 10 as low/);
    await picture("inline");
    const last = widget.locator(".review-comment").last();
    await last.hover();
    await last.getByRole("button", { name: "Exclude This Change" }).click();
    await widget.getByText("1 change: Enter keeps").waitFor();
    await enter();
    await bench.bufferIs(STOCK_TEXT.replace(LOW, LOWER));
    await page.keyboard.press("Control+z");
    await isUntouched();
  }

  async function stopped() {
    await model.script([{ text: FIRST_HALF }, { hang: true }]);
    const { closed_early: before } = await model.state();
    await begin("never mind");
    await widget.getByText("count <= 10").waitFor();
    await input.waitFor();
    await page.keyboard.press("Escape");
    await model.state(`closed:${before + 1}`);
    await isUntouched();
  }

  async function refined() {
    await model.script([{ text: `${FIRST_HALF}\n${STOCK_TEXT.split("\n").slice(3, 7).join("\n")}` }]);
    await begin("include 10 as low");
    await widget.getByText("1 change: Enter keeps").waitFor();
    await model.reset();
    await model.script([{ text: STOCK_TEXT.trimEnd().replace(LOW, LOWER.replace("10", "12")) }]);
    await say("twelve");
    await widget.getByText("count <= 12").waitFor();
    await widget.getByText("1 change: Enter keeps").waitFor();
    await input.waitFor();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages), /<previous>[\s\S]*count <= 10[\s\S]*twelve/);
    await page.keyboard.press("Enter");
    await widget.waitFor({ state: "detached" });
    await bench.bufferIs(STOCK_TEXT.replace(LOW, LOWER.replace("10", "12")));
    await page.keyboard.press("Control+z");
    await isUntouched();
  }

  async function refused() {
    await model.reset();
    await model.script([{ status: 401, body: { error: { message: "Incorrect API key provided" } } }], [{ text: STOCK_TEXT }]);
    await begin("anything");
    await widget.getByText(/401|key/).first().waitFor();
    await say("again");
    await widget.getByText("No change proposed").waitFor();
    await input.waitFor();
    await page.keyboard.press("Escape");
    await isUntouched();
  }

  async function early() {
    await model.reset();
    await model.script([{ text: STOCK_TEXT.trimEnd().replace(LOW, LOWER) }]);
    await bench.select("export function low", 7);
    await page.keyboard.press("Control+k");
    await page.keyboard.press("y");
    await widget.waitFor(); // its input does not exist yet
    await page.keyboard.type("include 11");
    await page.keyboard.press("Backspace");
    await page.keyboard.type("0 as low\n");
    await widget.getByText("1 change: Enter keeps").waitFor();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages), /Instruction: include 10 as low"/);
    await bench.bufferIs(STOCK_TEXT);
    await input.waitFor();
    await page.keyboard.press("Escape");
    await bench.command("File: Revert File");
    await isUntouched();
  }

  async function discardedEarly() {
    await bench.goToEndOf(LOW);
    await page.keyboard.press("Control+k");
    await page.keyboard.press("y");
    await widget.waitFor();
    await page.keyboard.type("include");
    await page.keyboard.press("Escape");
    await widget.waitFor({ state: "detached" });
    await bench.bufferIs(STOCK_TEXT);
    await until(bench.editor, ({ classList }) => classList.contains("focused"));
    await page.keyboard.type("!"); // replaces nothing
    await bench.bufferIs(STOCK_TEXT.replace(LOW, `${LOW}!`));
    await bench.command("File: Revert File");
    await isUntouched();
  }

  async function improvable() {
    await model.reset();
    await model.script([{ text: STOCK_TEXT.trimEnd().replace(LOW, LOWER) }], [{ status: 401, body: { error: { message: "Incorrect API key provided" } } }], [{ text: "export" }, { hang: true }]);
    const one = widget.getByText("1 change: Enter keeps");
    await begin("include 10 as low");
    await one.waitFor();
    await say("twelve");
    await widget.getByText(/401|key/).first().waitFor();
    await one.waitFor();
    await widget.getByText("count <= 10").waitFor();
    await say("thirteen");
    await widget.getByText("Escape stops").waitFor();
    await input.waitFor();
    await page.keyboard.press("Escape");
    await one.waitFor();
    await enter();
    await bench.bufferIs(STOCK_TEXT.replace(LOW, LOWER));
    await page.keyboard.press("Control+z");
    await isUntouched();
  }

  async function reviewed() {
    const { chat } = bench;
    await model.reset();
    await bench.keepAll();
    await bench.newSession();
    await model.script([{ text: STOCK_TEXT.trimEnd().replace(LOW, LOWER) }], [{ text: "As it was, then." }]);
    await begin("include 10 as low");
    await widget.getByText("1 change: Enter keeps").waitFor();
    await enter();
    const asked = chat.locator(".list .user", { hasText: "include 10 as low" });
    await asked.locator(".chip", { hasText: "stock.ts:1-7" }).waitFor();
    await asked.getByRole("button", { name: /^Edit/ }).waitFor({ state: "attached" }); // its turn is known
    await chat.locator(".tool[data-kind=edit][data-status=completed] .line.added", { hasText: "count <= 10" }).waitFor();
    await page.locator(".pane .monaco-list-row", { hasText: /include 10 as low(?!,)/ }).waitFor();
    await picture("inline-kept");
    await bench.command("tandem: Reject All");
    await bench.bufferIs(STOCK_TEXT);
    await bench.command("tandem: Open Chat");
    await bench.say("What did you do?");
    await chat.locator(".answer", { hasText: "As it was, then." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages), /include 10 as low[\s\S]*the user applied this inline edit[\s\S]*the user rejected these changes/);
    await bench.command("File: Revert File");
    await isUntouched();
  }

  /** Without a selection it is about the line. */
  async function fromMenu() {
    await bench.openFile("stock.ts");
    await bench.goToEndOf("export function low");
    const line = bench.editor.locator(".view-line", { hasText: "export function low" });
    await bench.chooseInMenu(line, ["tandem", "Edit in Place"], input);
    await page.keyboard.press("Escape");
    await isUntouched();
  }

  return [
    ["edit in place: the diff streams below the lines, and accepted hunks are one undo step", kept],
    ["an edit in place of a line begins in the context menu", fromMenu],
    ["edit in place: Escape stops the model and changes nothing", stopped],
    ["edit in place: a second instruction refines the proposal", refined],
    ["edit in place: what is typed before the input is there goes into it", early],
    ["edit in place: what is typed before the input is there is discarded with it", discardedEarly],
    ["edit in place: an improvement that fails or is stopped leaves the proposal", improvable],
    ["edit in place: an error is shown, and the next attempt works", refused],
    ["edit in place: a kept edit is in the conversation and its review, and the model learns of it", reviewed],
  ];
}
