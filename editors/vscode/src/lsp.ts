/** Converts the results of the editor's own commands to LSP's types. */
import type {
  CallHierarchyItem,
  DocumentSymbol,
  Hover,
  Location,
  LocationLink,
  MarkdownString,
  MarkedString,
  SymbolInformation,
  TextEdit,
  Uri,
} from "vscode";
import type * as lsp from "vscode-languageclient";
import type { LanguageClient } from "vscode-languageclient/node";

/** The editor returns both combined, or the older of the two. */
export type EditorSymbol = SymbolInformation & Partial<DocumentSymbol>;

export class Converter {
  readonly range: (range: import("vscode").Range) => lsp.Range;

  constructor(private readonly wire: LanguageClient["code2ProtocolConverter"]) {
    this.range = (range) => wire.asRange(range);
  }

  location(place: Location | LocationLink): lsp.Location {
    return "targetUri" in place
      ? { uri: this.wire.asUri(place.targetUri), range: this.range(place.targetSelectionRange ?? place.targetRange) }
      : { uri: this.wire.asUri(place.uri), range: this.range(place.range) };
  }

  hover(hovers: readonly Hover[]): lsp.Hover {
    const value = hovers.flatMap(({ contents }) => contents.map(markdown)).filter(Boolean);
    const range = hovers[0]?.range;
    return { contents: { kind: "markdown", value: value.join("\n\n") }, ...(range && { range: this.range(range) }) };
  }

  documentSymbol(symbol: EditorSymbol): lsp.DocumentSymbol | lsp.SymbolInformation {
    const { name, detail, children, range, selectionRange } = symbol;
    if (range === undefined || selectionRange === undefined) {
      return this.workspaceSymbol(symbol);
    }
    const inside = (children ?? []).map((child) => this.documentSymbol(child as EditorSymbol) as lsp.DocumentSymbol);
    const own = { name, kind: kind(symbol.kind), range: this.range(range), selectionRange: this.range(selectionRange) };
    return { ...own, ...(detail && { detail }), ...(inside.length > 0 && { children: inside }) };
  }

  workspaceSymbol({ name, kind: of, containerName, location }: SymbolInformation): lsp.SymbolInformation {
    return { name, kind: kind(of), location: this.location(location), ...(containerName && { containerName }) };
  }

  callItem({ name, detail, uri, range, selectionRange, kind: of }: CallHierarchyItem): lsp.CallHierarchyItem {
    const place = { uri: this.wire.asUri(uri), range: this.range(range), selectionRange: this.range(selectionRange) };
    return { name, kind: kind(of), ...(detail && { detail }), ...place };
  }

  workspaceEdit(entries: readonly (readonly [Uri, readonly TextEdit[]])[]): lsp.WorkspaceEdit {
    const edits = entries.map(([uri, edits]): [string, lsp.TextEdit[]] => [
      this.wire.asUri(uri),
      edits.map(({ range, newText }) => ({ range: this.range(range), newText })),
    ]);
    return { changes: Object.fromEntries(edits) };
  }
}

function markdown(content: MarkdownString | MarkedString): string {
  if (typeof content === "string") {
    return content;
  }
  return "language" in content ? `\`\`\`${content.language}\n${content.value}\n\`\`\`` : content.value;
}

/** The editor counts from 0, the protocol from 1. */
function kind(of: number): lsp.SymbolKind {
  return (of + 1) as lsp.SymbolKind;
}
