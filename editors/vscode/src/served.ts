/** The names that the server gives modes and answers, in the editor's language. */
import { l10n } from "vscode";

/**
 * What follows a colon is a rule, and stays as it is. For translators: t("Plan"), t("Reads only"), t("Ask before edits"),
 * t("Edits and commands require approval"), t("Accept edits"), t("Edits are applied; commands require approval"), t("Auto"),
 * t("Edits are applied, commands run in the sandbox; protected files require approval"), t("Allow"), t("Allow All of This Turn"), t("Always (session)"),
 * t("Always (project)"), t("Reject"), t("Apply"), t("Discard"), t("Open in the Browser"), t("Not Now"), t("Start"), t("Start in a New Session"),
 * t("Revise"), t("Answer in the Chat"), t("No Answer").
 */
export function translated(name: string): string {
  return name.replace(/^[^:]+/, (words) => l10n.t(words));
}
