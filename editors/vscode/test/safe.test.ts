import assert from "node:assert/strict";
import { test } from "node:test";
import { mixedScripts, visible } from "../src/safe";

test("what cannot be seen is shown as its code point", () => {
  const cases: [string, string][] = [
    ["plain\ttext\n", "plain\ttext\n"],
    ["line\r\nline", "line\nline"],
    ["over\rwritten", "over⟨U+000D⟩written"],
    ["\u001B[31mred", "⟨U+001B⟩[31mred"],
    ["a\u202Etxt.exe", "a⟨U+202E⟩txt.exe"],
    ["zero\u200Bwidth", "zero⟨U+200B⟩width"],
    ["pay\u200Dpal", "pay⟨U+200D⟩pal"],
    ["tag\u{E0041}", "tag⟨U+E0041⟩"],
    ["selector\uFE0F", "selector⟨U+FE0F⟩"],
    ["hangul\u3164filler", "hangul⟨U+3164⟩filler"],
    ["\uFEFFmark", "⟨U+FEFF⟩mark"],
    ["👩‍💻 👍🏽 ❤️", "👩‍💻 👍🏽 ❤️"],
    ["می‌خواهم", "می‌خواهم"],
    ["क्‍ष", "क्‍ष"],
    ["naïve Ünïcödé 漢字 עברית", "naïve Ünïcödé 漢字 עברית"],
  ];
  for (const [text, expected] of cases) {
    assert.equal(visible(text), expected);
    assert.equal(visible(visible(text)), expected, "showing twice changes nothing");
  }
});

test("a word of several look-alike scripts is pointed out", () => {
  const cases: [string, string[]][] = [
    ["Edit src/price.ts", []],
    ["curl https://p\u0430ypal.com", ["p\u0430ypal"]],
    ["привет world", []],
    ["α-particle, 5µm", []],
    ["s\u0441ript and s\u0441ript", ["s\u0441ript"]],
  ];
  for (const [text, expected] of cases) {
    assert.deepEqual(mixedScripts(text), expected);
  }
});
