/** Answers the setup form and saves its values. The key goes to the secret store only, under its provider's name. */
import { ConfigurationTarget, workspace } from "vscode";
import { failure } from "./failure";
import type { Setup, ToView } from "./messages";
import * as protocol from "./protocol";
import { CUSTOM, type Server } from "./server";

export class SetUp {
  constructor(
    private readonly server: Server,
    private readonly post: (message: ToView) => void,
  ) {}

  /** If it opens by itself, the focus stays where the person is typing. */
  async open(isAsked = true): Promise<void> {
    const { providers } = await this.server.request(protocol.providers, {});
    this.post({ type: "setup", providers, isAsked });
  }

  async models(request: number, { provider, apiKey, baseUrl }: Setup): Promise<void> {
    try {
      const { models } = await this.server.request(protocol.models, { provider, ...given({ apiKey, baseUrl }) });
      this.post({ type: "setupModels", request, models });
    } catch (error) {
      this.post({ type: "setupModels", request, models: [], problem: inTheForm(error) });
    }
  }

  async check(request: number, { provider, model, apiKey, baseUrl }: Setup): Promise<void> {
    try {
      const { findings } = await this.server.request(protocol.check, { provider, model, ...given({ apiKey, baseUrl }) });
      this.post({ type: "setupChecked", request, findings });
    } catch (error) {
      this.post({ type: "setupChecked", request, findings: [], problem: inTheForm(error) });
    }
  }

  /** The settings of the machine where the files are; changing them restarts the server. Returns whether it could save them. */
  async save(request: number, { provider, model, apiKey, baseUrl }: Setup): Promise<boolean> {
    const settings = workspace.getConfiguration("tandem");
    try {
      if (apiKey !== "") {
        await this.server.setApiKey(provider, apiKey);
      }
      await settings.update("baseUrl", baseUrl, ConfigurationTarget.Global);
      await settings.update("model", provider === CUSTOM ? model : `${provider}/${model}`, ConfigurationTarget.Global);
      return true;
    } catch (error) {
      this.post({ type: "setupChecked", request, findings: [], problem: inTheForm(error) });
      return false;
    }
  }
}

/** The server's own message, because the reader is already setting up a model. */
function inTheForm(error: unknown): string {
  const { text, details } = failure(error);
  return details ?? text;
}

/** Without what was left empty. */
function given(fields: { apiKey: string; baseUrl: string }): { apiKey?: string; baseUrl?: string } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
