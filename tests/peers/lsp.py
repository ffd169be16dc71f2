"""A session of a language client with `tandem lsp`, in which every message of the server is checked against the types that
PyPI lsprotocol generates from the official meta model of LSP 3.18: a message must be readable as its type, and nothing may
be lost by that.

The model is the scripted one of the editor tests. usage: lsp.py (TANDEM_BIN names the program)
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from lsprotocol import converters, types

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/editors"))
from helix_driver import TANDEM, Model, model_environment  # noqa: E402
from jsonrpc import Peer, is_answer  # noqa: E402

CODE = "fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"
EDITS = [{"old_text": "a + b", "new_text": "a - b"}]
CALL = {"call": {"id": "c1", "name": "edit_file", "arguments": {"path": "lib.rs", "edits": EDITS}}}
SCRIPT = [[{"text": "See `lib.rs:2`."}, CALL], [{"text": "Changed."}]]
# A client of the newest version, and one that announces nothing but edits.
RICH = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
        "workspaceFolders": True,
    },
    "window": {
        "showDocument": {"support": True},
        "workDoneProgress": True,
        "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "tagSupport": {"valueSet": [1]},
        },
        "codeLens": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
}
POOR = {"workspace": {"applyEdit": True}}

CONVERTER = converters.get_converter()


def without_null(value):
    """A value without null fields, which mean the same as missing ones."""
    if isinstance(value, dict):
        return {name: without_null(field) for name, field in value.items() if field is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


def agree(value, kind, what):
    """A value can be parsed as this type, and is the same afterwards."""
    read = CONVERTER.unstructure(CONVERTER.structure(value, kind))
    assert without_null(read) == without_null(value), f"{what}: read as {read}, sent as {value}"


def check(message, method):
    """A message conforms to its method's type, with nothing added."""
    if method == "textDocument/codeAction" and "result" in message:
        # lsprotocol parses each action that has a command as a bare command.
        for action in message["result"]:
            agree(action, types.Command if isinstance(action["command"], str) else types.CodeAction, method)
        return
    ours, answer, *_ = types.METHOD_TO_TYPES[method]
    if "method" in message:
        kind = ours
    elif "error" in message:
        kind = types.ResponseErrorMessage
    else:
        kind = answer
    agree(message, kind, method)


class Client(Peer):
    """Acts as an editor that has files open, and checks every message."""

    def __init__(self, process, folder):
        super().__init__(process)
        self.folder = folder
        self.texts = {}
        self.versions = {}
        self.asked = {}
        self.seen = []

    def uri(self, name):
        return (self.folder / name).as_uri()

    def open(self, name, text):
        uri = self.uri(name)
        (self.folder / name).write_text(text)
        self.texts[uri], self.versions[uri] = text, 1
        document = {"uri": uri, "languageId": "rust", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri, text):
        self.versions[uri] += 1
        self.texts[uri] = text
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def apply(self, edit):
        """Applies a workspace edit: one edit of one document, as tandem sends them."""
        changes = [(change["textDocument"]["uri"], change["edits"]) for change in edit.get("documentChanges", [])]
        for uri, edits in changes or edit["changes"].items():
            text = self.texts[uri]
            lines = text.splitlines(keepends=True)

            def offset(place):
                return len("".join(lines[: place["line"]])) + place["character"]

            for one in sorted(edits, key=lambda one: -offset(one["range"]["start"])):
                begin, end = offset(one["range"]["start"]), offset(one["range"]["end"])
                text = text[:begin] + one["newText"] + text[end:]
            self.change(uri, text)
        return {"applied": True}

    def take(self):
        """The next message, checked; requests are answered as an editor would answer them."""
        message = self.receive()
        assert message is not None, f"the server ended; it sent {self.seen[-5:]}"
        check(message, message.get("method") or self.asked[message["id"]])
        self.seen.append(message.get("method"))
        if "id" in message and "method" in message:
            answers = {
                "workspace/applyEdit": lambda: self.apply(message["params"]["edit"]),
                "window/showDocument": lambda: {"success": True},
                "window/showMessageRequest": lambda: next(
                    action for action in message["params"]["actions"] if action["title"] == "Allow"
                ),
            }
            self.send({"id": message["id"], "result": answers.get(message["method"], lambda: None)()})
        return message

    def call(self, method, params):
        number = self.ask(method, params)
        self.asked[number] = method
        while not is_answer(message := self.take(), number):
            pass
        return message.get("result", message.get("error"))

    def about(self, method, uri, line=0, character=0, **more):
        position = {"line": line, "character": character}
        return self.call(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position, **more})

    def wait(self, uri, text):
        while text not in self.texts[uri]:
            self.take()


def play(capabilities):
    """A whole session; returns what the server sent."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-lsp-"))
        model = stack.enter_context(Model())
        model.script(*SCRIPT)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "TANDEM_CONFIG": f"{home}/none.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
            **model_environment(model),
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = stack.enter_context(subprocess.Popen([TANDEM, "lsp"], env=environment, cwd=home, **pipes))
        stack.callback(process.kill)
        folder = pathlib.Path(home, "project")
        (folder / ".git").mkdir(parents=True)
        client = Client(process, folder)
        folders = [{"uri": folder.as_uri(), "name": "project"}]
        client.call("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities, "workspaceFolders": folders})
        client.notify("initialized", {})
        client.open("lib.rs", CODE)
        client.open("notes.tandem.md", "## You\n\nChange @lib.rs\n")
        code, chat = client.uri("lib.rs"), client.uri("notes.tandem.md")
        assert client.about("completion", chat, 2, 14)
        client.notify("textDocument/didSave", {"textDocument": {"uri": chat}})
        client.wait(chat, "> **Allow?**")
        if capabilities is POOR:
            client.call("workspace/executeCommand", {"command": "tandem.allow", "arguments": []})
        client.wait(chat, "Changed.")
        client.wait(chat, "## You\n\n")
        while "window/showMessage" not in client.seen:
            client.take()
        line = client.texts[chat].splitlines().index("See `lib.rs:2`.")
        assert client.about("definition", chat, line, 6)
        at = {"line": 1, "character": 0}
        context = {"diagnostics": [], "triggerKind": 1}
        assert client.call("textDocument/codeAction", {"textDocument": {"uri": code}, "range": {"start": at, "end": at}, "context": context})
        assert client.about("hover", code, 1)
        for reads in ("documentLink", "documentSymbol", "foldingRange"):
            assert client.call(f"textDocument/{reads}", {"textDocument": {"uri": chat}}), reads
        for command in ("tandem.undo", "tandem.redo", "tandem.keep"):
            if command == "tandem.keep" and capabilities is RICH:
                lenses = client.call("textDocument/codeLens", {"textDocument": {"uri": code}})
                assert [lens["command"]["title"] for lens in lenses] == ["Keep", "Reject"], lenses
            client.seen.clear()
            client.call("workspace/executeCommand", {"command": command, "arguments": []})
            while "window/showMessage" not in client.seen:
                client.take()
        refused = client.call("workspace/executeCommand", {"command": "tandem.none", "arguments": []})
        assert refused["code"] == types.ErrorCodes.InvalidParams, refused
        client.call("shutdown", None)
        client.notify("exit", None)
        assert process.wait(20) == 0


def main():
    failed = 0
    for name, capabilities in (("rich", RICH), ("poor", POOR)):
        try:
            play(capabilities)
            print(f"ok every message to a client with {name} capabilities is of LSP 3.18", flush=True)
        except Exception as error:  # one that no longer fits is named, and the other is still checked
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{2 - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
