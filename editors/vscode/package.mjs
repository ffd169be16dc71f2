// Packages the extension as tandem.vsix: `node package.mjs [OWNER/NAME REF]`. With a repository on GitHub, its page in the Marketplace links there, and
// shows the pictures from there, as they are at that tag or branch. A clone does not know where it will be published.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const MANIFEST = "package.json";
const [repository, ref] = process.argv.slice(2);
const manifest = readFileSync(MANIFEST, "utf8");
const vsce = (...more) =>
  execFileSync("vsce", ["package", "--no-dependencies", "--out", "tandem.vsix", ...more], {
    stdio: "inherit",
    shell: process.platform === "win32",
  });

if (repository === undefined) {
  vsce("--allow-missing-repository", "--no-rewrite-relative-links");
} else {
  const url = `https://github.com/${repository}`;
  const of = (kind) => `${url}/${kind}/${ref}/editors/vscode`;
  const links = {
    repository: { type: "git", url: `${url}.git`, directory: "editors/vscode" },
    bugs: { url: `${url}/issues` },
    homepage: `${of("blob")}/README.md`,
  };
  try {
    writeFileSync(MANIFEST, `${JSON.stringify({ ...JSON.parse(manifest), ...links }, null, 2)}\n`);
    vsce("--baseContentUrl", of("blob"), "--baseImagesUrl", of("raw"));
  } finally {
    writeFileSync(MANIFEST, manifest);
  }
}
