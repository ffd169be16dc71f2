import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Jobs } from "../src/jobs";
import type { Job } from "../src/protocol";

const job = (id: number, more: Partial<Job> = {}): Job => ({ id, command: "serve", state: "running", startedAt: 0, ports: [], ...more });

/** A server's jobs, and how often a change was reported. */
class Source {
  text = "";
  listed: Job[] = [];
  reports = 0;

  list = async () => this.listed;
  line = "";
  output = async (_id: number, offset: number) => ({ text: this.text.slice(offset), offset: this.text.length, line: this.line });
  changed = () => this.reports++;
}

async function taken(jobs: Jobs, source: Source, listed: Job[]): Promise<void> {
  source.listed = listed;
  jobs.take(listed);
  await setImmediate(); // the source answers synchronously
}

test("output is read on from where it was read to, and the last lines are shown", async () => {
  const source = new Source();
  const jobs = new Jobs(source, source.changed);
  source.text = "one\n";
  await taken(jobs, source, [job(1)]);
  assert.equal(jobs.shown[0]?.output, "one\n");
  source.text += Array.from({ length: 150 }, (_, index) => `line ${index}\n`).join("");
  await taken(jobs, source, [job(1, { ports: [8080] })]);
  assert.equal(jobs.shown[0]?.output.trimEnd().split("\n").at(-1), "line 149");
  assert.equal(jobs.shown[0]?.output.trimEnd().split("\n").length, 99);
  assert.deepEqual(jobs.shown[0]?.ports, [8080]);
  for (source.line of [" 10%", " 20%"]) {
    await taken(jobs, source, [job(1, { ports: [8080] })]);
    assert.equal(jobs.shown[0]?.output.split("\n").at(-1), source.line, "a line that changes is shown as it stands");
  }
  const { reports } = source;
  await taken(jobs, source, [job(1, { ports: [8080] })]);
  assert.equal(source.reports, reports, "what is the same is no news");
  jobs.dispose();
});

test("what has ended is shown until the next message, and what runs after it too", async () => {
  const source = new Source();
  const jobs = new Jobs(source, source.changed);
  await taken(jobs, source, [job(1), job(2, { state: "exited", exitCode: 0 })]);
  assert.deepEqual(
    jobs.shown.map(({ id }) => id),
    [1, 2],
  );
  assert.equal(jobs.running, 1);
  jobs.settle();
  assert.deepEqual(
    jobs.shown.map(({ id }) => id),
    [1],
  );
  await taken(jobs, source, [job(1, { state: "stopped" }), job(2, { state: "exited", exitCode: 0 })]);
  assert.deepEqual(
    jobs.shown.map(({ state }) => state),
    ["stopped"],
  );
  jobs.forget();
  assert.deepEqual(jobs.shown, []);
});
