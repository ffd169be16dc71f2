/**
 * What the person said and the server has not answered: one message runs, the others wait at the server for their turn, or to join the one that
 * runs. Pure: no editor, no server. Invariants: messages begin in the order they were sent; each is told exactly once, as begun, as joined, or as
 * given back, so that nothing is shown twice and nothing that was typed is lost.
 */
import type { Attachment } from "./context";
import type { StopReason } from "./protocol";

export interface Message {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** How messages reach the server. */
export interface Wire {
  /** Resolves when the message's turn has ended. Aborting takes a message that waits out of the server's queue. */
  prompt(message: Message, signal: AbortSignal): Promise<StopReason>;
  /** Resolves to whether the running turn took the message. */
  steer(message: Message): Promise<boolean>;
  /** Stops the turn, and everything that waits. */
  cancel(): Promise<void>;
}

/** Who hears what became of the messages. */
export interface Listener {
  /** The message's turn begins. */
  began(message: Message): void;
  /** The message is now part of the running turn. */
  joined(message: Message): void;
  /** The message's turn is over. */
  ended(message: Message, outcome: Outcome): void;
  /** The message was not sent on. */
  returned(message: Message, error?: unknown): void;
  changed(): void;
}

export type Outcome = { readonly stopReason: StopReason } | { readonly error: unknown };

/** A message that has not begun. */
export interface Waiting {
  readonly message: Message;
  /** It joins the running turn, instead of following it. */
  readonly joins: boolean;
}

interface Said extends Waiting {
  readonly abort: AbortController;
  begun: boolean;
  /** Stopped or taken back: it does not begin by itself, and is not sent in another way. */
  withdrawn: boolean;
  /** It was sent behind others, and the server has not repeated it: which it does unless all of them had ended when it came. */
  mayRepeat: boolean;
  /** The turn took it. */
  taken: boolean;
}

export class Turns {
  /** In the order in which the server answers them; only the first one has begun. */
  private readonly prompts: Said[] = [];
  private readonly joining: Said[] = [];
  private listener: Listener | undefined;

  constructor(
    private readonly wire: Wire,
    listener: Listener,
  ) {
    this.listener = listener;
  }

  get isRunning(): boolean {
    return this.prompts.length > 0;
  }

  get waiting(): readonly Waiting[] {
    return this.unsent();
  }

  /** Sends a message, which begins at once or follows what was sent before. Resolves when its turn is over. */
  async prompt(message: Message): Promise<void> {
    const said = fresh(message, false);
    said.mayRepeat = this.isRunning;
    this.prompts.push(said);
    this.beginNext();
    this.listener?.changed();
    const outcome = await this.wire.prompt(message, said.abort.signal).then(
      (stopReason) => ({ stopReason }),
      (error: unknown) => ({ error }),
    );
    remove(this.prompts, said);
    if (said.begun) {
      this.joining.filter(({ taken }) => taken).forEach((one) => this.join(one)); // what was repeated unnoticed
      this.listener?.ended(message, outcome);
    } else {
      this.listener?.returned(message, "error" in outcome ? outcome.error : undefined);
    }
    this.beginNext();
    this.listener?.changed();
  }

  /** Says something to the running turn; what comes too late for it is a turn of its own. */
  async steer(message: Message): Promise<void> {
    if (!this.isRunning) {
      return this.prompt(message);
    }
    const said = fresh(message, true);
    this.joining.push(said);
    this.listener?.changed();
    const outcome = await this.wire.steer(message).then(
      (taken) => ({ taken }),
      (error: unknown) => ({ error }),
    );
    if ("taken" in outcome && outcome.taken) {
      said.taken = true; // told where the server repeats it
      return;
    }
    remove(this.joining, said);
    if ("error" in outcome || said.withdrawn) {
      this.listener?.returned(message, "error" in outcome ? outcome.error : undefined);
      this.listener?.changed();
    } else {
      await this.prompt(message);
    }
  }

  /** The server repeats a text: of the message whose turn begins, else of one that joins the turn. */
  repeated(text: string): void {
    const [first] = this.prompts;
    if (first === undefined) {
      return;
    }
    if (!first.begun || (first.mayRepeat && text === first.message.text)) {
      first.mayRepeat = false;
      this.begin(first);
    } else if (this.joining[0] !== undefined) {
      this.join(this.joining[0]);
    }
    this.listener?.changed();
  }

  /** Takes a message back that waits for its turn. */
  takeBack(index: number): void {
    const said = this.unsent()[index];
    if (said !== undefined) {
      said.withdrawn = true;
      said.abort.abort();
    }
  }

  async stop(): Promise<void> {
    for (const said of this.unsent()) {
      said.withdrawn = true;
    }
    if (this.isRunning) {
      await this.wire.cancel();
    }
  }

  /** The conversation is over: what has not begun is given back now, and what becomes of the rest is nobody's matter any more. */
  abandon(): void {
    for (const { message } of this.unsent()) {
      this.listener?.returned(message);
    }
    this.listener = undefined;
  }

  /** The turn before has ended, or there was none. */
  private beginNext(): void {
    const [next] = this.prompts;
    if (next !== undefined && !next.withdrawn) {
      this.begin(next);
    }
  }

  private begin(said: Said): void {
    if (!said.begun) {
      said.begun = true;
      this.listener?.began(said.message);
    }
  }

  private join(said: Said): void {
    remove(this.joining, said);
    this.listener?.joined(said.message);
  }

  private unsent(): Said[] {
    return [...this.joining, ...this.prompts.filter(({ begun }) => !begun)];
  }
}

function fresh(message: Message, joins: boolean): Said {
  return { message, joins, abort: new AbortController(), begun: false, withdrawn: false, mayRepeat: false, taken: false };
}

function remove<T>(list: T[], one: T): void {
  const index = list.indexOf(one);
  if (index >= 0) {
    list.splice(index, 1);
  }
}
