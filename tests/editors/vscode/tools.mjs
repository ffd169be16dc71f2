// Tools that another extension gives VS Code's language models: offered to ours, approved, called.
import assert from "node:assert/strict";

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

  return [["tools of other extensions are offered, approved and called", called]];
}
