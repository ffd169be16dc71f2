/** Output with the colors that a terminal would show, in those of the theme. */
import { visible } from "../src/safe";
import type * as wire from "../src/wire-types";
import { type Child, h } from "./dom";

export function styled(text: string, styles: readonly wire.Styled[] = []): Child[] {
  if (visible(text) !== text) {
    return [visible(text)]; // the places are those of another text
  }
  const parts: Child[] = [];
  let at = 0;
  for (const style of styles) {
    if (style.start >= at && style.end <= text.length) {
      parts.push(text.slice(at, style.start), span(text.slice(style.start, style.end), style));
      at = style.end;
    }
  }
  return [...parts, text.slice(at)];
}

/** The content policy forbids style attributes, but not styles that a script sets. */
function span(text: string, { color, background, font = [] }: wire.Styled): HTMLElement {
  const element = h("span", { class: font.map((name) => `ansi-${name}`).join(" ") }, text);
  if (color != null) {
    // As a terminal does, so that it can be read on the background of the theme.
    element.style.color = background == null ? `color-mix(in srgb, ${value(color)}, var(--vscode-editor-foreground) 40%)` : value(color);
  }
  if (background != null) {
    element.style.backgroundColor = value(background);
  }
  return element;
}

const NAMES = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];

function value(color: string): string {
  const number = Number(color);
  return color.startsWith("#") ? color : `var(--vscode-terminal-ansi${number < 8 ? "" : "Bright"}${NAMES[number % 8]})`;
}
