/**
 * State of a folder that outlives a window, as JSON in a file. It is on disk when `update` returns. VS Code's own storage for extensions is not: in a browser
 * it is written some time later, and a reload in between loses the latest update.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export class Memory {
  private values: Readonly<Record<string, unknown>>;

  constructor(
    private readonly file: string,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.values = read(file);
  }

  get<T>(key: string, otherwise: T): T {
    return (this.values[key] as T | undefined) ?? otherwise;
  }

  update(key: string, value: unknown): void {
    const before = JSON.stringify(this.values);
    this.values = { ...this.values, [key]: value };
    const after = JSON.stringify(this.values);
    if (after === before) {
      return;
    }
    const draft = `${this.file}.${process.pid}`;
    try {
      mkdirSync(dirname(this.file), { recursive: true });
      writeFileSync(draft, after, { mode: 0o600 });
      renameSync(draft, this.file); // readers see a complete file
    } catch (error) {
      this.onFailure(error);
    }
  }
}

/** There is none at first; a damaged file counts as none. */
function read(file: string): Record<string, unknown> {
  try {
    const values: unknown = JSON.parse(readFileSync(file, "utf8"));
    return values instanceof Object ? { ...values } : {};
  } catch {
    return {};
  }
}
