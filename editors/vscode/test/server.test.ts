import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import type { LogOutputChannel, SecretStorage } from "vscode";
import type { NextEdit } from "../src/nextEdit";
import { Server } from "../src/server";

test("a server is stopped once its process is gone, however long it takes after the shutdown", async () => {
  const server = new Server({} as LogOutputChannel, {} as SecretStorage, {} as NextEdit);
  const serverProcess = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  const client = { serverProcess, dispose: async () => undefined };
  for (let times = 0; times < 2; times++) {
    Object.assign(server, { client: Promise.resolve(client) });
    const stopped = server.stop(); // the second time, it is gone already
    setImmediate(() => serverProcess.kill());
    await stopped;
    assert.equal(serverProcess.signalCode, "SIGTERM");
  }
});
