// Background commands, as a person sees them: their cards, the strip above the input, their output and ports, and stopping them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { webStory } from "./story.mjs";
import { exactly, until } from "./workbench.mjs";

/** A duration that no other process sleeps. */
const SLEEP = "4711.25";
const SERVER = `python3 -uc "import socket; s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1])
while True: s.accept()"`;

/** The checks, in order, each a name and a function. */
export function jobChecks({ bench, model, picture }) {
  const { chat, page } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });
  const row = (text) => chat.locator(".jobs .job", { hasText: text });
  const card = (text) => chat.locator(".tool", { hasText: text });
  const run = (id, command, more) => [
    {
      call: {
        id,
        name: "run_command",
        arguments: { command, background: true, ...more },
      },
    },
  ];
  const count = (text) => page.locator(".statusbar-item", { hasText: text });

  function sleepers() {
    try {
      return execFileSync("pgrep", ["-fx", `sleep ${SLEEP}`], {
        encoding: "utf8",
      })
        .trim()
        .split("\n").length;
    } catch {
      return 0; // pgrep found none
    }
  }

  async function seen() {
    await model.reset();
    await bench.newSession();
    await bench.setMode("ask");
    await model.script(run("call_j1", `echo listening; printf '\\033[31m 10%%\\r 90%%'; sleep ${SLEEP}`), [{ text: "It runs." }]);
    await bench.say("Start it.");
    await chat.locator(".asking .tool-head", { hasText: "in the background" }).waitFor();
    await picture("job-asked");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("It runs.").waitFor();
    await bench.idle();
    await card(SLEEP).locator(".exit", { hasText: "running in the background" }).waitFor();
    await chat.locator('.tool[data-status="background"] .icon.spin').waitFor(); // no tick
    await row("listening")
      .locator(".age", { hasText: /^\d+ s$/ })
      .waitFor();
    const first = await row("listening").locator(".age").textContent();
    await until(row("listening").locator(".age"), ({ textContent }, before) => textContent !== before, first); // its age increases
    await count(/tandem: Ask before edits.*1$/).waitFor();
    await row("listening").getByRole("button", { name: "Output" }).click();
    await row("listening").locator(".output", { hasText: /^listening\n 90%$/ }).waitFor();
    await row("listening").getByRole("button", { name: "Hide output" }).and(chat.locator("[aria-expanded=true]")).waitFor();
    await picture("job");
    await chat.locator("main").evaluate((main) => main.firstElementChild.style.setProperty("min-height", "5000px")); // that of a long session
    await bench.scrollToTop();
    await until(chat.locator(".jump"), (jump) => jump.getBoundingClientRect().bottom <= document.querySelector(".jobs").getBoundingClientRect().top); // it covers nothing
    await chat.getByRole("button", { name: "Scroll to the end" }).click();
    await chat.locator("main").evaluate((main) => main.firstElementChild.style.removeProperty("min-height"));
  }

  async function ports() {
    await model.script(run("call_j2", SERVER, { network: true }), [{ text: "It listens." }]);
    await bench.say("And a server.");
    await chat.locator(".asking .question button.allow_once").click();
    await answer("It listens.").waitFor();
    await bench.idle();
    await row("create_server")
      .locator(".output", { hasText: /^port \d+$/ })
      .waitFor();
    const [, port] = (await row("create_server").locator(".output").textContent()).match(/port (\d+)/);
    await row("create_server")
      .locator(".ports", { hasText: `:${port}` })
      .waitFor();
    await count(/tandem: Ask before edits.*2$/).waitFor();
    for (const width of [220, 320, 420]) {
      await bench.widenSideBar(width);
      for (const control of await chat.locator(".jobs :is(button, .title)").all()) {
        await until(control, (one) => one.getBoundingClientRect().right <= innerWidth && one.clientWidth > 15);
      }
      await picture(`jobs-${width}`);
    }
    await bench.widenSideBar(440);
  }

  async function inTerminal() {
    await row("listening").getByRole("button", { name: "Open in Terminal" }).click();
    const terminal = page.locator(".terminal .xterm-rows", {
      hasText: "listening",
    });
    await terminal.waitFor();
    await until(page.locator(".terminal .xterm-rows span", { hasText: "90%" }), (bar) => {
      const [red, green] = getComputedStyle(bar).color.match(/\d+/g).map(Number);
      return red > 2 * green;
    });
    assert.doesNotMatch(await terminal.textContent(), /10%/, "a progress bar redraws");
    await picture("job-terminal");
    assert.equal(sleepers(), 1);
    await page.locator(".terminal .xterm-helper-textarea").focus();
    await page.keyboard.press("Control+c");
    await row("listening").locator(".age", { hasText: "stopped" }).waitFor();
    await page.locator(".terminal .xterm-rows", { hasText: "The command has ended." }).waitFor();
    assert.equal(sleepers(), 0);
    await bench.command("Terminal: Kill All Terminals");
    await page.locator(".terminal .xterm-rows").waitFor({ state: "detached" });
  }

  async function stopped() {
    await row("create_server").getByRole("button", { name: "Stop this command" }).press("Enter");
    await row("create_server").locator(".age", { hasText: "stopped" }).waitFor();
    await exactly(row("create_server").getByRole("button", { name: "Stop this command" }), 0);
    await exactly(card("create_server").locator(".icon.spin"), 0);
    await count(/tandem: Ask before edits$/).waitFor();
    await model.script([{ text: "I see." }]);
    await bench.say("They are stopped.");
    await answer("I see.").waitFor();
    await bench.idle();
    const { requests } = await model.state();
    assert.match(JSON.stringify(requests.at(-1).messages.at(-1)), /job 1 was stopped by the user[\s\S]*job 2 was stopped by the user/);
    await exactly(chat.locator(".jobs .job"), 0); // they have been seen
  }

  async function opened() {
    const site = `printf '<title>Shop</title>served' > index.html; python3 -u -m http.server 0 --bind 127.0.0.1`;
    await model.reset();
    await bench.setMode("auto");
    await model.script(run("call_j3", site), [{ text: "It serves." }]);
    await bench.say("Serve it.");
    await answer("It serves.").waitFor();
    await bench.idle();
    const port = row("http.server").getByRole("button", { name: /^:\d+$/ });
    const question = page.locator(".notification-toast", { hasText: /Open port \d+ of/ });
    await port.click();
    await question.waitFor();
    await picture("job-open");
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "detached" });
    await port.click();
    const tab = await bench.opened(() => question.getByRole("button", { name: "Open", exact: true }).click());
    await tab.waitForFunction(() => document.body?.textContent === "served");
    await tab.close();
    await row("http.server").locator(".output", { hasText: "GET / HTTP/1.1" }).waitFor();
    await row("http.server").getByRole("button", { name: "Stop this command" }).press("Enter");
    await row("http.server").locator(".age", { hasText: "stopped" }).waitFor();
  }

  async function moved() {
    await model.script(run("call_j4", `echo begun; sleep ${SLEEP}`, { background: false }), [{ text: "Meanwhile." }]);
    await bench.say("Run it.");
    await card("begun").hover();
    await card("begun").getByRole("button", { name: "Run in Background" }).click();
    await answer("Meanwhile.").waitFor();
    await bench.idle();
    await card(SLEEP).locator(".exit", { hasText: "running in the background" }).last().waitFor();
    await row("begun").waitFor();
    assert.equal(sleepers(), 1);
    await picture("job-moved");
    await row("begun").getByRole("button", { name: "Stop this command" }).press("Enter");
    await row("begun").locator(".age", { hasText: "stopped" }).waitFor();
    assert.equal(sleepers(), 0);
  }

  /** Each server counts its commands from 1. */
  async function restarted() {
    for (const name of ["former", "latter"]) {
      await bench.command("tandem: Restart Server");
      await exactly(chat.locator(".jobs .job"), 0);
      await chat.locator("body[data-phase=ready]").waitFor();
      await model.script(run(`call_${name}`, `echo the ${name}; sleep ${SLEEP}`), [{ text: `The ${name} one runs.` }]);
      await bench.say(`Run the ${name} one.`);
      await answer(`The ${name} one runs.`).waitFor();
      await bench.idle();
      await card(`the ${name}`).locator(".exit", { hasText: "running in the background" }).waitFor();
      await row(`the ${name}`).getByRole("button", { name: "Open in Terminal" }).click();
      await page.locator(".terminal .xterm-rows", { hasText: `the ${name}` }).waitFor();
    }
    await card("the former").locator(".exit", { hasText: "started in the background" }).waitFor();
    await page.locator(".terminal-tabs-entry", { hasText: "the former" }).click();
    const shown = page.locator(".terminal-wrapper.active", { hasText: "The command has ended." });
    await shown.locator(".xterm-helper-textarea").focus();
    await page.keyboard.press("Control+c");
    await bench.command("tandem: Open Chat");
    await model.script([{ text: "It goes on." }]);
    await bench.say("Does the latter one run?");
    await answer("It goes on.").waitFor();
    await bench.idle();
    assert.equal(sleepers(), 1);
    await row("the latter").getByRole("button", { name: "Stop this command" }).press("Enter");
    await row("the latter").locator(".age", { hasText: "stopped" }).waitFor();
    await bench.command("Terminal: Kill All Terminals");
    await bench.setMode("ask");
  }

  return [
    ["a background command says so on its card, and runs in a strip with its age and last line", seen],
    ["the strip names the port of a server, and fits any side bar", ports],
    ["a background command opens in a terminal, where Ctrl+C stops it", inTerminal],
    ["Stop in the strip stops a background command, and the model is told", stopped],
    ["a port in the strip opens in the browser after a question", opened],
    ["a running command goes on in the background, and the model with what it has said", moved],
    ["after a restart, a background command has its own card and terminal, where Ctrl+C stops no other", restarted],
    ["a page is written, served, tested, opened in a browser, stopped and undone", () => webStory({ bench, model })],
  ];
}
