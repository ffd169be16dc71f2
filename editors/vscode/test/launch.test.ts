import assert from "node:assert/strict";
import { test } from "node:test";
import { environment, findServer, type Host } from "../src/launch";

function find(setting: string, files: readonly string[], host: Partial<Host> = {}): string {
  const found = findServer(setting, {
    platform: "linux",
    home: "/home/me",
    own: "/extension/server",
    env: { PATH: "/usr/bin:/opt/bin" },
    isFile: (path) => files.includes(path),
    ...host,
  });
  return "program" in found ? found.program : found.problem;
}

test("the server is the one of the setting, else the first on PATH", () => {
  assert.equal(find("", ["/opt/bin/tandem"]), "/opt/bin/tandem");
  assert.equal(find("/x/tandem", ["/x/tandem", "/opt/bin/tandem"]), "/x/tandem");
  assert.equal(find("~/bin/tandem", ["/home/me/bin/tandem"]), "/home/me/bin/tandem");
  assert.equal(find("", ["/opt/bin/tandem", "/extension/server/tandem"]), "/extension/server/tandem");
  assert.equal(find("/x/tandem", ["/x/tandem", "/extension/server/tandem"]), "/x/tandem");
  const windows: Partial<Host> = { platform: "win32", env: { Path: "C:\\a;C:\\b" } };
  assert.equal(find("", ["C:\\b\\tandem.exe"], windows), "C:\\b\\tandem.exe");
});

test("a missing server is answered with the way out", () => {
  assert.match(find("", []), /not found on PATH.*tandem\.server\.path/);
  assert.equal(find("", ["/home/me/.cargo/bin/tandem"]), "/home/me/.cargo/bin/tandem");
  assert.equal(find("", ["/clone/target/release/tandem"], { clone: "/clone" }), "/clone/target/release/tandem");
  assert.match(find("/gone", ["/opt/bin/tandem"]), /"\/gone", which is not a file/);
  assert.match(find("bin/tandem", ["bin/tandem"]), /not an absolute path/);
});

test("a folder of PATH that depends on where the editor runs is not searched", () => {
  assert.match(find("", ["./tandem", "tandem"], { env: { PATH: ".:" } }), /not found/);
});

test("settings and key go into the environment, and only those that are set", () => {
  const none = { model: "", baseUrl: "", api: "chat" };
  assert.deepEqual(environment(none, undefined, { HOME: "/h", GONE: undefined }), { HOME: "/h" });
  assert.deepEqual(environment({ ...none, model: "m", baseUrl: "http://x/v1" }, "sk", { TANDEM_MODEL: "old" }), {
    TANDEM_MODEL: "m",
    TANDEM_BASE_URL: "http://x/v1",
    TANDEM_API: "chat",
    TANDEM_API_KEY: "sk",
  });
});
