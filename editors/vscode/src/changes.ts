/** The tree of pending changes: turns, their files, their hunks. */
import { existsSync } from "node:fs";
import { basename, dirname, relative } from "node:path";
import {
  l10n,
  type Disposable,
  EventEmitter,
  ThemeIcon,
  type TreeDataProvider,
  TreeItem,
  TreeItemCollapsibleState,
  type TreeView,
  Uri,
  window,
  workspace,
} from "vscode";
import { counted, shape, summary } from "./hunks";
import type { Part, Review } from "./review";
import { isNotebook } from "./notebooks";
import { visible } from "./safe";

export const CHANGES_VIEW = "tandem.changes";

export class Changes implements TreeDataProvider<Part>, Disposable {
  private readonly changed = new EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: TreeView<Part>;
  private readonly subscription: Disposable;

  constructor(private readonly review: Review) {
    this.view = window.createTreeView(CHANGES_VIEW, { treeDataProvider: this, showCollapseAll: true });
    this.subscription = review.onChange(() => this.redraw());
  }

  getChildren(part?: Part): Part[] {
    if (part === undefined) {
      return this.review.turns.reverse();
    }
    const { turn, file, hunk } = part;
    if (file === undefined) {
      return turn.files.map((one) => ({ ...part, file: one }));
    }
    return hunk === undefined ? file.hunks.map((one) => ({ ...part, hunk: one })) : [];
  }

  getTreeItem(part: Part): TreeItem {
    const { session, turn, file, hunk } = part;
    const item =
      hunk !== undefined && file !== undefined
        ? hunkItem(hunk, isNotebook(file))
        : file !== undefined
          ? fileItem(file)
          : this.turnItem(part);
    item.id = [session.savedId, turn.turn, file?.path, hunk?.id].filter((one) => one !== undefined).join(":");
    if (file !== undefined) {
      item.command = { command: "tandem.openChange", title: l10n.t("Open Change"), arguments: [part] };
    }
    return item;
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }

  private redraw(): void {
    const { count } = this.review;
    this.view.badge = count > 0 ? { value: count, tooltip: l10n.t("{0} to review", counted(count)) } : undefined;
    this.changed.fire();
  }

  private turnItem(part: Part): TreeItem {
    const item = new TreeItem(visible(this.review.title(part)), TreeItemCollapsibleState.Expanded);
    item.description = counted(part.turn.files.flatMap(({ hunks }) => hunks).length);
    item.iconPath = new ThemeIcon("comment");
    item.contextValue = "turn";
    return item;
  }
}

function fileItem({ path, created }: NonNullable<Part["file"]>): TreeItem {
  const item = new TreeItem(Uri.file(path), TreeItemCollapsibleState.Expanded);
  const root = workspace.getWorkspaceFolder(Uri.file(path))?.uri.fsPath;
  const folder = root === undefined ? dirname(path) : relative(root, dirname(path));
  const became = created ? l10n.t("new") : !existsSync(path) && l10n.t("deleted");
  item.description = [folder, became].filter(Boolean).join(" · ");
  item.iconPath = ThemeIcon.File;
  item.contextValue = "file";
  item.accessibilityInformation = { label: became ? `${basename(path)}, ${became}` : basename(path) };
  return item;
}

const shapes = { added: l10n.t("added"), removed: l10n.t("removed"), modified: l10n.t("modified") };

function hunkItem(hunk: NonNullable<Part["hunk"]>, ofNotebook: boolean): TreeItem {
  const text = visible(summary(hunk, ofNotebook));
  const item = new TreeItem(`${ofNotebook ? "" : `${hunk.new.start}: `}${text || l10n.t("blank lines")}`);
  item.iconPath = new ThemeIcon(`diff-${shape(hunk)}`);
  item.contextValue = "hunk";
  item.accessibilityInformation = { label: l10n.t("{0}, line {1}: {2}", shapes[shape(hunk)], hunk.new.start, text) };
  return item;
}
