/** Names in running text that lead somewhere: files (`src/price.ts`, `src/price.ts:6`, `price.ts:6-8`), and symbols in code style. Pure. */
import type { Token } from "markdown-it";

type TokenClass = new (type: string, tag: string, nesting: -1 | 0 | 1) => Token;

const LINES = String.raw`(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)`;
const NAME = String.raw`[\p{L}\p{N}_@$+-][\p{L}\p{N}_.@$+-]*`;
/** With a folder and an ending, or with a line. */
const path = String.raw`(?:(?:\.{0,2}/)?(?:${NAME}/)+${NAME}\.[A-Za-z][A-Za-z0-9]{0,9}${LINES}?|${NAME}\.[A-Za-z][A-Za-z0-9]{0,9}${LINES})`;
const inText = new RegExp(String.raw`(?<![\p{L}\p{N}_/.:@-])${path}(?![\p{L}\p{N}_/])`, "gu");
const whole = new RegExp(String.raw`^(?:${path}|(?:${NAME}/)*${NAME}\.[a-z]{1,4}${LINES}?)$`, "u");

const symbol = /^([\p{L}_$][\p{L}\p{N}_$]{2,})(?:\(\))?$/u;

/** The tokens of a line, with a link around each name, which leads nowhere before it has an address; what is a link already stays. */
export function linkWords(tokens: readonly Token[], TokenType: TokenClass): Token[] {
  let depth = 0;
  return tokens.flatMap((token) => {
    depth += token.type === "link_open" ? 1 : token.type === "link_close" ? -1 : 0;
    if (depth > 0) {
      return [token];
    }
    if (token.type === "code_inline") {
      token.meta = { symbol: symbol.exec(token.content)?.[1] };
      return whole.test(token.content) ? linked(token.content, token, TokenType) : [token];
    }
    return token.type === "text" ? inWords(token, TokenType) : [token];
  });
}

function inWords(token: Token, TokenType: TokenClass): Token[] {
  const found = [...token.content.matchAll(inText)];
  if (found.length === 0) {
    return [token];
  }
  const parts: Token[] = [];
  let from = 0;
  for (const { 0: name, index } of found) {
    parts.push(text(token, token.content.slice(from, index), TokenType));
    parts.push(...linked(name, text(token, name, TokenType), TokenType));
    from = index + name.length;
  }
  parts.push(text(token, token.content.slice(from), TokenType));
  return parts.filter(({ type, content }) => type !== "text" || content !== "");
}

function text({ level }: Token, content: string, TokenType: TokenClass): Token {
  const token = new TokenType("text", "", 0);
  return Object.assign(token, { content, level });
}

function linked(name: string, content: Token, TokenType: TokenClass): Token[] {
  const open = new TokenType("link_open", "a", 1);
  open.attrSet("data-file", name);
  return [open, content, new TokenType("link_close", "a", -1)];
}
