import assert from "node:assert/strict";
import { test } from "node:test";
import type { StopReason, Turn } from "../src/protocol";
import { type Listener, type Message, Turns, type Wire } from "../src/turns";

/** A server whose answers the test provides, and all messages it was sent. */
class Stage implements Wire, Listener {
  readonly told: string[] = [];
  readonly turns = new Turns(this, this);
  private readonly prompts = new Map<string, { resolve: (reason: StopReason) => void; reject: (error: Error) => void }>();
  private readonly steers = new Map<string, { resolve: (taken: boolean) => void; reject: (error: Error) => void }>();
  private readonly ids = new Map<string, string>();

  prompt({ text }: Message, id: string, signal: AbortSignal): Promise<StopReason> {
    this.ids.set(text, id);
    signal.addEventListener("abort", () => this.told.push(`take out ${text}`));
    return new Promise((resolve, reject) => this.prompts.set(text, { resolve, reject }));
  }

  steer({ text }: Message, id: string, signal: AbortSignal): Promise<boolean> {
    this.ids.set(text, id);
    signal.addEventListener("abort", () => this.told.push(`take out ${text}`));
    return new Promise((resolve, reject) => this.steers.set(text, { resolve, reject }));
  }

  async cancel(): Promise<void> {
    this.told.push("cancel");
  }

  began({ text }: Message): void {
    this.told.push(`began ${text}`);
  }

  joined({ text }: Message): void {
    this.told.push(`joined ${text}`);
  }

  ended({ text }: Message, outcome: object): void {
    this.told.push(`ended ${text}: ${"stopReason" in outcome ? outcome.stopReason : "failed"}`);
  }

  returned({ text }: Message, error?: Error): void {
    this.told.push(`returned ${text}${error === undefined ? "" : `: ${error.message}`}`);
  }

  changed(): void {}

  say(text: string, attachments: Message["attachments"] = []): void {
    void this.turns.prompt({ text, attachments });
  }

  now(text: string): void {
    void this.turns.steer({ text, attachments: [] });
  }

  async answer(text: string, reason: StopReason | Error): Promise<void> {
    const prompt = this.prompts.get(text);
    assert.ok(prompt, `${text} was sent`);
    reason instanceof Error ? prompt.reject(reason) : prompt.resolve(reason);
    await settled();
  }

  async take(text: string, taken: boolean): Promise<void> {
    this.steers.get(text)?.resolve(taken);
    await settled();
  }

  async refuse(text: string, error: Error): Promise<void> {
    this.steers.get(text)?.reject(error);
    await settled();
  }

  /** The server reports the outcome of the last message with this text. */
  receives(text: string, state: Turn["state"], prompt?: Turn["prompt"]): void {
    const promptId = this.ids.get(text);
    assert.ok(promptId, `${text} was sent`);
    this.turns.receive({ promptId, state, ...(prompt && { prompt }) });
  }

  get waiting(): string[] {
    return this.turns.waiting.map(({ message, joins }) => `${message.text}${joins ? " (joins)" : ""}`);
  }
}

/** Everything that follows a promise has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a message begins when the server says that it runs", async () => {
  const stage = new Stage();
  const selection = { label: "a.rs:1", block: { type: "text", text: "let a;" } } as const;
  stage.say("one", [selection]);
  stage.say("two", [selection]);
  stage.say("three");
  assert.deepEqual(stage.waiting, ["two", "three"]);
  await stage.answer("one", "end_turn");
  assert.deepEqual(stage.waiting, ["two", "three"]);
  stage.receives("two", "running");
  assert.deepEqual(stage.waiting, ["three"]);
  stage.receives("two", "ended");
  await stage.answer("two", "end_turn");
  stage.receives("three", "running");
  await stage.answer("three", "max_tokens");
  assert.deepEqual(stage.told, [
    "began one",
    "ended one: end_turn",
    "began two",
    "ended two: end_turn",
    "began three",
    "ended three: max_tokens",
  ]);
  assert.equal(stage.turns.isRunning, false);
});

test("a message that waited when the server before ended is given back with its attachments", () => {
  const stage = new Stage();
  const returned: Message[] = [];
  stage.returned = (message) => void returned.push(message);
  const link = { type: "resource_link", uri: "file:///work/a.rs", name: "a.rs" } as const;
  stage.turns.receive({ promptId: "of another life", state: "returned", prompt: [{ type: "text", text: "And the tests?" }, link] });
  stage.turns.receive({ promptId: "another", state: "ended" });
  assert.deepEqual(returned, [{ text: "And the tests?", attachments: [{ label: "a.rs", block: link }] }]);
});

test("a message that waited when the server was killed is given back once", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  stage.now("now");
  await stage.answer("one", new Error("killed"));
  await stage.answer("two", new Error("killed"));
  await stage.refuse("now", new Error("killed"));
  ["two", "now"].forEach((text) => stage.receives(text, "returned", [{ type: "text", text }])); // by the next server
  assert.deepEqual(stage.told, ["began one", "ended one: failed", "returned two: killed", "returned now: killed"]);
});

test("stopping gives back what has not begun, in its order", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  stage.now("now");
  stage.say("three");
  await stage.turns.stop();
  await stage.answer("one", "cancelled");
  await stage.take("now", false);
  await stage.answer("two", "cancelled");
  await stage.answer("three", "cancelled");
  assert.deepEqual(stage.told, ["began one", "cancel", "ended one: cancelled", "returned now", "returned two", "returned three"]);
  assert.equal(stage.turns.isRunning, false);
});

test("a message joins the turn where the server says so", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.now("this");
  stage.now("that");
  assert.deepEqual(stage.waiting, ["this (joins)", "that (joins)"]);
  stage.receives("this", "joined");
  await stage.take("this", true);
  stage.receives("that", "joined");
  await stage.take("that", true);
  await stage.answer("one", "end_turn");
  assert.deepEqual(stage.told, ["began one", "joined this", "joined that", "ended one: end_turn"]);
  assert.deepEqual(stage.waiting, []);
});

test("messages with the same text are distinguished", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.receives("one", "running");
  stage.say("two");
  stage.now("two");
  stage.receives("two", "joined");
  assert.deepEqual(stage.waiting, ["two"]);
  await stage.take("two", true);
  stage.turns.receive({ promptId: "of another client", state: "running" });
  await stage.answer("one", "end_turn");
  assert.deepEqual(stage.told, ["began one", "joined two", "ended one: end_turn"]);
  assert.deepEqual(stage.waiting, ["two"]);
});

test("a message that fails before it runs has begun and ended", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  await stage.answer("one", "end_turn");
  stage.receives("two", "ended");
  await stage.answer("two", new Error("no model"));
  assert.deepEqual(stage.told, ["began one", "ended one: end_turn", "began two", "ended two: failed"]);
});

test("a message that was to join is withdrawn", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.now("now");
  stage.turns.returnToInput(0);
  stage.receives("now", "returned");
  await stage.take("now", false);
  assert.deepEqual(stage.told, ["began one", "take out now", "returned now"]);
  assert.equal(stage.turns.isRunning, true);
});

test("a message that is withdrawn too late begins all the same", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  stage.turns.returnToInput(0);
  await stage.answer("one", "end_turn");
  assert.deepEqual(stage.waiting, ["two"]);
  stage.receives("two", "running");
  await stage.answer("two", "cancelled");
  assert.deepEqual(stage.told, ["began one", "take out two", "ended one: end_turn", "began two", "ended two: cancelled"]);
});

test("what no turn takes is a turn of its own", async () => {
  const stage = new Stage();
  stage.now("alone");
  stage.now("late");
  await stage.answer("alone", "end_turn");
  await stage.take("late", false);
  await stage.answer("late", "end_turn");
  assert.deepEqual(stage.told, ["began alone", "ended alone: end_turn", "began late", "ended late: end_turn"]);
});

test("a message that is withdrawn or refused is returned, the turn goes on", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  stage.say("three");
  stage.turns.returnToInput(0);
  await stage.answer("two", "cancelled");
  await stage.answer("three", new Error("8 wait already"));
  assert.deepEqual(stage.told, ["began one", "take out two", "returned two", "returned three: 8 wait already"]);
  assert.equal(stage.turns.isRunning, true);
});

test("a turn that fails ends, and the next one begins", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  await stage.answer("one", new Error("401"));
  stage.receives("two", "running");
  assert.deepEqual(stage.told, ["began one", "ended one: failed", "began two"]);
});

test("an abandoned conversation gives back what has not begun, and is silent from then on", async () => {
  const stage = new Stage();
  stage.say("one");
  stage.say("two");
  stage.turns.abandon();
  await stage.answer("one", "cancelled");
  await stage.answer("two", "cancelled");
  assert.deepEqual(stage.told, ["began one", "returned two"]);
});
