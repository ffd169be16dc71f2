// What must not break the chat: no server, a wrong one, an endpoint that fails, a reload in the middle of a turn, texts of any size.
import assert from "node:assert/strict";

const BIG = "src/big.txt";
const LINE = "x".repeat(300_000);

/** The checks, in order; each is a name and what to do. */
export function badInputChecks({ bench, model }) {
  const { chat } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const settings = { "tandem.baseUrl": model.baseUrl, "tandem.model": "qwen3-coder", "tandem.mode": "edit" };

  async function open(more) {
    bench.configure({ ...settings, ...more });
    await bench.open();
    await bench.command("tandem: Open Chat");
    await bench.command("tandem: New Session");
  }

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
      await open({ "tandem.server.path": path });
      const card = chat.locator(".welcome .error");
      await card.getByRole("button", { name: "Choose Program…" }).waitFor();
      assert.match(await card.innerText(), says);
    }
    await open({});
    await works("There it is.");
  }

  async function failures() {
    const refusal = (status, message) => [{ status, body: { error: { message } } }];
    await model.script(refusal(404, "The model `qwen3-coder` does not exist"));
    await bench.say("Anybody?");
    await chat.locator(".list .error", { hasText: "does not exist" }).waitFor();
    await works("After 404.");
    await model.script(refusal(500, "boom"), [{ text: "After 500." }]);
    await bench.say("Try.");
    await answer("After 500.").waitFor(); // tried again by itself
    await bench.idle();
    await model.script([{ text: "Half of" }, { drop: true }]);
    await bench.say("And a lost connection?");
    await chat.getByRole("button", { name: /Continue|Try Again/ }).first().waitFor();
    await works("After the connection was lost.");
  }

  async function sizes() {
    await model.script([{ text: `${LINE}\n\nThe end of it.` }]);
    await bench.say("A long line, please.");
    await answer("The end of it.").waitFor();
    await bench.idle();
    bench.write(`project/${BIG}`, `${"a line of text, one of many\n".repeat(180_000)}the last one\n`);
    await bench.openFile("big.txt");
    await bench.command("tandem: Ask About Selection");
    await works("A big file.");
  }

  return [
    ["no program, or one that is no server: the chat says so, and goes on with the right one", wrongPrograms],
    ["an endpoint that refuses, fails or breaks off: each is said, and the next message works", failures],
    ["a line of 300 kB, a file of 5 MB: the chat goes on", sizes],
  ];
}
