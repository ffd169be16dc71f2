// The scripted model server (tests/editors/model_server.py) as an object: what the model will say, its gates, and the requests it received.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { lineMatching } from "./workbench.mjs";

const PROGRAM = fileURLToPath(new URL("../model_server.py", import.meta.url));

export class Model {
  static async start() {
    const process = spawn("python3", [PROGRAM], { stdio: ["ignore", "pipe", "inherit"] });
    const port = await lineMatching(process.stdout, /^PORT (\d+)/, 10_000);
    return new Model(process, `http://127.0.0.1:${port}`);
  }

  constructor(process, address) {
    this.process = process;
    this.address = address;
    this.baseUrl = `${address}/v1`;
  }

  /** Each reply answers one request; see model_server.py for the steps. */
  script(...replies) {
    return this.#post("/ctl/script", replies);
  }

  open(gate) {
    return this.#post(`/ctl/open/${gate}`);
  }

  /** Whether it lists its models: "offer" or "refuse". */
  models(how) {
    return this.#post(`/ctl/models/${how}`);
  }

  reset() {
    return this.#post("/ctl/reset");
  }

  /** Waits for `condition`: `gate:NAME`, `requests:N` or `closed:N`. */
  async state(condition) {
    const response = await fetch(`${this.address}/ctl/state${condition === undefined ? "" : `?wait=${condition}`}`);
    if (!response.ok) {
      throw new Error(`the model server waited for ${condition} in vain: ${await response.text()}`);
    }
    return response.json();
  }

  async close() {
    this.process.kill();
    await once(this.process, "exit");
  }

  async #post(path, body = null) {
    const response = await fetch(this.address + path, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) {
      throw new Error(`${path}: ${await response.text()}`);
    }
  }
}
