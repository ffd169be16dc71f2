/** The word before the cursor that can be completed. Pure; as the server reads it. */

export interface Word {
  readonly sigil: "/" | "@";
  /** The text between the sigil and the cursor. */
  readonly query: string;
}

const mention = /(?:^|[\s([{"'`])@("[^"\n]*|[^\s"@][^\s@]*|)$/;

export function wordAt(before: string): Word | undefined {
  const command = /^\/(\S*)$/.exec(before)?.[1];
  if (command !== undefined) {
    return { sigil: "/", query: command };
  }
  const query = mention.exec(before)?.[1];
  return query === undefined ? undefined : { sigil: "@", query };
}
