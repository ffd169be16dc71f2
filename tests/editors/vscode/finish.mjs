// The end of a turn with VS Code's own TypeScript server: it imports what is missing, the model corrects its type error, and the old error stays.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { USER_SETTINGS, exactly } from "./workbench.mjs";

const ORDER = "src/order.ts";
const TEXT = `export const old = missing;

export function describe(amount: number): string {
  return String(amount);
}
`;

export function finishChecks({ bench, model, picture }) {
  const edit = (id, old_text, new_text) => [{ call: { id, name: "edit_file", arguments: { path: ORDER, edits: [{ old_text, new_text }] } } }];

  async function off() {
    bench.save(ORDER, TEXT);
    await bench.openFile("price.ts");
    await bench.openFile("order.ts");
    await bench.editor.locator(".squiggly-error").first().waitFor();
    await bench.newSession();
    await bench.setMode("edit");
    await model.script(edit("call_f3", "return String(amount);", "return label(amount);"), [{ text: "As you wish." }]);
    await bench.say("Describe it, unchecked.");
    await bench.chat.locator(".answer", { hasText: "As you wish." }).waitFor();
    await bench.idle();
    assert.equal((await model.state()).requests.length, 2);
    await bench.command("tandem: Undo Last Turn");
    await bench.bufferIs(TEXT);
  }

  async function clean() {
    const { chat, editor } = bench;
    bench.save(".vscode/settings.json", JSON.stringify({ "tandem.finish": false })); // which a repository cannot decide
    bench.write("data/User/settings.json", JSON.stringify({ ...USER_SETTINGS, "tandem.finish": true }));
    bench.isWorn = true;
    await bench.reload();
    await bench.openFile("price.ts");
    await bench.openFile("order.ts");
    await bench.discardBackup(TEXT);
    await editor.locator(".squiggly-error").first().waitFor();
    await bench.newSession();
    await chat.getByRole("combobox", { name: "Mode", exact: true }).selectOption("edit");
    await model.reset();
    await model.script(
      edit("call_f1", "return String(amount);", 'const count: number = "one";\n  return label(amount * count);'),
      [{ text: "Done." }],
      edit("call_f2", '"one"', "1"),
      [{ text: "Now it is right." }],
    );
    await bench.say("Describe it with a label.");
    await chat.locator(".notice", { hasText: "1 import fixed by ts" }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.equal(requests.length, 4, "the import needs no model");
    const returned = JSON.stringify(requests[2].messages.at(-1).content);
    assert.match(returned, /src\/order\.ts:6: error: Type 'string' is not assignable to type 'number'/);
    assert.match(returned, /fixed this already/);
    assert.doesNotMatch(returned, /Cannot find name/, "what was wrong before is not mentioned");
    await editor.locator(".view-line", { hasText: 'import { label } from "./price";' }).waitFor();
    await picture("finish");
    await bench.command("tandem: Undo Last Turn");
    await bench.bufferIs(TEXT);
  }

  /** At the end of the turn that creates a file, the file is opened to find its problems. */
  async function unseen() {
    const { chat, page } = bench;
    const made = (text) => ({ path: "src/made.ts", content: `export const made = "${text}";\n` });
    const write = (id, text) => [{ call: { id, name: "write_file", arguments: made(text) } }];
    const read = () => readFileSync(join(bench.project, "src/made.ts"), "utf8");
    await bench.newSession();
    await chat.getByRole("combobox", { name: "Mode", exact: true }).selectOption("edit");
    await model.reset();
    await model.script(write("call_f4", "one"), [{ text: "It is made." }], write("call_f5", "two"), [{ text: "It is changed." }]);
    await bench.say("Make it.");
    await chat.locator(".answer", { hasText: "It is made." }).waitFor();
    await bench.idle();
    await bench.say("Change it.");
    await chat.locator(".answer", { hasText: "It is changed." }).waitFor();
    await bench.idle();
    assert.equal(read(), made("two").content, "nobody has it open: it changes on the disk");
    await bench.command("tandem: Undo Last Turn");
    await chat.locator(".notice", { hasText: "Undid “Change it.”" }).waitFor();
    assert.equal(read(), made("one").content);
    await bench.command("tandem: Undo Last Turn");
    await chat.locator(".notice", { hasText: "Undid “Make it.”" }).waitFor();
    assert.ok(!existsSync(join(bench.project, "src/made.ts")));
    await bench.command("tandem: Redo Last Undo");
    await chat.locator(".notice", { hasText: "Redid “Make it.”" }).waitFor();
    assert.equal(read(), made("one").content, "although VS Code still has the text of the file that was gone");
    await exactly(page.locator(".tab", { hasText: "made.ts" }), 0);
  }

  async function plan() {
    const { chat, page } = bench;
    await bench.newSession();
    await chat.getByRole("combobox", { name: "Mode", exact: true }).selectOption("plan");
    await model.reset();
    await model.script([{ text: "I would:\n1. Rename it.\n2. Test it." }], [{ text: "Carried out." }]);
    await bench.say("How would you rename it?");
    await chat.getByRole("button", { name: "Start in a New Session" }).waitFor();
    await picture("plan");
    await chat.locator(".asking .facts").getByRole("button", { name: /\.md$/ }).click();
    await page.locator(".tab.active", { hasText: ".md" }).waitFor();
    await bench.typeAtEndOf("2. Test it.", " Ship it.");
    await page.keyboard.press("Control+s");
    await exactly(page.locator(".tab.active.dirty"), 0);
    await page.locator(".tab.active").getByRole("button", { name: /Close/ }).click();
    await chat.getByRole("button", { name: "Start in a New Session" }).click();
    await chat.locator(".answer", { hasText: "Carried out." }).waitFor();
    await bench.idle();
    await picture("plan-started");
    const { requests } = await model.state();
    assert.equal(requests[1].messages.length, 2, "the system message and the plan");
    assert.match(JSON.stringify(requests[1].messages[1]), /Carry out this plan:.*2\. Test it\. Ship it\./);
  }

  /** Whether it streams or comes back from the journal. */
  async function askedOn() {
    const { chat } = bench;
    const entries = (status) => [
      { content: "Read", status: "completed" },
      { content: "Write", status },
    ];
    const plan = (id, status) => ({ call: { id, name: "update_plan", arguments: { entries: entries(status) } } });
    await bench.newSession();
    await model.script(
      [plan("call_open", "in_progress")],
      [{ text: "First words." }],
      [{ text: "Last words." }, plan("call_closed", "completed")],
      [{ text: "The end." }],
    );
    await bench.say("Read and write.");
    await chat.locator(".answer", { hasText: "The end." }).waitFor();
    await bench.idle();
    const paragraphs = async () => {
      await chat.locator(".answer p", { hasText: /^First words\.$/ }).waitFor();
      await chat.locator(".answer p", { hasText: /^Last words\.$/ }).waitFor();
    };
    await paragraphs();
    await bench.reload();
    await paragraphs();
  }

  return [
    ["the checks at the end of a turn are off with their setting", off],
    ["a turn ends without new problems: TypeScript imports, the model corrects, the old error stays", clean],
    ["a file that no tab shows is changed on the disk", unseen],
    ["what the model says after it was asked to continue is a paragraph of its own", askedOn],
    ["a plan starts in a new session, which has read nothing else", plan],
  ];
}
