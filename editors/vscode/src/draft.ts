/** The unsent message of a conversation: its text, its attachments, and the earlier message that it replaces. Pure. */
import type { Attachment } from "./context";
import type { Message } from "./turns";

const EMPTY: Message = { text: "", attachments: [] };
let drafts = 0;

export class Draft {
  /** The view names it in its messages. */
  readonly number = ++drafts;
  private content = EMPTY;
  /** The turn that begins with the message being edited, and the previous draft. */
  private replaced: { readonly turn: number; readonly before: Message } | undefined;

  get text(): string {
    return this.content.text;
  }

  set text(text: string) {
    this.content = { ...this.content, text };
  }

  /** All that was not sent, with the previous draft. It is saved as one types, so images, which are large, are not in it. */
  get unsent(): Message | undefined {
    const all = new Draft();
    [this.replaced?.before ?? EMPTY, this.content].forEach((one) => all.add(one));
    const attachments = all.attachments.filter(({ block }) => block.type !== "image");
    return all.text === "" && attachments.length === 0 ? undefined : { text: all.text, attachments };
  }

  get attachments(): readonly Attachment[] {
    return this.content.attachments;
  }

  get isEmpty(): boolean {
    return this.text.trim() === "" && this.attachments.length === 0;
  }

  /** The turn to go back to when it is sent. */
  get editing(): number | undefined {
    return this.replaced?.turn;
  }

  /** Replaces what is from the same place, such as the earlier text of a selection. */
  attach(attachment: Attachment): void {
    const place = placeOf(attachment);
    const others = this.attachments.filter((one) => placeOf(one) !== place);
    this.content = { ...this.content, attachments: [...others, attachment] };
  }

  detach(index: number): void {
    this.content = { ...this.content, attachments: this.attachments.filter((_, other) => other !== index) };
  }

  /** Adds a message that was not sent, unless it is there: after a crash and a reload, it is in the saved draft and in the server's journal. */
  add({ text, attachments }: Message): void {
    if (!`\n\n${this.text}\n\n`.includes(`\n\n${text}\n\n`)) {
      this.text = joined(this.text, text);
    }
    attachments.forEach((attachment) => this.attach(attachment));
  }

  /** Begins to edit an earlier message, which begins this turn. */
  edit({ text, attachments }: Message, turn: number): void {
    this.replaced = { turn, before: this.replaced?.before ?? this.content };
    this.content = { text, attachments };
  }

  /** Ends editing, and restores the previous draft. */
  cancelEdit(): void {
    this.content = this.replaced?.before ?? this.content;
    this.replaced = undefined;
  }

  /** It was sent: the draft from before an edit remains. */
  clear(): void {
    this.content = this.replaced?.before ?? EMPTY;
    this.replaced = undefined;
  }
}

function joined(first: string, second: string): string {
  return first.trim() === "" ? second : second.trim() === "" ? first : `${first}\n\n${second}`;
}

/** Files have the same name in many folders, so it is the address; what has none, such as a comment, is only itself. */
function placeOf(attachment: Attachment): string {
  const { block } = attachment;
  return block.type === "resource_link" ? block.uri : block.type === "resource" ? block.resource.uri : JSON.stringify(attachment);
}
