/**
 * The text before tandem's pending changes, for the editor's own gutter: a click there shows what was removed. VS Code accepts such a text only from source
 * control providers, so there is one while changes are pending.
 */
import { type Disposable, scm, type SourceControl, type Uri } from "vscode";
import type { Before } from "./before";
import type { Review } from "./review";

export class Gutter implements Disposable {
  private control: SourceControl | undefined;
  private files = "";
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

  /** VS Code asks once per file and source control. */
  private update(): void {
    const files = [...new Set(this.review.all().map(({ file }) => file.path))].sort().join("\n");
    if (files !== this.files) {
      this.files = files;
      this.control?.dispose();
      this.control = files === "" ? undefined : this.register();
    }
  }

  private register(): SourceControl {
    const control = scm.createSourceControl("tandem", "tandem");
    control.inputBox.visible = false;
    control.quickDiffProvider = {
      provideOriginalResource: (uri: Uri) => (this.review.of(uri).length > 0 ? this.before.ofAll(uri) : undefined),
    };
    return control;
  }
}
