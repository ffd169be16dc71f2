// Several sessions in one window: their tabs, the list of saved ones, and one exported as text.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { exactly, until } from "./workbench.mjs";

/** The checks, in order, each a name and a function. */
export function tabChecks({ bench, model, picture }) {
  const { chat, page } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const said = (text) => chat.locator(".list .user", { hasText: text });
  const tab = (text) => chat.getByRole("tab", { name: text });
  const row = (text) => page.locator(".quick-input-list .monaco-list-row", { hasText: text });

  async function sideBySide() {
    await model.reset();
    await bench.newSession();
    await bench.setMode("ask");
    await model.script(
      [{ text: "It takes a while. " }, { gate: "slow" }, { text: "There it is." }],
      [{ call: { id: "call_t1", name: "write_file", arguments: { path: "beside.txt", content: "beside\n" } } }],
      [{ text: "It is written." }],
    );
    await bench.say("Take your time with this.");
    await model.state("gate:slow");
    await bench.newSession();
    await tab(/^running: Take your time/).waitFor();
    await bench.say("Write a file beside it.");
    await chat.locator(".asking .question button").first().waitFor();
    await bench.newSession();
    await tab(/^waiting for your answer: Write a file/).waitFor();
    await page.locator(".activitybar [aria-label^=tandem] .badge", { hasText: "1" }).first().waitFor();
    await picture("tabs");
    assert.ok(!existsSync(join(bench.project, "beside.txt")));
    await tab(/Write a file/).click();
    await said("Write a file beside it.").waitFor();
    await exactly(said("Take your time"), 0);
    await chat.locator(".asking .question button.allow_once").press("Enter");
    await chat.locator("textarea:focus").waitFor(); // the button that had the keyboard focus is gone
    await answer("It is written.").waitFor();
    await bench.idle();
    await tab(/Take your time/).hover();
    await chat.getByRole("button", { name: "Close Take your time with this." }).click();
    await bench.answerDialog("Closing this session stops its turn.", "Cancel");
    await model.open("slow");
    await tab(/^done: Take your time/).waitFor();
    await tab(/Take your time/).click();
    await answer("There it is.").waitFor();
    await exactly(tab(/^done:/), 0); // it has been seen
  }

  /** By keyboard: the arrows move between tabs, Enter shows one. */
  async function byKeys() {
    await tab(/Take your time/).press("ArrowRight");
    await chat.locator("[role=tab]:focus", { hasText: "Write a file" }).press("Enter");
    await said("Write a file beside it.").waitFor();
    const close = chat.getByRole("button", { name: "Close Write a file beside it." });
    await close.click();
    await bench.answerDialog("has changes to review", "Cancel");
    await close.click();
    await bench.answerDialog("has changes to review", "Close Session");
    await tab(/Write a file/).waitFor({ state: "detached" });
  }

  async function listed() {
    const { keyboard } = page;
    await bench.command("tandem: Open Session");
    await row("Write a file beside it.").waitFor();
    await keyboard.type("beside");
    await row("Take your time").waitFor({ state: "detached" });
    await row("Write a file beside it.").hover();
    await row("Write a file beside it.").getByRole("button", { name: "Rename" }).click();
    await bench.answerInputBox("The file beside");
    await bench.command("tandem: Open Session");
    await row("The file beside").hover();
    await row("The file beside").getByRole("button", { name: "Delete" }).click();
    await page.locator(".monaco-dialog-box", { hasText: "The file beside" }).getByRole("button", { name: "Delete" }).click();
    await bench.command("tandem: Open Session");
    await row("Take your time").first().waitFor();
    await exactly(row("The file beside"), 0);
    await keyboard.press("Escape");
  }

  async function exported() {
    await tab(/Take your time/).or(said("Take your time")).first().waitFor();
    await bench.command("tandem: Export Session as Markdown");
    await page.locator(".tab.active", { hasText: /Untitled|## You/ }).waitFor();
    await bench.editor.locator(".view-line", { hasText: "## You" }).first().waitFor();
    await bench.command("View: Revert and Close Editor");
  }

  /** The context's tokens, followed by the other figures. */
  async function used() {
    const usage = chat.locator(".composer .usage");
    await usage.filter({ hasText: /tokens|%/ }).waitFor();
    await until(usage.locator("span"), ({ title }) => /tokens of context/.test(title));
  }

  /** Typed text stays with its session, and changes to review stay listed. */
  async function ofEach() {
    const box = chat.locator("textarea");
    const shows = (text) => until(box, ({ value }, expected) => value === expected, text);
    const changes = (text) => page.locator(".pane .monaco-list-row", { hasText: text });
    const editing = async () => {
      await bench.newSession();
      await bench.setMode("edit");
    };
    await editing();
    await model.script([{ call: { id: "call_e1", name: "write_file", arguments: { path: "first.txt", content: "first\n" } } }], [{ text: "The first." }]);
    await bench.say("Write the first.");
    await answer("The first.").waitFor();
    await bench.idle();
    await box.fill("For the first.");
    await editing();
    await shows("");
    await changes("Write the first.").waitFor();
    await model.script([{ call: { id: "call_e2", name: "write_file", arguments: { path: "second.txt", content: "second\n" } } }], [{ text: "The second." }]);
    await bench.say("Write the second.");
    await answer("The second.").waitFor();
    await bench.idle();
    await box.fill("For the second.");
    await changes("Write the first.").waitFor();
    await changes("second.txt").first().waitFor();
    await picture("of-each");
    await said("Write the second.").hover();
    await said("Write the second.").getByRole("button", { name: /^Edit/ }).click();
    await shows("Write the second.");
    await tab(/Write the first/).click();
    await shows("For the first.");
    await tab(/Write the second/).click();
    await shows("Write the second.");
    await bench.reload();
    await changes("Write the first.").waitFor();
    await changes("Write the second.").waitFor();
    const both = "For the second.\n\nWrite the second."; // the draft, and the message that took its place
    await shows(both);
    await tab(/Write the first/).click();
    await shows("For the first.");
    await box.fill("");
    await tab(/Write the second/).click();
    await shows(both);
    await box.fill("");
    await bench.command("tandem: Reject All");
    await bench.answerDialog("in 2 files?", "Reject 2 Files");
    await changes("Write the first.").waitFor({ state: "detached" });
    await bench.command("Notifications: Clear All Notifications");
    assert.ok(!existsSync(join(bench.project, "first.txt")) && !existsSync(join(bench.project, "second.txt")));
  }

  /** It is asked about from the Explorer, while another session is in the chat. */
  async function askedElsewhere() {
    await model.reset();
    await model.script([{ gate: "elsewhere" }, { call: { id: "call_t2", name: "write_file", arguments: { path: "there.txt", content: "there\n" } } }], [{ text: "Not there, then." }]);
    await bench.newSession();
    await bench.setMode("ask");
    await bench.say("Write a file there.");
    await model.state("gate:elsewhere");
    await bench.newSession();
    await bench.command("View: Show Explorer");
    await page.locator(".explorer-folders-view").waitFor();
    await model.open("elsewhere");
    await page.locator(".notifications-toasts .notification-list-item", { hasText: "there.txt" }).getByRole("button", { name: "Show" }).click();
    await said("Write a file there.").waitFor();
    await chat.locator(".asking .question button.reject_once").click();
    await answer("Not there, then.").waitFor();
    await bench.idle();
  }

  /** The view is slow to show the new session. */
  async function late() {
    const frames = (hold) =>
      chat.locator("body").evaluate((_, hold) => {
        if (hold) {
          window.held = [];
          window.draw = window.requestAnimationFrame;
          window.requestAnimationFrame = (draw) => window.held.push(draw);
          window.isSwitched = new Promise((resolve) => addEventListener("message", ({ data }) => data.type === "reset" && resolve()));
        } else {
          window.requestAnimationFrame = window.draw;
          window.held.forEach((draw) => requestAnimationFrame(draw));
        }
      }, hold);
    await bench.newSession();
    await model.reset();
    await model.script([{ text: "Yes." }], [{ text: "In Bergen." }]);
    await bench.say("Is there a shop?");
    await answer("Yes.").waitFor();
    await bench.idle();
    await frames(true);
    await bench.command("tandem: New Session");
    await chat.locator("body").evaluate(() => window.isSwitched);
    await chat.locator("textarea").fill("Where is it?");
    await chat.locator("textarea").press("Enter");
    await model.state("requests:2");
    await frames(false);
    await tab(/Is there a shop/).click();
    await said("Where is it?").waitFor();
    await answer("In Bergen.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages), /Is there a shop\?[\s\S]*Where is it\?/);
  }

  /** Its request is read out. */
  async function asksBehind() {
    await model.script([{ gate: "behind" }, { call: { id: "call_t3", name: "write_file", arguments: { path: "there.txt", content: "there\n" } } }], [{ text: "Not there, then." }]);
    await bench.newSession();
    await bench.setMode("ask");
    await bench.say("Write a file behind.");
    await model.state("gate:behind");
    await bench.newSession();
    await model.open("behind");
    await chat.locator("[role=alert]", { hasText: "tandem is waiting for your answer: Write a file behind." }).waitFor();
    await tab(/Write a file behind/).click();
    await chat.locator(".asking .question button.reject_once").click();
    await answer("Not there, then.").waitFor();
    await bench.idle();
  }

  async function unsent() {
    await bench.newSession();
    await model.reset();
    await model.script([{ text: "It is open." }]);
    await bench.say("Is it open?");
    await answer("It is open.").waitFor();
    await bench.idle();
    await chat.locator("textarea").fill("A thought for later.");
    await bench.newSession();
    await tab(/Is it open/).hover();
    await chat.getByRole("button", { name: "Close Is it open?" }).click();
    await bench.answerDialog("discards its unsent prompt", "Cancel");
    await tab(/Is it open/).click();
    await until(chat.locator("textarea"), ({ value }) => value === "A thought for later.");
    await chat.locator("textarea").fill("");
  }

  const cutShort = chat.locator(".notice", { hasText: /Stopped|Interrupted/ }).getByRole("button", { name: "Continue" });

  /** One session's answer was stopped earlier; the other's is running. */
  async function reloaded() {
    await bench.newSession();
    await model.reset();
    await model.script([{ text: "Half of it" }, { hang: true }], [{ text: "Half again" }, { hang: true }]);
    await bench.say("Tell me all.");
    await answer("Half of it").waitFor();
    await chat.getByRole("button", { name: "Stop" }).click();
    await cutShort.waitFor();
    await bench.newSession();
    await bench.say("Once more.");
    await answer("Half again").waitFor();
    await bench.say("Then summarize.");
    await chat.getByText("Then summarize.").waitFor(); // it is queued
    await bench.reload(); // before the browser has rendered any of it
    await said("Once more.").waitFor();
    await answer("Half again").waitFor();
    await cutShort.waitFor();
    const box = chat.locator("textarea");
    await until(box, ({ value }) => value === "Then summarize.");
    await box.fill("");
    await model.script([{ text: "After the reload." }]);
    await bench.say("And now?");
    await answer("After the reload.").waitFor();
    await bench.idle();
  }

  async function cut() {
    await tab(/Tell me all/).click();
    await answer("Half of it").waitFor();
    await picture("cut");
    await model.script([{ text: "and the other half." }]);
    await cutShort.click();
    await answer("and the other half.").waitFor();
    await bench.idle();
    await exactly(chat.getByRole("button", { name: "Continue" }), 0); // it is settled
  }

  return [
    ["each session has its draft, and the changes of all wait in one list", ofEach],
    ["a reload in the middle of a turn loses no message", reloaded],
    ["a cut answer is marked, after a reload too, and continues", cut],
    ["several conversations: one runs, one asks, and their tabs say so", sideBySide],
    ["tabs are changed and closed", byKeys],
    ["Show on the request of another session shows that session", askedElsewhere],
    ["a request of a session behind another is read out", asksBehind],
    ["a prompt belongs to the session in which it was written, however late another is drawn", late],
    ["a session with an unsent prompt is not closed without asking", unsent],
    ["saved sessions are searched, renamed and deleted", listed],
    ["a session is exported as Markdown", exported],
    ["the used tokens are shown", used],
  ];
}
