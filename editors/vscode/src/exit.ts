/** How a command ended, for people. Pure. */
import type * as wire from "./wire-types";

/** An unknown exit status counts as a failure. */
export function hasFailed({ code }: wire.Exit): boolean {
  return code !== 0;
}

/** The output without its last line where that only repeats the exit code and the time, for views that show these beside it. */
export function withoutExit(output: string, { code }: wire.Exit): string {
  return output.replace(new RegExp(`(^|\\n)\\[exit code ${code}, [\\d.]+ s\\]\\s*$`), "");
}

/** `0.3 s`, `42 s`, `3 min 5 s`. */
export function duration({ durationMs }: wire.Exit): string {
  const seconds = durationMs / 1000;
  if (seconds < 60) {
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
