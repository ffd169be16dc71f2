/** The icons of VS Code itself, as inline SVG: the content policy lets no font or image in. */
import add from "@vscode/codicons/src/icons/add.svg";
import arrowDown from "@vscode/codicons/src/icons/arrow-down.svg";
import arrowUp from "@vscode/codicons/src/icons/arrow-up.svg";
import beaker from "@vscode/codicons/src/icons/beaker.svg";
import check from "@vscode/codicons/src/icons/check.svg";
import chevron from "@vscode/codicons/src/icons/chevron-right.svg";
import circle from "@vscode/codicons/src/icons/circle.svg";
import close from "@vscode/codicons/src/icons/close.svg";
import copy from "@vscode/codicons/src/icons/copy.svg";
import diff from "@vscode/codicons/src/icons/diff.svg";
import edit from "@vscode/codicons/src/icons/edit.svg";
import error from "@vscode/codicons/src/icons/error.svg";
import eye from "@vscode/codicons/src/icons/eye.svg";
import eyeClosed from "@vscode/codicons/src/icons/eye-closed.svg";
import file from "@vscode/codicons/src/icons/file.svg";
import folder from "@vscode/codicons/src/icons/folder.svg";
import globe from "@vscode/codicons/src/icons/globe.svg";
import lightbulb from "@vscode/codicons/src/icons/lightbulb.svg";
import loading from "@vscode/codicons/src/icons/loading.svg";
import passed from "@vscode/codicons/src/icons/pass-filled.svg";
import play from "@vscode/codicons/src/icons/play.svg";
import question from "@vscode/codicons/src/icons/question.svg";
import refresh from "@vscode/codicons/src/icons/refresh.svg";
import search from "@vscode/codicons/src/icons/search.svg";
import selection from "@vscode/codicons/src/icons/list-selection.svg";
import send from "@vscode/codicons/src/icons/send.svg";
import stop from "@vscode/codicons/src/icons/debug-stop.svg";
import symbol from "@vscode/codicons/src/icons/symbol-method.svg";
import terminal from "@vscode/codicons/src/icons/terminal.svg";
import tools from "@vscode/codicons/src/icons/tools.svg";
import trash from "@vscode/codicons/src/icons/trash.svg";
import warning from "@vscode/codicons/src/icons/warning.svg";
import tandem from "../media/tandem.svg";
import type { ToolKind } from "../src/protocol";
import { h } from "./dom";

const icons = {
  add,
  arrowDown,
  arrowUp,
  beaker,
  check,
  chevron,
  circle,
  close,
  copy,
  diff,
  edit,
  error,
  eye,
  eyeClosed,
  file,
  folder,
  globe,
  lightbulb,
  loading,
  passed,
  play,
  question,
  refresh,
  search,
  selection,
  send,
  stop,
  symbol,
  tandem,
  terminal,
  tools,
  trash,
  warning,
};
export type IconName = keyof typeof icons;

/** Decoration: the text beside it has the meaning. */
export function icon(name: IconName, className = ""): HTMLElement {
  const element = h("span", { class: `icon ${className}`, "aria-hidden": "true" });
  element.innerHTML = icons[name];
  return element;
}

export const kindIcons: Record<ToolKind, IconName> = {
  read: "file",
  edit: "edit",
  delete: "trash",
  move: "file",
  search: "search",
  execute: "terminal",
  think: "lightbulb",
  fetch: "globe",
  switch_mode: "tools",
  other: "tools",
};
