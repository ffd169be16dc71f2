/** The one status bar item: what tandem is doing, in which mode, with which model. A click opens the chat. */
import { type Disposable, MarkdownString, StatusBarAlignment, ThemeColor, window } from "vscode";
import { counted } from "./hunks";
import type { Phase } from "./messages";
import type { Review } from "./review";
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

export function showStatus(session: Session, review: Review): Disposable {
  const item = window.createStatusBarItem("tandem.status", StatusBarAlignment.Right, 100);
  item.name = "tandem";
  item.command = "tandem.openChat";
  const draw = () => {
    const { phase, message, modes, models } = session.state;
    const { icon, says } = looks[phase];
    const pending = review.count > 0 && `${counted(review.count)} to review`;
    const details = [says, modes && `mode ${modes.current}`, models && `model ${models.current}`, pending, message].filter(Boolean);
    item.text = `${icon} tandem${modes ? ` ${modes.current}` : ""}${pending ? ` $(diff) ${review.count}` : ""}`;
    item.tooltip = new MarkdownString().appendText(visible(`tandem: ${details.join(", ")}`));
    item.accessibilityInformation = { label: `tandem, ${details.join(", ")}` };
    item.backgroundColor = phase === "waiting" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  draw();
  item.show();
  const subscriptions = [session.onChange(draw), review.onChange(draw)];
  return {
    dispose: () => {
      subscriptions.forEach((subscription) => void subscription.dispose());
      item.dispose();
    },
  };
}
