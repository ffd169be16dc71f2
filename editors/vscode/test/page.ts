/** The HTML the page would show after some steps. No browser. */
import type { Step } from "../webview/stream";

export class Page {
  settled = "";
  tail = "";

  apply(steps: readonly Step[]): void {
    for (const step of steps) {
      switch (step.op) {
        case "settle":
          this.settled += step.html;
          break;
        case "grow":
          this.settled = this.settled.replace(/(<\/[uo]l>|<\/tbody>\n?<\/table><\/div>)\s*$/, (end) => step.html + end);
          break;
        case "tail":
          this.tail = step.html;
          break;
        case "text":
          this.tail = this.tail.replace(/(<\/[^>]*>\s*)*$/, (end) => step.text + end);
      }
    }
  }

  get html(): string {
    return this.settled + this.tail;
  }
}
