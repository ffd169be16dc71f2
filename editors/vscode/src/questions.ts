/** The permission questions that wait for the person. Invariant: each is answered exactly once, with "cancelled" when it is withdrawn. */
import type { CancellationToken } from "vscode";
import type { PermissionOption, PermissionResult } from "./protocol";

export const cancelled: PermissionResult = { outcome: { outcome: "cancelled" } };

interface Question {
  readonly options: readonly PermissionOption[];
  readonly answer: (result: PermissionResult) => void;
}

export class Questions {
  private readonly open = new Map<number, Question>();

  /** `closed` hears of every question that is open no more. */
  constructor(private readonly closed: (id: number) => void) {}

  get areOpen(): boolean {
    return this.open.size > 0;
  }

  ask(id: number, options: readonly PermissionOption[], token: CancellationToken): Promise<PermissionResult> {
    return new Promise((answer) => {
      this.open.set(id, { options, answer });
      token.onCancellationRequested(() => this.close(id, cancelled));
    });
  }

  answer(id: number, optionId: string): void {
    this.close(id, { outcome: { outcome: "selected", optionId } });
  }

  /** Answers the oldest question that has such an option. */
  answerFirst(kind: PermissionOption["kind"]): void {
    for (const [id, { options }] of this.open) {
      const option = options.find((candidate) => candidate.kind === kind);
      if (option !== undefined) {
        this.answer(id, option.optionId);
        return;
      }
    }
  }

  withdraw(): void {
    for (const id of [...this.open.keys()]) {
      this.close(id, cancelled);
    }
  }

  private close(id: number, result: PermissionResult): void {
    const question = this.open.get(id);
    if (question !== undefined) {
      this.open.delete(id);
      this.closed(id);
      question.answer(result);
    }
  }
}
