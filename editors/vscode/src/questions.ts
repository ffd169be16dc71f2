/** Open permission requests. Invariant: each is answered exactly once, with "cancelled" when it is withdrawn. */
import type { CancellationToken } from "vscode";
import type { PermissionOption, PermissionResult } from "./protocol";

export const cancelled: PermissionResult = { outcome: { outcome: "cancelled" } };

interface Question {
  readonly options: readonly PermissionOption[];
  readonly answer: (result: PermissionResult) => void;
}

export class Questions {
  private readonly open = new Map<number, Question>();

  /** `closed` is called for every permission request that is no longer open. */
  constructor(private readonly closed: (id: number, result: PermissionResult) => void) {}

  get ids(): number[] {
    return [...this.open.keys()];
  }

  get areOpen(): boolean {
    return this.open.size > 0;
  }

  ask(id: number, options: readonly PermissionOption[], token: CancellationToken): Promise<PermissionResult> {
    return new Promise((answer) => {
      this.open.set(id, { options, answer });
      token.onCancellationRequested(() => this.close(id, cancelled));
    });
  }

  /** With this rule instead of the option's own, if given. */
  answer(id: number, optionId: string, rule?: string): void {
    this.close(id, { outcome: { outcome: "selected", optionId }, ...(rule !== undefined && { _meta: { tandem: { rule } } }) });
  }

  /** Answers this question, if it is open and has such an option. */
  answerKind(id: number, kind: PermissionOption["kind"]): void {
    const option = this.open.get(id)?.options.find((one) => one.kind === kind);
    if (option !== undefined) {
      this.answer(id, option.optionId);
    }
  }

  /** Answers the oldest question that has such an option. */
  answerFirst(kind: PermissionOption["kind"]): void {
    const first = this.first(kind);
    const [option] = first?.options ?? [];
    if (first !== undefined && option !== undefined) {
      this.answer(first.id, option.optionId);
    }
  }

  /** The oldest permission request that has such options. Questions from the model do not count: they ask for no permission. */
  first(kind: PermissionOption["kind"]): { id: number; options: PermissionOption[] } | undefined {
    const permits = (option: PermissionOption): boolean => option.kind === kind && !option.optionId.startsWith("answer_");
    const all = [...this.open].map(([id, { options }]) => ({ id, options: options.filter(permits) }));
    return all.find(({ options }) => options.length > 0);
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
      this.closed(id, result);
      question.answer(result);
    }
  }
}
