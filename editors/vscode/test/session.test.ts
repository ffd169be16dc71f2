import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CancellationTokenSource, EventEmitter, l10n, workspace } from "vscode";
import { ErrorCodes, ResponseError, type RequestType } from "vscode-languageclient/node";
import * as protocol from "../src/protocol";
import type { Server } from "../src/server";
import { Conversations } from "../src/conversations";
import { translated } from "../src/served";
import { Memory } from "../src/memory";
import { START_ELSEWHERE } from "../src/transcript";

interface Asked {
  readonly params: { readonly sessionId?: string };
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A server that answers when the test tells it to. */
class Stage {
  readonly updated = new EventEmitter<protocol.UpdateParams>();
  readonly status = new EventEmitter<protocol.StatusParams>();
  readonly onUpdate = this.updated.event;
  readonly onStatus = this.status.event;
  readonly turn = new EventEmitter<protocol.Turn>();
  readonly onTurn = this.turn.event;
  readonly onJobs = new EventEmitter<protocol.Jobs>().event;
  readonly ended = new EventEmitter<void>();
  readonly onEnd = this.ended.event;
  private readonly asked = new Map<string, Asked>();

  request({ method }: RequestType<unknown, unknown, unknown>, params: Asked["params"]): Promise<unknown> {
    return new Promise((resolve, reject) => this.asked.set(method, { params, resolve, reject }));
  }

  askPermission: Server["askPermission"] = () => assert.fail("it is replaced");

  readonly notified: string[] = [];
  stops = 0;

  async notify({ method }: { method: string }): Promise<void> {
    this.notified.push(method);
  }

  async stop(): Promise<void> {
    this.stops++;
    this.ended.fire();
  }

  /** The last request of this method, once there is one. */
  async take(method: string): Promise<Asked> {
    for (let tries = 0; tries < 100; tries++) {
      const asked = this.asked.get(method);
      if (asked !== undefined) {
        this.asked.delete(method);
        return asked;
      }
      await Promise.resolve();
    }
    assert.fail(`${method} was not asked`);
  }

  hasAsked(method: string): boolean {
    return this.asked.has(method);
  }

  says(
    sessionId: string,
    sessionUpdate: "user_message_chunk" | "agent_message_chunk",
    text: string,
    turn?: number,
    attached?: readonly protocol.ContentBlock[],
  ): void {
    const _meta = turn === undefined ? null : { "tandem/turn": turn, ...(attached && { "tandem/attached": attached }) };
    this.updated.fire({ sessionId, update: { sessionUpdate, content: { type: "text", text }, _meta } });
  }
}

/** Where windows save which sessions are open, each in its own file. */
const folder = mkdtempSync(join(tmpdir(), "tandem-memory-"));
after(() => rmSync(folder, { recursive: true }));
let windows = 0;

function open(stage: Stage, file = join(folder, `made/${++windows}.json`)) {
  const conversations = new Conversations(stage as unknown as Server, new Memory(file, assert.ifError));
  const texts = () => conversations.current.transcript.all().map((item) => ("text" in item ? item.text : item.kind));
  return { stage, file, conversations, texts };
}

/** A session with messages in it. */
async function conversation() {
  const opened = open(new Stage());
  const { stage, conversations } = opened;
  const turn = (await conversations.shown()).prompt({ text: "old question", attachments: [] });
  (await stage.take("session/new")).resolve({ sessionId: "old" });
  const prompt = await stage.take("session/prompt");
  stage.says("old", "agent_message_chunk", "old answer");
  prompt.resolve({ stopReason: "end_turn" });
  await turn;
  return opened;
}

test("a session that cannot be loaded leaves the one that is shown, which goes on", async () => {
  const { stage, conversations, texts } = await conversation();
  const loaded = conversations.load("held");
  (await stage.take("session/load")).reject(new ResponseError(-32603, "it is open elsewhere"));
  await loaded;
  assert.deepEqual(texts(), ["old question", "old answer", "It is open elsewhere."]);
  assert.equal(stage.hasAsked("session/close"), false);
  void conversations.current.prompt({ text: "go on", attachments: [] });
  assert.equal((await stage.take("session/prompt")).params.sessionId, "old");
});

test("a session that is loaded is shown, and the other one stays open", async () => {
  const { stage, conversations, texts } = await conversation();
  const loaded = conversations.load("saved");
  const load = await stage.take("session/load");
  stage.says("saved", "user_message_chunk", "saved question");
  stage.says("saved", "agent_message_chunk", "saved answer");
  stage.status.fire({ sessionId: "saved", state: "no_model", message: "its model is gone" });
  assert.deepEqual(texts(), ["old question", "old answer"]);
  load.resolve({});
  await loaded;
  assert.deepEqual(texts(), ["saved question", "saved answer"]);
  assert.equal(conversations.current.state.message, "its model is gone");
  assert.equal(stage.hasAsked("session/close"), false);
  assert.deepEqual(
    conversations.labels.map(({ title, isCurrent }) => [title, isCurrent]),
    [
      ["old question", false],
      ["saved question", true],
    ],
  );
  await conversations.select(0);
  assert.deepEqual(texts(), ["old question", "old answer"]);
});

test("a turn that was cut off keeps its title over a reload while it has something to review", async () => {
  const { file, conversations } = await conversation();
  conversations.current.transcript.prompts.set(3, "cut question");
  conversations.setPending(conversations.current, [3]);
  const next = open(new Stage(), file);
  const shown = next.conversations.shown();
  const load = await next.stage.take("session/load");
  next.stage.says("old", "user_message_chunk", "old question", 1);
  next.stage.says("old", "user_message_chunk", "new question", 2);
  load.resolve({});
  const { transcript } = await shown;
  assert.deepEqual(
    [1, 2, 3].map((turn) => transcript.asked(turn)),
    ["old question", "new question", "cut question"],
  );
});

test("what the server calls modes and answers is translated, and a rule is not", (t) => {
  const words: Record<string, string> = { "Always (session)": "Immer (Sitzung)", "run_command(Allow)": "wrong" };
  t.mock.method(l10n, "t", (text: string) => words[text] ?? text);
  assert.equal(translated("Always (session): run_command(Allow)"), "Immer (Sitzung): run_command(Allow)");
});

test("of too many sessions the oldest is closed that has nothing to review", async () => {
  const { stage, conversations } = await conversation();
  conversations.setPending(conversations.current, [1]);
  const ids = [...Array(8).keys()].map((number) => `saved ${number}`);
  for (const id of ids) {
    const loaded = conversations.load(id);
    const load = await stage.take("session/load");
    stage.says(id, "user_message_chunk", id);
    load.resolve({});
    await loaded;
  }
  const open = conversations.labels.map(({ title }) => title);
  assert.deepEqual(open, ["old question", ...ids.slice(1)]);
});

test("messages of a saved session can be edited, and name their turns", async () => {
  const { stage, conversations } = await conversation();
  const loaded = conversations.load("saved");
  const load = await stage.take("session/load");
  stage.says("saved", "user_message_chunk", "one", 1);
  stage.says("saved", "user_message_chunk", "and more, during it");
  stage.says("saved", "user_message_chunk", "two", 2);
  load.resolve({});
  await loaded;
  const { current } = conversations;
  assert.deepEqual(
    current.transcript.all().map(({ id }) => current.sent(id)),
    [{ turn: 1, message: { text: "one", attachments: [] } }, undefined, { turn: 2, message: { text: "two", attachments: [] } }],
  );
  assert.deepEqual(
    [1, 2, 3].map((turn) => current.transcript.asked(turn)),
    ["one", "two", "two"],
    "tried again, a message has another turn",
  );
});

test("messages of a saved session have what was sent along", async () => {
  const { stage, conversations } = await conversation();
  const loaded = conversations.load("saved");
  const load = await stage.take("session/load");
  const blocks: protocol.ContentBlock[] = [
    { type: "resource", resource: { uri: "file:///w/src/my%20price.ts#L2-L3", mimeType: "text/plain", text: "x" } },
    { type: "resource_link", uri: "file:///w/a.md", name: "a.md" },
    { type: "image", mimeType: "image/png", data: "AAAA" },
  ];
  stage.says("saved", "user_message_chunk", "look", 1, blocks);
  load.resolve({});
  await loaded;
  const [item] = conversations.current.transcript.all();
  assert.ok(item?.kind === "user");
  assert.deepEqual(
    item.context.map(({ label }) => label),
    ["my price.ts:2-3", "a.md", "image"],
  );
  assert.deepEqual(
    conversations.current.sent(item.id)?.message.attachments.map(({ block }) => block),
    blocks,
  );
});

test("a kept edit in place is a message of the conversation, with its lines and its turn", async () => {
  const { stage, conversations, texts } = await conversation();
  const events: string[] = [];
  conversations.onEvent(({ type }) => events.push(type));
  const message = { text: "shorter", attachments: [{ label: "a.ts:1-2", block: { type: "text", text: "" } as const }] };
  const edit = { textDocument: { uri: "file:///w/a.ts" }, before: "a", after: "b" };
  const kept = conversations.current.keepEdit(message, edit);
  const request = await stage.take("_tandem/inline/keep");
  assert.deepEqual(request.params, { sessionId: "old", instruction: "shorter", ...edit });
  stage.says("old", "user_message_chunk", "another client's"); // belongs to no turn
  stage.says("old", "user_message_chunk", "shorter", 2);
  stage.says("old", "agent_message_chunk", "Edited in place.");
  request.resolve({ turn: 2 });
  await kept;
  assert.deepEqual(texts(), ["old question", "old answer", "shorter", "Edited in place."]);
  const item = conversations.current.transcript.all().find((one) => one.kind === "user" && one.text === "shorter");
  assert.ok(item?.kind === "user");
  assert.deepEqual([item.context, item.turn], [[{ label: "a.ts:1-2" }], 2]);
  assert.equal(conversations.current.sent(item.id)?.message, message);
  assert.ok(events.includes("takenUp"), "what can be reviewed is looked up again");

  const refused = conversations.current.keepEdit(message, edit);
  (await stage.take("_tandem/inline/keep")).reject(new ResponseError(-32803, "it is outside"));
  await assert.rejects(refused, /outside/);
  stage.says("old", "user_message_chunk", "shorter", 3);
  assert.equal(texts().length, 4, "nothing is shown of it");
});

test("what waited when the server ended comes back to the input of its conversation once that is shown", async () => {
  const { stage, conversations } = await conversation();
  const loaded = conversations.load("saved");
  const load = await stage.take("session/load");
  load.resolve({});
  stage.turn.fire({ sessionId: "saved", promptId: "p", state: "returned", prompt: [{ type: "text", text: "And the tests?" }] });
  assert.equal(conversations.current.draft.text, "", "another conversation is shown");
  await loaded;
  assert.equal(conversations.current.draft.text, "And the tests?");
  await conversations.select(0);
  assert.equal(conversations.current.draft.text, "");
  await conversations.select(1);
  assert.equal(conversations.current.draft.text, "And the tests?", "once");
});

test("a conversation that runs goes on while another is shown, and its state is seen", async () => {
  const { stage, conversations } = await conversation();
  void conversations.current.prompt({ text: "work", attachments: [] });
  const work = await stage.take("session/prompt");
  const begun = conversations.renew();
  (await stage.take("session/new")).resolve({ sessionId: "second" });
  await begun;
  const states = () => conversations.labels.map(({ state }) => state);
  assert.deepEqual(states(), ["running", "idle"]);
  stage.says("old", "agent_message_chunk", "at work");
  assert.deepEqual(conversations.current.transcript.all(), [], "it is not shown in the other one");
  work.resolve({ stopReason: "end_turn" });
  await settled();
  assert.deepEqual(states(), ["done", "idle"]);
  await conversations.select(0);
  assert.deepEqual(states(), ["idle"], "seen; the empty one is gone");
});

test("what was open is open again after the window was loaded, the rest when it is asked for", async () => {
  const { stage, file, conversations } = await conversation();
  const begun = conversations.renew();
  (await stage.take("session/new")).resolve({ sessionId: "second" });
  await begun;
  void conversations.current.prompt({ text: "second question", attachments: [] });
  (await stage.take("session/prompt")).resolve({ stopReason: "end_turn" });
  await settled();
  conversations.dispose();

  const again = open(new Stage(), file);
  const started = again.conversations.start();
  const load = await again.stage.take("session/load");
  assert.equal(load.params.sessionId, "second");
  again.stage.says("second", "user_message_chunk", "second question");
  load.resolve({});
  await started;
  assert.deepEqual(again.texts(), ["second question"]);
  assert.deepEqual(
    again.conversations.labels.map(({ title }) => title),
    ["old question", "second question"],
  );
  void again.conversations.select(0);
  assert.equal((await again.stage.take("session/load")).params.sessionId, "old");
});

test("a message that is being edited, and the draft it took the place of, are in the input after a reload", async () => {
  const { file, conversations } = await conversation();
  const { draft } = conversations.current;
  draft.text = "a draft";
  draft.edit({ text: "old question", attachments: [] }, 1);
  draft.text = "old question, in short";
  conversations.remember();
  conversations.dispose();
  const again = open(new Stage(), file);
  const started = again.conversations.start();
  (await again.stage.take("session/load")).resolve({});
  await started;
  assert.equal(again.conversations.current.draft.text, "a draft\n\nold question, in short");
});

test("a message that comes back to another conversation is in its input after a reload", async () => {
  const { stage, file, conversations } = await conversation();
  const loaded = conversations.load("saved");
  const load = await stage.take("session/load");
  stage.says("saved", "user_message_chunk", "saved question");
  load.resolve({});
  await loaded;
  stage.turn.fire({ sessionId: "old", promptId: "p", state: "returned", prompt: [{ type: "text", text: "And the tests?" }] });
  conversations.dispose();
  const again = open(new Stage(), file);
  const started = again.conversations.start();
  (await again.stage.take("session/load")).resolve({});
  await started;
  const selected = again.conversations.select(0);
  (await again.stage.take("session/load")).resolve({});
  await selected;
  assert.equal(again.conversations.current.draft.text, "And the tests?");
});

test("a message that came back before a reload comes back once, though the next server knows of it, too", async () => {
  const { stage, file, conversations } = await conversation();
  const { current } = conversations;
  void current.prompt({ text: "one", attachments: [] });
  const first = await stage.take("session/prompt");
  void current.prompt({ text: "two", attachments: [] });
  const second = await stage.take("session/prompt");
  [first, second].forEach(({ reject }) => reject(new ResponseError(ErrorCodes.PendingResponseRejected, "killed")));
  await settled();
  conversations.dispose();
  const again = open(new Stage(), file);
  const started = again.conversations.start();
  const load = await again.stage.take("session/load");
  again.stage.turn.fire({ sessionId: "old", promptId: "p", state: "returned", prompt: [{ type: "text", text: "two" }] });
  again.stage.turn.fire({ sessionId: "old", promptId: "q", state: "returned", prompt: [{ type: "text", text: "tw" }] });
  load.resolve({});
  await started;
  assert.equal(again.conversations.current.draft.text, "two\n\ntw");
});

test("a session that another window holds gives way to a new one after a reload, and stays open for that window", async () => {
  const { file, conversations } = await conversation();
  conversations.dispose();
  const again = open(new Stage(), file);
  const started = again.conversations.start();
  (await again.stage.take("session/load")).reject(new ResponseError(-32603, "it is open elsewhere"));
  (await again.stage.take("session/new")).resolve({ sessionId: "new" });
  await started;
  assert.equal(again.conversations.current.state.phase, "ready");
  again.conversations.dispose();
  const titles = open(new Stage(), file).conversations;
  void titles.start();
  assert.deepEqual(
    titles.labels.map(({ title }) => title),
    ["old question", ""],
  );
});

test("a memory that was damaged is empty, and one that cannot be written says so", () => {
  const file = join(folder, "damaged.json");
  writeFileSync(file, '{"open": [');
  const damaged = new Memory(file, assert.ifError);
  assert.equal(damaged.get("open", "none"), "none");
  damaged.update("open", "one");
  assert.equal(new Memory(file, assert.ifError).get("open", "none"), "one");
  const failures: unknown[] = [];
  new Memory(join(file, "below.json"), (error) => failures.push(error)).update("open", "one");
  assert.match(String(failures[0]), /ENOTDIR|EEXIST/);
});

test("Try Again belongs to the turn that failed, and is gone when another began", async () => {
  const { stage, conversations } = await conversation();
  const { current } = conversations;
  const fails = async (text: string) => {
    const turn = current.prompt({ text, attachments: [] });
    (await stage.take("session/prompt")).reject(new ResponseError(-32000, "the key was refused", { code: "auth" }));
    await turn;
    const card = current.transcript.all().at(-1);
    assert.ok(card?.kind === "error" && card.remedies.includes("retry"));
    return card.id;
  };
  const first = await fails("one");
  const second = current.prompt({ text: "delete the old branch", attachments: [] });
  (await stage.take("session/prompt")).resolve({ stopReason: "end_turn" });
  await second;
  const card = current.transcript.all().find(({ id }) => id === first);
  assert.deepEqual(card?.kind === "error" && card.remedies, [], "its buttons are stale");
  await current.remedy(first, "retry");
  assert.equal(stage.hasAsked("session/prompt"), false, "a late click does nothing");
  const third = await fails("three");
  void current.remedy(third, "retry");
  const again = await stage.take("session/prompt");
  assert.match(JSON.stringify(again.params), /"three"/);
  assert.equal(current.transcript.all().filter((item) => item.kind === "user" && item.text === "three").length, 1);
});

test("an answer that was cut off has one button, which goes on with it", async () => {
  const { stage, conversations } = await conversation();
  const { current } = conversations;
  const turn = current.prompt({ text: "a long story", attachments: [] });
  (await stage.take("session/prompt")).resolve({ stopReason: "max_tokens" });
  await turn;
  const cut = current.transcript.all().at(-1);
  assert.ok(cut?.kind === "notice");
  assert.deepEqual(cut.remedies, ["continue"]);
  void current.remedy(cut.id, "continue");
  assert.match(JSON.stringify((await stage.take("session/prompt")).params), /Continue\./);
});

test("cards that ask for a setup are settled by one that works", async () => {
  const { stage, conversations } = await conversation();
  const { current } = conversations;
  const turn = current.prompt({ text: "hello", attachments: [] });
  (await stage.take("session/prompt")).reject(new ResponseError(-32000, "no model is configured", { code: "no_model" }));
  await turn;
  const reopened = async (configOptions: readonly unknown[]) => {
    stage.ended.fire();
    const done = current.reopen(true);
    (await stage.take("session/resume")).resolve({ configOptions });
    await done;
    return current.transcript.all().at(-1);
  };
  assert.equal((await reopened([]))?.kind, "error", "the server works, but has no model");
  const card = await reopened([{ id: "model", type: "select", name: "Model", currentValue: "a/b", options: [] }]);
  assert.deepEqual(card?.kind === "notice" && card.remedies, ["retry"], "the error is gone, and the prompt can be sent");
});

test("other settings begin another session, which is said where the model had answered something", async () => {
  const { stage, conversations, texts } = open(new Stage());
  const { current } = conversations;
  const turn = current.prompt({ text: "hello", attachments: [] });
  (await stage.take("session/new")).resolve({ sessionId: "first" });
  (await stage.take("session/prompt")).reject(new ResponseError(-32000, "no model is configured", { code: "no_model" }));
  await turn;
  const change = async (sessionId: string) => {
    stage.ended.fire();
    const reopened = current.reopen(false);
    (await stage.take("session/new")).resolve({ sessionId });
    await reopened;
  };
  await change("second");
  assert.equal(texts().length, 2, "the prompt and its error");
  const again = current.prompt({ text: "hello again", attachments: [] });
  const prompt = await stage.take("session/prompt");
  stage.says("second", "agent_message_chunk", "Hello!");
  prompt.resolve({ stopReason: "end_turn" });
  await again;
  await change("third");
  assert.match(texts().at(-1) ?? "", /^Settings changed/);
});

test("ids of one conversation mean nothing in the next", async () => {
  const { stage, conversations } = await conversation();
  const before = conversations.current.transcript.all().map(({ id }) => id);
  void conversations.renew();
  (await stage.take("session/new")).resolve({ sessionId: "new" });
  void conversations.current.prompt({ text: "new question", attachments: [] });
  const after = conversations.current.transcript.all().map(({ id }) => id);
  assert.equal(Math.min(...after) > Math.max(...before), true);
});

test("what the server says stays in the chat, and the next try of a request takes the place of the one before", async () => {
  const { stage, conversations } = await conversation();
  const notices = () => conversations.current.transcript.all().flatMap((item) => (item.kind === "notice" ? [item.text] : []));
  const said = (sessionId: string, message: string, passing = false) =>
    stage.status.fire({ sessionId, state: "running", message, passing });
  said("left", "the session was shortened from about 9 to 4 tokens");
  assert.deepEqual(notices(), []);
  said("old", "the session was shortened from about 9 to 4 tokens");
  said("old", "HTTP 500; retrying after 1 s", true);
  said("old", "HTTP 500; retrying after 2 s", true);
  stage.status.fire({ sessionId: "old", state: "waiting", message: "wants to edit" });
  stage.status.fire({ sessionId: "old", state: "ready" });
  assert.deepEqual(notices(), ["The session was shortened from about 9 to 4 tokens.", "HTTP 500; retrying after 2 s."]);
  assert.equal(conversations.current.state.message, "");
});

test("the cost of the latest turn is that since it began", async () => {
  const { stage, conversations } = await conversation();
  const costs = () => conversations.current.state.usage;
  stage.status.fire({ sessionId: "old", state: "ready", usage: { used: 10, size: null, cost: 0.5 } });
  void conversations.current.prompt({ text: "more", attachments: [] });
  await stage.take("session/prompt");
  stage.status.fire({ sessionId: "old", state: "ready", usage: { used: 20, size: null, cost: 0.75 } });
  assert.deepEqual(costs(), { used: 20, size: null, cost: 0.75, turnCost: 0.25 });
});

test("a restart stops the running turn first, and gives back what waits", async () => {
  const { stage, conversations, texts } = await conversation();
  const { current } = conversations;
  void current.prompt({ text: "one", attachments: [] });
  const first = await stage.take("session/prompt");
  void current.prompt({ text: "two", attachments: [] });
  const second = await stage.take("session/prompt");
  const restarted = conversations.restart();
  await settled();
  assert.deepEqual(stage.notified, ["session/cancel"]);
  first.resolve({ stopReason: "cancelled" });
  second.resolve({ stopReason: "cancelled" });
  await settled();
  assert.equal(stage.stops, 1);
  (await stage.take("session/resume")).resolve({});
  await restarted;
  assert.deepEqual(texts().slice(2), ["one", "Stopped."]);
  assert.equal(current.draft.text, "two");
});

test("a server that does not stop its turns is restarted all the same", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { stage, conversations } = await conversation();
  void conversations.current.prompt({ text: "one", attachments: [] });
  await stage.take("session/prompt");
  void conversations.restart();
  await settled();
  assert.equal(stage.stops, 0);
  t.mock.timers.tick(2000);
  await settled();
  assert.equal(stage.stops, 1);
});

test("one notice says why all that waited was not sent", async () => {
  const { stage, conversations, texts } = await conversation();
  const { current } = conversations;
  const sent: Asked[] = [];
  for (const text of ["one", "two", "three"]) {
    void current.prompt({ text, attachments: [] });
    sent.push(await stage.take("session/prompt"));
  }
  sent.forEach(({ reject }) => reject(new ResponseError(ErrorCodes.PendingResponseRejected, "killed")));
  await settled();
  const why = "The tandem server stopped before it answered. Try again to restart it; the log shows why it stopped.";
  assert.deepEqual(texts().slice(2), ["one", why, `Not sent; moved back to the input: ${why}`]);
  assert.equal(current.draft.text, "two\n\nthree");
});

test("a message that is withdrawn before there is a session is not sent", async () => {
  const { stage, conversations } = open(new Stage());
  const { current } = conversations;
  const first = current.prompt({ text: "first", attachments: [] });
  const opening = await stage.take("session/new");
  const second = current.prompt({ text: "second", attachments: [] });
  await Promise.resolve();
  current.turns.returnToInput(0);
  opening.resolve({ sessionId: "new" });
  await second;
  assert.equal(current.draft.text, "second");
  (await stage.take("session/prompt")).resolve({ stopReason: "end_turn" });
  await first;
});

/** The plan of the conversation is to be started in a new one. */
async function startElsewhere({ stage, conversations }: Awaited<ReturnType<typeof conversation>>) {
  const toolCall = { toolCallId: "plan", title: "Start?", locations: [{ path: "/plans/a.md" }] };
  const options = [{ optionId: START_ELSEWHERE, name: "Start in a New Session", kind: "allow_once" as const }];
  const { questions } = conversations.current;
  const answer = stage.askPermission({ sessionId: "old", toolCall, options }, new CancellationTokenSource().token);
  questions.answer(questions.ids[0] ?? 0, START_ELSEWHERE);
  await answer;
  await settled();
}

test("a plan starts in its new session, whichever is shown meanwhile", async () => {
  const opened = await conversation();
  const { stage, conversations } = opened;
  await startElsewhere(opened);
  const begun = await stage.take("session/new");
  await conversations.select(0);
  begun.resolve({ sessionId: "second" });
  const { params } = await stage.take("session/prompt");
  assert.equal(params.sessionId, "second");
  assert.match(JSON.stringify(params), /Carry out this plan:\\n\\ntext of \/plans\/a\.md/);
  assert.deepEqual(
    conversations.labels.map(({ isCurrent, state }) => [isCurrent, state]),
    [
      [true, "idle"],
      [false, "running"],
    ],
  );
});

test("a plan that cannot be read is reported in the session that has it", async (t) => {
  const opened = await conversation();
  t.mock.method(workspace, "openTextDocument", () => Promise.reject(new Error("cannot open /plans/a.md")));
  await startElsewhere(opened);
  assert.equal(opened.texts().at(-1), "Cannot open /plans/a.md.");
  assert.equal(opened.stage.hasAsked("session/new"), false);
});

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
