// A person has a web page and its test written, watches its server, opens it in a browser, stops it and undoes it all. A check, and the
// animation of docs/jobs.md.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { exactly } from "./workbench.mjs";

const SERVER = `from http.server import BaseHTTPRequestHandler, HTTPServer

PAGE = "<title>Shop</title><h1>Apples: 4.20 EUR</h1>"


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE.encode())


print("listening on http://localhost:8000", flush=True)
HTTPServer(("localhost", 8000), Shop).serve_forever()
`;
const TEST = `from urllib.request import urlopen

page = urlopen("http://localhost:8000").read().decode()
assert "4.20 EUR" in page
print("passed: the page shows the price")
`;
const FILES = { "server.py": SERVER, "test_server.py": TEST };

/** The model's replies; `delay` is between words and pieces of arguments, in ms. */
function replies(delay) {
  const call = (id, name, args) => ({ call: { id, name, arguments: args }, fragments: 12, delay_ms: delay });
  const say = (words) => ({ words, delay_ms: delay });
  const write = Object.entries(FILES).map(([path, content], index) => call(`call_w${index}`, "write_file", { path, content }));
  return [
    [say("I'll write the page and a test for it."), ...write],
    [say("Now the server, in the background."), call("call_server", "run_command", { command: "python3 server.py", background: true })],
    [{ gate: "listening" }, say("It is listening. Now the test."), call("call_test", "run_command", { command: "python3 test_server.py" })],
    [say("The page is served at `http://localhost:8000`, and its test passes.")],
  ];
}

/** Runs the story; `pause(seconds)` is for viewers. */
export async function webStory({ bench, model, pause = async () => undefined, delay = 0 }) {
  const { chat, page } = bench;
  const exists = () => Object.keys(FILES).map((path) => existsSync(join(bench.project, path)));
  const strip = chat.locator(".jobs .job", { hasText: "server.py" });
  await model.reset();
  await model.script(...replies(delay));
  await bench.newSession();
  await bench.setMode("ask");
  await bench.say("Write a page that shows the price of apples, with a test. Serve it and run the test.");
  await chat.locator(".asking .line.added", { hasText: "HTTPServer((" }).waitFor();
  await pause(2);
  await chat.getByRole("button", { name: "Allow All of This Turn" }).first().click();
  const port = strip.getByRole("button", { name: ":8000" });
  await port.waitFor();
  await pause(1);
  await model.open("listening");
  await chat.locator(".answer", { hasText: "its test passes" }).waitFor();
  await chat.locator('.tool[data-status="completed"]', { hasText: "test_server.py" }).last().waitFor();
  await bench.idle();
  await pause(2);
  await port.click();
  const question = page.locator(".notification-toast", { hasText: /Open port 8000 of/ });
  await question.waitFor();
  await pause(1.5);
  const tab = await bench.opened(() => question.getByRole("button", { name: "Open", exact: true }).click());
  await tab.getByText("Apples: 4.20 EUR").waitFor();
  await tab.close();
  await strip.locator(".output", { hasText: "GET / HTTP/1.1" }).waitFor();
  await pause(2);
  await strip.getByRole("button", { name: "Stop this command" }).click();
  await strip.locator(".age", { hasText: "stopped" }).waitFor();
  assert.deepEqual(exists(), [true, true]);
  await pause(1.5);
  await bench.command("tandem: Undo Last Turn");
  await chat.locator(".notice", { hasText: "Undid “" }).waitFor();
  assert.deepEqual(exists(), [false, false]);
  await exactly(page.locator(".explorer-folders-view .monaco-list-row", { hasText: "server.py" }), 0);
  await pause(2);
}
