import assert from "node:assert/strict";
import { test } from "node:test";
import { EventEmitter, Uri, type WebviewView } from "vscode";
import { ChatView } from "../src/chat";
import type { FromView, ToView } from "../src/messages";
import type { Preview } from "../src/preview";
import type { Session } from "../src/session";
import { Transcript } from "../src/transcript";
import type { Message } from "../src/turns";

/** A session that the test speaks for. */
class Conversation {
  transcript = new Transcript();
  state = { phase: "ready" };
  readonly changed = new EventEmitter<void>();
  readonly returned = new EventEmitter<Message>();
  private readonly never = new EventEmitter<never>().event;
  readonly onChange = this.changed.event;
  readonly onReturn = this.returned.event;
  readonly onGrow = this.never;
  readonly onReplace = this.never;
  readonly onQuestion = this.never;
  async open() {}
}

/** A view whose page the test is: what is posted while there is none is lost, as in the editor. */
class Pane {
  visible = true;
  badge: { value: number } | undefined;
  readonly heard: ToView[] = [];
  private readonly received = new EventEmitter<FromView>();
  private readonly visibility = new EventEmitter<void>();
  private readonly disposed = new EventEmitter<void>();
  readonly onDidChangeVisibility = this.visibility.event;
  readonly onDidDispose = this.disposed.event;
  readonly webview = {
    onDidReceiveMessage: this.received.event,
    asWebviewUri: (uri: Uri) => uri,
    postMessage: async (message: ToView) => this.visible && this.heard.push(message),
  };

  /** The page runs, again whenever the view is shown. */
  show() {
    this.visible = true;
    this.visibility.fire();
    this.heard.length = 0;
    return () => this.received.fire({ type: "ready" });
  }

  hide() {
    this.visible = false;
    this.visibility.fire();
  }

  dispose() {
    this.disposed.fire();
  }

  types() {
    return this.heard.map(({ type }) => type);
  }
}

function opened() {
  const session = new Conversation();
  const chat = new ChatView(Uri.file("/extension"), session as unknown as Session, {} as Preview);
  const pane = new Pane();
  chat.resolveWebviewView(pane as unknown as WebviewView);
  pane.show()();
  return { session, chat, pane };
}

test("what comes back while the chat is hidden is in the input when it is shown", () => {
  const { session, chat, pane } = opened();
  pane.hide();
  session.returned.fire({ text: "not sent", attachments: [] });
  const run = pane.show();
  assert.deepEqual(pane.types(), []);
  run();
  assert.deepEqual(pane.types(), ["reset", "restore"]);
  chat.dispose();
});

test("a hidden chat that is asked for has the focus once its page runs", async () => {
  const { chat, pane } = opened();
  pane.hide();
  await chat.focus();
  pane.show()();
  assert.deepEqual(pane.types(), ["reset", "focus"]);
  chat.dispose();
});

test("a question is on the badge, hidden or not", () => {
  const { session, chat, pane } = opened();
  pane.hide();
  session.state = { phase: "waiting" };
  session.changed.fire();
  assert.equal(pane.badge?.value, 1);
  session.state = { phase: "running" };
  session.changed.fire();
  assert.equal(pane.badge, undefined);
  chat.dispose();
});

test("the end of a view that was replaced is not the end of the one that is shown", async () => {
  const { chat, pane: old } = opened();
  const pane = new Pane();
  chat.resolveWebviewView(pane as unknown as WebviewView);
  pane.show()();
  old.dispose();
  await chat.focus();
  assert.deepEqual(pane.types(), ["reset", "focus"]);
  chat.dispose();
});
