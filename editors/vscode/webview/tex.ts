/**
 * Where formulas are in Markdown: `\( \)`, `\[ \]`, `$$ $$`, and `$ $` where it cannot be a price or a shell variable. A formula has no blank line in it, so
 * one that is never closed changes nothing behind its paragraph.
 */
import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";

const CLOSINGS: Readonly<Record<string, string>> = { "\\(": "\\)", "\\[": "\\]", $$: "$$" };

export function useFormulas(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("escape", "formula", inline);
  markdown.block.ruler.before("fence", "formula", block, { alt: ["paragraph", "reference", "blockquote", "list"] });
  const escape = markdown.utils.escapeHtml;
  const shown = (tag: string, classes: string, tex: string, source: string) =>
    `<${tag} class="math${classes}" data-tex="${escape(tex)}">${escape(source)}</${tag}>`;
  markdown.renderer.rules["formula"] = (tokens, index) => {
    const { content = "", markup = "", info = "" } = tokens[index] ?? {};
    return shown("span", markup === "\\(" || markup === "$" ? "" : " display", content, info);
  };
  markdown.renderer.rules["formula_block"] = (tokens, index) => {
    const { content = "", info = "" } = tokens[index] ?? {};
    return shown("div", " display", content, info);
  };
}

function inline(state: StateInline, silent: boolean): boolean {
  const found = inlineFormula(state.src, state.pos);
  if (found === undefined) {
    return false;
  }
  if (!silent) {
    const token = state.push("formula", "span", 0);
    token.markup = found.opening;
    token.content = found.tex;
    token.info = state.src.slice(state.pos, found.end);
  }
  state.pos = found.end;
  return true;
}

interface Formula {
  readonly opening: string;
  readonly tex: string;
  /** The offset after its end. */
  readonly end: number;
}

/** The formula that begins at a place in the text of a paragraph. */
export function inlineFormula(text: string, at: number): Formula | undefined {
  const opening = text.slice(at, at + 2);
  const closing = CLOSINGS[opening];
  if (closing !== undefined) {
    const end = text.indexOf(closing, at + 2);
    const tex = text.slice(at + 2, end);
    return end < 0 || tex.trim() === "" || !isFormula(opening, tex) ? undefined : { opening, tex, end: end + 2 };
  }
  const tex = text.charAt(at) === "$" ? single(text, at) : undefined;
  return tex === undefined ? undefined : { opening: "$", tex, end: at + tex.length + 2 };
}

/** Brackets that are escaped because they are meant as such hold words; `$$` is also a variable of shells. */
function isFormula(opening: string, tex: string): boolean {
  return opening === "\\(" || (!tex.includes("`") && (looksLikeTex(tex) || (opening === "$$" && /^\s*\w\s*$/.test(tex))));
}

/** `$…$` in one line, close to its content, with nothing beside it that makes it a price, a variable or a pattern. */
function single(text: string, at: number): string | undefined {
  const [, tex] = /^\$([^\s$`{(](?:[^$`\n]*[^\s$`\\])?)\$(?![\w$({/"'])/.exec(text.slice(at)) ?? [];
  const isBehindWord = /[\w$\\"'/:=]$/.test(text.slice(0, at));
  const isShell = tex === undefined || /^[A-Z_]{2,}\b|^\d[\d.,]*(\s|$)/.test(tex);
  return tex !== undefined && !isBehindWord && !isShell && (/^[A-Za-z]$/.test(tex) || looksLikeTex(tex)) ? tex : undefined;
}

function looksLikeTex(tex: string): boolean {
  return /[\\^_=<>+]|[a-z]\s*[-*/]\s*\w|^[a-zA-Z]\([a-z](, ?[a-z])*\)$/.test(tex);
}

/** A block that begins with `$$` or `\[`: in one line, or with each of these alone on its line. While it streams it may lack its end. */
function block(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const lineAt = (line: number) => state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]).trimEnd();
  const first = lineAt(startLine);
  const opening = first.slice(0, 2);
  const closing = opening === "\\(" ? undefined : CLOSINGS[opening];
  if (closing === undefined || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4) {
    return false;
  }
  const tex: string[] = [];
  let line = startLine + 1;
  if (first !== opening) {
    const inside = first.slice(2, -2);
    if (first.indexOf(closing, 2) !== first.length - 2 || inside.trim() === "" || !isFormula(opening, inside)) {
      return false; // it is part of a paragraph
    }
    tex.push(inside);
  } else {
    for (; line < endLine && lineAt(line) !== closing; line++) {
      if (state.isEmpty(line) || (state.sCount[line] ?? 0) < state.blkIndent) {
        return false;
      }
      tex.push(lineAt(line));
    }
    line = Math.min(line + 1, endLine);
  }
  if (!silent) {
    const token = state.push("formula_block", "div", 0);
    token.block = true;
    token.content = tex.join("\n");
    token.info = state.getLines(startLine, line, state.blkIndent, false);
    token.map = [startLine, line];
    state.line = line;
  }
  return true;
}
