#!/usr/bin/env python3
"""What inline completion costs: `tandem lsp` as an editor starts it, with a model server that never answers.

usage: benches/completion.py [PROGRAM]   (target/release/tandem when left out; Linux, standard library only)

Prints the CPU time of the server for a keystroke while somebody types (a change, and a request that takes the place of the
one before) in a document of 5 MB, and the time from `$/cancelRequest` until the model server sees its connection closed.
"""

import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/editors"))
from jsonrpc import Peer, is_answer  # noqa: E402

KEYSTROKES = 500
CANCELS = 50
INVOKED, AUTOMATIC = 1, 2
LINE = "let number = 1; // one of many lines\n"


class Tandem(Peer):
    """`tandem lsp` with an open document."""

    def __init__(self, program, home, url):
        environment = {"PATH": "/usr/bin:/bin", "HOME": home, "TANDEM_STATE_DIR": f"{home}/state"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        super().__init__(subprocess.Popen([program, "lsp"], env=environment, **pipes))
        self.uri = f"file://{home}/a.rs"
        options = {
            "completion": {"model": "llamacpp/any", "debounce-ms": 10_000},
            "providers": {"llamacpp": {"base-url": url}},
        }
        capabilities = {"textDocument": {"inlineCompletion": {}}}
        self.answer(self.ask("initialize", {"capabilities": capabilities, "initializationOptions": options}))
        self.notify("initialized", {})
        self.lines = 5_000_000 // len(LINE)
        document = {"uri": self.uri, "languageId": "rust", "version": 1, "text": LINE * self.lines}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def answer(self, number):
        while not is_answer(self.receive(), number):
            pass

    def suggest(self, character, trigger):
        place = {"line": self.lines // 2, "character": character}
        params = {"textDocument": {"uri": self.uri}, "position": place, "context": {"triggerKind": trigger}}
        return self.ask("textDocument/inlineCompletion", params)

    def type(self, count):
        place = {"line": self.lines // 2, "character": count}
        change = {"range": {"start": place, "end": place}, "text": "x"}
        document = {"uri": self.uri, "version": count + 2}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        return int(fields[0]) / 1e6


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/tandem"
    listener = socket.create_server(("127.0.0.1", 0))
    with tempfile.TemporaryDirectory() as home:
        tandem = Tandem(program, home, f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        closed = []
        for _ in range(CANCELS):
            number = tandem.suggest(0, INVOKED)
            connection, _ = listener.accept()
            connection.recv(1 << 20)
            began = time.perf_counter()
            tandem.notify("$/cancelRequest", {"id": number})
            while connection.recv(1 << 20):
                pass
            closed.append((time.perf_counter() - began) * 1000)
            tandem.answer(number)
        began = tandem.cpu()
        for count in range(KEYSTROKES):
            tandem.type(count)
            before, number = number, tandem.suggest(count + 1, AUTOMATIC)
            if count > 0:
                tandem.answer(before)
        cpu = (tandem.cpu() - began) / KEYSTROKES
        tandem.process.stdin.close()
        tandem.process.wait()
    print(f"cancel -> connection closed: median {statistics.median(closed):.2f} ms, worst {max(closed):.2f} ms")
    print(f"a keystroke in 5 MB: {cpu:.3f} ms of CPU in the main thread")


if __name__ == "__main__":
    main()
