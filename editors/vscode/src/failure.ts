/** Turns errors into messages and matching remedies. */
import { l10n, window } from "vscode";
import { ConnectionError, ErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { Remedy } from "./messages";
import type { FailureData } from "./protocol";

/** The server could not be started. */
export class StartError extends Error {
  constructor(
    message: string,
    readonly remedies: readonly Remedy[] = ["retry", "program", "log"],
  ) {
    super(message);
  }
}

export interface Failure {
  readonly text: string;
  /** The server's message, if the text is not that. */
  readonly details?: string;
  readonly remedies: readonly Remedy[];
}

/** The message of the server or of the editor, or a generic one if the server stopped. */
export function failure(error: unknown): Failure {
  if (error instanceof StartError) {
    return { text: error.message, remedies: error.remedies };
  }
  if (isAnswer(error)) {
    const code = (error.data as FailureData | undefined)?.code;
    const words = sentence(error.message);
    return { ...(code === "no_model" ? { text: noModel(), details: words } : { text: words }), remedies: remedies(code) };
  }
  if (error instanceof Error && !(error instanceof ResponseError) && !(error instanceof ConnectionError)) {
    return { text: sentence(error.message), remedies: ["retry", "log"] };
  }
  const text = l10n.t("The tandem server stopped before it answered. Try again to restart it; the log shows why it stopped.");
  return { text, remedies: ["retry", "log"] };
}

/** Reports an action that failed. */
export function showFailure(error: unknown): void {
  void window.showErrorMessage(`tandem: ${failure(error).text}`);
}

/** The server's message is about variables and files; the editor has a form. */
function noModel(): string {
  return l10n.t(
    "No model is set up yet. Choose a provider and a model; a running Ollama, LM Studio or llama.cpp is detected automatically.",
  );
}

/** Whether the server answered, rather than stopped. */
export function isAnswer(error: unknown): error is ResponseError<unknown> {
  return error instanceof ResponseError && error.code !== ErrorCodes.PendingResponseRejected;
}

/** The server cannot do this now, but there is another way. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ResponseError && error.code === ErrorCodes.InvalidRequest;
}

function remedies(code: string | undefined): readonly Remedy[] {
  switch (code) {
    case "no_model":
    case "auth":
      return ["setup", "retry"];
    case "invalid_request": // most often a model that the endpoint does not have
      return ["model", "retry"];
    case "network":
      return ["retry", "setup"];
    case "truncated":
      return ["continue"];
    default:
      return ["retry"];
  }
}

/** Begins with a capital and ends with a full stop, unless it is several lines. */
export function sentence(text: string): string {
  return capitalized(/[.!?:)\n]$/.test(text) ? text : `${text}.`);
}

/** Unless it begins with a name. */
export function capitalized(text: string): string {
  return /^[a-z]+\s/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
