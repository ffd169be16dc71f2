// Collects the texts of the extension and its views for translators (`--write`), or says what is out of date: l10n/bundle.l10n.json holds each
// text that is passed to `t(…)`, package.nls.json each that package.json names. A translation has the same texts, with the same placeholders and links.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const BUNDLE = "l10n/bundle.l10n.json";
const CALL = /\bt\(\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/g;

const sources = ["src", "webview"]
  .flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`))
  .filter((name) => name.endsWith(".ts"));
const texts = sources.flatMap((name) => [...readFileSync(name, "utf8").matchAll(CALL)].map(([, literal]) => unquoted(literal)));
const bundle = Object.fromEntries([...new Set(texts)].sort().map((text) => [text, text]));
const words = `${JSON.stringify(bundle, null, 2)}\n`;
if (process.argv.includes("--write")) {
  mkdirSync("l10n", { recursive: true });
  writeFileSync(BUNDLE, words);
}
assert.equal(readFileSync(BUNDLE, "utf8"), words, "run npm run l10n");

const named = [...readFileSync("package.json", "utf8").matchAll(/"%([\w.-]+)%"/g)].map(([, key]) => key);
assert.deepEqual(Object.keys(JSON.parse(readFileSync("package.nls.json", "utf8"))).sort(), [...new Set(named)].sort());

const PLACEHOLDER = /\{\d+\}|\$\(\w+\)|\(command:[\w.]+\)|`#?[\w.]+#?`/g;
const ofEach = (name) =>
  Object.entries(JSON.parse(readFileSync(name, "utf8"))).map(([key, text]) => [key, ...(text.match(PLACEHOLDER) ?? []).sort()].join(" "));
for (const source of [BUNDLE, "./package.nls.json"]) {
  const [folder, name] = source.split("/");
  const languages = readdirSync(folder).filter((other) => other.startsWith(name.replace("json", "")) && other !== name);
  for (const language of languages) {
    assert.deepEqual(ofEach(`${folder}/${language}`).sort(), ofEach(source).sort(), language);
  }
}

function unquoted(literal) {
  return literal.startsWith("'")
    ? JSON.parse(`"${literal.slice(1, -1).replaceAll('"', '\\"').replaceAll("\\'", "'")}"`)
    : JSON.parse(literal);
}
