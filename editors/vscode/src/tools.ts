/**
 * The tools that VS Code has for language models: of MCP servers that the person set up there, with VS Code's logins, and of extensions that they
 * installed. tandem reaches them as one MCP server, `vscode`, over the connection itself (`mcp/message` of the Agent Client Protocol).
 */
import { type CancellationToken, type Extension, extensions, lm, workspace } from "vscode";
import type { McpMessage, McpOutcome, McpServer } from "./protocol";

/** MCP without a handshake. */
const VERSION = "2026-07-28";
const METHOD_NOT_FOUND = -32601;
/** How VS Code names the tools of MCP servers. */
const MCP = "mcp_";
/** Copilot, whose tools work only in its own chat. */
const COPILOT = "github.copilot";

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: object;
}

/** `vscode.lm` since 1.95. */
interface Tools {
  readonly tools: readonly Tool[];
  invokeTool(
    name: string,
    options: { readonly input: object; readonly toolInvocationToken: undefined },
    token: CancellationToken,
  ): Thenable<{ readonly content: readonly unknown[] }>;
}

/** The server, if VS Code has tools and the person lets the model use them. */
export function toolServers(): readonly McpServer[] {
  const isOn = workspace.getConfiguration("tandem").get("editorTools", true);
  return isOn && api() !== undefined ? [{ type: "acp", name: "vscode", serverId: "vscode" }] : [];
}

/** Answers a request to the server. */
export async function answerMcp({ method, params }: McpMessage, token: CancellationToken): Promise<McpOutcome> {
  switch (method) {
    case "server/discover":
      return { result: { supportedVersions: [VERSION], capabilities: { tools: {} } } };
    case "tools/list":
      // VS Code does not tell when they change, so a list is valid for one prompt.
      return { result: { tools: offered().map(described), ttlMs: 0 } };
    case "tools/call":
      return { result: await call(String(params?.name), params?.arguments ?? {}, token) };
    default:
      return { error: { code: METHOD_NOT_FOUND, message: `there is no method ${method}` } };
  }
}

function api(): Tools | undefined {
  const models: object | undefined = lm;
  return models !== undefined && "invokeTool" in models ? (models as Tools) : undefined;
}

/** Tools of MCP servers, and of extensions that the person installed: VS Code's own serve its own agent. */
function offered(): readonly Tool[] {
  const installed = new Set(extensions.all.filter(isInstalled).flatMap(contributed));
  return (api()?.tools ?? []).filter(({ name }) => name.startsWith(MCP) || installed.has(name));
}

function isInstalled({ id, packageJSON }: Extension<unknown>): boolean {
  return packageJSON.isBuiltin !== true && !id.toLowerCase().startsWith(COPILOT);
}

function contributed({ packageJSON }: Extension<unknown>): readonly string[] {
  const tools: readonly { readonly name: string }[] = packageJSON.contributes?.languageModelTools ?? [];
  return tools.map(({ name }) => name);
}

function described({ name, description, inputSchema }: Tool): object {
  return { name, description, inputSchema: inputSchema ?? { type: "object" } };
}

/** A failure is a result, too: the model has to know it. */
async function call(name: string, input: object, token: CancellationToken): Promise<object> {
  const tools = api();
  if (tools === undefined || !offered().some((tool) => tool.name === name)) {
    return failed(`VS Code has no tool ${name} any more`);
  }
  try {
    const { content } = await tools.invokeTool(name, { input, toolInvocationToken: undefined }, token);
    return { content: content.map(block) };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function failed(text: string): object {
  return { isError: true, content: [{ type: "text", text }] };
}

/** A part of a result: text, an image, or a tree of `prompt-tsx`. */
function block(part: unknown): object {
  const { value, data, mimeType } = part as { readonly value?: unknown; readonly data?: Uint8Array; readonly mimeType?: string };
  if (data !== undefined && mimeType?.startsWith("image/")) {
    return { type: "image", data: Buffer.from(data).toString("base64"), mimeType };
  }
  const text = data === undefined ? value : new TextDecoder().decode(data);
  return { type: "text", text: typeof text === "string" ? text : JSON.stringify(text) };
}
