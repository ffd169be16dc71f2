/** Tells the server what the person is looking at, once it rests: a moving cursor says nothing. */
import { type Disposable, Range, type TextEditor, window } from "vscode";
import { currentEditor } from "./context";
import { didFocus } from "./protocol";
import type { Server } from "./server";

const REST_MS = 200;

export function followFocus(server: Server): Disposable {
  let timer: NodeJS.Timeout | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void send(server, currentEditor()), REST_MS);
  };
  const subscriptions = [
    window.onDidChangeActiveTextEditor(soon),
    window.onDidChangeTextEditorSelection(soon),
    window.onDidChangeTextEditorVisibleRanges(soon),
  ];
  return {
    dispose: () => {
      clearTimeout(timer);
      subscriptions.forEach((subscription) => void subscription.dispose());
    },
  };
}

async function send(server: Server, editor: TextEditor | undefined): Promise<void> {
  if (editor === undefined) {
    return;
  }
  const { document, selection, visibleRanges } = editor;
  const [first] = visibleRanges;
  const last = visibleRanges.at(-1);
  await server.notify(didFocus, {
    textDocument: { uri: document.uri.toString() },
    selection: plain(selection),
    ...(first && last && { visibleRange: plain(new Range(first.start, last.end)) }),
  });
}

function plain({ start, end }: Range) {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
