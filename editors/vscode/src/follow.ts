/** A background command in a VS Code terminal: its output as it arrives. Ctrl+C stops the command; closing the terminal does not. */
import { EventEmitter, l10n, type Terminal, window } from "vscode";
import { showFailure } from "./failure";
import type * as protocol from "./protocol";
import { visible } from "./safe";
import type { Session } from "./session";

/** How often more is read, in milliseconds. */
const READ_MS = 500;
const CTRL_C = "\u0003";
/** The last line is written again while it changes. It is cut at the edge, so that it is one row. */
const [REDRAW, NO_WRAP, WRAP] = ["\r\u001B[K", "\u001B[?7l", "\u001B[?7h"];
/** The sequences that select colors. */
const COLORS = new RegExp("(\u001B\\[[0-9;]*m)");

/** Those that are open. */
const terminals = new Map<string, Terminal>();

export function followJob(session: Session, job: protocol.Job): void {
  const key = `${session.current}:${job.id}:${job.startedAt}`; // the ids begin again with each server
  const known = terminals.get(key);
  if (known !== undefined) {
    known.show();
    return;
  }
  const name = l10n.t("Job {0}: {1}", job.id, visible(job.command).split("\n", 1)[0] ?? "");
  const terminal = window.createTerminal({ name, pty: output(session, job, () => terminals.delete(key)) });
  terminals.set(key, terminal);
  terminal.show();
}

/** `closed` is called when the terminal is gone. */
function output(session: Session, { id, startedAt }: protocol.Job, closed: () => void) {
  const written = new EventEmitter<string>();
  let known = { offset: 0, line: "" };
  let timer: NodeJS.Timeout | undefined;
  let isOpen = true;
  const end = () => written.fire(`\r\n${l10n.t("The command has ended.")}\r\n`);
  /** None, or one of a later server, has its id once its server is gone. */
  const own = () => {
    const job = session.jobs.find(id);
    return job?.startedAt === startedAt ? job : undefined;
  };
  const read = async () => {
    const job = own();
    if (job === undefined) {
      return end();
    }
    const { text, line, offset } = await session.jobOutput(id, known.offset, true);
    if (text !== "" || line !== known.line) {
      written.fire(REDRAW + shown(text) + NO_WRAP + shown(line) + WRAP);
    }
    known = { offset, line };
    if (isOpen && job.state === "running") {
      timer = setTimeout(() => void follow(), READ_MS);
    } else {
      end();
    }
  };
  const follow = () => read().catch(end);
  return {
    onDidWrite: written.event,
    open: () => void follow(),
    close: () => {
      isOpen = false;
      clearTimeout(timer);
      closed();
    },
    handleInput: (typed: string) => void (typed === CTRL_C && own() && session.stopJob(id).catch(showFailure)),
  };
}

/** The text for a terminal: colors stay, and all other invisible characters are made visible. */
function shown(text: string): string {
  const parts = text.split(COLORS).map((part, index) => (index % 2 === 1 ? part : visible(part)));
  return parts.join("").replaceAll("\n", "\r\n");
}
