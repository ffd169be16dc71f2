/** Messages on their way to the server: prompts, what steers a turn, and the end of one. */
import { CancellationTokenSource } from "vscode";
import { isRefusal } from "./failure";
import * as protocol from "./protocol";
import type { Server } from "./server";
import type { Message, Wire } from "./turns";

export function wire(server: Server, sessionId: () => Promise<string>): Wire {
  return {
    async prompt(message, signal) {
      const params = { sessionId: await sessionId(), prompt: blocks(message) };
      if (signal.aborted) {
        return "cancelled"; // taken back before there was a session
      }
      const source = new CancellationTokenSource();
      signal.addEventListener("abort", () => source.cancel());
      try {
        const { stopReason } = await server.request(protocol.prompt, params, source.token);
        return stopReason;
      } finally {
        source.dispose();
      }
    },
    async steer(message) {
      try {
        await server.request(protocol.steer, { sessionId: await sessionId(), prompt: blocks(message) });
        return true;
      } catch (error) {
        if (isRefusal(error)) {
          return false;
        }
        throw error;
      }
    },
    async cancel() {
      const id = await sessionId().catch(() => undefined);
      if (id !== undefined) {
        await server.notify(protocol.cancel, { sessionId: id });
      }
    },
  };
}

/** The words first: a slash command is one only at the beginning. */
function blocks({ text, attachments }: Message): protocol.ContentBlock[] {
  return [{ type: "text", text }, ...attachments.map(({ block }) => block)];
}
