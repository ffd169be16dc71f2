// What must not break the chat: no server, a wrong one, an endpoint that fails, texts of any size.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { exactly } from "./workbench.mjs";

const BIG = "src/big.txt";
const LINE = "x".repeat(300_000);

/** The checks, in order, each a name and a function. */
export function badInputChecks({ bench, model, settings }) {
  const { chat } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });

  async function works(words) {
    await model.script([{ text: words }]);
    await bench.say("And now?");
    await answer(words).waitFor();
    await bench.idle();
  }

  async function wrongPrograms() {
    for (const [path, says] of [
      ["/nowhere/tandem", /names "\/nowhere\/tandem", which is not a file/],
      ["/bin/true", /\/bin\/true did not start as a language server/],
    ]) {
      bench.configure({ ...settings, "tandem.server.path": path });
      await bench.command("tandem: New Session"); // without a server, earlier content is not shown
      const card = chat.locator(".welcome .error");
      await card.getByRole("button", { name: "Select Executable…" }).waitFor();
      await card.filter({ hasText: says }).waitFor();
    }
    bench.configure(settings);
    await bench.newSession();
    await works("There it is.");
  }

  async function failures() {
    const refusal = (status, message) => [{ status, body: { error: { message } } }];
    await model.script(refusal(404, "The model `qwen3-coder` does not exist"));
    await bench.say("Anybody?");
    const refused = chat.locator(".list .error", { hasText: "does not exist" });
    await refused.getByRole("button", { name: "Try Again" }).waitFor();
    await works("After 404.");
    await exactly(refused.getByRole("button"), 0); // otherwise it would repeat the wrong message
    await model.script(refusal(500, "boom"), [{ text: "After 500." }]);
    await bench.say("Try.");
    await answer("After 500.").waitFor(); // retried automatically
    await bench.idle();
    await model.script([{ status: 429, headers: { "retry-after": "1" }, body: { error: { message: "slow down" } } }], [{ text: "After 429." }]);
    await bench.say("Too fast?");
    await answer("After 429.").waitFor();
    await bench.idle();
    await exactly(chat.locator(".list .notice", { hasText: "retrying" }), 0); // it is over
    await model.script([{ hang: true }], [{ text: "After a stall." }]);
    const { requests } = await model.state();
    await bench.say("Silence?");
    await model.state(`requests:${requests.length + 1}`);
    await chat.getByRole("button", { name: "Stop" }).click();
    await bench.idle();
    await bench.say("Still there?");
    await answer("After a stall.").waitFor();
    await bench.idle();
    await model.script([{ text: "Half of" }, { drop: true }]);
    await bench.say("And a lost connection?");
    const cut = chat.locator(".list .error").last();
    await cut.getByRole("button", { name: "Continue", exact: true }).waitFor();
    await exactly(cut.getByRole("button"), 1);
    await model.script([{ text: "The other half." }]);
    await cut.getByRole("button", { name: "Continue", exact: true }).click();
    await answer("The other half.").waitFor();
    await bench.idle();
  }

  /** Both windows have the earlier session; one has it locked. */
  async function twoWindows() {
    const second = await bench.another();
    try {
      await second.command("tandem: Open Chat");
      await model.script([{ text: "From the second window." }]);
      await second.say("Is this one alive?");
      await second.chat.locator(".answer", { hasText: "From the second window." }).waitFor();
      await second.chat.getByRole("tab").nth(1).waitFor(); // both windows save which sessions are open: the first one's is not lost
      await bench.page.bringToFront();
      await works("From the first window.");
    } finally {
      await second.page.close();
    }
  }

  async function severalFolders() {
    bench.write("other/far.txt", "a far away text\n");
    const folders = [bench.project, join(bench.folder, "other")].map((path) => ({ path }));
    bench.write("both.code-workspace", JSON.stringify({ folders }));
    const second = await bench.another(`workspace=${join(bench.folder, "both.code-workspace")}`);
    try {
      await second.command("tandem: Open Chat");
      await second.newSession();
      const read = { call: { id: "call_far", name: "read_file", arguments: { path: join(bench.folder, "other/far.txt") } } };
      await model.script([read], [{ text: "I read it." }]);
      await second.say("Read the far one.");
      await second.chat.locator(".answer", { hasText: "I read it." }).waitFor();
      await second.idle();
      const { requests } = await model.state();
      assert.match(JSON.stringify(requests.at(-1).messages.at(-1)), /a far away text/);
    } finally {
      await second.page.close();
    }
  }

  /** VS Code opens it as UTF-8: neither an edit nor a command that reads its unsaved text may make that permanent. */
  async function misread() {
    const menu = (text) => Buffer.from(`caf\xe9\n${text}\n`, "latin1");
    const call = (name, args) => [{ call: { id: `call_${name}`, name, arguments: args } }];
    bench.save("menu.txt", menu("tea"));
    await bench.openFile("menu.txt");
    await bench.newSession();
    await bench.setMode("auto");
    await model.reset();
    await model.script(
      call("edit_file", { path: "menu.txt", edits: [{ old_text: "tea", new_text: "water" }] }),
      call("run_command", { command: "sed -i s/tea/milk/ menu.txt" }),
      [{ text: "Milk it is." }],
    );
    await bench.say("No tea.");
    await answer("Milk it is.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(requests[1].messages.at(-1).content, /menu\.txt is open in the editor in the wrong encoding/);
    assert.deepEqual(readFileSync(join(bench.project, "menu.txt")), menu("milk"));
    await bench.editor.locator(".view-line", { hasText: "milk" }).waitFor();
    await bench.page.locator(".tab.active:not(.dirty)", { hasText: "menu.txt" }).waitFor();
    await bench.keepAll();
    await bench.setMode("ask");
  }

  async function hostile() {
    const text = [
      "![a picture](https://example.invalid/pixel.png?leak=1)",
      "[run me](command:workbench.action.closeWindow) [or me](javascript:alert(1)) [or this](data:text/html,x)",
      '<img src="https://example.invalid/pixel.png" onerror="alert(1)"><script>alert(1)</script>',
      "The end of the attack.",
    ].join("\n\n");
    await model.script([{ text }]);
    await bench.say("Attack me.");
    await answer("The end of the attack.").waitFor();
    await bench.idle();
    const last = answer("The end of the attack.");
    await exactly(last.locator("img, script, iframe, [onerror]"), 0);
    await exactly(last.locator('a[href^="command:"], a[href^="javascript:"], a[href^="data:"]'), 0);
  }

  async function sizes() {
    await model.script([{ text: `${LINE}\n\nThe end of it.` }]);
    await bench.say("A long line, please.");
    await answer("The end of it.").waitFor();
    await bench.idle();
    bench.save(BIG, `${"a line of text, one of many\n".repeat(180_000)}the last one\n`);
    await bench.openFile("big.txt");
    await bench.command("tandem: Ask About Selection");
    await works("A big file.");
  }

  return [
    ["a missing or wrong program is reported, and the right one works", wrongPrograms],
    ["an endpoint that refuses, fails or drops the connection is reported, and the next message works", failures],
    ["two windows on one folder each have a working conversation", twoWindows],
    ["files of every folder of a workspace can be read", severalFolders],
    ["a file that VS Code reads in a wrong encoding keeps its characters", misread],
    ["hostile Markdown loads nothing, runs nothing and links to no command", hostile],
    ["the chat survives a line of 300 kB and a file of 5 MB", sizes],
  ];
}
