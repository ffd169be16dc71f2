/** The background commands of a session, as the server lists them, with the end of their output. */
import type { JobView } from "./messages";
import type * as protocol from "./protocol";

/** How often the ports and the output of running ones are looked up, in milliseconds. */
const LOOK_MS = 2000;
/** The most lines that are shown of one. */
const LINES = 100;

export interface JobSource {
  list(): Promise<readonly protocol.Job[]>;
  /** The output from an offset on. */
  output(id: number, offset: number): Promise<protocol.JobOutput>;
}

export class Jobs {
  private listed: readonly protocol.Job[] = [];
  private readonly outputs = new Map<number, protocol.JobOutput>();
  /** They had ended when the latest message was sent. */
  private seen: ReadonlySet<number> = new Set();
  /** What was reported last. */
  private known = "";
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: JobSource,
    private readonly changed: (jobs: readonly protocol.Job[]) => void,
  ) {}

  /** Those that run, and those that ended since the latest message. */
  get shown(): JobView[] {
    const shown = this.listed.filter(({ id }) => !this.seen.has(id));
    return shown.map((job) => {
      const { text, line } = this.outputs.get(job.id) ?? { text: "", line: "" };
      return { ...job, output: text + line };
    });
  }

  get running(): number {
    return this.listed.filter(isRunning).length;
  }

  find(id: number): protocol.Job | undefined {
    return this.listed.find((job) => job.id === id);
  }

  /** One began or ended. */
  take(jobs: readonly protocol.Job[]): void {
    this.list(jobs);
    this.look();
  }

  /** A message is sent: its author has seen which commands had ended before. */
  settle(): void {
    this.seen = new Set(this.listed.filter((job) => !isRunning(job)).map(({ id }) => id));
  }

  /** The server is gone, and so are its commands. */
  forget(): void {
    this.dispose();
    this.outputs.clear();
    this.seen = new Set();
    this.list([]);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private list(jobs: readonly protocol.Job[]): void {
    this.listed = jobs;
    const known = JSON.stringify([jobs, [...this.outputs]]);
    if (known !== this.known) {
      this.known = known;
      this.changed(jobs);
    }
  }

  /** One look at a time, so that no output is added twice. */
  private look(): void {
    clearTimeout(this.timer);
    this.looking = this.looking.then(() => this.lookNow()).catch(() => undefined); // without a server there is nothing to see
  }

  private async lookNow(): Promise<void> {
    const jobs = await this.source.list();
    for (const { id } of jobs) {
      await this.read(id);
    }
    this.list(jobs);
    if (this.running > 0) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.look(), LOOK_MS);
    }
  }

  private async read(id: number): Promise<void> {
    const known = this.outputs.get(id);
    const piece = await this.source.output(id, known?.offset ?? 0);
    this.outputs.set(id, { ...piece, text: lastLines((known?.text ?? "") + piece.text) });
  }
}

function isRunning({ state }: protocol.Job): boolean {
  return state === "running";
}

function lastLines(text: string): string {
  return text.split("\n").slice(-LINES).join("\n");
}
