/**
 * Makes text from models, tools and file names safe to show: invisible characters and those that change the text direction appear as code points.
 * Newlines, tabs and the joiners of emoji and some scripts stay.
 */

const joinsEmoji =
  "(?<=\\p{Extended_Pictographic}\\uFE0F?\\p{Emoji_Modifier}?)\\u200D(?=\\p{Extended_Pictographic})|(?<=\\p{Emoji})\\uFE0F";
const joinedScripts = ["Arabic", "Bengali", "Devanagari", "Gujarati", "Kannada", "Malayalam", "Sinhala", "Tamil", "Telugu"]
  .map((name) => `\\p{Script=${name}}`)
  .join("");
const joinsLetters = `(?<=[${joinedScripts}])[\\u200C\\u200D](?=[${joinedScripts}])`;
const invisible = "[\\p{Cc}\\p{Cf}\\p{Variation_Selector}\\u115F\\u1160\\u2028\\u2029\\u2800\\u3164\\uFFA0]";
const keepOrShow = new RegExp(`([\\n\\t]|${joinsEmoji}|${joinsLetters})|${invisible}`, "gu");

/** The text with every invisible or reordering character written as `⟨U+202E⟩`. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(keepOrShow, (found, keep?: string) => keep ?? codePoint(found));
}

function codePoint(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

const word = /[\p{L}\p{M}\p{N}]+/gu;
const latin = /\p{Script=Latin}/u;
const lookalike = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/u;

/** The words that mix Latin with letters that look like it: `pаypal` with a Cyrillic а is not what it seems. */
export function mixedScripts(text: string): string[] {
  const words = text.match(word) ?? [];
  return [...new Set(words.filter((one) => latin.test(one) && lookalike.test(one)))];
}
