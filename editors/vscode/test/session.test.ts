import assert from "node:assert/strict";
import { test } from "node:test";
import { EventEmitter } from "vscode";
import { ResponseError, type RequestType } from "vscode-languageclient/node";
import * as protocol from "../src/protocol";
import type { Server } from "../src/server";
import { Session } from "../src/session";

interface Asked {
  readonly params: { readonly sessionId?: string };
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A server that answers when the test does. */
class Stage {
  readonly updated = new EventEmitter<protocol.UpdateParams>();
  readonly status = new EventEmitter<protocol.StatusParams>();
  readonly onUpdate = this.updated.event;
  readonly onStatus = this.status.event;
  readonly onEnd = new EventEmitter<void>().event;
  private readonly asked = new Map<string, Asked>();

  request({ method }: RequestType<unknown, unknown, unknown>, params: Asked["params"]): Promise<unknown> {
    return new Promise((resolve, reject) => this.asked.set(method, { params, resolve, reject }));
  }

  async notify(): Promise<void> {}

  /** The request of this method that was made last, once it was made. */
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

  says(sessionId: string, sessionUpdate: "user_message_chunk" | "agent_message_chunk", text: string): void {
    this.updated.fire({ sessionId, update: { sessionUpdate, content: { type: "text", text } } });
  }
}

/** A conversation in which something was said. */
async function conversation() {
  const stage = new Stage();
  const session = new Session(stage as unknown as Server);
  const turn = session.prompt({ text: "old question", attachments: [] });
  (await stage.take("session/new")).resolve({ sessionId: "old" });
  const prompt = await stage.take("session/prompt");
  stage.says("old", "agent_message_chunk", "old answer");
  prompt.resolve({ stopReason: "end_turn" });
  await turn;
  const texts = () => session.transcript.all().map((item) => ("text" in item ? item.text : item.kind));
  return { stage, session, texts };
}

test("a session that cannot be loaded leaves the one that is shown, which goes on", async () => {
  const { stage, session, texts } = await conversation();
  const loaded = session.load("held");
  (await stage.take("session/load")).reject(new ResponseError(-32603, "it is open in another tandem"));
  await loaded;
  assert.deepEqual(texts(), ["old question", "old answer", "That session was not opened: it is open in another tandem"]);
  assert.equal(stage.hasAsked("session/close"), false);
  void session.prompt({ text: "go on", attachments: [] });
  assert.equal((await stage.take("session/prompt")).params.sessionId, "old");
});

test("a session that is loaded takes the place of the one that is shown, and what is said meanwhile is said to it", async () => {
  const { stage, session, texts } = await conversation();
  const loaded = session.load("kept");
  const load = await stage.take("session/load");
  stage.says("kept", "user_message_chunk", "kept question");
  stage.says("kept", "agent_message_chunk", "kept answer");
  stage.status.fire({ sessionId: "kept", state: "no_model", message: "its model is gone" });
  void session.prompt({ text: "go on", attachments: [] });
  assert.deepEqual(texts(), ["old question", "old answer"]);
  load.resolve({});
  const close = await stage.take("session/close");
  assert.equal(close.params.sessionId, "old");
  close.resolve(null);
  await loaded;
  assert.equal(session.state.message, "its model is gone");
  assert.equal((await stage.take("session/prompt")).params.sessionId, "kept");
  assert.deepEqual(texts(), ["kept question", "kept answer", "go on"]);
});

test("ids of one conversation mean nothing in the next", async () => {
  const { stage, session } = await conversation();
  const before = session.transcript.all().map(({ id }) => id);
  void session.renew();
  (await stage.take("session/close")).resolve(null);
  void session.prompt({ text: "new question", attachments: [] });
  const after = session.transcript.all().map(({ id }) => id);
  assert.equal(Math.min(...after) > Math.max(...before), true);
});

test("what is to be reviewed in a conversation that was left is not shown in the next", async () => {
  const { stage, session } = await conversation();
  const reviewed = session.review({ action: "list" });
  const review = await stage.take("_tandem/review");
  void session.renew();
  await stage.take("session/close");
  review.resolve({ turns: [{ turn: 1, files: [] }] });
  assert.equal(await reviewed, undefined);
});

test("the state of a session that was left is not shown", async () => {
  const { stage, session } = await conversation();
  stage.status.fire({ sessionId: "left", state: "running", message: "retrying in 4 s" });
  assert.equal(session.state.message, "");
  stage.status.fire({ sessionId: "old", state: "running", message: "retrying in 4 s" });
  assert.equal(session.state.message, "retrying in 4 s");
});

test("a message that is taken back before there is a session is not sent", async () => {
  const stage = new Stage();
  const session = new Session(stage as unknown as Server);
  const returned: string[] = [];
  session.onReturn(({ text }) => returned.push(text));
  const first = session.prompt({ text: "first", attachments: [] });
  const opening = await stage.take("session/new");
  const second = session.prompt({ text: "second", attachments: [] });
  await Promise.resolve();
  session.takeBack(0);
  opening.resolve({ sessionId: "new" });
  await second;
  assert.deepEqual(returned, ["second"]);
  (await stage.take("session/prompt")).resolve({ stopReason: "end_turn" });
  await first;
});
