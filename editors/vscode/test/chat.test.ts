import { Draft } from "../src/draft";
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { EventEmitter, Uri, type WebviewView, window, workspace } from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import { ChatView } from "../src/chat";
import { chips, imageAttachment, pictureOf } from "../src/context";
import type { Action, FromView, ToView } from "../src/messages";
import type { Focus } from "../src/focus";
import type { Preview } from "../src/preview";
import type { Renewal } from "../src/renewal";
import type { Review } from "../src/review";
import type { Conversations } from "../src/conversations";
import type { Server } from "../src/server";
import type { SessionEvent } from "../src/session";
import { Transcript } from "../src/transcript";

/** Holds the resources of the chat page. */
const extension = mkdtempSync(join(tmpdir(), "tandem-chat-"));
mkdirSync(join(extension, "dist"));
["chat.css", "webview.js"].forEach((name) => writeFileSync(join(extension, "dist", name), ""));
after(() => rmSync(extension, { recursive: true }));

/** The sessions this test acts as the server for. */
class Stage {
  readonly draft = new Draft();
  remembered: Draft["unsent"];
  readonly remember = () => this.rememberSoon();
  readonly rememberSoon = () => void (this.remembered = this.draft.unsent);
  began = 0;
  current = { transcript: new Transcript(), state: { phase: "ready" }, draft: this.draft, typingBegan: async () => void (this.began += 1) };
  asking = 0;
  get sessions() {
    return [this.current];
  }
  labels = [];
  private readonly happened = new EventEmitter<SessionEvent>();
  readonly onEvent = this.happened.event;
  readonly onElsewhere = new EventEmitter<never>().event;
  readonly onSwitch = new EventEmitter<never>().event;
  fire = (event: SessionEvent) => this.happened.fire(event);
  async start() {}
  shown = async (): Promise<unknown> => this.current;
}

/** A view whose page is this test: messages posted while there is no page are lost, as in the editor. */
class Pane {
  visible = true;
  badge: { value: number } | undefined;
  /** What the input shows. */
  private draft: number | undefined;
  readonly received: ToView[] = [];
  private readonly sent = new EventEmitter<FromView>();
  private readonly visibility = new EventEmitter<void>();
  private readonly disposed = new EventEmitter<void>();
  readonly onDidChangeVisibility = this.visibility.event;
  readonly onDidDispose = this.disposed.event;
  readonly webview = {
    onDidReceiveMessage: this.sent.event,
    asWebviewUri: (uri: Uri) => uri,
    postMessage: async (message: ToView) => {
      this.draft = (message.type === "reset" && message.draft?.number) || this.draft;
      return this.visible && this.received.push(message);
    },
  };

  /** The page loads, which happens whenever the view is shown. */
  show() {
    this.visible = true;
    this.visibility.fire();
    this.received.length = 0;
    return () => this.sent.fire({ type: "ready" });
  }

  hide() {
    this.visible = false;
    this.visibility.fire();
  }

  dispose() {
    this.disposed.fire();
  }

  drawn() {
    this.sent.fire({ type: "drawn" });
  }

  send(text: string) {
    this.does({ type: "send", text, now: false });
  }

  type(text: string) {
    this.does({ type: "draft", text });
  }

  does(message: Action) {
    this.sent.fire({ ...message, draft: this.draft });
  }

  types() {
    return this.received.map(({ type }) => type);
  }
}

function opened() {
  const session = new Stage();
  const chat = new ChatView(
    Uri.file(extension),
    session as unknown as Conversations,
    {} as Preview,
    {} as Review,
    {} as Server,
    {} as Renewal,
    { onChange: new EventEmitter<void>().event, looking: [], attachments: () => [], report: async () => undefined } as unknown as Focus,
  );
  const pane = new Pane();
  chat.resolveWebviewView(pane as unknown as WebviewView);
  pane.show()();
  return { session, chat, pane };
}

test("what comes back while the chat is hidden is in the input when it is shown", () => {
  const { session, chat, pane } = opened();
  pane.hide();
  session.draft.add({ text: "not sent", attachments: [] });
  session.fire({ type: "returned" });
  const run = pane.show();
  assert.deepEqual(pane.types(), []);
  run();
  const [shown] = pane.received;
  assert.equal(shown?.type === "reset" && shown.draft?.text, "not sent");
  chat.dispose();
});

test("a draft that the chat changes is saved", () => {
  const { session, chat, pane } = opened();
  pane.type("a draft");
  session.draft.edit({ text: "an earlier message", attachments: [] }, 1);
  pane.type("an earlier message, changed");
  assert.equal(session.remembered?.text, "a draft\n\nan earlier message, changed");
  pane.does({ type: "cancelEdit" });
  assert.equal(session.remembered?.text, "a draft");
  chat.dispose();
});

test("the server learns of the first character of each prompt, and of no other", () => {
  const { session, chat, pane } = opened();
  pane.show()();
  for (const text of ["h", "hi", "", " ", "a"]) {
    pane.type(text);
  }
  assert.equal(session.began, 2);
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

test("what is sent while earlier sessions are restored belongs to the one that is shown then", async () => {
  const { session, chat, pane } = opened();
  const sent = new Promise<string>((resolve) => {
    const restored = { ...session.current, draft: new Draft(), prompt: async ({ text }: { text: string }) => resolve(text) };
    session.shown = async () => (session.current = restored);
  });
  pane.send("hello");
  assert.equal(await sent, "hello");
  chat.dispose();
});

test("what is typed while a message is being sent is the next one", async () => {
  const { session, chat, pane } = opened();
  const sent = new Promise<string>((resolve) =>
    Object.assign(session.current, { prompt: async ({ text }: { text: string }) => resolve(text) }),
  );
  pane.type("hello");
  pane.send("hello");
  pane.type("and then");
  assert.equal(await sent, "hello");
  assert.equal(session.draft.text, "and then");
  chat.dispose();
});

test("a question is on the badge, hidden or not", () => {
  const { session, chat, pane } = opened();
  pane.hide();
  session.asking = 1;
  session.fire({ type: "changed" });
  assert.equal(pane.badge?.value, 1);
  session.asking = 0;
  session.fire({ type: "changed" });
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

const says = (session: Stage, text: string) => {
  session.current.transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  session.fire({ type: "grew" });
};

test("text waits until the view has drawn what was sent before, and is merged; the state overtakes it", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { session, chat, pane } = opened();
  pane.received.length = 0;
  says(session, "one");
  context.mock.timers.tick(20);
  assert.deepEqual(pane.types(), ["changes"]);
  for (const text of [" two", " three", " four"]) {
    says(session, text);
    context.mock.timers.tick(20);
  }
  session.fire({ type: "changed" });
  context.mock.timers.tick(20);
  assert.deepEqual(pane.types(), ["changes", "state"]);
  pane.drawn();
  assert.equal(pane.received.length, 2, "not at once: every batch is laid out afresh");
  context.mock.timers.tick(20);
  const [last] = pane.received.slice(-1);
  assert.deepEqual(last?.type === "changes" && last.changes, [{ op: "append", id: 1, text: " two three four" }]);
  pane.drawn();
  context.mock.timers.tick(20);
  assert.equal(pane.received.length, 3, "nothing new, nothing sent");
  says(session, " five");
  context.mock.timers.tick(20);
  assert.equal(pane.received.length, 4);
  chat.dispose();
});

test("a view that is shown again is not waited for", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { session, chat, pane } = opened();
  says(session, "one");
  context.mock.timers.tick(20);
  pane.hide();
  pane.show()();
  says(session, " two");
  context.mock.timers.tick(20);
  assert.deepEqual(pane.types(), ["reset", "changes"]);
  chat.dispose();
});

test("an action that fails is reported", async (t) => {
  const { session, chat, pane } = opened();
  const shown = t.mock.method(window, "showErrorMessage", async () => undefined);
  const jobs = { find: () => undefined };
  Object.assign(session.current, { jobs, stopJob: () => Promise.reject(new ResponseError(-32803, "there is no command 7")) });
  pane.does({ type: "job", what: "stop", id: 7 });
  await settled();
  assert.deepEqual(
    shown.mock.calls.map(({ arguments: [text] }) => text as unknown),
    ["tandem: There is no command 7."],
  );
  chat.dispose();
});

test("settings that cannot be saved are reported in the form, which stays open", async (t) => {
  const { chat, pane } = opened();
  const update = () => Promise.reject(new Error("Unable to write into user settings"));
  t.mock.method(workspace, "getConfiguration", () => ({ get: () => undefined, update }) as never);
  pane.received.length = 0;
  const values = { provider: "custom", model: "m", apiKey: "", baseUrl: "http://localhost/v1" };
  pane.does({ type: "setup", what: "save", request: 3, values });
  await settled();
  assert.deepEqual(pane.received, [{ type: "setupChecked", request: 3, findings: [], problem: "Unable to write into user settings." }]);
  chat.dispose();
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("files of the same name are attached side by side, and one of them once", () => {
  const draft = new Draft();
  const file = (path: string) => ({
    label: "index.ts",
    block: { type: "resource_link" as const, uri: `file:///${path}`, name: "index.ts" },
  });
  for (const path of ["a/index.ts", "b/index.ts", "a/index.ts"]) {
    draft.attach(file(path));
  }
  assert.deepEqual(draft.attachments, [file("b/index.ts"), file("a/index.ts")]);
});

test("an image is forgotten once no draft and no message has it", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const draft = new Draft();
  ["kept", "removed"].forEach((label) => draft.attach(imageAttachment(label, "image/png", label)));
  const [kept = -1, removed = -1] = chips(draft.attachments).map(({ image }) => image);
  assert.equal(pictureOf(removed), "data:image/png;base64,removed");
  draft.detach(1);
  await settled();
  collect();
  assert.deepEqual([kept, removed].map(pictureOf), ["data:image/png;base64,kept", ""]);
});
