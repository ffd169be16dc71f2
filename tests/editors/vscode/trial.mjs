// A turn on a private copy of the workspace, whose changes are applied or discarded at its end.
import { exactly, until } from "./workbench.mjs";
import { STOCK, STOCK_TEXT } from "./inline.mjs";

const LOW = "count < 10";
const LOWER = "count <= 10";
const TEXT = "export function text(count: number): string {";
const MINE = " // mine";

/** The checks, in order, each a name and a function. */
export function trialChecks({ bench, model, picture }) {
  const { chat, page } = bench;
  const changed = (text) => text.replace(LOW, LOWER);
  const asking = chat.locator(".asking", { hasText: "Apply the changes to src/stock.ts" });

  async function prepare(answer) {
    const edit = { path: STOCK, edits: [{ old_text: LOW, new_text: LOWER }] };
    await model.reset();
    await model.script([{ call: { id: "call_try", name: "edit_file", arguments: edit } }], [{ text: answer }]);
    await bench.setMode("edit");
    await chat.locator("textarea").fill("include 10 as low");
  }

  async function discarded() {
    await bench.openFile("stock.ts");
    await bench.newSession();
    await chat.locator("textarea").fill("/try");
    await chat.locator("textarea").press("Enter");
    await until(chat.locator("textarea"), ({ value }) => value === "/try "); // its prompt has not been typed yet
    await prepare("10 counts as low.");
    await chat.getByRole("button", { name: /^Try/ }).click();
    await chat.locator(".list .user .chip", { hasText: "Private copy" }).waitFor();
    await asking.locator(".line.added", { hasText: LOWER }).waitFor();
    await bench.bufferIs(STOCK_TEXT); // nothing has changed yet
    await exactly(page.locator(".pane .monaco-list-row", { hasText: /include 10 as low(?!,)/ }), 0);
    await picture("trial");
    await asking.getByRole("button", { name: "Discard" }).click();
    await chat.locator(".tool[data-status=failed]", { hasText: "Discarded the changes to src/stock.ts" }).waitFor();
    await bench.idle();
    await bench.bufferIs(STOCK_TEXT);
  }

  async function interrupted() {
    await prepare("10 counts as low, perhaps.");
    await bench.command("tandem: Try on a Private Copy");
    await asking.waitFor();
    await bench.reload();
    await chat.locator(".tool[data-status=failed]", { hasText: "Did not apply the changes to src/stock.ts" }).waitFor();
    await bench.idle();
    await bench.openFile("stock.ts");
    await bench.bufferIs(STOCK_TEXT);
  }

  async function applied() {
    await prepare("10 counts as low now.");
    await bench.command("tandem: Try on a Private Copy");
    await asking.waitFor();
    await bench.typeAtEndOf(TEXT, MINE);
    await asking.getByRole("button", { name: "Apply", exact: true }).click();
    const typed = STOCK_TEXT.replace(TEXT, TEXT + MINE);
    await bench.bufferIs(changed(typed));
    await page.locator(".pane .monaco-list-row", { hasText: /include 10 as low(?!,)/ }).waitFor();
    await chat.locator(".tool[data-status=completed]", { hasText: /Applied the changes to src\/stock.ts/ }).waitFor();
    await bench.idle();
    await bench.command("tandem: Undo Last Turn");
    await bench.bufferIs(typed);
    await bench.command("File: Revert File");
    await page.locator(".tab.active:not(.dirty)", { hasText: "stock.ts" }).waitFor();
    await bench.bufferIs(STOCK_TEXT);
  }

  return [
    ["a trial changes nothing until its changes are applied, and they can be discarded", discarded],
    ["a trial that a reload ends before the decision says that nothing was applied", interrupted],
    ["applied changes of a trial keep what was typed meanwhile, and are reviewed and undone", applied],
  ];
}
