import assert from "node:assert/strict";
import { test } from "node:test";
import { wordAt } from "../webview/word";

test("a command stands at the beginning, a mention behind a blank or a bracket", () => {
  const words: Record<string, string | undefined> = {
    "/": "/",
    "/co": "/co",
    "see /co": undefined,
    "/review @": "@",
    "see @src/ma": "@src/ma",
    "see\n@": "@",
    "(@#parse": "@#parse",
    'see @"my no': '@"my no',
    'see @"my notes.md"': undefined,
    "me@example.com": undefined,
    "@a b": undefined,
    "@a@b": undefined,
  };
  for (const [before, expected] of Object.entries(words)) {
    const word = wordAt(before);
    assert.equal(word && word.sigil + word.query, expected, before);
  }
});
