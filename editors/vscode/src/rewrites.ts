/** The rewrites that the server works on: edits in place, of cells too, and commit messages. Pure. */

export class Rewrites {
  private readonly running = new Set<(text: string) => void>();

  /**
   * `grew` receives the text so far. The client library does not reveal the id that an update names, so an update is passed on only while a single
   * rewrite runs: the text of another one is never shown.
   */
  async run<T>(answer: Promise<T>, grew: (text: string) => void): Promise<T> {
    const receive = (text: string) => grew(text); // of its own, even if `grew` is not
    this.running.add(receive);
    try {
      return await answer;
    } finally {
      this.running.delete(receive);
    }
  }

  receive(text: string): void {
    if (this.running.size === 1) {
      this.running.forEach((grew) => grew(text));
    }
  }
}
