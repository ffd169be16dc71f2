/**
 * What goes to the view, and when: at most one batch of changes is on its way until the view says that it is drawn; what happens meanwhile is merged.
 * So a busy window falls behind by a frame, never by a queue. Pure but for the timer.
 */

/** One batch for all that happens within a frame. */
const FRAME_MS = 16;

export class Flow {
  private timer: NodeJS.Timeout | undefined;
  /** A batch was posted and is not drawn yet. */
  private isAway = false;

  /** `post` sends what there is and returns whether there was anything. */
  constructor(private readonly post: () => boolean) {}

  /** Something changed. */
  soon(): void {
    if (!this.isAway) {
      this.timer ??= setTimeout(() => this.send(), FRAME_MS);
    }
  }

  drawn(): void {
    this.isAway = false;
    this.send();
  }

  /** The view starts afresh: nothing is on its way to it. */
  reset(): void {
    this.isAway = false;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private send(): void {
    this.timer = undefined;
    this.isAway = this.post();
  }
}
