// Records VS Code working with tandem, for docs/jobs.md: the real workbench, the real server, a scripted model.
//
//   node tests/editors/vscode_record.mjs docs/media/web.webp
//
// Variables as for tests/editors/vscode.mjs; needs img2webp (Debian's webp).
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Model } from "./vscode/model.mjs";
import { webStory } from "./vscode/story.mjs";
import { Workbench } from "./vscode/workbench.mjs";

const VIEW = { viewport: { width: 960, height: 700 }, deviceScaleFactor: 2 };
/** It must not exist; requests show the folder. */
const HOME = "/home/ada";
const DELAY_MS = 40;
const LAST_FRAME_MS = 3000;

const [out] = process.argv.slice(2);
const { env } = process;
const model = await Model.start();
const given = { TANDEM_MODEL: "qwen3", TANDEM_BASE_URL: model.baseUrl, TANDEM_API_KEY: "k", TANDEM_API: "chat", XDG_CONFIG_HOME: undefined, XDG_STATE_HOME: undefined };
const bench = await Workbench.start({
  codeServer: env.CODE_SERVER,
  playwright: env.PLAYWRIGHT_CORE,
  chromium: env.CHROMIUM,
  vsix: env.TANDEM_VSIX,
  tandem: env.TANDEM_BIN,
  home: HOME,
  files: { "README.md": "# A shop\n" },
  env: given,
  view: VIEW,
});
const folder = mkdtempSync(join(tmpdir(), "tandem-frames-"));
try {
  await bench.openFile("README.md");
  await bench.command("tandem: Open Chat");
  await bench.widenSideBar(600);
  await bench.page.mouse.move(800, 500); // away from buttons
  const frames = record();
  await webStory({ bench, model, pause: (seconds) => pause(1000 * seconds), delay: DELAY_MS });
  await write(await frames());
} finally {
  await bench.close();
  await model.close();
  rmSync(folder, { recursive: true });
}

/** Takes pictures until the returned function is called, which returns `[picture, time]` for each that differs from the one before. */
function record() {
  const frames = [];
  let isOver = false;
  const recording = (async () => {
    while (!isOver) {
      const image = await bench.page.screenshot({ caret: "initial" });
      if (frames.length === 0 || !image.equals(frames.at(-1)[0])) {
        frames.push([image, Date.now()]);
      }
    }
  })();
  return async () => {
    isOver = true;
    await recording;
    return frames;
  };
}

function write(frames) {
  const shown = frames.flatMap(([image, when], index) => {
    const path = join(folder, `${index}.png`);
    writeFileSync(path, image);
    const until = frames[index + 1]?.[1] ?? when + LAST_FRAME_MS;
    return ["-d", String(until - when), path];
  });
  execFileSync("img2webp", ["-loop", "0", "-m", "6", ...shown, "-o", out]);
  console.log(`${out}: ${frames.length} frames`);
}
