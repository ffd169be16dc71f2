/** Code actions on a selection and on a diagnostic. They are offered when the user asks for actions, never to the automatic light bulb. */
import {
  l10n,
  CodeAction,
  type CodeActionContext,
  CodeActionKind,
  type CodeActionProvider,
  CodeActionTriggerKind,
  type Diagnostic,
  type Disposable,
  languages,
  type Range,
  type Selection,
  type TextDocument,
} from "vscode";
import { contains } from "./hunks";
import type { Hunk, Review } from "./review";

export function registerActions(review: Review): Disposable {
  const selector = [{ scheme: "file" }, { scheme: "untitled" }];
  return languages.registerCodeActionsProvider(selector, new Actions(review), {
    providedCodeActionKinds: [CodeActionKind.QuickFix, CodeActionKind.RefactorRewrite],
  });
}

class Actions implements CodeActionProvider {
  constructor(private readonly review: Review) {}

  provideCodeActions(document: TextDocument, range: Range | Selection, context: CodeActionContext): CodeAction[] {
    if (context.triggerKind !== CodeActionTriggerKind.Invoke) {
      return [];
    }
    const fixes = context.diagnostics.map((diagnostic) => fix(document, diagnostic));
    const decisions = this.review.of(document.uri).filter(({ hunk }) => contains(hunk, range.start.line));
    const first = [...decisions.flatMap(onHunk), ...fixes];
    return range.isEmpty ? first : [...first, ...onSelection()];
  }
}

function fix({ uri }: TextDocument, diagnostic: Diagnostic): CodeAction {
  const fixing = action(CodeActionKind.QuickFix, l10n.t("Fix with tandem"), "tandem.fix", uri, diagnostic);
  fixing.diagnostics = [diagnostic];
  return fixing;
}

function onHunk(hunk: Hunk): CodeAction[] {
  return [
    action(CodeActionKind.QuickFix, l10n.t("Keep This Change"), "tandem.keepChange", hunk),
    action(CodeActionKind.QuickFix, l10n.t("Reject This Change"), "tandem.rejectChange", hunk),
  ];
}

function onSelection(): CodeAction[] {
  return [
    action(CodeActionKind.RefactorRewrite, l10n.t("Ask tandem About Selection"), "tandem.askSelection"),
    action(CodeActionKind.RefactorRewrite, l10n.t("Explain Selection With tandem"), "tandem.explainSelection"),
    action(CodeActionKind.RefactorRewrite, l10n.t("Edit Selection With tandem…"), "tandem.editSelection"),
  ];
}

function action(kind: CodeActionKind, title: string, command: string, ...args: unknown[]): CodeAction {
  const one = new CodeAction(title, kind);
  one.command = { command, title, arguments: args };
  return one;
}
