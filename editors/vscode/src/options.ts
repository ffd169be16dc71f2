/** The mode, the model and the other options of a session, as the server lists them. */
import { l10n } from "vscode";
import type { Picker } from "./messages";
import type { ConfigOption, OpenedSession, SessionModes } from "./protocol";
import { translated } from "./served";

export class Options {
  private modes: SessionModes | undefined;
  private others: readonly ConfigOption[] = [];

  take({ modes, configOptions }: OpenedSession): void {
    this.modes = modes ?? undefined;
    this.others = configOptions ?? [];
  }

  set mode(currentModeId: string) {
    if (this.modes !== undefined) {
      this.modes = { ...this.modes, currentModeId };
    }
  }

  set configured(options: readonly ConfigOption[]) {
    this.others = options;
  }

  get haveModel(): boolean {
    return this.others.some(({ id }) => id === "model");
  }

  /** The mode, with a description of each choice, and the other options. */
  get pickers(): Picker[] {
    const { modes } = this;
    const choices = modes?.availableModes.map(({ id, name, description }) => ({
      value: id,
      name: translated(name),
      ...(description && { description: translated(description) }),
    }));
    const others = this.others.filter(({ id, type }) => id !== "mode" && type === "select");
    return [
      ...(modes && choices ? [{ id: "mode", name: l10n.t("Mode"), current: modes.currentModeId, choices }] : []),
      ...others.map(({ id, name, currentValue, options }) => ({ id, name, current: currentValue, choices: options })),
    ];
  }
}
