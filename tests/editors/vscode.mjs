// Drives the real extension with the real binary in the real VS Code workbench, clicking what a person would click, against a scripted model.
//
//   node tests/editors/vscode.mjs [--share DIR] [--code-server DIR] [--vsix FILE] [--tandem BIN] [--out DIR] [--home DIR]
//
// Parallel runs that --share an empty directory divide the groups of checks: each takes the next one that no other has started, in its own workbench.
// Each other option has its variable, which tests/run sets: CODE_SERVER (with out/node/entry.js; beside it playwright-core, or PLAYWRIGHT_CORE),
// TANDEM_VSIX, TANDEM_BIN, TANDEM_TEST_OUT (screenshots). TANDEM_TEST_ONLY is a pattern for the names of checks; most depend on earlier ones.
// TANDEM_PICTURES saves a picture of the chat in each width and theme it is read in. Needs the Node of tests/editors/get-node24.sh. With --home
// everything is in that folder, which is removed at the end: pictures then show no temporary path. The last line is `N passed, N failed`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Model } from "./vscode/model.mjs";
import { besideChecks } from "./vscode/beside.mjs";
import { badInputChecks } from "./vscode/badinput.mjs";
import { finishChecks } from "./vscode/finish.mjs";
import { looksChecks } from "./vscode/looks.mjs";
import { jobChecks } from "./vscode/jobs.mjs";
import { Legibility } from "./vscode/legible.mjs";
import { inlineChecks, STOCK, STOCK_TEXT } from "./vscode/inline.mjs";
import { CART, CART_TEXT, reviewChecks } from "./vscode/review.mjs";
import { modelChecks } from "./vscode/models.mjs";
import { notebookChecks } from "./vscode/notebooks.mjs";
import { profileChecks } from "./vscode/profile.mjs";
import { shapeChecks } from "./vscode/shape.mjs";
import { stateChecks } from "./vscode/states.mjs";
import { streamChecks } from "./vscode/stream.mjs";
import { tabChecks } from "./vscode/tabs.mjs";
import { toolChecks } from "./vscode/tools.mjs";
import { trialChecks } from "./vscode/trial.mjs";
import { turnChecks } from "./vscode/turns.mjs";
import { undoChecks } from "./vscode/undo.mjs";
import { Workbench, eventually, exactly, until } from "./vscode/workbench.mjs";

const FILE = "src/price.ts";
const SAVED = `export interface Line {
  price: number;
  count: number;
}

export function total(lines: Line[]): number {
  return lines.map((line) => line.price * line.count).reduce((sum, price) => sum + price);
}

export function label(amount: number): string {
  return \`\${amount.toFixed(2)} EUR\`;
}
`;
const TYPED = "// in cents";
const UNSAFE = "lines.map((line) => line.price * line.count).reduce((sum, price) => sum + price)";
const SAFE = "lines.reduce((sum, line) => sum + line.price * line.count, 0)";

assert.ok(Number.parseInt(process.versions.node, 10) >= 22, 'code-server needs a newer Node: . "$(tests/editors/get-node24.sh)"');
const options = readOptions();
mkdirSync(options.out, { recursive: true });
const model = await Model.start();
const settings = { "tandem.baseUrl": model.baseUrl, "tandem.model": "qwen3-coder" };
/** The check that all others depend on. */
const START = "the workbench starts with the extension installed";
/** Checks about all the others, which mean nothing alone. */
const OF_ALL = "the content security policy was never violated";
const LEGIBLE = "in every picture, text can be read in three widths and four themes";
/** Up to this many groups are played again. */
const FEW = 3;
/** A check that failed: this run plays its group alone. */
const again = process.env.TANDEM_TEST_AGAIN;
/** Each has the checks of its group that were not played because of it. */
const failures = [];
let passed = 0;
let bench;
let legibility;
try {
  await check(START, start);
  if (legibility !== undefined) {
    await inTheWorkbench();
  }
} finally {
  await bench?.close();
  await model.close();
}
const repeatable = failures.filter(({ name }) => ![START, OF_ALL, LEGIBLE].includes(name));
if (again === undefined && repeatable.length <= FEW) {
  repeatable.forEach(playAgain);
}
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;

async function start() {
  bench = await eventually(() => startBench({ settings, home: options.home }), 2);
  await bench.command("tandem: Open Chat");
  const pictures = { out: options.out, keepPictures: process.env.TANDEM_PICTURES !== undefined };
  legibility = await eventually(() => Legibility.start(bench, pictures), 2);
}

async function inTheWorkbench() {
  const group = groups().find((checks) => checks.some(([name]) => name === again));
  if (group !== undefined) {
    return playGroup(group);
  }
  for (const [index, checks] of groups().entries()) {
    if (options.share === undefined || isFirstTo(join(options.share, `group-${index}`))) {
      await playGroup(checks);
    }
  }
  for (const [name, body] of ofAll()) {
    await check(name, body);
  }
}

/** Creates a directory, which only one of several processes can do. */
function isFirstTo(make) {
  try {
    mkdirSync(make);
    return true;
  } catch (error) {
    assert.equal(error.code, "EEXIST");
    return false;
  }
}

/** In a window as if new: nothing of any other group is left in it. After a failed check, the rest would only fail because of it. */
async function playGroup([[first, body], ...rest]) {
  const begin = async () => {
    await model.reset();
    await bench.begin(settings);
    await body();
  };
  const checks = [[first, begin], ...rest];
  for (const [index, [name, body]] of checks.entries()) {
    if (!(await check(name, body))) {
      bench.isWorn = true;
      failures.at(-1).unplayed = checks.slice(index + 1).map(([name]) => name);
      return;
    }
  }
}

/**
 * The checks in order, each a name and a function. Each may depend on earlier ones in its group. The slowest groups come first, so that
 * processes that share them end at about the same time.
 */
function groups() {
  const tools = { bench, model, settings, picture };
  return [
    besideChecks(tools),
    badInputChecks(tools),
    [
      ["Ask About Selection sends unsaved text, and the answer streams", askAboutSelection],
      ["an edit requires approval, shows its diff and leaves the focus alone", editWaits],
      ["an allowed edit changes the unsaved buffer and not the disk", allowEdit],
      ["one undo reverts the edit and keeps what was typed", undoEdit],
      ["a model that says nothing for ten seconds is reported", quiet],
      ["Stop closes the model's stream at once, and the next prompt works", stopAndGoOn],
      ["the arrow keys recall earlier prompts, and the draft is not lost", recall],
    ],
    besideTyped(turnChecks({ ...tools, typed: TYPED })),
    besideTyped([
      ["a rejected edit changes nothing", rejectEdit],
      ["an edit at the end of a file is previewed as one change, and two say that one answer is for both", lastLines],
      ["a command's permission request shows the command, folder, sandbox, network and rule", commandWaits],
      ["one answer allows the rest of a turn", restOfTurn],
      ["Always Allow accepts a wider rule", widerRule],
      ["a rule that is too broad allows only this call", tooBroadRule],
    ]),
    besideTyped([
      ["a permission request is announced while the chat is hidden, and a command answers it", hiddenQuestion],
      ["the conversation survives hiding the view", hideAndShow],
      ["a killed server is reported, and Try Again restarts it", killedServer],
    ]),
    besideTyped([
      ["an earlier session is restored and continues", earlierSession],
      ["external links ask first, and links open no file outside the workspace", links],
      ["an answer is highlighted, and its code can be copied and inserted", finishedAnswer],
    ]),
    besideTyped([
      ["in edit mode edits need no approval", editMode],
      ["a reload restores the conversation and its pending changes", restored],
    ]),
    reviewChecks(tools),
    inlineChecks(tools),
    trialChecks(tools),
    finishChecks(tools),
    undoChecks(tools),
    shapeChecks(tools),
    tabChecks(tools),
    jobChecks(tools),
    toolChecks(tools),
    looksChecks(tools),
    streamChecks(tools),
    stateChecks(tools),
    notebookChecks(tools),
    [
      ["the installed package has what its page shows", packaged],
      ["without a model the chat shows how to set one up", noModel],
      ["the setup form sets up a model and settles the card that asked for one", setUpInTheForm],
      ["a refused key is reported, replaced and retried", refusedKey],
    ],
    [
      ["changing the model in the settings starts a new session and says so", otherModel],
      ["rules in the settings allow and deny", rulesInSettings],
      ["a new session starts empty", newSession],
      ...modelChecks(tools),
    ],
    profileChecks({ ...tools, start: startBench }),
  ];
}

/** The same checks in a window where a file is open and has unsaved text. */
function besideTyped([[name, body], ...rest]) {
  const begin = async () => {
    await openTyped();
    await body();
  };
  return [[name, begin], ...rest];
}

async function openTyped() {
  await bench.openFile("price.ts");
  await bench.widenSideBar(440);
  await bench.typeAtEndOf("price: number;", ` ${TYPED}`);
}

function ofAll() {
  return [
    [LEGIBLE, () => legibility.report()],
    [OF_ALL, noPolicyBreach],
  ];
}

async function noModel() {
  bench.configure({});
  await exactly(bench.chat.locator(".composer select.model"), 0); // the server has restarted
  await bench.say("hello");
  const card = bench.chat.locator(".list .error");
  await card.filter({ hasText: "No model is set up yet." }).waitFor();
  await bench.chat.locator(".welcome").waitFor({ state: "hidden" });
  await bench.openFile("price.ts");
  await card.locator("summary").click();
  await card.locator("details[open]", { hasText: "TANDEM_BASE_URL" }).filter({ hasText: "config.toml" }).waitFor();
  await card.getByRole("button", { name: "Set Up Model" }).waitFor();
  await picture("no-model");
}

/** By keyboard alone: Tab moves between fields, Enter saves. */
async function setUpInTheForm() {
  await bench.chat.locator(".list .error").getByRole("button", { name: "Set Up Model" }).press("Enter");
  const form = bench.chat.getByRole("form", { name: "Set up a model" });
  const why = form.getByText("not a URL that begins with http:// or https://");
  await form.locator("[name=provider]").selectOption("custom");
  await form.locator("[name=address]").fill("127.0.0.1:1234/v1");
  await form.locator("[name=address]").press("Tab");
  await why.waitFor();
  await form.getByRole("button", { name: "Save" }).press("Enter");
  await form.locator("[name=model]:focus").waitFor();
  await why.waitFor(); // rather than that no model was chosen
  await fillForm("sk-first", async () => {
    await model.script([{ text: "Yes." }], [{ text: "Yes." }], [{ text: "Yes." }]);
    await form.getByRole("button", { name: "Test" }).press("Enter");
    await form.locator(".finding").first().waitFor();
    await picture("setup");
    await unwritable(form);
  });
  await model.reset();
  await bench.chat.locator(".list .error").getByRole("button", { name: "Set Up Model" }).waitFor({ state: "detached" });
  await model.script([{ text: "Good morning." }]);
  await bench.say("First question.");
  await bench.chat.locator(".answer", { hasText: "Good morning." }).waitFor();
  await bench.idle();
  await exactly(bench.chat.locator(".list .error"), 0); // the earlier card is gone
}

/** The file of the settings has a syntax error. */
async function unwritable(form) {
  bench.write("data/Machine/settings.json", `{ "tandem.server.path": ${JSON.stringify(bench.program)},`);
  await form.getByRole("button", { name: "Save" }).press("Enter");
  await form.locator(".setup-status", { hasText: "Unable to write" }).waitFor();
  bench.configure({});
}

async function fillForm(key, then) {
  const form = bench.chat.getByRole("form", { name: "Set up a model" });
  await form.locator("[name=provider]").selectOption("custom");
  await form.locator("[name=address]").fill(model.baseUrl);
  await form.locator("[name=key]").fill(key);
  await form.locator("[name=model]").fill("qwen3-coder");
  await then?.(form);
  await form.locator("[name=model]").press("Enter");
  await form.waitFor({ state: "hidden" });
}

async function refusedKey() {
  bench.configure(settings); // as the form did: nothing changes
  await bench.newSession();
  await model.script([{ status: 401, body: { error: { message: "Incorrect API key provided" } } }], [{ text: "Key accepted." }]);
  await bench.say("hello");
  const card = bench.chat.locator(".list .error");
  await card.filter({ hasText: /401|key/i }).waitFor();
  await picture("refused-key");
  await card.getByRole("button", { name: "Set Up Model" }).click();
  await fillForm("sk-test-000000000000");
  await bench.chat.locator(".list .notice", { hasText: "tandem is set up now." }).getByRole("button", { name: "Try Again" }).click();
  await exactly(card, 0);
  await bench.chat.locator(".answer", { hasText: "Key accepted." }).waitFor();
  await bench.idle();
}

async function askAboutSelection() {
  await model.reset();
  await openTyped();
  await bench.newSession();
  await bench.select("price: number;", 2);
  await model.script([{ reasoning: "What is typed matters." }, { text: "The prices are **in cents**" }, { gate: "half" }, { text: ", as your comment says." }]);
  await bench.command("tandem: Ask About Selection");
  await bench.chat.locator(".composer .chip", { hasText: "price.ts:2-3" }).waitFor();
  await exactly(bench.chat.locator(".composer .chips > *", { hasText: "price.ts:2-3" }), 1); // it is at the cursor, too
  await bench.chat.locator("textarea:focus").waitFor();
  await bench.say("What unit are these?");
  await bench.chat.locator(".answer strong", { hasText: "in cents" }).waitFor();
  const { requests } = await model.state("gate:half");
  assert.match(JSON.stringify(requests.at(-1)), new RegExp(`price: number; ${TYPED}`), "the unsaved text was sent");
  await bench.chat.getByRole("button", { name: "Stop" }).waitFor();
  await model.open("half");
  await bench.chat.locator(".answer", { hasText: "in cents, as your comment says." }).waitFor();
  await bench.chat.locator(".thought summary", { hasText: "Thought" }).waitFor();
  await bench.idle();
}

async function editWaits() {
  const edit = { path: FILE, edits: [{ old_text: UNSAFE, new_text: SAFE }] };
  const plan = [
    { content: "Read how the total is computed", status: "completed" },
    { content: "Let an empty cart cost nothing", status: "in_progress" },
    { content: "Look for other callers", status: "pending" },
  ];
  await model.script(
    [
      { reasoning: "An empty list has no first element to start from." },
      { call: { id: "call_1", name: "read_file", arguments: { path: FILE } } },
      { call: { id: "call_2", name: "update_plan", arguments: { entries: plan } } },
    ],
    [
      { text: "`reduce` without an initial value **throws** on an empty list, so an empty cart breaks the page. I'll start the sum at `0`." },
      { gate: "edit" },
      { call: { id: "call_3", name: "edit_file", arguments: edit }, fragments: 8 },
    ],
    [{ call: { id: "call_done", name: "update_plan", arguments: { entries: plan.map((step) => ({ ...step, status: "completed" })) } } }], // an open one requires an answer
    [{ text: "Done: an empty cart now costs nothing." }],
  );
  await bench.newSession();
  await bench.select("export function total", 3);
  await bench.command("tandem: Ask About Selection");
  await bench.chat.locator("textarea:focus").waitFor();
  await bench.say("What happens with an empty cart? Make it safe.");
  await model.state("gate:edit");
  await bench.goToEndOf("interface Line");
  await model.open("edit");
  await bench.chat.locator(".asking .line.added", { hasText: SAFE }).waitFor();
  await bench.chat.locator(".asking .line.removed", { hasText: UNSAFE }).waitFor();
  const added = bench.chat.locator(".asking .line.added");
  await added.locator(".number", { hasText: "7" }).waitFor();
  await added.locator(".hljs-keyword", { hasText: "return" }).waitFor();
  await bench.chat.locator(".tool[data-kind=read][data-status=completed]", { hasText: FILE }).waitFor();
  const preview = bench.page.locator(".review-widget", { hasText: SAFE });
  await preview.getByText("Allow tandem to make this change?").waitFor();
  await bench.chat.locator(".plan [data-status=in_progress]", { hasText: "Let an empty cart cost nothing" }).waitFor();
  const buttons = await bench.chat.locator(".question button").allInnerTexts();
  assert.match(buttons[0], /reject/i, "the safe answer comes first");
  await bench.page.locator(".editor-instance .monaco-editor.focused").waitFor(); // the editor keeps the focus
  await bench.page.locator(".statusbar-item.warning-kind", { hasText: "tandem" }).waitFor();
  await picture("permission");
  await bench.bufferIs(withTyped(SAVED));
}

async function allowEdit() {
  await bench.chat.locator(".question button.allow_once").click();
  await bench.page.locator(".review-widget").waitFor({ state: "detached" });
  await bench.chat.locator(".answer", { hasText: "an empty cart now costs nothing" }).waitFor();
  await bench.idle();
  await bench.editor.locator(".view-line", { hasText: SAFE }).waitFor();
  await bench.bufferIs(withTyped(SAVED.replace(UNSAFE, SAFE)));
  await bench.page.locator(".tab.active.dirty").waitFor();
  assert.equal(readFileSync(join(bench.project, FILE), "utf8"), SAVED);
  await picture("allowed");
}

async function undoEdit() {
  await bench.editor.locator(".view-line").first().click();
  await bench.page.keyboard.press("Control+z");
  await bench.editor.locator(".view-line", { hasText: UNSAFE }).waitFor();
  await bench.bufferIs(withTyped(SAVED));
  await bench.page.locator(".tab.active.dirty").waitFor();
}

/** A model that is silent for a long time: the chat shows for how long. */
async function quiet() {
  await model.script([{ text: "Let me think." }, { hang: true }]);
  await bench.say("Are you well?");
  await bench.chat.locator(".answer", { hasText: "Let me think." }).waitFor();
  await bench.chat.locator(".activity", { hasText: /^Working… No output for \d+ s$/ }).waitFor();
  await picture("quiet");
  await bench.chat.getByRole("button", { name: "Stop" }).click();
  await bench.chat.locator(".notice", { hasText: "Stopped." }).waitFor();
  await bench.idle();
}

async function stopAndGoOn() {
  await model.script([{ text: "One, two, three" }, { hang: true }], [{ text: "Here again." }]);
  const { closed_early: before } = await model.state();
  await bench.say("Count for ever.");
  await bench.chat.locator(".answer", { hasText: "One, two, three" }).waitFor();
  await bench.chat.getByRole("button", { name: "Stop" }).click();
  await model.state(`closed:${before + 1}`);
  await bench.chat.locator(".notice", { hasText: "Stopped." }).last().waitFor();
  await bench.say("Still there?");
  await bench.chat.locator(".answer", { hasText: "Here again." }).waitFor();
  await bench.idle();
  await bench.chat.locator("[role=status].hidden-text", { hasText: "Here again." }).waitFor({ state: "attached" }); // announced once, when complete
}

async function recall() {
  const box = bench.chat.locator("textarea");
  const shows = (text) => until(box, ({ value }, expected) => value === expected, text);
  await box.press("Control+k");
  await box.press("t"); // a two-key command: the second key is not inserted as text
  await box.press("ArrowUp");
  await shows("Still there?");
  await box.press("ArrowUp");
  await shows("Count for ever.");
  await box.press("ArrowDown");
  await box.press("ArrowDown");
  await shows("");
  await box.press("ArrowUp");
  const prompt = bench.chat.locator(".user", { hasText: "Count for ever." });
  await prompt.hover();
  await prompt.getByRole("button", { name: /^Edit/ }).click();
  await shows("Count for ever.");
  await box.press("Escape");
  await shows("");
  await box.fill("A new thought.");
  await bench.command("tandem: Open Chat"); // by then, the draft is saved
  await box.press("Home");
  await box.press("ArrowUp");
  await shows("Still there?");
  await bench.command("tandem: Open Chat");
  await bench.reload();
  await shows("A new thought.");
  await box.fill("");
}

async function rejectEdit() {
  const edit = { path: FILE, edits: [{ old_text: " EUR", new_text: " USD" }] };
  await model.script([{ call: { id: "call_4", name: "edit_file", arguments: edit } }], [{ text: "As you wish." }]);
  await bench.select("return `${amount", 0);
  await bench.refactor("Ask tandem About Selection");
  await bench.chat.locator("textarea:focus").waitFor();
  await bench.say("In dollars.");
  await bench.chat.locator(".asking .line.added .hljs-string .changed", { hasText: "USD" }).waitFor(); // a changed word, colored too
  const preview = bench.page.locator(".review-widget", { hasText: " USD" });
  await preview.getByRole("button", { name: /Reject/ }).click();
  await preview.waitFor({ state: "detached" });
  await bench.chat.locator(".answer", { hasText: "As you wish." }).waitFor();
  await bench.chat.locator(".tool[data-status=failed]").waitFor();
  await bench.idle();
  await bench.bufferIs(withTyped(SAVED));
}

/** The line end behind the last line is not an empty line, which could be taken for the new one. */
async function lastLines() {
  const end = { old_text: " EUR`;\n}", new_text: " USD`;\n\n} // in dollars" };
  const edit = (id, edits) => [{ call: { id, name: "edit_file", arguments: { path: FILE, edits } } }];
  const both = [end, { old_text: "  count: number;", new_text: "  amount: number;" }];
  await model.script(edit("call_end", [end]), edit("call_both", both), [{ text: "Never mind." }]);
  await bench.say("At the end, too.");
  const previews = bench.page.locator(".review-widget");
  await previews.filter({ hasText: "// in dollars" }).waitFor();
  await exactly(previews, 1);
  await previews.getByRole("button", { name: /Reject/ }).click();
  await exactly(previews.filter({ hasText: "Allow tandem to make all 2 changes?" }), 2); // one answer is for both
  await bench.chat.locator(".question button.reject_once").click();
  await bench.chat.locator(".answer", { hasText: "Never mind." }).waitFor();
  await bench.idle();
}

async function commandWaits() {
  const command = "npm test -- --grep 'empty cart' --retries 2";
  await model.script(
    [{ text: "I'll run the test for the empty cart." }, { call: { id: "call_c1", name: "run_command", arguments: { command } } }],
    [{ text: "I did not run it." }],
  );
  await bench.newSession();
  await bench.say("Does an empty cart cost nothing?");
  const card = bench.chat.locator(".asking");
  await card.locator(".question button").first().waitFor();
  assert.deepEqual(await card.locator('.question button[title="Ctrl+K Ctrl+Y"]').allInnerTexts(), ["Allow"]);
  for (const part of [command, bench.project, /sandbox/i, /network/i, /Always \(session\): run_command\(npm test/, "run_command(npm test *)"]) {
    await card.filter({ hasText: part }).waitFor();
  }
  await card.locator(".title", { hasText: /^Allow tandem to run this command\?$/ }).waitFor(); // the command is below, so the title doesn't repeat it
  const inOneLine = (title) => title.clientHeight < 2 * Number.parseFloat(getComputedStyle(title).lineHeight);
  await until(card.locator(".title"), inOneLine);
  await until(card.locator(".tool-head"), inOneLine); // with what can be done
  await picture("command", { x: 48, y: 0, width: 440, height: 470 });
  await bench.widenSideBar(180);
  await until(card.locator(".title"), (title) => title.clientWidth > document.querySelector("main").clientWidth * 0.5); // nothing else than its icon is on the line
  const isSeen = (one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return one.contains(document.elementFromPoint(x + width / 2, y + height / 2));
  };
  await until(card.locator("pre.output"), isSeen); // while one answers
  await until(card.locator(".question button.allow_once"), isSeen);
  await picture("narrow");
  const buttons = card.locator(".question button");
  const seen = await buttons.evaluateAll((all) => {
    const places = all.map((one) => ({ name: one.textContent, ...one.getBoundingClientRect().toJSON() }));
    return places.sort((a, b) => a.top - b.top || a.left - b.left).map(({ name }) => name);
  });
  assert.match(seen[0], /Always/, "the answers of one time are in the last row");
  await eventually(async (timeout) => {
    await buttons.filter({ hasText: seen[0] }).focus(); // the window may take it back until it has laid out what was dragged
    for (const name of seen.slice(1)) {
      await bench.page.keyboard.press("Tab");
      await until(card.locator("button:focus"), ({ textContent }, next) => textContent === next, name, timeout);
    }
  });
  await bench.widenSideBar(440);
  await card.locator(".question button", { hasText: /reject/i }).click();
  await bench.chat.locator(".answer", { hasText: "I did not run it." }).waitFor();
  await bench.idle();
}

async function restOfTurn() {
  await model.script([...running("call_r1", "seq 5"), ...running("call_r2", "seq 6")], running("call_r3", "seq 7"), [{ text: "All ran." }]);
  await bench.say("Count, all of it.");
  const other = bench.chat.locator(".tool:not(.asking)", { hasText: "seq 6" });
  await other.waitFor();
  await bench.chat.locator("textarea").press("Shift+Tab"); // over the card below the one that asks
  await bench.chat.locator(".asking .question button.reject_once:focus").waitFor(); // the safe answer
  await bench.chat.locator(".question button", { hasText: "Allow All of This Turn" }).click();
  await bench.chat.locator(".answer", { hasText: "All ran." }).waitFor();
  await bench.chat.locator(".tool[data-status=completed]", { hasText: "seq 7" }).waitFor();
  await bench.idle();
}

async function widerRule() {
  await model.script(running("call_w1", "printf %s one"), running("call_w2", "printf %s two"), [{ text: "Both ran." }]);
  await bench.say("Run them.");
  await alwaysAllow("printf %s one", "run_command(printf %s *)");
  await bench.chat.locator(".answer", { hasText: "Both ran." }).waitFor();
  await bench.idle();
}

async function tooBroadRule() {
  await model.script(running("call_b1", "seq 2"), running("call_b2", "seq 3"), [{ text: "One ran." }]);
  await bench.say("Count.");
  await alwaysAllow("seq 2", "run_command(*)");
  await bench.chat.locator(".asking", { hasText: "seq 3" }).locator(".question button", { hasText: /reject/i }).click();
  await bench.chat.locator(".answer", { hasText: "One ran." }).waitFor();
  await bench.chat.locator(".tool[data-status=completed]", { hasText: "seq 2" }).waitFor();
  await bench.idle();
}

function running(id, command) {
  return [{ call: { id, name: "run_command", arguments: { command } } }];
}

/** Answers the permission request for a command with a custom rule. */
async function alwaysAllow(command, rule) {
  await bench.chat.locator(".asking .question button").first().waitFor();
  await bench.command("tandem: Always Allow…");
  await bench.choose("Always (session)");
  await bench.page.locator(".quick-input-title", { hasText: `run_command(${command})` }).waitFor();
  await bench.answerInputBox(rule);
}

async function hideAndShow() {
  const conversation = await bench.chat.locator(".list").textContent();
  await bench.chat.locator("textarea").fill("a draft");
  await bench.command("View: Show Explorer");
  await bench.page.locator(".explorer-folders-view").waitFor();
  await bench.command("tandem: Open Chat");
  await bench.chat.locator(".answer", { hasText: "In francs now." }).waitFor();
  await until(bench.chat.locator(".list"), ({ textContent }, before) => textContent === before, conversation);
  await until(bench.chat.locator("textarea"), ({ value }) => value === "a draft");
}

async function hiddenQuestion() {
  const edit = { path: FILE, edits: [{ old_text: " EUR", new_text: " CHF" }] };
  await model.script([{ gate: "hidden" }, { call: { id: "call_5", name: "edit_file", arguments: edit } }], [{ text: "In francs now." }]);
  await bench.say("In francs, then.");
  await model.state("gate:hidden");
  await bench.command("View: Show Explorer");
  await bench.page.locator(".explorer-folders-view").waitFor();
  await model.open("hidden");
  await bench.page.locator(".statusbar-item.warning-kind", { hasText: "tandem" }).waitFor();
  await bench.page.locator(".activitybar [aria-label^=tandem] .badge").first().waitFor();
  await bench.command("tandem: Allow");
  await bench.editor.locator(".view-line", { hasText: " CHF" }).waitFor();
  await bench.command("tandem: Open Chat");
  await bench.chat.locator(".answer", { hasText: "In francs now." }).waitFor();
  await bench.idle();
}

async function killedServer() {
  await model.script([{ text: "Half an" }, { hang: true }], [{ text: "Whole again." }]);
  await bench.say("Tell me more.");
  await bench.chat.locator(".answer", { hasText: "Half an" }).waitFor();
  await bench.say("And after that?");
  await bench.chat.locator(".waiting .user", { hasText: "And after that?" }).waitFor();
  assert.equal(bench.killServer(), 1);
  const card = bench.chat.locator(".list .error", { hasText: "stopped before it answered" });
  await card.getByRole("button", { name: "Try Again" }).click();
  await bench.chat.locator(".answer", { hasText: /^\s*Whole again\.\s*$/ }).waitFor(); // not joined to the half
  await bench.idle();
  const box = bench.chat.locator("textarea");
  await until(box, ({ value }) => value === "And after that?"); // once, though the new server knows of it, too
  await box.fill("");
  const { requests } = await model.state();
  assert.ok(requests.at(-1).messages.length > requests.at(-2).messages.length, "the conversation went on");
}

async function earlierSession() {
  await model.reset();
  await model.script([{ text: "Noted." }], [{ text: "A new one." }], [{ text: "Xylophone." }]);
  await bench.newSession();
  await bench.say("The word is xylophone.");
  await bench.chat.locator(".answer", { hasText: "Noted." }).waitFor();
  await bench.idle();
  await bench.newSession();
  await bench.say("Something else.");
  await bench.chat.locator(".answer", { hasText: "A new one." }).waitFor();
  await bench.idle();
  await bench.command("tandem: Open Session");
  await bench.choose("The word is xylophone."); // the latest of that name
  await bench.chat.locator(".answer", { hasText: "Noted." }).waitFor();
  await exactly(bench.chat.locator(".list", { hasText: "Something else." }), 0);
  await bench.say("Which word?");
  await bench.chat.locator(".answer", { hasText: "Xylophone." }).waitFor();
  await bench.idle();
  const { requests } = await model.state();
  assert.match(JSON.stringify(requests.at(-1).messages), /The word is xylophone/);
}

async function links() {
  const text = "[here](src/price.ts:6) [there](https://example.com/a?b=c) [out](/etc/passwd) [run](command:workbench.action.quit) ![spy](https://example.com/p.png) `os.path` `price.ts:4` [install](ext%20install%20evil.evil) [reload](%3EReload%20Window)";
  await model.script([{ text }]);
  await bench.say("Show me.");
  const answer = bench.chat.locator(".answer:not(.streaming)", { hasText: "here" }); // until then it is redrawn, and a click can be lost
  const link = (name) => answer.getByRole("link", { name, exact: true });
  await link("there").click();
  await bench.page.locator(".monaco-dialog-box", { hasText: "https://example.com/a?b=c" }).getByRole("button", { name: "Cancel" }).click();
  await link("out").click();
  await bench.page.locator(".notifications-toasts", { hasText: "of this workspace: /etc/passwd" }).waitFor();
  await link("here").click();
  await bench.page.locator(".statusbar-item", { hasText: "Ln 6, Col 1" }).waitFor();
  await link("price.ts:4").click(); // a file without its folder
  await bench.choose("price.ts");
  await bench.page.locator(".statusbar-item", { hasText: "Ln 4, Col 1" }).waitFor();
  await bench.command("Notifications: Clear All Notifications");
  for (const name of ["install", "reload"]) {
    await link(name).click(); // the list of files would be one of extensions to install or of commands to run
    await bench.page.locator(".notifications-toasts", { hasText: "it does not exist or is not text" }).waitFor();
    await bench.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
    await bench.command("Notifications: Clear All Notifications");
  }
  await exactly(link("run"), 0);
  await exactly(link("os.path"), 0); // a name with a dot, but no file
  await until(answer.getByText("os.path"), (name) => getComputedStyle(name).color !== getComputedStyle(name.closest("p").querySelector("[data-href]")).color);
  await exactly(answer.locator("img"), 0);
  await bench.idle();
}

async function finishedAnswer() {
  const code = "const sum: number = 1; // one";
  const table = "| Column | number |\n|---|--:|\n| price | 1 |";
  await model.script([{ text: `Like this:\n\n\`\`\`ts\n${code}\n\`\`\`\n\n${table}\n\nSee \`src/price.ts:6\`, or \`label\`, \\(a^2\\).\n\n- [x] done\n\n\`\`\`sh\nls\n\`\`\`\n` }]);
  await bench.say("Show me code.");
  const answer = bench.chat.locator(".answer:not(.streaming)", { hasText: "Like this:" });
  await answer.locator(".hljs-keyword", { hasText: "const" }).waitFor();
  await bench.idle();
  await until(answer.locator(".code code").first(), ({ textContent }, text) => textContent.trimEnd() === text, code);
  await answer.getByRole("link", { name: "src/price.ts:6" }).waitFor();
  await answer.getByRole("img", { name: "done" }).waitFor();
  await answer.locator("math msup").waitFor();
  await answer.getByRole("button", { name: "Run in Terminal" }).waitFor(); // only for the shell's block: two would be ambiguous
  await until(answer.locator("td", { hasText: "price" }), ({ clientHeight }) => clientHeight > 0 && clientHeight < 40); // no word of a table is split
  const copy = answer.locator(".code").first().locator("[data-code=copy]");
  await copy.evaluate(listen);
  await copy.click();
  await until(copy, ({ said }) => said.join() === "Copied,Copy"); // it is shown only for a moment
  await picture("answer");
  await answer.locator("code", { hasText: /^label$/ }).click();
  await bench.page.locator(".statusbar-item", { hasText: "Ln 10, Col 1" }).waitFor(); // the definition
  await bench.goToEndOf("interface Line");
  await answer.locator(".code").first().getByRole("button", { name: "Insert" }).click();
  await bench.editor.locator(".view-line", { hasText: "// one" }).waitFor();
  await bench.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  await bench.page.keyboard.press("Control+z");
  await bench.editor.locator(".view-line", { hasText: "// one" }).waitFor({ state: "detached" });
}

/** Runs in the browser: from now on, records the button's labels. */
function listen(button) {
  button.said = [];
  new MutationObserver(() => button.said.push(button.textContent)).observe(button, { childList: true });
}

/** In a file that is not open: VS Code itself may restore an older backup over one that was saved just before the window was reloaded. */
async function restored() {
  const edit = { path: "README.md", edits: [{ old_text: "A shop", new_text: "A Norwegian shop" }] };
  await model.reset();
  await model.script([{ call: { id: "call_7", name: "edit_file", arguments: edit } }], [{ text: "In Norwegian crowns." }], [{ text: "Still here." }]);
  await bench.say("In Norwegian crowns, then.");
  await bench.chat.locator(".answer", { hasText: "In Norwegian crowns." }).waitFor();
  await bench.idle();
  await bench.page.locator(".pane .monaco-list-row", { hasText: "README.md" }).waitFor();
  await bench.openFile("README.md");
  await bench.command("View: Show Explorer");
  await bench.open();
  await bench.editor.locator(".codelens-decoration a", { hasText: "Keep" }).waitFor(); // the chat has not been opened
  await bench.command("tandem: Open Chat");
  await bench.chat.locator(".answer", { hasText: "In Norwegian crowns." }).waitFor();
  await bench.page.locator(".statusbar-item", { hasText: /tandem: Accept edits\s*\d/ }).waitFor();
  await bench.page.locator(".pane .monaco-list-row", { hasText: "In Norwegian crowns, then." }).waitFor(); // the turn has its name
  await bench.page.locator(".pane .monaco-list-row", { hasText: "README.md" }).waitFor();
  await bench.chat.locator(".list .user", { hasText: "In Norwegian crowns, then." }).getByRole("button", { name: /^Edit/ }).waitFor();
  await bench.say("Are you there?");
  await bench.chat.locator(".answer", { hasText: "Still here." }).waitFor();
  await bench.idle();
  await bench.command("tandem: Keep All");
}

async function editMode() {
  const edit = { path: FILE, edits: [{ old_text: " EUR", new_text: " SEK" }] };
  const mode = bench.chat.getByRole("combobox", { name: "Mode", exact: true });
  await mode.focus();
  await mode.selectOption("edit");
  await bench.chat.locator('select.mode:focus option[value="edit"][selected]').waitFor({ state: "attached" }); // after a redraw, the keyboard focus is still on it
  await bench.page.locator(".statusbar-item", { hasText: "tandem: Accept edits" }).waitFor();
  await model.script([{ call: { id: "call_6", name: "edit_file", arguments: edit } }], [{ text: "In crowns." }]);
  await bench.say("In crowns, then.");
  await bench.chat.locator(".answer", { hasText: "In crowns." }).waitFor();
  await bench.editor.locator(".view-line", { hasText: " SEK" }).waitFor();
  await bench.idle();
}

async function otherModel() {
  await model.reset();
  await model.script([{ text: "First." }], [{ text: "Second." }]);
  await bench.say("The word is xylophone.");
  await bench.chat.locator(".answer", { hasText: "First." }).waitFor();
  await bench.idle();
  const rules = { "tandem.permissions.allow": ["run_command(seq *)"], "tandem.permissions.deny": ["run_command(date)"] };
  bench.configure({ ...settings, "tandem.model": "other-model", ...rules });
  await bench.chat.locator(".notice", { hasText: "Settings changed: a new session has started" }).waitFor();
  await bench.say("Which word?");
  await bench.chat.locator(".answer", { hasText: "Second." }).waitFor();
  await bench.idle();
  const { requests } = await model.state();
  assert.equal(requests.at(-1).model, "other-model");
  assert.doesNotMatch(JSON.stringify(requests.at(-1).messages), /xylophone/);
}

/** As set together with the model. */
async function rulesInSettings() {
  await model.script([...running("call_s1", "seq 8"), ...running("call_s2", "date")], [{ text: "One ran." }]);
  await bench.say("Run both.");
  await bench.chat.locator(".answer", { hasText: "One ran." }).waitFor(); // no request was shown
  await bench.chat.locator(".tool[data-status=completed]", { hasText: "seq 8" }).waitFor();
  await bench.chat.locator(".tool[data-status=failed]", { hasText: "date" }).waitFor();
  await bench.idle();
}

async function newSession() {
  await bench.newSession();
  await exactly(bench.chat.locator(".group > *"), 0);
}

/** The extension's page in the Marketplace shows the pictures from the package. */
function packaged() {
  const [folder] = globSync(join(bench.folder, "extensions/tandem.tandem-*"));
  const readme = readFileSync(join(folder, "readme.md"), "utf8");
  const pictures = [...readme.matchAll(/\]\((media\/[\w.]+)\)|src="(media\/[\w.]+)"/g)].map(([, plain, sized]) => plain ?? sized);
  assert.ok(pictures.length > 3);
  for (const name of [...pictures, "LICENSE.txt", "l10n/bundle.l10n.de.json", "package.nls.de.json", "dist/THIRD-PARTY.txt"]) {
    assert.ok(existsSync(join(folder, name)), name);
  }
  assert.match(readFileSync(join(folder, "changelog.md"), "utf8"), /## \[[\s\S]*- A chat with /);
}

function noPolicyBreach() {
  assert.deepEqual(bench.problems.filter((text) => /Content Security Policy/.test(text) && /default-src 'none'/.test(text)), []);
}

/** Returns whether it passed or was not asked for. */
async function check(name, body) {
  if (name !== START && !new RegExp(process.env.TANDEM_TEST_ONLY ?? "").test(name)) {
    return true;
  }
  const began = performance.now();
  try {
    await body();
    passed++;
    console.log(`ok - ${name} # ${((performance.now() - began) / 1000).toFixed(1)} s`);
    return true;
  } catch (error) {
    failures.push({ name, error, unplayed: [] });
    console.log(`not ok - ${name}\n${error.stack}`);
    const file = `vscode-failed-${name.replace(/\W+/g, "-")}.png`;
    await bench?.page.screenshot({ path: join(options.out, file) }).catch(console.error);
    await model.reset(); // announcements left from one check don't reach the next
    return false;
  }
}

/**
 * If only a few groups failed, plays each again in a new workbench: on a busy machine, a key or a frame can be late. If the whole group
 * passes there, it counts as passed, and a warning names the check that had failed.
 */
function playAgain(failure) {
  const { name, error, unplayed } = failure;
  const env = { ...process.env, TANDEM_TEST_AGAIN: name, TANDEM_TEST_ONLY: "", TANDEM_TEST_OUT: join(options.out, "again") };
  const { status, stdout, stderr } = spawnSync(process.execPath, process.argv.slice(1), { env, encoding: "utf8" });
  console.log(`${stdout}${stderr}`.replace(/^/gm, "  "));
  if (status === 0 && stdout.includes(`ok - ${name} #`)) {
    passed += 1 + unplayed.length;
    failures.splice(failures.indexOf(failure), 1);
    console.log(`WARNING: ${name}: failed, and passed when it was played once more: ${error.message.split("\n", 1)[0]}`);
  } else {
    unplayed.forEach((one) => console.log(`not played - ${one}`));
  }
}

async function picture(name, clip) {
  await bench.page.screenshot({ path: join(options.out, `vscode-${name}.png`), ...(clip && { clip }) });
  await legibility.look(name);
}

function withTyped(text) {
  return text.replace("price: number;", `price: number; ${TYPED}`);
}

/** The server finds no key, configuration or state except the test's. */
function startBench({ files = { [FILE]: SAVED, [CART]: CART_TEXT, [STOCK]: STOCK_TEXT, "README.md": "# A shop\n" }, settings, home }) {
  const hidden = Object.keys(process.env).filter((name) => /_API_KEY$|^TANDEM_/.test(name));
  const env = { ...Object.fromEntries(hidden.map((name) => [name, undefined])), XDG_CONFIG_HOME: undefined, XDG_STATE_HOME: undefined };
  const view = home && { view: { viewport: { width: 1400, height: 860 }, deviceScaleFactor: 2 } };
  return Workbench.start({ ...options, ...view, files, settings, env, home });
}

function readOptions() {
  const { env } = process;
  const text = { type: "string" };
  const { values } = parseArgs({ options: { share: text, "code-server": text, vsix: text, tandem: text, out: text, home: text } });
  const required = (name, value) => {
    assert.ok(value, `give --${name} or its variable; see the head of this file`);
    return resolve(value);
  };
  const codeServer = required("code-server", values["code-server"] ?? env.CODE_SERVER);
  return {
    share: values.share,
    codeServer,
    playwright: env.PLAYWRIGHT_CORE ?? join(codeServer, "../playwright-core/index.mjs"),
    chromium: env.CHROMIUM ?? "/usr/bin/chromium",
    vsix: required("vsix", values.vsix ?? env.TANDEM_VSIX),
    tandem: required("tandem", values.tandem ?? env.TANDEM_BIN),
    out: required("out", values.out ?? env.TANDEM_TEST_OUT),
    home: values.home,
  };
}
