// Measures the chat in the real VS Code workbench while a model streams into it: an empty chat first, then one with 100 turns above.
//
//   node benches/vscode.mjs [--tokens 20000] [--turns 100] [--only NAME] [--trace FILE]
//
// Variables as for tests/editors/vscode.mjs (CODE_SERVER, TANDEM_VSIX, TANDEM_BIN, PLAYWRIGHT_CORE, CHROMIUM). Prints one JSON line a case:
// how long after the model's end the last word was drawn, frames and tasks of the renderer, its memory at its peak, in the end and after a garbage
// collection; at 100 tokens a second, how long a key typed meanwhile takes to be painted; then a reload, to the last turn. With --trace, which costs time and memory itself, also how long tasks computed, and the trace. Goals and results: benches/README.md.
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Workbench } from "../tests/editors/vscode/workbench.mjs";

/** The last word of an answer; each has its own. */
let answers = 0;
const { values } = parseArgs({ options: { tokens: { type: "string", default: "20000" }, turns: { type: "string", default: "100" }, only: { type: "string", default: "" }, trace: { type: "string" } } });
const CATEGORIES = ["-*", "toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "disabled-by-default-v8.cpu_profiler"];
const TOKENS = Number(values.tokens);
const TURNS = Number(values.turns);
/** So many are typed while an answer streams. */
const KEYS = 150;

const paragraph = (n) => `Paragraph ${n} explains **why** the total in \`price.ts\` is made with a start value, and what happens without it.\n\n`;
const code = (n) => `\`\`\`ts\nexport function total${n}(lines: Line[]): number {\n  return lines.reduce((sum, line) => sum + line.price, 0);\n}\n\`\`\`\n\n`;
const list = (n) => `- item ${n}: read src/price.ts and change the place\n- item ${n}b: run the tests once more\n\n`;
const table = (n) => `| name | value |\n|---|--:|\n| row ${n} | ${n * n} |\n\n`;
const texts = {
  mixed: (n) => [paragraph, code, list, table][n % 4](n),
  list: (n) => `- Step ${n}: read the file, change the place, and run its tests once more\n`,
  code: (n) => `${n === 0 ? "```ts\n" : ""}const value${n} = compute(${n}); // what comes of it, and why\n`,
};
const cases = [
  { name: "empty, mixed, 2000/s", text: "mixed", rate: 2000, turns: 0 },
  { name: `${TURNS} turns, mixed, 2000/s`, text: "mixed", rate: 2000, turns: TURNS },
  { name: `${TURNS} turns, one list, 2000/s`, text: "list", rate: 2000, turns: TURNS },
  { name: `${TURNS} turns, one code block, 2000/s`, text: "code", rate: 2000, turns: TURNS },
  { name: `${TURNS} turns, mixed, 100/s`, text: "mixed", rate: 100, turns: TURNS },
];

/** About four characters a token. */
function tokens(kind, count) {
  let text = "";
  for (let n = 0; text.length < count * 4; n++) {
    text += texts[kind](n);
  }
  return text.match(/[^]{1,4}/g).slice(0, count);
}

/** A model that says its next answer at a pace, and knows when it had said it. */
class Pacer {
  answer = { tokens: ["Hello."], rate: 1e9 };
  ended = 0;

  async start() {
    this.server = createServer((request, response) => {
      request.resume();
      request.on("end", () => (request.method === "POST" ? this.#stream(response) : response.writeHead(404).end()));
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  #stream(response) {
    const { tokens, rate } = this.answer;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const event = (choice) => response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice] })}\n\n`);
    const begun = performance.now();
    let sent = 0;
    const timer = setInterval(() => {
      const due = Math.min(tokens.length, Math.ceil(((performance.now() - begun) / 1000) * rate));
      while (sent < due) {
        event({ index: 0, delta: { content: tokens[sent++] }, finish_reason: null });
      }
      if (sent === tokens.length) {
        clearInterval(timer);
        event({ index: 0, delta: {}, finish_reason: "stop" });
        response.end("data: [DONE]\n\n");
        this.ended = Date.now();
      }
    }, 2);
    response.on("close", () => clearInterval(timer));
  }
}

const model = new Pacer();
const baseUrl = await model.start();
const { env } = process;
const hidden = Object.fromEntries(Object.keys(env).filter((name) => /_API_KEY$|^TANDEM_/.test(name)).map((name) => [name, undefined]));
const bench = await Workbench.start({
  codeServer: env.CODE_SERVER,
  playwright: env.PLAYWRIGHT_CORE ?? join(env.CODE_SERVER, "../playwright-core/index.mjs"),
  chromium: env.CHROMIUM ?? "/usr/bin/chromium",
  vsix: env.TANDEM_VSIX,
  tandem: env.TANDEM_BIN,
  files: { "src/price.ts": "export const a = 1;\n" },
  env: { ...hidden, XDG_CONFIG_HOME: undefined, XDG_STATE_HOME: undefined },
});
try {
  bench.configure({ "tandem.baseUrl": baseUrl, "tandem.model": "m" });
  await bench.open();
  await bench.command("tandem: Open Chat");
  await bench.chat.locator("textarea").waitFor();
  bench.page.setDefaultTimeout(600_000);
  console.log(JSON.stringify({ case: "activation", extension_host_ms: await activation() }));
  let turns = 0;
  for (const one of cases.filter(({ name }) => name.includes(values.only))) {
    if (one.turns === 0 || turns > one.turns + 1) {
      await bench.command("tandem: New Session");
      turns = 0;
    }
    for (; turns < one.turns; turns++) {
      model.answer = { tokens: tokens("mixed", 250), rate: 1e9 };
      await bench.say(`Question ${turns}?`);
      await bench.chat.locator(".list .user", { hasText: `Question ${turns}?` }).waitFor();
      await bench.idle();
    }
    console.log(JSON.stringify({ case: one.name, ...(await measure(one)) }));
    turns++;
  }
  console.log(JSON.stringify({ case: "reload", ...(await reload()) }));
} finally {
  await bench.close();
  model.server.close();
}

/** What VS Code itself says that the activation took, in milliseconds. */
async function activation() {
  await bench.command("Developer: Show Running Extensions");
  const row = bench.page.locator(".runtime-extensions-editor .extension", { hasText: "tandem" }).first();
  const words = await row.locator(".activation-time", { hasText: /\d+ms/ }).innerText();
  return Number(/(\d+)ms/.exec(words)[1]);
}

/** From the command to the last answer on the screen, in seconds. */
async function reload() {
  const begun = Date.now();
  const took = () => Number(((Date.now() - begun) / 1000).toFixed(1));
  await bench.page.reload();
  await bench.page.locator(".activitybar [aria-label=tandem]").first().waitFor();
  const workbench = took();
  await bench.chat.locator(".answer").last().waitFor();
  return { workbench_s: workbench, last_turn_s: took() };
}

/** Types while an answer streams; the times from each key to the frame that shows it, in milliseconds. */
async function typed(frame) {
  await bench.chat.locator("textarea").focus();
  await frame.evaluate(timeKeys);
  for (let key = 0; key < KEYS; key++) {
    await bench.page.keyboard.press("x", { delay: 20 });
    await bench.page.waitForTimeout(60 + 13 * (key % 7)); // at no fixed place between two frames
  }
  const times = (await frame.evaluate(() => globalThis.keyTimes)).sort((a, b) => a - b);
  await bench.chat.locator("textarea").fill("");
  const at = (share) => Math.round(times[Math.min(times.length - 1, Math.floor(share * times.length))]);
  return { keys: times.length, key_to_paint_p50_ms: at(0.5), key_to_paint_p95_ms: at(0.95), key_to_paint_max_ms: at(1) };
}

/** Runs in the page of the chat: a task that a frame posts runs after it was painted. */
function timeKeys() {
  globalThis.keyTimes = [];
  document.querySelector("textarea").addEventListener("keydown", ({ timeStamp }) =>
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => globalThis.keyTimes.push(performance.now() - timeStamp);
      port2.postMessage(undefined);
    }),
  );
}

async function measure({ text, rate }) {
  const frame = await viewFrame();
  const end = `endOfAnswer${++answers}.`;
  await frame.evaluate(watch, end);
  await collectGarbage();
  const memory = await rendererMegabytes();
  if (values.trace !== undefined) {
    await bench.browser.startTracing(bench.page, { categories: CATEGORIES });
  }
  model.answer = { tokens: [...tokens(text, TOKENS), text === "code" ? "\n```\n\n" : "\n\n", end], rate };
  await bench.say("Now a long one.");
  const keys = rate <= 100 ? await typed(frame) : {};
  let peak = memory;
  const sampling = setInterval(() => void rendererMegabytes().then((now) => (peak = Math.max(peak, now)), () => undefined), 250);
  const seen = await frame.waitForFunction(() => globalThis.seen, null, { timeout: 900_000 });
  const drawn = await seen.jsonValue();
  await bench.idle();
  clearInterval(sampling);
  const { gaps, tasks } = await frame.evaluate(() => globalThis.stopWatching());
  const grown = (await rendererMegabytes()) - memory;
  await collectGarbage();
  const kept = (await rendererMegabytes()) - memory;
  return {
    drawn_after_model_end_s: Number(((drawn - model.ended) / 1000).toFixed(2)),
    frames: gaps.length,
    frames_over_50_ms: gaps.filter((gap) => gap > 50).length,
    frames_over_100_ms: gaps.filter((gap) => gap > 100).length,
    longest_task_ms: Math.round(Math.max(0, ...tasks)),
    long_tasks_ms: Math.round(tasks.reduce((sum, task) => sum + task, 0)),
    ...keys,
    renderer_growth_peak_mb: Math.round(Math.max(peak - memory, grown)),
    renderer_growth_mb: Math.round(grown),
    renderer_growth_collected_mb: Math.round(kept),
    ...(values.trace !== undefined && (await traced())),
  };
}

async function traced() {
  const trace = await bench.browser.stopTracing();
  writeFileSync(values.trace, trace);
  const cpu = computing(JSON.parse(trace.toString()));
  return { longest_task_cpu_ms: Math.round(Math.max(0, ...cpu)), tasks_over_100_ms_cpu: cpu.filter((task) => task > 100).length };
}

/** How long each task of the busiest renderer's main thread computed, in milliseconds. */
function computing({ traceEvents }) {
  const threads = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid}:${tid}`));
  const byThread = new Map([...threads].map((thread) => [thread, []]));
  for (const { name, pid, tid, tdur = 0 } of traceEvents) {
    if (name === "RunTask" || name === "ThreadControllerImpl::RunTask") {
      byThread.get(`${pid}:${tid}`)?.push(tdur / 1000);
    }
  }
  const total = (tasks) => tasks.reduce((sum, task) => sum + task, 0);
  return [...byThread.values()].sort((a, b) => total(b) - total(a))[0] ?? [];
}

/** Runs in the page of the chat. */
function watch(end) {
  const gaps = [];
  const tasks = [];
  let running = true;
  let before = performance.now();
  const frame = (now) => {
    gaps.push(now - before);
    before = now;
    if (running) {
      requestAnimationFrame(frame);
    }
  };
  requestAnimationFrame(frame);
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
  observer.observe({ entryTypes: ["longtask"] });
  globalThis.seen = 0;
  const timer = setInterval(() => {
    const answers = document.querySelectorAll(".answer");
    const last = answers[answers.length - 1];
    const ends = [last?.querySelector(".tail"), last?.querySelector(".blocks:last-child")];
    if (ends.some((one) => one?.textContent.includes(end))) {
      globalThis.seen ||= Date.now();
    }
  }, 100);
  globalThis.stopWatching = () => {
    running = false;
    clearInterval(timer);
    observer.disconnect();
    return { gaps, tasks };
  };
}

async function viewFrame() {
  const handle = await bench.chat.locator("body").elementHandle();
  return handle.ownerFrame();
}

async function collectGarbage() {
  const session = await bench.page.context().newCDPSession(bench.page);
  await session.send("HeapProfiler.collectGarbage");
  await session.detach();
}

async function rendererMegabytes() {
  const session = await bench.browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const bytes = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]));
  return Math.max(...bytes) / 1024;
}
