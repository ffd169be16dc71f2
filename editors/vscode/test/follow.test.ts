import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExtensionTerminalOptions, type Terminal, window } from "vscode";
import { followJob } from "../src/follow";
import type { Job } from "../src/protocol";
import type { Session } from "../src/session";

test("a command has one terminal until that is closed, and the command of a later server has its own", (t) => {
  const opened: ExtensionTerminalOptions[] = [];
  const shown: number[] = [];
  t.mock.method(window, "createTerminal", (options: ExtensionTerminalOptions) => {
    const index = opened.push(options) - 1;
    return { show: () => void shown.push(index) } as unknown as Terminal;
  });
  const session = { current: "s" } as Session;
  const job = (startedAt: number): Job => ({ id: 1, command: "serve", state: "running", startedAt, ports: [] });
  followJob(session, job(1000));
  followJob(session, job(1000));
  followJob(session, job(2000)); // the ids of a new server begin again
  opened[0]?.pty.close();
  followJob(session, job(1000));
  assert.deepEqual(shown, [0, 0, 1, 2]);
});
