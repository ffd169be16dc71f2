/**
 * What the person said and the server has not answered: one message runs, the others wait at the server for their turn, or to join the one that
 * runs. What becomes of each is what the server says of its id; only what nothing runs before begins at once. Pure: no editor, no server.
 * Invariant: each message is told exactly once, as begun, as joined, or as given back, so that nothing is shown twice and nothing that was typed
 * is lost.
 */
import { randomUUID } from "node:crypto";
import type { Attachment } from "./context";
import type { ContentBlock, StopReason, Turn } from "./protocol";

export interface Message {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** How messages reach the server. */
export interface Wire {
  /** Resolves when the message's turn has ended. Aborting withdraws a queued message; a running one continues. */
  prompt(message: Message, id: string, signal: AbortSignal): Promise<StopReason>;
  /** Resolves to whether the running turn took the message. Aborting takes it back before that. */
  steer(message: Message, id: string, signal: AbortSignal): Promise<boolean>;
  /** Stops the turn, and everything that waits. */
  cancel(): Promise<void>;
}

/** Receives the states of the messages. */
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
  /** The server reports the fate of the message under this id. */
  readonly id: string;
  readonly abort: AbortController;
  /** It has begun, or joined. */
  isTold: boolean;
  /** Stopped or withdrawn: it is not sent in another way. */
  withdrawn: boolean;
}

export class Turns {
  /** In the order in which the server answers them. */
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
    const isFirst = !this.isRunning;
    this.prompts.push(said);
    if (isFirst) {
      this.begin(said);
    }
    this.listener?.changed();
    const outcome = await this.wire.prompt(message, said.id, said.abort.signal).then(
      (stopReason) => ({ stopReason }),
      (error: unknown) => ({ error }),
    );
    remove(this.prompts, said);
    if (said.isTold) {
      this.listener?.ended(message, outcome);
    } else {
      this.listener?.returned(message, "error" in outcome ? outcome.error : undefined);
    }
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
    const outcome = await this.wire.steer(message, said.id, said.abort.signal).then(
      (taken) => ({ taken }),
      (error: unknown) => ({ error }),
    );
    remove(this.joining, said);
    if (said.isTold) {
      return;
    }
    if ("taken" in outcome && outcome.taken) {
      this.join(said);
    } else if (said.withdrawn) {
      this.listener?.returned(message);
    } else if ("error" in outcome) {
      this.listener?.returned(message, outcome.error);
    } else {
      return this.prompt(message);
    }
    this.listener?.changed();
  }

  /** The server reports the state of a message. `ended` and `returned` also answer the request that sent it. */
  receive({ promptId, state, prompt }: Pick<Turn, "promptId" | "state" | "prompt">): void {
    const said = [...this.joining, ...this.prompts].find(({ id }) => id === promptId);
    if (said === undefined) {
      if (state === "returned" && prompt) {
        this.listener?.returned(sent(prompt)); // it waited when the server before this one ended
      }
      return;
    }
    if (state === "joined") {
      this.join(said);
    } else if (state === "running" || state === "ended") {
      this.begin(said); // what fails before it runs ends all the same
    }
    this.listener?.changed();
  }

  /** Takes a message back that waits for its turn. */
  returnToInput(index: number): void {
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

  private begin(said: Said): void {
    if (!said.isTold) {
      said.isTold = true;
      this.listener?.began(said.message);
    }
  }

  private join(said: Said): void {
    if (!said.isTold) {
      said.isTold = true;
      this.listener?.joined(said.message);
    }
  }

  private unsent(): Said[] {
    return [...this.joining, ...this.prompts].filter(({ isTold }) => !isTold);
  }
}

function fresh(message: Message, joins: boolean): Said {
  return { message, joins, id: randomUUID(), abort: new AbortController(), isTold: false, withdrawn: false };
}

/** A message as it was sent: its words, and what came along. */
function sent(prompt: readonly ContentBlock[]): Message {
  const text = prompt.map((block) => (block.type === "text" ? block.text : "")).filter(Boolean);
  const others = prompt.filter(({ type }) => type !== "text");
  return { text: text.join("\n"), attachments: others.map((block) => ({ label: label(block), block })) };
}

function label(block: ContentBlock): string {
  const uri = block.type === "resource_link" ? block.uri : block.type === "resource" ? block.resource.uri : undefined;
  return uri?.split("/").at(-1) ?? block.type;
}

function remove<T>(list: T[], one: T): void {
  const index = list.indexOf(one);
  if (index >= 0) {
    list.splice(index, 1);
  }
}
