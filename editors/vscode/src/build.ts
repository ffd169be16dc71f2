/** Builds the program from the clone in which the extension was built: an extension of a release has the program inside. */
import { l10n, ProcessExecution, Task, TaskRevealKind, tasks, TaskScope } from "vscode";
import type { Conversations } from "./conversations";
import { cloneToBuild } from "./launch";

/** Installs the executable where Cargo does, in a terminal that shows the progress; then the server starts. */
export async function buildProgram(conversations: Conversations): Promise<void> {
  const run = new ProcessExecution("cargo", ["install", "--locked", "--path", cloneToBuild()]);
  const task = new Task({ type: "tandem.build" }, TaskScope.Workspace, l10n.t("Build tandem (takes 2 to 10 minutes)"), "tandem", run, []);
  task.presentationOptions = { reveal: TaskRevealKind.Always };
  const execution = await tasks.executeTask(task);
  const ended = tasks.onDidEndTaskProcess(async ({ execution: other, exitCode }) => {
    if (other === execution) {
      ended.dispose();
      await (exitCode === 0 ? conversations.restart() : undefined);
    }
  });
}
