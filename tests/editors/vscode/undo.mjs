// Undoing a command by hand: its changes are in its card, are rejected by hunk, and are undone and redone from the chat.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exactly, until } from "./workbench.mjs";
import { STOCK_TEXT } from "./inline.mjs";

const MINE = " // mine";
const TEXT = "export function text(count: number): string {";
/** More than are shown unfolded. */
const MADE = ["a", "b", "c", "d", "e"];

/** The checks, in order, each a name and a function. */
export function undoChecks({ bench, model, picture }) {
  const { chat } = bench;
  const tool = () => chat.locator(".tool").last();
  const notice = (text) => chat.locator(".notice", { hasText: text });
  const read = (path) => readFileSync(join(bench.project, path), "utf8");
  const typed = STOCK_TEXT.replace(TEXT, TEXT + MINE);
  const changed = typed.replaceAll("count", "pieces");

  async function run(prompt, command, answer) {
    await model.reset();
    await model.script([{ call: { id: "call_command", name: "run_command", arguments: { command } } }], [{ text: answer }]);
    await bench.say(prompt);
    await chat.locator(".answer", { hasText: answer }).waitFor();
    await bench.idle();
  }

  async function codemod() {
    mkdirSync(join(bench.project, "lib"));
    MADE.forEach((name) => writeFileSync(join(bench.project, `lib/${name}.ts`), "export const count = 1;\n"));
    await bench.openFile("stock.ts");
    await bench.newSession();
    await bench.typeAtEndOf(TEXT, MINE);
    await bench.setMode("auto");
    await run("Rename `count` to `pieces`.", "sed -i 's/count/pieces/g' src/stock.ts lib/*.ts", "Renamed in six files.");
    await bench.bufferIs(changed);
    assert.equal(read("src/stock.ts"), STOCK_TEXT, "unsaved text stays unsaved");
    const files = tool().locator("details.diff-file");
    await exactly(files, MADE.length + 1);
    assert.deepEqual((await files.locator(".file").allInnerTexts()).sort(), [...MADE.map((name) => `lib/${name}.ts`), "src/stock.ts"].sort());
    await files.filter({ hasText: "lib/a.ts" }).locator("summary").click();
    await tool().locator(".line.added", { hasText: "export const pieces = 1;" }).waitFor();
    await exactly(tool().locator(".output"), 0); // its header shows how it ended
  }

  async function undone() {
    await bench.goToEndOf("return pieces < 10");
    await bench.command("tandem: Reject Change");
    await bench.editor.locator(".view-line", { hasText: "return count < 10" }).waitFor();
    await bench.command("tandem: Undo Last Turn or Rejection");
    await notice("Restored changes: src/stock.ts").waitFor();
    await bench.bufferIs(changed);
    await exactly(notice("Restored changes").getByRole("button"), 0); // rejecting again serves as redo
    await bench.command("tandem: Undo Last Turn");
    await notice("Undid “Rename count to pieces.”").getByRole("button", { name: "Redo" }).waitFor();
    await bench.bufferIs(typed);
    await exactly(bench.editor.locator(".codelens-decoration a", { hasText: "Keep" }), 0);
    assert.equal(read("lib/a.ts"), "export const count = 1;\n");
    await picture("undone");
    await notice("Undid “Rename count").getByRole("button", { name: "Redo" }).click();
    await notice("Redid “Rename count").getByRole("button", { name: "Undo" }).waitFor();
    await exactly(notice("Undid “Rename count").getByRole("button"), 0);
    assert.equal(read("lib/a.ts"), "export const pieces = 1;\n");
    await notice("Redid “Rename count").getByRole("button", { name: "Undo" }).click();
    await notice("Undid “Rename count").getByRole("button", { name: "Redo" }).waitFor();
    await bench.bufferIs(typed);
  }

  async function removed() {
    const files = tool().locator("details.diff-file:not([open]) summary");
    for (let left = await files.count(); left > 0; left--) {
      await files.first().click(); // until the session is longer than the view
    }
    await bench.scrollToTop();
    await run("Remove the library.", "rm -rf lib", "Removed.");
    await until(chat.locator("main"), (main) => main.scrollHeight - main.scrollTop - main.clientHeight < 40);
    assert.ok(!existsSync(join(bench.project, "lib")));
    await bench.page.locator(".pane .monaco-list-row", { hasText: "lib · deleted" }).first().waitFor();
    await bench.command("tandem: Undo Last Turn");
    await notice("Undid “Remove the library.”").waitFor();
    MADE.forEach((name) => assert.equal(read(`lib/${name}.ts`), "export const count = 1;\n"));
    await bench.command("File: Revert File");
    await bench.bufferIs(STOCK_TEXT);
    await bench.setMode("edit");
  }

  /** Every way to reject several files asks first, and undo restores them although they are not open. */
  async function rejected() {
    const { page } = bench;
    const pane = page.locator(".pane", { has: page.locator(".pane-header", { hasText: "Changes" }) });
    const row = (text) => pane.locator(".monaco-list-row", { hasText: text });
    const dialog = page.locator(".monaco-dialog-box", { hasText: "reject the changes in 5 files?" });
    const changed = (made) => made.forEach((name) => assert.equal(read(`many/${name}.ts`), "export const items = 1;\n"));
    mkdirSync(join(bench.project, "many"));
    MADE.forEach((name) => writeFileSync(join(bench.project, `many/${name}.ts`), "export const count = 1;\n"));
    await bench.newSession();
    await bench.setMode("auto");
    await run("Rename `count` to `items`.", "sed -i 's/count/items/g' many/*.ts", "Renamed in five files.");
    await row("Rename `count` to `items`.").waitFor();
    await pane.locator(".pane-header").hover();
    await pane.getByRole("button", { name: "Reject All" }).click();
    await dialog.waitFor();
    await picture("reject-all");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    await bench.command("tandem: Reject All");
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await row("Rename `count` to `items`.").hover();
    await row("Rename `count` to `items`.").getByRole("button", { name: /Reject Change/ }).click();
    await bench.answerDialog("in 5 files?", "Cancel");
    changed(MADE);
    await row("a.ts").hover();
    await row("a.ts").getByRole("button", { name: /Reject Change/ }).click(); // one file: at once
    await row("a.ts").waitFor({ state: "detached" });
    changed(MADE.slice(1));
    await bench.command("tandem: Reject All");
    await bench.answerDialog("in 4 files?", "Reject 4 Files");
    await pane.waitFor({ state: "detached" });
    MADE.forEach((name) => assert.equal(read(`many/${name}.ts`), "export const count = 1;\n"));
    const toast = page.locator(".notifications-toasts .notification-list-item", { hasText: "rejected:" }).first();
    await picture("rejected");
    await toast.getByRole("button", { name: "Undo" }).click();
    await notice("Restored changes:").last().waitFor();
    changed(MADE.slice(1));
    await row("b.ts").waitFor(); // under review again
    await bench.command("tandem: Undo Last Turn or Rejection");
    await notice("Restored changes: many/a.ts").waitFor();
    await page.locator(".statusbar-item", { hasText: /tandem: Auto\s*5/ }).waitFor(); // it is listed last, out of view
    changed(MADE);
    await bench.command("Notifications: Show Notifications"); // the offers are still there, and would now undo the turn
    await page.locator(".notifications-center .notification-list-item", { hasText: "rejected: many/a.ts" }).getByRole("button", { name: "Undo" }).click();
    await page.locator(".notifications-toasts, .notifications-center").getByText("Not undone: this was not the latest step").waitFor();
    changed(MADE);
    await bench.command("Notifications: Clear All Notifications");
    await bench.command("tandem: Keep All");
    await pane.waitFor({ state: "detached" });
    await bench.setMode("edit");
  }

  /** A turn changes another file while the question is open. */
  async function meanwhile() {
    const write = (path) => ({ call: { id: `call_${path}`, name: "write_file", arguments: { path, content: `${path}\n` } } });
    const paths = ["one.txt", "two.txt", "three.txt"];
    await bench.keepAll();
    await bench.newSession();
    await bench.setMode("edit");
    await model.reset();
    await model.script([write("one.txt"), write("two.txt")], [{ text: "Two." }], [{ gate: "third" }, write("three.txt")], [{ text: "Three." }]);
    await bench.say("Write two files.");
    await chat.locator(".answer", { hasText: "Two." }).waitFor();
    await bench.idle();
    await bench.say("And one more.");
    await model.state("gate:third");
    await bench.command("tandem: Reject All");
    await bench.page.locator(".monaco-dialog-box", { hasText: "in 2 files?" }).waitFor();
    await model.open("third");
    await chat.locator(".answer", { hasText: "Three." }).waitFor();
    await bench.idle();
    await bench.answerDialog("in 2 files?", "Reject 2 Files");
    await bench.answerDialog("in 3 files?", "Cancel");
    paths.forEach((path) => assert.equal(read(path), `${path}\n`));
    await bench.command("tandem: Reject All");
    await bench.answerDialog("in 3 files?", "Reject 3 Files");
    await bench.page.locator(".notifications-toasts .notification-list-item", { hasText: "rejected:" }).first().waitFor();
    paths.forEach((path) => assert.ok(!existsSync(join(bench.project, path))));
    await bench.command("Notifications: Clear All Notifications");
  }

  /** For many files, the card lists the first ones; the rest are one click away. */
  async function folded() {
    const names = Array.from({ length: 25 }, (_, index) => `heap/${index}.txt`);
    const file = (name) => tool().locator("details.diff-file", { hasText: name }).last();
    mkdirSync(join(bench.project, "heap"));
    names.forEach((name) => writeFileSync(join(bench.project, name), "one\n"));
    await bench.newSession();
    await bench.setMode("auto");
    await run("Replace one.", "sed -i 's/one/two/' heap/*.txt", "Replaced in 25 files.");
    await tool().locator(".diff-file.more > summary", { hasText: "15 more files" }).waitFor();
    await until(tool(), ({ clientHeight }) => clientHeight < 400);
    await picture("folded");
    await tool().locator(".diff-file.more > summary").click();
    await until(tool(), (card, count) => [...card.querySelectorAll(".diff-file .file")].filter((one) => one.checkVisibility()).length === count, names.length);
    await file("heap/9.txt").locator("summary").click();
    await file("heap/9.txt").locator(".line.added", { hasText: "two" }).waitFor();
    await bench.keepAll();
    await bench.setMode("edit");
  }

  return [
    ["undo: a command's changes to many files are in its card, a line each", codemod],
    ["undo: a command's changes are rejected by hunk, undone and redone from the chat", undone],
    ["undo: a removed folder is listed as deleted and comes back; a new message is in view", removed],
    ["a command that changes many files lists the first, and the others on request", folded],
    ["rejecting changes in several files asks first, from each place", rejected],
    ["what is rejected is what the question named, even if a turn goes on meanwhile", meanwhile],
  ];
}
