/** Pasted and dropped images and files: images are attached with their bytes, files of the editor by name. */
import type { Send } from "./items";

/** Of the editor's own lists, each a URI a line. */
const LISTS = ["application/vnd.code.uri-list", "text/uri-list"];

/** `false` where there is nothing but text, which the input takes itself. */
export function takeFiles(data: DataTransfer, send: Send): boolean {
  const images = [...data.files].filter(({ type }) => type.startsWith("image/"));
  images.forEach((image) => void sendImage(image, send));
  const uris = LISTS.map((type) => urisOf(data.getData(type))).find((found) => found.length > 0) ?? [];
  if (images.length === 0 && uris.length > 0) {
    send({ type: "attachFiles", uris });
  }
  return images.length > 0 || uris.length > 0;
}

function urisOf(list: string): string[] {
  return list.split(/\r?\n/).filter((line) => /^(file|vscode-remote):/.test(line));
}

async function sendImage(image: File, send: Send): Promise<void> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error("unreadable"));
    reader.readAsDataURL(image);
  });
  send({ type: "image", name: image.name, mimeType: image.type, data: url.slice(url.indexOf(",") + 1) });
}
