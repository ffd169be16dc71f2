import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, hasFailed } from "../src/exit";
import type { Change, Item, ToolItem } from "../src/messages";
import type { PermissionOption, SessionUpdate } from "../src/protocol";
import { Transcript } from "../src/transcript";

const say = (text: string): SessionUpdate => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const think = (text: string): SessionUpdate => ({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
const options: PermissionOption[] = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "always", name: "Always Allow", kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

function transcript(...updates: SessionUpdate[]): Transcript {
  const made = new Transcript();
  updates.forEach((update) => made.apply(update));
  return made;
}

/** The contents of a view after it has drawn the changes. */
function draw(view: Map<number, Item>, changes: readonly Change[]): Item[] {
  for (const change of changes) {
    if (change.op === "put") {
      view.set(change.item.id, change.item);
    } else if (change.op === "remove") {
      view.delete(change.id);
    } else {
      const item = view.get(change.id);
      assert.ok(item !== undefined && "text" in item, "text is appended to what the view has");
      view.set(change.id, { ...item, text: item.text + change.text });
    }
  }
  return [...view.values()];
}

function firstTool(made: Transcript): ToolItem {
  const tool = made.all().find((item) => item.kind === "tool");
  assert.ok(tool);
  return tool;
}

test("deltas become one item a run, and reasoning ends where the answer begins", () => {
  const made = transcript(think("hm "), think("so"), say("An "), say("answer"));
  assert.deepEqual(made.all(), [
    { kind: "thought", id: 1, text: "hm so", done: true },
    { kind: "answer", id: 2, text: "An answer", done: false },
  ]);
});

test("a burst costs the view one append with only the new text", () => {
  const made = transcript(say("start"));
  made.takeChanges();
  for (let index = 0; index < 10_000; index++) {
    made.apply(say("x"));
  }
  assert.deepEqual(made.takeChanges(), [{ op: "append", id: 1, text: "x".repeat(10_000) }]);
  assert.deepEqual(made.takeChanges(), []);
});

test("a view that draws the changes has what a view that starts afresh has", () => {
  let card = 0;
  const made = new Transcript();
  const view = new Map<number, Item>();
  const steps: (() => void)[] = [
    () => made.ask("question", [{ label: "a.ts:1" }]),
    () => made.apply(think("hm")),
    () => made.apply(say("one")),
    () => made.apply(say(" two")),
    () => made.apply({ sessionUpdate: "tool_call", toolCallId: "c", title: "Read a.ts", kind: "read", status: "in_progress" }),
    () => made.apply({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" }),
    () => made.apply({ sessionUpdate: "plan", entries: [{ content: "x", status: "pending" }] }),
    () => made.apply({ sessionUpdate: "plan", entries: [{ content: "x", status: "completed" }] }),
    () => made.closeQuestion(made.openQuestion({ toolCallId: "c" }, options)),
    () => (card = made.fail("broken", ["retry"])),
    () => made.drop(card),
    () => made.apply(say("again")),
    () => made.finish(),
  ];
  for (const every of [1, 2, 5]) {
    steps.forEach((step, index) => {
      step();
      if (index % every === 0) {
        draw(view, made.takeChanges());
      }
    });
  }
  const drawn = draw(view, made.takeChanges());
  assert.deepEqual(drawn, made.all());
});

test("a tool call update changes the fields it has; content replaces", () => {
  const made = transcript(
    {
      sessionUpdate: "tool_call",
      toolCallId: "c",
      title: "Edit a",
      kind: "edit",
      status: "pending",
      content: [{ type: "diff", path: "/a", oldText: "1\n", newText: "2\n" }],
    },
    {
      sessionUpdate: "tool_call_update",
      toolCallId: "c",
      title: null,
      status: "failed",
      content: [{ type: "content", content: { type: "text", text: "refused" } }],
    },
  );
  const { title, status, diffs, output } = firstTool(made);
  assert.deepEqual({ title, status, diffs, output }, { title: "Edit a", status: "failed", diffs: [], output: "refused" });
});

test("the note of a request begins with a capital, a command does not", () => {
  const made = new Transcript();
  const content = (text: string) => [{ type: "content" as const, content: { type: "text" as const, text } }];
  made.openQuestion({ toolCallId: "a", kind: "edit", content: content("nothing has changed yet") }, options);
  made.openQuestion({ toolCallId: "b", kind: "edit", content: content("a.txt is ignored") }, options);
  made.openQuestion({ toolCallId: "c", kind: "execute", content: content("make all") }, options);
  const outputs = made.all().map((item) => item.kind === "tool" && item.output);
  assert.deepEqual(outputs, ["Nothing has changed yet", "a.txt is ignored", "make all"]);
});

test("a question that is no call, such as whether to start a plan, keeps its answer", () => {
  const made = new Transcript();
  const options = [{ optionId: "answer_start", name: "Start", kind: "allow_once" as const }];
  made.closeQuestion(made.openQuestion({ toolCallId: "p", title: "Start the plan?", kind: "think" }, options), "answer_start");
  const [item] = made.all();
  assert.ok(item?.kind === "tool" && item.isAsked);
  assert.deepEqual([item.title, item.output, item.status, item.question], ["Start the plan?", "Start", "completed", undefined]);
});

test("a question stands on its tool call, the refusal first, until it is closed", () => {
  const made = transcript({ sessionUpdate: "tool_call", toolCallId: "c", title: "Edit p\u0430y.ts", kind: "edit" });
  const id = made.openQuestion({ toolCallId: "c" }, options);
  const { question } = firstTool(made);
  assert.deepEqual(
    question?.options.map(({ optionId }) => optionId),
    ["no", "yes", "always"],
  );
  assert.deepEqual(question?.mixed, ["p\u0430y"]);
  made.closeQuestion(id);
  assert.equal(firstTool(made).question, undefined);
});

test("a question about a call that was never announced is shown all the same", () => {
  const made = new Transcript();
  made.openQuestion({ toolCallId: "new", title: "Run ls", kind: "execute" }, options);
  assert.equal(firstTool(made).title, "Run ls");
});

test("an answer to a second attempt is not joined to what the first one left", () => {
  const transcript = new Transcript();
  transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "Half of" } });
  transcript.finish();
  transcript.drop(transcript.fail("The server stopped.", ["retry"]));
  transcript.apply({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "All of it." } });
  assert.deepEqual(
    transcript.all().map((item) => "text" in item && item.text),
    ["Half of", "All of it."],
  );
});

test("nothing stays busy after the turn", () => {
  const made = transcript(say("half"), { sessionUpdate: "tool_call", toolCallId: "c", title: "Run", status: "in_progress" });
  made.finish();
  assert.equal(firstTool(made).status, "failed");
});

test("unknown updates are ignored", () => {
  const made = transcript({ sessionUpdate: "something_new" } as unknown as SessionUpdate);
  assert.equal(made.isEmpty, true);
});

test("a command can be run once more by the person", () => {
  const call = { toolCallId: "c", title: "`make`", kind: "execute", rawInput: { command: "make -j2" } } as const;
  assert.equal(firstTool(transcript({ sessionUpdate: "tool_call", ...call })).command, "make -j2");
  assert.equal(firstTool(transcript({ sessionUpdate: "tool_call", ...call, kind: "edit" })).command, undefined);
  assert.equal(firstTool(transcript({ sessionUpdate: "tool_call", ...call, rawInput: { command: ["make"] } })).command, undefined);
});

test("a command shows how it ended, and only exit code 0 is a success", () => {
  const call = { toolCallId: "c", title: "`make`", kind: "execute" } as const;
  const exit = { code: 2, durationMs: 1240 };
  const made = transcript(
    { sessionUpdate: "tool_call", ...call },
    { sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed", _meta: { "tandem/exit": exit } },
  );
  assert.deepEqual(firstTool(made).exit, exit);
  assert.ok(hasFailed(exit) && !hasFailed({ ...exit, code: 0 }) && hasFailed({ durationMs: 1 }));
  assert.deepEqual(
    [1240, 42_400, 185_000].map((durationMs) => duration({ code: 0, durationMs })),
    ["1.2 s", "42 s", "3 min 5 s"],
  );
  assert.match(made.markdown(), /\(exit code 2, 1\.2 s\)/);
});

test("an undone turn is a notice with the way back, until the next one or the next message", () => {
  const made = transcript(say("Done."));
  made.reverted("Undid “Change it”: a.rs.", "redo");
  made.reverted("Redid “Change it”: a.rs.", "undo");
  const offered = () => made.all().flatMap((item) => (item.kind === "notice" ? [item.remedies] : []));
  assert.deepEqual(offered(), [[], ["undo"]]);
  made.ask("And now?", []);
  assert.deepEqual(offered(), [[], []]);
});

test("a command's files have short names, and its output does not repeat how it ended", () => {
  const made = new Transcript({ next: 1 }, (path) => path.replace("/work/", ""));
  const text = (text: string) => ({ type: "content" as const, content: { type: "text" as const, text } });
  const call = (toolCallId: string, said: string) =>
    made.apply({
      sessionUpdate: "tool_call",
      toolCallId,
      title: "Run",
      content: [{ type: "diff", path: "/work/a.rs", oldText: "a\n", newText: "b\n" }, text(said)],
      _meta: { "tandem/exit": { code: 0, durationMs: 1234 } },
    });
  call("1", "[exit code 0, 1.2 s]\n");
  call("2", "two\n[exit code 1]\n[exit code 0, 1.2 s]\n");
  const shown = made.all().flatMap((item) => (item.kind === "tool" ? [[item.diffs[0]?.path, item.output]] : []));
  assert.deepEqual(shown, [
    ["a.rs", ""],
    ["a.rs", "two\n[exit code 1]"],
  ]);
  assert.equal(made.diffs(1)[0]?.path, "/work/a.rs");
});

test("the card of a background command says how it is, while its server runs", () => {
  const call = {
    toolCallId: "c",
    title: "Run `npm run dev`",
    kind: "execute",
    rawInput: { command: "npm run dev", background: true },
  } as const;
  const made = transcript({ sessionUpdate: "tool_call", ...call });
  const job = { id: 3, command: "npm run dev", state: "running", startedAt: 0, ports: [] } as const;
  assert.deepEqual(firstTool(made).background, {});
  made.setJobs([job]);
  assert.deepEqual(firstTool(made).background, {}, "it may be the one of another call");
  const content = [{ type: "content", content: { type: "text", text: "[job 4]\nready\n" } }] as const;
  made.setJobs([job, { ...job, id: 4, state: "stopped" }]);
  // The command's output doesn't contain its number.
  made.apply({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed", content, _meta: { "tandem/job": 3 } });
  assert.equal(firstTool(made).background?.state, "running");
  made.takeChanges();
  made.setJobs([{ ...job, ports: [5173] }]);
  assert.deepEqual(made.takeChanges(), [], "the card shows no ports");
  made.setJobs([{ ...job, state: "exited", exitCode: 1 }]);
  assert.equal(made.takeChanges().length, 1);
  assert.equal(firstTool(made).background?.exitCode, 1);
  made.forgetJobs();
  assert.deepEqual(firstTool(made).background, {});
  made.setJobs([job]);
  assert.deepEqual(firstTool(made).background, {}, "the ids of another server begin again");
});

test("a question of the model's is shown with the answer", () => {
  const content = [{ type: "content", content: { type: "text", text: "The user answers: EUR\n" } }] as const;
  const call = { toolCallId: "q", title: "Which currency?", kind: "think", status: "completed" } as const;
  const asked = firstTool(transcript({ sessionUpdate: "tool_call", ...call, content, rawInput: { question: "Which currency?" } }));
  assert.deepEqual([asked.isAsked, asked.output], [true, "EUR\n"]);
  assert.equal(firstTool(transcript({ sessionUpdate: "tool_call", ...call, rawInput: { entries: [] } })).isAsked, undefined);
});
