/** Trials: a message that begins with `/try` runs on a private copy of the workspace, whose changes are then applied or discarded. Pure. */

export const TRY = "/try";

/** The prompt in a message that begins a trial. */
export function triedText(text: string): string | undefined {
  return /^\/try\s+(\S[\s\S]*)$/.exec(text)?.[1];
}

/** A message or title as a person reads it. */
export function withoutTry(text: string): string {
  return triedText(text) ?? text;
}
