/** File names in answers. They become links once the extension has found the files: most words with a dot name none. */
import type { FromView } from "../src/messages";

/** Names that appear within this time are looked up together. */
const TOGETHER_MS = 100;
const UNLINKED = "a[data-file]:not([data-href])";

let send: (message: FromView) => void = () => undefined;
const files = new Set<string>();
/** What was looked up since the last turn ended. */
const asked = new Set<string>();
const names = new Set<string>();

export function askForFiles(sendMessage: typeof send): void {
  send = sendMessage;
}

/** Links the names of files in newly drawn text, and looks up possible names. */
export function finishFiles(within: Element): void {
  for (const link of within.querySelectorAll<HTMLElement>(UNLINKED)) {
    const { file = "" } = link.dataset;
    if (files.has(file)) {
      link.dataset["href"] = file;
      link.title = file;
      link.role = "link";
      link.tabIndex = 0;
    } else if (!asked.has(file)) {
      asked.add(file);
      if (names.add(file).size === 1) {
        setTimeout(ask, TOGETHER_MS);
      }
    }
  }
}

/** These files exist. */
export function linkFiles(within: Element, found: readonly string[]): void {
  found.forEach((name) => files.add(name));
  finishFiles(within);
}

/** A turn may have created what its answer had named before. */
export function lookAgain(within: Element): void {
  asked.clear();
  finishFiles(within);
}

function ask(): void {
  send({ type: "files", names: [...names] });
  names.clear();
}
