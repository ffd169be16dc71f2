// The real VS Code workbench (code-server) in a headless browser, with the extension installed and a project of its own, all under one temporary
// folder. Everything here waits for a condition; nothing sleeps.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

export const USER_SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.minimap.enabled": false,
  "editor.fontSize": 13,
  "files.autoSave": "off",
  "extensions.autoCheckUpdates": false,
  "remote.autoForwardPorts": false, // otherwise it warns of the many that other programs have open
  "telemetry.telemetryLevel": "off",
  "terminal.integrated.gpuAcceleration": "off", // then its text is in the page
  "typescript.updateImportsOnFileMove.enabled": "never", // otherwise a dialog opens when a file is renamed
  "update.mode": "none",
  "security.workspace.trust.enabled": false,
  "window.commandCenter": false,
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.layoutControl.enabled": false,
  "workbench.reduceMotion": "on",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "tandem.finish": false, // otherwise the scripts of all checks would have to deal with TypeScript's problems
  "tandem.notify": true, // for turns that end while the window isn't focused: an open window may never learn of a change in the user's settings
};
const BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const MODES = { plan: "Plan", ask: "Ask before edits", edit: "Accept edits", auto: "Auto" };
/** VS Code's own themes, and the name a page has for their kind. */
export const THEMES = {
  "Dark High Contrast": "vscode-high-contrast",
  "Light High Contrast": "vscode-high-contrast-light",
  "Light Modern": "vscode-light",
  "Dark Modern": "vscode-dark",
};
/** A tiny extension that reports problems, and the tool that packages it. */
const LINTER = fileURLToPath(new URL("linter", import.meta.url));
const VSCE = fileURLToPath(new URL("../../../editors/vscode/node_modules/@vscode/vsce/vsce", import.meta.url));
/** The timeout for a window, its extensions and their servers to start. */
export const START_MS = 120_000;
const STEP_MS = 60_000;
/** The timeout of one of several tries. The first ones are shorter: if a key is lost or an element is redrawn, the next try usually works at once. */
export const TRY_MS = 4_000;
const FIRST_TRY_MS = 1_000;

export class Workbench {
  #begun = 0;
  #settings = {};
  /** Something failed in the window, or left a state that `begin` does not clean up: the next group gets a new window. */
  isWorn = false;

  /** `{codeServer, playwright, chromium, vsix, tandem, files: {path: text}, settings?, env, home?, view?}` → a started workbench on those files. */
  static async start(options) {
    const bench = new Workbench({ view: { viewport: { width: 1400, height: 860 } }, ...options });
    try {
      await bench.#serve();
      await bench.#browse();
    } catch (error) {
      await bench.close();
      throw error;
    }
    return bench;
  }

  constructor(options) {
    this.options = options;
    this.folder = options.home ?? mkdtempSync(join(tmpdir(), "tandem-vscode-"));
    if (options.home !== undefined) {
      mkdirSync(options.home); // an existing one is neither used nor removed
    }
    this.problems = [];
    this.program = join(this.folder, "tandem");
    symlinkSync(options.tandem, this.program);
    this.#makeProject("shop");
    this.configure(options.settings ?? {});
  }

  #makeProject(path) {
    this.project = join(this.folder, path);
    this.write("data/User/settings.json", JSON.stringify(USER_SETTINGS));
    for (const [name, text] of Object.entries(this.options.files)) {
      this.save(name, text);
    }
  }

  /**
   * Continues with the initial files and user settings, and with these settings. A window costs as much as a dozen checks: one that has these
   * settings and is clean is tidied; otherwise, a new one is loaded, in a new project. The user's global state stays: keys, sessions.
   */
  async begin(settings) {
    const isFirst = this.#begun++ === 0;
    await this.page.bringToFront(); // behind another page, it draws one frame a second
    if (this.isWorn || JSON.stringify(settings) !== JSON.stringify(this.#settings)) {
      this.#makeProject(`${this.#begun}/shop`);
      this.configure(settings);
      await this.open();
      await this.page.locator(".activitybar [aria-label=tandem]").first().click();
      this.isWorn = false;
    } else if (!isFirst) {
      await this.#tidy();
    }
    await this.chat.locator("body[data-phase=ready]").waitFor({ timeout: START_MS });
  }

  /** As a person would leave it: nothing is pending, no editor, terminal or notification is open, and the files are the initial ones. */
  async #tidy() {
    await this.command("tandem: Open Chat");
    await this.keepAll();
    const unsaved = this.page.locator(".tab.dirty"); // VS Code keeps a text for minutes after its tab was closed
    for (let left = await unsaved.count(); left > 0; left = await unsaved.count()) {
      await unsaved.first().click();
      await this.command("View: Revert and Close Editor");
      await unsaved.nth(left - 1).waitFor({ state: "detached" });
    }
    await this.command("View: Close All Editors");
    await exactly(this.page.locator(".tabs-container .tab"), 0);
    await this.command("Terminal: Kill All Terminals");
    await this.command("Notifications: Clear All Notifications");
    this.#restoreFiles();
    await this.newSession();
    await this.setMode("ask");
  }

  #restoreFiles() {
    const { files } = this.options;
    for (const path of readdirSync(this.project, { recursive: true })) {
      if (!Object.keys(files).some((name) => `${name}/`.startsWith(`${path}/`))) {
        rmSync(join(this.project, path), { recursive: true, force: true });
      }
    }
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.project, name);
      if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
        this.save(name, text);
      }
    }
  }

  /** Settings of scope `machine` are stored here when the extension runs beside the files. An open window learns of changes eventually. */
  configure(settings) {
    this.#settings = settings;
    this.write("data/Machine/settings.json", JSON.stringify({ "tandem.server.path": this.program, ...settings }));
  }

  /** Writes a file of the project. */
  save(path, text) {
    this.write(join(this.project, path), text);
  }

  /** In the workbench's folder. */
  write(path, text) {
    const file = resolve(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  async #serve() {
    const { codeServer, vsix, env } = this.options;
    const entry = join(codeServer, "out/node/entry.js");
    const folders = ["--user-data-dir", join(this.folder, "data"), "--extensions-dir", join(this.folder, "extensions"), "--config", join(this.folder, "config.yaml")];
    const run = { env: { ...process.env, HOME: this.folder, PORT: undefined, ...env }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
    const linter = join(this.folder, "linter.vsix");
    const packaging = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", linter];
    execFileSync(process.execPath, [VSCE, ...packaging], { ...run, cwd: LINTER });
    execFileSync(process.execPath, [entry, ...folders, "--install-extension", vsix, "--install-extension", linter], run);
    const flags = ["--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"];
    this.server = spawn(process.execPath, [entry, ...folders, ...flags, this.project], run);
    this.server.stderr.resume();
    this.address = await lineMatching(this.server.stdout, /HTTP server listening on (\S+?)\/?$/, START_MS);
    this.server.stdout.resume();
  }

  async #browse() {
    const { playwright, chromium } = this.options;
    const { chromium: launcher } = await import(pathToFileURL(playwright));
    this.browser = await launcher.launch({ executablePath: chromium, args: BROWSER_FLAGS, ignoreDefaultArgs: ["--hide-scrollbars"] });
    const context = await this.browser.newContext(this.options.view);
    this.page = await context.newPage();
    this.page.setDefaultTimeout(STEP_MS);
    this.page.on("console", (message) => message.type() === "error" && this.problems.push(message.text()));
    await this.open();
  }

  /**
   * Loads the window: the extension host starts afresh, settings included. Repeats this if VS Code reports no folder: on a busy machine, it can
   * mistake a multi-root workspace for an empty one.
   */
  async open(what = `folder=${this.project}`) {
    const folders = this.page.locator(".explorer-folders-view");
    const none = this.page.locator(".part.sidebar .welcome-view-content", { hasText: "You have not yet added a folder" });
    await eventually(async () => {
      await this.page.goto(`${this.address}/?${what}`);
      await folders.or(none).first().waitFor({ timeout: START_MS });
      await folders.waitFor({ timeout: TRY_MS });
    }, 4);
    await this.page.locator(".activitybar [aria-label=tandem]").first().waitFor({ timeout: START_MS });
    this.chat = this.page.frameLocator('iframe.webview.ready[src*="extensionId=tandem.tandem"]').frameLocator("iframe#active-frame");
  }

  /** Reloads the window as it is: its contents are restored. */
  async reload() {
    await this.page.reload();
    await this.page.locator(".activitybar [aria-label=tandem]").first().waitFor({ timeout: START_MS });
    await this.chat.locator("body[data-phase=ready]").waitFor({ timeout: START_MS });
  }

  /** A second window, on the same folder by default; the caller closes its page. */
  async another(what) {
    const other = Object.create(this);
    other.page = await this.page.context().newPage();
    other.page.setDefaultTimeout(STEP_MS);
    await other.open(what);
    return other;
  }

  async openFile(name) {
    await this.openTab(name);
    await this.editor.locator(".view-line").first().waitFor();
  }

  /** The list may be filtered while a row is clicked: the click then hits another file. */
  async openTab(name) {
    await eventually(async (timeout) => {
      await this.pick("Control+p", name, name, timeout);
      await this.page.locator(".tab.active", { hasText: name }).waitFor({ timeout: TRY_MS });
    });
  }

  get editor() {
    return this.page.locator(".editor-instance .monaco-editor").first();
  }

  /** Runs a command from the palette by its title. */
  async command(title) {
    await eventually((timeout) => this.pick("F1", `>${title}`, title, timeout));
  }

  /** The same by keyboard alone. */
  async type(title) {
    const { keyboard } = this.page;
    await keyboard.press("F1");
    await this.page.locator(".quick-input-widget input[type=text]:focus").waitFor();
    await keyboard.type(title);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title }).waitFor();
    await keyboard.press("Enter");
  }

  /** Settles all pending changes, in all sessions. If the last one has just been settled, the command is no longer offered. */
  async keepAll() {
    const changes = this.page.locator(".pane-header", { hasText: "Changes" });
    await eventually(async () => {
      if ((await changes.count()) > 0) {
        await this.pick("F1", ">tandem: Keep All", "tandem: Keep All");
        await changes.waitFor({ state: "detached", timeout: TRY_MS });
      }
    });
  }

  /** Chooses a refactoring of the selection by its title. The menu closes by itself when something else moves in the window. */
  async refactor(title) {
    await eventually(async () => {
      await this.command("Refactor...");
      await this.page.locator(".action-widget .monaco-list-row", { hasText: title }).click({ timeout: TRY_MS });
    });
  }

  /** The list doesn't show what is registered after it opened, so it is reopened. */
  async pick(key, typed, expected, timeout = TRY_MS) {
    const { keyboard } = this.page;
    await keyboard.press(key);
    try {
      await this.page.locator(".quick-input-widget input[type=text]").fill(typed, { timeout });
      const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: expected }).first();
      await row.waitFor({ timeout });
      await row.click(); // for as long as it takes: one that is given up may have happened, and the next try would be a second
    } catch (error) {
      await keyboard.press("Escape");
      throw error;
    }
  }

  /** Changes the theme, and waits until the chat has it. */
  async theme(name) {
    await this.command("Preferences: Color Theme");
    await this.page.locator(".quick-input-widget input[type=text]").fill(name);
    await this.choose(name);
    await until(this.chat.locator("body"), ({ dataset }, kind) => dataset.vscodeThemeKind === kind, THEMES[name]);
  }

  /** Drags the side bar's edge, for legible pictures; the chat then has that width. The edge may move while it is looked for. */
  async widenSideBar(width) {
    const { mouse } = this.page;
    await eventually(async (timeout) => {
      const bar = await this.page.locator(".part.sidebar").boundingBox();
      await mouse.move(bar.x + bar.width, 300);
      await mouse.down();
      await mouse.move(bar.x + width, 300, { steps: 4 });
      await mouse.up();
      await until(this.chat.locator("body"), (body, wide) => Math.abs(body.clientWidth - wide) < 30, width, timeout);
    });
  }

  /** Kills the server immediately, like a crash. Its path is unique to this workbench, so no other is hit. A program that it is starting has its name for a moment. */
  killServer() {
    const ids = execFileSync("pgrep", ["-f", `^${this.program} lsp`], { encoding: "utf8" }).split(/\s+/).filter(Boolean);
    const servers = ids.filter((id) => !ids.includes(parent(id)));
    servers.forEach((id) => process.kill(Number(id), "SIGKILL"));
    return servers.length;
  }

  /** Two frames of the chat: then, the effects of a layout change are visible. */
  async drawn() {
    await this.chat.locator("body").evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }

  /** Scrolls the chat up. The chat first follows new text to its end. */
  async scrollToTop() {
    await this.drawn();
    await this.chat.locator("main").evaluate((main) => main.scrollTo(0, 0));
    await this.chat.locator(".jump:not([hidden])").waitFor();
  }

  /** Starts a session: earlier contents are gone, the window's saved state is restored, and the server is ready. */
  async newSession() {
    const heading = this.chat.locator(".welcome h1");
    if ((await heading.count()) > 0) {
      await heading.evaluate((one) => (one.isOld = true)); // it is redrawn for each session
    }
    await this.command("tandem: New Session");
    await until(this.chat.locator("body[data-phase=ready] .welcome h1"), (one) => !one.isOld && one.checkVisibility());
    // The command's last step: from then on, typing goes to the chat. On a busy machine, the palette may take the focus back.
    await eventually(async (timeout) => {
      await this.chat.locator("textarea:focus").waitFor({ timeout }).catch(() => this.command("tandem: Open Chat"));
      await this.chat.locator("textarea:focus").waitFor({ timeout });
    });
  }

  /** Chooses a mode below the input, and waits until it is in effect. */
  async setMode(mode) {
    await this.chat.getByRole("combobox", { name: "Mode", exact: true }).selectOption(mode);
    await this.page.locator(".statusbar-item", { hasText: `tandem: ${MODES[mode]}` }).waitFor();
  }

  /** Writes a prompt into the chat and sends it. The view shows it at once; the caller waits for the effects. */
  async say(text) {
    const box = this.chat.locator("textarea");
    await box.fill(text);
    await box.press("Enter");
    await until(box, ({ value }) => value === "");
  }

  /** Clicks a toggle button until it is in that state: it is redrawn whenever a button beside it changes. */
  async toggle(button, isPressed) {
    await eventually(async () => {
      if ((await button.getAttribute("aria-pressed")) !== String(isPressed)) {
        await button.click();
      }
      await until(button, (one, pressed) => one.isConnected && one.ariaPressed === pressed, String(isPressed), TRY_MS);
    });
  }

  /** The turn is over: there is something to send again and nothing to stop. */
  idle() {
    return this.chat.getByRole("button", { name: "Send", exact: true }).waitFor();
  }

  /** The page that this opens in the browser. VS Code first asks about an untrusted address. */
  async opened(open) {
    const tab = this.page.context().waitForEvent("page", { timeout: STEP_MS });
    const confirm = this.page.locator(".monaco-dialog-box", { hasText: "external website" }).getByRole("button", { name: "Open" });
    await open();
    if ((await Promise.race([tab, confirm.waitFor().catch(() => undefined)])) === undefined) {
      await confirm.click();
    }
    return tab;
  }

  /** Answers a modal dialog. */
  async answerDialog(question, answer) {
    const dialog = this.page.locator(".monaco-dialog-box", { hasText: question });
    await dialog.getByRole("button", { name: answer, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
  }

  /** Chooses an entry of the list that a command opened, by its name: a row is used again, and has texts of earlier entries, hidden. */
  async choose(label) {
    await this.page.locator(".quick-input-list").getByRole("option", { name: label }).first().click();
  }

  /** A list also has an input, which filters it and may remain until the box appears. Only a box says how to confirm. */
  async answerInputBox(text) {
    const says = this.page.locator(".quick-input-message", { hasText: "'Enter' to confirm" });
    const box = this.page.locator(".quick-input-widget", { has: says }).locator("input[type=text]:visible");
    await box.fill(text);
    await box.press("Enter");
  }

  /** Chooses an entry from the context menu of `target`, through its submenus. A menu ignores a click that comes with its opening, so a key chooses. */
  async chooseInMenu(target, entries, outcome) {
    await eventually(async (timeout) => {
      await this.page.keyboard.press("Escape");
      await target.click({ button: "right", timeout });
      for (const entry of entries) {
        await this.page.locator(".monaco-menu .action-label", { hasText: new RegExp(`^${entry}$`) }).hover({ timeout });
      }
      await this.page.keyboard.press("Enter");
      await outcome.waitFor({ timeout });
    });
  }

  /** Puts the cursor at the end of the first line that has `text`. */
  async goToEndOf(text) {
    await this.editor.locator(".view-line", { hasText: text }).first().click();
    await this.page.keyboard.press("End");
  }

  async typeAtEndOf(text, typed) {
    await this.goToEndOf(text);
    await this.page.keyboard.type(typed);
    await this.editor.locator(".view-line", { hasText: typed }).waitFor();
  }

  /**
   * Selects from the line that has `text` to the start of the one `lines` below; with 0, the line itself. Something else may take the focus in between, and
   * the rest of the keys.
   */
  async select(text, lines) {
    const { keyboard } = this.page;
    const cursor = (where) => this.page.locator(".statusbar-item", { hasText: where });
    await eventually(async (timeout) => {
      await this.goToEndOf(text);
      await keyboard.press("Home");
      await keyboard.press("Home");
      const start = await cursor(/Ln \d+, Col 1$/).innerText({ timeout });
      const line = Number(/\d+/.exec(start)[0]);
      for (let down = 0; down < lines; down++) {
        await keyboard.press("Shift+ArrowDown");
      }
      if (lines === 0) {
        await keyboard.press("Shift+End");
      }
      await cursor(new RegExp(`Ln ${line + lines}, Col \\d+ \\(\\d+ selected\\)`)).waitFor({ timeout });
    });
  }

  /** The open file is as on disk. VS Code may restore an older backup in a window that is reloaded just after an undo. */
  async discardBackup(text) {
    if ((await this.page.locator(".tab.active.dirty").count()) > 0) {
      await this.command("File: Revert File");
    }
    await this.bufferIs(text);
  }

  /** Waits until the open buffer shows exactly this text. Lines are drawn one by one, with no-break spaces. */
  async bufferIs(expected) {
    try {
      await this.page.waitForFunction(`(${drawnText})() === ${JSON.stringify(expected)}`);
    } catch {
      assert.equal(await this.page.evaluate(drawnText), expected);
    }
  }

  async close() {
    await this.browser?.close();
    if (this.server !== undefined && this.server.exitCode === null) {
      this.server.kill();
      await once(this.server, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs in the browser: the text of the first editor, without the widgets in it. */
function drawnText() {
  const lines = [...document.querySelector(".editor-instance .monaco-editor").querySelectorAll(".view-line")].filter((line) => line.closest(".review-widget") === null);
  const inOrder = lines.map((line) => ({ top: line.offsetTop, text: line.textContent })).sort((a, b) => a.top - b.top);
  return inOrder.map(({ text }) => text.replaceAll("\u00a0", " ")).join("\n");
}

/**
 * Waits in the browser until `condition` is true of the element: for properties that selectors don't see, such as an input's value. The element is
 * looked up again now and then, because it may have been redrawn.
 */
export async function until(locator, condition, argument, timeout = STEP_MS) {
  const test = new Function("[element, argument]", `return (${condition})(element, argument)`); // Playwright would not call a string
  const end = performance.now() + timeout;
  const isOver = () => performance.now() > end;
  await eventually(async (timeout) => {
    const element = await locator.elementHandle({ timeout });
    const frame = await element.ownerFrame();
    await frame.waitForFunction(test, [element, argument], { timeout });
  }, isOver);
}

/** The process that started this one; none if it has ended. */
function parent(id) {
  return spawnSync("ps", ["-o", "ppid=", "-p", id], { encoding: "utf8" }).stdout.trim();
}

/** Waits until there are exactly this many. */
export async function exactly(locator, count) {
  if (count > 0) {
    await locator.nth(count - 1).waitFor({ state: "attached" });
  }
  await locator.nth(count).waitFor({ state: "detached" });
}

/** Retries something that itself waits, for as long as it is told, and failed: a few times, or until `isOver`. */
export async function eventually(attempt, isOver = 10) {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(Math.min(TRY_MS, FIRST_TRY_MS * 2 ** (tries - 1)));
    } catch (error) {
      if (typeof isOver === "number" ? tries >= isOver : isOver()) {
        throw error;
      }
    }
  }
}

/** Reads lines until one matches and returns its first group. */
export async function lineMatching(stream, pattern, timeout) {
  const signal = AbortSignal.timeout(timeout);
  const seen = [];
  for await (const line of createInterface({ input: stream, signal })) {
    seen.push(line);
    const match = pattern.exec(line);
    if (match !== null) {
      return match[1];
    }
  }
  throw new Error(`no line matched ${pattern} in:\n${seen.join("\n")}`);
}
