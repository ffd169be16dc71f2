/** The one status bar item: what tandem is doing, in which mode, with which model. A click opens the chat. */
import { l10n, Disposable, MarkdownString, StatusBarAlignment, ThemeColor, window } from "vscode";
import { counted } from "./hunks";
import type { Phase, Picker } from "./messages";
import type { Review } from "./review";
import { visible } from "./safe";
import type { Conversations } from "./conversations";

const looks: Record<Phase, { icon: string; says: string }> = {
  starting: { icon: "$(comment-discussion)", says: l10n.t("starting") },
  ready: { icon: "$(comment-discussion)", says: l10n.t("ready") },
  running: { icon: "$(loading~spin)", says: l10n.t("working") },
  waiting: { icon: "$(question)", says: l10n.t("waiting for your answer") },
  no_model: { icon: "$(warning)", says: l10n.t("no model configured") },
  stopped: { icon: "$(error)", says: l10n.t("not running") },
};

/** The commands that choose an option of the session, by its id. */
const choosers: Record<string, { command: string; title: string }> = {
  mode: { command: "tandem.setMode", title: l10n.t("Mode") },
  model: { command: "tandem.setModel", title: l10n.t("Model") },
  effort: { command: "tandem.setEffort", title: l10n.t("Reasoning Effort") },
};

export function showStatus(conversations: Conversations, review: Review): Disposable {
  const item = window.createStatusBarItem("tandem.status", StatusBarAlignment.Right, 100);
  item.name = "tandem";
  item.command = "tandem.openChat";
  const draw = () => {
    const { phase, message, pickers } = conversations.current.state;
    const mode = chosen(pickers.find(({ id }) => id === "mode"));
    const { icon, says } = looks[phase];
    const pending = review.count > 0 && l10n.t("{0} to review", counted(review.count));
    const running = conversations.sessions.reduce((sum, { jobs }) => sum + jobs.running, 0);
    const jobs = running > 0 && (running === 1 ? l10n.t("1 background command") : l10n.t("{0} background commands", running));
    const options = pickers.map((picker) => `${picker.name.toLowerCase()} ${chosen(picker)}`);
    const details = [says, ...options, pending, jobs, message].filter(Boolean);
    item.text = `${icon} tandem${mode ? `: ${mode}` : ""}${pending ? ` $(diff) ${review.count}` : ""}${jobs ? ` $(terminal) ${running}` : ""}`;
    item.tooltip = tooltip(visible(`tandem: ${details.join(", ")}`), pickers);
    item.accessibilityInformation = { label: `tandem, ${details.join(", ")}` };
    item.backgroundColor = phase === "waiting" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    item.show(); // only where tandem is used
  };
  return Disposable.from(
    item,
    conversations.onEvent(({ type }) => type === "changed" && draw()),
    conversations.onSwitch(draw),
    conversations.onElsewhere(draw),
    review.onChange(draw),
  );
}

/** The name of the current choice. */
function chosen(picker: Picker | undefined): string {
  return picker?.choices.find(({ value }) => value === picker.current)?.name ?? picker?.current ?? "";
}

/** The words, and below them the options that can be chosen. */
function tooltip(words: string, pickers: readonly Picker[]): MarkdownString {
  const known = pickers.flatMap(({ id }) => choosers[id] ?? []);
  const text = new MarkdownString().appendText(words);
  text.isTrusted = { enabledCommands: known.map(({ command }) => command) };
  const links = known.map(({ command, title }) => `[${title}](command:${command})`);
  return links.length === 0 ? text : text.appendMarkdown(`\n\n${l10n.t("Change:")} ${links.join(" · ")}`);
}
