// Rewinding a session to an earlier prompt, edited or not; copying; images; how commands ended.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TRY_MS, eventually, exactly, until } from "./workbench.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Prints in color, and fails. */
const FAILS = "printf '\\033[31mno\\033[m\\n'; exit 3";

/** The checks, in order, each a name and a function. */
export function shapeChecks({ bench, model, picture }) {
  const { chat } = bench;
  const box = chat.locator("textarea");
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const said = (text) => chat.locator(".list .user", { hasText: text });
  const shows = (text, timeout) => until(box, ({ value }, expected) => value === expected, text, timeout);
  const write = (text) => ({ call: { id: `call_${text}`, name: "write_file", arguments: { path: "notes.txt", content: text } } });
  const notes = () => readFileSync(join(bench.project, "notes.txt"), "utf8");

  async function failedCommand() {
    await model.reset();
    await bench.newSession();
    await bench.setMode("ask");
    await model.script([{ call: { id: "call_f1", name: "run_command", arguments: { command: FAILS } } }], [{ text: "It failed." }]);
    await bench.say("Run it.");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("It failed.").waitFor();
    await bench.idle();
    await chat.locator(".tool[data-status=failed] .exit", { hasText: /^exit code 3 · \d/ }).waitFor();
    await chat.locator(".tool[data-status=failed] .title code", { hasText: FAILS }).waitFor();
    await chat.locator(".tool[data-status=failed]").getByRole("button", { name: "Unfold" }).click();
    const red = chat.locator(".tool[data-status=failed] .output span", { hasText: /^no$/ });
    await until(red, (part) => getComputedStyle(part).color !== getComputedStyle(part.parentElement).color); // it was printed in color
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages.at(-1)), /"no\\n/, "the model reads no control codes");
    await picture("failed-command");
  }

  async function linesOfCommand() {
    const command = "for word in one two; do\n  echo $word\ndone";
    await model.script([{ call: { id: "call_lines", name: "run_command", arguments: { command } } }], [{ text: "Both are said." }]);
    await bench.say("Say both.");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("Both are said.").waitFor();
    await bench.idle();
    const card = chat.locator(".tool", { hasText: "for word in" });
    await card.getByRole("button", { name: "Unfold" }).click();
    await until(card.locator(".title code"), ({ innerText }, lines) => innerText === lines, command);
  }

  async function inTerminal() {
    await chat.locator(".tool[data-status=failed]").getByRole("button", { name: "Run in Terminal" }).click();
    await bench.page.locator(".terminal .xterm-rows", { hasText: "exit 3" }).waitFor(); // typed, but not run
    await bench.command("Terminal: Kill All Terminals");
    await bench.page.locator(".terminal .xterm-rows").waitFor({ state: "detached" });
  }

  async function backAndChanged() {
    await model.script([write("one")], [{ text: "One is written." }], [write("two")], [{ text: "Two is written." }]);
    await bench.say("Write one.");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("One is written.").waitFor();
    await bench.idle();
    await bench.say("Write two.");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("Two is written.").waitFor();
    await bench.idle();
    assert.equal(notes(), "two");
    await box.fill("A draft.");
    await said("Write two.").hover();
    await picture("actions");
    await said("Write two.").getByRole("button", { name: /^Edit/ }).click();
    await chat.locator(".composer .editing", { hasText: "Editing an earlier prompt" }).waitFor();
    await shows("Write two.");
    assert.equal(notes(), "two", "nothing is reverted before the message is sent");
    await box.fill("Write nothing.");
    await box.press("Escape");
    await shows("A draft.");
    await chat.locator(".composer .editing").getByText("Editing").waitFor({ state: "detached" });
    await said("Write two.").hover();
    await said("Write two.").getByRole("button", { name: /^Edit/ }).click();
    await shows("Write two.");
    await picture("editing");
    await model.script([write("three")], [{ text: "Three it is." }]);
    await box.fill("Say three.");
    await box.press("Enter");
    await chat.locator(".asking .question button.allow_once").waitFor();
    assert.equal(notes(), "one", "the file is as it was before the edited message");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("Three it is.").waitFor();
    await bench.idle();
    await shows("A draft.");
    await box.fill("");
    await exactly(answer("Two is written."), 0);
    const { requests } = await model.state();
    const sent = JSON.stringify(requests.at(-1).messages);
    assert.ok(sent.includes("Write one.") && !sent.includes("Write two."), "the model does not see it any more");
    await bench.command("tandem: Undo Last Turn");
    await chat.locator(".notice", { hasText: "Undid “Say three.”" }).waitFor();
    assert.equal(notes(), "one");
    await bench.command("tandem: Undo Last Turn");
    await chat.locator(".notice", { hasText: "Restored changes: notes.txt" }).waitFor();
    assert.equal(notes(), "two", "what the edited message took back is not lost");
    await bench.page.locator(".pane .monaco-list-row", { hasText: "Write two." }).waitFor();
  }

  async function keysAfterDialog() {
    const other = { call: { id: "call_other", name: "write_file", arguments: { path: "other.txt", content: "1" } } };
    await bench.setMode("edit");
    await model.script([write("four"), other], [{ text: "Both are written." }]);
    await bench.say("Write both.");
    await answer("Both are written.").waitFor();
    await bench.idle();
    await said("Write both.").getByRole("button", { name: /^Edit/ }).press("Enter");
    await shows("Write both.");
    await box.press("Enter");
    await bench.answerDialog("reverts the changes in 2 files", "Cancel");
    await chat.locator("textarea:focus").waitFor();
    await shows("Write both.");
    await box.press("Escape");
    await bench.command("tandem: Undo Last Turn");
    await chat.locator(".notice", { hasText: "Undid “Write both.”" }).waitFor();
    await bench.setMode("ask");
  }

  async function again() {
    await model.script([{ text: "Another three." }]);
    await said("Say three.").getByRole("button", { name: /^Send again/ }).press("Enter");
    await answer("Another three.").waitFor();
    await bench.idle();
    await exactly(said("Say three."), 1);
    await exactly(answer("Three it is."), 0);
    await answer("Another three.").getByRole("button", { name: "Copy answer" }).press("Enter");
    await eventually(async () => {
      await box.fill("");
      await box.press("Control+v"); // until the extension has put it on the clipboard
      await shows("Another three.", TRY_MS);
    });
    await box.fill("");
  }

  async function pasted() {
    await box.evaluate((input, data) => {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const files = new DataTransfer();
      files.items.add(new File([bytes], "image.png", { type: "image/png" }));
      for (let count = 0; count < 2; count++) {
        input.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true }));
      }
    }, PIXEL);
    const isDrawn = (picture) => until(picture, ({ naturalWidth, clientWidth }) => naturalWidth === 1 && clientWidth > 0);
    await isDrawn(chat.locator(".composer .chip", { hasText: "image.png (2)" }).locator("img"));
    await chat.getByRole("button", { name: "Remove image.png (2)" }).click();
    await model.script([{ text: "A pixel." }]);
    await bench.say("What is it?");
    await answer("A pixel.").waitFor();
    await bench.idle();
    await isDrawn(said("What is it?").locator(".chip img"));
    const { requests } = await model.state();
    assert.equal(JSON.stringify(requests.at(-1).messages).split(PIXEL).length - 1, 1, "the image goes along, once");
  }

  async function comments() {
    await bench.openFile("stock.ts");
    for (const [line, words] of [["export function low", "say what low means"], ["export function text", "and translate it"]]) {
      await bench.goToEndOf(line);
      await bench.command("tandem: Comment");
      await bench.answerInputBox(words);
      await chat.locator(".composer .chip", { hasText: words }).waitFor();
    }
    await bench.reload();
    await exactly(chat.locator(".composer .chip", { hasText: "stock.ts:" }), 2); // they are still there
    await bench.openFile("stock.ts"); // what is in front after a reload is up to VS Code
    await bench.goToEndOf("export function text");
    const place = chat.getByRole("button", { name: "stock.ts:5", exact: true });
    await bench.toggle(place, false);
    await picture("comments");
    await model.script([{ text: "Both seen." }]);
    await bench.say("Do both.");
    await answer("Both seen.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    const sent = JSON.stringify(requests.at(-1).messages.at(-1));
    assert.match(sent, /Comment on src\/stock\.ts:1:[\s\S]*function low[\s\S]*say what low means[\s\S]*stock\.ts:5:[\s\S]*and translate it/);
    assert.doesNotMatch(sent, /user is looking at/, "it was left out");
    await bench.toggle(place, true);
    await model.script([{ text: "There." }]);
    await bench.say("And here?");
    await answer("There.").waitFor();
    await bench.idle();
    const { requests: more } = await model.state();
    assert.match(JSON.stringify(more.at(-1).messages.at(-1)), /user is looking at [^"]*stock\.ts/);
  }

  /** The model's question and the answer stay in the chat. */
  async function asked() {
    const question = { question: "Which currency?", options: ["EUR", "USD", "Japanese yen", "Swiss francs", "None"] };
    await model.script([{ call: { id: "call_q1", name: "ask_user", arguments: question } }], [{ text: "So be it." }]);
    await bench.say("Pick one.");
    await chat.locator(".asking .question button", { hasText: "EUR" }).waitFor();
    const inOrder = ({ children }) => {
      const places = [...children].map((button) => button.getBoundingClientRect());
      const isAfter = ({ top, left }, before) => top > before.top || (top === before.top && left > before.left);
      return places.at(-1).top > places[0].top && places.slice(1).every((place, index) => isAfter(place, places[index]));
    };
    await until(chat.locator(".asking .question .buttons"), inOrder); // as the model listed them, in several rows
    await picture("asks");
    await chat.locator(".asking .question button", { hasText: "EUR" }).click();
    await answer("So be it.").waitFor();
    await bench.idle();
    await chat.locator(".tool .title", { hasText: /^Which currency\?$/ }).waitFor();
    await chat.locator(".tool .output", { hasText: /^EUR\s*$/ }).waitFor();
    await picture("asked");
    await bench.reload();
    await chat.locator(".tool .title", { hasText: /^Which currency\?$/ }).waitFor();
    await chat.locator(".tool .output", { hasText: /^EUR\s*$/ }).waitFor();
    await chat.locator(".composer .usage", { hasText: /tokens/ }).waitFor();
  }

  return [
    ["a command that failed is red, with its exit code and duration", failedCommand],
    ["an unfolded command has the lines it was written with", linesOfCommand],
    ["Run in Terminal types a command and does not run it", inTerminal],
    ["an edited message restores files and conversation when it is sent, and Escape cancels", backAndChanged],
    ["the keys go on in the input after a dialog that the chat opened", keysAfterDialog],
    ["a message can be sent again, and an answer copied", again],
    ["comments on lines are collected, and sent as one prompt", comments],
    ["a pasted image is sent, and a removed one is not", pasted],
    ["a question of the model's and its answer stay in the chat, after a reload too", asked],
  ];
}
