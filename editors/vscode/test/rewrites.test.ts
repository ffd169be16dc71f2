import assert from "node:assert/strict";
import { test } from "node:test";
import { Rewrites } from "../src/rewrites";

test("text that streams is never taken for that of another rewrite", async () => {
  const rewrites = new Rewrites();
  const seen: string[] = [];
  let [endEdit, endCommit] = [(_text: string): void => assert.fail(), (_error: Error): void => assert.fail()];
  const edit = rewrites.run(new Promise<string>((resolve) => (endEdit = resolve)), (text) => void seen.push(`edit: ${text}`));
  rewrites.receive("one");
  const commit = rewrites.run(new Promise<string>((_, reject) => (endCommit = reject)), (text) => void seen.push(`commit: ${text}`));
  rewrites.receive("of either");
  endCommit(new Error("stopped"));
  await assert.rejects(commit, /stopped/);
  rewrites.receive("one two");
  endEdit("one two three");
  assert.equal(await edit, "one two three");
  rewrites.receive("late");
  assert.deepEqual(seen, ["edit: one", "edit: one two"]);
});
