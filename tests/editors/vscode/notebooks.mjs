// Notebooks in VS Code's own editor for them: unsaved cells are read and edited there, and no cell or output is lost.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TRY_MS, eventually, exactly, until } from "./workbench.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const output = { data: { "image/png": PIXEL, "text/plain": ["<Figure>"] }, metadata: {}, output_type: "display_data" };
const code = (id, outputs, source) => ({ cell_type: "code", execution_count: null, id, metadata: {}, outputs, source });

/** As VS Code writes it; it omits the execution count of a cell whose source has changed. */
function notebook(second, count = 1) {
  const plot = { ...code("b2", [output], second), execution_count: count };
  const cells = [code("a1", [], ["import math"]), plot, { cell_type: "markdown", id: "c3", metadata: {}, source: ["*done*"] }];
  const metadata = { language_info: { name: "python" } };
  return `${JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, undefined, 1)}\n`;
}

/** The checks, in order, each a name and a function. */
export function notebookChecks({ bench, model, picture }) {
  const { chat, page } = bench;
  const line = (text) => page.locator(".notebookOverlay .cell .view-line", { hasText: text });
  const onDisk = () => readFileSync(join(bench.project, "sums.ipynb"), "utf8");
  const call = (name, args) => [{ call: { id: `call_${name}`, name, arguments: args } }];
  const notice = (text) => chat.locator(".notice", { hasText: text });

  async function results() {
    const { requests } = await model.state();
    return requests.at(-1).messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));
  }

  async function edited() {
    bench.save("sums.ipynb", notebook(["x = 1\n", "plot(x)"]));
    await model.reset();
    await bench.newSession();
    await bench.setMode("edit");
    await bench.openTab("sums.ipynb");
    await line("plot(x)").click();
    await page.keyboard.press("End");
    await page.keyboard.type(" # mine");
    const edits = [
      { old_text: "x = 1", new_text: "x = 2" },
      { old_text: "# %% [markdown] 3\n", new_text: "# %% [code]\nprint(x)\n\n# %% [markdown] 3\n" },
    ];
    await model.script(
      call("read_file", { path: "sums.ipynb" }),
      call("edit_file", { path: "sums.ipynb", edits }),
      call("grep", { pattern: "x = " }),
      [{ text: "It is two now." }],
    );
    await bench.say("Make it two.");
    await chat.locator(".answer", { hasText: "It is two now." }).waitFor();
    await bench.idle();
    const [read, changed, found] = await results();
    assert.match(read, /unsaved changes in the editor[\s\S]*\[code\] 2\\n[\s\S]*plot\(x\) # mine\\n[\s\S]*\[output\] 2\\n[\s\S]*<Figure>/);
    assert.ok(!read.includes(PIXEL), read);
    assert.match(changed, /Changed sums\.ipynb[\s\S]*-x = 1\\n\+x = 2/);
    assert.match(found, /sums\.ipynb[\s\S]*x = 2/);
    await line("x = 2").waitFor();
    await line("print(x)").waitFor();
    await line("plot(x) # mine").waitFor();
    await exactly(page.locator(".notebookOverlay .code-cell-row"), 3);
    await page.locator(".tab.active.dirty", { hasText: "sums.ipynb" }).waitFor();
    assert.equal(onDisk(), notebook(["x = 1\n", "plot(x)"]), "unsaved text stays unsaved");
    const card = await chat.locator(".tool", { hasText: "Edit sums.ipynb" }).locator(".diff").innerText();
    assert.match(card, /x = 1[\s\S]*x = 2[\s\S]*# %% \[code\]/);
    assert.ok(!card.includes('"source"') && !card.includes("\\n"), card);
    await picture("notebook-edited");
  }

  /** VS Code compares cells; unsaved text is on both sides, except for the turn's changes. */
  async function compared() {
    await line("plot(x) # mine").click();
    await page.keyboard.press("End");
    await page.keyboard.type(" too");
    await bench.command("tandem: Go to Next Change");
    await page.locator(".pane .monaco-list-row", { hasText: /^x = 2$/ }).waitFor();
    const comparison = page.locator(".notebook-text-diff-editor");
    const side = (name) => comparison.locator(`.editor.${name} .view-line`);
    await side("original").filter({ hasText: "x = 1" }).waitFor();
    await side("modified").filter({ hasText: "x = 2" }).waitFor();
    await exactly(comparison.locator(".cell-diff-editor-container .view-line", { hasText: "mine too" }), 2);
    await picture("notebook-compared");
    await page.locator(".tab.active", { hasText: "before tandem" }).getByRole("button", { name: /Close/ }).click();
    const listed = (hasText) => page.locator(".pane .monaco-list-row", { hasText }).first();
    await bench.chooseInMenu(listed("Make it two."), ["Compare With Original"], page.locator(".multiDiffEditor"));
    const turn = page.locator(".multiDiffEditor .modified .view-line");
    await turn.filter({ hasText: "# %% [code] 1" }).first().waitFor();
    await turn.filter({ hasText: "x = 2" }).first().waitFor();
    await exactly(page.locator(".multiDiffEditor .view-line", { hasText: '"cell_type"' }), 0);
    await page.locator(".tab.active", { hasText: "before tandem" }).getByRole("button", { name: /Close/ }).click();
    await bench.chooseInMenu(listed(/^x = 2$/), ["Comment"], page.locator(".quick-input-widget", { hasText: "Comment on sums.ipynb" }));
    await bench.answerInputBox("Why two?");
    await chat.locator(".composer .chip", { hasText: "sums.ipynb: Why two?" }).waitFor();
  }

  async function undone() {
    await bench.command("tandem: Undo Last Turn");
    await notice("Undid “Make it two.”").waitFor();
    await line("x = 1").waitFor();
    await line("print(x)").waitFor({ state: "detached" });
    await line("plot(x) # mine").waitFor();
    await picture("notebook-undone");
    await notice("Undid “Make it two.”").getByRole("button", { name: "Redo" }).click();
    await line("print(x)").waitFor();
    await line("x = 2").waitFor();
    await notice("Redid “Make it two.”").getByRole("button", { name: "Undo" }).click();
    await line("print(x)").waitFor({ state: "detached" });
    await line("plot(x)").click();
    await page.keyboard.press("Control+s");
    await page.locator(".tab.active:not(.dirty)", { hasText: "sums.ipynb" }).waitFor();
    assert.equal(onDisk(), notebook(["x = 1\n", "plot(x) # mine too"], null), "outputs, ids and what was typed");
  }

  /** Uses the cell's menu, which is drawn while the pointer is over the cell. */
  async function added() {
    await line("import math").click();
    await page.locator(".notebookOverlay .code-cell-row .cell-title-toolbar [aria-label^='More']").first().click();
    const item = page.locator(".monaco-menu .action-label", { hasText: "Add to tandem Chat" });
    await eventually(async () => {
      await item.click({ timeout: TRY_MS }); // a menu ignores one that comes as soon as it opens
      await chat.locator(".composer .chip", { hasText: "sums.ipynb, cell 1" }).waitFor({ timeout: TRY_MS });
    });
    await line("plot(x)").click();
    await bench.command("tandem: Ask About Selection");
    await chat.locator(".composer .chip", { hasText: "sums.ipynb, cell 2" }).waitFor();
    await model.script([{ text: "They are cells." }]);
    await bench.say("What are they?");
    await chat.locator(".answer", { hasText: "They are cells." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    const sent = JSON.stringify(requests.at(-1).messages.at(-1));
    assert.match(sent, /Comment on sums\.ipynb:\\n\\n```\\nx = 2/);
    assert.match(sent, /From sums\.ipynb, cell 1:[\s\S]*import math[\s\S]*From sums\.ipynb, cell 2:[\s\S]*# mine/);
    await bench.setMode("ask");
  }

  /** The proposal is compared, refined and kept by keyboard; only keeping it changes the cell. */
  async function inPlace() {
    const cell = line("plot(x)");
    const answer = async (text) => {
      const box = page.locator(".quick-input-widget input[type=text]:visible");
      await box.fill(text);
      await box.press("Enter");
    };
    await cell.click();
    await model.script([{ text: "x = 1\nplot(x, x)\n" }], [{ text: "x = 1\nplot(x, 2)\n" }]);
    await bench.command("tandem: Edit in Place");
    await answer("Twice.");
    const proposed = page.locator(".editor.modified .view-line", { hasText: "plot(x, x)" });
    await proposed.waitFor();
    await until(proposed, (line) => line.contains(document.elementFromPoint(line.getBoundingClientRect().x + 5, line.getBoundingClientRect().y + 5)));
    await picture("notebook-in-place");
    await answer("By two.");
    await page.locator(".editor.modified .view-line", { hasText: "plot(x, 2)" }).waitFor();
    await answer("");
    await page.locator(".tab", { hasText: "proposed by tandem" }).waitFor({ state: "detached" });
    await page.locator(".notebookOverlay .cell .view-line", { hasText: "plot(x, 2)" }).waitFor();
    await chat.locator(".tool", { hasText: "in place" }).waitFor();
    await bench.command("tandem: Undo Last Turn");
    await line("plot(x, 2)").waitFor({ state: "detached" });
    await line("plot(x)").waitFor();
  }

  async function lookedAt() {
    await line("import math").click();
    await chat.locator(".composer .looking", { hasText: "sums.ipynb, cell 1" }).waitFor();
    await model.script([{ text: "An import." }]);
    await bench.say("What is this?");
    await chat.locator(".answer", { hasText: "An import." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages.at(-1)), /The user is looking at sums\.ipynb, cell 1\./);
  }

  /** As soon as a cell changes, VS Code lays the whole file out anew: here, with fields in another order. */
  async function ofAnotherProgram() {
    const cell = (source, outputs) => ({ cell_type: "code", source: [source], metadata: {}, execution_count: null, outputs });
    const cells = [cell("first = 1", [output]), cell("second = 2", [])];
    bench.save("other.ipynb", JSON.stringify({ nbformat: 4, nbformat_minor: 0, metadata: {}, cells }, undefined, 2));
    await bench.setMode("edit");
    await bench.openTab("other.ipynb");
    await line("second = 2").waitFor();
    await model.script(call("edit_file", { path: "other.ipynb", edits: [{ old_text: "first = 1", new_text: "first = 10" }] }), [
      { text: "It is ten." },
    ]);
    await bench.say("Make it ten.");
    await line("first = 10").waitFor();
    await bench.idle();
    const listed = page.locator(".pane .monaco-list-row", { hasText: /^first = 10$/ });
    await listed.waitFor();
    await line("second = 2").click();
    await page.keyboard.press("End");
    await page.keyboard.type(" # mine");
    await page.locator(".tab.active.dirty", { hasText: "other.ipynb" }).waitFor();
    await bench.command("tandem: Undo Last Turn");
    await notice("Undid “Make it ten.”: other.ipynb.").waitFor();
    await line("first = 10").waitFor({ state: "detached" });
    await line("first = 1").waitFor();
    await line("second = 2 # mine").waitFor();
    await listed.waitFor({ state: "detached" });
    await bench.setMode("ask");
  }

  return [
    ["an unsaved notebook is read and edited in its cells", edited],
    ["a notebook is compared by cell, with what is unsaved", compared],
    ["undoing the turn gives its cells back, and nothing typed is lost", undone],
    ["cells are added to the message", added],
    ["a cell is edited in place", inPlace],
    ["the model learns which cell a person looks at", lookedAt],
    ["a turn's change of another program's notebook is undone after a cell was typed in", ofAnotherProgram],
  ];
}
