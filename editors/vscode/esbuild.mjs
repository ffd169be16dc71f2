// Builds the extension and its webview into dist/ (`--production`: minified), or the tests into dist-test/ (`--test`).
import { build, context } from "esbuild";
import { rmSync } from "node:fs";

const flags = new Set(process.argv.slice(2));
const common = { bundle: true, minify: flags.has("--production"), sourcemap: !flags.has("--production"), logLevel: "warning" };

const extension = {
  ...common,
  entryPoints: { extension: "src/main.ts" },
  outdir: "dist",
  platform: "node",
  target: "node20",
  external: ["vscode"],
};
const webview = {
  ...common,
  entryPoints: { webview: "webview/main.ts", chat: "webview/chat.css" },
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
};

const targets = flags.has("--test") ? [tests] : [extension, webview];
for (const { outdir } of targets) {
  rmSync(outdir, { recursive: true, force: true });
}
if (flags.has("--watch")) {
  await Promise.all(targets.map(async (target) => (await context(target)).watch()));
} else {
  await Promise.all(targets.map((target) => build(target)));
}
