/**
 * Flow control between extension and view: only one batch of changes is in flight until the view has drawn it, and a frame passes before the next;
 * later changes are merged meanwhile. Each batch costs a layout, so there are few, and a busy window lags by two frames at most. Pure except for the timer.
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
    this.soon();
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
