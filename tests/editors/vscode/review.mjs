// Review and undo as a person does them: the view, the lines above a hunk, the diff editor, the commands; and the problems VS Code shows.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, exactly, until } from "./workbench.mjs";

export const CART = "src/cart.ts";
export const CART_TEXT = `import { type Line, total } from "./price";

/** The items in a shopping cart. */
export class Cart {
  private readonly lines: Line[] = [];

  add(line: Line): void {
    this.lines.push(line);
  }

  /** The number of items. */
  get pieces(): number {
    let pieces = 0;
    for (const line of this.lines) {
      pieces = pieces + line.count;
    }
    return pieces;
  }

  get isEmpty(): boolean {
    return this.lines.length == 0;
  }

  get total(): number {
    return total(this.lines);
  }

  // Prints the lines.
  debug(): void {
    console.log(this.lines);
  }

  clear(): void {
    this.lines.length = 0;
  }
}
`;

const LOOP = `    let pieces = 0;
    for (const line of this.lines) {
      pieces = pieces + line.count;
    }
    return pieces;
`;
const SUM = "    return this.lines.reduce((sum, line) => sum + line.count, 0);\n";
const DEBUG = `  // Prints the lines.
  debug(): void {
    console.log(this.lines);
  }

`;
const TEST = `import { Cart } from "./cart";

console.assert(new Cart().isEmpty);
`;

/** One turn that changes an open file in three places and creates another. */
const turn = [
  { text: "I'll sum with `reduce`, compare strictly and remove the debug output." },
  {
    call: {
      id: "call_r1",
      name: "edit_file",
      arguments: {
        path: CART,
        edits: [
          { old_text: LOOP, new_text: SUM },
          { old_text: "length == 0", new_text: "length === 0" },
          { old_text: DEBUG, new_text: "" },
        ],
      },
    },
  },
  { call: { id: "call_r2", name: "write_file", arguments: { path: "src/cart.test.ts", content: TEST } } },
];

const CHANGED = CART_TEXT.replace(LOOP, SUM).replace("length == 0", "length === 0").replace(DEBUG, "");

/** The checks, in order, each a name and a function. */
export function reviewChecks({ bench, model, picture }) {
  const view = () => bench.page.locator(".pane", { has: bench.page.locator(".pane-header", { hasText: "Changes" }) });
  const row = (text) => view().locator(".monaco-list-row", { hasText: text });
  const lens = (text) => bench.editor.locator(".codelens-decoration a", { hasText: text });

  async function ask(...calls) {
    await bench.openFile("cart.ts");
    await bench.newSession();
    await bench.setMode("edit");
    await model.reset();
    await model.script(calls, [{ text: "The cart is simpler now and has a test." }]);
    await bench.say("Tidy up the cart.");
    await bench.chat.locator(".answer", { hasText: "has a test" }).waitFor();
    await bench.idle();
  }

  async function listed() {
    await ask(...turn);
    await row("Tidy up the cart.").waitFor();
    await row("cart.ts").first().waitFor();
    await row("return this.lines.reduce").waitFor();
    await row("cart.test.ts").waitFor();
    await bench.page.locator(".statusbar-item", { hasText: /tandem: Accept edits\s*4/ }).waitFor();
    await bench.bufferIs(CHANGED);
    await exactly(lens("Keep"), 3);
    await exactly(lens("Reject"), 3);
    await picture("review");
  }

  async function diff() {
    await row("return this.lines.reduce").click();
    const sides = bench.page.locator(".monaco-diff-editor");
    await sides.locator(".original .view-line", { hasText: "pieces = pieces + line.count" }).waitFor();
    await sides.locator(".modified .view-line", { hasText: "lines.reduce" }).waitFor();
    await picture("review-diff");
    await bench.page.locator(".tab.active", { hasText: "before tandem" }).getByRole("button", { name: /Close/ }).click();
  }

  /** The editor's own gutter has marks while changes are pending, and a click on one shows the original. */
  async function gutter() {
    await bench.openFile("cart.ts");
    await bench.editor.locator(".dirty-diff-glyph").first().waitFor();
    await exactly(bench.editor.locator(".dirty-diff-deleted"), 1);
    await bench.goToEndOf("get total(): number");
    await bench.command("Show Next Change");
    const peek = bench.page.locator(".peekview-widget", { hasText: "Prints the lines" });
    await peek.waitFor();
    await picture("gutter");
    await peek.locator(".peekview-actions .action-label").last().click(); // it has no name
    await peek.waitFor({ state: "detached" });
  }

  /** Where changes are looked for, too. */
  async function inSourceControl() {
    const { page } = bench;
    await page.keyboard.press("Control+Shift+g");
    const entry = (text) => page.locator(".scm-view .monaco-list-row", { hasText: text });
    await entry("Changes to Review").locator(".count", { hasText: "2" }).waitFor();
    await entry("cart.ts").click();
    const comparison = page.locator(".tab.active", { hasText: "before tandem" });
    await comparison.waitFor();
    await picture("source-control");
    await comparison.getByRole("button", { name: /Close/ }).click();
    await bench.command("tandem: Open Chat");
    await model.script([{ gate: "third" }, { call: { id: "call_g3", name: "write_file", arguments: { path: "src/third.ts", content: "export {};\n" } } }], [{ text: "A third." }]);
    await bench.say("Add a file.");
    await model.state("gate:third");
    await page.keyboard.press("Control+Shift+g");
    await entry("cart.ts").click({ modifiers: ["Control"] }); // selects it and opens nothing
    const focused = page.locator(".scm-view .monaco-list:focus .monaco-list-row.focused", { hasText: "cart.ts" });
    await focused.waitFor();
    await model.open("third");
    await entry("Changes to Review").locator(".count", { hasText: "3" }).waitFor();
    await focused.waitFor();
    await bench.command("tandem: Open Chat");
    await bench.idle();
    await bench.command("tandem: Undo Last Turn");
    await row("third.ts").waitFor({ state: "detached" });
  }

  async function rejectHunk() {
    await bench.openFile("cart.ts");
    await bench.typeAtEndOf("The items in a shopping", " Mine.");
    await (await origin("Open Turn")).click();
    await until(bench.chat.locator(".user", { hasText: "Tidy up the cart." }), (said) => Math.abs(said.getBoundingClientRect().top) < innerHeight);
    await (await origin("Reject This Change")).click();
    await bench.editor.locator(".view-line", { hasText: "length == 0" }).waitFor();
    await bench.editor.locator(".view-line", { hasText: "Mine." }).waitFor();
    await row("length").waitFor({ state: "detached" });
    await model.script([{ text: "I see." }]);
    await bench.say("And now?");
    await bench.chat.locator(".answer", { hasText: "I see." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1)), /the user rejected this change of yours in src\/cart\.ts/);
  }

  /** A link in the hover on a line that the turn wrote. */
  async function origin(link) {
    await bench.page.mouse.move(0, 0);
    await bench.editor.locator(".view-line", { hasText: "length === 0" }).locator("span", { hasText: "length" }).last().hover();
    const hover = bench.page.locator(".monaco-hover:not(.hidden)", { hasText: "tandem, turn 1: Tidy up the cart." });
    await hover.getByText("Edit src/cart.ts · custom/").waitFor();
    await picture("origin");
    return hover.getByText(link);
  }

  async function keepHunk() {
    await bench.page.mouse.move(0, 0);
    await exactly(bench.page.locator(".monaco-hover:not(.hidden)", { hasText: "tandem, turn 1" }), 0); // it is on a code lens
    await exactly(lens("Keep"), 2);
    await lens("Keep").first().click();
    await row("return this.lines.reduce").waitFor({ state: "detached" });
    await bench.editor.locator(".view-line", { hasText: "lines.reduce" }).waitFor();
    await exactly(lens("Keep"), 1); // only the removed lines are left
  }

  /** VS Code keeps a removed file in its tab: that is not unsaved text. */
  async function rejectFile() {
    const { chat, page } = bench;
    const comparison = page.locator(".tab", { hasText: "before tandem" });
    assert.ok(existsSync(join(bench.project, "src/cart.test.ts")));
    await bench.openFile("cart.test.ts");
    await row("cart.test.ts").click();
    await comparison.waitFor();
    await row("cart.test.ts").hover();
    await row("cart.test.ts").getByRole("button", { name: /Reject Change/ }).click();
    await row("cart.test.ts").waitFor({ state: "detached" });
    assert.ok(!existsSync(join(bench.project, "src/cart.test.ts")));
    await comparison.waitFor({ state: "detached" });
    const left = page.locator(".tab", { hasText: "cart.test.ts" });
    await left.waitFor();
    await chat.locator("body").evaluate(({ dataset }) => (dataset.phase = "earlier")); // a quick restart would not be seen
    await bench.command("tandem: Restart Server"); // it never saw the file
    await chat.locator("body[data-phase=ready]").waitFor();
    await model.script([{ call: { id: "call_r3", name: "run_command", arguments: { command: "ls src" } } }], [{ text: "Only the cart." }]);
    await bench.say("What is there?");
    await chat.locator(".question button.allow_once").click();
    await chat.locator(".answer", { hasText: "Only the cart." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.doesNotMatch(requests.at(-1).messages.at(-1).content, /unsaved/);
    await exactly(chat.locator(".tool", { hasText: "saves src/cart.test.ts" }), 0);
    await left.getByRole("button", { name: /Close/ }).click();
  }

  async function undoTurn() {
    const edit = { path: CART, edits: [{ old_text: "length == 0", new_text: "length < 1" }] };
    await ask({ call: { id: "call_u1", name: "edit_file", arguments: edit } }, turn[2]);
    await bench.editor.locator(".view-line", { hasText: "length < 1" }).waitFor();
    assert.ok(existsSync(join(bench.project, "src/cart.test.ts")));
    await bench.goToEndOf("length < 1");
    await bench.command("tandem: Reject Change");
    await bench.editor.locator(".view-line", { hasText: "length == 0" }).waitFor();
    await bench.command("tandem: Undo Last Turn");
    await bench.editor.locator(".view-line", { hasText: "length < 1" }).waitFor(); // the most recent rejection
    await bench.command("tandem: Undo Last Turn");
    await row("cart.test.ts").waitFor({ state: "detached" }); // changes of an earlier session are still listed
    await bench.editor.locator(".view-line", { hasText: "length == 0" }).waitFor();
    assert.ok(!existsSync(join(bench.project, "src/cart.test.ts")));
    await bench.command("tandem: Redo Last Undo");
    await row("cart.test.ts").waitFor();
    await bench.command("tandem: Reject All");
    await bench.answerDialog("in 2 files?", "Reject 2 Files");
    await bench.editor.locator(".view-line", { hasText: "length == 0" }).waitFor();
    await view().waitFor({ state: "detached" });
    await exactly(bench.editor.locator(".dirty-diff-glyph"), 0); // nothing is pending
    assert.equal(readFileSync(join(bench.project, CART), "utf8"), CART_TEXT);
  }

  /** In the editor that shows a whole turn: one hunk by its keys, the rest from the title; in the file itself, from its title, too. */
  async function inEditor() {
    const { page } = bench;
    const title = (name) => page.locator(".editor-actions").getByRole("button", { name: new RegExp(`^${name} Changes in This Editor`) });
    const edit = (...pairs) => ({ path: CART, edits: pairs.map(([old_text, new_text]) => ({ old_text, new_text })) });
    const strictly = edit(["length == 0", "length === 0"], [DEBUG, ""]);
    const tax = { path: "src/tax.ts", edits: [{ old_text: "7", new_text: "8" }] };
    writeFileSync(join(bench.project, tax.path), "export const tax = 7;\n");
    await ask({ call: { id: "call_e1", name: "edit_file", arguments: strictly } }, { call: { id: "call_e2", name: "edit_file", arguments: tax } });
    await exactly(title("Keep"), 1);
    for (const other of await page.locator(".tab", { hasText: "before tandem" }).all()) {
      await other.getByRole("button", { name: /Close/ }).click();
    }
    await bench.chooseInMenu(row("Tidy up the cart."), ["Compare With Original"], page.locator(".multiDiffEditor"));
    const line = page.locator(".multiDiffEditor .modified .view-line", { hasText: "length === 0" });
    await line.click();
    await page.locator(".multiDiffEditor .monaco-editor.focused").waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.press("Control+y");
    await row("length === 0").waitFor({ state: "detached" });
    await picture("turn-diff");
    await title("Reject").click();
    await bench.answerDialog("in 2 files?", "Reject 2 Files");
    await view().waitFor({ state: "detached" });
    await exactly(title("Keep"), 0);
    assert.equal(readFileSync(join(bench.project, tax.path), "utf8"), "export const tax = 7;\n");
    await page.locator(".tab.active", { hasText: "before tandem" }).getByRole("button", { name: /Close/ }).click();
    await bench.editor.locator(".view-line", { hasText: "length === 0" }).waitFor();
    await bench.editor.locator(".view-line", { hasText: "Prints the lines" }).waitFor();
    await ask({ call: { id: "call_e3", name: "edit_file", arguments: edit(["length === 0", "length == 0"]) } });
    await exactly(lens("Keep"), 1);
    await title("Keep").click();
    await view().waitFor({ state: "detached" });
    await exactly(title("Keep"), 0);
    await bench.editor.locator(".view-line", { hasText: "length == 0" }).waitFor();
    await ask({ call: { id: "call_e4", name: "edit_file", arguments: edit(["length == 0", "length === 0"]) } });
    await row("length === 0").click();
    const comparison = page.locator(".tab", { hasText: "before tandem" });
    await comparison.waitFor();
    await title("Keep").click();
    await comparison.waitFor({ state: "detached" });
    await page.locator(".tab.active.dirty", { hasText: "cart.ts" }).waitFor(); // its unsaved text is in its own tab
  }

  /** A change removed by the editor's own undo is pending again when it is redone. */
  async function byHand() {
    const { keyboard } = bench.page;
    await ask({ call: { id: "call_h1", name: "edit_file", arguments: { path: CART, edits: [{ old_text: "length === 0", new_text: "length !== 1" }] } } });
    await row("length !== 1").waitFor();
    await bench.goToEndOf("length !== 1");
    await keyboard.press("Control+z");
    await view().waitFor({ state: "detached" });
    await keyboard.press("Control+y");
    await row("length !== 1").waitFor();
    await keyboard.press("Control+z");
    await view().waitFor({ state: "detached" });
  }

  /** In the explorer, as a person does it: pending changes move with the file, and keep and undo still work. */
  async function renamed() {
    const { page } = bench;
    const edit = { path: CART, edits: [{ old_text: "return total(this.lines);", new_text: "return total([...this.lines]);" }] };
    const tax = { path: "src/vat/rate.ts", content: "export const rate = 7;\n" };
    await bench.keepAll();
    await ask({ call: { id: "call_n1", name: "edit_file", arguments: edit } }, { call: { id: "call_n2", name: "write_file", arguments: tax } });
    await rename("cart.ts", "basket.ts");
    await rename("vat", "duty");
    await bench.command("tandem: Open Chat");
    await row("basket.ts").waitFor();
    await row("rate.ts").waitFor();
    await exactly(row("cart.ts"), 0);
    await bench.chat.locator(".tool .title", { hasText: tax.path }).click();
    await page.locator(".tab.active", { hasText: "rate.ts" }).waitFor(); // the chat has the old names
    await bench.openFile("basket.ts");
    await exactly(lens("Keep"), 1);
    await bench.command("tandem: Undo Last Turn");
    await bench.editor.locator(".view-line", { hasText: "return total(this.lines);" }).waitFor();
    await view().waitFor({ state: "detached" });
    assert.ok(!existsSync(join(bench.project, "src/duty")));
    await page.locator(".tab.active", { hasText: "basket.ts" }).waitFor();
    await rename("basket.ts", "cart.ts");
    await bench.command("tandem: Open Chat");
  }

  async function rename(name, other) {
    const { page } = bench;
    await bench.command("View: Show Explorer");
    const item = page.locator(".explorer-folders-view .monaco-list-row", { hasText: name });
    const box = page.locator(".explorer-folders-view input[type=text]");
    await eventually(async (timeout) => {
      await item.click({ timeout });
      await page.locator(".explorer-folders-view .monaco-list-row.focused", { hasText: name }).waitFor({ timeout });
      await page.keyboard.press("F2"); // lost where the list is drawn anew
      await box.fill(other, { timeout });
    });
    await box.press("Enter");
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: other }).waitFor();
  }

  /** The turn doesn't wait long: TypeScript's server can be slower on a busy machine, but not twice. */
  async function badEdit() {
    const edit = { path: CART, edits: [{ old_text: "number of items.", new_text: "number of items, badly counted." }] };
    await model.reset();
    await model.script(
      [{ call: { id: "call_p1", name: "edit_file", arguments: edit } }],
      [{ call: { id: "call_p2", name: "diagnostics", arguments: { path: "src" } } }],
      [{ text: "That was wrong." }],
    );
    await bench.say("Say how.");
    const { requests } = await model.state("requests:3");
    await bench.idle();
    try {
      const [afterEdit, asked] = requests.slice(1).map(({ messages }) => messages.at(-1).content);
      assert.match(afterEdit, /New problems after this change:\n(.*\n)*?src\/cart\.ts:\d+: error: a bad word: badly \(linter bad-word\)/);
      assert.match(asked, /src\/cart\.ts:\d+: error: a bad word: badly/);
    } catch (error) {
      await bench.command("tandem: Undo Last Turn");
      await bench.editor.locator(".view-line", { hasText: "number of items." }).waitFor();
      throw error;
    }
  }

  async function problems() {
    await eventually(badEdit, 3);
    const problem = bench.chat.locator(".looking", { hasText: /\d problems?/ }); // TypeScript finds some too
    assert.equal(await problem.getAttribute("aria-pressed"), "false", "they are sent when the person wants it");
    await bench.toggle(problem, true);
    await model.script([{ text: "I see it." }]);
    await bench.say("What is wrong?");
    await bench.chat.locator(".answer", { hasText: "I see it." }).waitFor();
    await bench.idle();
    const { requests: more } = await model.state();
    assert.match(JSON.stringify(more.at(-1).messages.at(-1)), /Problems that the editor shows in src\/cart\.ts:.*?src\/cart\.ts:\d+: error: a bad word: badly \(linter\)/);
    await bench.toggle(problem, false);
  }

  return [
    ["review: a turn's changes are listed by file and hunk, and marked in the editor", listed],
    ["review: a hunk opens in the diff editor with the original on the left", diff],
    ["review: the gutter shows what was removed", gutter],
    ["review: Source Control lists the files", inSourceControl],
    ["review: a line says which turn wrote it; rejecting its hunk keeps what was typed and informs the model", rejectHunk],
    ["review: the lens above a hunk keeps it", keepHunk],
    ["review: rejecting a created file in the view removes it, closes its comparison and leaves no unsaved text", rejectFile],
    ["review: after a rejected hunk, a turn can be undone, redone and rejected", undoTurn],
    ["review: the editor of a turn and that of a file keep and reject what they show", inEditor],
    ["review: a change that is undone and redone in the editor waits as before", byHand],
    ["review: what waits follows a file and a folder that are renamed in the explorer", renamed],
    ["the editor's problems are reported after the edit that caused them, and on request", problems],
  ];
}
