// A person's first minutes: a fresh profile, by keyboard alone, from the installed extension to a reviewed edit; and a folder that is not trusted.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TRY_MS, USER_SETTINGS, eventually, exactly, until } from "./workbench.mjs";

const GREETING = "src/greeting.ts";
const GREETING_TEXT = "export const greeting = 'hello';\n";
const POLITE = "export const greeting = 'good morning';";

/** The checks, in order, each a name and a function. `start` returns a workbench with its own profile. */
export function profileChecks({ bench, model, settings, start }) {
  async function byKeyboard() {
    const fresh = await start({ files: { [GREETING]: GREETING_TEXT } });
    try {
      await setUp(fresh);
      await reviewed(fresh);
    } finally {
      await fresh.close();
    }
  }

  async function unreceived() {
    const box = bench.chat.locator("textarea");
    await bench.newSession(); // an earlier one that cannot be loaded would say so in its place
    bench.isWorn = true;
    bench.configure({ ...settings, "tandem.server.path": "/bin/false" });
    await bench.open();
    await bench.command("tandem: Open Chat");
    await bench.chat.locator(".welcome .error", { hasText: "/bin/false did not start" }).waitFor();
    await bench.say("Who hears this?");
    await bench.chat.locator(".list .error", { hasText: "/bin/false did not start" }).waitFor();
    bench.configure(settings);
    await bench.reload();
    await until(box, ({ value }) => value === "Who hears this?");
    await box.fill("");
  }

  /** The folder selects a wrong executable, which a trusted folder may. */
  async function untrusted() {
    const folder = `folder=${join(bench.folder, "theirs")}`;
    bench.isWorn = true;
    bench.write("theirs/.vscode/settings.json", JSON.stringify({ "tandem.server.path": "/bin/false" }));
    await bench.open(folder);
    await bench.command("tandem: Open Chat");
    await bench.chat.locator(".welcome .error", { hasText: "/bin/false did not start" }).waitFor();
    const asked = { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" };
    bench.write("data/User/settings.json", JSON.stringify({ ...USER_SETTINGS, ...asked }));
    await bench.open(folder);
    await bench.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
    await bench.command("tandem: Open Chat");
    await bench.newSession();
    await model.reset();
    await model.script([{ text: "The folder chose no program." }]);
    await bench.say("Who are you?");
    await bench.chat.locator(".answer", { hasText: "The folder chose no program." }).waitFor();
    await bench.idle();
  }

  /** Opens the chat, which shows the form; closes it, moves to the button that reopens it, and fills it in. */
  async function setUp(bench) {
    const { keyboard } = bench.page;
    const form = bench.chat.getByRole("form", { name: "Set up a model" });
    await bench.type("tandem: Open Chat");
    await form.locator("[name=provider]:focus").waitFor();
    await keyboard.press("Escape");
    await bench.chat.locator("textarea:focus").waitFor();
    const button = bench.chat.locator(".welcome .error").getByRole("button", { name: "Set Up Model" });
    await button.waitFor();
    await pressUntil(bench, "Shift+Tab", button);
    await keyboard.press("Enter");
    await form.locator("[name=provider]:focus").waitFor();
    await keyboard.press("End"); // the person's own endpoint is the last one
    await keyboard.press("Tab");
    await form.locator("[name=address]:focus").waitFor();
    await keyboard.type(model.baseUrl);
    await keyboard.press("Tab");
    await form.locator("[name=key]:focus").waitFor();
    await keyboard.type("sk-by-keyboard");
    await keyboard.press("Tab");
    await form.locator("[name=model]:focus").waitFor();
    await form.locator("[name=model][placeholder=test]").waitFor(); // the endpoint's only model needs no choice
    await keyboard.press("Enter");
    await form.waitFor({ state: "hidden" });
    await bench.chat.locator("textarea:focus").waitFor();
  }

  /** Asks for an edit, allows it, goes to the change and keeps it. */
  async function reviewed(bench) {
    const { keyboard } = bench.page;
    const edit = { path: GREETING, edits: [{ old_text: "'hello'", new_text: "'good morning'" }] };
    await model.reset();
    await model.script([{ call: { id: "call_k1", name: "edit_file", arguments: edit } }], [{ text: "It is polite now." }]);
    await keyboard.type("Be polite.");
    await keyboard.press("Enter");
    await bench.chat.locator(".asking .line.added", { hasText: "good morning" }).waitFor();
    await eventually(async () => {
      await keyboard.press("Control+k");
      await keyboard.press("Control+y"); // until the window knows of the pending request
      await bench.chat.locator(".asking").waitFor({ state: "detached", timeout: TRY_MS });
    });
    await bench.chat.locator(".answer", { hasText: "It is polite now." }).waitFor();
    await bench.idle();
    await bench.page.locator(".statusbar-item", { hasText: /tandem: Ask before edits\s*1/ }).waitFor();
    await eventually(async () => {
      await keyboard.press("Control+k");
      await keyboard.press("]");
      await bench.page.locator(".editor-instance .monaco-editor.focused").waitFor({ timeout: TRY_MS });
    });
    await bench.bufferIs(GREETING_TEXT.replace("export const greeting = 'hello';", POLITE));
    await bench.type("tandem: Keep Change");
    await exactly(bench.page.locator(".pane-header", { hasText: "Changes" }), 0);
    assert.equal(readFileSync(join(bench.project, GREETING), "utf8"), `${POLITE}\n`); // it was not open, so the edit is on disk
  }

  async function pressUntil(bench, key, button, tries = 12) {
    await bench.page.keyboard.press(key);
    const isThere = await button.evaluate((one) => one === document.activeElement);
    if (!isThere) {
      assert.ok(tries > 1, `${key} does not reach it`);
      await pressUntil(bench, key, button, tries - 1);
    }
  }

  return [
    ["first run by keyboard alone: from the installed extension to a reviewed edit", byKeyboard],
    ["a prompt that no server received is in the input after a reload", unreceived],
    ["an untrusted folder cannot choose the program", untrusted],
  ];
}
