/** Sends prompts, steering messages and cancellation to the server. */
import { isRefusal } from "./failure";
import * as protocol from "./protocol";
import type { Server } from "./server";
import type { Message, Wire } from "./turns";

export function wire(server: Server, sessionId: () => Promise<string>): Wire {
  return {
    async prompt(message, id, signal) {
      const params = { sessionId: await sessionId(), ...named(message, id) };
      if (signal.aborted) {
        return "cancelled"; // withdrawn before there was a session
      }
      signal.addEventListener("abort", () => withdraw(server, params.sessionId, id));
      const { stopReason } = await server.request(protocol.prompt, params);
      return stopReason;
    },
    async steer(message, id, signal) {
      const params = { sessionId: await sessionId(), ...named(message, id) };
      if (signal.aborted) {
        return false;
      }
      signal.addEventListener("abort", () => withdraw(server, params.sessionId, id));
      try {
        await server.request(protocol.steer, params);
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

/** A prompt that can no longer be withdrawn continues, and its own request reports that. */
function withdraw(server: Server, sessionId: string, promptId: string): void {
  server.request(protocol.withdraw, { sessionId, promptId }).catch(() => undefined);
}

function named(message: Message, id: string) {
  return { prompt: blocks(message), _meta: { "tandem/promptId": id } };
}

/** The text comes first, because slash commands are recognized only at the beginning. */
function blocks({ text, attachments }: Message): protocol.ContentBlock[] {
  return [{ type: "text", text }, ...attachments.map(({ block }) => block)];
}
