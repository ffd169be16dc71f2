import assert from "node:assert/strict";
import { test } from "node:test";
import { target } from "../src/links";

test("a link names a file, and perhaps a line, in each of the ways models write it", () => {
  const at = (path: string, line?: number) => (line === undefined ? { path } : { path, line });
  const cases = {
    "src/price.ts": at("src/price.ts"),
    "src/price.ts:6": at("src/price.ts", 6),
    "src/price.ts:6:12": at("src/price.ts", 6),
    "src/price.ts:6-8": at("src/price.ts", 6),
    "src/price.ts#L6": at("src/price.ts", 6),
    "src/price.ts#L6-L8": at("src/price.ts", 6),
    "a%20b.ts:3": at("a b.ts", 3),
    "100%.txt": at("100%.txt"),
    "docs/README.md#install": at("docs/README.md"),
  };
  for (const [href, expected] of Object.entries(cases)) {
    assert.deepEqual(target(href), expected, href);
  }
});
