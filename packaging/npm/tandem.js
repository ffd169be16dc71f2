#!/usr/bin/env node
// Starts the program of this platform, which is in a package of its own.
"use strict";
const { spawn } = require("node:child_process");

const name = `tandem-ls-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/tandem${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`tandem: the package ${name} is missing; install tandem-ls without --omit=optional, on a platform that has one`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
const signals = ["SIGHUP", "SIGINT", "SIGTERM"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`tandem: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  for (const one of signals) process.removeAllListeners(one);
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
});
