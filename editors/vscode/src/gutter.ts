/**
 * The text before tandem's pending changes, for the editor's own gutter: a click there shows what was removed. VS Code accepts such a text only from source
 * control providers, so there is one while changes are pending, with their files.
 */
import { type Disposable, l10n, scm, type SourceControl, type SourceControlResourceGroup, Uri } from "vscode";
import type { Before } from "./before";
import type { Hunk, Review } from "./review";

export class Gutter implements Disposable {
  private control: SourceControl | undefined;
  private group: SourceControlResourceGroup | undefined;
  private readonly subscription: Disposable;

  constructor(
    private readonly review: Review,
    private readonly before: Before,
  ) {
    this.subscription = review.onChange(() => this.update());
  }

  dispose(): void {
    this.subscription.dispose();
    this.control?.dispose();
  }

  /** VS Code asks for the texts again when the files are listed again. */
  private update(): void {
    const changed = new Map(this.review.all().map((one) => [one.file.path, one]));
    if (changed.size === 0) {
      this.control?.dispose();
      this.control = this.group = undefined;
      return;
    }
    this.control ??= this.register();
    this.group ??= this.control.createResourceGroup("review", l10n.t("Changes to Review"));
    this.group.resourceStates = [...changed.values()].map(({ session, turn, file }: Hunk) => ({
      resourceUri: Uri.file(file.path),
      command: { command: "tandem.openChange", title: l10n.t("Open Change"), arguments: [{ session, turn, file }] },
    }));
  }

  private register(): SourceControl {
    const control = scm.createSourceControl("tandem", "tandem");
    control.inputBox.visible = false;
    control.count = 0; // the bicycle counts them
    control.quickDiffProvider = {
      provideOriginalResource: (uri: Uri) => (this.review.of(uri).length > 0 ? this.before.ofAll(uri) : undefined),
    };
    return control;
  }
}
