/** A background command in a terminal of VS Code: its output as it comes. Ctrl+C stops the command; closing the terminal does not. */
import { EventEmitter, l10n, type Terminal, window } from "vscode";
import type * as protocol from "./protocol";
import { visible } from "./safe";
import type { Session } from "./session";

/** How often more is read, in milliseconds. */
const READ_MS = 500;
const CTRL_C = "\u0003";

const terminals = new Map<string, Terminal>();

export function followJob(session: Session, job: protocol.Job): void {
  const key = `${session.current}:${job.id}`;
  const known = terminals.get(key);
  if (known !== undefined && known.exitStatus === undefined) {
    known.show();
    return;
  }
  const name = l10n.t("Job {0}: {1}", job.id, visible(job.command).split("\n", 1)[0] ?? "");
  const terminal = window.createTerminal({ name, pty: output(session, job.id) });
  terminals.set(key, terminal);
  terminal.show();
}

function output(session: Session, id: number) {
  const written = new EventEmitter<string>();
  let offset: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isOpen = true;
  const write = (text: string) => written.fire(text.replaceAll("\n", "\r\n"));
  const read = async () => {
    const piece = await session.jobOutput(id, offset);
    if (offset === undefined && piece.truncated) {
      write(`${l10n.t("… earlier output left out")}\n`);
    }
    write(visible(piece.text));
    const hasMore = piece.text !== "";
    offset = piece.offset;
    if (isOpen && (hasMore || session.jobs.find(id)?.state === "running")) {
      timer = setTimeout(() => void follow(), hasMore ? 0 : READ_MS);
    } else {
      write(`\n${l10n.t("The command has ended.")}\n`);
    }
  };
  const follow = () => read().catch(() => write(`\n${l10n.t("The command has ended.")}\n`));
  return {
    onDidWrite: written.event,
    open: () => void follow(),
    close: () => {
      isOpen = false;
      clearTimeout(timer);
    },
    handleInput: (typed: string) => void (typed === CTRL_C && session.stopJob(id)),
  };
}
