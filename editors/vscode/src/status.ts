/** The one status bar item: what tandem is doing, in which mode, with which model. A click opens the chat. */
import { type Disposable, MarkdownString, StatusBarAlignment, ThemeColor, window } from "vscode";
import type { Phase } from "./messages";
import { visible } from "./safe";
import type { Session } from "./session";

const looks: Record<Phase, { icon: string; says: string }> = {
  starting: { icon: "$(comment-discussion)", says: "starting" },
  ready: { icon: "$(comment-discussion)", says: "ready" },
  running: { icon: "$(loading~spin)", says: "working" },
  waiting: { icon: "$(question)", says: "waiting for your answer" },
  no_model: { icon: "$(warning)", says: "no model configured" },
  stopped: { icon: "$(error)", says: "not running" },
};

export function showStatus(session: Session): Disposable {
  const item = window.createStatusBarItem("tandem.status", StatusBarAlignment.Right, 100);
  item.name = "tandem";
  item.command = "tandem.openChat";
  const draw = () => {
    const { phase, message, modes, models } = session.state;
    const { icon, says } = looks[phase];
    const details = [says, modes && `mode ${modes.current}`, models && `model ${models.current}`, message].filter(Boolean);
    item.text = `${icon} tandem${modes ? ` ${modes.current}` : ""}`;
    item.tooltip = new MarkdownString().appendText(visible(`tandem: ${details.join(", ")}`));
    item.accessibilityInformation = { label: `tandem, ${details.join(", ")}` };
    item.backgroundColor = phase === "waiting" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  draw();
  item.show();
  const subscription = session.onChange(draw);
  return {
    dispose: () => {
      subscription.dispose();
      item.dispose();
    },
  };
}
