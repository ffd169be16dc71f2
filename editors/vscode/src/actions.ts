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

function fix(document: TextDocument, diagnostic: Diagnostic): CodeAction {
  const action = new CodeAction(l10n.t("Fix with tandem"), CodeActionKind.QuickFix);
  action.diagnostics = [diagnostic];
  action.command = { command: "tandem.fix", title: action.title, arguments: [document.uri, diagnostic] };
  return action;
}

function onHunk(hunk: Hunk): CodeAction[] {
  return [[l10n.t("Keep This Change"), "tandem.keepChange"] as const, [l10n.t("Reject This Change"), "tandem.rejectChange"] as const].map(
    ([title, command]) => {
      const action = new CodeAction(title, CodeActionKind.QuickFix);
      action.command = { command, title, arguments: [hunk] };
      return action;
    },
  );
}

function onSelection(): CodeAction[] {
  return [
    [l10n.t("Ask tandem About Selection"), "tandem.askSelection"] as const,
    [l10n.t("Explain Selection With tandem"), "tandem.explainSelection"] as const,
    [l10n.t("Edit Selection With tandem…"), "tandem.editSelection"] as const,
  ].map(([title, command]) => {
    const action = new CodeAction(title, CodeActionKind.RefactorRewrite);
    action.command = { command, title };
    return action;
  });
}
