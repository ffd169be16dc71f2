/**
 * The chat view: shows the session and handles user input. All actions run here in the extension host, because the webview shows untrusted text.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { commands, Disposable, env, l10n, Uri, type Webview, type WebviewView, type WebviewViewProvider, window, workspace } from "vscode";
import type { Draft } from "./draft";
import { type Attachment, attachmentOfFile, chips, chooseAttachments, imageAttachment, pictureOf } from "./context";
import type { Conversations } from "./conversations";
import { useCode } from "./code";
import { showFailure } from "./failure";
import type { Focus } from "./focus";
import { existing, openLink, openLocation } from "./links";
import { followJob } from "./follow";
import { Flow } from "./flow";
import type { FromView, Remedy, ToView } from "./messages";
import type { Preview } from "./preview";
import type { Renewal } from "./renewal";
import type { Review } from "./review";
import { visible } from "./safe";
import type { Server } from "./server";
import { mentionedSources, sourcesFor } from "./sources";
import type { Session, SessionEvent } from "./session";
import { SetUp } from "./setup";

export const CHAT_VIEW = "tandem.chat";
/** The maximum length of an image in base64, as on the server: providers accept 5 MB of base64. */
const MAX_IMAGE = 5_000_000;
const remedyCommands: Record<Exclude<Remedy, "retry" | "continue">, string> = {
  undo: "tandem.undoLastTurn",
  redo: "tandem.redo",
  folder: "workbench.action.files.openFolder",
  model: "tandem.setModel",
  setup: "tandem.setUp",
  build: "tandem.buildProgram",
  program: "tandem.chooseProgram",
  settings: "tandem.openSettings",
  log: "tandem.showLog",
};

export class ChatView implements WebviewViewProvider, Disposable {
  private view: WebviewView | undefined;
  private listening = false;
  /** Sends text once the view has drawn the previous batch; state updates do not wait. */
  private readonly text = new Flow(() => this.postChanges());
  private stateTimer: NodeJS.Timeout | undefined;
  private wantsFocus = false;
  private wantsTrial = false;
  /** The turn to scroll to. */
  private wantsTurn: number | undefined;
  /** The draft in the input; none before the view is ready. */
  private shown: Draft | undefined;
  /** What is in the input, as far as the view has said. */
  private input = "";
  private readonly subscriptions: Disposable;
  private readonly form: SetUp;
  /** It was shown to a person who had no model yet. */
  private wasOffered = false;

  constructor(
    private readonly extension: Uri,
    private readonly conversations: Conversations,
    private readonly preview: Preview,
    private readonly review: Review,
    server: Server,
    private readonly renewal: Renewal,
    private readonly looking: Focus,
  ) {
    this.form = new SetUp(server, (message) => this.post(message));
    this.subscriptions = Disposable.from(
      window.registerWebviewViewProvider(CHAT_VIEW, this),
      conversations.onEvent((event) => this.happened(event)),
      conversations.onElsewhere(() => this.stateChanged()),
      conversations.onSwitch(() => this.reset()),
      looking.onChange(() => this.stateChanged()),
    );
  }

  resolveWebviewView(view: WebviewView): void {
    this.view = view;
    this.listening = false;
    const dist = Uri.joinPath(this.extension, "dist");
    view.webview.options = { enableScripts: true, enableForms: false, enableCommandUris: false, localResourceRoots: [dist] };
    view.webview.onDidReceiveMessage((message: FromView) => this.receive(message).catch(showFailure));
    view.onDidChangeVisibility(() => {
      this.listening &&= view.visible; // a hidden view is discarded; shown again, it reports that it is ready
    });
    view.onDidDispose(() => {
      if (this.view === view) {
        this.view = undefined;
        this.listening = false;
      }
    });
    view.webview.html = page(view.webview, dist);
    void this.conversations.start();
  }

  /** Shows the chat with the focus in its input. */
  async focus(): Promise<void> {
    this.wantsFocus = true;
    await commands.executeCommand(`${CHAT_VIEW}.focus`);
    this.giveFocus();
  }

  /** Shows the chat and leaves the focus where it is. */
  async reveal(): Promise<void> {
    if (this.view === undefined) {
      await commands.executeCommand(`${CHAT_VIEW}.focus`, { preserveFocus: true });
    } else {
      this.view.show(true);
    }
  }

  /** Sends the draft as a trial; with no draft it begins one. */
  async try(): Promise<void> {
    this.wantsTrial = true;
    await this.focus();
  }

  /** Shows the form that sets up a model. */
  async setUp(): Promise<void> {
    await this.focus();
    try {
      await this.form.open();
    } catch {
      await this.session.open(); // there is no server, and the view shows why
    }
  }

  attach(attachment: Attachment, draft = this.draft): void {
    if (attachment.block.type === "image" && attachment.block.data.length > MAX_IMAGE) {
      void window.showWarningMessage(l10n.t("{0} was not added: images can be at most 3.75 MB.", attachment.label));
      return;
    }
    draft.attach(attachment);
    this.attached();
  }

  async attachFiles(uris: readonly Uri[]): Promise<void> {
    for (const uri of uris) {
      try {
        this.attach(await attachmentOfFile(uri));
      } catch {
        void window.showWarningMessage(l10n.t("{0} was not added: it could not be read.", uri.toString()));
      }
    }
  }

  dispose(): void {
    this.text.reset();
    clearTimeout(this.stateTimer);
    this.subscriptions.dispose();
  }

  private get session() {
    return this.conversations.current;
  }

  private get draft() {
    return this.session.draft;
  }

  private happened(event: SessionEvent): void {
    switch (event.type) {
      case "changed":
        return this.stateChanged();
      case "grew":
        return this.text.soon();
      case "returned":
        return this.showDraft();
      case "asked":
        return void this.announce(
          l10n.t("tandem is waiting for your answer: {0}", visible(event.title)),
          this.view?.visible !== true,
          event.session,
        );
      case "ended":
        return void this.announce(l10n.t("tandem finished: {0}", visible(shortened(event.message.text))), false, this.session);
    }
  }

  private async receive(message: FromView): Promise<void> {
    const session = this.conversations.sessions.find(({ draft }) => draft.number === message.draft) ?? this.session;
    const { draft } = session;
    switch (message.type) {
      case "ready":
        this.listening = true;
        this.shown = undefined;
        this.reset();
        this.giveTurn();
        this.offerSetUp();
        return this.giveFocus();
      case "draft":
        if (draft.number === message.draft) {
          const { isEmpty } = draft;
          draft.text = message.text;
          this.input = draft === this.shown ? message.text : this.input;
          this.conversations.rememberSoon();
          if (isEmpty && !draft.isEmpty) {
            await session.typingBegan();
          }
        }
        return;
      case "cancelEdit":
        draft.cancelEdit();
        return this.showDraft();
      case "drawn":
        return this.text.drawn();
      case "send":
        return this.send(session, message.text, message.now);
      case "complete":
        return this.complete(session, message.request, message.query);
      case "stop":
        return session.stop();
      case "answer":
        return session.questions.answer(message.id, message.optionId);
      case "pick":
        return session.pick(message.what, message.value);
      case "goBack":
        return this.goBack(session, message.id, message.how);
      case "copy":
        return env.clipboard.writeText(message.text);
      case "attach":
        return (await chooseAttachments()).forEach((attachment) => this.attach(attachment));
      case "picture":
        return this.post({ type: "picture", image: message.image, url: pictureOf(message.image) });
      case "image":
        return this.attach(imageAttachment(unused(draft, message.name), message.mimeType, message.data), draft);
      case "attachFiles":
        return this.attachFiles(message.uris.map((uri) => Uri.parse(uri)));
      case "look":
        return this.looking.toggle(message.what);
      case "detach":
        draft.detach(message.index);
        return this.attached();
      case "returnToInput":
        return session.turns.returnToInput(message.index);
      case "job":
        return this.useJob(session, message.what, message.id);
      case "openPort":
        return this.openPort(session, message.id, message.port);
      case "runInBackground":
        return session.runInBackground(message.id);
      case "open":
        return openLocation(message.location, session);
      case "showDiff":
        return this.preview.show(message.id, message.index);
      case "link":
        return openLink(message.href, session);
      case "files":
        return this.post({ type: "files", names: await existing(message.names) });
      case "code":
        return useCode(message, session);
      case "remedy":
        return this.remedy(session, message.remedy, message.id);
      case "setup":
        return this.setupAsked(message);
      case "select":
        return this.conversations.select(message.index);
      case "close":
        return this.conversations.close(message.index);
    }
  }

  private async send(to: Session, text: string, now: boolean): Promise<void> {
    const { draft } = to;
    const { editing, attachments: attached } = draft;
    draft.clear(); // text typed from now on belongs to the next one
    if (draft.text === "") {
      this.stateChanged();
    } else {
      this.showDraft();
    }
    const shown = await this.conversations.shown();
    const session = this.conversations.sessions.includes(to) ? to : shown; // what was restored has taken its place
    const notSent = () => {
      const message = { text, attachments: attached };
      if (editing === undefined) {
        draft.add(message);
      } else {
        draft.edit(message, editing);
      }
      this.showDraft();
      return this.focus(); // a dialog may have had it
    };
    const isNew = ({ label }: Attachment) => !attached.some((one) => one.label === label);
    const attachments = [...attached, ...this.looking.attachments().filter(isNew)];
    try {
      attachments.push(...(await mentionedSources(text)));
    } catch (error) {
      session.transcript.notice(l10n.t("Not sent; moved back to the input: {0}", (error as Error).message));
      return notSent();
    }
    if (editing !== undefined && !(await this.review.restore(session, editing))) {
      return notSent();
    }
    await this.looking.report();
    await (now ? session.turns.steer({ text, attachments }) : session.prompt({ text, attachments }));
  }

  /** Puts an earlier message into the input, or sends it again in its place. */
  private async goBack(session: Session, id: number, how: "edit" | "again"): Promise<void> {
    const sent = session.sent(id);
    if (sent === undefined) {
      return;
    }
    if (how === "edit") {
      session.draft.edit(sent.message, sent.turn);
      this.showDraft();
      return this.focus();
    }
    if (await this.review.restore(session, sent.turn)) {
      await session.prompt({ ...sent.message });
    }
  }

  private async useJob(session: Session, what: "stop" | "terminal", id: number): Promise<void> {
    const job = session.jobs.find(id);
    if (what === "stop") {
      await session.stopJob(id);
    } else if (job !== undefined) {
      followJob(session, job);
    }
  }

  private async openPort(session: Session, id: number, port: number): Promise<void> {
    const url = await session.openPort(id, port);
    if (url !== undefined) {
      // Where VS Code runs in a browser or on another machine, this forwards the port once more.
      await env.openExternal(await env.asExternalUri(Uri.parse(url)));
    }
  }

  private async complete(session: Session, request: number, query: string): Promise<void> {
    this.post({ type: "completions", request, items: [...sourcesFor(query), ...(await session.complete(query))] });
  }

  private showDraft(): void {
    const { text } = this.draft;
    this.post({ type: "draft", text, was: this.input });
    this.input = text;
    this.attached();
  }

  /** The attachments are others. */
  private attached(): void {
    this.conversations.remember();
    this.stateChanged();
  }

  private async setupAsked({ what, request, values }: Extract<FromView, { type: "setup" }>): Promise<void> {
    if (what !== "save") {
      return what === "models" ? this.form.models(request, values) : this.form.check(request, values);
    }
    if (await this.form.save(request, values)) {
      await this.renewal.now();
      this.post({ type: "setupDone" });
    }
  }

  private async remedy(session: Session, remedy: Remedy, id?: number): Promise<void> {
    if (remedy !== "retry" && remedy !== "continue") {
      await commands.executeCommand(remedyCommands[remedy]);
    } else if (id !== undefined) {
      await session.remedy(id, remedy);
    } else {
      await session.open();
    }
  }

  private giveFocus(): void {
    if (this.wantsFocus && this.listening) {
      this.wantsFocus = false;
      this.post({ type: "focus" });
      if (this.wantsTrial) {
        this.wantsTrial = false;
        this.post({ type: "try" });
      }
    }
  }

  private reset(): void {
    this.text.reset();
    const { draft } = this;
    const { number, text } = draft;
    const isOther = draft !== this.shown; // otherwise, text typed meanwhile would be lost
    this.shown = draft;
    this.input = isOther ? text : this.input;
    this.post({ type: "reset", items: this.session.transcript.all(), state: this.state(), ...(isOther && { draft: { number, text } }) });
  }

  /** Scrolls to a turn of the conversation that is shown. */
  showTurn(turn: number): void {
    this.wantsTurn = turn;
    this.giveTurn();
  }

  private giveTurn(): void {
    if (this.wantsTurn !== undefined && this.listening) {
      this.post({ type: "showTurn", turn: this.wantsTurn });
      this.wantsTurn = undefined;
    }
  }

  private stateChanged(): void {
    if (this.view !== undefined) {
      const { asking } = this.conversations; // seen when the chat is hidden
      this.view.badge = asking > 0 ? { value: asking, tooltip: l10n.t("tandem is waiting for your answer") } : undefined;
    }
    this.text.soon();
    this.stateTimer ??= setTimeout(() => {
      this.stateTimer = undefined;
      this.post({ type: "state", state: this.state() });
      this.offerSetUp();
    });
  }

  /** Without a model, setting one up comes first. */
  private offerSetUp(): void {
    const { state, transcript } = this.session;
    if (state.phase === "no_model" && transcript.isEmpty && this.listening && !this.wasOffered) {
      this.wasOffered = true;
      void this.form.open(false).catch(() => undefined); // without a server, something else has to be done, which the view shows
    }
  }

  private postChanges(): boolean {
    const changes = this.listening ? this.session.transcript.takeChanges() : [];
    if (changes.length > 0) {
      this.post({ type: "changes", changes });
    }
    return changes.length > 0;
  }

  private state() {
    const { labels } = this.conversations;
    const attachments = chips(this.draft.attachments);
    const isEditing = this.draft.editing !== undefined;
    return { ...this.session.state, attachments, isEditing, looking: this.looking.looking, conversations: labels };
  }

  private post(message: ToView): void {
    if (this.listening) {
      void this.view?.webview.postMessage(message);
    }
  }

  /** Notifies without taking the focus: always if `must`, otherwise only if enabled and the window is not focused. */
  private async announce(words: string, must: boolean, session: Session): Promise<void> {
    const isWanted = !window.state.focused && workspace.getConfiguration("tandem").get("notify", false);
    if (!must && !isWanted) {
      return;
    }
    const show = l10n.t("Show");
    const picked = await window.showInformationMessage(words, show);
    if (picked === show) {
      this.conversations.reveal(session);
      await this.focus();
    }
  }
}

/** A label no attachment has yet: pasted images all have the same name. */
function unused({ attachments }: Draft, name: string): string {
  let label = name;
  for (let count = 2; attachments.some((one) => one.label === label); count++) {
    label = `${name} (${count})`;
  }
  return label;
}

function shortened(text: string): string {
  const [line = ""] = text.trim().split("\n");
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

/** Style and script are inlined in the page, because loading each of them would delay a starting window. */
function page(webview: Webview, dist: Uri): string {
  const nonce = randomBytes(16).toString("base64");
  const file = (name: string) => readFileSync(Uri.joinPath(dist, name).fsPath, "utf8");
  const policy = `default-src 'none'; style-src 'nonce-${nonce}' ${webview.cspSource}; script-src 'nonce-${nonce}'; connect-src ${webview.cspSource}; img-src data:; worker-src blob:`;
  return `<!doctype html>
<html lang="${env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">${file("chat.css")}</style>
<title>tandem</title>
</head>
<body>
<script type="application/json" id="words">${JSON.stringify(l10n.bundle ?? {}).replaceAll("<", "\\u003c")}</script>
<script nonce="${nonce}" data-dist="${webview.asWebviewUri(dist).toString()}">${file("webview.js")}</script>
</body>
</html>`;
}
