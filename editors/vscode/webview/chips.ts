/** The attachments of a message: a label each, and a thumbnail for an image. */
import type { Chip, ToView } from "../src/messages";
import { visible } from "../src/safe";
import { h, type Child } from "./dom";
import type { Send } from "./items";

/** The address of each image, once it is known. */
const urls = new Map<number, Promise<string>>();
const waiting = new Map<number, (url: string) => void>();
let ask: Send = () => {};

export function chip({ label, image }: Chip, ...more: Child[]): HTMLElement {
  const name = visible(label);
  return h(
    "span",
    { class: "chip", title: name },
    image !== undefined && picture(image),
    h("span", { class: "chip-label" }, name),
    ...more,
  );
}

export function askForPictures(send: Send): void {
  ask = send;
}

export function takePicture({ image, url }: ToView & { type: "picture" }): void {
  waiting.get(image)?.(url);
  waiting.delete(image);
}

/** Nothing where it cannot be shown, such as an image of a session that was restored without it. */
function picture(image: number): HTMLElement {
  const shown = h("img", { class: "thumbnail", alt: "" });
  shown.addEventListener("error", () => shown.remove());
  void address(image).then((url) => shown.setAttribute("src", url));
  return shown;
}

function address(image: number): Promise<string> {
  const known = urls.get(image);
  if (known !== undefined) {
    return known;
  }
  const url = new Promise<string>((resolve) => waiting.set(image, resolve));
  urls.set(image, url);
  ask({ type: "picture", image });
  return url;
}
