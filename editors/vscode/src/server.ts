/** The server process and its language client. Started on first use, never restarted automatically. */
import { once } from "node:events";
import { constants, accessSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { l10n, type Disposable, EventEmitter, type LogOutputChannel, type SecretStorage, type TextDocument, workspace } from "vscode";
import {
  CancellationToken,
  CloseAction,
  ErrorAction,
  LanguageClient,
  type NotificationType,
  type RequestType,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";
import { diagnostics } from "./diagnostics";
import { StartError } from "./failure";
import { language, languageOps } from "./language";
import { cloneToBuild, environment, findServer, type Settings } from "./launch";
import type { NextEdit } from "./nextEdit";
import * as protocol from "./protocol";
import { Answers, hasModels, listModels } from "./models";
import { Notebooks } from "./notebooks";
import { Rewrites } from "./rewrites";
import { answerMcp } from "./tools";
import { savingUnseen } from "./unseen";

/** An endpoint that is not in the provider table. */
export const CUSTOM = "custom";

/** Of any model, and of a provider's. */
const KEY = "tandem.apiKey";
const keyOf = (provider: string) => (provider === "" ? KEY : `${KEY}.${provider}`);

/** Documents that the server reads besides files, such as a commit that is being described. */
export const COMMIT_SCHEME = "tandem-commit";

export class Server implements Disposable {
  private client: Promise<LanguageClient> | undefined;
  private notebooks: Notebooks | undefined;
  /** Resolves when the previous server has ended, so that two never run at once. */
  private end: Promise<void> = Promise.resolve();
  private readonly updated = new EventEmitter<protocol.UpdateParams>();
  private readonly statusChanged = new EventEmitter<protocol.StatusParams>();
  private readonly turned = new EventEmitter<protocol.Turn>();
  private readonly jobsListed = new EventEmitter<protocol.Jobs>();
  private readonly rewrites = new Rewrites();
  private readonly ended = new EventEmitter<void>();
  readonly onUpdate = this.updated.event;
  readonly onStatus = this.statusChanged.event;
  readonly onTurn = this.turned.event;
  /** A background command of a session began or ended. */
  readonly onJobs = this.jobsListed.event;
  /** The process ended, on request or not. */
  readonly onEnd = this.ended.event;
  /** Answers the server's permission questions. */
  askPermission: (params: protocol.PermissionParams, token: CancellationToken) => Promise<protocol.PermissionResult> = () =>
    Promise.resolve({ outcome: { outcome: "cancelled" } });

  constructor(
    private readonly log: LogOutputChannel,
    private readonly secrets: SecretStorage,
    private readonly edits: NextEdit,
  ) {}

  /** The answer of the running server; a request never starts one. */
  async ask<P, R>(type: RequestType<P, R, void>, params: P, token: CancellationToken): Promise<R | undefined> {
    const client = await this.client?.catch(() => undefined);
    return client?.sendRequest<R>(type.method, params, token);
  }

  async request<P, R, E>(type: RequestType<P, R, E>, params: P, token?: CancellationToken): Promise<R> {
    const client = await this.start();
    await this.notebooks?.settled();
    return token === undefined ? client.sendRequest<R>(type.method, params) : client.sendRequest<R>(type.method, params, token);
  }

  /** Asks for a rewrite; `grew` receives its text so far. */
  async rewrite(params: protocol.InlineParams, token: CancellationToken, grew = (_text: string): void => undefined): Promise<string> {
    const { text } = await this.rewrites.run(this.request(protocol.inline, params, token), grew);
    return text;
  }

  /** Sends nothing when no server runs: notifications never start one. */
  async notify<P>(type: NotificationType<P>, params: P): Promise<void> {
    const client = await this.client?.catch(() => undefined);
    await client?.sendNotification(type.method, params);
  }

  /** Passes on settings that take effect without a new session. */
  async configure(): Promise<void> {
    const client = await this.client?.catch(() => undefined);
    await client?.sendNotification("workspace/didChangeConfiguration", { settings: options(readSettings()) });
  }

  async stop(): Promise<void> {
    const { client } = this;
    if (client !== undefined) {
      this.client = undefined;
      this.end = client.then(ended).catch(() => undefined); // one that did not start has ended
    }
    await this.end;
  }

  /** Stores a key for a provider, or for any model if `provider` is empty. */
  async setApiKey(provider: string, key: string): Promise<void> {
    await this.secrets.store(keyOf(provider), key);
  }

  /** Removes the keys of all providers, including former ones. */
  async removeApiKeys(): Promise<void> {
    const { providers } = await this.request(protocol.providers, {});
    await Promise.all(["", CUSTOM, ...providers.map(({ name }) => name)].map((name) => this.secrets.delete(keyOf(name))));
  }

  /** The key of the configured model's provider, or else the general one. */
  private async apiKey({ model, baseUrl }: Settings): Promise<string | undefined> {
    const provider = baseUrl === "" ? (model.split("/")[0] ?? "") : CUSTOM;
    const [own, general] = await Promise.all([this.secrets.get(keyOf(provider)), this.secrets.get(KEY)]);
    return own ?? general;
  }

  async dispose(): Promise<void> {
    await this.stop();
    this.updated.dispose();
    this.statusChanged.dispose();
    this.turned.dispose();
    this.jobsListed.dispose();
    this.ended.dispose();
  }

  start(): Promise<LanguageClient> {
    if (this.client === undefined) {
      const client = this.end.then(() => this.launch(gone));
      const gone = () => {
        if (this.client === client) {
          this.client = undefined;
        }
      };
      client.catch(gone);
      this.client = client;
    }
    return this.client;
  }

  private async launch(gone: () => void): Promise<LanguageClient> {
    const settings = readSettings();
    const host = {
      platform: process.platform,
      home: homedir(),
      own: join(__dirname, "../server"),
      env: process.env,
      isFile: isExecutable,
      clone: cloneToBuild(),
    };
    const found = findServer(settings.serverPath, host);
    if ("problem" in found) {
      const canBuild = found.isMissing === true && cloneToBuild() !== "";
      throw new StartError(found.problem, [...(canBuild ? ["build" as const] : []), "program", "retry", "log"]);
    }
    const env = environment(settings, await this.apiKey(settings), process.env);
    const client = this.connect(found.program, env, settings, gone);
    try {
      await client.start();
      const saved = workspace.textDocuments.filter(({ uri, isDirty }) => uri.scheme === "file" && !isDirty);
      await client.sendNotification(protocol.saved, { uris: saved.map(({ uri }) => client.code2ProtocolConverter.asUri(uri)) });
    } catch (error) {
      this.log.error(error instanceof Error ? error : String(error));
      throw new StartError(
        l10n.t("{0} did not start as a language server. See the log; `tandem doctor` in a terminal finds most causes.", found.program),
      );
    }
    return client;
  }

  private async unlessNotebook({ uri }: TextDocument, next: () => Promise<void>): Promise<void> {
    if (this.notebooks?.has(uri) !== true) {
      await next();
    }
  }

  private connect(program: string, env: Record<string, string>, settings: Settings, gone: () => void): LanguageClient {
    const processOptions = { env, cwd: folder() };
    const client = new LanguageClient(
      "tandem",
      "tandem",
      { command: program, args: ["lsp"], options: processOptions },
      {
        documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: COMMIT_SCHEME }],
        outputChannel: this.log,
        initializationOptions: options(settings),
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
        },
        initializationFailedHandler: () => false,
        middleware: {
          didOpen: (document, next) => this.unlessNotebook(document, () => next(document)),
          didChange: (event, next) => this.unlessNotebook(event.document, () => next(event)),
          didSave: (document, next) => this.unlessNotebook(document, () => next(document)),
          didClose: (document, next) => this.unlessNotebook(document, () => next(document)),
          provideInlineCompletionItems: this.edits.provide,
          workspace: {
            handleApplyEdit: async (params, next) =>
              (await this.notebooks?.apply(params)) ?? savingUnseen(() => next(params, CancellationToken.None)),
          },
        },
      },
    );
    client.registerFeature(sessionMethods);
    client.onNotification(protocol.update, (params) => this.updated.fire(params));
    client.onNotification(protocol.status, (status) => this.statusChanged.fire(status));
    client.onNotification(protocol.turn, (turn) => this.turned.fire(turn));
    client.onNotification(protocol.jobsChanged, (jobs) => this.jobsListed.fire(jobs));
    client.onNotification(protocol.inlineUpdate, ({ text }) => this.rewrites.receive(text));
    client.onRequest(protocol.diagnostics, (params, token) => diagnostics(client, params, token));
    client.onRequest(protocol.language, (params, token) => language(client, params, token));
    client.onRequest(protocol.requestPermission, (params, token) => this.askPermission(params, token));
    client.onRequest(protocol.mcpMessage, answerMcp);
    const answers = new Answers();
    client.onRequest(protocol.editorModels, listModels);
    client.onRequest(protocol.nextChunk, (params) => answers.next(params));
    client.onNotification(protocol.endAnswer, (params) => answers.end(params));
    client.onRequest(protocol.save, async ({ uris }) => {
      const asked = workspace.textDocuments.filter(
        (document) => document.isDirty && uris.includes(client.code2ProtocolConverter.asUri(document.uri)),
      );
      await Promise.all([...asked.map((document) => document.save()), this.notebooks?.save(uris)]);
      return null;
    });
    client.onDidChangeState(({ oldState, newState }) => {
      this.notebooks?.dispose();
      this.notebooks = newState === State.Running ? new Notebooks(client) : undefined;
      if (newState === State.Stopped && oldState === State.Running) {
        gone();
        this.ended.fire();
      }
    });
    return client;
  }
}

/** Ends a server. Its sessions cannot be resumed before its process is gone; the library kills one that hangs. */
async function ended(client: LanguageClient): Promise<void> {
  const { serverProcess } = client;
  const isRunning = serverProcess?.exitCode === null && serverProcess.signalCode === null;
  const exited = isRunning && once(serverProcess, "exit");
  await client.dispose();
  await exited;
}

/** Tells the server that this client speaks the session methods; files stay with the server and the LSP document sync. */
const sessionMethods: StaticFeature = {
  fillClientCapabilities(capabilities) {
    const tandem = {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      _meta: {
        "tandem.diagnostics": true,
        "tandem.save": true,
        "tandem.plan": true,
        "tandem.language": languageOps,
        "tandem.models": hasModels(),
      },
    };
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), tandem };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

/** The window's first folder. Never a guess, because everything in it may be read. */
export function folder(): string {
  const [first] = workspace.workspaceFolders ?? [];
  if (first === undefined) {
    throw new StartError(l10n.t("Open a folder first. tandem works on the files in it."), ["folder"]);
  }
  return first.uri.fsPath;
}

/** What the server reads of the settings, under the names of its `config.toml`. */
function options({ mode, completion, finish, permissions }: Settings): object {
  return {
    permissions,
    ...(mode !== "" && { mode }),
    ...(completion !== "" && { completion: { model: completion } }),
    ...(!finish && { finish: { diagnostics: false } }),
  };
}

function readSettings(): Settings {
  const config = workspace.getConfiguration("tandem");
  const text = (key: string) => config.get<string>(key, "").trim();
  const rules = (list: string) => config.get<string[]>(`permissions.${list}`, []);
  return {
    serverPath: text("server.path"),
    model: text("model"),
    baseUrl: text("baseUrl"),
    api: text("api"),
    mode: text("mode"),
    completion: text("completion.model"),
    permissions: { allow: rules("allow"), ask: rules("ask"), deny: rules("deny") },
    finish: config.get<boolean>("finish", true),
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
