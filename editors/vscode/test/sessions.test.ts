import assert from "node:assert/strict";
import { test } from "node:test";
import { EventEmitter, type QuickPickItem, type QuickPickItemButtonEvent, window } from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import type { ChatView } from "../src/chat";
import type { Conversations } from "../src/conversations";
import { openSession } from "../src/sessions";

test("a session that cannot be deleted is reported", async (t) => {
  const triggered = new EventEmitter<QuickPickItemButtonEvent<QuickPickItem>>();
  const never = new EventEmitter<never>().event;
  const list = { items: [], show: () => {}, onDidTriggerItemButton: triggered.event, onDidHide: never, onDidAccept: never };
  t.mock.method(window, "createQuickPick", () => list as never);
  t.mock.method(window, "showWarningMessage", (async () => "Delete") as never);
  const reported = t.mock.method(window, "showErrorMessage", async () => undefined);
  const conversations = {
    current: {},
    start: async () => {},
    saved: async () => [{ sessionId: "s", title: "Prices" }],
    delete: () => Promise.reject(new ResponseError(-32603, "it is open elsewhere")),
  };
  await openSession(conversations as unknown as Conversations, {} as ChatView);
  const [item] = list.items as QuickPickItem[];
  assert.ok(item?.buttons?.[1]);
  triggered.fire({ item, button: item.buttons[1] });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(reported.mock.calls[0]?.arguments as unknown, ["tandem: It is open elsewhere."]);
});
