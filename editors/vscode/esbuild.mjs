// Builds the extension and its webview into dist/ (`--production`: minified), or the tests into dist-test/ (`--test`).
import { build, context } from "esbuild";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const flags = new Set(process.argv.slice(2));
const common = {
  bundle: true,
  metafile: true,
  minify: flags.has("--production"),
  sourcemap: !flags.has("--production"),
  logLevel: "warning",
};

const extension = {
  ...common,
  entryPoints: { extension: "src/main.ts" },
  outdir: "dist",
  platform: "node",
  target: "node20",
  external: ["vscode"],
  // The clone that this is built in: it has the program's sources. A release, which CI builds, has the program.
  define: { CLONE: JSON.stringify(process.env.CI ? "" : resolve("../..")) },
};
const webview = {
  ...common,
  entryPoints: { webview: "webview/main.ts", highlight: "webview/highlight.ts", math: "webview/math.ts", chat: "webview/chat.css" },
  outdir: "dist",
  platform: "browser",
  target: "chrome122",
  format: "iife",
  loader: { ".svg": "text" },
};
const tests = {
  ...common,
  entryPoints: ["test/*.test.ts"],
  outdir: "dist-test",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  target: "node20",
  format: "esm",
  // No editor: what the sources use of its modules.
  alias: { vscode: "./test/vscode.ts", "vscode-languageclient/node": "vscode-jsonrpc" },
};

const targets = flags.has("--test") ? [tests] : [extension, webview];
for (const { outdir } of targets) {
  rmSync(outdir, { recursive: true, force: true });
}
if (flags.has("--watch")) {
  await Promise.all(targets.map(async (target) => (await context(target)).watch()));
} else {
  const results = await Promise.all(targets.map((target) => build(target)));
  if (flags.has("--production")) {
    writeFileSync("CHANGELOG.md", changes(readFileSync("../../CHANGELOG.md", "utf8")));
    writeFileSync("dist/THIRD-PARTY.txt", licenses(results.flatMap(({ metafile }) => Object.keys(metafile.inputs))));
  }
}

/** What the change log of the project says of this extension, by version. */
function changes(log) {
  let isOurs = false;
  const lines = log.split("\n").filter((line) => {
    isOurs = /^#/.test(line) ? /VS Code$/.test(line) : isOurs;
    return /^##? /.test(line) || /^- VS Code/.test(line) || (isOurs && line.startsWith("- "));
  });
  return `${lines
    .join("\n")
    .replace(/^(#.*)\n?/gm, "\n$1\n\n")
    .trimStart()}\n`;
}

/** The licenses of the packages that went into the bundles. */
function licenses(inputs) {
  const folders = new Set(inputs.map((input) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(input)?.[0]).filter(Boolean));
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? "" : readFileSync(`${folder}/${file}`, "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
