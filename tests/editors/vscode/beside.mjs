// What happens outside the chat: files dropped and picked, a notice while the window is not focused, a commit message.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { START_MS, exactly, until } from "./workbench.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** The checks, in order, each a name and a function. */
export function besideChecks({ bench, model, settings, picture }) {
  const { chat, page } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });

  async function lastMessage() {
    const { requests } = await model.state();
    return JSON.stringify(requests.at(-1).messages.at(-1));
  }

  async function dropped() {
    await model.reset();
    bench.save("pixel.png", Buffer.from(PIXEL, "base64"));
    const uris = [`vscode-remote://localhost${bench.project}/README.md`, `file://${bench.project}/pixel.png`];
    await chat.locator("textarea").evaluate((input, list) => {
      const data = new DataTransfer();
      data.setData("text/uri-list", list);
      input.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, uris.join("\r\n"));
    await chat.locator(".composer .chip", { hasText: "README.md" }).waitFor();
    await chat.locator(".composer .chip", { hasText: "pixel.png" }).waitFor();
    await model.script([{ text: "Both are here." }]);
    await bench.say("What are they?");
    await answer("Both are here.").waitFor();
    await bench.idle();
    const sent = await lastMessage();
    assert.match(sent, /README\.md/);
    assert.ok(sent.includes(PIXEL), "the image with its bytes");
  }

  async function picked() {
    await bench.openFile("stock.ts");
    await chat.getByRole("button", { name: "Add the selection, files or images" }).click();
    await bench.choose("Files and Images");
    const row = (name) => page.locator(".quick-input-list .monaco-list-row", { hasText: name });
    await row("stock.ts").waitFor(); // the dialog starts in the folder of the open file
    await page.locator(".quick-input-widget input[type=text]").fill(`${bench.project}/`);
    await row("pixel.png").click();
    await chat.locator(".composer .chip", { hasText: "pixel.png" }).waitFor();
    await chat.getByRole("button", { name: "Remove pixel.png" }).click();
  }

  /** It has no file to read. */
  async function untitled() {
    await bench.command("File: New Untitled Text File");
    await page.locator(".editor-instance .monaco-editor.focused").waitFor();
    await page.keyboard.insertText("flour, eggs");
    await bench.command("tandem: Ask About Selection");
    await chat.locator(".composer .chip", { hasText: /^Untitled-1$/ }).waitFor();
    await model.script([{ text: "A cake." }]);
    await bench.say("What is it for?");
    await answer("A cake.").waitFor();
    await bench.idle();
    assert.match(await lastMessage(), /flour, eggs/);
    await bench.command("View: Revert and Close Editor");
  }

  /** In the built-in notebook editor; no cell is run. */
  async function notebook() {
    const cell = (source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source: [source] });
    bench.save("sums.ipynb", JSON.stringify({ cells: [cell("import math"), cell("sum([1, 2])")], metadata: {}, nbformat: 4, nbformat_minor: 5 }));
    await bench.openTab("sums.ipynb");
    await page.locator(".notebookOverlay .cell .view-line", { hasText: "sum([1, 2])" }).click();
    await page.locator(".notebookOverlay .monaco-editor.focused").waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.press("a");
    await chat.locator(".composer .chip", { hasText: "sums.ipynb, cell 2" }).waitFor();
    await model.script([{ text: "Three." }]);
    await bench.say("What is it?");
    await answer("Three.").waitFor();
    await bench.idle();
    assert.match(await lastMessage(), /From sums\.ipynb, cell 2:[\s\S]*sum\(\[1, 2\]\)/);
    await bench.command("View: Close Editor");
    await bench.reload();
    const said = chat.locator(".list .user", { hasText: "What is it?" }).last();
    await said.locator(".chip", { hasText: "sums.ipynb, cell 2" }).waitFor();
    assert.equal(await said.locator(".user-text").innerText(), "What is it?", "what was sent along is no part of what was written");
  }

  async function unfocused() {
    await bench.newSession();
    await model.script([{ text: "One moment. " }, { gate: "away" }, { text: "Still here. " }, { gate: "done" }, { text: "Done." }]);
    await bench.say("Take your time.");
    await model.state("gate:away");
    await page.evaluate(() => {
      document.hasFocus = () => false;
      document.dispatchEvent(new Event("visibilitychange")); // the window checks again whether it has the focus
    });
    await model.open("away");
    await answer("Still here.").waitFor(); // in the meantime, the extension has learned that the window isn't focused
    await model.open("done");
    await page.locator(".notifications-toasts .notification-list-item", { hasText: "tandem finished: Take your time." }).waitFor();
    await picture("notice");
    await page.evaluate(() => {
      delete document.hasFocus;
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await bench.command("Notifications: Clear All Notifications");
  }

  async function commitMessage() {
    const git = (...args) => execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.org", ...args], { cwd: bench.project });
    git("init", "--quiet");
    git("add", "--all");
    git("commit", "--quiet", "--message", "Open the shop");
    bench.save("README.md", "# A shop\n\nOpen on Sundays.\n");
    git("add", "README.md");
    bench.save("src/cart.ts", "// nothing of this is staged\n");
    await bench.openFile("price.ts"); // opening a file in a repository makes git search for it
    await page.keyboard.press("Control+Shift+g"); // git's progress covers the icon
    await model.reset();
    await model.script([{ text: "Say when the shop is open" }]);
    await page.locator(".scm-editor").first().waitFor({ timeout: START_MS }); // git has found the repository
    await page.locator(".pane-header:not(.hidden)", { hasText: "Changes" }).first().hover(); // otherwise its buttons are hidden
    await page.getByRole("button", { name: "Write Commit Message" }).first().click();
    await page.locator(".scm-editor .view-line", { hasText: "Say when the shop is open" }).waitFor();
    await picture("commit");
    const sent = await lastMessage();
    assert.match(sent, /Open the shop[\s\S]*\+Open on Sundays/);
    assert.doesNotMatch(sent, /nothing of this is staged/);
    await model.script([{ status: 401, body: { error: { message: "Incorrect API key provided" } } }]);
    await page.getByRole("button", { name: "Write Commit Message" }).first().click();
    await page.locator(".notifications-toasts", { hasText: /401|key/ }).waitFor();
    await page.locator(".scm-editor .view-line", { hasText: "Say when the shop is open" }).waitFor();
    await bench.command("Notifications: Clear All Notifications");
  }

  /** The browser may not read the clipboard at first: then the prompt moves back to the input. */
  async function mentioned() {
    const box = chat.locator("textarea");
    await bench.command("tandem: Open Chat");
    await model.reset();
    await model.script([{ text: "Both are read." }]);
    await bench.command("Terminal: Create New Terminal");
    await page.locator(".terminal .xterm-rows", { hasText: "$" }).or(page.locator(".terminal .xterm-rows", { hasText: "#" })).waitFor();
    await page.locator(".terminal .xterm-helper-textarea").focus();
    await page.keyboard.type("# closing time");
    await page.locator(".terminal .xterm-rows", { hasText: "closing time" }).waitFor();
    await page.context().clearPermissions();
    bench.save("closing.txt", "At six.\n");
    const choose = async (typed, chosen) => {
      await page.keyboard.type(typed);
      await chat.locator(".suggestions .option[aria-selected=true]", { hasText: chosen }).waitFor();
      await page.keyboard.press("Tab");
    };
    await box.focus();
    await choose("What do @gi", "not committed");
    await choose("and @term", "active terminal");
    const question = "What do @git and @terminal say?";
    await page.keyboard.press("Backspace");
    await page.keyboard.type(" say?");
    await until(box, ({ value }, text) => value === text, question);
    await box.press("Enter");
    await chat.locator(".notice", { hasText: "Not sent; moved back to the input: tandem reads the terminal" }).waitFor();
    await until(box, ({ value }, text) => value === text, question);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await box.press("Enter");
    await answer("Both are read.").waitFor();
    await bench.idle();
    assert.match(await lastMessage(), /# closing time[\s\S]*new file, not added: closing.txt[\s\S]*\+Open on Sundays/);
    await exactly(chat.locator(".user").last().locator(".chip"), 2);
    await exactly(page.locator(".notifications-toasts", { hasText: "no selection" }), 0);
    await page.context().clearPermissions();
    await bench.command("Terminal: Kill All Terminals");
    await bench.command("Notifications: Clear All Notifications");
  }

  async function restartedWith(settings) {
    const restarted = chat.locator("body").evaluate(anotherPhase); // however short it is
    bench.configure(settings);
    await restarted;
    await chat.locator("body[data-phase=ready]").waitFor();
  }

  /** Enabled by the setting, without a restart; typed in one input event, so that there is one request. */
  async function suggested() {
    bench.write(".config/tandem/config.toml", `[providers.mine]\nbase-url = "${model.baseUrl}"\n`);
    await restartedWith({ ...settings, "tandem.completion.model": "mine/coder" });
    await bench.openFile("README.md");
    await model.reset();
    await model.script([{ text: "closed on Mondays." }], [{ text: "" }]); // the second, where the first was accepted
    await bench.goToEndOf("Open on Sundays.");
    await page.keyboard.insertText(" We are ");
    await page.locator(".editor-instance [class*=ghost-text]", { hasText: "closed on Mondays." }).first().waitFor();
    await picture("suggestion");
    await page.keyboard.press("Tab");
    await page.locator(".editor-instance .view-line", { hasText: "Open on Sundays. We are closed on Mondays." }).waitFor();
    await page.locator(".editor-instance [class*=ghost-text]").first().waitFor({ state: "detached" });
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests[0].messages), /Open on Sundays\. We are /);
  }

  /** Two lines below the cursor, where VS Code shows no inline completion. */
  async function nextEdit() {
    const options = `[completion]\napi = "completions"\nnext-edit = true\n\n[providers.mine]\nbase-url = "${model.baseUrl}"\n`;
    bench.write(".config/tandem/config.toml", options);
    const text = "const base = side\n// a square\nexport const area = side * side\n";
    const done = text.replaceAll("side", "sideLength");
    bench.save("src/area.md", text);
    await restartedWith({ ...settings, "tandem.completion.model": "mine/sweep-next-edit-1.5B" });
    await bench.openFile("area.md");
    await model.reset();
    const reply = (text) => [{ status: 200, body: { choices: [{ text, finish_reason: "stop" }] } }];
    await model.script(reply(done), reply(done));
    await bench.goToEndOf("base = side");
    await page.keyboard.insertText("Length");
    const line = (text) => page.locator(".editor-instance .view-line", { hasText: text });
    const isBehind = (element) =>
      [...element.querySelectorAll("*")].some((part) => /sideLength.\*.sideLength.⇥/.test(getComputedStyle(part, "::after").content));
    await until(line("area = side * side"), isBehind);
    await picture("next-edit");
    const [{ prompt }] = (await model.state()).requests;
    const header = "<|file_sep|>src/area.md.diff\noriginal:\nconst base = side\n";
    assert.ok(prompt.includes(header) && prompt.endsWith("<|file_sep|>updated/src/area.md\n"), prompt);
    await page.keyboard.press("Tab");
    await line("area = sideLength * sideLength").waitFor();
    await line("area = side * side").waitFor({ state: "detached" });
    await bench.command("File: Save"); // in other checks, commands would save it
    await page.locator(".tab.active.dirty").waitFor({ state: "detached" });
    // Typing in other checks gets no completions: the request would consume a reply of their scripts.
    bench.write(".config/tandem/config.toml", "");
    await restartedWith(settings);
  }

  return [
    ["dropped files are sent: an image with its bytes, others by name", dropped],
    ["the button below the input attaches a file", picked],
    ["a document without a file is sent with its text", untitled],
    ["a notebook cell is asked about", notebook],
    ["a turn that ends while the window is not focused is announced", unfocused],
    ["a commit message is written from the staged diff, and a failure keeps it", commitMessage],
    ["what @git and @terminal name is sent along, or the message comes back", mentioned],
    ["inline completion, once configured, suggests while typing, and Tab accepts", suggested],
    ["the next edit is drawn where it is, and Tab accepts it", nextEdit],
  ];
}

/** Runs in the browser: waits until the chat changes its phase, even briefly. */
function anotherPhase(body) {
  const { phase } = body.dataset;
  return new Promise((resolve) => {
    const look = (records) => records.some(({ oldValue }) => oldValue !== phase) || body.dataset.phase !== phase;
    new MutationObserver((records, observer) => look(records) && resolve(observer.disconnect())).observe(body, {
      attributeFilter: ["data-phase"],
      attributeOldValue: true,
    });
  });
}
