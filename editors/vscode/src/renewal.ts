/** Debounces setting changes, so that saving the setup form restarts the server once. */
import type { Disposable } from "vscode";

const REST_MS = 300;

export class Renewal implements Disposable {
  private timer: NodeJS.Timeout | undefined;
  private goesOn = true;

  /** `renew` receives whether the conversations continue, which they do unless the model or the mode changed. */
  constructor(private readonly renew: (goesOn: boolean) => Promise<void>) {}

  soon(goesOn: boolean): void {
    this.goesOn &&= goesOn;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.now(), REST_MS);
  }

  /** Runs a pending renewal now. */
  async now(): Promise<void> {
    if (this.timer !== undefined) {
      const { goesOn } = this;
      this.dispose();
      this.goesOn = true;
      await this.renew(goesOn);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
