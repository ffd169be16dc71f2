/** Markup cut at line ends. Pure. */

/** The same markup, in which every element ends with its line and begins again on the next. */
export function closedLines(markup: string): string {
  const open: string[] = [];
  return markup
    .split("\n")
    .map((line) => {
      const before = open.join("");
      for (const [tag] of line.matchAll(/<\/?span[^>]*>/g)) {
        if (tag.startsWith("</")) {
          open.pop();
        } else {
          open.push(tag);
        }
      }
      return before + line + "</span>".repeat(open.length);
    })
    .join("\n");
}
