/**
 * The messages the server has not answered yet: one runs, the others are queued at the server or join the running turn. The server reports the
 * state of each by its id. Pure. Invariant: each message is reported exactly once, as begun, joined or returned, so nothing is shown twice or
 * lost.
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
  /** The id under which the server reports the message's state. */
  readonly id: string;
  readonly abort: AbortController;
  /** It was reported as begun or joined. */
  isTold: boolean;
  /** Stopped or withdrawn: it must not be sent again. */
  withdrawn: boolean;
}

export class Turns {
  /** In the order in which the server answers them. */
  private readonly prompts: Said[] = [];
  private readonly joining: Said[] = [];
  /** Of every message sent here. The answer to its request reports it, and a server that starts later does not report it once more. */
  private readonly ids = new Set<string>();
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
    const said = this.fresh(message, false);
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

  /** Sends a message to the running turn, or as a turn of its own if that has ended. */
  async steer(message: Message): Promise<void> {
    if (!this.isRunning) {
      return this.prompt(message);
    }
    const said = this.fresh(message, true);
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
      if (state === "returned" && prompt && !this.ids.has(promptId)) {
        this.listener?.returned(sent(prompt)); // it waited when the window was reloaded
      }
      return;
    }
    if (state === "joined") {
      this.join(said);
    } else if (state === "running" || state === "ended") {
      this.begin(said); // a prompt that fails before it runs ends, too
    }
    this.listener?.changed();
  }

  /** Withdraws a message that is waiting for its turn. */
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

  /** Ends the conversation: returns queued messages now and stops reporting. */
  abandon(): void {
    for (const { message } of this.unsent()) {
      this.listener?.returned(message);
    }
    this.listener = undefined;
  }

  private fresh(message: Message, joins: boolean): Said {
    const id = randomUUID();
    this.ids.add(id);
    return { message, joins, id, abort: new AbortController(), isTold: false, withdrawn: false };
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

/** Restores a message from the prompt that was sent. */
function sent(prompt: readonly ContentBlock[]): Message {
  const text = prompt.map((block) => (block.type === "text" ? block.text : "")).filter(Boolean);
  return { text: text.join("\n"), attachments: attachments(prompt.filter(({ type }) => type !== "text")) };
}

/** Attachments that were sent, as they were labelled then. */
export function attachments(blocks: readonly ContentBlock[]): Attachment[] {
  return blocks.map((block) => ({ label: label(block), block }));
}

function label(block: ContentBlock): string {
  const uri = block.type === "resource_link" ? block.uri : block.type === "resource" ? block.resource.uri : undefined;
  const name = uri
    ?.split("/")
    .at(-1)
    ?.replace(/#L(\d+)(?:-L(\d+))?$/, (_, first: string, last?: string) => `:${first}${last === undefined ? "" : `-${last}`}`);
  return name === undefined ? block.type : decodeURIComponent(name);
}

function remove<T>(list: T[], one: T): void {
  const index = list.indexOf(one);
  if (index >= 0) {
    list.splice(index, 1);
  }
}
