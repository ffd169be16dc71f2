// A small MCP server on standard input and output: one prompt, one resource, no tools.
import { createInterface } from "node:readline";

const ANSWERS = {
  initialize: { protocolVersion: "2025-11-25", capabilities: { prompts: {}, resources: {} }, serverInfo: { name: "Notes", version: "1" } },
  "prompts/list": { prompts: [{ name: "plan", description: "Plans a day", arguments: [{ name: "day", required: true }] }] },
  "prompts/get": { messages: [{ role: "user", content: { type: "text", text: "List what is due on that day." } }] },
  "resources/list": { resources: [{ uri: "note://today", name: "Today's note" }] },
  "resources/read": { contents: [{ uri: "note://today", text: "Water the plants." }] },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) {
    const answer = method in ANSWERS ? { result: ANSWERS[method] } : { error: { code: -32601, message: "unknown method" } };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }
});
