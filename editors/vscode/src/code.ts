/** The buttons of a code block. A model wrote the text, so nothing runs, and no file changes, without the user. */
import { commands, type Disposable, env, l10n, Uri, window, workspace } from "vscode";
import { currentEditor, fileAttachment, show } from "./context";
import { cellOf } from "./notebooks";
import type { CodeAction } from "./messages";
import { visible } from "./safe";
import type { Session } from "./session";
import { fenced } from "./transcript";

/** Documents whose text is in their address. */
const SCHEME = "tandem-diagram";

interface Code {
  readonly action: CodeAction;
  readonly text: string;
  readonly language: string;
}

export async function useCode({ action, text, language }: Code, session: Session): Promise<void> {
  switch (action) {
    case "copy":
      return env.clipboard.writeText(text);
    case "insert":
      return insert(text);
    case "apply":
      return apply(text, language, session);
    case "run":
      return run(text);
    case "diagram":
      return diagram(text);
  }
}

export function provideDiagrams(): Disposable {
  return workspace.registerTextDocumentContentProvider(SCHEME, { provideTextDocumentContent: ({ query }) => query });
}

/** VS Code's Markdown preview draws it. Nothing but a diagram is given to it: other Markdown could load images. */
async function diagram(text: string): Promise<void> {
  const uri = Uri.from({ scheme: SCHEME, path: `/${l10n.t("Diagram")}.md`, query: fenced(text, "mermaid") });
  await commands.executeCommand("markdown.showPreview", uri);
}

/** Replaces the selection, in one undo step. */
async function insert(text: string): Promise<void> {
  const editor = currentEditor();
  if (editor === undefined) {
    void window.showInformationMessage(l10n.t("Open a file to insert the code into."));
    return;
  }
  await editor.edit((edit) => edit.replace(editor.selection, text.replace(/\n$/, "")));
  await show(editor.document, editor.viewColumn);
}

/** Asks the model to apply the code, as an edit that requires approval and can be reviewed. */
async function apply(text: string, language: string, session: Session): Promise<void> {
  const editor = currentEditor();
  if (editor === undefined) {
    void window.showInformationMessage(l10n.t("Open the file to apply the code to."));
    return;
  }
  const attachment = fileAttachment((cellOf(editor.document)?.notebook ?? editor.document).uri);
  const words = l10n.t("Apply this code to {0}, and change nothing else:", attachment.label);
  await session.prompt({ text: `${words}\n\n${fenced(text, language)}`, attachments: [attachment] });
}

/** Types one line and does not run it. Several lines would run at once, so they need confirmation. */
async function run(text: string): Promise<void> {
  const command = text.trimEnd();
  const isSeveral = command.includes("\n");
  if (isSeveral || visible(command) !== command) {
    const yes = l10n.t("Run");
    const picked = await window.showWarningMessage(
      l10n.t("Run these lines in the terminal?"),
      { modal: true, detail: visible(command) },
      yes,
    );
    if (picked !== yes) {
      return;
    }
  }
  const active = window.activeTerminal;
  // The one of a background command, or of a task, takes no input.
  const terminal = active === undefined || "pty" in active.creationOptions ? window.createTerminal("tandem") : active;
  terminal.show();
  terminal.sendText(command, isSeveral);
}
