/**
 * The models that VS Code has for extensions: Copilot's, and those that other extensions register. The server asks for an answer in the form of OpenAI's
 * chat completions, and for its chunks one after the other: while it does not ask, nothing is read.
 */
import * as vscode from "vscode";
import { type CancellationToken, CancellationTokenSource, l10n } from "vscode";
import { ResponseError } from "vscode-languageclient/node";
import type * as wire from "./wire-types";

/** The parts of a chat completions request that VS Code supports. */
interface Body {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly description: string; readonly parameters: object } }[];
}

interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content?: string | readonly { readonly text?: string; readonly image_url?: { readonly url: string } }[] | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

/** `vscode` since 1.95, and images since 1.104. */
interface Api {
  readonly LanguageModelTextPart: new (value: string) => { readonly value: string };
  readonly LanguageModelToolCallPart: new (
    callId: string,
    name: string,
    input: object,
  ) => { readonly callId: string; readonly name: string; readonly input: object };
  readonly LanguageModelToolResultPart: new (callId: string, content: readonly object[]) => object;
  readonly LanguageModelDataPart?: { image(data: Uint8Array, mimeType: string): object };
  readonly LanguageModelChatMessage: new (
    role: vscode.LanguageModelChatMessageRole,
    content: readonly object[],
  ) => vscode.LanguageModelChatMessage;
}

interface Answer {
  readonly cancel: CancellationTokenSource;
  readonly chunks: AsyncGenerator<object, void>;
}

/** The codes of `vscode.LanguageModelError`, in the server's words. */
const CODES: Readonly<Record<string, string>> = { NoPermissions: "auth", Blocked: "rate_limit", NotFound: "no_model" };
const REQUEST_FAILED = -32803;

export function hasModels(): boolean {
  return "LanguageModelToolCallPart" in vscode;
}

export async function listModels(): Promise<object> {
  const models = await vscode.lm.selectChatModels({});
  if (models.length === 0) {
    throw failed(l10n.t("VS Code has no models yet: sign in to GitHub Copilot, or install an extension that offers models"), "no_model");
  }
  return { data: models.map(({ vendor, id, maxInputTokens }) => ({ id: `${vendor}/${id}`, context_window: maxInputTokens })) };
}

/** The answers under way, by the server's number. */
export class Answers {
  private readonly running = new Map<number, Answer>();

  /** The next chunk of an answer; none when it is complete. */
  async next({ id, body }: wire.NextChunk): Promise<{ chunk?: object }> {
    let answer = this.running.get(id);
    if (answer === undefined) {
      const cancel = new CancellationTokenSource();
      answer = { cancel, chunks: chunks(body as Body, cancel.token) };
      this.running.set(id, answer);
    }
    try {
      const { value } = await answer.chunks.next();
      return value === undefined ? {} : { chunk: value };
    } catch (error) {
      const { code, message } = error as { readonly code?: unknown; readonly message: string };
      throw error instanceof ResponseError ? error : failed(message, CODES[String(code)] ?? "invalid_request");
    }
  }

  /** Cancels an answer that is not complete. */
  end({ id }: wire.EndAnswer): void {
    this.running.get(id)?.cancel.cancel();
    this.running.delete(id);
  }
}

async function* chunks({ model: name, messages, tools = [] }: Body, token: CancellationToken): AsyncGenerator<object, void> {
  const [vendor = "", ...rest] = name.split("/");
  const [model] = await vscode.lm.selectChatModels({ vendor, id: rest.join("/") });
  if (model === undefined) {
    throw failed(l10n.t("VS Code has no model {0}", name), "no_model");
  }
  const options = {
    justification: l10n.t("tandem answers your prompts with this model. Your prompts and the files tandem reads for them are sent to it."),
    tools: tools.map(({ function: { name, description, parameters } }) => ({ name, description, inputSchema: parameters })),
  };
  const { stream } = (await model.sendRequest(grouped(messages), options, token)) as unknown as { readonly stream: AsyncIterable<unknown> };
  let calls = 0;
  for await (const part of stream) {
    if (part instanceof api.LanguageModelTextPart) {
      yield { choices: [{ delta: { content: part.value } }] };
    } else if (part instanceof api.LanguageModelToolCallPart) {
      const call = { index: calls++, id: part.callId, function: { name: part.name, arguments: JSON.stringify(part.input) } };
      yield { choices: [{ delta: { tool_calls: [call] } }] };
    }
  }
  yield { choices: [{ delta: {}, finish_reason: calls > 0 ? "tool_calls" : "stop" }] };
}

const api = vscode as unknown as Api;

/** VS Code has two roles, and some providers require them to alternate. */
function grouped(messages: readonly Message[]): vscode.LanguageModelChatMessage[] {
  const groups: { readonly role: vscode.LanguageModelChatMessageRole; readonly parts: object[] }[] = [];
  for (const message of messages) {
    const { User, Assistant } = vscode.LanguageModelChatMessageRole;
    const role = message.role === "assistant" ? Assistant : User;
    const last = groups.at(-1);
    if (last?.role === role) {
      last.parts.push(...parts(message));
    } else {
      groups.push({ role, parts: parts(message) });
    }
  }
  return groups.map(({ role, parts }) => new api.LanguageModelChatMessage(role, parts));
}

function parts({ content, tool_calls = [], tool_call_id }: Message): object[] {
  const blocks = typeof content === "string" ? [{ text: content }] : (content ?? []);
  const shown = blocks.filter(({ text }) => text !== "").map(part);
  if (tool_call_id !== undefined) {
    return [new api.LanguageModelToolResultPart(tool_call_id, shown)];
  }
  const calls = tool_calls.map(
    ({ id, function: { name, arguments: input } }) => new api.LanguageModelToolCallPart(id, name, JSON.parse(input)),
  );
  return [...shown, ...calls];
}

function part({ text = "", image_url }: { readonly text?: string; readonly image_url?: { readonly url: string } }): object {
  const [, mimeType = "", data = ""] = /^data:([^;]*);base64,(.*)$/s.exec(image_url?.url ?? "") ?? [];
  if (image_url === undefined || api.LanguageModelDataPart === undefined) {
    return new api.LanguageModelTextPart(image_url === undefined ? text : "[an image, which this version of VS Code cannot send]");
  }
  return api.LanguageModelDataPart.image(Buffer.from(data, "base64"), mimeType);
}

function failed(message: string, code: string): ResponseError<object> {
  return new ResponseError(REQUEST_FAILED, message, { code });
}
