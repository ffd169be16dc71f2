/** The texts of the view in the editor's language; the extension puts them into the page. */

interface Page {
  getElementById(id: string): { readonly textContent: string | null } | null;
}

/** There is none in the unit tests. */
const page = (globalThis as { document?: Page }).document;
const translated: Record<string, string> = JSON.parse(page?.getElementById("words")?.textContent ?? "{}");

/** `t("{0} of {1}", 1, 2)`; English where there is no translation. */
export function t(text: string, ...values: (string | number)[]): string {
  return (translated[text] ?? text).replace(/\{(\d+)\}/g, (_, index: string) => String(values[Number(index)] ?? ""));
}
