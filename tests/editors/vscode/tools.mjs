// Tools that another extension gives VS Code's language models: offered to tandem's model, approved, called. And what an MCP server offers the person.
import assert from "node:assert/strict";
import { join } from "node:path";
import { serveWithLogin } from "./oauth.mjs";

const CONFIG = ".config/tandem/config.toml";

export function toolChecks({ bench, model, picture }) {
  async function called() {
    const { chat } = bench;
    await bench.newSession();
    await chat.getByRole("combobox", { name: "Mode", exact: true }).selectOption("auto");
    await model.reset();
    const call = (id, text) => [{ call: { id, name: "vscode__linter_count", arguments: { text } } }];
    await model.script(call("call_v1", "badly, badly"), call("call_v2", ""), [{ text: "Two bad words." }]);
    await bench.say("How many bad words?");
    for (let asked = 0; asked < 2; asked++) {
      await chat.getByText("vscode: linter_count").nth(asked).waitFor();
      if (asked === 0) {
        await picture("tools");
      }
      await chat.getByRole("button", { name: "Allow", exact: true }).click();
    }
    await chat.locator(".answer", { hasText: "Two bad words." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    const offered = requests[0].tools.map((tool) => tool.function.name).filter((name) => name.startsWith("vscode__"));
    assert.deepEqual(offered, ["vscode__linter_count"], "nothing of VS Code's own");
    const results = requests[2].messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    assert.equal(results[0], "2 bad words");
    assert.match(results[1], /an empty text/);
  }

  async function offers() {
    const { chat } = bench;
    const box = chat.locator("textarea");
    const option = (text) => chat.getByRole("option").filter({ hasText: text });
    const server = [process.execPath, join(import.meta.dirname, "notes.mjs")];
    await bench.newSession(); // no prompt is sent before the server is set up
    bench.write(CONFIG, `[mcp.notes]\ncommand = ${JSON.stringify(server)}\n`);
    await bench.newSession();
    await model.reset();
    await model.script([{ text: "Planned." }]);
    await box.fill("/notes");
    await option("/notes:plan").waitFor();
    await picture("server-prompts");
    await box.press("Enter");
    await box.pressSequentially("Monday, from @today");
    await option("notes:note://today").waitFor();
    await picture("server-resources");
    await box.press("Enter");
    await box.press("Enter");
    await chat.locator(".answer", { hasText: "Planned." }).waitFor();
    await bench.idle();
    const { requests } = await model.state();
    const sent = JSON.stringify(requests.at(-1).messages.at(-1));
    for (const text of ["List what is due on that day.", "Monday, from @notes:note://today", "Water the plants."]) {
      assert.ok(sent.includes(text), sent);
    }
    bench.write(CONFIG, "");
  }

  /** The workbench's browser is also the person's: it opens the page, which redirects back to tandem. */
  async function loggedIn() {
    const { chat } = bench;
    const { url, close } = await serveWithLogin();
    bench.write(CONFIG, `[mcp.web]\nurl = "${url}"\n`);
    await bench.newSession();
    await model.reset();
    const call = [{ call: { id: "call_w1", name: "web__whoami", arguments: {} } }];
    await model.script(call, [{ text: "You are Ada." }], call, [{ text: "Still Ada." }]);
    await bench.say("Who am I?");
    const open = chat.getByRole("button", { name: "Open in the Browser" });
    await open.waitFor();
    await picture("login");
    const tab = await bench.opened(() => open.click());
    await tab.getByText("You can close this page").waitFor();
    await tab.close(); // behind another page, the workbench draws one frame a second
    for (const answer of ["You are Ada.", "Still Ada."]) {
      if (answer === "Still Ada.") {
        await bench.newSession();
        await bench.say("And now?"); // no login is requested again
      }
      await chat.getByText("web: whoami {}", { exact: true }).last().waitFor();
      await chat.getByRole("button", { name: "Allow", exact: true }).click();
      await chat.locator(".answer", { hasText: answer }).waitFor();
      await bench.idle();
    }
    await picture("logged-in");
    const { requests } = await model.state();
    assert.equal(requests.at(-1).messages.findLast(({ role }) => role === "tool").content, "Ada");
    bench.write(CONFIG, "");
    close();
  }

  return [
    ["tools of other extensions are offered, approved and called", called],
    ["a server that requires a login gets one in the browser", loggedIn],
    ["prompts and resources of MCP servers are suggested and sent", offers],
  ];
}
